"""Boards with FADE: received by `fadelink receive` or `fadelink run`, confirmed in memory or on the disk."""

import json

from support.faults.anything import judge
from support.faults.anything.forged import OTHER, Forger, Wire, link
from support.faults.anything.program import Program, Shape, play
from support.faults.anything.world import World
from support.faults.site import fault
from support.netns import FEBS


class Disturbing:
    """What happens by a seed. `forges`: packets of the window are forged, so no frame is lost or late. `program`: that of this computer."""

    def __init__(self, world, program, wire, forger, forges):
        self.world, self.program, self.wire, self.forger, self.forges, self.random = world, program, wire, forger, forges, world.random
        self.newest, self.kept, self.second = 0, [], None

    def look(self):
        """The number of the newest packet, as far as one is seen; frames are kept."""
        frames = self.wire.frames(lambda frame: self.forger.number(frame) is not None, 3)
        if frames:
            self.newest, self.kept = self.forger.number(frames[-1]), (self.kept + frames)[-20:]
        return self.newest

    def ask(self):
        what = self.random.choice(["reset", "reset", "start", "stop", "identify", "confirm"])
        source = self.random.choice([OTHER, OTHER, self.forger.computer])
        # A confirmation in the name of the receiver is a loss: the board forgets the packet.
        if what == "confirm" and self.forges:
            source = OTHER
        for _ in range(self.random.choice([1, 1, 3])):
            self.wire.send(self.wire.down, self.forger.ask(what, source, self.look()))

    def begin_elsewhere(self):
        for what in ("reset", "start"):
            self.wire.send(self.wire.down, self.forger.ask(what, OTHER, self.newest))

    def data(self):
        newest, is_last = self.look(), self.random.random() < 0.5
        for _ in range(self.random.choice([1, 1, 5])):
            number = self.forger.near(newest) if self.forges else self.forger.outside(newest)
            self.wire.send(self.wire.up, self.forger.data(number, is_last))

    def answer(self):
        self.wire.send(self.wire.up, self.forger.answer(self.look()))

    def malformed(self):
        self.look()
        for frame in self.kept:
            self.wire.send(self.wire.up, self.forger.damage(frame, self.forges))

    def replay(self):
        if self.kept and self.forges:
            self.wire.send(self.wire.up, self.random.choice(self.kept))

    def second_program(self):
        if self.second is None:
            out = self.world.folder / "second.dat"
            self.before = set(self.world.record.runs())
            take = ("--take-over",) * (self.random.random() < 0.5)
            words = ("--duration", f"{self.random.uniform(0.1, 1):.2f}", "--idle-timeout", 2, "--json", "--quiet", "--out", out, *take)
            self.second = self.world.net.fadelink("receive", "--iface", "eth0", "--feb", FEBS[0], *words)

    def events(self):
        events = {"ask": self.ask, "begin elsewhere": self.begin_elsewhere, "data": self.data, "answer": self.answer,
                  "malformed": self.malformed, "replay": self.replay, "power loss": self.world.power_loss,
                  "the board stands still": lambda: self.world.freeze(self.world.board)}  # fmt: skip
        if not self.forges:
            events |= {"cable out": self.world.cable_out}
        if self.program and not self.forges:
            events |= {"the program stands still": lambda: self.world.freeze(self.program.process),
                       "second program": self.second_program, "kill": self.program.kill}  # fmt: skip
        return events

    def plan(self, last):
        """Schedules events up to so many seconds."""
        events = self.events()
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 5])):
            name = self.random.choice(list(events))
            self.world.schedule.at(self.random.uniform(0, last), name, events[name])


def possible(world, protocol, before):
    """What may be in a file that is complete: the words of a run that began behind those before."""
    runs = [data for name, data in world.record.runs().items() if name not in before]
    return [judge.filled(data) for data in runs] if protocol == "fade1" else runs


def judge_second(disturbing, protocol):
    """Another program that received the same board is judged as the first one."""
    status, out, err = disturbing.second.finish()
    if not out:
        judge.named(status, None, err)
        return
    board = json.loads(out)["febs"][0]
    complete = judge.agree("the second report", board)
    if complete or status == 0:
        judge.compare("the second program", disturbing.world.folder / "second.dat", possible(disturbing.world, protocol, disturbing.before))
    else:
        judge.named(status, board, err)


def board(random, protocol, forges):
    """Options of a board."""
    options = ["--protocol", protocol, "--phy", "gmii", "--link", link(random, forges), "--words", random.choice([0, int(10 ** random.uniform(0, 5))]),
               "--gap", random.choice([0, 0, 20, 500])]  # fmt: skip
    if protocol == "fade10g":
        options += ["--window", random.choice([16, 32])]
        if random.random() < 0.5:
            options[3] = "xgmii"
    return options


def fade(site, protocol):
    random = site.random
    forges, mode = random.random() < 0.4, random.choice(["command", "run", "durable"])
    world = World(site, *board(random, protocol, forges))
    computer = site.net.run_in(site.net.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
    wire = Wire(site.net, (site.net.board_ns, "feb0"), (site.net.pc_ns, "eth0"), (site.net.pc_ns, "eth0"))
    told = random.random() < 0.5
    words = ("receive", "--iface", "eth0", "--feb", FEBS[0], *("--protocol", protocol) * told)
    table = f'[[fade]]\nname = "a"\ninterface = "eth0"\nmac = "{FEBS[0]}"\n' + f'protocol = "{protocol}"\n' * told
    shape = Shape(words, lambda folder: ("--out", folder / "a.dat"), "febs", table)
    program = Program(world, shape, mode, lambda stream, was_killed, size: possible(world, protocol, program.before))
    disturbing = Disturbing(world, program, wire, Forger(protocol, computer, random), forges)
    return play(program, disturbing, world, lambda: disturbing.second and judge_second(disturbing, protocol))


for _protocol in ("fade10g", "fade1"):
    fault(
        f"board-anything-{_protocol}",
        "RESET, START and STOP from elsewhere, forged and malformed frames, loss of power, the cable out, programs that stand still, are killed and "
        "go on, a second one, a disk that fails", "words", judge.PROMISE,
    )(lambda site, protocol=_protocol: fade(site, protocol))  # fmt: skip
