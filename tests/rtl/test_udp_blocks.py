"""The blocks of the UDP/IP stack, each for itself; the stack as a whole: test_udp_core.py."""

import re

import pytest
from scapy.layers.inet import ICMP, UDP
from scapy.layers.inet import IP as Packet
from scapy.layers.l2 import ARP, Ether
from support.block import ClockCycles, ReadOnly, RisingEdge, Timer, cocotb, rng, run, start
from support.paths import RTL
from support.ptp_machine import Machine
from support.sweep import long

PEER_PORT, LOCAL_PORT = 10000, 49152
MAC, IP, PEER_MAC, PEER = 0x02FADE000001, 0x0A090002, 0x02FADE0000F0, 0x0A090001
TX = 6400


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        *[("extra_stack", {"WIDTH": width}) for width in (8, 64)],
        *[long("udp_core", {"WIDTH": width, "PAYLOAD_MAX": 1024}) for width in (8, 64)],
        ("udp_core", {"WIDTH": 8, "PAYLOAD_MAX": 1024, "PTP": 0, "CONTROL": 0, "ICMP": 0, "ARP": 0}),
        ("udp_core", {"WIDTH": 8, "PAYLOAD_MAX": 1024, "STREAMS": 3, "RECEIVE": 1}),
        ("udp_core", {"WIDTH": 64, "PAYLOAD_MAX": 1024, "STREAMS": 8, "RECEIVE": 1, "PTP": 0}),
        long("udp_core", {"WIDTH": 64, "PAYLOAD_MAX": 1024, "SEND": 0, "RECEIVE": 1, "PTP": 0}),
        *[long("udp_core", {"WIDTH": 64, "PAYLOAD_MAX": 1024, without: 0}) for without in ("PTP", "CONTROL", "ICMP", "ARP")],
        *[("header_strip", {"WIDTH": width, "HEADER_BYTES": size}) for width, size in ((8, 14), (64, 14), (64, 44))],
        *[long("header_strip", {"WIDTH": 64, "HEADER_BYTES": size}) for size in (20, 8, 10)],
        *[("pull_header", {"WIDTH": width, "HEADER_BYTES": size}) for width, size in ((8, 14), (64, 20))],
        *[long("pull_header", {"WIDTH": 64, "HEADER_BYTES": size}) for size in (14, 8, 64)],
        *[("udp_arp", {"WIDTH": width}) for width in (8, 64)], ("udp_neighbours", {"ENTRIES": 4, "TIMEOUT": 50, "RETRY": 5}),
        ("pull_arbiter", {"CLIENTS": 3, "META_BITS": 8}), ("pull_arbiter", {"CLIENTS": 3, "META_BITS": 8, "FAIR": 1}), ("frame_crossing", {"WIDTH": 8, "DEPTH": 8}),
        ("ptp_clock", {"PPS_NS": 1000}), ("ptp_machine", {}), *[("ptp_receive", {"WIDTH": width}) for width in (8, 64)],
    ],
)  # fmt: skip
def test_udp_blocks(toplevel, parameters):
    run("udp_blocks", parameters, toplevel)


def width_of(signal):
    return len(signal) // 8


async def give(dut, frame, good=1, pauses=None):
    """A frame as words with a byte count; two clocks of rest behind it, as the crossing leaves."""
    width = width_of(dut.s_data)
    words = [frame[i : i + width] for i in range(0, len(frame), width)]
    for i, word in enumerate(words):
        while pauses and pauses():
            dut.s_valid.value = 0
            await RisingEdge(dut.clk)
        dut.s_data.value = int.from_bytes(word, "little")
        dut.s_count.value = len(word)
        dut.s_valid.value = 1
        dut.s_end.value = int(i == len(words) - 1)
        dut.s_good.value = good
        await RisingEdge(dut.clk)
    dut.s_valid.value = 0
    dut.s_end.value = 0
    await ClockCycles(dut.clk, 1)


async def pull_frame(dut, gap=2):
    """What a MAC does: sees a request, starts it, takes a word each clock. (The frame, clocks until there was a request)."""
    width = width_of(dut.m_axis_tdata)
    clocks = 0
    await ReadOnly()
    while not int(dut.m_axis_tvalid.value):
        await RisingEdge(dut.clk)
        await ReadOnly()
        clocks += 1
        assert clocks < 1000, "no request"
    await ClockCycles(dut.clk, gap)
    dut.m_axis_start.value = 1
    await RisingEdge(dut.clk)
    dut.m_axis_start.value = 0
    frame = b""
    while True:
        await ReadOnly()
        assert int(dut.m_axis_tvalid.value)
        keep, word = int(dut.m_axis_tkeep.value), int(dut.m_axis_tdata.value).to_bytes(width, "little")
        frame += word[: keep.bit_count()]
        last = int(dut.m_axis_tlast.value)
        assert last or keep == 2**width - 1
        await RisingEdge(dut.clk)
        if last:
            return frame, clocks


def ethernet(to, ethertype, payload, source=PEER_MAC):
    return to.to_bytes(6, "big") + source.to_bytes(6, "big") + ethertype.to_bytes(2, "big") + payload


def arp(operation, target):
    return (bytes.fromhex("0001080006040000")[:6] + operation.to_bytes(2, "big") + PEER_MAC.to_bytes(6, "big")
            + PEER.to_bytes(4, "big") + bytes(6) + target.to_bytes(4, "big"))  # fmt: skip


@cocotb.test()
async def extra_stack_serves_both_protocols(dut):
    """The further protocol answers, ARP goes before it, and each frame is whole."""
    for name in ("s_valid", "s_end", "m_axis_start"):
        getattr(dut, name).value = 0
    dut.mac_address.value, dut.ip_address.value = MAC, IP
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("extra")
    for _ in range(20):
        number = random.getrandbits(64)
        await give(dut, ethernet(MAC, 0x88B5, number.to_bytes(8, "big")).ljust(60, b"\0"))
        with_arp = random.random() < 0.5
        if with_arp:
            await give(dut, ethernet(2**48 - 1, 0x0806, arp(1, IP)).ljust(60, b"\0"))
            # The asker is remembered before it gets its reply.
            await ClockCycles(dut.clk, 40)
            frame, _ = await pull_frame(dut)
            assert frame[:14] == ethernet(PEER_MAC, 0x0806, b"", MAC) and frame[20:22] == b"\0\2"
            assert frame[22:] == MAC.to_bytes(6, "big") + IP.to_bytes(4, "big") + PEER_MAC.to_bytes(6, "big") + PEER.to_bytes(4, "big")
        frame, _ = await pull_frame(dut)
        assert frame == ethernet(PEER_MAC, 0x88B5, ((number + 1) % 2**64).to_bytes(8, "big"), MAC)
    # Neither to others nor of a third protocol.
    await give(dut, ethernet(MAC + 1, 0x88B5, bytes(46)))
    await give(dut, ethernet(MAC, 0x88B6, bytes(46)))
    await give(dut, ethernet(MAC, 0x88B5, bytes(46)), good=0)
    for _ in range(40):
        await RisingEdge(dut.clk)
        assert not int(dut.m_axis_tvalid.value)


def mac_of(ip):
    return 0x020000000000 | ip


@cocotb.test()
async def udp_arp_answers_asks_and_tells(dut):
    """Of messages at random: each is reported, answered, asked for or counted; a reply waits for its start, and stays what it is."""
    for name in ("s_valid", "s_end", "start", "ask", "learned", "learned_nothing", "learn_place"):
        getattr(dut, name).value = 0
    dut.mac_address.value, dut.ip_address.value = MAC, IP
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("arp")
    width = width_of(dut.data)
    seen = {"reply": 0, "ask": 0, "short": 0, "protocol": 0, "destination": 0, "full": 0}
    told = []

    async def count():
        while True:
            await RisingEdge(dut.clk)
            for name in ("short", "protocol", "destination", "full"):
                seen[name] += int(getattr(dut, f"drop_{name}").value)

    async def neighbours():
        """Takes its time; who is new and not for this board is nobody."""
        while True:
            await RisingEdge(dut.clk)
            if int(dut.learn.value):
                parts = bytearray()
                for place in range(2, 12):
                    dut.learn_place.value = place
                    await ClockCycles(dut.clk, 1)
                    await ReadOnly()
                    parts.append(int(dut.learn_byte.value))
                    await Timer(1, "ps")
                told.append((int.from_bytes(parts[6:], "big"), int.from_bytes(parts[:6], "big"), int(dut.learn_new.value)))
                dut.learned.value, dut.learned_nothing.value = 1, 1 - told[-1][2]
                await RisingEdge(dut.clk)
                dut.learned.value = 0
                await RisingEdge(dut.clk)

    async def pull():
        await ReadOnly()
        for _ in range(40):
            if int(dut.request.value):
                break
            await RisingEdge(dut.clk)
            await ReadOnly()
        else:
            await Timer(1, "ps")
            return None
        to = int(dut.destination.value)
        await RisingEdge(dut.clk)
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        out = b""
        while len(out) < 28:
            await ReadOnly()
            out += int(dut.data.value).to_bytes(width, "little")
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, 2)
        return to, out[:28]

    cocotb.start_soon(count())
    cocotb.start_soon(neighbours())
    mine = MAC.to_bytes(6, "big") + IP.to_bytes(4, "big")
    for _ in range(60):
        ip = random.choice([0, *(PEER + i for i in range(8))])
        sender = mac_of(ip).to_bytes(6, "big") + ip.to_bytes(4, "big")
        operation, target, shape, size = (
            random.choice([1, 1, 1, 2, 3]),
            random.choice([IP, IP, IP + 1]),
            random.randrange(8),
            random.choice([46, 46, 46, 46, 27]),
        )
        message = (
            bytes.fromhex("000108000605" if shape == 0 else "000108000604")
            + operation.to_bytes(2, "big")
            + sender
            + bytes(6)
            + target.to_bytes(4, "big")
        )
        before = dict(seen)
        told.clear()
        await give(dut, message.ljust(46, b"\0")[:size])
        await ClockCycles(dut.clk, 24)
        news = {name: seen[name] - before[name] for name in seen}
        if size < 28:
            assert news == {**dict.fromkeys(seen, 0), "short": 1} and not told
        elif shape == 0 or operation == 3:
            assert news == {**dict.fromkeys(seen, 0), "protocol": 1} and not told
        else:
            new = int(target == IP and ip != 0)
            assert told == [(ip, mac_of(ip), new)] and news == {**dict.fromkeys(seen, 0), "destination": 1 - new}
        if size >= 28 and shape and operation == 1 and target == IP:
            if random.random() < 0.5:
                # The reply is not out: what comes is counted, and the reply is the first one's.
                await give(dut, arp(random.choice([1, 2]), IP).ljust(46, b"\0"))
                await ClockCycles(dut.clk, 6)
                assert seen["full"] == before["full"] + 1
            assert await pull() == (mac_of(ip), bytes.fromhex("0001080006040002") + mine + sender)
        assert await pull() is None
        if random.random() < 0.3:
            wanted = random.getrandbits(32)
            dut.ask.value, dut.ask_ip.value = 1, wanted
            asked = cocotb.start_soon(pull())
            while True:
                await RisingEdge(dut.clk)
                await ReadOnly()
                if int(dut.ask_taken.value):
                    break
            await RisingEdge(dut.clk)
            dut.ask.value = 0
            assert await asked == (2**48 - 1, bytes.fromhex("0001080006040001") + mine + bytes(6) + wanted.to_bytes(4, "big"))


@cocotb.test()
async def udp_neighbours_know_the_way(dut):
    """Against a model: four addresses, the oldest makes room, each for 50 ms; gateway, groups, broadcast; what is not known is asked for."""
    gateway, mask = 0x0A0900FE, 0xFFFFFF00
    for name in ("tick_ms", "lookup", "stream_changed", "stream_active", "learn", "ask_taken", "learn_byte", "in_use"):
        getattr(dut, name).value = 0
    dut.ip_address.value, dut.mask.value, dut.gateway.value, dut.stream_ip.value = IP, mask, gateway, PEER
    await start(dut, {"clk": TX}, ["rst"])
    await ClockCycles(dut.clk, 20)
    random = rng("neighbours")
    table, place = [None] * 4, 0  # (IP, MAC, milliseconds)
    sender = bytes(16)  # from 2 on MAC and IP address

    async def give_bytes():
        while True:
            dut.learn_byte.value = sender[int(dut.learn_place.value)] if dut.learn_place.value.is_resolvable else 0
            await dut.learn_place.value_change

    cocotb.start_soon(give_bytes())

    def entry(ip):
        return next((i for i, found in enumerate(table) if found and found[0] == ip and found[2] > 0), None)

    def way(ip):
        if ip == 2**32 - 1 or ip == IP | 0xFF:
            return 2**48 - 1
        if ip >> 28 == 0xE:
            return 0x01005E000000 | ip & 0x7FFFFF
        i = entry(ip if ip & mask == IP & mask else gateway)
        return None if i is None else table[i][1]

    async def until(signal):
        for clock in range(1, 80):
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(signal.value):
                await Timer(1, "ps")
                return clock
        raise AssertionError(f"{signal._name} did not come")

    async def learn(ip, mac, new):
        nonlocal place, sender
        sender = bytes(2) + mac.to_bytes(6, "big") + ip.to_bytes(4, "big") + bytes(4)
        dut.learn_byte.value = sender[int(dut.learn_place.value)]
        dut.learn.value, dut.learn_new.value = 1, new
        await until(dut.learned)
        i = entry(ip)
        assert int(dut.learned_nothing.value) == int(i is None and not new)
        if i is None and new:
            place = i = (place + 1) % 4
        if i is not None:
            table[i] = (ip, mac, 50)
        await RisingEdge(dut.clk)
        dut.learn.value = 0
        await ClockCycles(dut.clk, 40)

    async def lookup(ip):
        dut.lookup.value, dut.in_use.value, dut.lookup_ip.value = 1, 1, ip
        clocks = await until(dut.lookup_done)
        found = int(dut.mac.value) if int(dut.known.value) else None
        await RisingEdge(dut.clk)
        dut.lookup.value = 0
        # While the address is needed nothing changes it.
        await ClockCycles(dut.clk, random.randrange(1, 30))
        assert int(dut.mac.value) == found or found is None
        dut.in_use.value = 0
        assert found == way(ip), f"{ip:08X}"
        return clocks

    async def millisecond():
        dut.tick_ms.value = 1
        await RisingEdge(dut.clk)
        dut.tick_ms.value = 0
        await ClockCycles(dut.clk, 50)
        for i, found in enumerate(table):
            table[i] = found and (*found[:2], max(0, found[2] - 1))

    peers = [PEER + i for i in range(6)] + [gateway]
    for _ in range(400):
        action = random.random()
        if action < 0.3:
            await learn(random.choice(peers), random.getrandbits(48), random.randrange(2))
        elif action < 0.7:
            await lookup(random.choice([*peers, 0x08080808, 0xE0000181, 0xEF7FFFFF, 2**32 - 1, IP | 0xFF]))
        elif action < 0.8:
            dut.stream_ip.value = random.choice([*peers, 0x08080808, 0xE0000181])
            dut.stream_changed.value = 1
            await RisingEdge(dut.clk)
            dut.stream_changed.value = 0
            await ReadOnly()
            assert int(dut.stream_path.value) == 0, "not before it is looked up"
            await Timer(1, "ps")
            await ClockCycles(dut.clk, random.choice([2, 50]))
        else:
            for _ in range(random.choice([1, 5, 20])):
                await millisecond()
        if action >= 0.7:
            await ClockCycles(dut.clk, 40)
        assert int(dut.stream_path.value) == int(way(int(dut.stream_ip.value)) is not None)
        if int(dut.ask.value):
            dut.ask_taken.value = 1
            await RisingEdge(dut.clk)
            dut.ask_taken.value = 0
            await RisingEdge(dut.clk)
    # What is found again is found at once, and so is where the stream goes.
    await learn(PEER + 1, PEER_MAC + 1, 1)
    await learn(PEER, PEER_MAC, 1)
    assert await lookup(PEER) <= 27
    assert await lookup(PEER) <= 3
    dut.stream_ip.value, dut.stream_changed.value = PEER + 1, 1
    await RisingEdge(dut.clk)
    dut.stream_changed.value = 0
    await ClockCycles(dut.clk, 40)
    assert await lookup(PEER + 1) <= 3
    # Wanted by the stream: asked for each 5 ms. A packet's goes before it.
    for _ in range(60):
        await millisecond()
    dut.stream_ip.value, dut.stream_active.value = PEER + 9, 1
    asked = []
    for ms in range(31):
        await millisecond()
        if ms == 17:
            await lookup(PEER + 10)
        if int(dut.ask.value):
            asked.append(int(dut.ask_ip.value))
            dut.ask_taken.value = 1
            await RisingEdge(dut.clk)
            dut.ask_taken.value = 0
            await RisingEdge(dut.clk)
    assert 5 <= len(asked) <= 7 and asked.count(PEER + 10) == 1 and set(asked) == {PEER + 9, PEER + 10}, asked


async def begin_core(dut, streams=1):
    """A core whose streams go to a group, or without ARP to an address behind PEER_MAC; streams: those that are enabled, by bits."""
    for name in ("s_axis", "s_mac", "mac_stat", "status_request", "m_axis_start", "reg_ready", "reg_error", "ptp_role"):
        getattr(dut, name).value = 0
    dut.peer_port.value = sum(PEER_PORT + i << 16 * i for i in range(int(dut.STREAMS.value)))
    dut.local_port.value = sum(LOCAL_PORT + i << 16 * i for i in range(int(dut.STREAMS.value)))
    dut.mac_address.value, dut.peer_mac.value = MAC, PEER_MAC
    peer = 0xEF010203 if int(dut.ARP.value) else PEER
    dut.ip.value = IP << 96 | 0xFFFFFF00 << 64 | peer  # address, mask, gateway, peer
    dut.payload.value, dut.checksum.value, dut.start.value, dut.enable.value = 64, 1, streams, 1
    await start(dut, {"tx_clk": TX, "user_clk": TX, "rx_clk": TX}, ["rst"])


async def send(dut, packet):
    """A frame from the MAC."""
    width = int(dut.WIDTH.value) // 8
    frame = bytes(packet).ljust(60, b"\0")
    for i in range(0, len(frame), width):
        word = frame[i : i + width]
        last = i + width >= len(frame)
        dut.s_mac.value = int.from_bytes(word, "little") << 11 | ((1 << len(word)) - 1) << 3 | 0b100 | last << 1
        await RisingEdge(dut.rx_clk)
    dut.s_mac.value = 0
    await ClockCycles(dut.rx_clk, 24 // width)


async def take_frames(dut, frames):
    """The MAC: takes frames one after another, each with the clocks of a preamble and a gap."""
    width = int(dut.WIDTH.value) // 8
    while True:
        await ReadOnly()
        if not int(dut.m_axis.value) >> 2 & 1:
            await RisingEdge(dut.tx_clk)
            continue
        await RisingEdge(dut.tx_clk)
        dut.m_axis_start.value = 1
        await RisingEdge(dut.tx_clk)
        dut.m_axis_start.value = 0
        frame, ended = b"", False
        while not ended:
            await ReadOnly()
            word = int(dut.m_axis.value)
            frame += (word >> 11).to_bytes(8, "little")[: (word >> 3 & 0xFF).bit_count()]
            ended = word >> 1 & 1
            await RisingEdge(dut.tx_clk)
        frames.append(Ether(frame))
        await ClockCycles(dut.tx_clk, 24 // width)


@cocotb.test()
async def udp_core_shares_the_line_among_streams(dut):
    """Each stream's words leave from its port to its peer, in order; of streams that are always full none gets more than another."""
    streams = int(dut.STREAMS.value)
    if streams == 1:
        return
    await begin_core(dut, (1 << streams) - 1)
    random = rng("streams")
    blocks = [random.randrange(1, 8) for _ in range(streams)]
    counts, given = [0] * streams, [0] * streams

    async def users():
        """Words of all streams, each a count in its stream; the last one of a block ends its datagram."""
        while True:
            word = 0
            for i in range(streams):
                word |= ((i << 48 | counts[i]) << 2 | 0b10 | (counts[i] % blocks[i] == blocks[i] - 1)) << 66 * i
            dut.s_axis.value = word
            await ReadOnly()
            ready = int(dut.s_axis_tready.value)
            await RisingEdge(dut.user_clk)
            for i in range(streams):
                counts[i] += ready >> i & 1

    frames = []
    cocotb.start_soon(users())
    cocotb.start_soon(take_frames(dut, frames))
    while len(frames) < 30 * streams:
        await ClockCycles(dut.tx_clk, 100)
    datagrams = [0] * streams
    for frame in frames:
        i = frame[UDP].sport - LOCAL_PORT
        assert frame.dst == "01:00:5e:01:02:03" and frame[UDP].dport == PEER_PORT + i
        payload = bytes(frame[UDP].payload)
        assert int.from_bytes(payload[:4], "big") == datagrams[i] and int.from_bytes(payload[4:6], "big") == min(blocks[i], 7)
        datagrams[i] += 1
        for at in range(8, 8 * min(blocks[i], 7) + 8, 8):
            assert int.from_bytes(payload[at : at + 8], "little") == i << 48 | given[i]
            given[i] += 1
    assert max(datagrams) - min(datagrams) <= 2, datagrams


@cocotb.test()
async def udp_core_has_registers_for_each_stream(dut):
    """A stream is directed, started and stopped by registers of its own."""
    streams = int(dut.STREAMS.value)
    if not int(dut.CONTROL.value) or not int(dut.ARP.value):
        return
    await begin_core(dut, 0)
    frames = []
    cocotb.start_soon(take_frames(dut, frames))
    sequence = 0

    async def ask(operation, address, value=0):
        nonlocal sequence
        sequence += 1
        message = sequence.to_bytes(4, "big") + bytes([operation, 0, 0, 0]) + address.to_bytes(4, "big") + value.to_bytes(4, "big")
        for _ in range(4):
            packet = Packet(src="10.9.0.1", dst="10.9.0.2") / UDP(sport=9, dport=10001) / message
            await send(dut, Ether(dst=MAC.to_bytes(6, "big"), src=PEER_MAC.to_bytes(6, "big")) / packet)
            for _ in range(60):
                await ClockCycles(dut.tx_clk, 10)
                while frames:
                    frame = frames.pop(0)
                    if ARP in frame:
                        answer = ARP(op=2, hwsrc=PEER_MAC.to_bytes(6, "big"), psrc="10.9.0.1", hwdst=MAC.to_bytes(6, "big"), pdst="10.9.0.2")
                        await send(dut, Ether(dst=MAC.to_bytes(6, "big"), src=PEER_MAC.to_bytes(6, "big")) / answer)
                    elif frame[UDP].sport == 10001:
                        reply = bytes(frame[UDP].payload)
                        assert reply[:4] == message[:4] and reply[8:12] == message[8:12]
                        return reply[5], int.from_bytes(reply[12:16], "big")
        raise AssertionError(f"no reply for {address:08X}")

    for i in range(8):
        base = 0x80000000 | i << 9
        if i >= streams:
            assert await ask(1, base | 3) == (2, 0) and await ask(2, base | 1, 1) == (2, 1)
            continue
        assert await ask(1, base) == (0, 0xFADE0D10), i
        assert await ask(1, base | 1) == (0, 0)
        assert await ask(1, base | 2) == (0, 0xEF010203)
        assert await ask(1, base | 3) == (0, PEER_PORT + i)
        assert await ask(1, base | 4) == (0, 64)
        assert await ask(2, base | 3, 20000 + i) == (0, 20000 + i)
        assert await ask(2, base | 4, 100 + 4 * i) == (0, 100 + 4 * i)
        assert await ask(2, base | 4, 102) == (2, 102), "no multiple of 4"
        assert await ask(2, base | 2, 0xEF010300 + i) == (0, 0xEF010300 + i)
        assert await ask(1, base | 6) == (0, 0)
        assert await ask(1, base | 7) == (0, 0)
    for i in range(streams):
        base = 0x80000000 | i << 9
        wanted = (0xEF010300 + i, 20000 + i, 100 + 4 * i, 1)
        assert [(await ask(1, base | place))[1] for place in (2, 3, 4, 5)] == list(wanted)
    assert await ask(1, 0x80000008) == (2, 0) and await ask(3, 0, 5) == (1, 5)


@cocotb.test()
async def udp_core_hands_datagrams_to_the_user(dut):
    """What comes for a stream's port is the user's, whole or marked; other ports are none."""
    if not int(dut.RECEIVE.value):
        return
    await begin_core(dut)
    random = rng("receive")
    streams = int(dut.STREAMS.value)
    got, parts = [], b""

    async def watch():
        nonlocal parts
        while True:
            await RisingEdge(dut.tx_clk)
            await ReadOnly()
            word = int(dut.m_udp.value)
            if word >> 2 & 1:
                parts += (word >> 11).to_bytes(8, "little")[: (word >> 3 & 0xFF).bit_count()]
                if word >> 1 & 1:
                    got.append((int(dut.m_udp_stream.value), int(dut.m_udp_ip.value), int(dut.m_udp_port.value), word & 1, parts))
                    parts = b""

    cocotb.start_soon(watch())
    for _ in range(80):
        i, port, size = random.randrange(streams + 1), random.randrange(1, 2**16), random.choice([0, 1, 7, 8, 9, 18, random.randrange(200)])
        data, broken = random.randbytes(size), random.random() < 0.2
        header = UDP(sport=port, dport=LOCAL_PORT + i, chksum=1 if broken else None)
        await send(dut, Ether(dst=MAC.to_bytes(6, "big"), src=PEER_MAC.to_bytes(6, "big")) / Packet(src="10.9.0.1", dst="10.9.0.2") / header / data)
        await ClockCycles(dut.tx_clk, 60)
        if i == streams or (broken and not size):
            assert not got
        else:
            assert got == [(i, PEER, port, int(broken), data)]
        got.clear()


@cocotb.test()
async def udp_core_is_on_the_wire_soon(dut):
    """From the stream's request at the UDP layer to the request at the MAC, and to the data behind all headers."""
    if not int(dut.SEND.value):
        return
    width = int(dut.WIDTH.value) // 8
    await begin_core(dut)
    dut.s_axis.value = 0x0706050403020100 << 2 | 0b10  # tdata, tvalid, tlast
    clocks = 0
    await ReadOnly()
    while not int(dut.port_request.value) >> 2:
        await RisingEdge(dut.tx_clk)
        await ReadOnly()
        clocks += 1
        assert clocks < 200
    to_mac = 0
    while not int(dut.m_axis.value) >> 2 & 1:  # tdata, tkeep, tvalid, tlast, tuser
        await RisingEdge(dut.tx_clk)
        await ReadOnly()
        to_mac += 1
        assert to_mac < 50
    await RisingEdge(dut.tx_clk)
    dut.m_axis_start.value = 1
    await RisingEdge(dut.tx_clk)
    dut.m_axis_start.value = 0
    frame = b""
    for _ in range(106 // width + 1):
        await ReadOnly()
        frame += (int(dut.m_axis.value) >> 11).to_bytes(8, "little")[:width]
        await RisingEdge(dut.tx_clk)
    # The first byte of the user's data is in the frame's place, from the clock after the MAC's start on: nothing waits.
    assert frame[12:14] == b"\x08\0" and frame[50:58] == bytes(range(8))
    assert frame[:6] == (b"\x01\0\x5e\x01\x02\x03" if int(dut.ARP.value) else PEER_MAC.to_bytes(6, "big"))
    dut._log.info(f"latency: {to_mac} clocks from the request to the MAC")
    # The last of several streams is the one on offer first.
    assert to_mac == 7 + (int(dut.STREAMS.value) > 1), to_mac


@cocotb.test()
async def udp_core_counts_what_it_has_no_part_for(dut):
    """Messages for each of the parts: dropped as of no protocol, or no port, where the part is not there, and only there."""
    text = (RTL / "udp/udp_pkg.sv").read_text()
    network, events = (re.findall(r"(\w+);", body) for body in re.findall(r"struct packed \{(.*?)\}", text, re.S))
    names = [*events[: events.index("network")], *network, "datagrams"][::-1]
    await begin_core(dut)
    seen = []

    async def watch():
        while True:
            await RisingEdge(dut.tx_clk)
            await ReadOnly()
            bits = int(dut.events.value)
            seen.extend(name for i, name in enumerate(names) if bits >> i & 1)

    cocotb.start_soon(watch())
    board, pc = MAC.to_bytes(6, "big"), PEER_MAC.to_bytes(6, "big")
    addresses = {"src": "10.9.0.1", "dst": "10.9.0.2"}
    parts = {
        "ARP": (ARP(op=1, hwsrc=pc, psrc="10.9.0.1", pdst="10.9.0.2"), "drop_ethertype"),
        "ICMP": (Packet(**addresses) / ICMP() / bytes(40), "drop_ip_protocol"),
        "CONTROL": (Packet(**addresses) / UDP(sport=9, dport=10001) / bytes(16), "drop_port"),
    }
    for part, (packet, reason) in parts.items():
        await send(dut, Ether(dst=board, src=pc) / packet)
        await ClockCycles(dut.rx_clk, 120)
        drops = [name for name in seen if name.startswith("drop")]
        assert drops == ([] if int(getattr(dut, part).value) else [reason]), (part, drops)
        seen.clear()


@cocotb.test()
async def header_strip_takes_headers_off(dut):
    """Of frames of every length, with pauses or not, good or bad."""
    size = len(dut.header) // 8
    for name in ("s_valid", "s_end"):
        getattr(dut, name).value = 0
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("strip")
    found = []

    async def watch():
        data = b""
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(dut.m_valid.value):
                data += int(dut.m_data.value).to_bytes(width_of(dut.m_data), "little")[: int(dut.m_count.value)]
            if int(dut.m_end.value):
                header = int(dut.header.value).to_bytes(size, "big") if int(dut.complete.value) else None
                found.append((header, data if header is not None else b"", int(dut.m_good.value)))
                data = b""

    cocotb.start_soon(watch())
    expected = []
    for length in [*range(1, 140), 1500]:
        frame, good, slow = random.randbytes(length), random.randrange(2), random.random() < 0.5
        await give(dut, frame, good, (lambda: random.random() < 0.3) if slow else None)
        expected.append((frame[:size] if length >= size else None, frame[size:], good))
    await ClockCycles(dut.clk, 6)
    assert found == expected


@cocotb.test()
async def pull_header_puts_headers_before(dut):
    """The client's words fall in behind the header without a gap, whatever its length."""
    width, size = width_of(dut.data), len(dut.header) // 8
    dut.start.value = 0
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("header")
    for _ in range(30):
        header, data = random.randbytes(size), random.randbytes(width * 12)
        dut.header.value = int.from_bytes(header, "big")
        dut.start.value = 1
        out, place = b"", None
        for clock in range((size + len(data)) // width - 1):
            await ReadOnly()
            begins = int(dut.client_start.value)
            if clock > 0:
                out += int(dut.data.value).to_bytes(width, "little")
            await RisingEdge(dut.clk)
            dut.start.value = 0
            if begins:
                dut.header.value = random.getrandbits(size * 8)
            place = 0 if begins else None if place is None else place + 1
            if place is not None:
                dut.client_data.value = int.from_bytes(data[place * width : (place + 1) * width], "little")
        assert out == (header + data)[: len(out)] and len(out) > size + 4 * width
        await ClockCycles(dut.clk, random.randrange(1, 4))


@cocotb.test()
async def pull_arbiter_keeps_its_choice(dut):
    """Each request is started once, the lowest of a clock before first, from FAIR on by turns; what is taken is started even if a better one comes."""
    fair, last = int(dut.FAIR.value), 2
    for name in ("s_request", "m_accept", "m_start"):
        getattr(dut, name).value = 0
    dut.s_meta.value = 0x332211
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("arbiter")
    pending, offered, taken, served = 0, 2, None, [0, 0, 0]
    for _ in range(3000):
        pending |= 1 << random.randrange(3) if random.random() < 0.3 else 0
        dut.s_request.value = pending
        dut.s_data.value = int.from_bytes(random.randbytes(3), "little")
        on_offer = taken is None and pending >> offered & 1
        accept = int(on_offer and random.random() < 0.5)
        begin = int((taken is not None or accept) and random.random() < 0.5)
        dut.m_accept.value, dut.m_start.value = accept, begin
        await ReadOnly()
        assert int(dut.m_request.value) == int(on_offer)
        if on_offer:
            assert int(dut.m_meta.value) == 0x11 * (offered + 1)
        who = taken if taken is not None else offered
        assert int(dut.s_start.value) == (1 << who if begin else 0)
        lowest = min((i for i in range(3) if pending >> i & 1), key=lambda i: (i >= fair, i >= fair and i <= last, i), default=None)
        if accept:
            taken = offered
            last = offered if offered >= fair else last
        if pending:
            offered = lowest
        if begin:
            pending &= ~(1 << who)
            served[who] += 1
            taken = None
        await RisingEdge(dut.clk)
    assert min(served) > 50


@cocotb.test()
async def frame_crossing_ends_what_it_could_not_hold(dut):
    """A clock that is far too slow: frames end bad, none is joined with the next, the ones after are whole again."""
    for name in ("s_axis_tvalid", "s_axis_tlast", "s_axis_tuser"):
        getattr(dut, name).value = 0
    dut.s_axis_tkeep.value = 1
    await start(dut, {"tx_clk": 16000, "rx_clk": 8000}, ["tx_rst", "rx_rst"])
    frames = []

    async def watch():
        data = b""
        while True:
            await RisingEdge(dut.tx_clk)
            await ReadOnly()
            if int(dut.m_valid.value):
                data += bytes([int(dut.m_data.value)])
            if int(dut.m_end.value):
                frames.append((data, int(dut.m_good.value)))
                data = b""

    cocotb.start_soon(watch())
    for length in (5, 60, 6, 100, 4):
        for i in range(length):
            dut.s_axis_tdata.value, dut.s_axis_tvalid.value, dut.s_axis_tlast.value = i, 1, int(i == length - 1)
            await RisingEdge(dut.rx_clk)
        dut.s_axis_tvalid.value = 0
        await ClockCycles(dut.rx_clk, 40)
    good = [data for data, fine in frames if fine]
    assert len(frames) == 5 and good == [bytes(range(n)) for n in (5, 6, 4)]


@cocotb.test()
async def ptp_clock_counts_is_set_and_pulses(dut):
    """Over the ends of seconds, with rates of both signs; held, and set a word at a time."""
    dut.rate.value, dut.hold.value, dut.write.value = 0, 0, 0
    await start(dut, {"clk": 8000}, ["rst"])
    random = rng("clock")

    async def now():
        await ReadOnly()
        seconds, ns = divmod(int(dut.now.value), 2**32)
        await Timer(1, "ps")
        return seconds * 10**9 + ns, ns

    pulses = 0
    for stretch in range(60):
        rate = random.randrange(-(2**26), 2**26)
        dut.rate.value = rate % 2**32
        seconds, ns = random.randrange(2**48 - 10), random.choice([999_999_700, random.randrange(2_000_000_000)])
        dut.hold.value = 1
        for i, word in enumerate((ns & 0xFFFF, ns >> 16, seconds & 0xFFFF, seconds >> 16 & 0xFFFF, seconds >> 32)):
            dut.write.value, dut.wdata.value = 1 << i, word
            await RisingEdge(dut.clk)
        dut.hold.value, dut.write.value = 0, 0
        assert (await now())[0] == seconds * 10**9 + ns
        await RisingEdge(dut.clk)
        first, _ = await now()
        assert 7 <= first - seconds * 10**9 - ns <= 9
        for clock in range(1, 100):
            await RisingEdge(dut.clk)
            value, ns = await now()
            assert abs(value - first - (clock * ((8 << 32) + rate) >> 32)) <= 1 and ns < 10**9, (stretch, clock)
            pulses += int(dut.pps.value)
    assert pulses > 100, "the first microsecond of each second"


@cocotb.test()
async def ptp_machine_does_what_its_program_says(dut):
    """What it reads and writes outside is what the interpreter does, in the same clocks, over a world of random words."""
    random = rng("machine")
    clocks, epoch = 300_000, 700
    choices = [0, 1, 2, 3, 4, 5, 6, 12, 44, 54, 64, 0x102, 0xB02, 0xD02]
    table = [random.choice([random.randrange(2**16), random.choice(choices)]) for _ in range(1024)]
    window, wanted, found = random.randrange(18), [], []

    def world(address, clock):
        return table[(address + 37 * (clock // epoch)) % 1024]

    machine = Machine(lambda address: world(address, machine.time), lambda *write: wanted.append(write), window=window)
    dut.window.value, dut.rdata.value = window, 0
    await start(dut, {"clk": 8000}, ["rst"])
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    behind = 0
    for clock in range(clocks):
        await ReadOnly()
        address = int(dut.address.value)
        if int(dut.write.value) and 0x200 <= address < 0x380:
            found.append((address, int(dut.wdata.value)))
        await RisingEdge(dut.clk)
        # Two clocks behind its address.
        dut.rdata.value, behind = behind, world(address, clock)
    while machine.clocks < clocks:
        machine.step()
    assert len(found) > 300 and found == wanted[: len(found)] and len(wanted) - len(found) <= 16


@cocotb.test()
async def ptp_receive_keeps_messages(dut):
    """With their times; what has no room, or is bad, is not kept."""
    width = width_of(dut.s_data)
    for name in ("s_valid", "s_end", "s_begin", "next", "index"):
        getattr(dut, name).value = 0
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("messages")
    kept, dropped = [], 0

    async def count():
        nonlocal dropped
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            dropped += int(dut.drop_full.value)

    cocotb.start_soon(count())
    wanted_drops = 0
    for _ in range(200):
        if kept and random.random() < 0.4:
            message, stamp = kept.pop(0)
            await ReadOnly()
            assert int(dut.pending.value) == 1
            assert int(dut.length.value) == min(255, len(message)) and int(dut.arrival.value) == stamp
            await Timer(1, "ps")
            for index in range(min(64, len(message) // 2)):
                dut.index.value = index
                await ClockCycles(dut.clk, 2)
                await ReadOnly()
                assert int(dut.word.value) == int.from_bytes(message[2 * index : 2 * index + 2], "big"), index
                await Timer(1, "ps")
            dut.next.value = 1
            await RisingEdge(dut.clk)
            dut.next.value = 0
            continue
        message, stamp, good = random.randbytes(2 * random.randrange(17, 160)), random.randrange(2**48), int(random.random() < 0.8)
        dut.now.value, dut.s_begin.value = stamp, 1
        await RisingEdge(dut.clk)
        dut.now.value, dut.s_begin.value = stamp + 1, 0
        await give(dut, message, good)
        if good and len(kept) < 8:
            kept.append((message, stamp))
        else:
            wanted_drops += good
    await ClockCycles(dut.clk, 3)
    assert dropped == wanted_drops > 10 and width in (1, 8)
