"""The blocks of the FADE-10G core, each on its own. desc_manager has a file of its own."""

import pytest
from support.block import (
    VECTORS,
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

MAC = 0x02FADE000001
PC = 0x02FADE0000F0
TX = {"clk": 6400}


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("fade10g_eth_tx", {"SLOT_BITS": 2}),
        ("fade10g_eth_rx", {}),
        ("fade10g_cmd_processor", {}),
        ("fade10g_cmd_bridge", {}),
        ("pattern_source", {}),
        ("example_commands", {}),
    ],
)
def test_block(toplevel, parameters):
    run("fade10g_blocks", parameters, toplevel)


def frame_of(vector):
    """The bytes of a shared vector."""
    frame = bytes.fromhex(vector["hex"])
    if payload := vector.get("payload"):
        first, words = payload["first"], payload["words"]
        frame += b"".join(((first + i) % 2**64).to_bytes(8, "little") for i in range(words))
        if words < 1024:
            frame = frame.ljust(C["DATA_FRAME_LEN"] - 8, b"\xa5") + words.to_bytes(8, "little")
    return frame


def test_constants_agree():
    found = package_constants("fade10g/fade10g_pkg.sv")
    for name in ["ETHERTYPE", "VERSION", "FILLER", "TYPE_DATA", "TYPE_LAST", "TYPE_RESPONSE", "CMD_START", "CMD_STOP",
                 "ACK", "NACK", "CMD_RESET", "CMD_IDENTIFY", "CMD_RESET_BY", "CMD_USER_FIRST", "BLOCK_MARK",
                 "IDENTITY_BLOCK_ACKS", "IDENTITY_CSN", "IDENTITY_RESETS"]:  # fmt: skip
        assert found[name] == C[name], name
    assert found["PACKET_WORDS"] * 8 == C["PACKET_BYTES"]


class Sender:
    """Inputs of the Ethernet sender, and a packet memory whose word is its address."""

    def __init__(self, dut):
        self.dut = dut
        self.taken = []
        for name in ["next_valid", "response_valid", "identify_valid", "hold", "delay", "pausing", "last_words", "next_last",
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


def data_frame(packet, sequence, delay, response=0, last=None):
    words = [(packet % 4) * 1024 + i for i in range(1024)]
    if last is not None:
        words[last:] = [0xA5A5A5A5A5A5A5A5] * (1024 - last)
        words[1023] = last
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
    for last in [None, None, 0, 1, 1023, None]:
        packet, sequence, delay = random.getrandbits(32), random.getrandbits(16), random.getrandbits(4)
        response = random.getrandbits(96) if random.random() < 0.7 else 0
        dut.next_packet.value, dut.next_sequence.value, dut.delay.value = packet, sequence, delay
        dut.next_slot.value = packet % 4
        dut.next_last.value, dut.last_words.value = int(last is not None), last or 0
        dut.response.value, dut.response_valid.value = response or random.getrandbits(96), int(response != 0)
        dut.next_valid.value = 1
        expected.append((data_frame(packet, sequence, delay, response, last), False))
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


class Commands:
    """Drives the command processor and answers for its neighbours."""

    def __init__(self, dut):
        self.dut, self.records, self.given = dut, Records(dut), None
        for name in ["ack_ready", "ack_bits", "finished", "writer_active", "cleared", "user_response_valid", "user_response",
                     "response_lock", "response_taken", "identify_taken", "identify_word", "command_head"]:  # fmt: skip
            getattr(dut, name).value = 0
        dut.sender_idle.value = dut.command_ready.value = 1

    async def run(self):
        await start(self.dut, TX, ["rst"])
        self.pulses = Pulses(self.dut, self.dut.clk, ["event_wrong_source", "event_busy", "event_ack_ignored"])
        cocotb.start_soon(self.records.run())
        cocotb.start_soon(self.neighbours())

    async def neighbours(self):
        """The writer follows the session and the user side the clear, some clocks later; the bridge keeps the command."""
        dut, history, command = self.dut, [(0, 0)] * 5, 0
        while True:
            await ReadOnly()
            history = [(int(dut.session.value), int(dut.clear.value)), *history[:4]]
            if int(dut.command_load.value):
                command = int(dut.record.value)
            if int(dut.command_send.value):
                self.given = command
            if int(dut.clear.value):
                self.given = None
            done = int(dut.user_response_done.value)
            await RisingEdge(dut.clk)
            dut.writer_active.value, dut.cleared.value = history[4]
            dut.command_head.value = command >> 32
            if done:
                dut.user_response_valid.value = 0

    async def send(self, code, csn=0, argument=0, source=PC, settle=60):
        self.records.queue.append((source_word(source), code << 48 | csn << 32 | argument))
        await self.records.drain()
        await ClockCycles(self.dut.clk, settle)

    async def response(self):
        """Takes the response that is offered; None if there is none."""
        await ReadOnly()
        offered = int(self.dut.response_valid.value)
        value = int(self.dut.response.value)
        await RisingEdge(self.dut.clk)
        self.dut.response_taken.value = offered
        await RisingEdge(self.dut.clk)
        self.dut.response_taken.value = 0
        await ClockCycles(self.dut.clk, 2)
        return (value >> 80, value >> 64 & 0xFFFF, value & (1 << 64) - 1) if offered else None

    async def execute(self, value):
        """Answers the user command that was given, with its code and argument; None if there is none."""
        command, self.given = self.given, None
        if command is None:
            return None
        await ClockCycles(self.dut.clk, 5)
        self.dut.user_response.value = value
        self.dut.user_response_valid.value = 1
        await ClockCycles(self.dut.clk, 3)
        return command >> 48, command >> 32 & 0xFFFF, command & 0xFFFFFFFF


@cocotb.test()
async def fade10g_cmd_processor_executes_exactly_once(dut):
    c = Commands(dut)
    await c.run()
    await c.send(0x0123, 7, 0xCAFE)
    assert await c.execute(0x1122334455667788) == (0x0123, 7, 0xCAFE)
    assert await c.response() == (0x0123, 7, 0x1122334455667788)
    assert await c.response() is None
    await c.send(0x0123, 7, 0xCAFE)
    assert await c.execute(0) is None, "the same CSN is not executed again"
    assert await c.response() == (0x0123, 7, 0x1122334455667788), "but answered again"
    await c.send(0x0123, 8, 0xCAFE)
    assert await c.execute(5) == (0x0123, 8, 0xCAFE)
    assert await c.response() == (0x0123, 8, 5)
    await c.send(0x0123, 7, 1)
    assert await c.execute(6) == (0x0123, 7, 1), "an older CSN is another CSN"
    assert await c.response() == (0x0123, 7, 6)


@cocotb.test()
async def fade10g_cmd_processor_drops_while_busy(dut):
    c = Commands(dut)
    await c.run()
    await c.send(0x0123, 1)
    await c.send(0x0123, 1)
    assert await c.response() is None and c.pulses.count["event_busy"] == 0
    await c.send(0x0124, 2)
    assert c.pulses.count["event_busy"] == 1
    assert (await c.execute(9))[0] == 0x0123
    assert await c.response() == (0x0123, 1, 9)
    assert await c.execute(9) is None
    await c.send(0x0124, 2)
    assert (await c.execute(10))[0] == 0x0124, "the computer's retry is executed"


@cocotb.test()
async def fade10g_cmd_processor_locks_to_the_starter(dut):
    other = PC + 1
    c = Commands(dut)
    await c.run()
    await c.send(C["CMD_START"], 1)
    assert await c.response() == (1, 1, 0) and int(dut.session.value) == 1
    assert int(dut.peer_address.value) == PC
    await c.send(C["CMD_STOP"], 2, source=other)
    await c.send(0x0100, 3, source=other)
    assert c.pulses.count["event_wrong_source"] == 2 and int(dut.stop.value) == 0
    await c.send(C["ACK"], source=other)
    assert c.pulses.count["event_ack_ignored"] == 1
    await c.send(C["CMD_START"], 1)
    assert await c.response() == (1, 1, 0), "a repeated START has its answer"
    await c.send(C["CMD_START"], 2)
    assert await c.response() == (1, 2, 2), "another START changes nothing and says so"
    await c.send(C["CMD_STOP"], 4)
    assert await c.response() == (2, 4, 0) and int(dut.stop.value) == 1 and int(dut.session.value) == 1
    await c.send(C["CMD_START"], 5)
    assert await c.response() == (1, 5, 1), "stopping"
    dut.finished.value = 1
    await ClockCycles(dut.clk, 3)
    dut.finished.value = 0
    await ClockCycles(dut.clk, 50)
    assert int(dut.session.value) == 0 and int(dut.stop.value) == 0
    await c.send(C["CMD_STOP"], 4)
    assert await c.response() == (2, 4, 0), "a STOP to an idle core is confirmed"
    await c.send(C["CMD_START"], 6, source=other)
    assert int(dut.peer_address.value) == other and int(dut.session.value) == 1


@cocotb.test()
async def fade10g_cmd_processor_reset_clears_all(dut):
    c = Commands(dut)
    await c.run()
    await c.send(C["CMD_START"], 1)
    await c.send(0x0123, 2)
    dut.sender_idle.value = 0
    c.records.queue.append((source_word(PC + 1), C["CMD_RESET"] << 48))
    await ClockCycles(dut.clk, 60)
    assert int(dut.session.value) == 1 and int(dut.hold.value) == 1, "waits for the frame under way"
    dut.sender_idle.value = 1
    clear = Pulses(dut, dut.clk, ["clear"])
    await ClockCycles(dut.clk, 60)
    assert int(dut.session.value) == 0 and clear.count["clear"] > 0 and int(dut.hold.value) == 0
    assert await c.response() is None
    await c.send(0x0123, 2)
    assert (await c.execute(3))[0] == 0x0123, "the earlier CSN is forgotten"
    await c.send(C["ACK"])
    assert c.pulses.count["event_ack_ignored"] == 1, "no transmission, no window"


@cocotb.test()
async def fade10g_cmd_processor_identify_leaves_the_response_alone(dut):
    c = Commands(dut)
    await c.run()
    await c.send(0x0123, 1)
    await c.execute(77)
    identify = lambda csn, source: (source_word(source), C["CMD_IDENTIFY"] << 48 | csn << 32)
    c.records.queue += [identify(9, PC + 5), identify(10, PC + 6)]
    await ClockCycles(dut.clk, 60)
    assert int(dut.identify_valid.value) == 1 and int(dut.identify_address.value) == PC + 5
    dut.identify_word.value = 1
    await ClockCycles(dut.clk, 3)
    assert int(dut.identify.value) >> 56 == 0x0006_0009_01, "layout"
    flags = C["IDENTITY_BLOCK_ACKS"] | C["IDENTITY_CSN"] | C["IDENTITY_RESETS"]
    assert int(dut.identify.value) & (1 << 48) - 1 == flags << 40 | 1 << 24, "the last command, and no transmission yet"
    dut.identify_taken.value = 1
    await RisingEdge(dut.clk)
    dut.identify_taken.value = dut.identify_word.value = 0
    await c.records.drain()
    await ClockCycles(dut.clk, 5)
    assert c.pulses.count["event_busy"] == 1 and int(dut.identify_valid.value) == 0, "one between two pauses"
    c.records.queue.append(identify(11, PC + 6))
    await ClockCycles(dut.clk, 60)
    assert int(dut.identify_valid.value) == 1 and int(dut.identify_address.value) == PC + 6
    assert await c.response() == (0x0123, 1, 77)


@cocotb.test()
async def fade10g_cmd_processor_tells_who_has_sent_reset(dut):
    """Of the RESETs since START, in a transmission or not: their number, 255 at most, and the sender of the last one."""
    c = Commands(dut)
    await c.run()
    random = rng("resets")

    async def told(csn):
        values = []
        for code in ("CMD_IDENTIFY", "CMD_RESET_BY"):
            c.records.queue.append((source_word(PC + 9), C[code] << 48 | csn << 32))
            while not int(dut.identify_valid.value):
                await RisingEdge(dut.clk)
            await ClockCycles(dut.clk, 3)
            assert int(dut.identify_address.value) == PC + 9
            dut.identify_word.value = 1
            await ClockCycles(dut.clk, 3)
            assert int(dut.identify.value) >> 64 == C[code] << 16 | csn
            values.append(int(dut.identify.value) & (1 << 64) - 1)
            dut.identify_taken.value = 1
            await RisingEdge(dut.clk)
            dut.identify_taken.value = dut.identify_word.value = 0
            await ClockCycles(dut.clk, 40)
        assert values[0] >> 8 & 0xFFFF == values[1] >> 48, "the transmission"
        return values[1] >> 48, values[0] & 0xFF, values[1] & (1 << 48) - 1

    assert await told(1) == (0, 0, 0)
    for number, count in ((0x1234, 1), (0xFFFF, 3), (2, 258)):
        await c.send(C["CMD_START"], number)
        assert await told(2) == (number, 0, 0), "START forgets those before it"
        for _ in range(count):
            source = random.getrandbits(48)
            c.records.queue.append((source_word(source), C["CMD_RESET"] << 48))
        await c.records.drain(100 * count)
        await ClockCycles(dut.clk, 100)
        assert int(dut.session.value) == 0
        assert await told(3) == (number, min(count, 255), source)
    assert c.pulses.count["event_busy"] == c.pulses.count["event_wrong_source"] == 0


@cocotb.test()
async def fade10g_cmd_processor_passes_acks_only_in_a_transmission(dut):
    c = Commands(dut)
    await c.run()
    acks = Pulses(dut, dut.clk, ["ack_valid"])
    await c.send(C["ACK"], 1, 2)
    assert acks.count["ack_valid"] == 0 and c.pulses.count["event_ack_ignored"] == 1
    await c.send(C["CMD_START"], 1)
    dut.ack_ready.value = 1
    await c.send(C["ACK"], 1, 2)
    await c.send(C["NACK"], 1, 2)
    assert acks.count["ack_valid"] == 2


@cocotb.test()
async def fade10g_cmd_bridge_carries_commands_and_forgets_on_clear(dut):
    random = rng("bridge")
    for name in ["command_load", "command_send", "response_done", "clear", "m_cmd_ready", "s_rsp_valid"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400, "user_clk": 9174}, ["rst", "user_rst"])
    responses = []

    async def watch():
        while True:
            await ReadOnly()
            valid, value = int(dut.response_valid.value), int(dut.response.value)
            await RisingEdge(dut.clk)
            dut.response_done.value = valid and not int(dut.response_done.value)
            if valid and not int(dut.response_done.value):
                responses.append(value)

    cocotb.start_soon(watch())

    async def give(command):
        await ReadOnly()
        while not int(dut.command_ready.value):
            await RisingEdge(dut.clk)
            await ReadOnly()
        await RisingEdge(dut.clk)
        dut.command_new.value = command
        dut.command_load.value = 1
        await RisingEdge(dut.clk)
        dut.command_load.value = 0
        dut.command_send.value = 1
        await RisingEdge(dut.clk)
        dut.command_send.value = 0
        assert int(dut.command.value) == command

    async def take():
        for _ in range(30):
            await RisingEdge(dut.user_clk)
            if int(dut.m_cmd_valid.value):
                dut.m_cmd_ready.value = 1
                code, csn, argument = (int(getattr(dut, f"m_cmd_{n}").value) for n in ("code", "sequence", "argument"))
                await RisingEdge(dut.user_clk)
                dut.m_cmd_ready.value = 0
                return code << 48 | csn << 32 | argument
        return None

    async def answer(value):
        dut.s_rsp_value.value = value
        dut.s_rsp_valid.value = 1
        await ReadOnly()
        while not int(dut.s_rsp_ready.value):
            await RisingEdge(dut.user_clk)
            await ReadOnly()
        await RisingEdge(dut.user_clk)
        dut.s_rsp_valid.value = 0

    for _ in range(20):
        command, value = random.getrandbits(64), random.getrandbits(64)
        await give(command)
        assert await take() == command
        await ClockCycles(dut.user_clk, random.randrange(5))
        await answer(value)
        await ClockCycles(dut.clk, 10)
        assert responses.pop() == value and not responses

    for stage in ["on its way", "offered", "accepted"]:
        await give(0x1234 << 48)
        if stage != "on its way":
            await ClockCycles(dut.user_clk, 8)
        if stage == "accepted":
            assert await take() == 0x1234 << 48
        dut.clear.value = 1
        await ClockCycles(dut.clk, 12)
        assert int(dut.cleared.value) == 1 and int(dut.user_clear.value) == 1
        dut.clear.value = 0
        await ClockCycles(dut.clk, 12)
        assert int(dut.m_cmd_valid.value) == 0 and responses == [], stage
        await give(0x5678 << 48)
        assert await take() == 0x5678 << 48, stage
        await answer(42)
        await ClockCycles(dut.clk, 10)
        assert responses.pop() == 42 and not responses


def xorshift64(x):
    x ^= x << 13 & 2**64 - 1
    x ^= x >> 7
    return x ^ (x << 17 & 2**64 - 1)


@cocotb.test()
async def pattern_source_repeats_its_patterns(dut):
    random = rng("source")
    dut.running.value = 0
    dut.m_axis_tready.value = 0
    await start(dut, TX, ["rst"])
    cases = [(0, 0, 50, 0, 0), (1, 77, 50, 0, 7), (1, 0, 20, 3, 1), (0, 5, 0, 1, 20), (1, 77, 50, 0, 0)]
    for pattern, seed, limit, gap, block in cases:
        dut.block.value = block
        dut.random.value, dut.seed.value, dut.limit.value, dut.gap.value = pattern, seed, limit, gap
        dut.running.value = 1
        expected, state = [], seed or 0x9E3779B97F4A7C15
        for i in range(60):
            state = xorshift64(state)
            expected.append(state if pattern else i)
        words, spacing, clock = [], [], 0
        for _ in range(600):
            dut.m_axis_tready.value = int(random.random() < 0.7)
            await ReadOnly()
            if int(dut.m_axis_tvalid.value) and int(dut.m_axis_tready.value) and len(words) < 60:
                words.append(int(dut.m_axis_tdata.value))
                spacing.append(clock)
                assert int(dut.m_axis_tlast.value) == int(len(words) == limit or (block and len(words) % block == 0))
            clock += 1
            await RisingEdge(dut.clk)
        assert words == expected[: limit or 60]
        assert min(b - a for a, b in zip(spacing, spacing[1:])) >= gap + 1
        dut.running.value = 0
        await ClockCycles(dut.clk, 3)


class Registers:
    """Sends user commands to the example block."""

    def __init__(self, dut, **defaults):
        self.dut = dut
        self.defaults = {"random": 0, "seed": 0, "limit": 0, "gap": 0} | defaults

    async def run(self):
        for name in ["clear", "s_cmd_valid", "m_rsp_ready", "status_accepted", "status_valid"]:
            getattr(self.dut, name).value = 0
        for name, value in self.defaults.items():
            getattr(self.dut, f"{name}_default").value = value
        await start(self.dut, TX, ["rst"])

    async def issue(self, code, argument=0):
        self.dut.s_cmd_code.value, self.dut.s_cmd_argument.value = code, argument
        self.dut.s_cmd_valid.value = 1
        for _ in range(20):
            await ReadOnly()
            ready = int(self.dut.s_cmd_ready.value)
            await RisingEdge(self.dut.clk)
            if ready:
                self.dut.s_cmd_valid.value = 0
                return
        raise AssertionError("command not accepted")

    async def command(self, code, argument=0):
        await self.issue(code, argument)
        self.dut.m_rsp_ready.value = 1
        for _ in range(20):
            await ReadOnly()
            if int(self.dut.m_rsp_valid.value):
                value = int(self.dut.m_rsp_value.value)
                await RisingEdge(self.dut.clk)
                return value
            await RisingEdge(self.dut.clk)
        raise AssertionError("no response")


@cocotb.test()
async def example_commands_reads_and_writes_registers(dut):
    r = Registers(dut)
    await r.run()
    ones = 2**64 - 1
    assert await r.command(0x0100) == 0x4641444531304701
    for register, value, mask in [(1, 0xDEADBEEF, 2**32 - 1), (2, 3, 1), (3, 0x12345678, 2**32 - 1),
                                  (4, 0x9ABCDEF0, 2**32 - 1), (5, 1000, 2**32 - 1), (6, 0x12345, 0xFFFF)]:  # fmt: skip
        assert await r.command(0x0200 | register, value) == 0, "answers the old value"
        assert await r.command(0x0100 | register) == value & mask
    assert int(dut.seed.value) == 0x9ABCDEF012345678 and int(dut.limit.value) == 1000
    assert int(dut.random.value) == 1 and int(dut.gap.value) == 0x2345
    assert [await r.command(0x0207, n) for n in (5, 6, 7)] == [5, 11, 18]
    assert await r.command(0x0107) == 18
    for code in (0x0300, 0x01FF, 0x0200, 0x0210, 0x011C, 0x012A):
        assert await r.command(code) == ones, hex(code)


@cocotb.test()
async def example_commands_begins_with_the_defaults(dut):
    r = Registers(dut, random=1, seed=0x123456789ABCDEF0, limit=77, gap=3)
    await r.run()
    assert [await r.command(0x0100 | register) for register in range(2, 7)] == [1, 0x9ABCDEF0, 0x12345678, 77, 3]
    assert await r.command(0x0205, 5) == 77 and int(dut.limit.value) == 5


@cocotb.test()
async def example_commands_reads_counters_and_forgets(dut):
    r = Registers(dut)
    await r.run()

    async def counter(value, wait=4):
        while not int(dut.status_request.value):
            await RisingEdge(dut.clk)
        index = int(dut.status_index.value)
        dut.status_accepted.value = 1
        await RisingEdge(dut.clk)
        dut.status_accepted.value = 0
        await ClockCycles(dut.clk, wait)
        dut.status_value.value, dut.status_valid.value = value, 1
        await RisingEdge(dut.clk)
        dut.status_valid.value = 0
        return index

    for code, index in [(0x0110, 0), (0x011B, 11), (0x0120, 32), (0x0129, 41)]:
        task = cocotb.start_soon(counter(1000 + code))
        assert await r.command(code) == 1000 + code
        assert await task == index
    # A command that is forgotten while its counter is under way does not answer the next.
    dut.m_rsp_ready.value = 0
    task = cocotb.start_soon(counter(666, 10))
    await r.issue(0x0110)
    await ClockCycles(dut.clk, 5)
    dut.clear.value = 1
    await ClockCycles(dut.clk, 3)
    dut.clear.value = 0
    await task
    await ClockCycles(dut.clk, 3)
    assert int(dut.m_rsp_valid.value) == 0
    assert await r.command(0x0100) == 0x4641444531304701
