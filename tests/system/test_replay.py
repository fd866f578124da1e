"""`fadelink replay`: runs are played back, by boards in software."""

import signal
import socket
import subprocess
import time

import pytest
from support import fadc_model as model
from support.broker import free_ports
from support.crate import WINDOW_NS, Crate
from support.lab import end, fade, words
from support.netns import BOARD, FEBS, PATIENCE, PC, add_address, sh, wait_for
from support.paths import FADELINK


def replay(lab, *options):
    return lab.bench.start(lab.bench.board_ns, FADELINK, "replay", lab.runs / "run_000001", *options)


def wait_until_it_plays(played):
    """A board that does not answer in time fails the run."""
    line = played.popen.stderr.readline()
    assert "are played back" in line, line


@pytest.mark.parametrize("speed", [pytest.param("1", marks=pytest.mark.long), "4", pytest.param("max", marks=pytest.mark.long)])
def test_a_run_is_played_back(lab, speed):
    """The words of the run, from boards in software, in the time of the run or as many times faster."""
    bench = lab.bench
    add_address(bench)
    sh("ip", "-n", bench.board_ns, "addr", "add", "10.9.0.9/24", "dev", "feb0")
    sims = [
        bench.sim("--feb", FEBS[0], "--random", "--gap", 20),
        bench.sim("--feb", FEBS[1], "--protocol", "fade1", "--random", "--gap", 20),
        bench.sim("--feb", FEBS[2], "--protocol", "tcp", "--streams", 2, "--words", 150000, "--random", "--gap", 20),
    ]
    boards = (
        fade("ten").replace('verify = "counter"', "")
        + fade("one", 1).replace('verify = "counter"', "")
        + '[[tcp]]\nname = "sender"\naddress = "ADDRESS"\nport = 10000\nstreams = 2\nsinks = ["file:{board}-{stream}.dat"]\n'
    )
    lab.write('end = "told"\n' + boards.replace("ADDRESS", BOARD))
    process = lab.start()
    sizes = lambda pattern: [path.stat().st_size for path in lab.runs.glob(f"run_000001/{pattern}.dat")]  # noqa: E731
    wait_for(lambda: sum(sizes("*")) > 0)
    begin = time.monotonic()
    wait_for(lambda: sizes("sender-*") == [150000 * 8] * 2 and min(sizes("ten") + sizes("one")) > 0)
    lasted = time.monotonic() - begin
    status, err = end(process)
    assert status == 0, err
    first = lab.manifest()
    for sim in sims:
        bench.end_sim(sim)

    def content(manifest, folder):
        """{board: words}"""
        found = {}
        for board in manifest["boards"]:
            name = board["name"].split("/")[0]
            stem = name if name != "sender" else f"{name}-{board['peer'].replace(':', '-')}"
            data = words(folder / f"{stem}.dat")
            found.setdefault(name, []).append(data[: data.size - (board.get("filler_words") or 0)])
        return found

    # FADE v1 tells no end: what fills the last packet is not known without a pattern.
    lab.write('end = "told"\nstop = { duration = 60 }\n' + boards.replace("ADDRESS", "10.9.0.9"))
    played = replay(lab, "--iface", "feb0", "--to", PC, "--speed", speed)
    wait_until_it_plays(played)
    process = lab.start()
    want = content(first, lab.folder(1))
    total = sum(data.size for parts in want.values() for data in parts) * 8
    size = lambda: sum(path.stat().st_size for path in lab.folder(2).glob("*.dat"))  # noqa: E731
    begin = time.monotonic()
    wait_for(lambda: (lab.runs / "run_000002").exists() and size() >= total - 8192)
    seconds = time.monotonic() - begin
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 0, err
    status, _, err = played.finish()
    assert status == 0, err
    found = content(lab.manifest(2), lab.folder(2))
    for name, parts in want.items():
        assert len(parts) == len(found[name])
        for part in parts:
            again = next(data for data in found[name] if (data[:100] == part[:100]).all())
            assert (again[: part.size] == part).all() and again.size - part.size < 128, (name, again.size, part.size)
    if speed != "max":
        # How much longer it takes depends on the machine.
        assert seconds > 0.7 * lasted / int(speed)


def test_udp_boards_and_crates_are_played_back(lab):
    bench = lab.bench
    add_address(bench)
    sims = [
        bench.sim("--feb", FEBS[3], "--protocol", "udp", "--ip", "10.9.0.3", "--port", 10001, "--stopped", "--user-mhz", 2),
        bench.sim("--boards", 2, "--protocol", "fadc", "--small", "--phy", "gmii", "--ip", "10.9.0.4", "--port", 10002, "--windows", 2000),
    ]
    text = (
        'folder = "runs"\nend = "told"\n'
        '[[udp]]\nname = "stack"\naddress = "10.9.0.3"\nport = 10001\nverify = "counter"\n'
        '[[crates]]\nname = "events"\nport = 10002\nwindow_ns = 65536\nexpect = 2\nsinks = ["file:{board}.dat,every=1"]\n'
    )
    lab.write(text)
    process = lab.start()
    parts = lambda folder: [folder / "events.dat", *sorted(folder.glob("events.0*.dat"))]  # noqa: E731

    def has_enough():
        """It has begun another file, and there are messages of both crates in more than 20 windows."""
        folder = lab.runs / "run_000001"
        return len(parts(folder)) > 1 and sum(model.count_messages(path.read_bytes()) for path in parts(folder)) > 2 * 22

    wait_for(has_enough)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 0, err
    first = lab.manifest(1)
    for sim in sims:
        bench.end_sim(sim)
    stack, events = first["boards"]
    assert len(list(lab.folder(1).glob("events.0*.dat"))) > 0 and lab.check(1)[0] == 0
    sh("ip", "-n", bench.board_ns, "addr", "add", "10.9.0.7/24", "dev", "feb0")
    status, _, err = replay(lab, "--board", "stack").finish()
    assert status == 1 and "choose another: --address stack=IP" in err, err
    lab.write(text.replace("10.9.0.3", "10.9.0.7"))
    played = replay(lab, "--to", PC, "--address", "stack=10.9.0.7")
    wait_until_it_plays(played)
    process = lab.start()
    begin = time.monotonic()
    status, _, err = played.finish()
    seconds = time.monotonic() - begin
    assert status == 0 and 0.75 * stack["seconds"] < seconds, (seconds, stack["seconds"], err)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 0, err
    second = lab.manifest(2)
    again, joined = second["boards"]
    assert again["bytes"] == stack["bytes"] and again["verified"] and again["counts"]["lost"] == 0
    assert second["begin"]["boards"]["stack"]["payload"] == first["begin"]["boards"]["stack"]["payload"]
    assert (words(lab.folder(1) / "stack.dat") == words(lab.folder(2) / "stack.dat")).all()
    assert joined["windows"]["complete"] == events["windows"]["complete"] > 20
    both = [b"".join(path.read_bytes() for path in parts(lab.folder(number))) for number in (1, 2)]
    assert both[0] == both[1] and lab.check(2)[0] == 0


@pytest.mark.parametrize("taken", [0, 40_000])
def test_a_receiver_that_takes_no_more_is_told(tmp_path, taken):
    """It is what differs from the run: no error of the program."""
    (port,) = free_ports(1)
    file = tmp_path / "experiment.toml"
    crates = f'[[crates]]\nname = "events"\nport = {port}\nwindow_ns = {WINDOW_NS}\nexpect = 1\nsinks = ["file:events.dat"]\n'
    file.write_text('end = "told"\n[disk]\nreserve = "1M"\n' + crates)
    process = subprocess.Popen([FADELINK, "run", file, "--quiet"], stderr=subprocess.PIPE, text=True)
    crate = Crate(port, 1, process)
    crate.send(*range(2000))
    crate.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0, process.stderr.read()
    with socket.create_server(("127.0.0.1", port)) as server:
        words = [FADELINK, "replay", tmp_path / "runs/run_000001", "--speed", "max"]
        played = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        connection, _ = server.accept()
        while taken:
            taken -= len(connection.recv(min(taken, 4096)))
        connection.close()
        err = played.communicate(timeout=PATIENCE)[1]
    assert played.returncode == 3 and f"events: the receiver at 127.0.0.1:{port} has not taken all of it" in err, err
