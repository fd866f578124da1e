#!/usr/bin/env python3
"""`make soak`: tries all faults of tests/support/faults again and again and prints what of the promised data was lost.

Usage: tools/soak.py [--minutes N] [--seed N] [--only NAME ...]     default: 10 minutes, every fault

Each round has a seed of its own, the first `--seed`. A fault is not begun when the time is over, but all are tried once. The
table on standard output is that of docs/reliability.md. Exit status 1: something promised was lost, or a try failed; its seed
and what it said are on standard error.
"""

import argparse
import itertools
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from support import faults, sandbox
from support.broker import Broker
from support.faults import FAULTS, Outcome, Site
from support.netns import Bench, add_address
from support.paths import SEED


@dataclass
class Sum:
    """The results of all tries of a fault."""

    tries: int = 0
    promised: int = 0
    lost: int = 0
    told: int = 0
    failed: int = 0

    def add(self, outcome: Outcome):
        self.tries += 1
        self.promised += outcome.promised
        self.lost += outcome.lost
        self.told += outcome.told


class Soak:
    def __init__(self, folder):
        self.folder, self.broker = folder, None
        self.sums = {name: Sum() for name in FAULTS}

    def ready_broker(self):
        """The broker, started anew if a failed try left it dead."""
        if self.broker is None:
            folder = self.folder / "broker"
            folder.mkdir()
            self.broker = Broker(folder, host=faults.BROKER)
        elif self.broker.process.poll() is not None:
            self.broker.start()
        return self.broker

    def attempt(self, fault, seed):
        """Tries a fault once, in namespaces and a folder of its own."""
        folder = self.folder / fault.name
        folder.mkdir()
        bench = Bench(folder)
        try:
            add_address(bench)
            outcome = fault.run(Site(fault.name, bench, self.ready_broker() if fault.kafka else None, seed))
            self.sums[fault.name].add(outcome)
            if outcome.lost:
                print(f"{fault.name}, seed {seed}: {outcome}\n{bench.describe()}", file=sys.stderr, flush=True)
        except Exception:
            self.sums[fault.name].failed += 1
            print(f"{fault.name}, seed {seed}: {traceback.format_exc()}\n{bench.describe()}", file=sys.stderr, flush=True)
        finally:
            bench.close()
            shutil.rmtree(folder)

    def run(self, chosen, minutes, first):
        end = time.monotonic() + minutes * 60
        for seed in itertools.count(first):
            for name in chosen:
                if seed > first and time.monotonic() > end:
                    return
                self.attempt(FAULTS[name], seed)

    def close(self):
        if self.broker:
            self.broker.close()

    def table(self, chosen):
        yield "| fault | what | promised | tries | promised data | lost | not promised: lost and reported | failed tries |"
        yield "|---|---|---|---|---|---|---|---|"
        for name in chosen:
            fault, total = FAULTS[name], self.sums[name]
            yield (f"| {name} | {fault.what} | {fault.promise} | {total.tries} | {total.promised:,} {fault.unit} | {total.lost:,} | "
                   f"{total.told:,} | {total.failed} |")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS), metavar="NAME")
    options = parser.parse_args()
    sandbox.enter(root=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        try:
            soak.run(options.only, options.minutes, options.seed)
        finally:
            soak.close()
            print("\n".join(soak.table(options.only)), flush=True)
    sys.exit(any(total.lost or total.failed for total in soak.sums.values()))


if __name__ == "__main__":
    main()
