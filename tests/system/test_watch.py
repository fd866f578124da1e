"""Metrics for Prometheus, and `fadelink top`."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import urllib.request

from support.netns import FEBS, PATIENCE, report, wait_for


def scrape(bench):
    """The metrics of the receiver in the PC's namespace: name with labels to value."""
    proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get():
        with proxy.open("http://127.0.0.1:9777/metrics", timeout=PATIENCE) as answer:
            return answer.read().decode()

    text = bench.in_namespace(bench.pc_ns, get)
    return {name: float(value) for name, value in re.findall(r"^([^#\s]+) (\S+)$", text, re.M)}


def test_prometheus(bench):
    bench.sim("--boards", 2, "--link", "loss=0.02")
    bench.run_in(bench.pc_ns, "ip", "link", "set", "lo", "up")
    process = bench.receive("--feb", FEBS[1], "--verify", "counter", "--quiet", "--metrics", "127.0.0.1:9777")
    found = {}

    def both_run():
        try:
            found.update(scrape(bench))
        except OSError:
            return False
        return all(found.get(f'fadelink_fade_packets_total{{board="{mac}"}}', 0) > 200 for mac in FEBS[:2])

    wait_for(both_run)
    # A second one cannot have the same address.
    status, _, err = bench.run("receive", "--iface", "eth0", "--feb", FEBS[2], "--metrics", "127.0.0.1:9777")
    assert status == 1 and "--metrics 127.0.0.1:9777" in err, err
    process.signal(signal.SIGINT)
    status, result = report(process.finish())
    assert status == 0
    for feb in result["febs"]:
        label = f'{{board="{feb["feb"]}"}}'
        assert 200 * 8192 <= found["fadelink_received_bytes_total" + label] <= feb["bytes"]
        assert found["fadelink_ring_size_bytes" + label] == 2048 * 8192
        for name, counter in [("missing", "missing_frames"), ("duplicate", "duplicates")]:
            assert found[f"fadelink_fade_{name}_frames_total{label}"] <= feb["counters"][counter]
        assert found[f'fadelink_fade_sent_frames_total{{board="{feb["feb"]}",type="ack"}}'] <= feb["counters"]["acks"]
    assert found['fadelink_link_frames_total{interface="eth0"}'] > 400


def test_top_prints_tables(bench):
    bench.sim("--boards", 3, "--link", "loss=0.01")
    process = bench.receive("--quiet")
    wait_for(lambda: bench.command(0x0119) == 1)
    status, out, err = bench.run("top", "--iface", "eth0", "--feb", FEBS[0], "--feb", FEBS[1], "--feb", "02:00:00:00:00:99",
                                 "--batch", 2, "--interval", 1)  # fmt: skip
    assert status == 0, err
    tables = [[line.split() for line in table.splitlines()] for table in out.split("\n\n")]
    assert len(tables) == 2
    for head, first, second, third in tables:
        assert head[0] == "board"
        assert first[:2] == [FEBS[0], "running"] and second[:2] == [FEBS[1], "idle"]
        assert head[-1] == "firmware" and second[-1] == "fadelink"
        assert third == ["02:00:00:00:00:99", "silent"]
    assert float(tables[1][1][2]) > 0, "megabytes a second"
    assert float(tables[1][2][2]) == 0
    process.signal(signal.SIGINT)
    assert report(process.finish())[0] == 0
    # Without names: all that answer.
    status, out, err = bench.run("top", "--iface", "eth0", "--batch", 1)
    assert status == 0 and [line.split()[0] for line in out.splitlines()] == ["board", *FEBS[:3]]


def test_top_on_a_terminal(bench):
    """Shows the boards, and leaves at `q`."""
    bench.sim("--boards", 2)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.set_blocking(master, False)
    process = bench.fadelink("top", "--iface", "eth0", "--interval", "0.2", stdin=slave, stdout_to=slave)
    shown = b""
    end = time.monotonic() + PATIENCE
    while not all(text.encode() in shown for text in [*FEBS[:2], "idle"]) and time.monotonic() < end:
        if select.select([master], [], [], 0.2)[0]:
            shown += os.read(master, 65536)
    assert b"idle" in shown and b"quit" in shown, shown
    os.write(master, b"q")
    status, _, err = process.finish()
    assert status == 0, err


def test_top_without_a_terminal(bench):
    bench.sim()
    status, out, err = bench.run("top", "--iface", "eth0", "--feb", FEBS[0])
    assert status == 1 and "--batch" in err and not out
