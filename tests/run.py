#!/usr/bin/env python3
"""`make test`: every part one after another, a line each with its time; then the ten slowest tests and what the run left.

Usage: tests/run.py [PART ...]     default: all; `tests/run.py --list` names them
       tests/run.py test-boards --tests FILE ...
Output of a part goes to build/log/PART.log and is shown if the part fails. A test that fails beside others is run again
alone: if it passes then, the run passes too and the test is named as unsteady, for somebody to mend.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import uuid
import xml.etree.ElementTree as xml
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests"))
from support import machine  # noqa: E402

LOG = TOP / "build/log"
JOBS = str(os.cpu_count())
CARGO = ["cargo", "--color=never"]
# More than there are processors, for many tests wait for simulated time or for a time-out.
WORKERS = str((os.cpu_count() or 1) + 1)
PYTEST = [sys.executable, "-m", "pytest", "-c", "tests/pytest.ini"]
# (name, folder, commands)
PARTS = [
    ("sim", ".", [["make", "-s", "-j", JOBS, "-f", "sim/Makefile"]]),
    ("host", "host", [[*CARGO, "build", "--release", "--locked", "--quiet"]]),
    ("python", ".", [["make", "-s", "python"]]),
    ("kafka", ".", [["tools/kafka.sh"]]),
    ("test-host", "host", [[*CARGO, "test", "--release", "--locked", "--quiet"]]),
    ("lint-host", ".", [["tools/lint_host.sh"]]),
    ("lint-rtl", ".", [["tools/lint_rtl.sh"]]),
    ("lint-c", ".", [["tools/lint_c.sh"]]),
    ("lint-python", ".", [[sys.executable, "-m", "ruff", "check", "--quiet"], [sys.executable, "-m", "ruff", "format", "--quiet", "--diff"]]),
    ("test-boards", ".", [[*PYTEST, "-n", WORKERS]]),
]


def results():
    """Where pytest writes what came of each test."""
    return LOG / "boards.xml"


def run(name, folder, commands, environment):
    """Runs a part: True if all its commands did well."""
    with open(LOG / f"{name}.log", "w") as log:
        for words in commands:
            # Background jobs of a shell ignore SIGINT; those who want to stop a run by it should not wait in vain.
            process = subprocess.Popen(
                words, cwd=TOP / folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )  # fmt: skip
            try:
                if process.wait() != 0:
                    return False
            except BaseException:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
    return True


def again(environment):
    """Runs alone the tests that failed: the names of those that pass now, or None if one fails again."""
    failed = sorted({identity(case) for case in xml.parse(results()).iter("testcase") if is_failed(case)})
    if not failed or len(failed) > 5:
        return None
    return failed if run("test-boards-again", ".", [[*PYTEST, *failed]], environment) else None


def is_failed(case):
    return case.find("failure") is not None or case.find("error") is not None


def identity(case):
    """The name by which pytest runs a test again."""
    return f"tests/{case.get('classname').replace('.', '/')}.py::{case.get('name')}"


def slowest():
    """The ten slowest tests, and how many there were of each result."""
    cases = list(xml.parse(results()).iter("testcase"))
    cases.sort(key=lambda case: -float(case.get("time")))
    print("ten slowest tests:")
    for case in cases[:10]:
        print(f"  {float(case.get('time')):6.1f} s  {identity(case)}")
    failed = sum(map(is_failed, cases))
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - failed - skipped, failed, skipped


def show(name):
    print(re.sub(r"^", "    ", (LOG / f"{name}.log").read_text()[-20000:], flags=re.M))


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
    results().unlink(missing_ok=True)
    number = uuid.uuid4().hex
    # What is killed on the way leaves its temporary files in the build folder too.
    temporary = TOP / "build/tmpdir"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, machine.MARK: number, "TMPDIR": str(temporary)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before, begin, bad = machine.snapshot(), time.monotonic(), []
    counts = None
    try:
        for name, folder, commands in PARTS:
            if args.part and name not in args.part:
                continue
            started = time.monotonic()
            if name == "test-boards":
                commands = [[*commands[0], f"--junitxml={results()}", *args.tests]]
            good = run(name, folder, commands, environment)
            unsteady = None
            if not good and name == "test-boards" and results().exists():
                counts = slowest()
                show(name)
                unsteady = again(environment)
            took = time.monotonic() - started
            print(f"{name:12} {took:6.0f} s  {'ok' if good else 'UNSTEADY, see below' if unsteady else 'FAILED'}", flush=True)
            if not good and not unsteady:
                bad.append(name)
                show(f"{name}-again" if name == "test-boards" and (LOG / f"{name}-again.log").exists() else name)
            for test in unsteady or []:
                print(f"  passed only alone: {test}")
            if unsteady:
                counts = (counts[0] + counts[1], 0, counts[2])
            # Without what is built, the rest would fail for that alone.
            if bad and name in ("sim", "host", "python", "kafka"):
                break
    except KeyboardInterrupt:
        bad.append("interrupted")
    finally:
        # A part that was ended, or failed, may not have cleaned up; a good one must have.
        left = machine.sweep(number) if not bad else (machine.sweep(number), [])[1]
        left += machine.differences(before, machine.snapshot())
    if results().exists() and counts is None and "interrupted" not in bad:
        counts = slowest()
    for line in left:
        print(f"left behind: {line}")
    if left:
        bad.append("machine")
    print(f"{'all':12} {time.monotonic() - begin:6.0f} s  {'FAILED: ' + ', '.join(bad) if bad else 'ok'}")
    if counts:
        print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
