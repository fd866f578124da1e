"""The interfaces to a PHY, with a MAC behind each: RGMII and MII against the models of cocotbext-eth, RMII against one of its specification."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from cocotbext.eth import GmiiFrame, MiiPhy, RgmiiPhy
from support.block import AxisMonitor, ClockCycles, Pulses, RisingEdge, Timer, on_wire, rng, run, send_axis, spoil, start

STATS = ["stat_error", "stat_runt", "stat_oversize", "stat_bad_fcs"]
# Bit/s to the code of RGMII 2.0, table 4.
SPEEDS = {10: 0, 100: 1, 1000: 2}


@pytest.mark.parametrize("toplevel", ["extra_rgmii", "extra_mii", "extra_rmii"])
def test_phy(toplevel):
    run("phy", {}, toplevel)


@pytest.mark.long
@pytest.mark.parametrize("toplevel", ["extra_rgmii", "extra_mii", "extra_rmii"])
def test_netlist(toplevel):
    """Yosys reads structures in its own way: what it makes of them does the same."""
    run("phy", {}, toplevel, netlist=True)


def frames(random, speed):
    """Frames without padding, of fewer and shorter ones at the lowest speed: its simulation is long."""
    top = {10: 200, 100: 700, 1000: 2000}[speed]
    return [random.randbytes(n) for n in (60, 61, 62, 63, 64, *(random.randrange(60, top) for _ in range(5)))]


async def both_ways(dut, phy, monitor, random, speed):
    """Frames in both directions at once, back to back; the gap is exact."""
    given, sent = frames(random, speed), frames(random, speed)
    first = len(monitor.frames)
    for frame in given:
        await phy.rx.send(GmiiFrame.from_payload(frame))
    begins = []
    for frame in sent:
        await send_axis(dut, dut.tx_clk, frame, 1)
    for frame in sent:
        seen = await phy.tx.recv()
        assert seen.check_fcs() and not any(seen.error or []) and bytes(seen.get_payload()) == frame
        begins.append((seen.sim_time_start, len(on_wire(frame))))
    byte = 8e6 / speed
    for (begin, length), (following, _) in zip(begins, begins[1:], strict=False):
        assert following - begin == pytest.approx((length + 12) * byte, abs=10), "12 bytes between frames"
    await monitor.wait(first + len(given), cycles=10**6)
    assert monitor.frames[first:] == [(frame, False) for frame in given]


async def late(dut):
    """The PHY's clock: 2 ns behind, as a PHY with internal delay has it."""
    while True:
        await dut.rgmii_txc.value_change
        level = int(dut.rgmii_txc.value)
        await Timer(2000, "ps")
        dut.phy_txc.value = level


async def rgmii(dut, speed, in_band):
    """A PHY at a speed; the board knows it from the PHY, or by its settings."""
    dut.s_axis_tvalid.value = 0
    dut.in_band.value = int(in_band)
    dut.speed.value = 3 if in_band else SPEEDS[speed]
    dut.idle.value = 1 | SPEEDS[speed] << 1 | 8 if in_band else 0
    dut.phy_txc.value = 0
    cocotb.start_soon(late(dut))
    phy = RgmiiPhy(dut.rgmii_txd, dut.rgmii_tx_ctl, dut.phy_txc, dut.rgmii_rxd, dut.rgmii_rx_ctl, dut.rx_clk, speed=speed * 1e6)
    dut.rx_rst.value = 1
    await start(dut, {"tx_clk": 8000}, ["tx_rst"])
    await ClockCycles(dut.rx_clk, 4)
    dut.rx_rst.value = 0
    await ClockCycles(dut.rx_clk, 20)
    return phy


def listen(dut, clk):
    return AxisMonitor(dut, clk, 1, has_ready=False), Pulses(dut, clk, STATS)


@cocotb.test()
@cocotb.parametrize(speed=[10, 100, 1000], in_band=[False, True])
async def extra_rgmii_frames_pass_both_ways(dut, speed, in_band):
    random = rng("rgmii", speed, in_band)
    phy = await rgmii(dut, speed, in_band)
    monitor, pulses = listen(dut, dut.rx_clk)
    await both_ways(dut, phy, monitor, random, speed)
    assert not any(pulses.count.values())


@cocotb.test()
async def extra_rgmii_follows_the_speed_of_the_phy(dut):
    random = rng("rgmii speeds")
    phy = await rgmii(dut, 1000, True)
    monitor, pulses = listen(dut, dut.rx_clk)
    for speed in (1000, 100, 1000, 10, 100):
        dut.idle.value = 0
        await ClockCycles(dut.rx_clk, 20)
        assert not int(dut.link.value) & 1, "the link is down"
        phy.set_speed(speed * 1e6)
        dut.idle.value = 1 | SPEEDS[speed] << 1 | 8
        await ClockCycles(dut.rx_clk, 20)
        assert int(dut.link.value) == 9 | SPEEDS[speed] << 1
        # What was in the PHY when the speed changed is not a frame.
        await Timer(20, "us")
        phy.tx.clear()
        await both_ways(dut, phy, monitor, random, speed)
    assert not any(pulses.count.values())


@cocotb.test()
@cocotb.parametrize(speed=[100, 1000])
async def extra_rgmii_clock_has_the_shape_of_the_speed(dut, speed):
    await rgmii(dut, speed, False)
    await RisingEdge(dut.rgmii_txc)
    at = [cocotb.utils.get_sim_time("ps")]
    for _ in range(10):
        for edge in (FallingEdge, RisingEdge):
            await edge(dut.rgmii_txc)
            at.append(cocotb.utils.get_sim_time("ps"))
    half = {100: 20000, 1000: 4000}[speed]
    assert {b - a for a, b in zip(at, at[1:], strict=False)} == {half}


@cocotb.test()
@cocotb.parametrize(speed=[100, 1000])
async def extra_rgmii_errors_pass_both_ways(dut, speed):
    random = rng("rgmii errors", speed)
    phy = await rgmii(dut, speed, False)
    monitor, pulses = listen(dut, dut.rx_clk)
    await bad_frames_are_named(dut, phy, monitor, pulses, random)
    # A frame that the MAC cannot go on with ends with an error at the PHY.
    dry = iter([True] * 20 + [False] * 1000)
    await send_axis(dut, dut.tx_clk, bytes(100), 1, gaps=lambda i: i == 50 and next(dry))
    seen = await phy.tx.recv(compact=False)
    assert any(seen.error)


async def bad_frames_are_named(dut, phy, monitor, pulses, random):
    """Frames that a PHY marks, and frames with bits that changed, between good ones."""
    good = random.randbytes(100)
    marked = GmiiFrame(on_wire(random.randbytes(80)))
    marked.error = [int(i == 40) for i in range(len(marked.data))]
    for frame in (GmiiFrame(on_wire(good)), marked, GmiiFrame(spoil(random, on_wire(random.randbytes(70)))), GmiiFrame(on_wire(good))):
        await phy.rx.send(frame)
    await monitor.wait(4, cycles=10**5)
    assert [frame for frame, bad in monitor.frames if not bad] == [good, good]
    assert pulses.count == {"stat_error": 1, "stat_runt": 0, "stat_oversize": 0, "stat_bad_fcs": 1}


@cocotb.test()
@cocotb.parametrize(speed=[10, 100])
async def extra_mii_frames_pass_both_ways(dut, speed):
    random = rng("mii", speed)
    dut.s_axis_tvalid.value = 0
    phy = MiiPhy(dut.mii_txd, dut.mii_tx_er, dut.mii_tx_en, dut.tx_clk, dut.mii_rxd, dut.mii_rx_er, dut.mii_rx_dv, dut.rx_clk, speed=speed * 1e6)
    dut.tx_rst.value = dut.rx_rst.value = 1
    await ClockCycles(dut.tx_clk, 4)
    dut.tx_rst.value = dut.rx_rst.value = 0
    await ClockCycles(dut.tx_clk, 4)
    monitor, pulses = listen(dut, dut.rx_clk)
    await both_ways(dut, phy, monitor, random, speed)
    assert not any(pulses.count.values())
    if speed == 100:
        monitor.frames.clear()
        await bad_frames_are_named(dut, phy, monitor, pulses, random)


@cocotb.test()
async def extra_mii_frames_may_begin_and_end_at_any_nibble(dut):
    """A PHY loses nibbles of the preamble, and adds some behind the frame (IEEE 802.3, 22.2.3)."""
    random = rng("mii nibbles")
    dut.s_axis_tvalid.value = dut.mii_rx_dv.value = dut.mii_rx_er.value = 0
    await start(dut, {"tx_clk": 40000, "rx_clk": 40000}, ["tx_rst", "rx_rst"])
    monitor, pulses = listen(dut, dut.rx_clk)
    sent = []
    for lost in range(15):
        frame = random.randbytes(random.randrange(60, 90))
        nibbles = [nibble for byte in on_wire(frame) for nibble in (byte & 15, byte >> 4)][lost:]
        for nibble in [*nibbles, *([random.randrange(16)] if random.random() < 0.5 else [])]:
            dut.mii_rxd.value, dut.mii_rx_dv.value = nibble, 1
            await RisingEdge(dut.rx_clk)
        dut.mii_rx_dv.value = 0
        await ClockCycles(dut.rx_clk, random.randrange(2, 24))
        sent.append((frame, False))
    await ClockCycles(dut.rx_clk, 10)
    assert monitor.frames == sent and not any(pulses.count.values())


class RmiiPhy:
    """The pins of a PHY by the RMII specification 1.2, at 10 or 100 Mb/s."""

    def __init__(self, dut, speed):
        self.dut, self.clocks, self.bursts = dut, 1 if speed == 100 else 10, []
        dut.fast.value = int(speed == 100)
        dut.rmii_rxd.value = dut.rmii_crs_dv.value = dut.rmii_rx_er.value = 0

    async def dibit(self, value, crs_dv, error=0):
        self.dut.rmii_rxd.value, self.dut.rmii_crs_dv.value, self.dut.rmii_rx_er.value = value, crs_dv, error
        await ClockCycles(self.dut.clk, self.clocks)

    async def send(self, data, early, late, error_at=None, gap=48):
        """early: dibits of zero with CRS_DV, before the preamble; late: dibits that the PHY still had when the carrier had gone."""
        dibits = [byte >> shift & 3 for byte in data for shift in (0, 2, 4, 6)]
        for _ in range(early):
            await self.dibit(0, 1)
        for i, value in enumerate(dibits):
            # Of the late ones CRS_DV is low in the first dibit of each nibble.
            await self.dibit(value, int(i < len(dibits) - late or i % 2 == 1), int(i == error_at))
        for _ in range(gap):
            await self.dibit(0, 0)

    async def watch(self):
        """Bytes of each burst that the board sends, and dibits before it."""
        dibits, gap = [], 0
        while True:
            await RisingEdge(self.dut.clk)
            if int(self.dut.rmii_tx_en.value):
                dibits.append(int(self.dut.rmii_txd.value))
            elif dibits:
                every = dibits[:: self.clocks]
                assert all(dibits[i] == every[i // self.clocks] for i in range(len(dibits))), "a dibit stays for its clocks"
                self.bursts.append((bytes(sum(every[i + j] << 2 * j for j in range(4)) for i in range(0, len(every), 4)), gap / self.clocks))
                dibits, gap = [], 1
            else:
                gap += 1


@cocotb.test()
@cocotb.parametrize(speed=[10, 100])
async def extra_rmii_frames_pass_both_ways(dut, speed):
    random = rng("rmii", speed)
    dut.s_axis_tvalid.value = 0
    phy = RmiiPhy(dut, speed)
    await start(dut, {"clk": 20000}, ["rst"])
    monitor, pulses = listen(dut, dut.clk)
    cocotb.start_soon(phy.watch())
    given, sent = frames(random, speed), frames(random, speed)

    async def receive():
        for frame in given:
            await phy.send(on_wire(frame), early=random.randrange(5), late=random.choice([0, 2, 4, 12]))

    receiving = cocotb.start_soon(receive())
    for frame in sent:
        await send_axis(dut, dut.clk, frame, 1)
    await receiving
    await ClockCycles(dut.clk, 200 * phy.clocks)
    assert [data for data, _ in phy.bursts] == [on_wire(frame) for frame in sent]
    assert {gap for _, gap in phy.bursts[1:]} == {48}, "12 bytes between frames"
    assert monitor.frames == [(frame, False) for frame in given]
    assert not any(pulses.count.values())


@cocotb.test()
async def extra_rmii_bad_frames_are_named(dut):
    random = rng("rmii bad")
    dut.s_axis_tvalid.value = 0
    phy = RmiiPhy(dut, 100)
    await start(dut, {"clk": 20000}, ["rst"])
    monitor, pulses = listen(dut, dut.clk)
    await phy.send(on_wire(random.randbytes(80)), 2, 2, error_at=200)
    await phy.send(spoil(random, on_wire(random.randbytes(80))), 0, 0)
    await phy.send(on_wire(bytes(80)), 1, 0)
    await ClockCycles(dut.clk, 20)
    assert monitor.frames[-1] == (bytes(80), False)
    assert pulses.count == {"stat_error": 1, "stat_runt": 0, "stat_oversize": 0, "stat_bad_fcs": 1}
