"""Commands of the FADE-10G core: the processor, and the bridge to the user's clock."""

import pytest
from support.block import C, ClockCycles, Pulses, ReadOnly, Records, RisingEdge, cocotb, rng, run, source_word, start
from support.permits import starts_in_any_order

PC = 0x02FADE0000F0
TX = {"clk": 6400}


@pytest.mark.parametrize(
    "toplevel,parameters", [("fade10g_cmd_processor", {}), ("fade10g_cmd_processor", {"CHECKSUM": 1}), ("fade10g_cmd_bridge", {})]
)
def test_block(toplevel, parameters):
    run("fade10g_commands", parameters, toplevel)


def has_checksum(dut):
    return int(dut.CHECKSUM.value)


class Commands:
    """Drives the command processor and answers for its neighbours."""

    def __init__(self, dut):
        self.dut, self.records, self.given = dut, Records(dut), None
        for name in ["ack_ready", "ack_bits", "finished", "writer_active", "cleared", "user_response_valid", "user_response",
                     "response_lock", "response_taken", "identify_taken", "identify_word", "command_head",
                     "command_argument"]:  # fmt: skip
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
            dut.command_head.value, dut.command_argument.value = command >> 32, command & 0xFFFFFFFF
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
    able = C["IDENTITY_BLOCK_ACKS"] | C["IDENTITY_RESETS"] | C["IDENTITY_SAME_WORDS"] | C["IDENTITY_CHECKSUM"] * has_checksum(dut)
    flags = able | C["IDENTITY_CSN"]
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
async def fade10g_cmd_processor_start_asks_for_the_crc(dut):
    """Once in a transmission: its repetition, and a START while it runs, change nothing."""
    c = Commands(dut)
    await c.run()
    asked = lambda: int(dut.with_checksum.value)
    for csn, argument in enumerate([0, 1, 0xFFFFFFFC, 0xFFFFFFFD, 0]):
        await c.send(C["CMD_START"], 10 * csn, argument)
        expected = argument & C["START_CHECKSUM"] & has_checksum(dut)
        assert int(dut.session.value) == 1 and asked() == expected, hex(argument)
        await c.send(C["CMD_START"], 10 * csn, argument ^ 1)
        await c.send(C["CMD_START"], 10 * csn + 1, argument ^ 1)
        await c.send(0x0123, 10 * csn + 2, argument ^ 1)
        assert int(dut.session.value) == 1 and asked() == expected
        await c.send(C["CMD_RESET"])
        assert int(dut.session.value) == 0


@cocotb.test()
async def fade10g_cmd_processor_tells_who_has_sent_reset(dut):
    """Of the RESETs since START, in a transmission or not: their number, 255 at most, and the sender of the last one. START of
    the same number again does not hide them."""
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
        await c.send(C["CMD_START"], number)
        assert int(dut.session.value) == 1 and await told(4) == (number, min(count, 255), source), "it begins anew"
        source = random.getrandbits(48)
        await c.send(C["CMD_RESET"], source=source)
        await ClockCycles(dut.clk, 100)
        assert await told(5) == (number, min(count + 1, 255), source)
    assert c.pulses.count["event_busy"] == c.pulses.count["event_wrong_source"] == 0


@cocotb.test()
async def fade10g_cmd_processor_obeys_start_with_its_permit_once(dut):
    c = Commands(dut)
    await c.run()

    async def reset(computer):
        await c.send(C["CMD_RESET"], source=PC + computer)

    async def start(number, permit, computer, running):
        await c.send(C["CMD_START"], number, permit << C["PERMIT_SHIFT"] | C["START_PERMIT"], PC + computer)
        answer = await c.response()
        if running:
            assert not answer or answer[2] in (0, 2), "one runs"
            return None
        assert answer[:2] == (C["CMD_START"], number)
        # Of the computer that it has heard last, the answer to the last command is told again.
        given, status = divmod(answer[2], 1 << C["PERMIT_SHIFT"])
        assert status == (C["STATUS_PERMIT"] if answer[2] else 0)
        return given or None

    await starts_in_any_order(dut, rng("permits"), reset, start)


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
