"""What a run may leave behind on a machine: looked at before and after, and what a killed run left is swept away."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from support.paths import TOP

# In the environment of everything that a run starts.
MARK = "FADELINK_RUN"
NAMESPACES = re.compile(r"(?:fl-\w+|fadelink-\w+)-(\d+)(?:-\d+)?$")


def lines(*words):
    return set(subprocess.run(words, capture_output=True, text=True).stdout.splitlines())


def entries(folder):
    return {entry.path for entry in os.scandir(folder)} if os.path.isdir(folder) else set()


def processes(run):
    """Processes that were started with MARK=run, as {number: command line}; without this one."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={run}\0".encode() in (folder / "environ").read_bytes() and folder.name != str(os.getpid()):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            pass  # it ended meanwhile
    return found


def snapshot():
    """{kind: set of what there is} of everything that a test could leave outside the build folder."""
    return {
        "network namespace": entries("/run/netns"),
        "interface": {re.sub(r"@.*", "", line.split(": ")[1]) for line in lines("ip", "-o", "link")},
        "mount": {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()},
        "file": entries("/tmp") | entries("/var/tmp") | entries("/dev/shm"),
        "change of the tree": lines("git", "-C", str(TOP), "status", "--porcelain"),
    }


def differences(before, after):
    """What is new, a line each."""
    return [f"{kind} {name}" for kind in before for name in sorted(after[kind] - before[kind])]


def sweep(run):
    """Ends what a killed run has left: its processes and the namespaces of processes that are gone. Says what, a line each."""
    said = []
    end = time.monotonic() + 10
    while (left := processes(run)) and time.monotonic() < end:
        for pid, words in left.items():
            said.append(f"process {pid} {words}")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.2)
    for path in entries("/run/netns"):
        match = NAMESPACES.search(path)
        if match and not os.path.exists(f"/proc/{match[1]}"):
            subprocess.run(["ip", "netns", "delete", os.path.basename(path)], capture_output=True)
            said.append(f"network namespace {path}")
    return said
