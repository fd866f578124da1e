"""The program that receives a board: `fadelink receive`, `build` or `run`, begun again where it was killed, and what it says at its end."""

import json
import signal
from dataclasses import dataclass

from support.faults.anything import judge
from support.faults.site import Outcome


@dataclass
class Shape:
    """How a kind of boards is received. `words`: of the command, without its files; `out`: those for its file, in a folder; `key`: what
    streams are called in its report, None if there is one; `table`: the board `a` in the file of an experiment."""

    words: tuple
    out: object
    key: str | None
    table: str


class Program:
    """`mode`: command (the one of the shape), run, or durable: run, which goes on after it was killed. `possible`: what a file may be that
    is called complete, given the report of its stream, whether an earlier program was killed, and its size."""

    def __init__(self, world, shape, mode, possible):
        self.world, self.shape, self.mode, self.possible = world, shape, mode, possible
        self.top = world.folder / "out"
        self.top.mkdir()
        self.file = world.folder / "experiment.toml"
        confirm = "durable" if mode == "durable" else "memory"
        self.file.write_text(f'folder = "{self.top}"\nconfirm = "{confirm}"\nsinks = ["file:{{board}}.dat"]\n{shape.table}\n')
        self.number, self.process, self.is_asked, self.before, self.said = 0, None, False, set(), None

    def start(self):
        """The first program, or the next one: its disk is good again."""
        self.env = self.world.failing_disk(self.top) if self.number == 0 else None
        # Runs of the board that were there before are not of this program, unless it goes on with its run.
        if self.mode != "durable" or self.number == 0:
            self.before = set(self.world.record.runs())
        self.number += 1
        words = ("run", self.file)
        if self.mode == "command":
            self.folder.mkdir()
            words = (*self.shape.words, "--json", *self.shape.out(self.folder))
        self.process = self.world.net.fadelink(*words, "--quiet", env=self.env)
        if self.is_asked:
            self.world.schedule.at(self.world.random.uniform(0.2, 0.6), "end", self.end)

    @property
    def folder(self):
        """Where the files of the last program are."""
        if self.mode == "command":
            return self.top / str(self.number)
        return max(self.top.glob("run_*"), default=self.top / "none")

    def end(self):
        self.is_asked = True
        if self.process:
            self.process.signal(signal.SIGINT)

    def kill(self):
        if self.process and self.process.popen.poll() is None:
            self.process.signal(signal.SIGKILL)
            self.process.finish()
            self.process = None
            self.world.schedule.at(self.world.random.uniform(0, 0.3), "the next program", self.start)

    def is_over(self):
        """The last program has ended. A run with durable confirmation goes on when its disk is good again."""
        if self.process is None or self.process.popen.poll() is None:
            return False
        if self.mode == "durable" and self.env and self.process.popen.returncode:
            self.process.finish()
            self.start()
            return False
        return True

    def report(self):
        """(all of it, its streams): what the program says at its end, or None."""
        if self.mode == "command":
            out = self.said[1]
            report = json.loads(out) if out else None
            return report, report and (report[self.shape.key] if self.shape.key else [report])
        path = self.folder / "manifest.json"
        text = path.read_text() if path.exists() else ""
        if not text.rstrip().endswith("}"):
            return None, None
        report = json.loads(text)
        return report | {"complete": report["state"] == "complete"}, report.get("boards", [])

    def path(self, stream):
        """The file of a stream."""
        if self.mode != "command" or self.shape.key in (None, "febs"):
            return self.folder / "a.dat"
        return self.folder / f"{stream.get('stream') or stream['peer'].replace(':', '-')}.dat"

    def judge(self):
        """Judges what the program said, and its files: the words that were called complete."""
        self.said = status, _, err = self.process.finish()
        report, streams = self.report()
        was_killed = self.number > 1
        words, seen = 0, set()
        for stream in streams or []:
            path = self.path(stream)
            seen.add(path)
            complete = judge.agree("the report", stream)
            if complete or judge.described(path):
                size = path.stat().st_size if path.exists() else 0
                who = "the report" if complete else "the file's description"
                words += complete * judge.compare(who, path, self.possible(stream, was_killed, size))
            if complete and judge.described(path) is False:
                raise judge.Wrong(f"the report says complete, and the description of {path.name} does not")
        complete = report is not None and judge.agree("the report", report)
        others = {path for path in self.folder.rglob("*.dat")} - seen
        if complete and (not streams or not all(stream["complete"] for stream in streams) or others):
            raise judge.Wrong(f"complete, and a stream is not, or there is none, or there are other files: {others}")
        # A program that was killed, as by SIGINT in its first moment, says nothing.
        if status >= 0 and complete != (status == 0):
            raise judge.Wrong(f"the exit status is {status}, and the report says complete: {complete}")
        if status >= 0 and not complete:
            judge.named(status, report, err)
        return words


def play(program, disturbing, world, afterwards=lambda: None):
    """Lets a program receive a board while both are disturbed, and judges what it says: the outcome. `afterwards`: more to judge."""
    random = world.random
    try:
        program.start()
        if world.board is None:
            world.schedule.at(random.uniform(0, 0.2), "power", world.power_on)
        world.schedule.run(lambda: world.record.runs() or program.is_over())
        last = random.uniform(0.1, 1)
        disturbing.plan(last + 0.4)
        world.schedule.at(last, "end", program.end)
        world.schedule.run(program.is_over)
        complete = program.judge()
        afterwards()
    except Exception as error:
        raise AssertionError(f"{error!r}\n{program.mode}, forges: {disturbing.forges}, {world.describe()}\n{program.said}") from error
    finally:
        disturbing.wire.close()
    return Outcome(complete, 0, max(world.given() - complete, 0))
