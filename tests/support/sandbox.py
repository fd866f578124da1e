#!/usr/bin/env python3
"""Runs a program so that nothing of it outlives it, and names what it left behind.

Usage: sandbox.py [--network own|host] [--root] PROGRAM [ARGUMENT ...]

As root, the program has processes, mounts, shared memory and, with `own`, a network of its own (namespaces(7)): no other
program sees them, and the kernel ends them with the program, however it ends. The project's tree is read-only but for the
folders that are built; it is at /mnt if its path has a space or the like (tools/plain_path.sh). As another user the program
has a session of its own, whose processes are ended. In both cases TMPDIR is a folder of its own below build/tmpdir; the next
sandbox removes the folders and processes of one that was killed.

SIGINT, SIGTERM and SIGHUP end the program by SIGINT, and by SIGKILL after 30 s or at a later signal. A program that ends
by itself must have cleaned up: as root, each process, network namespace, interface, mount and temporary file that is left is
named on standard error, one line each, and the exit status is 99.

`--root` asks for root by sudo. A Python program moves itself into a sandbox by `enter`.
"""

import argparse
import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TEMPORARY = TOP / "build/tmpdir"
# What a program may write in the tree.
BUILT = [TOP / "build", TOP / "host/target", TOP / ".venv"]
# Where the tree is in a sandbox with namespaces: as tools/plain_path.sh, and for Verilator and cocotb.
PLACE = TOP if re.fullmatch(r"[A-Za-z0-9/._+-]+", str(TOP)) else Path("/mnt")
# In the environment of everything in a sandbox: the name of its folder.
MARK = "FADELINK_SANDBOX"
LEFT = "left behind: "
LEFT_STATUS = 99
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
# Seconds until a program that was asked to end is killed, and until a process that is about to end counts as left.
PATIENCE, GRACE = 30, 5
# A terminal and a parent may both hand the same wish on; signals so near to each other, in seconds, are one.
SAME_WISH = 1

# linux/sched.h, linux/mount.h, linux/prctl.h; Python 3.11 has no names for them.
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    """A function of the C library; its error as an exception."""
    if getattr(libc, name)(*(os.fsencode(word) if isinstance(word, (str, Path)) else word for word in arguments)) != 0:
        raise OSError(ctypes.get_errno(), f"{name}{arguments}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, flags=0, data=None):
    call("mount", source, target, kind, ctypes.c_ulong(flags), data)


def end_with_parent():
    """The kernel ends this process when the thread that started it has ended."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# --- For those who want a sandbox ---


def words(program, network="own", root=False):
    """The command line of a program in a sandbox."""
    return [sys.executable, __file__, "--network", network, *(["--root"] if root else []), "--", *map(str, program)]


def enter(network="own", root=False):
    """Starts this Python program anew in a sandbox, unless it is in one."""
    if MARK not in os.environ:
        sys.stdout.flush()
        os.execv(sys.executable, words([sys.executable, *sys.orig_argv[1:]], network, root))


# --- Temporary folders: held by a lock while their sandbox lives ---


@contextlib.contextmanager
def temporary_folder():
    """A folder of its own; before, those of sandboxes that were killed are removed, with their processes."""
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    with open_folder(TEMPORARY) as everything:
        fcntl.flock(everything, fcntl.LOCK_EX)
        for path in TEMPORARY.iterdir():
            # One that is held, or root's, is not looked at.
            with contextlib.suppress(BlockingIOError, PermissionError), open_folder(path) as folder:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                kill(marked(path.name))
                remove(path)
        path = Path(tempfile.mkdtemp(prefix="", dir=TEMPORARY))
        lock = os.open(path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield path
    finally:
        remove(path)
        os.close(lock)


@contextlib.contextmanager
def open_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        yield folder
    finally:
        os.close(folder)


def remove(path):
    """Removes a folder, also one with folders that are read-only."""

    def writable(function, name, _):
        os.chmod(os.path.dirname(name), 0o700)
        function(name)

    shutil.rmtree(path, onerror=writable)


# --- Processes ---


def processes():
    """{process number: (number of its parent, command line)} of all that have not ended."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if state not in "ZX":
                found[int(folder.name)] = (int(parent), line)
    return found


def marked(name):
    """Processes of a sandbox whose folder is `name`."""
    found = []
    for pid in processes():
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            if f"{MARK}={name}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes() and pid != os.getpid():
                found.append(pid)
    return found


def descendants():
    """{process number: command line} of everything that this process is an ancestor of."""
    found, everything = {}, processes()
    new = {os.getpid()}
    while new:
        new = {pid for pid, (parent, _) in everything.items() if parent in new}
        found |= {pid: everything[pid][1] for pid in new}
    return found


def exit_status(status):
    """As a shell gives it: 128 and the number of the signal that ended a process."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# --- The first process of a sandbox ---


def mounts():
    """{identity: mount point} of all mounts; those of network namespaces are told as namespaces."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        identity, _, _, _, point, *rest = line.split()
        if rest[rest.index("-") + 1] != "nsfs":
            found[identity] = point
    return found


def placed(text):
    """A path, or what has paths in it, as it is in a sandbox with namespaces."""
    return text.replace(str(TOP), str(PLACE))


def build_namespaces(own_network):
    """Moves this process, the first of its process namespace, into namespaces of its own."""
    call("unshare", CLONE_NEWNS | CLONE_NEWIPC | (CLONE_NEWNET if own_network else 0))
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    here = os.getcwd()
    mount(TOP, TOP, None, MS_BIND | MS_REC)
    for folder in BUILT:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve().is_relative_to(TOP):
            mount(folder.resolve(), folder.resolve(), None, MS_BIND | MS_REC)
    mount(None, TOP, None, MS_BIND | MS_REMOUNT | MS_RDONLY)
    if PLACE != TOP:
        mount(TOP, PLACE, None, MS_BIND | MS_REC)
    # From the mount that was there before into the new one.
    os.chdir(placed(here))
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    # Namespaces, shared memory, the counters of command numbers, and the claims of boards.
    for folder, mode in [("/run/netns", "755"), ("/dev/shm", "1777"), ("/var/lib/fadelink", "755"), ("/run/fadelink", "755")]:
        os.makedirs(folder, exist_ok=True)
        mount("fadelink-tests", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode}")
    if own_network:
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Supervisor:
    """Starts the program, hands signals on to it, ends what is left of it."""

    def __init__(self, folder, namespaces, own_network):
        self.folder, self.namespaces, self.own_network = folder, namespaces, own_network
        self.asked_to_end = self.asked_at = self.process = None
        for number in {*SIGNALS, signal.SIGALRM}:
            signal.signal(number, self.end)
        if namespaces:
            build_namespaces(own_network)
        else:
            call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.interfaces, self.mounts = set(socket.if_nameindex()), mounts()

    def run(self, program):
        """Runs the program: the exit status of the sandbox."""
        environment = os.environ | {MARK: self.folder.name, "TMPDIR": str(self.folder)}
        if self.namespaces:
            environment["PYTHONPYCACHEPREFIX"] = str(TOP / "build/pycache")
            environment = {name: placed(value) for name, value in environment.items()}
            program = [placed(word) for word in program]
        unblock = lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # noqa: E731
        try:
            self.process = subprocess.Popen(program, env=environment, start_new_session=True, preexec_fn=unblock)
        except OSError as error:
            print(f"sandbox: {program[0]}: {error.strerror}", file=sys.stderr)
            return 127
        # Only now: one that came meanwhile is handed on to the program.
        unblock()
        status = self.wait()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        signal.alarm(0)
        if self.asked_to_end or not self.namespaces:
            self.kill_all()
            return 128 + self.asked_to_end if self.asked_to_end else status
        left = self.left_behind()
        for line in left:
            print(f"{LEFT}{line}", file=sys.stderr)
        return status or (LEFT_STATUS if left else 0)

    def left_behind(self):
        """What is there still, a line each; processes are ended."""
        left = [f"process {pid} {line}" for pid, line in self.last_processes().items()]
        self.kill_all()
        left += [f"network namespace {name}" for name in sorted(os.listdir("/run/netns"))]
        if self.own_network:
            left += [f"interface {name}" for _, name in set(socket.if_nameindex()) - self.interfaces]
        left += [f"mount {point}" for identity, point in mounts().items() if identity not in self.mounts]
        left += [f"temporary file {path}" for place in (self.folder, Path("/dev/shm")) for path in sorted(place.iterdir())]
        return left

    def wait(self):
        """Waits for the program: its exit status. Those who have lost their parent are waited for here too."""
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == self.process.pid:
                return exit_status(status)

    def end(self, number, _):
        """A signal: asks the program to end, or ends it."""
        if not self.asked_to_end:
            self.asked_to_end, self.asked_at = number, time.monotonic()
            signal.alarm(PATIENCE)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)
        elif time.monotonic() > self.asked_at + SAME_WISH:
            self.kill_all()

    def last_processes(self):
        """What still runs when the program has ended, and does not end by itself."""
        end = time.monotonic() + GRACE
        while (left := descendants()) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def kill_all(self):
        while left := descendants():
            kill(left)
            time.sleep(0.01)


# --- The process that waits for it ---


def run(program, network):
    """Runs a program in a sandbox: its exit status."""
    namespaces = os.geteuid() == 0
    with temporary_folder() as folder:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        lives, alive = os.pipe()
        if namespaces:
            call("unshare", CLONE_NEWPID)
        first = os.fork()
        if first == 0:
            os.close(alive)
            os.setsid()
            end_with_parent()
            os.set_blocking(lives, False)
            with contextlib.suppress(BlockingIOError):
                os.read(lives, 1)  # who holds the other end has ended already
                os._exit(1)
            status = 125
            try:
                status = Supervisor(folder, namespaces, network == "own").run(program)
            except SystemExit as end:
                status = end.code
            except OSError as error:
                print(f"sandbox: {error}", file=sys.stderr)
            except Exception:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        for number in SIGNALS:
            signal.signal(number, lambda number, _: os.kill(first, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        _, status = os.waitpid(first, 0)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    return exit_status(status)


def give_back():
    """What root has built for a user by sudo is the user's."""
    user, group = (int(os.environ.get(name, 0)) for name in ("SUDO_UID", "SUDO_GID"))
    if user and os.stat(TOP).st_uid == user:
        for folder in BUILT:
            for path, folders, files in os.walk(folder):
                for name in (path, *(os.path.join(path, name) for name in folders + files)):
                    if os.lstat(name).st_uid == 0:
                        os.chown(name, user, group, follow_symlinks=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=["own", "host"], default="own")
    parser.add_argument("--root", action="store_true")
    parser.add_argument("program", nargs="+")
    args = parser.parse_args()
    if args.root and os.geteuid() != 0:
        # An ordinary user's path lacks the folder of the tools for the network.
        path = f"PATH={os.environ['PATH']}:/usr/sbin:/sbin"
        os.execvp("sudo", ["sudo", "--preserve-env", "env", path, *words(args.program, args.network)])
    try:
        return run(args.program, args.network)
    except OSError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 125
    finally:
        give_back()


if __name__ == "__main__":
    sys.exit(main())
