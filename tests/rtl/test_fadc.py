"""FADC streaming: the crate's blocks with samples that the test chooses, and whole crates against the model."""

import json
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cocotb.triggers import NextTimeStep
from support import fadc_model as model
from support.block import SEED, ClockCycles, ReadOnly, RisingEdge, cocotb, package_constants, rng, run, start
from support.paths import TOP
from support.sweep import long

PULSE = [24, 64, 46, 24, 11, 4, 1]  # in 64ths


# --- Blocks ---


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("extra_fadc", {"SAMPLES": 1, "MODULES": 2, "CHANNELS": 2, "LINKS": 1, "WINDOWS": 64}),
        long("extra_fadc", {"SAMPLES": 1, "MODULES": 4, "CHANNELS": 3, "LINKS": 2}),
        # A window of 8 ticks has less clocks than its message: the buffer takes what comes.
        long("extra_fadc", {"SAMPLES": 2, "MODULES": 2, "CHANNELS": 2, "LINKS": 1, "WINDOWS": 512, "BITS": 13}),
        ("extra_fadc", {"SAMPLES": 2, "MODULES": 4, "CHANNELS": 3, "LINKS": 2, "WINDOWS": 512, "BITS": 13}),
        long("extra_fadc", {"SAMPLES": 4, "MODULES": 2, "CHANNELS": 2, "LINKS": 1, "WINDOWS": 512, "BITS": 13}),
        long("extra_fadc", {"SAMPLES": 4, "MODULES": 4, "CHANNELS": 3, "LINKS": 2, "WINDOWS": 512, "BITS": 13}),
        ("fadc_hit_queue", {"DEPTH": 4}),
        ("fadc_builder", {"MODULES": 3, "MAX_WORDS": 512}),
    ],
)
def test_fadc_blocks(toplevel, parameters):
    run("fadc", parameters, toplevel, optimize=True)


@pytest.mark.long
@pytest.mark.parametrize("samples,links", [(2, 2), (1, 1), (4, 1)])
def test_windows_follow_a_time(samples, links):
    parameters = {"SAMPLES": samples, "MODULES": 2, "CHANNELS": 2, "LINKS": links, "BITS": 13, "WINDOWS": 512, "FOLLOW": 1}
    run("fadc", parameters, "extra_fadc", tests="follow", optimize=True)


@pytest.mark.long
def test_netlist():
    """What Yosys makes of the builder does the same."""
    run("fadc", {"MODULES": 3, "MAX_WORDS": 512}, "fadc_builder", netlist=True)


def test_package_agrees():
    package = package_constants("fadc/fadc_pkg.sv")
    for name, value in model.C.items():
        if name != "event_version":
            assert package[name.upper()] == value, name


class Crate:
    """extra_fadc with samples from an array [sample, module * channel], behind it the pedestal."""

    def __init__(self, dut, samples):
        self.dut, self.samples = dut, samples
        self.shape = (dut.MODULES.value.to_unsigned(), dut.CHANNELS.value.to_unsigned())
        self.links = len(dut.m_axis_tvalid)
        self.a_clock = dut.SAMPLES.value.to_unsigned()
        self.streams = [bytearray() for _ in range(self.links)]
        self.messages = [0] * self.links

    async def begin(self, window_ticks, limit=0, keepalive=0, record=5, sec=10, nsec=999_999_000, module_enable=None, stall=None, again=False):
        dut = self.dut
        modules = self.shape[0]
        for name, value in dict(
            start=0, enable=1, start_record=record, start_sec=sec, start_nsec=nsec, window_ticks=window_ticks, keepalive=keepalive,
            limit=limit, module_enable=(1 << modules) - 1 if module_enable is None else module_enable, config_valid=0,
            config_all=0, config_module=0, config_channel=0, config_item=0, config_value=0, m_axis_tready=(1 << self.links) - 1,
        ).items():  # fmt: skip
            getattr(dut, name).value = value
        self.give([])
        await self.reset(again)
        self.collector = cocotb.start_soon(self.collect(stall or (lambda: False)))

    async def reset(self, again):
        dut = self.dut
        if not again:
            await start(dut, {"clk": 4000}, ["rst"])
            return
        dut.rst.value = 1
        await ClockCycles(dut.clk, 20)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 20)

    async def configure(self, item, value, module=None, channel=0):
        dut = self.dut
        dut.config_valid.value = 1
        dut.config_all.value = int(module is None)
        dut.config_module.value = module or 0
        dut.config_channel.value = channel
        dut.config_item.value = item
        dut.config_value.value = value
        await RisingEdge(dut.clk)
        dut.config_valid.value = 0

    def give(self, rows):
        """The samples of a clock: a row for each time."""
        modules, channels = self.shape
        rows = [*rows, *[[model.PEDESTAL] * (modules * channels)] * (self.a_clock - len(rows))]
        value = 0
        for m in range(modules):
            for i, row in enumerate(rows):
                for c in range(channels):
                    value |= int(row[m * channels + c]) << 12 * ((m * self.a_clock + i) * channels + c)
        self.dut.samples.value = value

    async def play(self):
        """All samples from the start on; then waits until all is out."""
        dut = self.dut
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        for at in range(0, len(self.samples), self.a_clock):
            self.give(self.samples[at : at + self.a_clock])
            await RisingEdge(dut.clk)
        self.give([])
        for _ in range(20000):
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(dut.idle.value) == (1 << self.links) - 1 and int(dut.m_axis_tvalid.value) == 0:
                break
            await RisingEdge(dut.clk)
        else:
            raise AssertionError("it is not idle in the end")
        await RisingEdge(dut.clk)
        self.collector.cancel()

    async def collect(self, stall):
        dut = self.dut
        while True:
            dut.m_axis_tready.value = sum((not stall()) << i for i in range(self.links))
            # What is taken at the next edge.
            await ReadOnly()
            valid, ready, last = (int(getattr(dut, f"m_axis_{name}").value) for name in ("tvalid", "tready", "tlast"))
            data = int(dut.m_axis_tdata.value)
            for i in range(self.links):
                if valid >> i & 1 and ready >> i & 1:
                    self.pending = True
                    self.streams[i] += (data >> (64 * i) & (1 << 64) - 1).to_bytes(8, "little")
                    self.messages[i] += last >> i & 1
            await RisingEdge(dut.clk)

    def counter(self, index):
        return sum(int(self.dut.counters.value) >> (32 * (9 * link + index)) & 0xFFFFFFFF for link in range(self.links))

    def windows(self, window_ticks):
        """({record: sorted hits}, {record: flags}, messages) of all links."""
        hits, flags, messages = {}, {}, []
        for i, stream in enumerate(self.streams):
            found = model.read_messages(bytes(stream))
            assert len(found) == self.messages[i], "tlast ends each message"
            assert all(message.source == 0xC0DA0001 + i for message in found)
            assert [m.record for m in found] == sorted({m.record for m in found})
            for message in found:
                got, told = model.read_hits(message, window_ticks)
                hits.setdefault(message.record, []).extend(got)
                flags.setdefault(message.record, {}).update(told)
            messages.append(found)
        return {record: sorted(got) for record, got in hits.items()}, flags, messages


def baseline(dut, count):
    return np.full((count, dut.MODULES.value.to_unsigned() * dut.CHANNELS.value.to_unsigned()), model.PEDESTAL)


def add_pulse(samples, column, tick, amplitude):
    for i, part in enumerate(PULSE):
        if tick + i < len(samples):
            samples[tick + i, column] = min(samples[tick + i, column] + (amplitude * part >> 6), 4095)


def expected(samples, channels, window_ticks, windows, first=5, **settings):
    hits = model.find_hits(np.vstack([samples, np.full((16, samples.shape[1]), model.PEDESTAL)]), channels, **settings)
    return model.hits_by_window(hits, window_ticks, windows, first)


@cocotb.test()
async def extra_fadc_random_pulses(dut):
    """Any pulses, any window lengths, an output that stalls: what the model says, in the right window."""
    r = rng("random", dut.LINKS.value.to_unsigned())
    a_clock = dut.SAMPLES.value.to_unsigned()
    shortest = max(8, 4 * a_clock)
    for window_ticks in (shortest, shortest + 1, 100):
        windows = 3000 // window_ticks
        samples = baseline(dut, windows * window_ticks)
        # The builder has the clocks for so many.
        for _ in range(300 // a_clock):
            add_pulse(samples, r.randrange(samples.shape[1]), r.randrange(1, len(samples)), r.randrange(10, 5000))
        crate = Crate(dut, samples)
        await crate.begin(window_ticks, windows, stall=lambda: r.random() < 0.3, again=window_ticks > shortest)
        await crate.play()
        got, flags, messages = crate.windows(window_ticks)
        want = expected(samples, crate.shape[1], window_ticks, windows)
        assert got == want and not any(flags.values())
        for found in messages:
            assert [message.record for message in found] == list(range(5, 5 + windows)), "each window has a message"
            for message in found:
                ns = 10_999_999_000 + (message.record - 5) * window_ticks * 4
                assert (message.sec, message.nsec) == divmod(ns, 10**9)
        assert crate.counter(0) == sum(map(len, want.values())) and crate.counter(7) == windows * crate.links


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


@cocotb.test()
async def extra_fadc_slices_shorter_than_a_clock(dut):
    """A window of a slice and a few ticks: the last slice may begin and end in one clock, wherever the clock's samples begin."""
    r = rng("short slices", dut.LINKS.value.to_unsigned())
    if dut.CHANNELS.value.to_unsigned() == 3:
        return  # once for each number of samples, for it takes a second
    slice_ticks = model.C["slice_ticks"]
    for more in range(1, 4):
        window_ticks, windows = slice_ticks + more, 3
        samples = baseline(dut, windows * window_ticks)
        for begin in range(0, windows * window_ticks, window_ticks):
            for column in range(samples.shape[1]):
                for tick in (begin + r.randrange(2, 40), begin + slice_ticks - r.randrange(9, 40), begin + slice_ticks + r.randrange(-1, more)):
                    add_pulse(samples, column, min(tick, len(samples) - 1), r.randrange(500, 2000))
        crate = Crate(dut, samples)
        await crate.begin(window_ticks, windows, again=more > 1)
        await crate.play()
        got, flags, _ = crate.windows(window_ticks)
        want = expected(samples, crate.shape[1], window_ticks, windows)
        assert got == want and not any(flags.values())
        assert any(hit[2] >= slice_ticks for hits in want.values() for hit in hits)


@cocotb.test()
async def extra_fadc_hits_on_edges(dut):
    """The first and the last tick of a window, of a slice, and of the run; a pulse whose charge goes on in the next window."""
    window_ticks = 64
    samples = baseline(dut, 10 * window_ticks)
    for tick in (1, 63, 64, 127, 128, 191, 200, 256, 639):
        # Exactly at the threshold in its first sample.
        for i, level in enumerate((30, 500, 300, 100, 40, 10, 5)):
            if tick + i < len(samples):
                samples[tick + i, tick % samples.shape[1]] = model.PEDESTAL + level
    crate = Crate(dut, samples)
    await crate.begin(window_ticks, 10)
    await crate.play()
    got = crate.windows(window_ticks)[0]
    assert got == expected(samples, crate.shape[1], window_ticks, 10)
    times = sorted((record - 5) * window_ticks + hit[2] for record, hits in got.items() for hit in hits)
    assert times == [1, 63, 64, 127, 128, 191, 200, 256, 639]
    assert all(hit[3] == 985 for record, hits in got.items() for hit in hits if record != 14), "whole charge"


@cocotb.test()
async def extra_fadc_double_pulses(dut):
    """Leading edges 32 ns apart are two hits; closer ones are one, with the charge of both in 32 ns."""
    samples = baseline(dut, 400)
    for tick, apart in ((10, 8), (100, 7), (200, 3), (300, 9)):
        for begin in (tick, tick + apart):
            samples[begin, 1] += 200
            samples[begin + 1, 1] += 100
    crate = Crate(dut, samples)
    await crate.begin(400, 1)
    await crate.play()
    hits = crate.windows(400)[0][5]
    assert [(tick, charge) for _, _, tick, charge in hits] == [
        (10, 300), (18, 300), (100, 500), (200, 600), (300, 300), (309, 300)]  # fmt: skip
    assert crate.counter(1) == 2, "pile-up"


@cocotb.test()
async def extra_fadc_settings(dut):
    """Pedestal, threshold and gain of each channel; a gain that saturates; a charge below zero is 0."""
    samples = baseline(dut, 300)
    for i in range(samples.shape[1]):
        samples[20:28, i] = 1000
        samples[100:108, i] = 160
        samples[200, i] = 140
        samples[201:208, i] = 0
    crate = Crate(dut, samples)
    await crate.begin(300, 1)
    await crate.configure(2, 1 << 13)  # gain 0.5 of all channels 0
    await crate.configure(1, 61, module=0, channel=1)  # threshold
    await crate.configure(0, 50, module=1, channel=1)  # pedestal: above the threshold all the time but for one dip
    await crate.configure(2, 0xFFFF, module=1, channel=0)
    await crate.play()
    found = {}
    for slot, channel, tick, charge in crate.windows(300)[0][5]:
        found.setdefault((slot, channel), []).append((tick, charge))
    assert found[3, 0] == [(20, 3600), (100, 240), (200, 0)]
    assert found[3, 1] == [(20, 7200)]
    assert found[4, 0] == [(20, 8191), (100, model.charge(480, 0xFFFF)), (200, 0)]
    # Down in 201..207, so 208 is a leading edge; what was above from the beginning is none.
    assert found[4, 1] == [(208, 400)]


@cocotb.test()
async def extra_fadc_empty_windows(dut):
    """keepalive: so many empty windows in a row are withheld, and never one with a hit."""
    samples = baseline(dut, 50 * 16)
    for window in (3, 20, 21, 40):
        add_pulse(samples, 0, window * 16 + 5, 1000)
    crate = Crate(dut, samples)
    await crate.begin(16, 50, keepalive=9)
    await crate.play()
    records = [message.record - 5 for message in crate.windows(16)[2][0]]
    assert records == [3, 13, 20, 21, 31, 40]
    if crate.links > 1:
        assert [message.record - 5 for message in crate.windows(16)[2][1]] == [9, 19, 29, 39, 49]


@cocotb.test()
async def extra_fadc_output_stands_still(dut):
    """A link that stands still: hits and windows are lost, each loss is told, and what is told adds up."""
    a_clock = dut.SAMPLES.value.to_unsigned()
    window_ticks, windows = 16 * a_clock, 3000
    r = rng("still")
    samples = baseline(dut, windows * window_ticks)
    for tick in range(8, len(samples) - 16, 12 * a_clock):
        for column in range(samples.shape[1]):
            add_pulse(samples, column, tick, r.randrange(500, 2000))
    clock = [0]

    def stall():
        clock[0] += 1
        return 2000 < clock[0] < 30000

    crate = Crate(dut, samples)
    await crate.begin(window_ticks, windows, stall=stall)
    await crate.play()
    got, flags, messages = crate.windows(window_ticks)
    want = expected(samples, crate.shape[1], window_ticks, windows)
    lost_windows = 0
    for found in messages:
        there = {message.record for message in found}
        for message in found:
            told = [word >> 5 & 0x3FF for word in message.words if word >> 31 and word >> 15 & 0xFFFF == model.C["type_windows_lost"]]
            before = 0
            while message.record - 1 - before >= 5 and message.record - 1 - before not in there:
                before += 1
            assert (told or [0])[0] == min(before, model.C["lost_max"])
        lost_windows += windows - len(there)
    assert lost_windows > 100 and crate.counter(6) == lost_windows
    modules = {model.slot_of(m): m % crate.links for m in range(crate.shape[0])}
    for link, found in enumerate(messages):
        for message in found:
            hits, told = model.read_hits(message, window_ticks)
            for slot in (slot for slot in modules if modules[slot] == link):
                wanted = [hit for hit in want[message.record] if hit[0] == slot]
                have = [hit for hit in hits if hit[0] == slot]
                assert set(have) <= set(wanted) and len(have) == len(set(have))
                assert len(wanted) - len(have) == told.get((model.C["type_lost"], slot), 0), message.record


@cocotb.test()
async def extra_fadc_module_that_is_off(dut):
    samples = baseline(dut, 320)
    for column in range(samples.shape[1]):
        add_pulse(samples, column, 50 + column, 1000)
    crate = Crate(dut, samples)
    await crate.begin(64, 5, module_enable=1)
    await crate.play()
    got, flags, _ = crate.windows(64)
    assert {hit[0] for hits in got.values() for hit in hits} == {3} and not any(flags.values())


@cocotb.test()
async def extra_fadc_wrong_window(dut):
    """No window shorter than 32 ns and four clocks, or longer than 524288 ns: nothing begins, and a flag says why."""
    crate = Crate(dut, baseline(dut, 40))
    least = max(8, 4 * dut.SAMPLES.value.to_unsigned())
    for ticks, bad in ((least - 1, 1), (0, 1), (131073, 1), (least, 0), (131072, 0)):
        await crate.begin(ticks, 1, again=ticks != least - 1)
        crate.collector.cancel()
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        await ClockCycles(dut.clk, 2)
        await ReadOnly()
        assert int(dut.bad_window.value) == bad and bool(int(dut.running.value)) == (not bad), ticks
        await RisingEdge(dut.clk)


@cocotb.test()
async def fadc_hit_queue_counts_what_it_cannot_keep(dut):
    r = rng("queue")
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    await start(dut, {"clk": 4000}, ["rst"])
    given, got, number = 0, [], 0
    for turn in range(4000):
        give, take = r.random() < 0.5, r.random() < (0.1 if turn // 500 % 2 else 0.8)
        dut.s_valid.value = int(give)
        dut.s_tick.value = number % 16384
        dut.s_sum.value = 0
        dut.s_frame.value = 0
        dut.m_ready.value = int(take)
        await ReadOnly()
        if take and int(dut.m_valid.value):
            got.append((int(dut.m_tick.value), int(dut.m_lost.value)))
        given += give
        number += give
        await RisingEdge(dut.clk)
    dut.s_valid.value = 0
    dut.m_ready.value = 1
    for _ in range(10):
        await ReadOnly()
        if int(dut.m_valid.value):
            got.append((int(dut.m_tick.value), int(dut.m_lost.value)))
        await RisingEdge(dut.clk)
    # Each entry stands for one hit, or for as many lost ones from it on: together the whole row.
    place = 0
    for tick, lost in got:
        assert tick == place
        place += lost or 1
    assert place == given and sum(lost > 1 for _, lost in got) > 10


class BuilderInputs:
    """Drives fadc_builder: words of modules wait in rows of their own, as inboxes have them."""

    def __init__(self, dut, modules=3):
        self.dut, self.rows, self.modules = dut, [[] for _ in range(modules)], modules
        self.words, self.windows, self.frames, self.now = [], [], [], 0

    async def begin(self):
        dut = self.dut
        for name in ("now", "info_valid", "inbox_valid", "inbox_mark", "inbox_frame", "inbox_hit", "inbox_lost", "keepalive"):
            getattr(dut, name).value = 0
        for name in ("info_first", "info_last", "info_record", "info_sec", "info_nsec", "info_lost", "info_deadline"):
            getattr(dut, name).value = 0
        dut.module_enable.value = (1 << self.modules) - 1
        dut.inbox_ripe.value = (1 << self.modules) - 1
        dut.m_ready.value = 1
        dut.window_ready.value = 1
        await start(dut, {"clk": 4000}, ["rst"])
        cocotb.start_soon(self.drive())

    async def drive(self):
        dut = self.dut
        while True:
            self.now += 1
            dut.now.value = self.now
            heads = [row[0] if row else None for row in self.rows]
            pack = lambda bits, get: sum((get(head) if head else 0) << (bits * i) for i, head in enumerate(heads))
            dut.inbox_valid.value = pack(1, lambda head: 1)
            dut.inbox_mark.value = pack(1, lambda head: int(head[0] == "mark"))
            dut.inbox_frame.value = pack(8, lambda head: head[1])
            dut.inbox_hit.value = pack(31, lambda head: head[2] if head[0] == "hit" else 0)
            dut.inbox_lost.value = pack(10, lambda head: head[2] if head[0] == "mark" else 0)
            dut.info_valid.value = int(bool(self.frames))
            if self.frames:
                for name, value in self.frames[0].items():
                    getattr(dut, f"info_{name}").value = value
            await ReadOnly()
            ready = int(dut.inbox_ready.value)
            taken = [i for i in range(self.modules) if heads[i] and ready >> i & 1]
            if int(dut.m_valid.value):
                self.words.append(int(dut.m_data.value))
            closed = bool(self.frames) and bool(int(dut.info_ready.value))
            if int(dut.window_valid.value) and closed:
                self.windows.append((int(dut.window_record.value), int(dut.window_words.value), self.words))
                self.words = []
            await RisingEdge(dut.clk)
            for i in taken:
                self.rows[i].pop(0)
            if closed:
                self.frames.pop(0)

    def frame(self, number, deadline, record=None, **more):
        info = dict(first=1, last=1, record=number if record is None else record, sec=0, nsec=0, lost=0, deadline=deadline)
        self.frames.append(info | more)

    async def until_closed(self, limit=2000):
        for _ in range(limit):
            if not self.frames:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError("a frame was not closed")


def told(words):
    return [("header", word >> 15 & 0xFFFF, word >> 5 & 0x3FF, word & 31) if word >> 31 else ("hit", word) for word in words]


@cocotb.test()
async def fadc_builder_closes_at_the_marks(dut):
    """A window whose modules have all sent their marks is closed at once, long before its deadline."""
    b = BuilderInputs(dut)
    await b.begin()
    for m, row in enumerate(b.rows):
        row += [("hit", 0, 100 + m), ("mark", 0, 0), ("hit", 1, 200 + m), ("mark", 1, 0)]
    b.frame(0, 100000)
    b.frame(1, 100000)
    await b.until_closed(60)
    assert [window[:2] for window in b.windows] == [(0, 6), (1, 6)]
    for record, _, words in b.windows:
        hits = {(words[i] & 31, words[i + 1]) for i in (0, 2, 4)}
        assert hits == {(model.slot_of(m), 100 * (record + 1) + m) for m in range(3)}
    assert int(dut.timeouts.value) == 0


@cocotb.test()
async def fadc_builder_times_out(dut):
    """A module without a mark: the window leaves at its deadline and says so; what comes later is counted, not misplaced."""
    b = BuilderInputs(dut)
    await b.begin()
    b.rows[0] += [("hit", 0, 7), ("mark", 0, 0)]
    b.rows[1] += [("mark", 0, 3)]
    b.rows[2] += [("hit", 0, 9)]
    deadline = b.now + 300
    b.frame(0, deadline)
    await b.until_closed()
    assert b.now >= deadline
    words = told(b.windows[0][2])
    assert ("header", model.C["type_timeout"], 0, 5) in words and ("header", model.C["type_lost"], 3, 4) in words
    assert ("hit", 7) in words and ("hit", 9) in words and int(dut.timeouts.value) == 1
    # Two hits too late and the mark of that window, then the next window as it should be.
    b.rows[2] += [("hit", 0, 10), ("hit", 0, 11), ("mark", 0, 0), ("hit", 1, 12), ("mark", 1, 0)]
    for row in b.rows[:2]:
        row += [("mark", 1, 0)]
    b.frame(1, b.now + 100000)
    await b.until_closed(100)
    assert told(b.windows[1][2]) == [("header", 1, 0, 5), ("hit", 12)] and int(dut.late.value) == 2
    # One that skips a window has nothing in it, and is not waited for.
    b.rows[0] += [("mark", 2, 0), ("mark", 3, 0)]
    b.rows[1] += [("mark", 2, 0), ("mark", 3, 0)]
    b.rows[2] += [("hit", 3, 13), ("mark", 3, 0)]
    b.frame(2, b.now + 100000)
    b.frame(3, b.now + 100000)
    await b.until_closed(100)
    assert [told(window[2]) for window in b.windows[2:]] == [[], [("header", 1, 0, 5), ("hit", 13)]]


@cocotb.test()
async def fadc_builder_limits_a_window(dut):
    """A window above MAX_WORDS leaves without the rest of its hits, which are counted for their module."""
    b = BuilderInputs(dut)
    await b.begin()
    b.rows[0] += [("hit", 0, 1)] * 1500 + [("mark", 0, 1000)]
    b.rows[1] += [("mark", 0, 0)]
    b.rows[2] += [("mark", 0, 0)]
    b.frame(0, 100000, lost=1023)
    await b.until_closed(4000)
    record, count, words = b.windows[0]
    found = told(words)
    assert count == len(words) <= 512
    assert found[0] == ("header", model.C["type_windows_lost"], 1023, 0)
    hits = sum(word[0] == "hit" for word in found)
    assert int(dut.over.value) == 1500 - hits and hits == int(dut.hits.value) > 300
    assert found[-1] == ("header", model.C["type_lost"], 1023, 3)


@cocotb.test()
async def fadc_builder_slices(dut):
    """Slices of a long window are told apart by a header without a slot."""
    b = BuilderInputs(dut)
    await b.begin()
    for number in range(3):
        b.rows[1] += [("hit", number, 50 + number)]
        for row in b.rows:
            row += [("mark", number, 0)]
        b.frame(number, 100000, record=0, first=int(number == 0), last=int(number == 2))
    await b.until_closed(200)
    assert [window[:2] for window in b.windows] == [(0, 8)]
    assert told(b.windows[0][2]) == [
        ("header", 1, 0, 4), ("hit", 50), ("header", 1, 0, 0), ("header", 1, 0, 4), ("hit", 51),
        ("header", 1, 0, 0), ("header", 1, 0, 4), ("hit", 52)]  # fmt: skip


# --- Whole crates: 16 modules of 16 channels, over TCP, against the model ---


def crate(phy, window_ns, windows, rate, *options, noise=4, seed=SEED, settings=()):
    """(report, {source: messages}) of a run in virtual time with an ideal receiver."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            TOP / "build/sim/fadelink-sim", "--virtual", "--protocol", "fadc", "--phy", phy, "--window-ns", window_ns, "--windows", windows,
            "--pulse-rate", rate, "--pulse-seed", seed, "--noise", noise, "--save", f"{folder}/stream", "--json", *options,
        ]  # fmt: skip
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        streams = [model.read_messages(path.read_bytes()) for path in sorted(Path(folder).iterdir())]
        return json.loads(done.stdout)["boards"][0], {found[0].source: found for found in streams}


def check(streams, window_ticks, windows, data, first=0, lossless=True):
    """Each hit of the model is there once, or its loss is told in its window and slot."""
    want = model.hits_by_window(model.find_hits(data), window_ticks, windows, first)
    lost = 0
    for index, (source, messages) in enumerate(sorted(streams.items())):
        assert source == 0xC0DA0001 + index
        slots = {model.slot_of(m) for m in range(16) if m % len(streams) == index}
        by_record = {message.record: message for message in messages}
        assert len(by_record) == len(messages)
        for record, wanted in want.items():
            wanted = [hit for hit in wanted if hit[0] in slots]
            got, flags = model.read_hits(by_record[record], window_ticks) if record in by_record else ([], {})
            if not flags:
                assert sorted(got) == wanted, f"source {source:08x}, window {record}"
                continue
            assert set(got) <= set(wanted) and len(set(got)) == len(got)
            for slot in slots:
                missing = sum(hit[0] == slot for hit in wanted) - sum(hit[0] == slot for hit in got)
                assert missing == flags.get((model.C["type_lost"], slot), 0), (record, slot)
                lost += missing
    assert lossless == (lost == 0)
    return want, lost


@pytest.mark.parametrize(
    "phy,window_ns,windows,rate,options",
    [
        ("gmii", 32, 1200, 3e4, ()),
        ("gmii", 32, 2500, 2e4, ("--keepalive", 100)),
        ("xgmii", 36, 1500, 1e5, ()),
        ("gmii", 4096, 30, 2e5, ("--up", "loss=0.05,reorder=0.05", "--down", "loss=0.02")),
        ("xgmii", 65536, 2, 5e4, ()),
        ("gmii", 65540, 2, 5e4, ()),
        long("xgmii", 524288, 1, 1e4, ()),
        ("gmii", 524288, 1, 1e4, ("--first-window", 2**40)),
    ],
)
def test_crate_is_as_the_model(phy, window_ns, windows, rate, options):
    """Both ends of the range of windows, every generated hit once, bit by bit."""
    report, streams = crate(phy, window_ns, windows, rate, *options)
    ticks = window_ns // 4
    data, pulses = model.samples(windows * ticks + 16, SEED, model.rate(rate), 4)
    first = options[1] if options[:1] == ("--first-window",) else 0
    want, _ = check(streams, ticks, windows, data, first)
    assert report["hits"] == sum(map(len, want.values())) > 100
    assert len(streams) == (1 if phy == "gmii" else 4)
    for messages in streams.values():
        for message in messages:
            assert message.sec * 10**9 + message.nsec == 1_700_000_000 * 10**9 + message.record * window_ns
    if "--keepalive" not in options:
        assert all([m.record for m in found] == list(range(first, first + windows)) for found in streams.values())


def test_pulses_are_found():
    """What the generator made and a detector should see: each such pulse is one hit, at its time, with its charge."""
    rate, windows, window_ns = 1e5, 20, 4096
    _, streams = crate("gmii", window_ns, windows, rate)
    ticks = window_ns // 4
    _, pulses = model.samples(windows * ticks + 16, SEED, model.rate(rate), 4)
    found = {}
    for message in next(iter(streams.values())):
        for slot, channel, tick, charge in model.read_hits(message, ticks)[0]:
            found.setdefault((slot, channel), []).append((message.record * ticks + tick, charge))
    whole = sum(PULSE) / 64
    seen = 0
    for i, pulse in enumerate(pulses):
        same = [other for other in pulses if other[:2] == pulse[:2] and other is not pulse]
        alone = all(abs(other.tick - pulse.tick) >= 16 for other in same)
        # Well above threshold and noise in its first sample or its second, below what saturates.
        if not alone or not 150 <= pulse.amplitude <= 2900 or pulse.tick + 16 > windows * ticks:
            continue
        seen += 1
        near = [hit for hit in found.get((model.slot_of(pulse.module), pulse.channel), []) if abs(hit[0] - pulse.tick) < 8]
        assert len(near) == 1, (pulse, near)
        assert near[0][0] - pulse.tick in (0, 1), (pulse, near)
        assert abs(near[0][1] - pulse.amplitude * whole) < 60, (pulse, near)
    assert seen > 500


def test_burst_over_the_link_rate():
    """3.5 Gb/s of hits for 300 us on a link of 1 Gb/s: the burst buffer takes them, nothing is lost."""
    windows = 400
    report, streams = crate("gmii", 1024, windows, 1e4, "--burst-rate", 4.5e5, "--burst-every", 1e5, "--burst", 300)
    count = windows * 256 + 16
    rates = np.where(np.arange(count) < 75_000, model.rate(4.5e5), model.rate(1e4))
    data, _ = model.samples(count, SEED, rates, 4)
    check(streams, 256, windows, data)
    assert report["most_buffer_words"] > 5000 and report["hits_lost"] == 0


def test_more_hits_than_can_be_read():
    """A billion hits a second: what is lost is told in its window, for its module, to the hit."""
    report, streams = crate("gmii", 1024, 60, 4e6)
    data, _ = model.samples(60 * 256 + 16, SEED, model.rate(4e6), 4)
    _, lost = check(streams, 256, 60, data, lossless=False)
    assert lost > 1000 and report["windows_lost"] == 0


def test_receiver_that_is_too_slow():
    """A receiver with a small window: whole windows are lost, told in the next one, and counted."""
    windows = 1500
    report, streams = crate("gmii", 32, windows, 1e6, "--receive-window", 4096, "--rtt", 100, "--limit-ms", 2000)
    (messages,) = streams.values()
    before, lost = -1, 0
    for message in messages:
        told = sum(word >> 5 & 0x3FF for word in message.words if word >> 31 and word >> 15 & 0xFFFF == model.C["type_windows_lost"])
        assert told == min(message.record - before - 1, model.C["lost_max"])
        lost += message.record - before - 1
        before = message.record
    assert lost > 100 and report["windows_lost"] == lost + windows - 1 - before
    assert report["messages"] == len(messages)
