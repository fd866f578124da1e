"""`fadelink doctor`: what it finds wrong is mended by the line that it prints. The card's own settings are in tests/driver."""

import json
import subprocess

from support.netns import FEBS
from support.paths import FADELINK


def examined(bench, *prefix):
    """Exit status, and findings by their check."""
    words = [*prefix, FADELINK, "doctor", "--iface", "eth0", "--json"]
    status, out, err = bench.start(bench.pc_ns, *words).finish()
    assert err == "", err
    return status, {finding["check"]: finding for finding in json.loads(out)}


def fix(bench, finding):
    bench.run_in(bench.pc_ns, "sh", "-c", finding["fix"])


def test_what_is_found_is_mended_by_its_line(bench):
    """Interface down, MTU, packet steering: each one is found, and good behind its line."""
    bench.run_in(bench.pc_ns, "sh", "-c", "echo 3 >/sys/class/net/eth0/queues/rx-0/rps_cpus")
    bench.run_in(bench.pc_ns, "ip", "link", "set", "eth0", "mtu", 1000, "down")
    status, found = examined(bench)
    wrong = {"link": ("fault", "down"), "MTU": ("fault", "1000"), "receive packet steering": ("improve", "CPU mask 3")}
    assert status == 1
    assert {check: (found[check]["state"], found[check]["found"]) for check in wrong} == wrong
    for check in wrong:
        assert found[check]["iface"] == "eth0" and found[check]["meaning"]
        fix(bench, found[check])
    status, found = examined(bench)
    assert status == 0
    assert all(found[check]["state"] == "good" and "fix" not in found[check] for check in wrong), found


def test_an_mtu_for_fade_v1_alone(bench):
    """What it calls refused is refused, and what it calls mended is received."""
    bench.run_in(bench.pc_ns, "ip", "link", "set", "eth0", "mtu", 1500)
    board = bench.sim()
    status, found = examined(bench)
    assert status == 0 and found["MTU"]["state"] == "improve"
    status, _, err = bench.receive("--packets", 10, "--quiet").finish()
    assert status == 1 and "MTU 1500" in err
    fix(bench, found["MTU"])
    assert bench.receive("--packets", 10, "--quiet").finish()[0] == 0
    bench.end_sim(board)


def test_without_capabilities(bench):
    """A fault, as `receive` confirms."""
    without = ["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    status, found = examined(bench, *without)
    assert status == 1 and found["capabilities"]["state"] == "fault"
    assert found["capabilities"]["fix"] == f"setcap cap_net_raw,cap_sys_nice+ep {FADELINK}"
    words = [*without, FADELINK, "receive", "--iface", "eth0", "--feb", FEBS[0]]
    status, _, err = bench.start(bench.pc_ns, *words).finish()
    assert status == 1 and "CAP_NET_RAW" in err, err


def test_text_and_errors(bench):
    """A line for each finding, with what it means and what mends it below."""
    bench.run_in(bench.pc_ns, "ip", "link", "set", "eth0", "mtu", 1500)
    status, out, _ = bench.run("doctor", "--iface", "eth0")
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:3] == ["improve", "eth0", "MTU"])
    assert "FADE-10G is refused" in lines[at + 1] and lines[at + 2].endswith("-> ip link set dev eth0 mtu 9000")
    status, out, err = bench.run("doctor", "--iface", "eth9")
    assert (status, out) == (1, "") and "interface eth9 does not exist" in err
    status, out, _ = bench.run("doctor", "--iface", "lo")
    assert status == 1 and "not Ethernet" in out
    found = subprocess.run([FADELINK, "doctor", "--json"], capture_output=True, text=True).stdout
    assert {"capabilities", "processors", "frequency governor", "idle states"} <= {line["check"] for line in json.loads(found)}
