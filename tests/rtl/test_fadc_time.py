"""FADC streaming: windows that follow a time, which runs beside the crate's oscillator or is set."""

from fractions import Fraction

import pytest
from cocotb.triggers import NextTimeStep
from support import fadc_model as model
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, rng, run
from support.fadc_crate import PULSE, Crate


@pytest.mark.long
@pytest.mark.parametrize("samples,links", [(2, 2), (1, 1), (4, 1)])
def test_windows_follow_a_time(samples, links):
    parameters = {"SAMPLES": samples, "MODULES": 2, "CHANNELS": 2, "LINKS": links, "BITS": 13, "WINDOWS": 512, "FOLLOW": 1}
    run("fadc_time", parameters, "extra_fadc", tests="follow", optimize=True)


class Time:
    """What a clock with an oscillator that is wrong by `ppm` sees of a time that is right: ns at each of its clocks."""

    def __init__(self, dut, ns, ppm):
        self.dut, self.ns, self.step = dut, Fraction(ns), Fraction(4 * dut.SAMPLES.value.to_unsigned()) * (1 + Fraction(ppm, 10**6))

    def give(self):
        """Of the clock that begins: the time of its first sample."""
        self.ns += self.step
        self.dut.time_now.value = int(self.ns) // 10**9 << 32 | int(self.ns) % 10**9
        return int(self.ns)


async def follow(crate, time, window_ticks, pulses, clocks):
    """Runs a crate for so many clocks with pulses at their times. {record: [absolute times]}, messages, windows off."""
    dut, off = crate.dut, 0
    dut.time_locked.value = 0
    time.give()
    await crate.begin(window_ticks)
    for name, value in (("start", 1), ("time_locked", 0)):
        getattr(dut, name).value = value
    waiting, recent = sorted(pulses), []
    sample = time.step / crate.a_clock
    for clock in range(clocks):
        now = time.give()
        rows = []
        for i in range(crate.a_clock):
            if waiting and waiting[0] <= now + i * sample:
                recent.append((waiting.pop(0), 0))
            recent = [(begun, age) for begun, age in recent if age < len(PULSE)]
            level = model.PEDESTAL + sum(2000 * PULSE[age] >> 6 for _, age in recent)
            recent = [(begun, age + 1) for begun, age in recent]
            rows.append([level] * (crate.shape[0] * crate.shape[1]))
        crate.give(rows)
        await RisingEdge(dut.clk)
        dut.start.value = 0
        dut.time_locked.value = int(clock > 200)
        await ReadOnly()
        off += int(dut.event_off.value)
        await NextTimeStep()
    dut.enable.value = 0
    crate.give([])
    await ClockCycles(dut.clk, 3000)
    crate.collector.cancel()
    hits, _, messages = crate.windows(window_ticks)
    return {record: [record * window_ticks * 4 + hit[2] * 4 for hit in found] for record, found in hits.items()}, messages, off


@cocotb.test()
async def follow_windows_keep_the_time(dut):
    """Window n is from n to n + 1 times its length, of PTP's time, with oscillators that are wrong: pulses have the time at which they were."""
    random = rng("follow", dut.SAMPLES.value.to_unsigned())
    begin, again = 1_800_000_000 * 10**9 - 40_000, False
    for window_ticks, ppm in ((32, 0), (32, 100), (1000, -100), (4096, 60), (16384, 100), (16384, -100), (20000, -37)):
        length = 4 * window_ticks
        duration = max(5 * length, 100_000)
        # Over the border of a second, at any place of a window but for its last ticks.
        pulses, at = [], begin + 60_000
        while at < begin + duration - 2000:
            pulses.append(at)
            at += random.randrange(200, 4000)
        crate = Crate(dut, None)
        crate_begin = crate.begin
        crate.begin = lambda ticks, again=again: crate_begin(ticks, again=again)
        again = True
        hits, messages, off = await follow(
            crate, Time(dut, begin + random.randrange(20_000), ppm), window_ticks, pulses, duration // (4 * crate.a_clock)
        )
        assert off == 0, (window_ticks, ppm, off)
        for found in messages:
            records = [message.record for message in found]
            assert records == list(range(records[0], records[0] + len(records))) and len(records) >= 3
            assert all(message.record * length == message.sec * 10**9 + message.nsec for message in found)
        times = {at for found in hits.values() for at in found}
        first = (min(hits) + 1) * length
        wanted = [at for at in pulses if first < at < max(hits) * length]
        assert len(wanted) > 5
        for at in wanted:
            nearest = min(times, key=lambda time: abs(time - at))
            # A sample comes up to a tick after the pulse; the ticks are within one of the time.
            assert -5 <= nearest - at <= 9, (window_ticks, ppm, at, nearest - at)


@cocotb.test()
@cocotb.parametrize(by=[5000, -100, 10**9, -65536 * 10**9])
async def follow_a_time_that_is_set_is_told(dut, by):
    """Behind it windows are counted as off, until the next start."""
    crate = Crate(dut, None)
    time = Time(dut, 10**15, 20)
    begin = time.ns

    def jump():
        if time.ns > begin + 60_000 and not jumped:
            jumped.append(time.ns)
            time.ns += by
        return False

    jumped = []
    crate_begin = crate.begin
    crate.begin = lambda ticks: crate_begin(ticks, stall=jump)
    _, messages, off = await follow(crate, time, 250, [], 100_000 // (4 * crate.a_clock))
    assert jumped and 38 <= off <= 41, off  # of 1 us each
    assert len(messages[0]) > 50
