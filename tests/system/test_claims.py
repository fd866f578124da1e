"""One program at a time has a board, and only the group of the folder can hold a claim (docs/install.md)."""

import json
import os
import shutil
import signal

import pytest
from support.netns import BOARD, CLAIMS, FEBS, wait_for
from support.paths import FADELINK

NOBODY = 65534
RECEIVE = ["receive", "--iface", "eth0", "--feb", FEBS[0]]
# What a user outside the group may try: the names of files in the folder, and locks on those that are there.
HOLD = """
import fcntl, os, socket, struct, sys
folder, names = sys.argv[1], sys.argv[2:]
lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
kept, names_of_sockets = [], []
for name in names:
    path = folder + "/" + name
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT):
        try:
            kept.append(os.open(path, flags))
        except (PermissionError, FileNotFoundError):
            continue
        fcntl.fcntl(kept[-1], 37, lock)
    for make in (lambda: os.mkfifo(path), lambda: os.mkdir(path), lambda: os.symlink("/dev/zero", path), lambda: os.unlink(path)):
        try:
            make()
            kept.append(path)
        except (PermissionError, FileExistsError, FileNotFoundError):
            pass
    # As they were before.
    names_of_sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    names_of_sockets[-1].bind("\\0fadelink/" + name)
print("held", kept, flush=True)
sys.stdin.read()
"""


def files(bench):
    """The claims in the network namespace of the receivers."""
    number = os.stat(f"/run/netns/{bench.pc_ns}").st_ino
    return sorted(path.name for path in CLAIMS.glob(f"{number}-*"))


def as_nobody(bench, *rights, groups=None):
    """The begin of a command of an ordinary user, and a copy of the command that this user may read."""
    for folder in [bench.tmp, *bench.tmp.parents][:3]:
        os.chmod(folder, 0o755)
    program = bench.tmp / "fadelink"
    if not program.exists():
        shutil.copy(FADELINK, program)
        os.chmod(program, 0o755)
    groups = ["--groups", groups] if groups else ["--clear-groups"]
    rights = [word for right in rights for word in ("--inh-caps", f"+{right}", "--ambient-caps", f"+{right}")]
    return ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, *groups, *rights, program]


def refused(bench, holder, *words):
    status, _, err = bench.run(*(words or RECEIVE))
    assert status == 1 and f"FEB {FEBS[0]}: it is open already: fadelink (pid {holder.popen.pid}); close it there first" in err, err


def test_the_second_program_is_told_who_has_the_board(bench):
    bench.sim()
    first = bench.receive("--quiet")
    bench.wait_for_frames()
    assert any(name.endswith(f"-{FEBS[0]}.data") for name in files(bench))
    refused(bench, first)
    # Commands are taken in turns; nobody waits for the data.
    assert bench.command(0x0207, 1) == 1
    first.signal(signal.SIGINT)
    status, out, err = first.finish()
    assert status == 0, out + err
    assert files(bench) == [], "nothing is left"


def test_a_killed_program_has_nothing(bench):
    bench.sim()
    first = bench.receive("--quiet")
    bench.wait_for_frames()
    first.signal(signal.SIGKILL)
    first.finish()
    assert any(name.endswith(".data") for name in files(bench)), "its file is left"
    status, out, err = bench.receive("--quiet", "--packets", 20).finish()
    assert status == 0, out + err
    assert files(bench) == []


def test_an_ordinary_user_holds_nothing(bench):
    """While a program has the board, when it was killed, and when its file is not there: the next one begins."""
    bench.sim()
    first = bench.receive("--quiet")
    bench.wait_for_frames()
    names = [f"{os.stat(f'/run/netns/{bench.pc_ns}').st_ino}-{index}-{FEBS[0]}.{what}" for index in range(1, 20) for what in ("data", "commands")]
    assert set(files(bench)) <= set(names)
    user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--bounding-set=-all", "/usr/bin/python3", "-c", HOLD]
    holders = [bench.start(bench.pc_ns, *user, CLAIMS, *names, stdin=-1)]
    first.signal(signal.SIGKILL)
    first.finish()
    left = set(files(bench))
    assert left
    holders.append(bench.start(bench.board_ns, *user, CLAIMS, *names, stdin=-1))
    for holder in holders:
        assert holder.popen.stdout.readline() == "held []\n", holder.finish()
    assert set(files(bench)) == left
    for _ in range(2):
        status, out, err = bench.receive("--quiet", "--packets", 20).finish()
        assert status == 0, out + err
        assert bench.command(0x0207, 0) == 0
        assert files(bench) == []
    for holder in holders:
        assert holder.finish()[0] == 0


def test_a_user_who_cannot_share_claims_is_warned(bench):
    """Programs of such a user exclude each other, where there is a folder of this user alone."""
    bench.sim("--boards", 2)
    runtime = bench.tmp / "runtime"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, NOBODY, NOBODY)
    user = as_nobody(bench, "net_raw")
    words = [*user, *RECEIVE, "--quiet", "--packets", 20]
    status, out, err = bench.start(bench.pc_ns, "env", "-u", "XDG_RUNTIME_DIR", *words).finish()
    assert status == 0 and err.count(f"{CLAIMS}: this user cannot write there, so other programs on this computer may use the same boards") == 1, err
    own = ["env", f"XDG_RUNTIME_DIR={runtime}", *user, *RECEIVE, "--quiet"]
    first = bench.start(bench.pc_ns, *own)
    bench.wait_for_frames()
    status, _, err = bench.start(bench.pc_ns, *own).finish()
    assert status == 1 and "so programs of other users on this computer may" in err, err
    assert f"it is open already: fadelink (pid {first.popen.pid})" in err
    first.signal(signal.SIGINT)
    assert first.finish()[0] == 0
    assert list((runtime / "fadelink").iterdir()) == []


def test_a_user_of_the_group_shares_claims(bench):
    bench.sim()
    # Tests beside this one may use the folder, too: it stays of this group.
    group = 64321
    CLAIMS.mkdir(exist_ok=True)
    os.chown(CLAIMS, 0, group)
    os.chmod(CLAIMS, 0o2775)
    user = as_nobody(bench, "net_raw", groups=group)
    first = bench.start(bench.pc_ns, *user, *RECEIVE, "--quiet")
    bench.wait_for_frames()
    refused(bench, first)
    first.signal(signal.SIGINT)
    status, _, err = first.finish()
    assert status == 0 and "cannot write" not in err, err
    first = bench.receive("--quiet")
    bench.wait_for_frames()
    status, _, err = bench.start(bench.pc_ns, *user, *RECEIVE, "--quiet").finish()
    assert status == 1 and f"fadelink (pid {first.popen.pid})" in err, err
    first.signal(signal.SIGINT)
    assert first.finish()[0] == 0
    assert files(bench) == []


@pytest.mark.parametrize("runtime", [False, True])
def test_slow_control_is_for_ordinary_users(net, runtime):
    """It works with and without a folder of claims, and says nothing."""
    net.sim("--protocol", "udp", "--stopped")
    folder = net.tmp / "runtime"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    environment = ["env", f"XDG_RUNTIME_DIR={folder}" if runtime else "--unset=XDG_RUNTIME_DIR"]
    words = [*as_nobody(net), "register", "--board", BOARD, "0x1"]
    programs = [net.start(net.pc_ns, *environment, *words, "1", "--json") for _ in range(8 if runtime else 1)]
    for program in programs:
        status, _, err = program.finish()
        assert (status, err) == (0, "")
    status, out, err = net.run("register", "--board", BOARD, "0x1", "--json")
    assert status == 0 and json.loads(out)["value"] == len(programs), err
    assert files(net) == []
    if runtime:
        wait_for(lambda: list((folder / "fadelink").iterdir()) == [])
