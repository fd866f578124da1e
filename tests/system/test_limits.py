"""Limits of the user: a file that may not be longer (RLIMIT_FSIZE) is an error of who writes it, as a full disk is. What is interrupted
twice reports what it has.
"""

import json
import signal
import subprocess

import pytest
from support.netns import BOARD, FEBS, add_address
from support.paths import FADELINK, SIM

# In blocks of 512 bytes. The rings of boards, which are files in memory, are smaller.
LIMITED = ("sh", "-c", 'ulimit -f 2048; exec "$@"', "sh")


@pytest.mark.parametrize("kind", ["file", "hdf5"])
def test_receive_survives_a_file_that_may_not_be_longer(bench, kind):
    bench.sim()
    words = [
        "receive",
        "--iface",
        "eth0",
        "--feb",
        FEBS[0],
        "--quiet",
        "--json",
        "--ring",
        64,
        "--window",
        32,
        "--packets",
        500,
        "--sink",
        f"{kind}:{bench.tmp}/x",
    ]
    status, out, err = bench.start(bench.pc_ns, *LIMITED, FADELINK, *words).finish()
    assert status == 3 and "File too large" in err, err
    (reason,) = json.loads(out)["febs"][0]["reasons"]
    assert reason["reason"] == "sink_failed" and "File too large" in reason["text"]


def test_a_run_survives_a_file_that_may_not_be_longer(bench):
    bench.sim()
    file = bench.tmp / "x.toml"
    file.write_text(
        f'folder = "{bench.tmp}/runs"\n[[fade]]\nname = "left"\ninterface = "eth0"\nmac = "{FEBS[0]}"\nring = 64\nwindow = 32\nsinks = ["file:{{board}}.dat"]\n'
    )
    status, _, err = bench.start(bench.pc_ns, *LIMITED, FADELINK, "run", file, "--quiet").finish()
    manifest = json.loads((bench.tmp / "runs/run_000001/manifest.json").read_text())
    assert status == 3 and manifest["state"] == "incomplete", (manifest, err)
    assert [reason["reason"] for reason in manifest["boards"][0]["reasons"]] == ["sink_failed"], manifest


@pytest.mark.parametrize(
    "words",
    [
        ["--save", "{}/x", "--packets", 300],
        ["--pcap", "{}/x", "--packets", 300],
        ["--protocol", "tcp", "--save", "{}/x", "--words", 200_000],
    ],
)
def test_the_simulator_says_that_its_file_is_too_long(tmp_path, words):
    words = [str(word).format(tmp_path) for word in words]
    found = subprocess.run([*LIMITED, SIM, "--virtual", *words], capture_output=True, text=True)
    assert found.returncode == 1 and found.stderr.startswith("fadelink-sim: ") and "File too large" in found.stderr, found


# How a board is received that sends without end.
RECEIVED = {
    "fade": ((), ["--iface", "eth0", "--feb", FEBS[0]], "febs"),
    "tcp": (("--protocol", "tcp", "--gap", 100), ["--tcp", 10000], "streams"),
    "udp": (("--protocol", "udp", "--stopped"), ["--udp", 10000, "--board", BOARD], "streams"),
}


@pytest.mark.parametrize("kind", RECEIVED)
def test_the_second_interrupt_gives_a_report(bench, kind):
    """The board does not answer the first one: it stands still."""
    options, words, key = RECEIVED[kind]
    add_address(bench)
    sim = bench.sim(*options)
    receiver = bench.start(bench.pc_ns, FADELINK, "receive", *words, "--quiet", "--json")
    bench.wait_for_frames()
    sim.signal(signal.SIGSTOP)
    receiver.signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        receiver.popen.wait(1)
    receiver.signal(signal.SIGTERM)
    status, out, err = receiver.finish()
    sim.signal(signal.SIGCONT)
    found = json.loads(out)
    assert status == 3 and found["verdict"] == "incomplete", (found, err)
    told = found[key][0]
    assert told["words"] > 0 and "error" in [reason["reason"] for reason in told["reasons"]], (found, err)
