"""FADC streaming: a crate with samples that the test chooses, against the model."""

import pytest
from support import fadc_model as model
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, package_constants, rng, run
from support.fadc_crate import Crate, add_pulse, baseline, expected
from support.sweep import long


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        long("extra_fadc", {"SAMPLES": 1, "MODULES": 2, "CHANNELS": 2, "LINKS": 1, "WINDOWS": 64}),
        long("extra_fadc", {"SAMPLES": 1, "MODULES": 4, "CHANNELS": 3, "LINKS": 2}),
        # A window of 8 ticks has less clocks than its message: the buffer takes what comes.
        long("extra_fadc", {"SAMPLES": 2, "MODULES": 2, "CHANNELS": 2, "LINKS": 1, "WINDOWS": 512, "BITS": 13}),
        ("extra_fadc", {"SAMPLES": 2, "MODULES": 4, "CHANNELS": 3, "LINKS": 2, "WINDOWS": 512, "BITS": 13}),
        long("extra_fadc", {"SAMPLES": 4, "MODULES": 2, "CHANNELS": 2, "LINKS": 1, "WINDOWS": 512, "BITS": 13}),
        long("extra_fadc", {"SAMPLES": 4, "MODULES": 4, "CHANNELS": 3, "LINKS": 2, "WINDOWS": 512, "BITS": 13}),
    ],
)
def test_fadc(toplevel, parameters):
    run("fadc", parameters, toplevel, optimize=True)


def test_package_agrees():
    package = package_constants("fadc/fadc_pkg.sv")
    for name, value in model.C.items():
        if name != "event_version":
            assert package[name.upper()] == value, name


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
