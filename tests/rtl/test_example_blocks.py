"""The blocks of the example boards: the source of words, and the user's commands."""

import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, rng, run, start

TX = {"clk": 6400}


@pytest.mark.parametrize("toplevel,parameters", [("pattern_source", {}), ("example_commands", {})])
def test_block(toplevel, parameters):
    run("example_blocks", parameters, toplevel)


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
