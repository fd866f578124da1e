"""The small shared modules: crossings, counters, width converters, status reader."""

import pytest
from bench import AxisMonitor, ClockCycles, Pulses, ReadOnly, RisingEdge, Timer, cocotb, rng, run, send_axis, start

CLOCKS = {"s_clk": 6400, "m_clk": 10102}


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("sync_bits", {"WIDTH": 4}),
        ("sync_reset", {}),
        ("gray_to_binary", {"WIDTH": 6}),
        ("event_counter", {"WIDTH": 4}),
        ("cdc_handshake", {"WIDTH": 16}),
        ("async_fifo", {"WIDTH": 16, "DEPTH": 8}),
        ("axis_upsizer", {}),
        ("axis_downsizer", {}),
        ("status_reader", {"WORDS": 12}),
    ],
)
def test_common(toplevel, parameters):
    run("common", parameters, toplevel)


@cocotb.test()
async def sync_bits_delays_two_clocks(dut):
    await start(dut, {"clk": 1000})
    random = rng("sync_bits")
    sent = []
    for _ in range(100):
        await RisingEdge(dut.clk)
        sent.append(random.randrange(16))
        dut.d.value = sent[-1]
        await ReadOnly()
        if len(sent) > 3:
            assert int(dut.q.value) == sent[-3]
        await Timer(1, "ps")


@cocotb.test()
async def sync_reset_falls_with_the_clock(dut):
    dut.rst_in.value = 1
    await Timer(1, "ns")
    assert int(dut.rst_out.value) == 1, "asserted without a clock"
    await start(dut, {"clk": 1000}, ["rst_in"])
    await RisingEdge(dut.clk)
    await ReadOnly()
    assert int(dut.rst_out.value) == 0
    await Timer(100, "ps")
    dut.rst_in.value = 1
    await Timer(1, "ps")
    assert int(dut.rst_out.value) == 1, "asserted between clock edges"
    dut.rst_in.value = 0
    await Timer(1, "ps")
    assert int(dut.rst_out.value) == 1, "held until clocks have passed"
    await ClockCycles(dut.clk, 5)
    assert int(dut.rst_out.value) == 0


@cocotb.test()
async def gray_to_binary_inverts_gray(dut):
    for value in range(64):
        dut.gray.value = value ^ (value >> 1)
        await Timer(1, "ns")
        assert int(dut.binary.value) == value


@cocotb.test()
async def event_counter_counts_wraps_and_clears(dut):
    dut.pulse.value = 0
    await start(dut, {"clk": 1000}, ["clear"])
    dut.pulse.value = 1
    await ClockCycles(dut.clk, 20)
    dut.pulse.value = 0
    await RisingEdge(dut.clk)
    assert int(dut.count.value) == 20 % 16
    dut.clear.value = 1
    await ClockCycles(dut.clk, 2)
    assert int(dut.count.value) == 0


async def words_cross(dut, clocks, count=500):
    """Every word arrives once, in order, whatever the two sides do."""
    random = rng(dut._name, tuple(clocks.values()))
    sent = [random.randrange(1 << 16) for _ in range(count)]
    got = []
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    await start(dut, clocks, ["s_rst", "m_rst"])

    async def source():
        for word in sent:
            while random.random() < 0.3:
                await RisingEdge(dut.s_clk)
            dut.s_data.value = word
            dut.s_valid.value = 1
            await ReadOnly()
            while not int(dut.s_ready.value):
                await RisingEdge(dut.s_clk)
                await ReadOnly()
            await RisingEdge(dut.s_clk)
            dut.s_valid.value = 0

    cocotb.start_soon(source())
    busy = 0.1
    for cycle in range(100 * count):
        if len(got) == count:
            break
        if cycle % 100 == 0:
            busy = random.choice([0.0, 0.5, 0.9])  # lets a FIFO fill and run dry
        dut.m_ready.value = int(random.random() > busy)
        await ReadOnly()
        if int(dut.m_valid.value) and int(dut.m_ready.value):
            got.append(int(dut.m_data.value))
        await RisingEdge(dut.m_clk)
    assert got == sent


@cocotb.test()
async def cdc_handshake_to_a_slower_clock(dut):
    await words_cross(dut, CLOCKS)


@cocotb.test()
async def async_fifo_to_a_slower_clock(dut):
    await words_cross(dut, CLOCKS)


@cocotb.test()
async def async_fifo_fills_to_its_depth(dut):
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    await start(dut, CLOCKS, ["s_rst", "m_rst"])
    dut.s_valid.value = 1
    accepted = 0
    for word in range(20):
        dut.s_data.value = word
        await ReadOnly()
        accepted += int(dut.s_ready.value)
        await RisingEdge(dut.s_clk)
    assert accepted == 8
    dut.s_valid.value = 0
    dut.m_ready.value = 1
    got = []
    for _ in range(30):
        await ReadOnly()
        if int(dut.m_valid.value):
            got.append(int(dut.m_data.value))
        await RisingEdge(dut.m_clk)
    assert got == list(range(8))


@cocotb.test()
async def axis_upsizer_keeps_every_byte(dut):
    random = rng("up")
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, has_ready=False)
    frames = [(random.randbytes(n), random.random() < 0.2) for n in [*range(1, 30), 64, 65]]
    for data, bad in frames:
        gaps = lambda _: random.random() < 0.2
        await send_axis(dut, dut.clk, data, 1, bad=bad, gaps=gaps, ready=False)
    assert await monitor.wait(len(frames)) == frames


@cocotb.test()
async def axis_downsizer_keeps_every_byte(dut):
    random = rng("down")
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, 1, stall=lambda: random.random() < 0.3)
    frames = [random.randbytes(n) for n in [*range(1, 30), 64, 65]]
    for data in frames:
        await send_axis(dut, dut.clk, data, 8)
    assert [data for data, _ in await monitor.wait(len(frames))] == frames


@cocotb.test()
async def status_reader_reads_each_word_whole(dut):
    random = rng("status")
    dut.s_valid.value = 0
    await start(dut, {"clk": 8000, "there_clk": 6400}, ["rst", "there_rst"])
    values = [random.getrandbits(32) for _ in range(12)]
    dut.values.value = sum(value << 32 * i for i, value in enumerate(values))
    for index in [*range(12), 3, 3]:
        dut.s_index.value = index
        dut.s_valid.value = 1
        await ReadOnly()
        while not int(dut.s_ready.value):
            await RisingEdge(dut.clk)
            await ReadOnly()
        await RisingEdge(dut.clk)
        dut.s_valid.value = 0
        answers = Pulses(dut, dut.clk, ["m_valid"])
        for _ in range(50):
            await ReadOnly()
            if int(dut.m_valid.value):
                assert int(dut.m_value.value) == values[index]
            await RisingEdge(dut.clk)
        assert answers.count["m_valid"] == 1
