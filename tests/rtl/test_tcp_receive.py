"""What the TCP sender receives: which frames it takes, and the options of a segment."""

import struct

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from support.block import SEED, ClockCycles, ReadOnly, RisingEdge, Timer, cocotb, rng, run, start

MAC, PC_MAC, OURS, PEER = "02:00:00:00:00:01", "02:00:00:00:bb:01", "10.9.0.2", "10.9.0.1"
DROPS = ["destination", "protocol", "fragment", "checksum", "short", "full"]
ECHO_MOST = 8 * (2**5 - 1)


@pytest.mark.parametrize("toplevel,parameters", [("tcp_rx", {"ECHO_BITS": 5}), ("tcp_options", {})])
def test_tcp_receive(toplevel, parameters):
    run("tcp_receive", parameters, toplevel)


def ones_sum(data):
    """The 16-bit one's complement sum (RFC 1071)."""
    total = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def verdict(data, echo_free):
    """What tcp_rx makes of a frame: the reason to drop it, or (kind, from the peer, length)."""
    ours, words = bytes(map(int, OURS.split("."))), struct.unpack(">H", data[12:14])[0]
    for_us = data[:6] == bytes.fromhex(MAC.replace(":", ""))
    if not for_us and not (data[:6] == b"\xff" * 6 and words == 0x0806):
        return "destination"
    if words == 0x0806:
        if data[14:20] != bytes.fromhex("000108000604"):
            return "protocol"
        if data[38:42] != ours:
            return "destination"
        operation = data[20:22]
        return ({b"\0\1": 0, b"\0\2": 1}[operation], None, None) if operation in (b"\0\1", b"\0\2") else "protocol"
    if words != 0x0800 or data[14] != 0x45:
        return "protocol"
    if ones_sum(data[14:34]) != 0xFFFF:
        return "checksum"
    if data[30:34] != ours:
        return "destination"
    total, fragment, protocol = (*struct.unpack(">HxxH", data[16:22]), data[23])
    if fragment & 0x3FFF:
        return "fragment"
    is_echo = protocol == 1 and data[34:36] == b"\x08\0"
    if protocol != 6 and not is_echo:
        return "protocol"
    header = data[46] >> 4
    if total < 28 or total + 14 > len(data) or (protocol == 6 and (header < 5 or 4 * header > total - 20)):
        return "short"
    packet = data[34 : 14 + total]
    if ones_sum(packet if is_echo else data[26:34] + struct.pack(">HH", 6, len(packet)) + packet) != 0xFFFF:
        return "checksum"
    if is_echo:
        return (2, None, total) if echo_free and total <= ECHO_MOST else "full"
    return 3, data[26:30] == bytes(map(int, PEER.split("."))), total - 20 - 4 * header


def some_frame(random):
    """A frame for the board, or nearly."""
    ip = dict(src=random.choice([PEER, PEER, "10.9.0.7"]), dst=OURS, tos=random.choice([0, 1, 2, 3, 0xFF]))
    payload = random.randbytes(random.choice([0, 0, 1, 2, 7, 8, random.randrange(300)]))
    options = [("MSS", 1460), ("NOP", None), ("WScale", 7)] if random.random() < 0.3 else []
    kind = random.randrange(8)
    if kind < 4:
        packet = IP(**ip) / TCP(sport=10000, dport=7, seq=random.getrandbits(32), ack=random.getrandbits(32),
                                flags=random.choice(["A", "SA", "PA", "FA", "R"]), options=options) / Raw(payload)  # fmt: skip
    elif kind < 6:
        packet = IP(**ip) / ICMP(type=random.choice([8, 8, 8, 0, 3])) / Raw(payload)
    elif kind == 6:
        packet = ARP(op=random.choice([1, 2, 3]), hwsrc=PC_MAC, psrc=PEER, hwdst=MAC, pdst=random.choice([OURS, OURS, "10.9.0.3"]))
    else:
        packet = IP(**ip) / UDP() / Raw(payload)
    if IP in packet and random.random() < 0.2:
        which = random.choice(["flags", "frag", "len", "dst", "dataofs"])
        if which == "dataofs" and TCP in packet:
            packet[TCP].dataofs = random.randrange(16)
        elif which != "dataofs":
            setattr(packet[IP], which, {"flags": "MF", "frag": 3, "len": random.randrange(400), "dst": "10.9.0.9"}[which])
    destination = random.choice([MAC] * 8 + ["ff:ff:ff:ff:ff:ff", "02:00:00:00:00:09"])
    data = bytearray(bytes(Ether(src=PC_MAC, dst=destination) / packet))
    if random.random() < 0.2:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    data += bytes(max(0, 60 - len(data))) if random.random() < 0.9 else random.randbytes(max(0, random.randrange(60, 400) - len(data)))
    return bytes(data.ljust(60, b"\0"))


@cocotb.test()
async def tcp_rx_judges_every_frame(dut):
    """Frames of all kinds, bad ones too, as close as the gap between them allows: verdict, record and echo memory."""
    random = rng("rx")
    dut.mac_address.value = int(MAC.replace(":", ""), 16)
    numbers = [int.from_bytes(map(int, text.split("."))) for text in (OURS, "255.255.255.0", "0.0.0.0", PEER)]
    dut.ip.value = sum(number << 32 * (3 - n) for n, number in enumerate(numbers))
    dut.s_axis.value = dut.echo_busy.value = 0
    dut.record_ready.value = 1
    await start(dut, {"clk": 6400}, ["rst"])

    sent, seen = [], dict.fromkeys([*DROPS, 0, 1, 2, 3], 0)

    def check(result, slot, echo):
        n, data, echo_is_free = sent.pop(0)
        where = (SEED, n, data.hex(), result)
        expected = verdict(data, echo_is_free or result != "full")
        seen[expected if isinstance(expected, str) else expected[0]] += 1
        if isinstance(expected, str):
            assert result == expected, (*where, expected)
            return
        kind, from_peer, length = expected
        assert result == kind == slot[0] >> 18, (*where, expected)
        assert from_peer in (None, slot[0] >> 17 & 1) and length in (None, slot[0] & 0xFFFF), (*where, expected)
        assert kind != 3 or slot[0] >> 16 & 1 == (data[15] & 3 == 3), where
        words = [int.from_bytes(data[6 + 8 * word : 14 + 8 * word], "big") for word in range(min(11, (len(data) - 6) // 8))]
        assert [slot[word] for word in range(2, len(words))] == words[2:], where
        if kind == 2:
            packet = b"".join(echo[word].to_bytes(8, "big") for word in range(1 + (length + 7) // 8))[: 8 + length]
            # The checksum is that of the reply, whose type is 0.
            assert packet[:30] + packet[32:] == data[6:36] + data[38 : 14 + length], where
            assert ones_sum(b"\0\0" + packet[30:]) == 0xFFFF, where

    free_since = [0]

    async def watch():
        slot, echo, hold = {}, {}, 0
        while True:
            await ReadOnly()
            if int(dut.record_write.value):
                word = int(dut.record_word.value)
                # Of what was found out 20 bits count.
                slot[word] = int(dut.record_data.value) & (2**64 - 1 if word else 2**20 - 1)
            if int(dut.echo_write_enable.value):
                echo[int(dut.echo_write_address.value)] = int(dut.echo_write_data.value)
            if int(dut.drop.value):
                check(DROPS[int(dut.drop.value).bit_length() - 1], slot, echo)
            if int(dut.record_commit.value):
                check(slot[0] >> 18, slot, echo)
                hold = 40 if slot[0] >> 18 == 2 else hold
            await RisingEdge(dut.clk)
            hold -= hold > 0
            dut.echo_busy.value = hold > 0
            free_since[0] = 0 if hold else free_since[0] + 1

    cocotb.start_soon(watch())
    gap = 20
    for n in range(4000):
        data, bad = some_frame(random), random.random() < 0.02
        if not bad:
            # Another echo request may be on its way, which is not counted here.
            sent.append((n, data, free_since[0] > 40 and gap == 60))
        for place in range(0, len(data), 8):
            part, last = data[place : place + 8], place + 8 >= len(data)
            word = int.from_bytes(part.ljust(8, b"\x5a"), "little")
            dut.s_axis.value = (word << 11) | (((1 << len(part)) - 1) << 3) | 4 | (2 * last) | (last and bad)
            await RisingEdge(dut.clk)
            dut.s_axis.value = 0
        # Two clocks, or three where the last word is nearly full: the check sequence needs one.
        gap = random.choice([2, 2, 3, 60])
        await ClockCycles(dut.clk, gap + (gap == 2 and len(data) % 8 in (0, 7)))
    await ClockCycles(dut.clk, 20)
    assert not sent and all(seen.values()), (sent[:1], seen)


async def options(dut, data):
    """What is read from option bytes: MSS in words, scale, whether selective ACKs are understood."""
    padded = data.ljust(64, b"\xee")
    dut.s_length.value = len(data)
    dut.s_valid.value = 1
    indexes = [0, 0]
    for clocks in range(60):
        await RisingEdge(dut.clk)
        dut.s_valid.value = 0
        await ReadOnly()
        if not int(dut.busy.value):
            found = int(dut.mss.value), int(dut.scale.value), bool(int(dut.sack_allowed.value))
            await Timer(1, "ps")
            assert clocks <= len(data) + 6, "a byte a clock"
            return found
        # The memory answers two clocks later.
        indexes.append(int(dut.word_index.value))
        await Timer(1, "ps")
        index = indexes.pop(0)
        dut.word_data.value = int.from_bytes(padded[8 * index : 8 * index + 8], "big")
    raise AssertionError(f"no end: {data.hex()}")


def read_options(data):
    """The same in Python, after RFC 9293 3.1 and 2018."""
    mss, scale, allowed, place = 536, 0, False, 0
    while place < len(data):
        kind = data[place]
        if kind == 0:
            break
        if kind == 1:
            place += 1
            continue
        if place + 1 >= len(data) or data[place + 1] < 2:
            break
        length = data[place + 1]
        if place + length <= len(data):
            if kind == 2 and length == 4:
                mss = int.from_bytes(data[place + 2 : place + 4], "big")
            if kind == 3 and length == 3:
                scale = min(14, data[place + 2])
        allowed |= kind == 4 and length == 2
        place += length
    return min(mss // 8, 0x7FF), scale, allowed


@cocotb.test()
async def tcp_options_reads_what_stacks_send(dut):
    dut.s_valid.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    for text in [
        "020405b40402080a000000000000000001030307",  # Linux
        "020423000103030a", "", "01", "00", "0101010102040218", "030315", "03030e", "0402", "fe0a0000000000000000020405dc",
        "0200020405b4", "0201020405b4", "00020405b4", "ff2801", "0101050a1234567812345bb0", "0101051212345678123456b811112222333344440402",
        "05050102030103050a00000008fffffff8", "0502040204020402", "0204058c01030300010104020101",
    ]:  # fmt: skip
        data = bytes.fromhex(text)
        assert await options(dut, data) == read_options(data), text


@cocotb.test()
async def tcp_options_never_hangs(dut):
    """Bytes at random, in whole words as the header has them; an option that goes over the end is not an option."""
    random = rng("options")
    dut.s_valid.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    for _ in range(600):
        data = bytes(random.choice([0, 1, 1, 2, 3, 3, 4, 4, 5, 8, 10, random.randrange(256)]) for _ in range(4 * random.randrange(11)))
        found, expected = await options(dut, data), read_options(data)
        # A value cut off by the end of the header is read from what stands behind; no stack sends that.
        cut = any(data[i : i + 2] in (b"\2\4", b"\3\3") and i + data[i + 1] > len(data) for i in range(len(data) - 1))
        cut = cut or data[-1:] in (b"\2", b"\3", b"\4")
        assert cut or found == expected, data.hex()
