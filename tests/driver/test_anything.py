"""What the command calls complete over the kernel driver is the record of the board, whatever happens to board, cable and programs."""

import hashlib
import json
import random
import re

import pytest
from support.faults import Site
from support.faults.anything import judge
from support.faults.anything.fade import Disturbing, board, possible
from support.faults.anything.forged import Forger, Wire
from support.faults.anything.world import World
from support.guest import LOAD, UNTIL_IT_HEARS
from support.netns import FEBS, sh
from support.paths import SEED

COMPUTER = "52:54:00:12:34:56"  # of the virtual machine
PROGRAM = f"fadelink receive --backend kernel --iface eth0 --feb {FEBS[0]} --json --quiet"


@pytest.fixture
def switched(bench):
    """The bench with a switch between board and virtual machine, as nobody can send to a board on the TAP."""
    namespace = bench.board_ns
    sh("ip", "-n", namespace, "link", "add", "switch", "type", "bridge", "mcast_snooping", "0")
    sh("ip", "-n", namespace, "link", "add", "port", "mtu", 9000, "type", "veth", "peer", "name", "feb1", "mtu", 9000)
    for name in ("port", "feb1", "switch"):
        bench.run_in(namespace, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
    for name in ("port", "fade0"):
        sh("ip", "-n", namespace, "link", "set", name, "master", "switch")
    for name in ("port", "feb1", "switch"):
        sh("ip", "-n", namespace, "link", "set", name, "up")
    yield bench
    bench.end_processes()
    sh("ip", "-n", namespace, "link", "set", "fade0", "nomaster")
    for name in ("port", "switch"):
        sh("ip", "-n", namespace, "link", "delete", name)


def script(random, told, forges):
    """A program in the guest: stands still, is killed and begun again, or loses its interface, then its end is asked for."""
    program = f"{PROGRAM} {told} --overwrite --out /tmp/a.dat >/tmp/report 2>/tmp/error & R=$!"
    lines = [LOAD, program, f"sleep {random.uniform(0.5, 2):.2f}"]
    others = (
        ["kill -STOP $R", f"sleep {random.uniform(0, 1):.2f}", "kill -CONT $R"],
        ["kill -9 $R; wait $R", program],
        ["ip link set eth0 down", "ip link set eth0 up"],
    )
    if not forges and random.random() < 0.5:
        lines += [*random.choice(others), f"sleep {random.uniform(0.5, 1):.2f}"]
    lines += [
        f"{UNTIL_IT_HEARS}; kill -INT $R; wait $R; echo STATUS $?; echo REPORT $(cat /tmp/report | tr -d '\\n')",
        "echo DESCRIBED $(cat /tmp/a.dat.json | tr -d '\\n'); echo SUM $(sha256sum </tmp/a.dat); echo SIZE $(stat -c %s /tmp/a.dat)",
        "echo ERROR $(cat /tmp/error | tr -d '\\n')",
    ]
    return "\n".join(lines)


def said(name, out):
    found = re.search(rf"^{name} (.*?)\s*$", out, re.M)
    return found[1] if found else ""


def judged(out, runs):
    """Whether the file was called complete, which it must be then."""
    text = said("REPORT", out)
    report = json.loads(text)["febs"][0] if text else None
    complete = report is not None and judge.agree("the report", report)
    described = json.loads(said("DESCRIBED", out) or "{}").get("complete", False)
    if complete != (said("STATUS", out) == "0"):
        raise judge.Wrong(f"the exit status is {said('STATUS', out)}, and the report says complete: {complete}")
    if complete or described:
        sums = [hashlib.sha256(run).hexdigest() for run in runs]
        if said("SUM", out).split()[0] not in sums:
            raise judge.Wrong(f"complete ({complete}, {described}), {said('SIZE', out)} bytes of no run; the runs have {[len(run) for run in runs]}")
    else:
        judge.named(said("STATUS", out), report, said("ERROR", out))
    return complete


@pytest.mark.parametrize("count", [1, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_what_is_called_complete_is_the_record(switched, tmp_path, protocol, count):
    for seed in range(int(SEED), int(SEED) + count):
        switched.tmp = tmp_path / str(seed)
        switched.tmp.mkdir()
        site = Site(f"driver-anything-{protocol}", switched, seed=seed)
        forges = site.random.random() < 0.4
        world = World(site, *board(site.random, protocol, forges), iface="feb1")
        wire = Wire(switched, (switched.board_ns, "fade0"), (switched.board_ns, "port"), (switched.board_ns, "port"))
        disturbing = Disturbing(world, None, wire, Forger(protocol, COMPUTER, site.random), forges)
        told = f"--protocol {protocol}" if site.random.random() < 0.5 else ""
        moments = random.Random(f"{seed}/{protocol}")
        try:
            switched.guest.start(script(moments, told, forges))
            world.schedule.run(lambda: world.record.runs() or not switched.guest.is_busy())
            disturbing.plan(2)
            world.schedule.run(lambda: not switched.guest.is_busy())
            out = switched.guest.finish()
            judged(out, possible(world, protocol, ()))
        except Exception as error:
            raise AssertionError(f"FADELINK_SEED={seed}: {error!r}\nforges: {forges}, {world.describe()}") from error
        finally:
            wire.close()
            world.end()
