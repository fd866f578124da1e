#!/usr/bin/env python3
"""Two boards with PTP for an hour of virtual time: the slave's offset, with its MTIE and TDEV, as figures and as a picture.

The boards' program (rtl/ptp/ptp.asm) runs in the interpreter that the RTL is held against, with the clocks and the time stamps of
ptp_clock and of the stack, which are of whole clocks. The oscillators wander. Both boards send data all the while: nine of
ten messages wait for the end of a frame of 1500 bytes, and are stamped when they leave.

Usage: bench/ptp_hour.py [--seconds N] [--seed N] [--picture FILE.svg]
"""

import argparse
import heapq
import math
import random
import statistics
import sys
from itertools import count

from support.ptp_machine import PROGRAM, Machine

PERIOD = 8.0  # ns of a clock
SECOND = 10**9
LAG = 9.5 * PERIOD  # from a frame's arrival to the clock in which it is stamped
TICK = 16 * PERIOD
BUSY, FRAME = 0.9, 1538 * PERIOD  # how likely a message finds a frame of data on the cable; its time
IO = {name: PROGRAM.places[name][0] for name in PROGRAM.places if name.startswith("io_")}
# Places that are read: (name, word).
NAMES = ("io_status", "io_random", "io_length", "io_role", "io_now", "io_identity", "io_departure", "io_arrival")
READ = {PROGRAM.places[name][0] + word: (name, word) for name in NAMES for word in range(PROGRAM.places[name][1])}
RX, TX = PROGRAM.places["rx"][0], PROGRAM.places["tx"][0]
STATUS_PENDING, STATUS_REGISTER = PROGRAM.constants["PENDING"], PROGRAM.constants["REGISTER"]
TIMERS = ("sync_at", "announce_at", "request_at", "parent_until")


class Oscillator:
    """Parts in a billion: a constant error, a slow wave as of temperature, and a random walk of frequency."""

    def __init__(self, ppb, wave, walk, seed):
        self.ppb, self.wave, self.walk, self.random = ppb, wave, walk, random.Random(seed)
        self.phase, self.walked, self.at = self.random.random() * 2 * math.pi, 0.0, 0.0

    def error(self, t):
        while self.at + SECOND < t:
            self.at += SECOND
            self.walked += self.random.gauss(0, self.walk)
        return self.ppb + self.walked + self.wave * math.sin(self.phase + 2 * math.pi * t / (900 * SECOND))


class Board:
    """A machine with its clock. Times are ns of the simulation; `base`, a whole number, and `local` are what the clock shows."""

    def __init__(self, number, role, oscillator, seed, begin):
        self.oscillator, self.role, self.random = oscillator, role, random.Random(seed)
        self.identity = [0x02FA, 0xDEFF, 0xFE00, number]
        self.at, self.base, self.local, self.clocks, self.rate = 0.0, begin, 0.0, 0.0, 0
        self.queue, self.words, self.sent = [], [0] * 64, []
        self.departure, self.held = (0, 0, 0), None
        rounded = [0, round(LAG), 0, 0]  # nothing of it takes time here
        parameters = [125_000_000 >> 16, 125_000_000 & 0xFFFF, 0, 0]
        for ns in rounded:
            parameters += [0, ns >> 16, ns & 0xFFFF]
        self.machine = Machine(self.read, self.write, [*parameters, 27, 0, 0])
        self.offsets = self.ticks = self.timer = 0
        self.arrival = 0.0  # of the last message at the other board

    def advance(self, t):
        """The clock's time at t."""
        passed = (t - self.at) * (1 + self.oscillator.error(t) * 1e-9)
        self.clocks += passed / PERIOD
        if self.held is None:
            self.local += passed * (1 + self.rate / 2**32 / PERIOD)
        self.at = t

    def shows(self, t):
        """What the clock shows at t, beyond `base`; a little before `at` as well as behind."""
        self.advance(max(t, self.at))
        return self.local - (self.at - t)

    def stamp(self, t):
        """As a message carries it: of the whole clock in which t lies."""
        seconds, ns = divmod(self.base + int(self.shows(t) - self.random.random() * PERIOD), SECOND)
        return (seconds & 0xFFFF, ns >> 16, ns & 0xFFFF)

    def now_words(self):
        seconds, ns = divmod(self.base + int(self.local), SECOND)
        return [seconds >> 32 & 0xFFFF, seconds >> 16 & 0xFFFF, seconds & 0xFFFF, ns >> 16, ns & 0xFFFF]

    def read(self, address):
        if RX <= address < RX + 64:
            message = self.queue[0][0] if self.queue else [0] * 64
            return message[address - RX]
        name, word = READ.get(address, ("", 0))
        match name:
            case "io_status":
                return STATUS_PENDING if self.queue else 0
            case "io_random":
                return self.random.getrandbits(16)
            case "io_length":
                return self.queue[0][0][1] if self.queue else 0
            case "io_role":
                return self.role
            case "io_now":
                return self.now_words()[word]
            case "io_identity":
                return self.identity[word]
            case "io_departure":
                return self.departure[word]
            case "io_arrival":
                return self.queue[0][1][word] if self.queue else 0
        return 0  # io_ticks too: see run

    def write(self, address, word):
        if TX <= address < TX + 64:
            self.words[address - TX] = word
        elif address == IO["io_next"]:
            self.queue = self.queue[1:]
        elif address == IO["io_send"]:
            if self.random.random() < BUSY:
                self.advance(self.at + self.random.random() * FRAME)
            self.departure = self.stamp(self.at)
            self.sent.append((self.words[:], self.at))
        elif address == IO["io_rate"]:
            self.rate = (word - (word >> 15 << 16)) << 16 | self.rate & 0xFFFF
        elif address == IO["io_rate"] + 1:
            self.rate = self.rate & ~0xFFFF | word
        elif address == IO["io_hold"]:
            if word:
                self.held = self.now_words()
            else:
                seconds, ns = self.held[0] << 32 | self.held[1] << 16 | self.held[2], self.held[3] << 16 | self.held[4]
                self.base, self.local, self.held = seconds * SECOND + ns, 0.0, None
        elif IO["io_now"] <= address < IO["io_now"] + 5:
            self.held[address - IO["io_now"]] = word
        elif address == IO["io_events"]:
            self.offsets += word & 1

    def run(self, t):
        """Runs the program from its main loop back to it, with nothing more to do. What it sent."""
        self.advance(max(t, self.at))
        # The program adds up the hardware's ticks, which wrap after milliseconds; it is idle for longer here.
        place = PROGRAM.places["now"][0]
        now = (self.machine.memory[place] << 16 | self.machine.memory[place + 1]) + int(self.clocks / 16) - self.ticks
        self.machine.memory[place : place + 2] = [now >> 16 & 0xFFFF, now & 0xFFFF]
        self.ticks = int(self.clocks / 16)
        main, idle = PROGRAM.labels["main"], 0
        while idle < 2:
            self.machine.step()
            if self.machine.pc == main:
                idle = 0 if self.queue or self.due() <= 0 else idle + 1
        sent, self.sent = self.sent, []
        return sent

    def due(self):
        """ns until the next timer."""
        now = self.machine.get("now")
        master = self.machine.get("state[1]") == PROGRAM.constants["MASTER"]
        names = ["sync_at", "announce_at"] if master else ["parent_until"]
        if not master and self.machine.get("have_there"):
            names.append("request_at")
        # Numbers of 32 bits, which wrap.
        return min(((self.machine.get(name) - now + 2**31) % 2**32 - 2**31) * TICK for name in names)


def hour(seconds, seed, ppb, begin=100):
    """Offsets of the slave in ns, one a second, of the time after the first minute."""
    master = Board(1, 2, Oscillator(0, 30, 0.3, seed), seed * 3 + 1, 1_800_000_000 * SECOND)
    slave = Board(2, 1, Oscillator(ppb, 50, 0.5, seed + 1), seed * 3 + 2, begin)
    boards, order = (master, slave), count()
    jitter = random.Random(seed)
    events = [(0.0, next(order), board, None) for board in boards]
    heapq.heapify(events)
    offsets, next_sample = [], 60.0 * SECOND
    while True:
        t, number, board, message = heapq.heappop(events)
        if message is None and number < board.timer:
            continue  # it ran meanwhile, and has a later one
        while t >= next_sample:
            offsets.append(slave.base - master.base + slave.shows(next_sample) - master.shows(next_sample))
            next_sample += SECOND
            if len(offsets) == seconds:
                return offsets
        if message is not None:
            board.queue.append((message, board.stamp(t)))
        for words, at in board.run(t):
            # The cable, and the phase of the clocks; a message does not overtake the one before.
            board.arrival = max(board.arrival + 700.0, at + 1000.0 + PERIOD * jitter.random())
            heapq.heappush(events, (board.arrival + LAG, next(order), boards[1 - boards.index(board)], words))
        board.timer = next(order)
        heapq.heappush(events, (max(t, board.at) + max(100.0, min(board.due(), SECOND)), board.timer, board, None))


def mtie(offsets, window):
    """Maximum time interval error: the largest range within any `window` seconds."""
    return max(max(offsets[i : i + window + 1]) - min(offsets[i : i + window + 1]) for i in range(0, len(offsets) - window, max(1, window // 8)))


def tdev(offsets, n):
    """Time deviation at n seconds (ITU-T G.810)."""
    total, terms = 0.0, 0
    for j in range(0, len(offsets) - 3 * n + 1, max(1, n // 8)):
        inner = sum(offsets[i + 2 * n] - 2 * offsets[i + n] + offsets[i] for i in range(j, j + n))
        total, terms = total + (inner / n) ** 2, terms + 1
    return math.sqrt(total / terms / 6)


def draw(offsets, windows, file):
    """Offset over time; MTIE and TDEV over their windows."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 2))
    left.plot([60 + i for i in range(len(offsets))], offsets, linewidth=0.5)
    left.set(xlabel="time, s", ylabel="offset from the master, ns")
    right.loglog(windows, [mtie(offsets, n) for n in windows], marker="o", label="MTIE")
    right.loglog(windows, [tdev(offsets, n) for n in windows], marker="s", label="TDEV")
    right.set(xlabel="window, s", ylabel="ns")
    right.legend()
    for axes in (left, right):
        axes.grid(True, which="both", linewidth=0.3)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", help="SVG file to draw")
    arguments = parser.parse_args()
    offsets = hour(arguments.seconds, arguments.seed, 20_000)
    print(f"mean {statistics.mean(offsets):.2f} ns, deviation {statistics.pstdev(offsets):.2f} ns, {min(offsets):.0f} to {max(offsets):.0f} ns")
    windows = [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if 3 * n < len(offsets)]
    print("\n| window | MTIE | TDEV |\n|---|---|---|")
    for window in windows:
        print(f"| {window} s | {mtie(offsets, window):.1f} ns | {tdev(offsets, window):.2f} ns |")
    if arguments.picture:
        draw(offsets, windows, arguments.picture)


if __name__ == "__main__":
    sys.exit(main())
