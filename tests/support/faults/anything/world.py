"""A simulated board that keeps a record of what it took from its source, its cable, and what happens to both at random moments."""

import signal

from support.faults.schedule import Schedule
from support.faults.site import environment
from support.netns import sh

# Errors of a disk: EIO, ENOSPC and EROFS.
ERRORS = (5, 28, 30)


class Record:
    """What a board took from its source, in files of fadelink-sim: the words of each run, by number of the power-on and of the run."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def options(self, power, seed):
        return ("--record", self.folder / f"{power:03}", "--random", "--source-seed", seed)

    def runs(self):
        """{name: bytes}, in the order in which the runs began."""
        key = lambda path: [int(part) for part in path.name.split(".")]  # noqa: E731
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir(), key=key)}

    def power(self, name):
        """The power-on of a run."""
        return int(name.split(".")[0])


class World:
    """A board on the cable of the site, with what can happen to it."""

    def __init__(self, site, *options, start=True, iface="feb0"):
        self.net, self.random, self.folder = site.net, site.random, site.folder
        self.options, self.schedule, self.record = options, Schedule(), Record(site.folder / "record")
        self.board, self.powers, self.iface = None, 0, iface
        if start:
            self.power_on()

    def power_on(self):
        self.powers += 1
        link, words = self.random.randrange(1 << 30), self.random.randrange(1, 1 << 62)
        self.board = self.net.sim(*self.options, *self.record.options(self.powers, words), iface=self.iface, seed=link)

    def power_off(self):
        self.board.signal(signal.SIGKILL)
        self.board.finish()
        self.board = None

    def end(self):
        """For good: the cable is in, and the board is off."""
        self.schedule.waiting.clear()
        self.link("up")
        if self.board:
            self.power_off()

    def power_loss(self):
        if self.board is None:
            return
        self.power_off()

        def back():
            # The program of the board wants a cable.
            self.link("up")
            self.power_on()

        # For good, too.
        seconds = self.random.choice([0, self.random.uniform(0, 0.5), None])
        if seconds is not None:
            self.schedule.at(seconds, "power is back", back)

    def link(self, state):
        sh("ip", "-n", self.net.board_ns, "link", "set", self.iface, state)

    def cable_out(self):
        self.link("down")
        self.schedule.at(self.random.uniform(0, 0.5), "cable is in", lambda: self.link("up"))

    def freeze(self, process):
        """A program stands still for a while."""
        if process is None or process.popen.poll() is not None:
            return
        process.signal(signal.SIGSTOP)
        self.schedule.at(self.random.uniform(0, 0.8), "it runs again", lambda: process.signal(signal.SIGCONT))

    def failing_disk(self, folder):
        """Environment of a program whose disk may fail, below the folder."""
        if self.random.random() > 0.2:
            return None
        after = int(10 ** self.random.uniform(2, 6))
        return environment(disk=folder, after=after, only_sync=self.random.random() < 0.3, error=self.random.choice(ERRORS))

    def given(self):
        """Words that the board took in all runs."""
        return sum(len(data) // 8 for data in self.record.runs().values())

    def describe(self):
        runs = {name: len(data) // 8 for name, data in self.record.runs().items()}
        return f"board: {' '.join(map(str, self.options))}\nhappened: {self.schedule.happened}\nwords of the runs: {runs}"
