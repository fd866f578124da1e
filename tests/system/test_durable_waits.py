"""A run of `confirm = "durable"` that cannot go on at once: it stays as it is, and its boards keep what is not confirmed."""

import contextlib
import fcntl
import signal

import pytest
from support.lab import Lab, end, fade, is_counter, words
from support.netns import sh, wait_for
from support.relay import Relayed

SLOW = {"fade10g": ["--gap", 200], "fade1": ["--protocol", "fade1", "--phy", "gmii", "--gap", 1600]}
TEXT = 'confirm = "durable"\n' + fade("left")


def begun_and_killed(lab, protocol, text=TEXT):
    """A run of which something is certain, and whose program is gone; its file."""
    lab.bench.sim(*SLOW[protocol])
    lab.write(text)
    data = lab.runs / "run_000001/left.dat"
    process = lab.start()
    wait_for(lambda: data.exists() and data.stat().st_size > 50_000)
    process.signal(signal.SIGKILL)
    process.finish()
    return data


def goes_on_to_its_end(lab, data):
    """The same run is complete in the end, and has each word of its board."""
    process, before = lab.start(), data.stat().st_size
    wait_for(lambda: data.stat().st_size > before + 50_000)
    status, err = end(process)
    manifest, found = lab.manifest(), words(data)
    board = manifest["boards"][0]
    assert (status, manifest["run"], manifest["state"]) == (0, 1, "complete"), (err, manifest)
    assert found.size * 8 == board["bytes"] and is_counter(found[: found.size - board["filler_words"]]) and lab.check()[0] == 0


@contextlib.contextmanager
def interface(bench, *without):
    """An interface that is not as it must be."""
    sh("ip", "-n", bench.pc_ns, "link", "set", "eth0", *without)
    yield
    sh("ip", "-n", bench.pc_ns, "link", "set", "eth0", "mtu", 9000, "up")


@contextlib.contextmanager
def locked(path):
    """A file that somebody else writes."""
    with open(path, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


WHY = {
    "is down": lambda lab, data: interface(lab.bench, "down"),
    "mtu": lambda lab, data: interface(lab.bench, "mtu", 1000),
    "is being written": lambda lab, data: locked(data),
}


@pytest.mark.parametrize("protocol", SLOW)
@pytest.mark.parametrize("why", WHY)
def test_a_run_that_cannot_go_on_now_stays_as_it_is(lab, why, protocol):
    data = begun_and_killed(lab, protocol)
    content, before = data.read_bytes(), sorted(path.name for path in data.parent.iterdir())
    with WHY[why](lab, data):
        for _ in range(2):
            status, _, err = lab.start().finish()
            assert status == 1 and why in err.lower() and "run 1 goes on when this is started again" in err, err
            assert "NOT COMPLETE" in err and lab.manifest(1)["state"] == "running", err
    assert data.read_bytes() == content and sorted(path.name for path in data.parent.iterdir()) == before
    goes_on_to_its_end(lab, data)


@pytest.mark.parametrize("wait", ["", "wait = 60\n"])
@pytest.mark.parametrize("protocol", SLOW)
def test_a_board_that_does_not_answer_keeps_what_it_has(tmp_path, protocol, wait):
    """Its cable is out when its run is to go on. It runs all the time, so nothing of it is lost."""
    with contextlib.closing(Relayed(tmp_path)) as bench:
        lab = Lab(bench)
        data = begun_and_killed(lab, protocol, wait + TEXT)
        bench.is_deaf = True
        if wait:
            process = lab.start()
            wait_for(lambda: "it is asked again for " in (data.parent / "log.jsonl").read_text())
            bench.is_deaf = False
            before = data.stat().st_size
            wait_for(lambda: data.stat().st_size > before)
            status, err = end(process)
            assert (status, lab.manifest()["state"]) == (0, "complete") and is_whole(lab, data), (err, lab.manifest())
        else:
            status, _, err = lab.start().finish()
            assert status == 3 and "no response to command 0x0006" in err and "run 1 goes on when this is started again" in err, err
            bench.is_deaf = False
            goes_on_to_its_end(lab, data)


def is_whole(lab, data):
    found, (board,) = words(data), lab.manifest()["boards"]
    return found.size * 8 == board["bytes"] and is_counter(found[: found.size - board["filler_words"]])


@pytest.mark.parametrize("protocol", SLOW)
def test_an_end_that_was_asked_for_waits_for_its_board(tmp_path, protocol):
    """The program is killed when it has sent STOP, and the board cannot be reached then: its last words are not lost."""
    with contextlib.closing(Relayed(tmp_path)) as bench:
        lab = Lab(bench)
        lab.bench.sim(*SLOW[protocol])
        lab.write(TEXT)
        data = lab.runs / "run_000001/left.dat"
        process = lab.start()
        wait_for(lambda: data.exists() and data.stat().st_size > 50_000)
        bench.is_deaf = True
        process.signal(signal.SIGTERM)
        wait_for(lambda: lab.manifest(1)["state"] == "stopping")
        process.signal(signal.SIGKILL)
        process.finish()
        status, _, err = lab.start().finish()
        assert status == 3 and lab.manifest(1)["state"] == "stopping" and "goes on when this is started again" in err, err
        bench.is_deaf = False
        status, _, err = lab.start().finish()
        assert (status, lab.manifest()["state"]) == (0, "complete") and is_whole(lab, data), (err, lab.manifest())
