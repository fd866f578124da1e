"""`fadelink receive` against simulated boards: every word, or a clear reason why not."""

import json
import re
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from support.lab import fetch
from support.netns import FEBS, report, sh, wait_for
from support.paths import FADELINK, SIM


def counter_words(path):
    data = Path(path).read_bytes()
    assert len(data) % 8 == 0
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    assert all(word == i for i, word in enumerate(words))
    return len(words)


LINKS = {
    "clean": [],
    "loss": ["--link", "loss=0.05"],
    "disorder": ["--link", "loss=0.03,duplicate=0.05,reorder=0.05,jitter=3us"],
    "corruption": ["--link", "corrupt=0.05"],
    "slow": ["--up", "rate=2000,loss=0.03", "--down", "delay=50us"],
    "gmii": ["--phy", "gmii", "--window", "16", "--link", "loss=0.02"],
    "window 64": ["--window", "64", "--link", "loss=0.02,delay=30us"],
    "clocks": ["--user-mhz", "97.3", "--tx-ppm", "100", "--rx-ppm", "-100", "--link", "loss=0.02"],
}


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
def test_every_word_arrives(bench, link):
    sim = bench.sim(*link)
    out = bench.tmp / "data"
    status, result = report(bench.receive("--out", out, "--verify", "counter", "--packets", 300).finish())
    assert status == 0 and result["complete"] and result["febs"][0]["verified"]
    assert counter_words(out) == result["febs"][0]["words"] >= 300 * 1024
    summary = bench.end_sim(sim)["boards"][0]
    lost = sum(summary["up"][name] for name in ("lost", "corrupted"))
    if "loss" in str(link) or "corrupt" in str(link):
        assert lost > 0 and summary["retransmitted"] > 0
    assert not summary["running"], "the board came to rest"


def pending(pid, number):
    """The signal has not been taken yet by a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


def test_packet_numbers_wrap(bench):
    first = 2**32 - 100
    bench.sim("--first-packet", first, "--first-sequence", 65500, "--link", "loss=0.02")
    status, result = report(bench.receive("--verify", "counter", "--packets", 300, "--first-packet", first).finish())
    assert status == 0 and result["febs"][0]["verified"]


def test_two_boards_in_one_program_and_commands(bench):
    bench.sim("--boards", 2, "--link", "loss=0.01")
    assert bench.command(0x0202, 1, FEBS[1]) == 0
    bench.command(0x0203, 0xFADE, FEBS[1])
    receiver = bench.fadelink(
        "receive", "--iface", "eth0", "--feb", FEBS[0], "--feb", FEBS[1], "--verify", "counter", "--verify",
        "random:0xFADE", "--json", "--out", bench.tmp / "a", "--out", bench.tmp / "b",
    )  # fmt: skip
    bench.wait_for_frames()
    for i in range(1, 11):
        for feb in FEBS[:2]:
            assert bench.command(0x0207, 1, feb) == i, "exactly once"
    receiver.signal(signal.SIGINT)
    status, result = report(receiver.finish())
    assert status == 0 and all(feb["verified"] and feb["words"] > 0 for feb in result["febs"])
    assert counter_words(bench.tmp / "a") == result["febs"][0]["words"]


def test_two_programs_on_one_interface_leave_each_other_alone(bench):
    bench.sim("--boards", 2, "--link", "loss=0.01")
    files = {feb: bench.tmp / feb for feb in FEBS[:2]}
    receivers = [bench.receive("--verify", "counter", "--out", file, feb=feb) for feb, file in files.items()]
    wait_for(lambda: all(file.exists() for file in files.values()))
    sizes = [file.stat().st_size for file in files.values()]
    wait_for(lambda: all(file.stat().st_size > size + 50 * 8192 for file, size in zip(files.values(), sizes, strict=True)))
    for receiver in receivers:
        receiver.signal(signal.SIGINT)
        status, result = report(receiver.finish())
        assert status == 0 and result["febs"][0]["verified"]
    assert result["link"]["resets"] == 0


def test_a_feb_is_opened_once(bench):
    bench.sim()
    out = bench.tmp / "data"
    receiver = bench.receive("--out", out)
    bench.wait_for_frames()
    status, _, err = bench.run("receive", "--iface", "eth0", "--feb", FEBS[0], "--out", out)
    assert status == 1 and "it is open already" in err and len(err.splitlines()) == 1
    receiver.signal(signal.SIGINT)
    status, result = report(receiver.finish())
    assert status == 0 and counter_words(out) == result["febs"][0]["words"], "the file was left alone"


@pytest.mark.parametrize("words", [1, 1023, 1024, 5000])
def test_partly_filled_last_packet(bench, words):
    bench.sim("--link", "loss=0.02")
    bench.command(0x0205, words)
    out = bench.tmp / "data"
    status, result = report(bench.receive("--out", out, "--verify", "counter", "--duration", 1).finish())
    assert status == 0 and result["febs"][0]["words"] == words == counter_words(out)


def test_interrupt_stops_and_drains(bench):
    bench.sim("--link", "loss=0.02")
    out = bench.tmp / "data"
    receiver = bench.receive("--out", out, "--verify", "counter")
    wait_for(lambda: out.exists() and out.stat().st_size > 2_000_000)
    receiver.signal(signal.SIGINT)
    status, result = report(receiver.finish())
    assert status == 0 and result["complete"] and result["febs"][0]["verified"]
    assert counter_words(out) == result["febs"][0]["words"]


def test_disk_full_keeps_what_was_written(bench):
    bench.sim()
    disk = bench.tmp / "disk"
    disk.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk)
    try:
        status, out, err = bench.receive("--out", disk / "data", "--verify", "counter").finish()
        assert status == 3
        assert "No space left" in err and "intact" in err
        result = json.loads(out)
        assert not result["complete"] and "No space left" in result["febs"][0]["error"]
        written = (disk / "data").read_bytes()
        assert len(written) > 500_000
        words = struct.unpack(f"<{len(written) // 8}Q", written[: len(written) // 8 * 8])
        assert words == tuple(range(len(words)))
    finally:
        sh("umount", disk)


def test_interface_is_removed(bench):
    bench.sim()
    receiver = bench.receive("--verify", "counter")
    bench.wait_for_frames()
    sh("ip", "-n", bench.pc_ns, "link", "delete", "eth0")
    status, _, err = receiver.finish()
    assert status == 3 and "interface eth0 was removed" in err, err


def test_a_second_interrupt_does_not_wait_for_a_board_that_is_gone(bench):
    sim = bench.sim()
    receiver = bench.receive("--verify", "counter")
    bench.wait_for_frames()
    sim.signal(signal.SIGKILL)
    for _ in range(2):
        receiver.signal(signal.SIGINT)
        # Two that come at once are one to the kernel.
        wait_for(lambda: not pending(receiver.popen.pid, signal.SIGINT))
    status, out, err = receiver.finish()
    assert status == 3 and "interrupted before the end" in err, err
    assert json.loads(out)["febs"][0]["wrong_words"] == 0


def test_board_falls_silent(bench):
    sim = bench.sim()
    receiver = bench.receive("--verify", "counter", "--idle-timeout", 1)
    bench.wait_for_frames()
    sim.signal(signal.SIGKILL)
    status, out, err = receiver.finish()
    assert status == 3 and "no data for 1 s" in err
    assert json.loads(out)["febs"][0]["wrong_words"] == 0


def test_wrong_pattern_is_told(bench):
    bench.sim()
    status, out, err = bench.receive("--verify", "counter:1", "--packets", 10).finish()
    result = json.loads(out)["febs"][0]
    assert status == 3 and not result["complete"] and result["wrong_words"] == result["words"]
    assert [reason["reason"] for reason in result["reasons"]] == ["wrong_words"]
    assert result["first_wrong"] == {"index": 0, "word": 0, "expected": 1}
    assert "word 0 is" in err


def test_standard_output(bench):
    bench.sim()
    process = subprocess.run(
        ["ip", "netns", "exec", bench.pc_ns, FADELINK, "receive", "--iface", "eth0", "--feb", FEBS[0], "--out", "-",
         "--packets", "20", "--quiet"], capture_output=True)  # fmt: skip
    assert process.returncode == 0, process.stderr
    words = struct.unpack(f"<{len(process.stdout) // 8}Q", process.stdout)
    assert words == tuple(range(len(words))) and len(words) >= 20 * 1024


def test_a_feb_that_nobody_opened_is_reset(bench):
    sim = bench.sim("--boards", 2)
    raw = bench.raw(bench.pc_ns, "eth0")
    local = raw.getsockname()[4]
    start = bytes.fromhex(FEBS[1].replace(":", "")) + local + bytes.fromhex("fade01000001123400000000")
    raw.send(start.ljust(78, b"\xa5"))
    assert raw.recv(10000)
    raw.close()
    sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
    process = bench.receive("--verify", "counter", "--metrics", "127.0.0.1:9470")
    # The other board repeats its packets at its own pace.
    wait_for(lambda: re.search(r"^fadelink_link_resets_total\{.*\} [1-9]", fetch(bench, "/metrics"), re.M))
    process.signal(signal.SIGINT)
    status, result = report(process.finish())
    assert status == 0 and result["febs"][0]["verified"]
    assert result["link"]["unknown_feb"] > 0 and result["link"]["resets"] > 0
    assert not any(board["running"] for board in bench.end_sim(sim)["boards"])


def test_malformed_frames_are_counted_and_spoil_no_word(bench):
    bench.sim("--link", "loss=0.01")
    receiver = bench.receive("--verify", "counter")
    bench.wait_for_frames()
    raw = bench.raw(bench.board_ns, "feb0")
    pc = bytes.fromhex(sh("ip", "netns", "exec", bench.pc_ns, "cat", "/sys/class/net/eth0/address").strip().replace(":", ""))
    feb = bytes.fromhex(FEBS[0].replace(":", ""))
    head = pc + feb + b"\xfa\xde"
    data = b"\x01\x00\xa5\xa5" + bytes(8214)
    for frame in [
        head + b"\x01",
        head + b"\x01\x01" + bytes(60),
        head + b"\x01\x00\xa5\xa7" + bytes(60),
        head + data[:100],
        head + data + b"\0",
        head + b"\x01\x00\xa5\xa6" + bytes(22 + 8184) + (1024).to_bytes(8, "little"),
        head + b"\x01\x00\xa5\xa5\0\0\x7f\0\0\0" + bytes(8208),
        feb + pc + b"\xfa\xde" + data,
        pc + b"\x02\xfa\xde\0\0\x77\xfa\xde\x01\x00\xa5\xa5" + bytes(8214),
    ]:
        raw.send(frame)
    raw.close()
    bench.wait_for_frames()
    receiver.signal(signal.SIGINT)
    status, result = report(receiver.finish())
    # A packet that the board cannot have sent: somebody else sends in its name.
    assert status == 3 and [reason["reason"] for reason in result["febs"][0]["reasons"]] == ["foreign"]
    assert result["febs"][0]["wrong_words"] == 0
    counters, link = result["febs"][0]["counters"], result["link"]
    assert (link["truncated"], link["wrong_version"], link["wrong_type"]) == (1, 1, 1)
    assert (counters["wrong_length"], counters["wrong_valid_words"], counters["protocol_errors"]) == (2, 1, 1)
    assert link["unknown_feb"] == 1


def test_slow_reader_pushes_back(bench):
    """A ring of one window and a slow pipe: the board waits, nothing is lost."""
    bench.sim()
    receiver = bench.receive("--verify", "counter", "--ring", 64, "--out", "/dev/stderr")
    # More than pipe and ring hold: the board sends again what found no room.
    bench.wait_for_frames()
    receiver.signal(signal.SIGINT)
    data = receiver.popen.stderr.buffer.read()
    receiver.popen.wait()
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    assert receiver.popen.returncode == 0 and words == tuple(range(len(words)))
    result = json.loads(receiver.popen.stdout.read())
    assert result["febs"][0]["counters"]["no_space"] > 0 and result["febs"][0]["verified"]


def test_tap(bench):
    """The board makes its own TAP and the receiver uses its other side."""
    process = bench.start(bench.pc_ns, SIM, "--iface", "tap0", "--create-tap", "--json", "--link", "loss=0.01")
    assert "board(s) on" in process.popen.stderr.readline()
    status, out, err = bench.run("receive", "--iface", "tap0", "--feb", FEBS[0], "--verify", "counter", "--packets", 200, "--json")
    assert status == 0, err
    assert json.loads(out)["febs"][0]["verified"]
    bench.end_sim(process)
