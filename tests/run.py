#!/usr/bin/env python3
"""`make test`: every part one after another, a line each with its time; then the ten slowest tests and what the run left behind.

Usage: tests/run.py [PART ...]     default: all; `tests/run.py --list` names them
       tests/run.py test-boards --tests FILE ...
Output of a part goes to build/log/PART.log and is shown if the part fails. Each part runs in a sandbox (support/sandbox.py),
which names what it left behind; that fails the run, too. A test that fails beside others is run again alone: if it passes
then, the run passes and the test is named as unsteady, for somebody to mend.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests"))
from support import sandbox  # noqa: E402

LOG = TOP / "build/log"
JOBS = str(os.cpu_count())
PLAIN = [str(TOP / "tools/plain_path.sh")]
CARGO = [*PLAIN, "cargo", "--color=never"]
# More than there are processors, for many tests wait for another program or for a time-out.
os.environ.setdefault("PYTEST_XDIST_AUTO_NUM_WORKERS", str(2 * (os.cpu_count() or 1) + 1))
PYTEST = [sys.executable, "-m", "pytest", "-c", "tests/pytest.ini"]
RUFF = [sys.executable, "-m", "ruff"]
# (name, folder, network, commands). What fetches packages runs in the computer's network; tests have a network of their own.
PARTS = [
    ("sim", ".", "host", [["make", "-s", "-j", JOBS, "-f", "sim/Makefile"]]),
    ("host", "host", "host", [[*CARGO, "fetch", "--locked", "--quiet"], [*CARGO, "build-all", "--release", "--locked", "--quiet"]]),
    ("python", ".", "host", [["make", "-s", "python"]]),
    ("kafka", ".", "host", [["tools/kafka.sh"]]),
    ("prometheus", ".", "host", [["tools/prometheus.sh"]]),
    ("kernel32", ".", "host", [["tools/kernel32.sh"]]),
    ("test-host", "host", "own", [[*CARGO, "test-all", "--release", "--locked", "--offline", "--quiet"]]),
    ("lint-host", ".", "own", [[*PLAIN, "tools/lint_host.sh"]]),
    ("lint-rtl", ".", "own", [["tools/lint_rtl.sh"]]),
    ("lint-c", ".", "own", [[*PLAIN, "tools/lint_c.sh"]]),
    ("lint-python", ".", "own", [[*RUFF, "check", "--quiet", "--no-cache"], [*RUFF, "format", "--quiet", "--no-cache", "--diff"]]),
    ("lint-prose", ".", "own", [[sys.executable, "tools/lint_prose.py"]]),
    ("test-boards", ".", "own", [[*PYTEST, "-n", "auto"]]),
]
SETUP = TOP / "tools/setup.sh"
# What `SETUP build` has installed is enough for these.
COMPILED = ["sim", "host"]
# These make network namespaces, for every user.
NEED_ROOT = ["test-boards", "test-boards-again"]


def results():
    """Where pytest writes the result of each test."""
    return LOG / "boards.xml"


class Setup:
    """Installs what compiling does not need, at the same time: it mostly waits for the network and the disk."""

    def __init__(self):
        self.process = subprocess.Popen([SETUP], stdin=subprocess.DEVNULL, preexec_fn=sandbox.end_with_parent)

    def wait(self):
        """True if all is there."""
        return self.process.wait() == 0

    def end(self):
        """What is being installed will be; no more is begun."""
        self.process.terminate()
        self.process.wait()


def run(name, folder, network, commands):
    """Runs a part: True if all its commands did well and left nothing behind."""
    with open(log_of(name), "w") as log:
        for command in commands:
            process = subprocess.Popen(
                sandbox.words(command, network, name in NEED_ROOT), cwd=TOP / folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, preexec_fn=sandbox.end_with_parent,
            )  # fmt: skip
            try:
                if process.wait() != 0:
                    return False
            except BaseException:
                process.send_signal(signal.SIGTERM)
                process.wait()
                raise
    return True


def left_behind(name):
    """What the sandbox of a part found when its program had ended."""
    lines = log_of(name).read_text(errors="replace").splitlines()
    return [line.removeprefix(sandbox.LEFT) for line in lines if line.startswith(sandbox.LEFT)]


def log_of(name):
    return LOG / f"{name}.log"


def again():
    """Runs alone the tests that failed: the names of those that pass now, or None if one fails again."""
    failed = sorted({identity(case) for case in xml.parse(results()).iter("testcase") if is_failed(case)})
    if not failed or len(failed) > 5:
        return None
    return failed if run("test-boards-again", ".", "own", [[*PYTEST, *failed]]) else None


def is_failed(case):
    return case.find("failure") is not None or case.find("error") is not None


def identity(case):
    """The name by which pytest runs a test again."""
    return noted(case, "node", case.get("name"))


def noted(case, name, default):
    """What a test has noted of itself."""
    found = case.find(f"properties/property[@name='{name}']")
    return default if found is None else found.get("value")


def slowest():
    """The ten slowest tests, and how many there were of each result."""
    cases = list(xml.parse(results()).iter("testcase"))
    cases.sort(key=lambda case: -float(case.get("time")))
    print("ten slowest tests:")
    for case in cases[:10]:
        print(f"  {float(case.get('time')):6.1f} s, of processors {float(noted(case, 'cpu', 0)):6.1f} s  {identity(case)}")
    failed = sum(map(is_failed, cases))
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - failed - skipped, failed, skipped


def show(name):
    """The end of a part's output; none of a part that did not run."""
    if log_of(name).exists():
        print(re.sub(r"^", "    ", log_of(name).read_text(errors="replace")[-20000:], flags=re.M))


def main():
    global LOG
    names = [name for name, *_ in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[[], *names], metavar="PART", help=", ".join(names))
    parser.add_argument("--list", action="store_true", help="print the names of the parts")
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="FILE", help="what test-boards runs: all of tests/")
    parser.add_argument("--log", type=Path, default=LOG, metavar="FOLDER", help="for the output of the parts: build/log")
    args = parser.parse_args()
    LOG = args.log.resolve()
    if args.list:
        print("\n".join(names))
        return 0
    LOG.mkdir(parents=True, exist_ok=True)
    for path in (results(), log_of("test-boards-again")):
        path.unlink(missing_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    # Background jobs of a shell ignore SIGINT; those who want to stop a run by it should not wait in vain.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begin, bad, left = time.monotonic(), [], []
    counts = None
    setup = None if args.part else Setup()
    try:
        for name, folder, network, commands in PARTS:
            if args.part and name not in args.part:
                continue
            if setup and name not in COMPILED:
                good, setup = setup.wait(), None
                if not good:
                    bad.append("setup")
                    break
            started = time.monotonic()
            if name == "test-boards":
                commands = [[*commands[0], f"--junitxml={results()}", *args.tests]]
            good = run(name, folder, network, commands)
            found = left_behind(name)
            unsteady, last = None, name
            if not good and not found and name == "test-boards" and results().exists():
                counts = slowest()
                show(name)
                unsteady = again()
                last = f"{name}-again"
            took = time.monotonic() - started
            print(f"{name:12} {took:6.0f} s  {'ok' if good else 'UNSTEADY, see below' if unsteady else 'FAILED'}", flush=True)
            if not good and not unsteady:
                bad.append(name)
                show(last)
            for test in unsteady or []:
                print(f"  passed only alone: {test}")
            if unsteady:
                counts = (counts[0] + counts[1], 0, counts[2])
            left += [f"{name} left behind: {what}" for what in found]
            # Without what is built, the rest would fail for that alone.
            if bad and name in ("sim", "host", "python", "kafka", "kernel32"):
                break
    except KeyboardInterrupt:
        bad.append("interrupted")
    finally:
        if setup:
            setup.end()
    if results().exists() and counts is None and "interrupted" not in bad:
        counts = slowest()
    for line in left:
        print(line)
    print(f"{'all':12} {time.monotonic() - begin:6.0f} s  {'FAILED: ' + ', '.join(bad) if bad else 'ok'}")
    if counts:
        print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
