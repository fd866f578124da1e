"""Frames of the FADE-10G core: the blocks that send and receive them. The descriptor manager and the commands have files of their own."""

import pytest
from support.block import (
    VECTORS,
    AxisMonitor,
    C,
    ClockCycles,
    Pulses,
    ReadOnly,
    RisingEdge,
    cocotb,
    collect_records,
    package_constants,
    rng,
    run,
    send_axis,
    source_word,
    start,
)  # fmt: skip

MAC = 0x02FADE000001
PC = 0x02FADE0000F0
TX = {"clk": 6400}


@pytest.mark.parametrize("toplevel,parameters", [("fade10g_eth_tx", {"SLOT_BITS": 2}), ("fade10g_eth_rx", {})])
def test_block(toplevel, parameters):
    run("fade10g_blocks", parameters, toplevel)


def final_word(words, crc):
    """Of a last packet; crc: None, or of all words."""
    return words if crc is None else words | C["CHECKSUM_MARK"] << 16 | crc << 32


def frame_of(vector):
    """The bytes of a shared vector."""
    frame = bytes.fromhex(vector["hex"])
    if payload := vector.get("payload"):
        first, words = payload["first"], payload["words"]
        frame += b"".join(((first + i) % 2**64).to_bytes(8, "little") for i in range(words))
        if words < 1024:
            frame = frame.ljust(C["DATA_FRAME_LEN"] - 8, b"\xa5") + final_word(words, payload.get("crc")).to_bytes(8, "little")
    return frame


def test_constants_agree():
    found = package_constants("fade10g/fade10g_pkg.sv")
    for name in ["ETHERTYPE", "VERSION", "FILLER", "TYPE_DATA", "TYPE_LAST", "TYPE_RESPONSE", "CMD_START", "CMD_STOP",
                 "ACK", "NACK", "CMD_RESET", "CMD_IDENTIFY", "CMD_RESET_BY", "CMD_USER_FIRST", "BLOCK_MARK",
                 "IDENTITY_BLOCK_ACKS", "IDENTITY_CSN", "IDENTITY_RESETS", "IDENTITY_CHECKSUM", "IDENTITY_SAME_WORDS", "START_CHECKSUM",
                 "START_PERMIT", "PERMIT_SHIFT", "STATUS_PERMIT", "CHECKSUM_MARK"]:  # fmt: skip
        assert found[name] == C[name], name
    assert found["PACKET_WORDS"] * 8 == C["PACKET_BYTES"]


class Sender:
    """Inputs of the Ethernet sender, and a packet memory whose word is its address."""

    def __init__(self, dut):
        self.dut = dut
        self.taken = []
        for name in ["next_valid", "response_valid", "identify_valid", "hold", "delay", "pausing", "last_words", "next_last", "with_checksum", "words_crc",
                     "next_packet", "next_slot", "next_sequence", "response", "identify", "identify_address"]:  # fmt: skip
            getattr(dut, name).value = 0
        dut.mac_address.value = MAC
        dut.peer_address.value = PC

    async def run(self):
        self.dut.m_axis_tready.value = 0
        await start(self.dut, TX, ["rst"])
        cocotb.start_soon(self.memory())
        cocotb.start_soon(self.watch())

    async def memory(self):
        while True:
            await ReadOnly()
            enable, address = int(self.dut.memory_read_enable.value), int(self.dut.memory_read_address.value)
            await RisingEdge(self.dut.clk)
            if enable:
                self.dut.memory_read_data.value = address

    async def watch(self):
        while True:
            await ReadOnly()
            names = [n for n in ["next_take", "response_taken", "identify_taken"] if int(getattr(self.dut, n).value)]
            await RisingEdge(self.dut.clk)
            self.taken += names
            for name, valid in [("next_take", "next_valid"), ("response_taken", "response_valid"),
                                ("identify_taken", "identify_valid")]:  # fmt: skip
                if name in names:
                    getattr(self.dut, valid).value = 0


def data_frame(packet, sequence, delay, response=0, last=None, crc=None):
    words = [(packet % 4) * 1024 + i for i in range(1024)]
    if last is not None:
        words[last:] = [0xA5A5A5A5A5A5A5A5] * (1024 - last)
        words[1023] = final_word(last, crc)
    kind = C["TYPE_DATA"] if last is None else C["TYPE_LAST"]
    return b"".join([
        PC.to_bytes(6, "big"), MAC.to_bytes(6, "big"), b"\xfa\xde\x01\x00", kind.to_bytes(2, "big"),
        sequence.to_bytes(2, "big"), packet.to_bytes(4, "big"), delay.to_bytes(4, "big"), response.to_bytes(12, "big"),
        *(word.to_bytes(8, "little") for word in words),
    ])  # fmt: skip


@cocotb.test()
async def fade10g_eth_tx_sends_data_with_and_without_response(dut):
    random = rng("eth tx")
    sender = Sender(dut)
    await sender.run()
    monitor = AxisMonitor(dut, dut.clk, 8, stall=lambda: random.random() < 0.2)
    expected = []
    for last, crc in [(None, None), (None, 7), (0, None), (1, 0xCBF43926), (0, 0xFFFFFFFF), (1023, None), (1023, 0), (None, None)]:
        packet, sequence, delay = random.getrandbits(32), random.getrandbits(16), random.getrandbits(4)
        response = random.getrandbits(96) if random.random() < 0.7 else 0
        dut.next_packet.value, dut.next_sequence.value, dut.delay.value = packet, sequence, delay
        dut.next_slot.value = packet % 4
        dut.next_last.value, dut.last_words.value = int(last is not None), last or 0
        dut.with_checksum.value, dut.words_crc.value = int(crc is not None), random.getrandbits(32) if crc is None else crc
        dut.response.value, dut.response_valid.value = response or random.getrandbits(96), int(response != 0)
        dut.next_valid.value = 1
        expected.append((data_frame(packet, sequence, delay, response, last, crc), False))
        await monitor.wait(len(expected))
        assert sender.taken == ["next_take"] + ["response_taken"] * (response != 0)
        sender.taken.clear()
        await ClockCycles(dut.clk, 20)
    assert monitor.frames == expected


@cocotb.test()
async def fade10g_eth_tx_sends_responses_alone(dut):
    sender = Sender(dut)
    await sender.run()
    monitor = AxisMonitor(dut, dut.clk, 8)
    for vector in VECTORS["frames"]:
        if vector["fields"]["kind"] == "response":
            r = vector["fields"]["response"]
            dut.response.value = r["code"] << 80 | r["csn"] << 64 | r["value"]
            dut.response_valid.value = 1
            before = len(monitor.frames)
            await monitor.wait(before + 1)
            assert monitor.frames[-1][0] == frame_of(vector), vector["name"]
    responses = len(monitor.frames)
    assert responses >= 2
    other = 0x02AABBCCDDEE
    dut.identify_address.value = other
    dut.identify.value = 0x0006BEEF0123456789ABCDEF
    dut.identify_valid.value = 1
    await monitor.wait(len(monitor.frames) + 1)
    frame = monitor.frames[-1][0]
    assert frame[:6] == other.to_bytes(6, "big") and frame[20:32] == bytes.fromhex("0006BEEF0123456789ABCDEF")
    await ClockCycles(dut.clk, 20)
    assert len(monitor.frames) == responses + 1 and sender.taken == ["response_taken"] * responses + ["identify_taken"]


@cocotb.test()
async def fade10g_eth_tx_pauses_and_holds(dut):
    sender = Sender(dut)
    await sender.run()
    monitor = AxisMonitor(dut, dut.clk, 8)
    dut.pausing.value = 1
    dut.next_valid.value = 1
    dut.response_valid.value = 1
    await monitor.wait(1)
    assert len(monitor.frames[0][0]) == 60, "a response does not wait for the pause"
    await ClockCycles(dut.clk, 100)
    assert int(dut.idle.value) == 1 and len(monitor.frames) == 1
    dut.pausing.value = 0
    await ClockCycles(dut.clk, 5)
    assert int(dut.idle.value) == 0, "after the pause the next data frame goes"
    await monitor.wait(2)
    dut.hold.value = 1
    dut.next_valid.value = dut.response_valid.value = dut.identify_valid.value = 1
    await ClockCycles(dut.clk, 500)
    assert int(dut.idle.value) == 1 and len(monitor.frames) == 2


@cocotb.test()
async def fade10g_eth_tx_looks_again_before_it_starts(dut):
    """An offer that is withdrawn in the clock in which it would be locked is not sent."""
    sender = Sender(dut)
    await sender.run()
    monitor = AxisMonitor(dut, dut.clk, 8)
    dut.next_valid.value = 1
    await RisingEdge(dut.clk)
    dut.next_valid.value = 0
    await ReadOnly()
    assert int(dut.next_lock.value) == 1
    await ClockCycles(dut.clk, 50)
    assert int(dut.idle.value) == 1 and sender.taken == [] and monitor.frames == []


DROPS = ["drop_destination", "drop_ethertype", "drop_version", "drop_code", "drop_short", "drop_full"]
REASON = {"ethertype": "drop_ethertype", "version": "drop_version", "code": "drop_code", "truncated": "drop_short"}


async def receiver_at_start(dut):
    dut.mac_address.value = MAC
    dut.s_axis_tvalid.value = 0
    dut.record_ready.value = 1
    await start(dut, TX, ["rst"])
    records = []
    cocotb.start_soon(collect_records(dut, records, 3))
    return records, Pulses(dut, dut.clk, DROPS)


def record_of(frame):
    source = source_word(int.from_bytes(frame[6:12], "big"), int.from_bytes(frame[14:16], "big"))
    is_block = len(frame) >= 40 and int.from_bytes(frame[28:30], "big") == C["BLOCK_MARK"]
    return source, int.from_bytes(frame[16:24], "big"), int.from_bytes(frame[32:40], "big") if is_block else None


@cocotb.test()
async def fade10g_eth_rx_takes_the_shared_requests(dut):
    records, pulses = await receiver_at_start(dut)
    frames = [frame_of(v) for v in VECTORS["frames"] if v["direction"] == "request"]
    for frame in frames:
        for length in {len(frame), max(60, len(frame)), 1500}:
            await send_axis(dut, dut.clk, frame.ljust(length, b"\xa5"), 8, ready=False)
            await ClockCycles(dut.clk, 2)
            assert records.pop() == record_of(frame)
            assert not records
    assert sum(pulses.count.values()) == 0


@cocotb.test()
async def fade10g_eth_rx_takes_a_block_ack_that_ends_early_for_an_ordinary_one(dut):
    records, pulses = await receiver_at_start(dut)
    block = frame_of(next(v for v in VECTORS["frames"] if v["name"] == "block_ack"))
    for length in range(28, 50):
        await send_axis(dut, dut.clk, block[:length], 8, ready=False)
        await ClockCycles(dut.clk, 2)
        assert records.pop() == record_of(block[:length]), length
    assert sum(pulses.count.values()) == 0


@cocotb.test()
async def fade10g_eth_rx_drops_by_reason(dut):
    records, pulses = await receiver_at_start(dut)
    expected = dict.fromkeys(DROPS, 0)

    async def drop(frame, reason, bad=False):
        if reason:
            expected[reason] += 1
        await send_axis(dut, dut.clk, frame, 8, bad=bad, ready=False)
        await ClockCycles(dut.clk, 3)
        assert pulses.count == expected, (frame.hex(), reason)

    for vector in VECTORS["malformed"]:
        if vector["direction"] == "request" and vector["hex"] and vector["name"] != "ethernet_header_only":
            await drop(frame_of(vector), REASON[vector["reason"]])
    good = frame_of(next(v for v in VECTORS["frames"] if v["name"] == "user_command"))
    await drop(good, None, bad=True)
    await drop(bytes.fromhex("02fade000002") + good[6:], "drop_destination")
    await drop(b"\xff" * 6 + good[6:], "drop_destination")
    dut.record_ready.value = 0
    await drop(good, "drop_full")
    assert records == []
    dut.record_ready.value = 1
    await send_axis(dut, dut.clk, good, 8, ready=False)
    await ClockCycles(dut.clk, 2)
    assert records == [record_of(good)]


@cocotb.test()
async def fade10g_eth_rx_gives_no_record_for_random_frames(dut):
    random = rng("eth rx")
    records, pulses = await receiver_at_start(dut)
    good = frame_of(next(v for v in VECTORS["frames"] if v["name"] == "ack"))
    sent = 0
    for _ in range(300):
        junk = bytearray(random.randbytes(random.randrange(1, 120)))
        if random.random() < 0.5:  # nearly right
            junk[:] = good[: len(junk)].ljust(len(junk), b"\xa5")
            junk[random.randrange(min(len(junk), 18))] ^= 1 << random.randrange(8)
            # A changed source or code can still be a valid request.
            if junk[:6] == good[:6] and junk[12:16] == good[12:16]:
                continue
        await send_axis(dut, dut.clk, bytes(junk), 8, ready=False)
        await send_axis(dut, dut.clk, good, 8, ready=False)
        await ClockCycles(dut.clk, 2)
        sent += 1
        assert records == [record_of(good)] * sent
    assert sum(pulses.count.values()) == sent
