"""Sinks that may fail: the run, and all other sinks, go on."""

import errno
import json
import os
import signal

import pytest
from support import faults
from support.crate import Crate, reasons, slow_puller
from support.lab import end, fade, is_counter, words
from support.netns import sh, wait_for
from system.test_monitoring import get

GOES_ON = "this sink is optional, and the run goes on without it"


def all_words(path, board):
    found = words(path)
    return found.size * 8 == board["bytes"] and is_counter(found[: found.size - (board["filler_words"] or 0)])


@pytest.mark.parametrize("kind", ["file", "hdf5"])
@pytest.mark.parametrize("confirm", ["memory", "durable"])
def test_a_failing_disk_of_an_optional_sink_ends_only_that(net, kind, confirm):
    """It is told at once, by the health too; the board's words are all in the other file."""
    sim = net.sim()
    sh("ip", "-n", net.pc_ns, "link", "set", "lo", "up")
    disk, good = net.tmp / "disk", net.tmp / "good.dat"
    disk.mkdir()
    env = faults.environment(disk=disk, after=3 << 20)
    sinks = ["--sink", f"{kind}:{disk}/x,every=0.3,optional", "--sink", f"file:{good}"]
    run = ["receive", "--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--json", "--metrics", "127.0.0.1:9777", "--confirm", confirm]
    process = net.fadelink(*run, *sinks, env=env)
    wait_for(lambda: good.exists() and os.strerror(errno.EIO) in str(get(net, 9777, "/health")[1]))
    (trouble,) = json.loads(get(net, 9777, "/health")[1])["troubles"]
    assert os.strerror(errno.EIO) in trouble and trouble.startswith(f"{kind}:{disk}/x")
    size = good.stat().st_size
    wait_for(lambda: good.stat().st_size > size + (8 << 20))
    process.signal(signal.SIGINT)
    status, out, err = process.finish()
    (board,) = json.loads(out)["febs"]
    assert status == 0 and board["verdict"] == "complete" and board["kept"] and not board["reasons"], (board, err)
    bad, other = board["sinks"]
    assert bad["optional"] and os.strerror(errno.EIO) in bad["error"] and bad["dropped"] > 0 and bad["intact"] <= 3 << 20, bad
    assert other["error"] is None and other["written"] == board["bytes"]
    assert all_words(good, board)
    assert err.count(GOES_ON) == 1, err
    assert not net.end_sim(sim)["boards"][0]["running"]


def test_what_no_other_sink_keeps_is_not_complete(net):
    net.sim()
    disk = net.tmp / "disk"
    disk.mkdir()
    env = faults.environment(disk=disk, after=3 << 20)
    words = ["receive", "--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--json"]
    sinks = ["--sink", f"file:{disk}/x,optional", "--sink", f"share:{net.tmp}/ring"]
    process = net.fadelink(*words, *sinks, env=env)
    wait_for(lambda: GOES_ON in process.popen.stderr.readline())
    process.signal(signal.SIGINT)
    status, out, err = process.finish()
    (board,) = json.loads(out)["febs"]
    assert status == 3 and reasons(board) == ["sink_failed"] and not board["kept"], (board, err)


@pytest.mark.parametrize("words", [["receive", "--tcp", 1, "--streams", 1], ["build", "--tcp", 1, "--window-ns", 4096]])
def test_one_sink_is_not_optional(words, tmp_path, net):
    status, _, err = net.run(*words, "--sink", f"file:{tmp_path}/a,optional", "--sink", f"file:{tmp_path}/b,optional")
    assert status == 2 and f"`file:{tmp_path}/b,optional`: all sinks are optional: expected one that is not" in err, err


def test_a_run_with_a_failed_optional_sink_is_as_it_was_received(lab):
    """Its manifest and its check say which one it was, and what it has left does not count as a foreign file."""
    lab.bench.sim()
    lab.write(fade("a", more='sinks = ["file:a.dat", "hdf5:b.h5,every=0,optional", "file:c.dat,optional"]'))
    env = faults.environment(disk=lab.runs / "run_000001/b.h5", after=1 << 20)
    process = lab.bench.fadelink("run", lab.file, "--quiet", env=env)
    log = lab.runs / "run_000001/log.jsonl"
    wait_for(lambda: log.exists() and GOES_ON in log.read_text())
    status, err = end(process)
    manifest = lab.manifest()
    (board,) = manifest["boards"]
    assert status == 0 and manifest["state"] == "complete", (err, manifest)
    failed = {sink["sink"]: sink["error"] for sink in board["sinks"] if sink["error"]}
    assert list(failed) == ["hdf5:b.h5,every=0,optional"] and GOES_ON in err, (failed, err)
    status, found = lab.check()
    assert status == 0 and found["good"], found
    assert [note for note in found["notes"] if note.startswith("a: hdf5:b.h5,every=0,optional: it has failed")], found
    (lab.folder() / "a.dat").unlink()
    assert lab.check()[0] == 3


def test_an_optional_push_without_clients_at_the_end(build, tmp_path, zeromq):
    """What its client did not take is told, and the run is what its file is."""
    endpoint = f"ipc://{tmp_path}/push"
    sinks = ["--sink", f"file:{tmp_path}/x.dat", "--sink", f"zmq-push:{endpoint},optional"]
    builder = build("--sources", "1", "--streams", 1, *sinks)
    wait_for(lambda: os.path.exists(tmp_path / "push"))
    _client = slow_puller(zeromq, endpoint)
    crate = Crate(builder.port, 1)
    for record in range(90):
        crate.send(record, hits=[(3, 0, tick % 1000, 1) for tick in range(5000)])
    crate.close()
    status, found, err = builder.finish()
    file, push = found["sinks"]
    assert status == 0 and found["kept"] and not found["reasons"], (found, err)
    assert "clients did not take the last" in push["error"] and file["written"] == 90, found
    assert err.count(GOES_ON) == 1, err


def test_a_receiver_goes_on_without_an_optional_sink_when_it_was_killed(lab):
    """Nobody has waited for what an optional sink has: the run goes on behind what the others have."""
    lab.bench.sim("--phy", "gmii")
    lab.write('confirm = "durable"\n' + fade("a", more='sinks = ["file:a.dat", "hdf5:b.h5,every=0,optional"]'))
    process = lab.start()
    wait_for(lambda: list(lab.runs.glob("run_*/a.dat")) and (lab.folder(1) / "a.dat").stat().st_size > 2 << 20)
    process.popen.kill()
    process.finish()
    data = lab.folder(1) / "a.dat"
    process, before = lab.start(), data.stat().st_size
    wait_for(lambda: data.stat().st_size > before)
    status, err = end(process)
    manifest = lab.manifest(1)
    (board,) = manifest["boards"]
    assert status == 0 and manifest["state"] == "complete" and len(manifest["resumed"]) == 1, (err, manifest)
    assert "it cannot go on after a crash" in board["sinks"][1]["error"], board["sinks"]
    assert all_words(data, board) and lab.check(1)[0] == 0
