"""The blocks of the FADE v1 core, each on its own. desc_manager has a file of its own."""

import pytest
from support.block import (
    C1,
    VECTORS,
    VECTORS1,
    AxisMonitor,
    C,
    ClockCycles,
    Pulses,
    ReadOnly,
    Records,
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
from support.permits import starts_in_any_order

MAC = 0x02FADE000001
PC = 0x02FADE0000F0
TX = {"clk": 8000}


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("fade1_eth_tx", {}),
        ("fade1_eth_tx", {"CHECKSUM": 1}),
        ("fade1_eth_rx", {}),
        ("fade1_cmd_processor", {}),
    ],
)
def test_block(toplevel, parameters):
    run("fade1_blocks", parameters, toplevel)


def test_constants_agree():
    found = package_constants("fade1/fade1_pkg.sv")
    for name in ["ETHERTYPE", "FILLER", "TYPE_START", "TYPE_STOP", "TYPE_ACK", "TYPE_RESET", "TYPE_DATA", "TYPE_STATE",
                 "STATE_NONE", "STATE_RUNNING", "STATE_STOPPING", "STATE_ENDED", "STATE_RESET", "STATE_RESETS", "STATE_FRAME_LEN",
                 "SET_PACKETS", "RETRY_BITS", "RETRY_FADELINK", "BLOCK_MARK", "CHECKSUM_MARK", "PERMIT_MARK"]:  # fmt: skip
        assert found[name] == C1[name], name
    assert found["PACKET_WORDS"] * 8 == C1["PACKET_BYTES"]


def data_frame(set_, packet, delay, last=None):
    words = [packet * 128 + i for i in range(128)]
    if last is not None:
        words[last:] = [0xA5A5A5A5A5A5A5A5] * (128 - last)
    return b"".join([
        PC.to_bytes(6, "big"), MAC.to_bytes(6, "big"), b"\xfa\xde\xa5\xa5", set_.to_bytes(2, "big"),
        (packet << 10 | C1["RETRY_FADELINK"]).to_bytes(2, "big"), (C1["TAKES_BLOCK_ACKS"] | C1["SAME_WORDS"] | delay).to_bytes(4, "big"), *(word.to_bytes(8, "little") for word in words),
    ])  # fmt: skip


@cocotb.test()
async def fade1_eth_tx_sends_packets_with_their_delay(dut):
    """Frames byte by byte; filler behind the words of a last packet; none starts in a pause or while it is held."""
    random = rng("eth tx 1")
    await sender(dut)

    async def memory():
        while True:
            await ReadOnly()
            enable, address = int(dut.memory_read_enable.value), int(dut.memory_read_address.value)
            await RisingEdge(dut.clk)
            if enable:
                dut.memory_read_data.value = address

    cocotb.start_soon(memory())
    monitor = AxisMonitor(dut, dut.clk, 8, stall=lambda: random.random() < 0.2)
    expected = []
    for last in [None, None, 1, 127, None]:
        set_, packet, delay = random.getrandbits(16), random.randrange(32), random.randrange(60)
        dut.next_set.value, dut.next_packet.value, dut.delay.value = set_, packet, delay
        dut.next_last.value, dut.last_words.value = int(last is not None), last or 0
        dut.pausing.value = 1
        dut.next_valid.value = 1
        await ClockCycles(dut.clk, 50)
        assert int(dut.idle.value) == 1, "no frame starts in a pause"
        dut.pausing.value = 0
        await until(dut, "next_take")
        dut.next_valid.value = 0
        dut.next_packet.value = random.randrange(32)  # it was used: it may change now
        expected.append((data_frame(set_, packet, delay, last), False))
        assert await monitor.wait(len(expected)) == expected
    dut.hold.value = 1
    dut.next_valid.value = 1
    await ClockCycles(dut.clk, 400)
    assert int(dut.idle.value) == 1, "no frame starts while it is held"


async def until(dut, name):
    """Until the edge at which a signal is high."""
    while True:
        await ReadOnly()
        is_high = int(getattr(dut, name).value)
        await RisingEdge(dut.clk)
        if is_high:
            return


async def sender(dut):
    for name in ["next_valid", "hold", "delay", "pausing", "last_words", "next_last", "next_packet", "next_set",
                 "answer", "answer_state", "answer_resets", "answer_permit", "memory_read_data", "words_crc"]:  # fmt: skip
        getattr(dut, name).value = 0
    dut.mac_address.value, dut.peer_address.value = MAC, PC
    await start(dut, TX, ["rst"])


@cocotb.test()
async def fade1_eth_tx_tells_its_state_between_packets(dut):
    """Byte by byte; also in a pause, not while it is held; packets go on behind it as before."""
    random = rng("eth tx state")
    await sender(dut)
    monitor = AxisMonitor(dut, dut.clk, 8, stall=lambda: random.random() < 0.3)
    pulses = Pulses(dut, dut.clk, ["next_take", "answer_take"])
    has_checksum = int(dut.CHECKSUM.value)
    at_end = [v for v in VECTORS1["frames"] if v["name"].startswith("state_ended")]
    vectors = [v for v in VECTORS1["frames"] if v["name"].startswith("state_") and v not in at_end]
    vectors += [v for v in at_end if bool(v["fields"]["checksum"]) == has_checksum]
    assert len(vectors) == 5 + has_checksum
    expected = []
    for vector in vectors:
        fields = vector["fields"]
        dut.answer_state.value = fields["state"] << 48 | fields["transmission"] << 32 | fields["packets"]
        resets = fields["resets"]
        dut.answer_resets.value = resets["count"] << 48 | int((resets["by"] or "0").replace(":", ""), 16)
        dut.answer_permit.value = fields["permit"]
        told = fields["checksum"] or {"last_words": random.getrandbits(7), "crc": random.getrandbits(32)}
        dut.last_words.value, dut.words_crc.value = told["last_words"], told["crc"]
        dut.hold.value = dut.answer.value = dut.pausing.value = 1
        await ClockCycles(dut.clk, 30)
        assert int(dut.idle.value) == 1, "no frame starts while it is held"
        dut.hold.value = 0
        await until(dut, "answer_take")
        dut.answer.value = 0
        dut.answer_state.value, dut.answer_resets.value = 2**64 - 1, 2**56 - 1  # they were used: they may change now
        dut.words_crc.value, dut.answer_permit.value = 2**32 - 1, 2**30 - 1
        expected.append((bytes.fromhex(vector["hex"]), False))
        assert await monitor.wait(len(expected)) == expected
        # A packet, while the next state waits.
        dut.pausing.value = 0
        dut.next_valid.value, dut.next_packet.value = 1, 3
        await until(dut, "next_take")
        dut.next_valid.value = 0
        frame, bad = (await monitor.wait(len(expected) + 1))[-1]
        assert len(frame) == C1["DATA_FRAME_LEN"] and frame[:6] == PC.to_bytes(6, "big") and not bad
        expected.append((frame, False))
    assert pulses.count == {"next_take": len(vectors), "answer_take": len(vectors)}


DROPS = ["drop_destination", "drop_ethertype", "drop_version", "drop_code", "drop_short", "drop_full"]
REASON = {"ethertype": "drop_ethertype", "version": "drop_version", "type": "drop_code", "truncated": "drop_short"}
REQUESTS = [v for v in VECTORS1["frames"] if v["direction"] == "request"]


def record_of(frame):
    """Source and type; set and packet, with what is behind them; the bits of a block ACK. The latter have a meaning in an ACK alone."""
    is_block = len(frame) >= 32 and int.from_bytes(frame[20:22], "big") == C1["BLOCK_MARK"]
    source = source_word(int.from_bytes(frame[6:12], "big"), int.from_bytes(frame[14:16], "big"))
    return source, int.from_bytes(frame[16:24], "big"), int.from_bytes(frame[24:32], "big") if is_block else None


@cocotb.test()
async def fade1_eth_rx_takes_the_shared_requests_and_drops_by_reason(dut):
    dut.mac_address.value, dut.s_axis_tvalid.value, dut.record_ready.value = MAC, 0, 1
    await start(dut, TX, ["rst"])
    records, pulses = [], Pulses(dut, dut.clk, DROPS)

    cocotb.start_soon(collect_records(dut, records, 3))
    for vector in REQUESTS:
        frame = bytes.fromhex(vector["hex"])
        for length in {max(len(frame), 24), 60, 78, 1500}:
            whole = frame.ljust(length, b"\xa5")
            await send_axis(dut, dut.clk, whole, 8, ready=False)
            await ClockCycles(dut.clk, 2)
            assert records.pop() == record_of(whole), vector["name"]
            assert not records
    assert sum(pulses.count.values()) == 0

    expected = dict.fromkeys(DROPS, 0)

    async def drop(frame, reason, bad=False):
        if reason:
            expected[reason] += 1
        await send_axis(dut, dut.clk, frame, 8, bad=bad, ready=False)
        await ClockCycles(dut.clk, 3)
        assert pulses.count == expected, (frame.hex(), reason)

    for vector in VECTORS1["malformed"]:
        if vector["direction"] == "request" and vector["hex"] and vector["name"] != "ethernet_header_only":
            await drop(bytes.fromhex(vector["hex"]), REASON[vector["reason"]])
    good = bytes.fromhex(REQUESTS[0]["hex"])
    identify = bytes.fromhex(next(v for v in VECTORS["frames"] if v["name"] == "identify_broadcast")["hex"])
    for destination in (good[:6], b"\xff" * 6):
        for length in (18, 60, len(identify)):
            await send_axis(dut, dut.clk, destination + identify[6:length], 8, ready=False)
            await ClockCycles(dut.clk, 3)
            assert records.pop()[0] == record_of(identify)[0], "IDENTIFY of FADE-10G, to one board or all"
    await drop(good[:6] + identify[6:16], "drop_version")
    await drop(good[:6] + identify[6:16] + b"\0\7" + identify[18:], "drop_version")
    await drop(b"\xff" * 6 + identify[6:16] + b"\0\7" + identify[18:], "drop_destination")
    await drop(good, None, bad=True)
    await drop(bytes.fromhex("02fade000002") + good[6:], "drop_destination")
    await drop(b"\xff" * 6 + good[6:], "drop_destination")
    dut.record_ready.value = 0
    await drop(good, "drop_full")
    assert records == []


@cocotb.test()
async def fade1_eth_rx_takes_a_block_ack_that_ends_early_for_an_ordinary_one(dut):
    """Also behind a whole one, whose bits are not taken for its own."""
    dut.mac_address.value, dut.s_axis_tvalid.value, dut.record_ready.value = MAC, 0, 1
    await start(dut, TX, ["rst"])
    records = []
    cocotb.start_soon(collect_records(dut, records, 3))
    block = bytes.fromhex(next(v for v in REQUESTS if v["name"] == "block_ack")["hex"])
    for length in [78, 24, 60, 31, 32, 22, 40]:
        await send_axis(dut, dut.clk, block[:length], 8, ready=False)
        await ClockCycles(dut.clk, 2)
        source, fields, bits = records.pop()
        assert (source, fields >> 32, bits) == (*record_of(block)[:1], record_of(block)[1] >> 32, record_of(block[:length])[2]), length
    assert not records


class Commands:
    """Drives the command processor and answers for the writer."""

    def __init__(self, dut):
        self.dut, self.records = dut, Records(dut)
        for name in ["finished", "writer_active", "sent", "answer_take"]:
            getattr(dut, name).value = 0
        dut.sender_idle.value = dut.ack_ready.value = 1
        dut.ack_bits.value = 0

    async def run(self):
        await start(self.dut, TX, ["rst"])
        self.pulses = Pulses(self.dut, self.dut.clk, ["event_wrong_source", "event_ack_ignored", "reset_done"])
        self.acks = Pulses(self.dut, self.dut.clk, ["ack_valid"])
        cocotb.start_soon(self.records.run())
        cocotb.start_soon(self.writer())

    async def writer(self):
        history = [0] * 5
        while True:
            await ReadOnly()
            history = [int(self.dut.session.value), *history[:4]]
            await RisingEdge(self.dut.clk)
            self.dut.writer_active.value = history[4]

    async def send(self, kind, source=PC, settle=40, number=0, permit=None):
        """Gives a record; True if it reached the descriptor manager. number: of the transmission, in a START, and the permit that it shows."""
        before = self.acks.count["ack_valid"]
        shown = 5 << 42 if permit is None else C1["PERMIT_MARK"] << 32 | permit
        self.records.queue.append((source_word(source, kind), number << 48 | shown))
        await self.records.drain()
        await ClockCycles(self.dut.clk, settle)
        return self.acks.count["ack_valid"] == before + 1

    def state(self):
        return int(self.dut.session.value), int(self.dut.stop.value)

    async def answer(self):
        """What is told to whom, which the sender takes: (address, state, transmission, packets); None: nothing. resets: number and last sender."""
        if not int(self.dut.answer.value):
            return None
        state = int(self.dut.answer_state.value)
        told = int(self.dut.peer_address.value), state >> 48, state >> 32 & 0xFFFF, state & 0xFFFFFFFF
        self.resets = divmod(int(self.dut.answer_resets.value), 1 << 48)
        self.permit = int(self.dut.answer_permit.value)
        self.dut.answer_take.value = 1
        await ClockCycles(self.dut.clk, 1)
        self.dut.answer_take.value = 0
        await ClockCycles(self.dut.clk, 1)
        return told


@cocotb.test()
async def fade1_cmd_processor_obeys_the_starter_and_every_reset(dut):
    c = Commands(dut)
    await c.run()
    assert not await c.send(C1["TYPE_ACK"]) and c.pulses.count["event_ack_ignored"] == 1
    await c.send(C1["TYPE_STOP"])
    assert c.state() == (0, 0), "STOP without a transmission"
    assert await c.answer() == (PC, C1["STATE_NONE"], 0, 0)
    await c.send(C1["TYPE_START"], number=0x1234)
    assert c.state() == (1, 0) and await c.answer() == (PC, C1["STATE_RUNNING"], 0x1234, 0)
    await c.send(C1["TYPE_START"], number=0x4321)
    assert c.state() == (1, 0), "START again changes nothing"
    assert await c.answer() == (PC, C1["STATE_RUNNING"], 0x1234, 0)
    assert await c.send(C1["TYPE_ACK"])
    for kind in ("TYPE_START", "TYPE_STOP"):
        await c.send(C1[kind], source=PC + 1)
    assert not await c.send(C1["TYPE_ACK"], source=PC + 1)
    assert c.state() == (1, 0) and int(dut.peer_address.value) == PC
    assert c.pulses.count == {"event_wrong_source": 2, "event_ack_ignored": 2, "reset_done": 0}
    dut.sent.value = 1
    await ClockCycles(dut.clk, 3)
    dut.sent.value = 0
    assert await c.answer() is None
    await c.send(C["VERSION"], source=PC + 1)
    assert await c.answer() is None and c.pulses.count["event_wrong_source"] == 3, "another computer"
    await c.send(C["VERSION"])
    assert await c.answer() == (PC, C1["STATE_RUNNING"], 0x1234, 3)
    await c.send(C1["TYPE_STOP"])
    assert c.state() == (1, 1)
    # The next question waits until the answer is out.
    c.records.queue.append((source_word(PC, C["VERSION"]), 0))
    await ClockCycles(dut.clk, 60)
    assert await c.answer() == (PC, C1["STATE_STOPPING"], 0x1234, 3)
    await ClockCycles(dut.clk, 60)
    assert await c.answer() == (PC, C1["STATE_STOPPING"], 0x1234, 3) and await c.answer() is None
    # The end of the transmission waits for the frame under way.
    dut.sender_idle.value, dut.finished.value = 0, 1
    await ClockCycles(dut.clk, 30)
    assert c.state() == (1, 1) and int(dut.hold.value) == 1
    dut.sender_idle.value = 1
    await ClockCycles(dut.clk, 3)
    assert c.state() == (0, 0)
    dut.finished.value = 0
    await ClockCycles(dut.clk, 20)
    assert int(dut.hold.value) == 0 and c.pulses.count["reset_done"] == 0
    assert c.resets == (0, 0)
    await c.send(C1["TYPE_RESET"], source=PC + 4)
    # Idle, it answers everybody, each one who asks.
    for source in (PC + 2, PC + 3):
        c.records.queue.append((source_word(source, C["VERSION"]), 0))
    c.records.queue.append((source_word(PC + 1, C1["TYPE_START"]), 7 << 48))
    for source in (PC + 2, PC + 3):
        await ClockCycles(dut.clk, 60)
        assert await c.answer() == (source, C1["STATE_ENDED"], 0x1234, 3), "RESET behind the end changes nothing of it"
        assert c.resets == (1, PC + 4), "but is counted"
    await ClockCycles(dut.clk, 60)
    assert await c.answer() == (PC + 1, C1["STATE_RUNNING"], 7, 0) and c.resets == (0, 0), "START forgets those before it"
    assert c.state() == (1, 0) and int(dut.peer_address.value) == PC + 1
    await c.send(C1["TYPE_RESET"])
    assert c.state() == (0, 0) and c.pulses.count["reset_done"] == 2
    await c.send(C1["TYPE_STOP"], source=PC + 1)
    assert await c.answer() == (PC + 1, C1["STATE_RESET"], 7, 0) and c.resets == (1, PC)
    for source in range(300):
        c.records.queue.append((source_word(source, C1["TYPE_RESET"]), 0))
    await c.records.drain(300 * 100)
    await c.send(C1["TYPE_STOP"])
    assert await c.answer() == (PC, C1["STATE_RESET"], 7, 0) and c.resets == (255, 299)
    await c.send(C1["TYPE_START"], number=7)
    assert await c.answer() == (PC, C1["STATE_RUNNING"], 7, 0) and c.resets == (255, 299), "it begins anew"
    await c.send(C1["TYPE_RESET"])
    await c.send(C1["TYPE_START"], number=8)
    assert await c.answer() == (PC, C1["STATE_RUNNING"], 8, 0) and c.resets == (0, 0)


@cocotb.test()
async def fade1_cmd_processor_obeys_start_with_its_permit_once(dut):
    c = Commands(dut)
    await c.run()

    async def reset(computer):
        await c.send(C1["TYPE_RESET"], source=PC + computer)

    async def start(number, permit, computer, running):
        source = PC + computer
        if running and int(dut.peer_address.value) != source:
            return None
        await c.send(C1["TYPE_START"], source, number=number, permit=permit)
        told = await c.answer()
        if running:
            assert int(dut.session.value) == 1 and c.permit == 0
        elif int(dut.session.value):
            assert told == (source, C1["STATE_RUNNING"], number, 0) and c.permit == 0
        else:
            assert told[0] == source and c.permit > 0
        return c.permit or None

    await starts_in_any_order(dut, rng("permits 1"), reset, start)
    await c.send(C1["TYPE_RESET"])
    await c.send(C1["TYPE_START"], number=9)
    assert c.state() == (1, 0), "without the mark it is obeyed"
