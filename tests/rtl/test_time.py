"""PTP's time for the cores of data: in another clock, and beside the frames of a core."""

import statistics

import pytest
from cocotb.clock import Clock
from cocotb.utils import get_sim_time
from support.block import ClockCycles, ReadOnly, RisingEdge, Timer, cocotb, package_constants, rng, run
from support.sweep import long

P = package_constants("ptp/ptp_pkg.sv")


@pytest.mark.parametrize("source,clock,interval", [(8000, 8000, 10), long(6400, 8000, 8), long(8000, 16000, 8), (6400, 4000, 8)])
def test_ptp_follower(source, clock, interval):
    run("time", {"PERIOD_PS": clock, "SOURCE_PS": source, "INTERVAL_LOG": interval}, "extra_follower")


@pytest.mark.parametrize("width", [long(8), 64])
def test_ptp_node(width):
    run("time", {"WIDTH": width, "SYNC_CLOCKS": 3000, "SYNC_LOG": -15}, "ptp_node")


def ns(time):
    value = int(time.value)
    return (value >> 32) * 10**9 + (value & 0xFFFFFFFF)


@cocotb.test()
async def extra_follower_has_the_time(dut):
    """Oscillators that are wrong by up to 100 ppm, at any phase, over the end of a second; a time that is set is followed at once."""
    random = rng("follower", dut.PERIOD_PS.value.to_unsigned(), dut.SOURCE_PS.value.to_unsigned())
    nominal = [period.value.to_unsigned() for period in (dut.PERIOD_PS, dut.SOURCE_PS)]
    # Even numbers of picoseconds: a clock has two equal halves.
    own, its = (2 * round(period * (1 + random.uniform(-1, 1) * 1e-4) / 2) for period in nominal)
    phase = random.randrange(its)
    for name, value in (("s_locked", 1), ("s_rate", random.randrange(-(2**20), 2**20) % 2**32), ("s_write", 0), ("rst", 1), ("s_rst", 1)):
        getattr(dut, name).value = value
    begin = get_sim_time("ps")
    cocotb.start_soon(Clock(dut.s_clk, its, "ps").start())
    await Timer(phase, "ps")
    cocotb.start_soon(Clock(dut.clk, own, "ps").start())
    await ClockCycles(dut.clk, 8)
    dut.rst.value, dut.s_rst.value = 0, 0

    async def set_time(time):
        for i, word in enumerate((time % 10**9 & 0xFFFF, time % 10**9 >> 16, *(time // 10**9 >> shift & 0xFFFF for shift in (0, 16, 32)))):
            dut.s_write.value, dut.s_wdata.value = 1 << i, word
            await RisingEdge(dut.s_clk)
        dut.s_write.value = 0

    interval = 1 << dut.INTERVAL_LOG.value.to_unsigned()

    async def errors(intervals):
        """ns by which `now` is ahead."""
        found = []
        for _ in range(intervals * 16):
            await ClockCycles(dut.clk, interval // 16)
            await ReadOnly()
            since = int(get_sim_time("ps") - begin) % its / 1000
            found.append(ns(dut.now) - ns(dut.s_time) - since)
            await Timer(1, "ps")
        return found

    await set_time(1_800_000_000 * 10**9 - 90 * interval * own // 1000)
    await errors(3)
    assert not int(dut.locked.value), "it has not followed for long"
    await errors(60)
    assert int(dut.locked.value)
    found = await errors(60)
    assert ns(dut.s_time) > 1_800_000_000 * 10**9
    mean, spread = statistics.mean(found), max(found) - min(found)
    # The crossing's phase is up to half a period, if the clocks do not beat.
    assert abs(mean) <= its / 2000 + 1.5, (own, its, mean)
    assert spread <= 10, (own, its, spread)

    for jump in (5000, -3 * 10**9, 10**15):
        await set_time(ns(dut.s_time) + jump)
        await errors(3)
        assert not int(dut.locked.value)
        found = await errors(1)
        assert max(abs(each) for each in found) < 60, (jump, found)
        await errors(60)
        assert int(dut.locked.value)
        assert max(abs(each) for each in await errors(2)) < 20
    dut.s_locked.value = 0
    await errors(3)
    assert not int(dut.locked.value)
    dut.s_locked.value = 1
    await errors(3)
    assert int(dut.locked.value), "the time was followed all the while"


@cocotb.test()
async def ptp_node_sends_beside_a_core(dut):
    """A master's messages go out between the frames of a core, which are all there, whole and in order."""
    width = dut.WIDTH.value.to_unsigned() // 8
    random = rng("node", width)
    for name, value in (("role", 2), ("mac_address", 0x02FADE000001), ("s_axis", 0), ("s_mac", 0), ("m_axis_tready", 0), ("m_axis_start", 0),
                        ("reg_valid", 0), ("reg_write", 0)):  # fmt: skip
        getattr(dut, name).value = value
    for clk in (dut.tx_clk, dut.rx_clk):
        cocotb.start_soon(Clock(clk, 8000 if width == 1 else 6400, "ps").start())
    dut.tx_rst.value = dut.rx_rst.value = 1
    await ClockCycles(dut.tx_clk, 4)
    dut.tx_rst.value = dut.rx_rst.value = 0
    sent, received = [], []

    async def core():
        """Frames, some behind each other at once."""
        while True:
            frame = random.randbytes(random.randrange(60, 300))
            sent.append(frame)
            words = [frame[i : i + width] for i in range(0, len(frame), width)]
            for i, word in enumerate(words):
                keep = (1 << len(word)) - 1
                last = int(i == len(words) - 1)
                dut.s_axis.value = int.from_bytes(word, "little") << 11 | keep << 3 | 4 | last << 1
                while True:
                    await ReadOnly()
                    taken = int(dut.s_axis_tready.value)
                    await RisingEdge(dut.tx_clk)
                    if taken:
                        break
            dut.s_axis.value = 0
            if random.random() < 0.5:
                await ClockCycles(dut.tx_clk, random.randrange(1, 400))

    async def mac():
        while True:
            await ReadOnly()
            if not int(dut.m_axis.value) >> 2 & 1:
                await RisingEdge(dut.tx_clk)
                continue
            await RisingEdge(dut.tx_clk)
            if width == 1:
                await ClockCycles(dut.tx_clk, 7)
            dut.m_axis_start.value = 1
            await RisingEdge(dut.tx_clk)
            dut.m_axis_start.value, dut.m_axis_tready.value = 0, 1
            frame, last = b"", 0
            while not last:
                await ReadOnly()
                word = int(dut.m_axis.value)
                assert word >> 2 & 1, "a frame runs dry"
                frame += (word >> 11 & (1 << 8 * width) - 1).to_bytes(width, "little")[: (word >> 3 & 0xFF).bit_count()]
                last = word >> 1 & 1
                await RisingEdge(dut.tx_clk)
            received.append(frame)
            dut.m_axis_tready.value = 0
            await ClockCycles(dut.tx_clk, random.choice([16, 24]) // width)

    cocotb.start_soon(mac())
    cocotb.start_soon(core())
    await ClockCycles(dut.tx_clk, 60_000)
    ethertype = P["ETHERTYPE"].to_bytes(2, "big")
    messages = [frame for frame in received if frame[12:14] == ethertype and frame[6:12] == bytes.fromhex("02fade000001")]
    others = [frame for frame in received if frame not in messages]
    assert others == sent[: len(others)] and len(sent) - len(others) <= 1 and len(others) > 100
    kinds = [frame[14] & 15 for frame in messages]
    # Sync and Follow_Up in turns, an Announce with each second.
    assert [kind for kind in kinds if kind != 11] == ([0, 8] * len(kinds))[: len(kinds) - kinds.count(11)]
    assert 17 <= kinds.count(0) <= 22 and abs(kinds.count(11) - kinds.count(0) / 2) <= 1
    for frame in messages:
        assert frame[:6] == bytes.fromhex("011b19000000") and len(frame) == 14 + int.from_bytes(frame[16:18], "big")
