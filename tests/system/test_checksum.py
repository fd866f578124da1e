"""The CRC of all words, from the user's stream in the board to the file."""

import json
import signal
import zlib

import pytest
from support.crate import reasons
from support.lab import end, fade, is_counter, words
from support.netns import FEBS, report, wait_for
from support.paths import FADELINK, SEED

#: Simulated boards that have it.
CORES = {"10 Gb/s": [], "1 Gb/s": ["--phy", "gmii"], "fade1": ["--protocol", "fade1"]}
#: Boards in software.
PROTOCOLS = ["fade10g", "fade1"]


def crc_of(path):
    return f"{zlib.crc32(path.read_bytes()):08x}"


def board(bench, protocol, *options):
    process = bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--protocol", protocol, "--seed", SEED, *options)
    assert "in software" in process.popen.stderr.readline()


@pytest.mark.parametrize("core", CORES)
def test_a_complete_run_has_the_crc_of_the_board(lab, core):
    """Over a link that loses; the filler of FADE v1 is told, and `check` compares the files."""
    lab.bench.sim(*CORES[core], "--link", "loss=0.01")
    lab.write('sinks = ["file:{board}.dat,roll=1M"]\n' + fade("left"))
    process = lab.start()
    wait_for(lambda: len(list(lab.runs.glob("run_000001/left*.dat"))) > 2)
    status, err = end(process)
    manifest, folder = lab.manifest(), lab.folder()
    (found,) = manifest["boards"]
    assert status == 0 and manifest["state"] == "complete" and found["verdict"] == "complete", err
    crc = f"{zlib.crc32(b''.join(path.read_bytes() for path in [folder / 'left.dat', *sorted(folder.glob('left.0*.dat'))])):08x}"
    assert found["crc32"] == {"board": crc, "received": crc, "filler_words": found["filler_words"]}
    assert lab.check()[0] == 0

    found["crc32"]["received"] = f"{int(crc, 16) ^ 1:08x}"
    found["crc32"]["board"] = found["crc32"]["received"]
    lab.change(boards=[found])
    status, checked = lab.check()
    assert status == 3 and len(checked["findings"]) == 1, checked
    assert f"the CRC of all words is {crc}, expected {found['crc32']['received']}" in checked["findings"][0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("packets", [1, 300])
def test_a_word_that_was_changed_in_the_board_is_found(bench, protocol, packets):
    """Each frame check sequence is right, and nobody knows a pattern."""
    board(bench, protocol, "--quirk", "bad-memory", "--loss", 0.01)
    out = bench.tmp / "data"
    status, result = report(finished := bench.receive("--packets", packets, "--out", out).finish())
    (found,) = result["febs"]
    assert status == 3 and result["verdict"] == found["verdict"] == "incomplete", finished
    assert reasons(found) == ["checksum"] and found["crc32"]["board"] != found["crc32"]["received"] == crc_of(out)
    assert found["crc32"]["received"] in found["reasons"][0]["text"] and found["crc32"]["board"] in found["reasons"][0]["text"]
    assert not json.loads((bench.tmp / "data.json").read_text())["complete"], "nor does the sink call it so"
    data = words(out)
    assert data[0] == 1 and is_counter(data[1 : 128 * packets] - 1), "it is one bit"


@pytest.mark.parametrize("option,text", [([], ", as the board says"), (["--quirk", "bad-memory"], "NOT COMPLETE: the words received have CRC ")])
def test_the_summary_tells_it(bench, option, text):
    board(bench, "fade10g", *option)
    out = bench.tmp / "data"
    status, _, err = bench.run("receive", "--iface", "eth0", "--feb", FEBS[0], "--packets", 10, "--out", out)
    assert status == (3 if option else 0) and text in err and crc_of(out) in err, err


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_word_that_was_changed_before_a_kill_is_found(lab, protocol):
    """The CRC of a run that goes on is that of the whole."""
    board(lab.bench, protocol, "--quirk", "bad-memory", "--rate", 20)
    lab.write('confirm = "durable"\n' + fade("left").replace('verify = "counter"\n', ""))
    data = lab.runs / "run_000001/left.dat"
    process = lab.start()
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    process.signal(signal.SIGKILL)
    process.finish()
    before = data.stat().st_size
    process = lab.start()
    wait_for(lambda: data.stat().st_size > before + (1 << 20))
    status, err = end(process)
    (found,) = lab.manifest()["boards"]
    assert status == 3 and len(lab.manifest()["resumed"]) == 1 and reasons(found) == ["checksum"], (err, found)
    assert found["crc32"]["received"] == crc_of(data)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("option", [["--quirk", "no-checksum"], ["--quirk", "no-checksum", "--quirk", "bad-memory"]])
def test_a_board_without_it_is_received_as_before(bench, protocol, option):
    board(bench, protocol, *option)
    status, result = report(finished := bench.receive("--packets", 50, "--out", bench.tmp / "data").finish())
    (found,) = result["febs"]
    assert status == 0 and found["verdict"] == "complete" and found["crc32"] is None, finished


def test_a_core_without_it_is_received_as_before(bench):
    bench.sim("--window", 16)
    status, result = report(finished := bench.receive("--packets", 50, "--verify", "counter", "--out", bench.tmp / "data").finish())
    (found,) = result["febs"]
    assert status == 0 and found["verdict"] == "complete" and found["crc32"] is None, finished


def test_words_that_are_turned_round_have_none(bench):
    """The board has the CRC of other words."""
    board(bench, "fade10g")
    status, result = report(finished := bench.receive("--packets", 50, "--word-order", "big", "--out", bench.tmp / "data").finish())
    (found,) = result["febs"]
    assert status == 0 and found["verdict"] == "complete" and found["crc32"] is None, finished
