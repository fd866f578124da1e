"""The core of the UDP/IP stack at its ports: streams, registers, datagrams of the user, its latency, and parts that it is built without."""

import re

import pytest
from scapy.layers.inet import ICMP, UDP
from scapy.layers.inet import IP as Packet
from scapy.layers.l2 import ARP, Ether
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, rng, run, start
from support.paths import RTL
from support.sweep import long
from support.udp_block import IP, LOCAL_PORT, MAC, PEER, PEER_MAC, PEER_PORT, TX


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        *[long("udp_core", {"WIDTH": width, "PAYLOAD_MAX": 1024}) for width in (8, 64)],
        ("udp_core", {"WIDTH": 8, "PAYLOAD_MAX": 1024, "PTP": 0, "CONTROL": 0, "ICMP": 0, "ARP": 0}),
        ("udp_core", {"WIDTH": 8, "PAYLOAD_MAX": 1024, "STREAMS": 3, "RECEIVE": 1}),
        ("udp_core", {"WIDTH": 64, "PAYLOAD_MAX": 1024, "STREAMS": 8, "RECEIVE": 1, "PTP": 0}),
        long("udp_core", {"WIDTH": 64, "PAYLOAD_MAX": 1024, "SEND": 0, "RECEIVE": 1, "PTP": 0}),
        *[long("udp_core", {"WIDTH": 64, "PAYLOAD_MAX": 1024, without: 0}) for without in ("PTP", "CONTROL", "ICMP", "ARP")],
    ],
)
def test_udp_core(toplevel, parameters):
    run("udp_core_ports", parameters, toplevel)


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
