"""What can go wrong around Fadelink: a function for each fault, which brings it about at a random moment and counts what of the
promised data is there afterwards. `tests/system/test_faults.py` runs each once, `tools/soak.py` for as long as you like;
docs/reliability.md has the figures.
"""

import bisect
import contextlib
import json
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass

import h5py
import numpy as np
import pyarrow.parquet

from support import fadc_model as model
from support import ring_reader
from support.broker import Broker, free_ports
from support.crate import WINDOW_NS, Crate, hits_of, report
from support.files import in_order, read_hits, wrong_words
from support.kafka import Setup, send
from support.netns import BOARD, PATIENCE, sh, wait_for
from support.netns import report as report_of
from support.paths import BUILD, FADELINK, SEED, TOP

PORT = 10000
# An address of loopback that only the broker has, so that the network to it can be cut.
BROKER = "127.0.0.9"
SOURCES = (1, 2, 3)


@dataclass
class Outcome:
    """Counts of one try, in the fault's unit."""

    promised: int  # what the documents promise
    lost: int = 0  # of it: not there, wrong, or there twice
    told: int = 0  # not promised, lost, and reported as lost


@dataclass
class Fault:
    """A fault: `run(site)` brings it about once and returns the outcome, or raises if something else is wrong."""

    name: str
    what: str
    unit: str
    promise: str
    kafka: bool
    run: object


FAULTS = {}


def fault(name, what, unit, promise, kafka=False):
    def add(run):
        FAULTS[name] = Fault(name, what, unit, promise, kafka, run)
        return run

    return add


class Site:
    """Where a fault is tried: namespaces with a cable (`net`), a folder, a broker for those who want one, random numbers."""

    def __init__(self, name, net, broker=None, seed=SEED):
        self.net, self.broker, self.name, self.folder = net, broker, f"{name}-{seed}", net.tmp
        self.random = random.Random(f"{name}/{seed}")

    def pause(self, least, most):
        time.sleep(self.random.uniform(least, most))

    def kafka(self):
        """Topics of this try, and a process list that ends with it."""
        return contextlib.closing(Setup(self.broker, self.name, environment(clock=clock_file(self.folder))))


# --- The shim: a disk that fails, a clock that is stepped ---


def environment(clock=None, disk=None, after=0, only_sync=False, error=None):
    """Environment of a program whose clock goes by the file `clock`, and whose files below `disk` fail after so many bytes (with
    the number `error`: EIO)."""
    shim, source = BUILD / "faults.so", TOP / "tests/support/faults.c"
    if not shim.exists() or shim.stat().st_mtime < source.stat().st_mtime:
        fresh = BUILD / f"faults-{os.getpid()}.so"
        sh("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", fresh, source)
        fresh.rename(shim)
    words = {"LD_PRELOAD": str(shim)}
    if clock:
        words["FADELINK_CLOCK"] = str(clock)
    if disk:
        words |= {"FADELINK_EIO_PATH": str(disk), "FADELINK_EIO_AFTER": str(after)}
    if only_sync:
        words["FADELINK_EIO_SYNC"] = "1"
    if error:
        words["FADELINK_EIO_ERRNO"] = str(error)
    return os.environ | words


def clock_file(folder):
    """A clock that is right, for `step`."""
    path = folder / "clock"
    path.write_bytes(bytes(8))
    return path


def step(clock, seconds):
    with open(clock, "r+b") as file:
        file.write(struct.pack("<q", int(seconds * 1e9)))


# --- What was written ---


def closed_words(folder, stem):
    """Words of all HDF5 files that were closed, and how many of them are wrong, from the first of the run on."""
    words = wrong = 0
    for path in in_order(folder.glob(f"{stem}*.h5")):
        with h5py.File(path) as file:
            assert file.attrs["complete"] == 1 and file.attrs["first_word"] == words, path
            data = file["words"][:]
        wrong += wrong_words(data, words)
        words += len(data)
    return words, wrong


def plain_words(folder, stem):
    """Words of plain files that rolled over, wrong ones, and words of those whose manifests call them complete."""
    words = wrong = complete = 0
    for path in in_order(folder.glob(f"{stem}*.bin")):
        data = np.fromfile(path, dtype="<u8")
        wrong += wrong_words(data, words)
        words += len(data)
        manifest = path.with_name(f"{path.name}.json")
        if manifest.exists() and json.loads(manifest.read_text())["complete"]:
            complete += len(data)
    return words, wrong, complete


def closed_windows(folder, stem):
    """Windows of all files of hits that were closed, HDF5 and Parquet, and how many of them are wrong."""
    found = Counter()
    for kind in ("h5", "parquet"):
        expected = 0
        for path in in_order(path for path in folder.glob(f"{stem}*.{kind}") if ".windows." not in path.name):
            if kind == "h5":
                hits, _ = read_hits(path)
            else:
                table = path.with_name(path.name.replace(".parquet", ".windows.parquet"))
                if ".0" in path.name:
                    name, number, _ = path.name.split(".")
                    table = path.with_name(f"{name}.windows.{number}.parquet")
                if not table.exists():
                    continue
                hits = {window: [] for window in pyarrow.parquet.read_table(table)["window"].to_pylist()}
                columns = pyarrow.parquet.read_table(path)
                rows = zip(*(columns[name].to_pylist() for name in ("window", "source", "slot", "channel", "tick", "charge")), strict=True)
                for window, *hit in rows:
                    hits[window].append(tuple(hit))
            for window in sorted(hits):
                right = sorted((source, *hit) for source in (1, 2) for hit in hits_of(source, window))
                found["wrong"] += window != expected or sorted(hits[window]) != right
                expected = window + 1
                found["windows"] += 1
    return found["windows"], found["wrong"]


class Crates:
    """Two crates in software that send windows to `port`, `batch` at a time, until they are asked to end or nobody listens."""

    def __init__(self, port, batch):
        self.stopping, self.batch = threading.Event(), batch
        self.crates = [Crate(port, source) for source in (1, 2)]
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        first = 0
        with contextlib.suppress(OSError):
            # The builder closes its direction when it wants no more.
            while not self.stopping.is_set() and not select.select([crate.socket for crate in self.crates], [], [], 0.002)[0]:
                for crate in self.crates:
                    crate.send(*range(first, first + self.batch))
                first += self.batch
        for crate in self.crates:
            crate.close()

    def stop(self):
        self.stopping.set()
        self.thread.join()


@contextlib.contextmanager
def building(*words, batch=5, **options):
    """`fadelink build` on loopback with two crates that send to it: the process."""
    (port,) = free_ports(1)
    words = [FADELINK, "build", "--tcp", port, "--listen", "127.0.0.1", "--window-ns", WINDOW_NS, "--sources", "1,2",
             "--silence", 60, "--json", *words]  # fmt: skip
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    crates = Crates(port, batch)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        crates.stop()


# --- Programs that are killed ---


@fault(
    "receiver-killed", "SIGKILL of `receive`, FADE-10G, at a random moment", "words",
    "HDF5 files that were closed, and plain files up to where they end, are right from the first word on; the next run begins",
)  # fmt: skip
def receiver_killed(site):
    net = site.net
    net.sim("--link", "loss=0.01")
    process = net.receive("--quiet", "--sink", f"hdf5:{net.tmp}/data.h5,every=0.3", "--sink", f"file:{net.tmp}/data.bin,roll=1M")
    net.wait_for_frames(10)  # more than answers to commands: the transmission has begun
    site.pause(0, 2.5)
    process.signal(signal.SIGKILL)
    process.finish()
    closed, wrong = closed_words(net.tmp, "data")
    plain, wrong_plain, _ = plain_words(net.tmp, "data")
    finished = net.receive("--packets", 20, "--verify", "counter").finish()
    status, result = report_of(finished)
    assert status == 0 and "earlier transmission was still running" in finished[2], finished
    return Outcome(closed + plain, wrong + wrong_plain)


@fault(
    "receiver-killed-tcp", "SIGKILL of `receive --tcp` at a random moment", "words",
    "what is in its file is right; the next one goes on behind it, no word twice. Lost is what the kernel had confirmed and "
    "`receive` had not read",
)  # fmt: skip
def receiver_killed_tcp(site):
    net = site.net
    net.sim("--protocol", "tcp", "--words", 0)
    first = net.fadelink("receive", "--tcp", PORT, "--json", "--quiet", "--out", net.tmp / "first-{stream}.bin")
    net.wait_for_frames(1)
    site.pause(0, 1.5)
    first.signal(signal.SIGKILL)
    first.finish()
    second = net.fadelink("receive", "--tcp", PORT, "--json", "--quiet", "--packets", 100, "--streams", 1, "--out", net.tmp / "second-{stream}.bin")
    status, result = report_of(second.finish())
    assert status == 0, result
    data = [
        np.concatenate([np.zeros(0, "<u8"), *(np.fromfile(path, "<u8") for path in net.tmp.glob(f"{name}-*.bin"))]) for name in ("first", "second")
    ]
    begin = int(data[1][0])
    wrong = wrong_words(data[0]) + wrong_words(data[1], begin) + max(len(data[0]) - begin, 0)
    return Outcome(sum(map(len, data)), wrong, max(begin - len(data[0]), 0))


@fault(
    "reader-killed", "SIGKILL of a program that reads the shared ring", "words",
    "the run goes on; all other sinks have every word",
)  # fmt: skip
def reader_killed(site):
    net = site.net
    net.sim()
    share, out = net.tmp / "share", net.tmp / "out"
    process = net.receive("--packets", 1000, "--ring", 64, "--quiet", "--out", out, "--sink", f"share:{share},wait")
    wait_for(share.exists)

    def read(*pace):
        return subprocess.Popen([sys.executable, ring_reader.__file__, share, *pace], stdout=subprocess.PIPE, text=True)

    # More than fits the ring comes only when the first reader is there; another sees what comes from then on.
    first = read()
    wait_for(lambda: out.exists() and out.stat().st_size > 2 * 64 * 8192)
    slow = read("1")
    site.pause(0.3, 1.5)
    slow.kill()
    slow.communicate()
    status, result = report_of(process.finish())
    data = np.fromfile(out, dtype="<u8")
    seen = int(first.communicate(timeout=PATIENCE)[0])
    words = result["febs"][0]["words"]
    assert status == 0 and first.returncode == 0 and words >= 1000 * 1024, result
    return Outcome(2 * words, wrong_words(data) + words - len(data) + words - seen)


@fault(
    "builder-killed", "SIGKILL of `build --tcp` at a random moment", "windows",
    "HDF5 and Parquet files that were closed have every window, from the first of the run on",
)  # fmt: skip
def builder_killed(site):
    sinks = [word for kind in ("h5", "parquet")
             for word in ("--sink", f"{kind.replace('h5', 'hdf5')}:{site.folder}/data.{kind},every=0.3")]  # fmt: skip
    with building(*sinks) as process:
        wait_for((site.folder / "data.h5").exists)
        site.pause(0, 2)
        process.kill()
        process.communicate()
    return Outcome(*closed_windows(site.folder, "data"))


# --- Disks ---


def failing_disk(site, kind, how):
    """A sink of `receive` on a disk that fails, beside one on a good disk."""
    net = site.net
    net.sim()
    disk = net.tmp / "disk"
    disk.mkdir()
    room = site.random.randrange(2 << 20, 6 << 20)
    sink, good = f"{kind}:{disk}/x.{dict(file='bin', hdf5='h5')[kind]},roll=1M", net.tmp / "good.h5"
    # Without an end of its own: the failure is what ends the run, however far the sink is behind the data.
    words = ("--quiet", "--sink", sink, "--sink", f"hdf5:{good}")
    with contextlib.ExitStack() as stack:
        env = environment(disk=disk, after=room, only_sync=how == "sync")
        told = "Input/output error"
        if how == "full":
            env, told = None, "No space left.*make space"
            sh("mount", "-t", "tmpfs", "-o", f"size={room >> 10}k", "none", disk)
            stack.callback(sh, "umount", disk)
        process = net.fadelink("receive", "--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--json", *words, env=env)
        status, out, err = process.finish()
        found = re.search(rf"{re.escape(sink)}: .*{told}.*; the (\d+) bytes before are intact", err, re.S)
        assert status == 3 and found, err
        intact = int(found[1]) // 8
        if kind == "hdf5":
            words, wrong = closed_words(disk, "x")
            complete = words
        else:
            words, wrong, complete = plain_words(disk, "x")
        lost = max(intact - words, 0) + wrong
        # What could not be synced is neither complete nor intact.
        synced = room // 8 + (1 << 17)
        assert how == "full" or max(complete, intact) <= synced, (complete, intact, room)
    with h5py.File(good) as file:
        data = file["words"][:]
        assert file.attrs["complete"] == 0
    # The source goes on to the sink that failed a little longer than the sink went on writing.
    return Outcome(intact + len(data), lost + wrong_words(data) + max(intact - len(data), 0))


DISKS = {
    "full": "the disk is full",
    "eio": "each write and sync fails (EIO) from a random byte on",
    "sync": "writes succeed and each sync fails (EIO) from a random byte on",
}
for _kind in ("file", "hdf5"):
    for _how, _what in DISKS.items():
        fault(
            f"disk-{_how}-{_kind}", f"`receive --sink {_kind}:`: {_what}", "words",
            "what the error calls intact is right; what was not synced is not called complete; the other sink has every word",
        )(lambda site, kind=_kind, how=_how: failing_disk(site, kind, how))  # fmt: skip


@fault(
    "disk-eio-parquet", "`build --sink parquet:`: each write and sync fails (EIO) from a random byte on", "windows",
    "closed files have every window; the other sink has every window that was emitted",
)  # fmt: skip
def disk_error_parquet(site):
    disk = site.folder / "disk"
    disk.mkdir()
    env = environment(disk=disk, after=site.random.randrange(20_000, 200_000))
    sinks = ("--sink", f"parquet:{disk}/x.parquet,every=0.2", "--sink", f"hdf5:{site.folder}/good.h5")
    with building(*sinks, env=env) as process:
        status, found, err = report((*process_end(process),))
    assert status == 3 and "Input/output error" in err, err
    windows, wrong = closed_windows(disk, "x")
    good, wrong_good = closed_windows(site.folder, "good")
    return Outcome(windows + found["events"], wrong + wrong_good + max(found["events"] - good, 0))


def process_end(process):
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


# --- Network ---


def cut(site):
    """Takes the cable out for a while, once or several times."""
    for _ in range(site.random.randrange(1, 4)):
        site.pause(0.1, 1)
        sh("ip", "-n", site.net.board_ns, "link", "set", "feb0", "down")
        site.pause(0.1, 1)
        sh("ip", "-n", site.net.board_ns, "link", "set", "feb0", "up")
    site.net.wait_for_frames(1)
    site.pause(0.3, 0.6)


@fault("network-cut", "the cable is out for up to 1 s, up to 3 times, FADE-10G", "words", "every word arrives")
def network_cut(site):
    net = site.net
    net.sim()
    process = net.receive("--verify", "counter", "--quiet")
    net.wait_for_frames(1)
    cut(site)
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    feb = result["febs"][0]
    assert status == 0 and feb["complete"] and feb["verified"], result
    return Outcome(feb["words"], feb["wrong_words"])


@fault("network-cut-tcp", "the same, TCP sender", "words", "every word arrives")
def network_cut_tcp(site):
    net = site.net
    net.sim("--protocol", "tcp", "--words", 0)
    process = net.fadelink("receive", "--tcp", PORT, "--json", "--verify", "counter", "--quiet")
    net.wait_for_frames(10)
    cut(site)
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    stream = result["streams"][0]
    assert status == 0 and stream["complete"] and stream["verified"] and len(result["streams"]) == 1, result
    return Outcome(stream["words"], stream["wrong_words"])


@fault("network-cut-udp", "the same, UDP/IP stack", "datagrams", "what is lost is counted to the datagram; what arrives is right")
def network_cut_udp(site):
    net = site.net
    sim = net.sim("--protocol", "udp", "--stopped", "--words", 0, "--payload", 1472)
    process = net.fadelink("receive", "--udp", PORT, "--board", BOARD, "--json", "--verify", "counter", "--quiet")
    net.wait_for_frames(50)
    cut(site)
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    stream = result["streams"][0]
    sent, counts = net.end_sim(sim)["boards"][0]["datagrams"], stream["counts"]
    assert status == 3 and stream["ended"] and stream["wrong_words"] == 0 and counts["lost"] > 0, result
    return Outcome(sent, abs(sent - counts["received"] - counts["lost"]), counts["lost"])


# --- The computer ---


@fault(
    "clock-stepped", "the time of day is stepped by up to a day, back and forth, `receive` with HDF5 that rolls over", "words",
    "every word arrives and is in the files, which roll over as before",
)  # fmt: skip
def clock_stepped(site):
    net, clock = site.net, clock_file(site.folder)
    net.sim()
    words = ("--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--json", "--verify", "counter", "--quiet")
    begin = time.monotonic()
    process = net.fadelink("receive", *words, "--sink", f"hdf5:{net.tmp}/data.h5,every=0.3", env=environment(clock=clock))
    net.wait_for_frames(1)
    for _ in range(4):
        site.pause(0.1, 0.6)
        step(clock, site.random.choice([-1, 1]) * site.random.choice([1, 60, 3600, 86400]) * site.random.random())
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    words = result["febs"][0]["words"]
    assert status == 0 and result["febs"][0]["verified"], result
    files = len(list(net.tmp.glob("data*.h5")))
    assert files <= (time.monotonic() - begin) / 0.3 + 2, f"{files} files"
    closed, wrong = closed_words(net.tmp, "data")
    return Outcome(words, wrong + abs(words - closed))


@fault(
    "no-descriptor", "`receive --tcp` has no file descriptor left (EMFILE)", "words",
    "connections that run have every word; others are counted, and accepted when descriptors are free",
)  # fmt: skip
def no_descriptor(site):
    limit, (port,) = site.random.randrange(30, 80), free_ports(1)
    words = [FADELINK, "receive", "--tcp", port, "--listen", "127.0.0.1", "--json", "--verify", "counter", "--quiet"]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))  # fmt: skip
    boards = []

    def connect():
        try:
            boards.append(socket.create_connection(("127.0.0.1", port)))
            return True
        except OSError:
            return False

    try:
        wait_for(connect)
        boards[0].sendall(struct.pack("<Q", 0))
        # More than it can have at once: the others wait in the kernel.
        assert all(connect() for _ in range(limit))
        wait_for(lambda: "could not be accepted" in os.read(process.stderr.fileno(), 4096).decode())
        boards[0].sendall(struct.pack("<Q", 1))
        for board in boards:
            board.close()
        # A newcomer is served to its end.
        newcomer = socket.create_connection(("127.0.0.1", port))
        newcomer.sendall(struct.pack("<1000Q", *range(1000)))
        newcomer.shutdown(socket.SHUT_WR)
        newcomer.settimeout(PATIENCE)
        assert newcomer.recv(1) == b"", "it closes when it has all"
        newcomer.close()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    found = json.loads(out)
    assert found["refused"] > 0
    # In the order in which their threads began.
    counts = sorted(stream["words"] for stream in found["streams"] if stream["complete"])
    wrong = sum(stream["wrong_words"] for stream in found["streams"])
    return Outcome(1002, wrong + abs(1002 - sum(counts[-2:])), found["refused"])


@contextlib.contextmanager
def memory_limit(folder, size):
    """A memory cgroup of version 1 or 2 in a mount of its own: what a child calls to be in it."""
    mounted, group = folder / "cgroup", None
    mounted.mkdir()
    try:
        sh("mount", "-t", "cgroup", "-o", "memory", "none", mounted)
        name = "memory.limit_in_bytes"
    except subprocess.CalledProcessError:
        sh("mount", "-t", "cgroup2", "none", mounted)
        name = "memory.max"
        (mounted / "cgroup.subtree_control").write_text("+memory")
    try:
        group = mounted / f"fadelink-{os.getpid()}"
        group.mkdir()
        (group / name).write_text(str(size))
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        if group and group.exists():
            # The kernel needs a moment to see that its last process has ended.
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    group.rmdir()
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
        sh("umount", mounted)


@fault(
    "no-memory", "`build` in a cgroup with too little memory: its queues grow until the kernel kills it", "windows",
    "files that were closed have every window, from the first of the run on",
)  # fmt: skip
def no_memory(site):
    size = site.random.randrange(24, 64) << 20
    sinks = ("--sink", f"hdf5:{site.folder}/data.h5,every=0.3", "--sink", f"zmq-push:ipc://{site.folder}/push,queue=1G")
    with memory_limit(site.folder, size) as enter, building(*sinks, batch=200, preexec_fn=enter) as process:
        status, _, err = process_end(process)
    assert status == -signal.SIGKILL, (status, err)
    return Outcome(*closed_windows(site.folder, "data"))


# --- Kafka ---


def through_kafka(site, disturb, windows=500, silence=60):
    """From crates over `feed` and a builder to events while `disturb(setup, builders)` does its worst; a builder that ends
    with an error is started again, as a service manager does. Counts windows that are not there once, with all their hits.
    """
    with site.kafka() as setup:
        feeder = setup.feed("--streams", len(SOURCES))
        builders = [setup.build(silence=silence)]
        sender = threading.Thread(target=send, args=(setup, windows), kwargs={"pause": 0.03})
        sender.start()
        try:
            disturb(setup, builders)
        finally:
            sender.join()
        status, fed, err = setup.finish(feeder, stop=False)
        assert status == 0 and fed["delivered"] == len(SOURCES) * windows, (fed, err)
        if builders[-1].poll() is not None:
            builders.append(setup.build(silence=silence))
        events = setup.read(setup.events, windows)
        status, found, err = setup.finish(builders[-1])
        assert status == 0 or len(builders) > 1, (found, err)
    count = Counter()
    for _, data in events:
        event, messages = model.read_event(data)
        whole = [message.source for message in messages] == list(SOURCES) and all(
            sorted(model.read_hits(message, WINDOW_NS // 4)[0]) == hits_of(message.source, message.record) for message in messages
        )
        count[event.record] += whole
        count["wrong"] += not whole
    return Outcome(windows, count["wrong"] + sum(abs(count[window] - 1) for window in range(windows)))


EXACTLY_ONCE = "each window is an event exactly once, complete"


@fault("kafka-builder-killed", "SIGKILL of a builder on Kafka, again and again, and a new one", "windows", EXACTLY_ONCE, kafka=True)
def kafka_builder_killed(site):
    def disturb(setup, builders):
        for _ in range(3):
            site.pause(0.3, 3)
            builders[-1].kill()
            builders[-1].communicate()
            builders.append(setup.build())

    return through_kafka(site, disturb)


@fault("kafka-broker-killed", "SIGKILL of the broker, which comes back", "windows", EXACTLY_ONCE, kafka=True)
def kafka_broker_killed(site):
    def disturb(setup, builders):
        site.pause(0.5, 4)
        setup.broker.kill()
        site.pause(0, 3)
        setup.broker.start()

    return through_kafka(site, disturb)


@fault("kafka-broker-stalled", "the broker stands still for 10 s (SIGSTOP), `--silence 2`", "windows", EXACTLY_ONCE, kafka=True)
def kafka_broker_stalled(site):
    def disturb(setup, builders):
        site.pause(0.5, 4)
        setup.broker.process.send_signal(signal.SIGSTOP)
        time.sleep(10)
        setup.broker.process.send_signal(signal.SIGCONT)

    return through_kafka(site, disturb, silence=2)


@fault("kafka-network-cut", "no way to the broker for up to 5 s, twice", "windows", EXACTLY_ONCE, kafka=True)
def kafka_network_cut(site):
    def disturb(setup, builders):
        for _ in range(2):
            site.pause(0.3, 2)
            sh("ip", "route", "add", "blackhole", f"{BROKER}/32", "table", "local")
            try:
                site.pause(0.5, 5)
            finally:
                sh("ip", "route", "delete", "blackhole", f"{BROKER}/32", "table", "local")

    return through_kafka(site, disturb)


@fault(
    "kafka-clock-stepped", "the time of day is stepped: of the broker by up to an hour, of `feed` and builder by up to an hour "
    "forward and 2 s back; `--silence 2`", "windows", EXACTLY_ONCE, kafka=True,
)  # fmt: skip
def kafka_clock_stepped(site):
    def disturb(setup, builders):
        # A step back holds librdkafka up for as long: it waits by the time of day.
        clocks = {broker_clock: (-3600, 3600), site.folder / "clock": (-2, 3600)}
        now = dict.fromkeys(clocks, 0)
        for _ in range(4):
            site.pause(0.5, 1.5)
            clock = site.random.choice(list(clocks))
            least, most = clocks[clock]
            now[clock] += site.random.choice([least, most]) * site.random.random()
            step(clock, now[clock])

    # A broker of its own: one whose clock was stepped may create no topics any more, even when it was started again.
    folder = site.folder / "broker"
    folder.mkdir()
    broker_clock = clock_file(folder)
    with contextlib.closing(Broker(folder, environment=environment(clock=broker_clock))) as site.broker:
        return through_kafka(site, disturb, silence=2)


@fault(
    "kafka-feed-killed", "SIGKILL of `feed` while crates send, 3 times", "messages",
    "what it had delivered is in the events. What TCP had confirmed and it had not delivered is missing in its windows, and in no "
    "others",
    kafka=True,
)  # fmt: skip
def kafka_feed_killed(site):
    with site.kafka() as setup:
        return feeds_killed(site, setup)


def feeds_killed(site, setup):
    r, place, sent, turns = site.random, 0, [], []
    for turn in range(4):
        turns.append(place)
        feeder = setup.feed()
        crates = [Crate(setup.port, source) for source in SOURCES]
        for _ in range(20):
            for crate in crates:
                crate.send(*range(place, place + 5))
            place += 5
            time.sleep(0.01)
        if turn < 3:
            time.sleep(r.random())
            # From here on the kernel confirms to the crates what the feed will never read.
            feeder.send_signal(signal.SIGSTOP)
            for crate in crates:
                count = r.randrange(1, 40)
                crate.send(*range(place, place + count))
                sent += [(crate.source, window) for window in range(place, place + count)]
            feeder.kill()
            feeder.communicate()
            place += 40
        for crate in crates:
            crate.close()
    status, fed, err = setup.finish(feeder)
    assert status == 0, (fed, err)
    there = {(m.source, m.record) for _, data in setup.read(setup.messages, 1, quiet=1) for m in model.read_messages(data)}
    lost = {(source, window) for source, window in sent if (source, window) not in there}
    assert lost and len(there) >= 200
    builder = setup.build()
    events, wrong, told = {}, 0, 0
    for message in setup.read_all(setup.events, len({window for _, window in there})):
        event, parts = model.read_event(message.value())
        missing, late = (word.split("=")[1] for word in dict(message.headers())["fadelink"].decode().split())
        missing = {int(source, 16) for source in missing.split(",") if source}
        found = {part.source for part in parts}
        want = {source for source in SOURCES if (source, event.record) in there}
        wrong += late != "0" or event.record in events
        wrong += len(want ^ found) + len(missing ^ (set(SOURCES) - found))
        told += len(missing)
        events[event.record] = found
    wrong += len({window for _, window in there} - set(events))
    status, found, err = setup.finish(builder)
    assert status == 3, (found, err)
    for source in SOURCES:
        counts = found["sources"][f"0x{source:08x}"]
        delivered = [window for crate, window in there if crate == source]
        # A feed that was killed before it delivered anything of a crate has left no session of it.
        sessions = len({bisect.bisect(turns, window) for window in delivered})
        # Windows that no crate's message is left of have no event: they are counted, from the source's first on.
        gone = {window for _, window in lost if window > min(delivered)} - set(events)
        assert counts["unknown"] >= len(gone) and counts["late"] == 0 and counts["sessions"] == sessions, (counts, gone, sessions)
        told += len(gone)
    return Outcome(len(there), wrong, told)
