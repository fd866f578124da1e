"""FADC streaming from simulated crates to files, ZeroMQ and other readers, by `fadelink build`."""

import json
import os
import signal
import sys
import time

import numpy as np
import pyarrow.parquet
import pytest
import zmq
from support import fadc_model as model
from support.crate import WINDOW_NS, reasons, report
from support.files import read_hits, stands_still
from support.netns import BOARD, PATIENCE, sh, wait_for
from support.sweep import long

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


@pytest.mark.parametrize("phy,links", [("gmii", 1), long("xgmii", 4)])
def test_two_crates_to_all_sinks(net, zeromq, phy, links):
    """Every hit of both crates is in every sink exactly once, over a link that loses frames."""
    windows, rate = 60, 1e5
    files = {kind: net.tmp / f"out.{kind}" for kind in ("hdf5", "parquet")}
    endpoints = {kind: f"ipc://{net.tmp}/{kind}" for kind in ("zmq-pub", "zmq-push")}
    # Each in one file, however long it takes.
    places = {kind: f"{place},every=3600" for kind, place in files.items()} | endpoints
    sinks = [word for kind, place in places.items() for word in ("--sink", f"{kind}:{place}")]
    builder = net.fadelink("build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--streams", 2 * links, "--expect", 2 * links,
                           "--silence", 60, "--end", "told", "--json", *sinks)  # fmt: skip
    wait_for(lambda: os.path.exists(net.tmp / "zmq-push"))
    clients = {"zmq-pub": zeromq.socket(zmq.SUB), "zmq-push": zeromq.socket(zmq.PULL)}
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
    # ZeroMQ confirms nothing.
    assert status == 3 and reasons(found) == ["unconfirmed"], (found, err)
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
    builder = net.fadelink("build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--silence", 1, "--json", "--sink", f"hdf5:{out},every=3600",
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
    # Its connections were reset.
    assert status == 3 and "error" in reasons(found), found
    hits, windows = read_hits(out, complete=False)
    before = [n for n in hits if n < 100_000]
    after = [n for n in hits if n >= 100_000]
    assert before == list(range(len(before))) and len(before) > 20
    assert after == list(range(100_000, 100_000 + len(after))) and len(after) > 50
    want = expected(1, len(before), 2e4)
    assert {n: hits[n] for n in before} == want
    assert found["sources"]["0xc0da0001"]["sessions"] == 2


def test_a_busy_crate_ends_behind_a_message(net):
    """A crate that has more than its link carries is in a message whenever it is stopped: it sends that to its end."""
    files = net.tmp / "messages"
    sim = net.sim("--protocol", "fadc", "--small", "--phy", "gmii", "--window-ns", 8192, "--pulse-rate", 8e6)
    builder = net.fadelink("build", "--tcp", PORT, "--window-ns", 8192, "--expect", 1, "--json", "--sink", f"file:{files}")
    part = net.tmp / "messages.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 200_000)
    builder.signal(signal.SIGINT)
    status, found, err = report(builder.finish())
    windows = found["windows"]
    assert windows["complete"] > 20 and windows["dropped"] == 0, (found, err)
    (connection,) = found["connections"]
    assert connection["cut_bytes"] == connection["skipped_bytes"] == 0 and connection["error"] is None, connection
    # Windows for which it had no room are told as such.
    assert status in (0, 3) and "skipped" not in reasons(found), (found, err)
    net.end_sim(sim)


def test_crate_behind_another_link_core(net):
    """The same crate behind FADE-10G: another core's instance, the same messages, over a link that loses frames."""
    windows, ticks, out, crate = 150, 1024, net.tmp / "messages", {"modules": 2, "channels": 2}
    sim = net.sim("--crate", "--words", windows, "--gap", ticks, "--source-seed", 5, "--link", "loss=0.5")
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
