"""What the cores with AXI4-Lite are made of: the window to a core's status, the bus of user commands."""

import cocotb
import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, rng, run, start


@pytest.mark.parametrize("toplevel,parameters", [("status_window", {"TIMEOUT": 40}), ("command_bus", {})])
def test_axi(toplevel, parameters):
    run("axi_parts", parameters, toplevel)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def status_window_answers_once_and_in_time(dut):
    """A core that is slow, late or does not answer: each request has one answer, and never that of another."""
    random = rng("window")
    dut.enable.value = 1
    dut.request.value = dut.status_accepted.value = dut.status_valid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    found = {"answer": 0, "none": 0, "late": 0}

    async def core():
        while True:
            await RisingEdge(dut.clk)
            if not int(dut.status_request.value):
                continue
            await ClockCycles(dut.clk, random.choice([0, 1, 5, 60]))
            if not int(dut.status_request.value):
                continue
            index = int(dut.status_index.value)
            dut.status_accepted.value = 1
            await RisingEdge(dut.clk)
            dut.status_accepted.value = 0
            wait = random.choice([0, 3, 30, 60, 90])
            found["late"] += wait > 40
            await ClockCycles(dut.clk, wait)
            dut.status_value.value = 0xA500 | index
            dut.status_valid.value = 1
            await RisingEdge(dut.clk)
            dut.status_valid.value = 0

    task = cocotb.start_soon(core())
    for turn in range(400):
        if turn == 300:
            task.cancel()
            dut.status_accepted.value = dut.status_valid.value = 0
            dut.enable.value = 0
        await ClockCycles(dut.clk, random.choice([1, 2, 20]))
        address = random.randrange(64)
        dut.address.value = address
        dut.request.value = 1
        await RisingEdge(dut.clk)
        dut.request.value = 0
        for waited in range(200):
            await ReadOnly()
            if int(dut.ack.value):
                break
            await RisingEdge(dut.clk)
        value = int(dut.data.value)
        assert waited < 60 and value in (0xA500 | address, 0xFFFFFFFF), (waited, address, hex(value))
        assert turn < 300 or (value == 0xFFFFFFFF and waited < 4)
        found["none" if value == 0xFFFFFFFF else "answer"] += 1
        await RisingEdge(dut.clk)
        await ReadOnly()
        assert not int(dut.ack.value), "one answer"
        await RisingEdge(dut.clk)
    assert min(found.values()) > 20, found


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def command_bus_forgets_what_is_cleared(dut):
    """A command that is forgotten while its access runs has no answer, and the next one has its own."""
    random = rng("command bus")
    dut.clear.value = dut.s_cmd_valid.value = dut.bus_ready.value = 0
    dut.m_rsp_ready.value = 1
    await start(dut, {"clk": 8000}, ["rst"])

    async def bus():
        while True:
            await RisingEdge(dut.clk)
            if int(dut.bus_valid.value):
                await ClockCycles(dut.clk, random.randrange(1, 20))
                dut.bus_rdata.value = 0xB0000000 | int(dut.bus_address.value)
                dut.bus_error.value = int(dut.bus_address.value) >= 0xF0
                dut.bus_ready.value = 1
                await RisingEdge(dut.clk)
                dut.bus_ready.value = 0
                await RisingEdge(dut.clk)

    cocotb.start_soon(bus())
    forgotten = 0
    for _ in range(200):
        operation, register, argument = random.choice([1, 2, 3]), random.randrange(256), random.getrandbits(32)
        dut.s_cmd_code.value, dut.s_cmd_argument.value, dut.s_cmd_valid.value = operation << 8 | register, argument, 1
        await ReadOnly()
        while not int(dut.s_cmd_ready.value):
            await RisingEdge(dut.clk)
            await ReadOnly()
        await RisingEdge(dut.clk)
        dut.s_cmd_valid.value = 0
        if random.random() < 0.3:
            dut.clear.value = 1
            await RisingEdge(dut.clk)
            dut.clear.value = 0
            forgotten += 1
            for _ in range(random.choice([0, 3, 40])):
                await ReadOnly()
                assert not int(dut.m_rsp_valid.value)
                await RisingEdge(dut.clk)
            continue
        await ReadOnly()
        while not int(dut.m_rsp_valid.value):
            await RisingEdge(dut.clk)
            await ReadOnly()
        expected = {1: 0xB0000000 | register, 2: argument, 3: 2**64 - 1}[operation]
        assert int(dut.m_rsp_value.value) == (2**64 - 1 if register >= 0xF0 else expected)
        await RisingEdge(dut.clk)
    assert forgotten > 30
