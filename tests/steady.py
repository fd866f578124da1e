#!/usr/bin/env python3
"""`make steady`: the system tests again and again on a busy machine; then how often each one failed, and how.

Usage: tests/steady.py [--rounds N] [--only WORDS] [--load N] [--log FOLDER]
Everything is in one sandbox (support/sandbox.py), beside one busy process for each processor. Each round has a seed of its own;
FADELINK_SEED is that of the first one. Output and results of round N go to build/log/steady-N.log and .xml.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections import Counter, defaultdict
from pathlib import Path

from run import LOG, PYTEST, TOP, identity, is_failed
from support import sandbox


@contextlib.contextmanager
def load(count):
    """So many processes that compute until the end; the kernel ends them if this one is killed."""
    busy = ["sh", "-c", "while :; do :; done"]
    processes = [subprocess.Popen(busy, preexec_fn=sandbox.end_with_parent) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def chosen(only):
    """Arguments of pytest: files and tests, if each word is one of these, or an expression for -k, one after another; or all, side by side."""
    words = only.split()
    if not words:
        return ["tests/system", "-n", "auto"]
    return words if all((TOP / word.partition("::")[0]).exists() for word in words) else ["tests/system", "-k", only]


def run_round(number, seed, tests, folder):
    """Runs the tests once: how many there were, and {name: message} of those that failed; None if pytest itself failed."""
    results, log = folder / f"steady-{number}.xml", folder / f"steady-{number}.log"
    results.unlink(missing_ok=True)
    with open(log, "w") as output:
        process = subprocess.Popen(
            [*PYTEST, "-vv", f"--junitxml={results}", *tests], cwd=TOP, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, env=os.environ | {"FADELINK_SEED": str(seed)},
        )  # fmt: skip
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # The same signal has reached pytest, which says what it has found.
            process.wait()
            raise
    if status not in (0, 1) or not results.exists():
        print(log.read_text(errors="replace")[-5000:])
        return None
    cases = list(xml.parse(results).iter("testcase"))
    return len(cases), {identity(case): message(case) for case in cases if is_failed(case)}


def message(case):
    """What a test that failed says: its first line."""
    found = next(child for child in case if child.tag in ("failure", "error"))
    return (found.get("message") or "").strip().partition("\n")[0][:200]


def summary(failures, rounds):
    """A line for each test that failed, the most frequent first; below it its messages, with the seeds of their rounds."""
    for name, found in sorted(failures.items(), key=lambda item: -len(item[1])):
        yield f"{name}: {len(found)} of {rounds} failed"
        for text, count in Counter(text for _, text in found).most_common():
            seeds = ", ".join(str(seed) for seed, other in found if other == text)
            yield f"  {count} x {text} (FADELINK_SEED {seeds})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="how often each test runs: 20")
    parser.add_argument("--only", default="", metavar="WORDS", help="files and tests, or an expression for -k; default: tests/system")
    parser.add_argument("--load", type=int, default=os.cpu_count(), metavar="N", help="busy processes: one for each processor")
    parser.add_argument("--log", type=Path, default=LOG, metavar="FOLDER", help="for the output of the rounds: build/log")
    args = parser.parse_args()
    sandbox.enter(root=True)
    args.log.mkdir(parents=True, exist_ok=True)
    first = int(os.environ.get("FADELINK_SEED") or random.randrange(1, 1_000_000))
    failures = defaultdict(list)
    done, broken = 0, False
    # What was found until Ctrl-C is told, too.
    with contextlib.suppress(KeyboardInterrupt), load(args.load):
        for number in range(1, args.rounds + 1):
            seed, begin = first + number - 1, time.monotonic()
            found = run_round(number, seed, chosen(args.only), args.log)
            broken = found is None
            if broken:
                break
            done, (count, failed) = number, found
            for name, text in failed.items():
                failures[name].append((seed, text))
            seconds = time.monotonic() - begin
            print(f"round {number} of {args.rounds}, FADELINK_SEED={seed}: {count} tests, {len(failed)} failed, {seconds:.0f} s", flush=True)
    for line in summary(failures, done):
        print(line)
    print(f"{done} of {args.rounds} rounds, {len(failures)} unsteady tests")
    return 1 if failures or broken or done < args.rounds else 0


if __name__ == "__main__":
    sys.exit(main())
