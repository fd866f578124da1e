"""FADC streaming: whole crates, 16 modules of 16 channels, over TCP, against the model."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from support import fadc_model as model
from support.block import SEED
from support.fadc_crate import PULSE
from support.paths import TOP
from support.sweep import long


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
        long("gmii", 524288, 1, 1e4, ("--first-window", 2**40)),
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


@pytest.mark.long
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
