"""FADC streaming from crates in software, on loopback, to files and ZeroMQ, by `fadelink build`."""

import json
import os
import random
import resource
import socket
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request

import h5py
import pyarrow.parquet
import pytest
import zmq
from support import fadc_model as model
from support.broker import free_ports
from support.crate import WINDOW_NS, Crate, hits_of, reasons
from support.faults.site import environment
from support.files import read_hits
from support.netns import PATIENCE, wait_for
from support.paths import FADELINK, SEED


def health(port):
    """What a program with `--metrics` says of itself, as soon as it is ready."""
    while True:
        try:
            found = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/health"))
        except urllib.error.HTTPError as error:
            found = json.load(error)
        except urllib.error.URLError:
            continue
        if "it is not ready yet" not in found["troubles"]:
            return found


def test_crate_that_is_gone_for_a_while(build, tmp_path):
    """Windows go on without it and say so; when it is back, with it again. What is inside a cut message is counted."""
    out = tmp_path / "out.hdf5"
    builder = build("--sources", "1,2", "--silence", 3, "--streams", 3, "--sink", f"hdf5:{out},every=3600")
    one, two = Crate(builder.port, 1), Crate(builder.port, 2)
    one.send(*range(20))
    two.send(*range(10))
    half = model.message(2, 10, hits_of(2, 10))
    two.send(raw=half[:40])
    two.close()
    one.send(*range(20, 30))
    builder.wait_for("events", count=30)
    one.send(30, 31)
    builder.wait_for("events", count=32)
    again = Crate(builder.port, 2)
    # It goes on inside a message, as a TCP sender does whose connection broke.
    again.send(raw=half[40:])
    again.send(*range(35, 40))
    builder.wait_for_source(2, "messages", 15)
    one.send(*range(32, 40))
    one.close()
    again.close()
    status, found, err = builder.finish()
    assert status == 3, err
    hits, windows = read_hits(out, complete=False)
    missing = {n for n in range(40) if 10 <= n < 35}
    assert sorted(hits) == list(range(40))
    for number, found_hits in hits.items():
        sources = (1,) if number in missing else (1, 2)
        assert found_hits == sorted((source, *hit) for source in sources for hit in hits_of(source, number)), number
    assert set(windows["window"][windows["missing"] == 1].tolist()) == missing
    assert found["windows"] == {"complete": 15, "incomplete": 25, "dropped": 0, "late": 0}
    source = found["sources"]["0x00000002"]
    assert (source["missing"], source["absences"], source["sessions"], source["late"]) == (25, 1, 2, 0)
    cut = [connection["cut_bytes"] for connection in found["connections"]]
    skipped = [connection["skipped_bytes"] for connection in found["connections"]]
    assert sum(cut) == 40 and sum(skipped) == len(half) - 40


def test_events_that_were_not_synced_are_not_intact(build, tmp_path):
    """The messages of a file are written, and then the disk fails as they are synced: the report counts those of files before alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    env = environment(disk=disk, only_sync=True)
    builder = build("--expect", 1, "--sink", f"file:{disk}/messages,every=0.2", env=env)
    crate = Crate(builder.port, 1)
    crate.send(*range(5))
    status, found, err = builder.finish()
    (sink,) = found["sinks"]
    assert status == 3 and "Input/output error" in err and "intact" not in err, err
    assert sink["intact"] == 0 < sink["written"] and not list(disk.glob("messages")), found
    crate.close()


def test_the_end_does_not_wait_for_a_crate_that_is_gone(build, tmp_path):
    """A crate that lost its power leaves its connection open, inside a message."""
    out = tmp_path / "out.hdf5"
    builder = build("--expect", 1, "--sink", f"hdf5:{out},every=3600")
    crate = Crate(builder.port, 1)
    crate.send(*range(5))
    half = model.message(1, 5, hits_of(1, 5))[:40]
    crate.send(raw=half)
    builder.wait_for_source(1, "messages", 5)
    status, found, err = builder.stop()
    connection = found["connections"][0]
    assert status == 3 and "nothing came for 5 s" in err, err
    assert connection["ended"] and connection["messages"] == 5 and connection["cut_bytes"] == len(half)
    assert sorted(read_hits(out, complete=False)[0]) == list(range(5)) and reasons(found) == ["error", "skipped"]
    crate.close()


def test_each_reason_of_crates_is_told(build):
    """What is wrong in the data alone: each crate ends by itself."""

    def behind_a_loss(crate, record):
        return model.message(crate.source, record, words=[1 << 31 | model.C["type_windows_lost"] << 15 | 1 << 5])

    def moved(crate, record):
        data = bytearray(model.message(crate.source, record, hits_of(crate.source, record), WINDOW_NS))
        data[40:48] = struct.pack("<q", 7)
        return bytes(data)

    for expected, options, send in (
        ([], ["--expect", 2], lambda one, two: (one.send(0, 1), two.send(0, 1))),
        (["windows"], ["--expect", 2], lambda one, two: (one.send(0, 1), two.send(0))),
        (["windows"], ["--expect", 3], lambda one, two: (one.send(0), two.send(0))),
        (["windows", "windows_lost"], ["--expect", 2], lambda one, two: (one.send(0, 1, 2), two.send(0), two.send(raw=behind_a_loss(two, 2)))),
        (["wrong_time"], ["--expect", 2], lambda one, two: (one.send(0), two.send(raw=moved(two, 0)))),
        (["skipped"], ["--expect", 2], lambda one, two: (one.send(0), two.send(0), two.send(raw=bytes(8)))),
    ):
        builder = build(*options, "--streams", 2)
        crates = Crate(builder.port, 1), Crate(builder.port, 2)
        send(*crates)
        for crate in crates:
            crate.close()
        status, found, err = builder.finish()
        assert reasons(found) == expected and found["verdict"] == ("incomplete" if expected else "complete"), (found, err)
    builder = build("--expect", 1)
    Crate(builder.port, 1).close()
    status, found, err = builder.stop()
    assert status == 3 and reasons(found) == ["no_end"], "nothing came"


def test_connections_that_come_and_go(build):
    """Each takes its descriptors with it; when there are none, crates are accepted again as soon as some are free."""
    limit = 48
    builder = build("--expect", 1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    for record in range(2 * limit):
        crate = Crate(builder.port, 1)
        crate.send(record)
        crate.close()
        builder.wait_for_source(1, "messages", record + 1)
    # More than it can have: those that it could not take wait in the kernel.
    crates = [Crate(builder.port, 1) for _ in range(limit)]
    wait_for(lambda: "could not be accepted" in os.read(builder.popen.stderr.fileno(), 4096).decode())
    for crate in crates[: limit // 2]:
        crate.close()
    crates[-1].send(2 * limit)
    for crate in crates[limit // 2 :]:
        crate.close()
    # Its page needs a descriptor, too.
    builder.wait_for_source(1, "messages", 2 * limit + 1)
    status, found, err = builder.stop()
    assert found["refused"] > 0 and found["events"] == 2 * limit + 1, (found, err)


# What is wrong with the header of a message: place, value, what the program says.
BAD_HEADERS = {
    "more than its payload": (4, 48 + 64, "total_length 112"),
    "a length that nobody has": (4, 1 << 27, "total_length 134217728"),
    "no length": (4, 0, "total_length 0"),
    "compressed": (12, 5, "compressed_length 5"),
    "another version": (20, 9, "format_version 9"),
    "nanoseconds": (40, 1_000_000_000, "nanoseconds 1000000000"),
    "big-endian": (16, 0x1920DAC0, "magic 0x1920dac0"),
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_message_that_cannot_be_is_missing_and_swallows_no_other(build, tmp_path, name):
    place, value, told = BAD_HEADERS[name]
    out = tmp_path / "out.hdf5"
    builder = build("--sources", "1,2", "--streams", 2, "--sink", f"hdf5:{out},every=3600")
    one, two = Crate(builder.port, 1), Crate(builder.port, 2)
    bad = bytearray(model.message(1, 1, [], WINDOW_NS))
    bad[place : place + 4] = value.to_bytes(4, "little")
    one.send(0)
    one.send(2, 3, raw=bytes(bad))
    two.send(0, 1, 2, 3)
    one.close()
    two.close()
    status, found, err = builder.finish()
    assert status == 3 and found["windows"]["complete"] == 3 and found["windows"]["incomplete"] == 1, (found, err)
    assert found["sources"]["0x00000001"]["messages"] == 3 and found["sources"]["0x00000001"]["missing"] == 1, found
    skipped = [connection["skipped"] for connection in found["connections"] if connection["skipped"]]
    assert len(skipped) == 1 and told in skipped[0] and told in err, (skipped, err)
    with h5py.File(out) as file:
        assert file["windows/missing"][:].tolist() == [0, 1, 0, 0]


def test_late_missing_and_duplicate_by_policy(build, tmp_path):
    for keep in (False, True):
        out = tmp_path / f"out{keep}.hdf5"
        policy = ("--late", "emit", "--missing", "drop", "--duplicate", "last") if keep else ()
        builder = build("--sources", "1,2", "--silence", 3, "--streams", 2, "--sink", f"hdf5:{out},every=3600", *policy)
        one, two = Crate(builder.port, 1), Crate(builder.port, 2)
        one.send(0)
        one.send(0, hits=[(3, 1, 1, 1)])
        one.send(1)
        builder.wait_for_source(1, "duplicate", 1)  # else what the other sends may overtake it
        two.send(0)
        builder.wait_for_source(2, "absences", 1)  # window 1 leaves without 2
        builder.wait_for_source(2, "missing", 1)
        two.send(1)
        builder.wait_for_source(2, "late", 1)  # 2 is waited for again
        one.send(2)
        builder.wait_for_source(1, "messages", 3)  # else 1, silent all the time, is not waited for
        two.send(2)
        one.close()
        two.close()
        status, found, err = builder.finish()
        assert status == 3, err
        assert found["sources"]["0x00000001"]["duplicate"] == 1 and found["sources"]["0x00000002"]["late"] == 1
        _, windows = read_hits(out, complete=False)
        assert windows["window"].tolist() == [0, 1, 2] and reasons(found) == ["windows", "late", "duplicate"]
        with h5py.File(out) as file:
            first = [tuple(file["hits"][name][i] for name in ("slot", "channel", "tick", "charge")) for i in range(len(file["hits/window"]))
                     if file["hits/window"][i] == 0 and file["hits/source"][i] == 1]  # fmt: skip
            ones = {int(s) for w, s in zip(file["hits/window"], file["hits/source"], strict=True) if w == 1}
        assert first == ([(3, 1, 1, 1)] if keep else hits_of(1, 0))
        # Dropped was the window without 2; emitted is what source 2 sent too late.
        assert ones <= ({2} if keep else {1})
        counts = {"complete": 2, "incomplete": 0, "dropped": 1, "late": 1} if keep else {"complete": 2, "incomplete": 1, "dropped": 0, "late": 0}
        assert found["windows"] == counts


def test_many_crates_in_any_order(build, tmp_path):
    """Twelve crates at their own pace, some far ahead: no window is lost and none is doubled."""
    crates, windows = 12, 400
    out = tmp_path / "out.hdf5"
    builder = build("--expect", crates, "--silence", 30, "--max-open", 50, "--streams", crates, "--sink", f"hdf5:{out},every=3600")

    def run(source):
        r = random.Random(f"{SEED}/{source}")
        crate = Crate(builder.port, source)
        record = 0
        while record < windows:
            step = r.randrange(1, 40)
            crate.send(*range(record, min(record + step, windows)))
            record += step
            time.sleep(r.random() * 0.02)  # a pace of its own
        crate.close()

    threads = [threading.Thread(target=run, args=(source,)) for source in range(1, crates + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    status, found, err = builder.finish()
    assert status == 0, (found, err)
    hits, _ = read_hits(out)
    assert hits == {n: sorted((s, *hit) for s in range(1, crates + 1) for hit in hits_of(s, n)) for n in range(windows)}


def test_windows_by_time(build, tmp_path):
    """A crate that was restarted counts from 0 again; by time its windows are still the right ones, and have their numbers."""
    out = tmp_path / "out.hdf5"
    builder = build("--sources", "1,2", "--join", "time", "--streams", 2, "--sink", f"hdf5:{out}")
    one, two = Crate(builder.port, 1), Crate(builder.port, 2)
    base = 1_700_000_000 * 10**9 // WINDOW_NS
    for n in range(5):
        ns = (base + n) * WINDOW_NS
        crates = ((one, n), (two, 1000 + n))
        for crate, counter in crates if n % 2 else reversed(crates):
            data = bytearray(model.message(crate.source, counter))
            data[32:48] = struct.pack("<qq", *divmod(ns, 10**9))
            crate.send(raw=bytes(data))
    one.close()
    two.close()
    status, found, err = builder.finish()
    assert status == 0 and found["windows"]["complete"] == 5, (found, err)
    with h5py.File(out) as file:
        assert file["windows/window"][:].tolist() == list(range(base, base + 5))


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_crate_that_connects_again_goes_on_behind_what_it_has_sent(build, tmp_path, is_closed):
    """What came over its last connection waits for room: what comes over the next one does not overtake it."""
    builder = build("--sources", "1,2", "--max-open", 100, "--silence", PATIENCE, "--streams", 3)
    one, two = Crate(builder.port, 1), Crate(builder.port, 2)
    one.send(*range(500))
    if is_closed:
        one.close()
    again = Crate(builder.port, 1)
    again.send(*range(500, 1000))
    one.close()
    builder.wait_for_source(1, "messages", 100)
    for first in range(0, 1000, 10):
        two.send(*range(first, first + 10))
    again.close()
    two.close()
    status, found, err = builder.finish()
    assert status == 0 and found["windows"]["complete"] == 1000, (found, err)


@pytest.mark.parametrize("kind,options,told", [("push", "", ["unconfirmed"]), ("push", ",policy=drop", []), ("pub", "", [])])
def test_what_zeromq_was_given_is_handed_over(build, tmp_path, zeromq, kind, options, told):
    """Nobody says whether a client has it, so it is not written, and the run is complete only if the sink may lose it."""
    endpoint = f"ipc://{tmp_path}/{kind}"
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-{kind}:{endpoint}{options}")
    wait_for(lambda: os.path.exists(tmp_path / kind))
    client = zeromq.socket(zmq.PULL if kind == "push" else zmq.SUB)
    if kind == "pub":
        client.subscribe(b"")
    client.connect(endpoint)
    crate = Crate(builder.port, 1)
    for record in range(5):
        crate.send(record, hits=[(3, 0, 1, 1)])
    crate.close()
    status, found, err = builder.finish()
    (sink,) = found["sinks"]
    assert (sink["written"], sink["handed_over"], sink["error"]) == (0, 5, None), (found, err)
    assert reasons(found) == told and status == (3 if told else 0), (found, err)


def test_push_without_a_client_holds_the_crate_up(build, tmp_path, zeromq):
    """A sink that takes nothing: the builder waits, then the connection; nothing is discarded."""
    endpoint = f"ipc://{tmp_path}/push"
    (port,) = free_ports(1)
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-push:{endpoint}", "--max-open", 16, "--metrics", f"127.0.0.1:{port}")
    assert health(port)["healthy"], "nobody is there, and nothing waits"
    crate = Crate(builder.port, 1)
    crate.socket.settimeout(1)
    crate.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    records = 0
    with pytest.raises(TimeoutError):
        while records < 1_000_000:
            crate.send(records, hits=[(3, 0, tick, 1) for tick in range(1000)])
            records += 1
    wait_for(lambda: not health(port)["healthy"], 30)
    assert health(port)["troubles"] == [f"zmq-push:{endpoint}: it has taken nothing for 10 s, and data waits for it"]
    client = zeromq.socket(zmq.PULL)
    client.connect(endpoint)
    for number in range(records):
        assert client.poll(10000), number
        assert model.read_event(client.recv())[0].record == number
    wait_for(lambda: health(port)["healthy"])
    crate.close()
    status, found, _ = builder.finish()
    assert found["windows"]["complete"] == records, "the last one was cut by the test's time-out"


@pytest.mark.parametrize(
    "words,told",
    [
        (["--tcp", 1], "--window-ns"),
        (["--tcp", 1, "--window-ns", 30], "expected 32 to 524288"),
        (["--tcp", 1, "--window-ns", 4098], "a multiple of 4"),
        (["--window-ns", 4096], "either --tcp PORT or --kafka"),
        (["--tcp", 1, "--kafka", "a:1", "--window-ns", 4096], "either --tcp PORT or --kafka"),
        (["--kafka", "a:1", "--window-ns", 4096, "--sink", "hdf5:x"], "--events-topic"),
        (["--tcp", 1, "--window-ns", 4096, "--sink", "tape:x"], "sink `tape`"),
        (["--tcp", 1, "--window-ns", 4096, "--sources", "x"], "expected a number"),
        (["--tcp", 1, "--window-ns", 4096, "--expect", 0], "expected 1 to 65536"),
        (["--tcp", 1, "--window-ns", 4096, "--expect", 1, "--sink", "hdf5:/nowhere/x"], "hdf5:/nowhere/x"),
    ],
)
def test_wrong_arguments(words, told):
    done = subprocess.run([str(word) for word in (FADELINK, "build", *words)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (1, 2) and told in done.stderr, done.stderr


def test_words_that_cannot_be(build, tmp_path):
    """A payload that breaks the rules is counted and told with window, source and word; all others are in the files."""
    files = [f"{tmp_path}/x.{kind}" for kind in ("hdf5", "parquet")]
    sinks = [word for file in files for word in ("--sink", f"{file.split('.')[-1]}:{file},every=3600")]
    builder = build("--sources", "1", "--streams", 1, *sinks)
    crate = Crate(builder.port, 1)
    for record in range(6, 10):
        words = [0x8000_8003, 5]  # the header of slot 3, a hit
        crate.send(raw=model.message(1, record, words=[0x1234, *words] if record == 7 else words))
    crate.close()
    out, err = builder.popen.communicate(timeout=PATIENCE)
    assert builder.popen.returncode == 3 and reasons(json.loads(out)) == ["wrong_messages"], err
    assert "the first wrong message: window 7, source 0x00000001: word 0: a hit without a slot" in err, err
    assert [(sink["written"], sink["error"]) for sink in json.loads(out)["sinks"]] == [(4, None)] * 2
    with h5py.File(files[0]) as file:
        hits, windows = file["hits/window"][:].tolist(), file["windows/lost"][:].tolist()
    assert (hits, windows) == ([6, 8, 9], [0, 1, 0, 0])
    assert pyarrow.parquet.read_table(files[1])["window"].to_pylist() == [6, 8, 9]
