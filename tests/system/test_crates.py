"""FADC streaming from simulated crates, and crates in software, to files, ZeroMQ and the page, by `fadelink build`."""

import json
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import h5py
import numpy as np
import pyarrow.parquet
import pytest
import zmq
from support import fadc_model as model
from support.broker import free_ports
from support.crate import WINDOW_NS, Crate, hits_of, report
from support.files import read_hits, stands_still
from support.netns import BOARD, PATIENCE, sh, wait_for
from support.paths import FADELINK, SEED

PORT = 10000


def expected(boards, windows, rate, links=1, seed=1, ticks=WINDOW_NS // 4):
    """The same of the model."""
    out = {n: [] for n in range(windows)}
    for board in range(boards):
        data, _ = model.samples(windows * ticks + 16, seed + board, model.rate(rate), 4)
        for window, hits in model.hits_by_window(model.find_hits(data), ticks, windows).items():
            for slot, *rest in hits:
                module = slot - 3 if slot < 11 else slot - 5
                out[window].append((0xC0DA0001 + (board << 8) + module % links, slot, *rest))
    return {window: sorted(hits) for window, hits in out.items()}


# --- Simulated crates ---


@pytest.mark.parametrize("phy,links", [pytest.param("gmii", 1, marks=pytest.mark.long), ("xgmii", 4)])
def test_two_crates_to_all_sinks(net, phy, links):
    """Every hit of both crates is in every sink exactly once, over a link that loses frames."""
    windows, rate = 60, 1e5
    files = {kind: net.tmp / f"out.{kind}" for kind in ("hdf5", "parquet")}
    endpoints = {kind: f"ipc://{net.tmp}/{kind}" for kind in ("zmq-pub", "zmq-push")}
    sinks = [word for kind, place in (files | endpoints).items() for word in ("--sink", f"{kind}:{place}")]
    builder = net.fadelink("build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--streams", 2 * links, "--expect", 2 * links,
                           "--silence", 60, "--json", *sinks)  # fmt: skip
    wait_for(lambda: os.path.exists(net.tmp / "zmq-push"))
    context = zmq.Context()
    clients = {"zmq-pub": context.socket(zmq.SUB), "zmq-push": context.socket(zmq.PULL)}
    clients["zmq-pub"].subscribe(b"")
    for kind, client in clients.items():
        client.connect(endpoints[kind])
    net.sim("--protocol", "fadc", "--phy", phy, "--boards", 2, "--windows", windows, "--window-ns", WINDOW_NS, "--pulse-rate", rate,
            "--link", "loss=0.005")  # fmt: skip
    events = {kind: [] for kind in clients}
    poller = zmq.Poller()
    for client in clients.values():
        poller.register(client, zmq.POLLIN)
    end = time.monotonic() + PATIENCE
    while any(len(found) < windows for found in events.values()):
        assert time.monotonic() < end, {kind: len(found) for kind, found in events.items()}
        for client, _ in poller.poll(200):
            kind = next(kind for kind in clients if clients[kind] is client)
            parts = client.recv_multipart()
            assert len(parts) == 1
            events[kind].append(parts[0])
    status, found, err = report(builder.finish())
    context.destroy(0)
    assert status == 0, (found, err)
    assert "unexpectedly" not in err, "an ordinary end, of which ZeroMQ's library says nothing in our name"
    assert found["windows"] == {"complete": windows, "incomplete": 0, "dropped": 0, "late": 0}
    want = expected(2, windows, rate, links)
    assert sum(map(len, want.values())) > 1000
    hits, columns = read_hits(files["hdf5"])
    assert hits == want
    assert (columns["time_ns"] == 1_700_000_000 * 10**9 + columns["window"].astype(np.int64) * WINDOW_NS).all()
    assert (columns["sources"] == 2 * links).all() and not columns["missing"].any() and not columns["lost"].any()

    names = ("window", "source", "slot", "channel", "tick", "charge")
    table = pyarrow.parquet.read_table(files["parquet"])
    assert str(table.schema.field("time_ns").type) == "timestamp[ns, tz=UTC]"
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    assert sorted(rows) == sorted((window, *hit) for window, found in want.items() for hit in found)
    table = pyarrow.parquet.read_table(net.tmp / "out.windows.parquet")
    assert table["hits"].to_pylist() == [len(want[n]) for n in range(windows)]

    for found in events.values():
        assert len(found) == windows
        for number, data in enumerate(found):
            event, messages = model.read_event(data)
            assert (event.source, event.record) == (0xFADE0001, number)
            assert [message.source for message in messages] == sorted(message.source for message in messages)
            got = [(m.source, *hit) for m in messages for hit in model.read_hits(m, WINDOW_NS // 4)[0]]
            assert sorted(got) == want[number]


def test_simulated_crate_dies_and_returns(net):
    """A crate is killed and started again at a later window: the windows in between say that it is missing."""
    out = net.tmp / "out.hdf5"
    sh("ip", "-n", net.pc_ns, "link", "set", "lo", "up")
    builder = net.fadelink("build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--silence", 1, "--json", "--sink", f"hdf5:{out}",
                           "--sources", "0xC0DA0001", "--streams", 2, "--web", "127.0.0.1:8080")  # fmt: skip
    assert "page at" in builder.popen.stderr.readline()

    def last_window():
        fetch = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/live.json').read().decode())"
        return json.loads(net.run_in(net.pc_ns, sys.executable, "-c", fetch))["last_window"]

    def run_until(window, *words):
        sim = net.sim("--protocol", "fadc", "--phy", "gmii", "--boards", 1, "--window-ns", WINDOW_NS, "--pulse-rate", 2e4, *words)
        wait_for(lambda: last_window() >= window)
        sim.popen.kill()
        sim.finish()
        # A killed crate says no goodbye: its connection stays open here.
        net.run_in(net.pc_ns, "ss", "-K", "dst", BOARD)

    run_until(20)
    run_until(100_050, "--first-window", 100_000, "--first-sequence", 1)
    status, found, err = report(builder.finish())
    hits, windows = read_hits(out)
    before = [n for n in hits if n < 100_000]
    after = [n for n in hits if n >= 100_000]
    assert before == list(range(len(before))) and len(before) > 20
    assert after == list(range(100_000, 100_000 + len(after))) and len(after) > 50
    want = expected(1, len(before), 2e4)
    assert {n: hits[n] for n in before} == want
    assert found["sources"]["0xc0da0001"]["sessions"] == 2


def test_crate_behind_another_link_core(net):
    """The same crate behind FADE-10G: another core's instance, the same messages, over a link that loses frames."""
    windows, ticks, out, crate = 150, 1024, net.tmp / "messages", {"modules": 2, "channels": 2}
    sim = net.sim("--crate", "--words", windows, "--gap", ticks, "--source-seed", 5, "--link", "loss=0.2")
    data, _ = model.samples(windows * ticks + 16, 5, model.rate(1e5), 4, **crate)
    want = model.hits_by_window(model.find_hits(data, channels=crate["channels"]), ticks, windows)
    receiver = net.receive("--out", out)
    wait_for(lambda: stands_still(out, 4))
    # STOP, behind which the rest of the last packet comes.
    receiver.signal(signal.SIGINT)
    status, found, err = report(receiver.finish())
    assert status == 0 and found["complete"], (found, err)
    messages = model.read_messages(out.read_bytes())
    assert [message.record for message in messages] == list(range(windows))
    got = {message.record: sorted(model.read_hits(message, ticks)[0]) for message in messages}
    assert got == want and sum(map(len, want.values())) > 150
    assert net.end_sim(sim)["boards"][0]["up"]["lost"] > 0


# --- Crates in software, on loopback ---


class Builder:
    """`fadelink build` on loopback, with its page, which shows what it has done so far."""

    def __init__(self, *words, **options):
        self.port, self.web = free_ports(2)
        words = [FADELINK, "build", "--tcp", self.port, "--listen", "127.0.0.1", "--window-ns", WINDOW_NS, "--json",
                 "--web", f"127.0.0.1:{self.web}", *words]  # fmt: skip
        self.popen = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def wait_for(self, *path, count):
        """Waits until a count of live.json is reached: `joiner`, `sources`, a source as "0x00000001", its count."""

        def look():
            value = json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.web}/live.json"))
            for name in path:
                value = (value or {}).get(name)
            return value is not None and value >= count

        wait_for(look)

    def wait_for_source(self, source, name, count):
        self.wait_for("joiner", "sources", f"0x{source:08x}", name, count=count)

    def finish(self):
        out, err = self.popen.communicate(timeout=PATIENCE)
        return report((self.popen.returncode, out, err))

    def stop(self):
        self.popen.send_signal(signal.SIGTERM)
        return self.finish()


@pytest.fixture
def build(request):
    started = []

    def make(*words, **options):
        started.append(Builder(*words, **options))
        return started[-1]

    yield make
    for builder in started:
        if builder.popen.poll() is None:
            builder.popen.kill()
        builder.popen.communicate()


def test_crate_that_is_gone_for_a_while(build, tmp_path):
    """Windows go on without it and say so; when it is back, with it again. What is inside a cut message is counted."""
    out = tmp_path / "out.hdf5"
    builder = build("--sources", "1,2", "--silence", 3, "--streams", 3, "--sink", f"hdf5:{out}")
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
    hits, windows = read_hits(out)
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


def test_the_end_does_not_wait_for_a_crate_that_is_gone(build, tmp_path):
    """A crate that lost its power leaves its connection open, inside a message."""
    out = tmp_path / "out.hdf5"
    builder = build("--sink", f"hdf5:{out}")
    crate = Crate(builder.port, 1)
    crate.send(*range(5))
    half = model.message(1, 5, hits_of(1, 5))[:40]
    crate.send(raw=half)
    builder.wait_for_source(1, "messages", 5)
    status, found, err = builder.stop()
    connection = found["connections"][0]
    assert status == 3 and "nothing came for 5 s" in err, err
    assert connection["ended"] and connection["messages"] == 5 and connection["cut_bytes"] == len(half)
    assert sorted(read_hits(out)[0]) == list(range(5))
    crate.close()


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
    builder = build("--sources", "1,2", "--streams", 2, "--sink", f"hdf5:{out}")
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
        builder = build("--sources", "1,2", "--silence", 3, "--streams", 2, "--sink", f"hdf5:{out}", *policy)
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
        _, windows = read_hits(out)
        assert windows["window"].tolist() == [0, 1, 2]
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
    builder = build("--expect", crates, "--silence", 30, "--max-open", 50, "--streams", crates, "--sink", f"hdf5:{out}")

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
    """A crate that was restarted counts from 0 again; by time its windows are still the right ones."""
    builder = build("--sources", "1,2", "--join", "time", "--streams", 2)
    one, two = Crate(builder.port, 1), Crate(builder.port, 2)
    base = 1_700_000_000 * 10**9 // WINDOW_NS
    for n in range(5):
        ns = (base + n) * WINDOW_NS
        for crate, counter in ((one, n), (two, 1000 + n)):
            data = bytearray(model.message(crate.source, counter))
            data[32:48] = struct.pack("<qq", *divmod(ns, 10**9))
            crate.send(raw=bytes(data))
    one.close()
    two.close()
    status, found, err = builder.finish()
    assert status == 0 and found["windows"]["complete"] == 5, (found, err)


def test_a_client_that_takes_no_more_at_the_end_is_told(build, tmp_path):
    """Events that wait for a client of zmq-push when the builder ends: they have not arrived, and nobody says so."""
    endpoint = f"ipc://{tmp_path}/push"
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-push:{endpoint}")
    wait_for(lambda: os.path.exists(tmp_path / "push"))
    context = zmq.Context()
    client = context.socket(zmq.PULL)
    client.setsockopt(zmq.RCVHWM, 1)
    client.setsockopt(zmq.RCVBUF, 1 << 14)
    client.connect(endpoint)
    crate, windows = Crate(builder.port, 1), 2000
    for record in range(windows):
        crate.send(record, hits=[(3, 0, tick, 1) for tick in range(1000)])
    crate.close()
    status, found, err = builder.finish()
    arrived = 0
    while client.poll(500):
        client.recv()
        arrived += 1
    context.destroy(0)
    (sink,) = found["sinks"]
    assert arrived < windows and status == 3 and sink["error"] and sink["intact"] == 0, (arrived, found, err)


def test_push_without_a_client_holds_the_crate_up(build, tmp_path):
    """A sink that takes nothing: the builder waits, then the connection; nothing is discarded."""
    endpoint = f"ipc://{tmp_path}/push"
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-push:{endpoint}", "--max-open", 16)
    crate = Crate(builder.port, 1)
    crate.socket.settimeout(1)
    crate.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    records = 0
    with pytest.raises(TimeoutError):
        while records < 1_000_000:
            crate.send(records, hits=[(3, 0, tick, 1) for tick in range(1000)])
            records += 1
    context = zmq.Context()
    client = context.socket(zmq.PULL)
    client.connect(endpoint)
    for number in range(records):
        assert client.poll(10000), number
        assert model.read_event(client.recv())[0].record == number
    crate.close()
    status, found, _ = builder.finish()
    context.destroy(0)
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
        (["--tcp", 1, "--window-ns", 4096, "--sink", "hdf5:/nowhere/x"], "hdf5:/nowhere/x"),
    ],
)
def test_wrong_arguments(words, told):
    done = subprocess.run([str(word) for word in (FADELINK, "build", *words)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (1, 2) and told in done.stderr, done.stderr


def test_words_that_cannot_be(build, tmp_path):
    """A payload that breaks the rules is counted and told with window, source and word; all others are in the files."""
    files = [f"{tmp_path}/x.{kind}" for kind in ("hdf5", "parquet")]
    sinks = [word for file in files for word in ("--sink", f"{file.split('.')[-1]}:{file}")]
    builder = build("--sources", "1", "--streams", 1, *sinks)
    crate = Crate(builder.port, 1)
    for record in range(6, 10):
        words = [0x8000_8003, 5]  # the header of slot 3, a hit
        crate.send(raw=model.message(1, record, words=[0x1234, *words] if record == 7 else words))
    crate.close()
    out, err = builder.popen.communicate(timeout=PATIENCE)
    assert builder.popen.returncode == 3, err
    assert err.count("1 messages with an invalid word, the first: window 7, source 0x00000001: word 0: a hit without a slot") == 2, err
    assert [(sink["written"], sink["wrong_messages"], sink["error"]) for sink in json.loads(out)["sinks"]] == [(4, 1, None)] * 2
    with h5py.File(files[0]) as file:
        hits, windows = file["hits/window"][:].tolist(), file["windows/lost"][:].tolist()
    assert (hits, windows) == ([6, 8, 9], [0, 1, 0, 0])
    assert pyarrow.parquet.read_table(files[1])["window"].to_pylist() == [6, 8, 9]


# --- The page ---


@pytest.fixture
def browser(tmp_path):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1300,1300",
                 f"--user-data-dir={tmp_path}/chromium"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def test_page(build, browser, tmp_path):
    """Rates, hit maps, charge spectrum and differences of time, live, in a browser."""
    builder = build("--sources", "0xC0DA0001,0xC0DA0101", "--silence", 30)
    web = builder.web
    crates = [Crate(builder.port, 0xC0DA0001), Crate(builder.port, 0xC0DA0101)]
    browser.get(f"http://127.0.0.1:{web}/")
    text = lambda name: browser.find_element("id", name).text
    wait_for(lambda: text("state") == "waiting for data")
    row = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.innerText)"
    hits = {crate.source: 0 for crate in crates}
    for batch in range(3):
        for crate in crates:
            records = range(batch * 50, batch * 50 + 50)
            crate.send(*records)
            hits[crate.source] += sum(len(hits_of(crate.source, n)) for n in records)
        wait_for(lambda: text("events") == str((batch + 1) * 50))
        for source, count in hits.items():
            cells = browser.execute_script(row, f"#source-0x{source:08x} td")  # at once: the page makes them anew again and again
            assert cells[:2] == [f"0x{source:08x}", f"{count:,}"] and cells[3:] == [str((batch + 1) * 50), "0", "0"]
    wait_for(lambda: text("state").startswith("running for"))
    live = json.load(urllib.request.urlopen(f"http://127.0.0.1:{web}/live.json"))
    assert sum(live["charges"]) == sum(hits.values()) and sum(live["differences"]) > 0 and max(live["rates"]) > 0
    for source in hits:
        want = np.zeros((18, 16), int)
        for n in range(150):
            for slot, channel, _, _ in hits_of(source, n):
                want[slot - 3, channel] += 1
        assert live["maps"][f"0x{source & ~0xFF:08x}"] == want.tolist()
    want = np.zeros(128, int)
    for n in range(150):
        row = sorted((hit[2], source & ~0xFF, hit) for source in hits for hit in hits_of(source, n))
        for (tick, source, _), (next_tick, other, _) in zip(row, row[1:]):
            if next_tick - tick < 128 and source != other:
                want[next_tick - tick] += 1
    assert live["differences"] == want.tolist()
    # Each plot is a picture that the browser could draw.
    names = ["rates", "charge", "differences", *(f"map-0x{source & ~0xFF:08x}" for source in hits)]
    loaded = "const i = document.getElementById(arguments[0]); return i !== null && i.complete && i.naturalWidth > 0"
    wait_for(lambda: all(browser.execute_script(loaded, name) for name in names))
    browser.save_screenshot(str(tmp_path / "page.png"))
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    builder.popen.kill()
    wait_for(lambda: "no connection" in text("state"))
    assert text("events") == "150"


def test_page_of_a_plot_that_is_none(build):
    builder = build("--sources", "1")
    url = f"http://127.0.0.1:{builder.web}/plot/nothing.svg"
    wait_for(lambda: subprocess.run(["curl", "-s", "-o", "/dev/null", url]).returncode == 0)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(url)
    assert error.value.code == 404 and "expected rates, charge, differences" in error.value.read().decode()
