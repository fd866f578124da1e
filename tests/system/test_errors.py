"""Errors that a user meets: each row is a situation, a command, and what its message says: what happened, and what to do."""

import shutil
import socket
from pathlib import Path

import pytest
from support.netns import FEBS, add_address, sh
from support.paths import FADELINK, SIM

FEB = ["--feb", FEBS[0]]
RECEIVE = [FADELINK, "receive", "--iface", "eth0", *FEB, "--idle-timeout", 2]
BUILD = [FADELINK, "build", "--tcp", 10000, "--window-ns", 16384, "--expect", 1]
REGISTER = [FADELINK, "register", "0x80000100", "--retries", 1, "--board"]
QUICK = ["--timeout", 10, "--retries", 2]
CHECK_BOARD = "check the power of the board, the cable and the address (`fadelink discover` lists boards)"
OTHER_PROGRAM = "another program uses this port (`ss -lntup` lists them): end it, or choose another"
WHERE_TO_SEND = "check the boards, and the address and port that they send to"


# --- Situations ---


def link(*words):
    return lambda bench: sh("ip", "-n", bench.pc_ns, "link", "set", *words)


def port(kind, number):
    """Another program has the port."""

    def take(bench):
        taken = bench.in_namespace(bench.pc_ns, lambda: socket.socket(socket.AF_INET, kind))
        taken.bind(("0.0.0.0", number))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        bench.taken = taken

    return take


def no_rights(bench):
    """Programs are started by a user who has none."""
    # Copies where that user may reach them.
    for parent in [bench.tmp, *bench.tmp.parents][:4]:
        if parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(parent.stat().st_mode | 0o055)
    bench.as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    bench.copies = {path: shutil.copy(path, bench.tmp / path.name) for path in (FADELINK, SIM)}
    (bench.tmp / "locked").mkdir(mode=0o700)


def data_exists(bench):
    (bench.tmp / "data").write_bytes(bytes(8))


def full_disk(bench):
    bench.sim()
    (bench.tmp / "full").mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=1m", "full", bench.tmp / "full")
    bench.mounted = bench.tmp / "full"


def running(bench):
    """Another program on this computer receives from the board."""
    bench.sim()
    first = bench.receive()
    bench.wait_for_frames()
    assert first.popen.poll() is None


def stream_to_file_that_exists(bench):
    """A board with the TCP sender connects while the file of its stream exists."""
    data_exists(bench)
    add_address(bench)
    # It tries again until somebody listens.
    bench.sim("--protocol", "tcp", "--phy", "gmii", "--words", 1000)


nothing = lambda bench: None

# (situation, what makes it, command, exit status, what the message says)
ERRORS = [
    ("wrong interface", nothing, [FADELINK, "receive", "--iface", "eth7", *FEB], 1, "interface eth7 does not exist; `ip link` lists those that do"),
    ("wrong interface, cmd", nothing, [FADELINK, "cmd", "--iface", "eth7", *FEB, "0x0100"], 1, "interface eth7 does not exist; `ip link`"),
    ("wrong interface, feb", nothing, [FADELINK, "feb", "--iface", "eth7", *FEB], 1, "interface eth7 does not exist; `ip link`"),
    ("wrong interface, simulator", nothing, [SIM, "--iface", "eth7"], 1, "interface eth7 does not exist; make it, or let this program make a TAP with --create-tap"),
    ("no Ethernet", link("lo", "up"), [FADELINK, "discover", "--iface", "lo"], 1, "interface lo is not an Ethernet interface (type 772); choose one that is"),
    ("interface down", link("eth0", "down"), RECEIVE, 1, "interface eth0 is down; set it up: ip link set eth0 up"),
    ("MTU", link("eth0", "mtu", 1500), RECEIVE, 1, "interface eth0 has MTU 1500, expected at least 8218 for data frames: ip link set eth0 mtu 9000"),
    ("MTU, simulator", link("eth0", "mtu", 1500), [SIM, "--iface", "eth0"], 1, "interface eth0 has MTU 1500, expected at least 8218 for data frames: ip link set eth0 mtu 9000"),
    ("MTU, feb", link("eth0", "mtu", 1500), [FADELINK, "feb", "--iface", "eth0", *FEB], 1, "interface eth0 has MTU 1500, expected at least 8218 for data frames: ip link set eth0 mtu 9000"),
    ("no rights", no_rights, RECEIVE, 1, "packet socket on eth0: Operation not permitted (os error 1); run it as root or give it CAP_NET_RAW"),
    ("no rights, simulator", no_rights, [SIM, "--iface", "eth0"], 1, "Operation not permitted; run it as root or give it CAP_NET_ADMIN and CAP_NET_RAW"),
    ("no rights, TAP", no_rights, [SIM, "--iface", "tap9", "--create-tap"], 1, "TAP tap9: Operation not permitted; run it as root or give it CAP_NET_ADMIN and CAP_NET_RAW"),
    ("no rights, port", no_rights, [FADELINK, "receive", "--tcp", 80, "--duration", 1], 1, "--tcp 80: listening on 0.0.0.0:80: Permission denied (os error 13); this user has no right to it; run the command as root, or choose another"),
    ("no rights, capture", no_rights, [FADELINK, "dissect", "{tmp}/locked/run.pcap"], 1, "locked/run.pcap: Permission denied (os error 13); this user has no right to it"),
    ("port taken, TCP", port(socket.SOCK_STREAM, 10000), [FADELINK, "receive", "--tcp", 10000], 1, f"--tcp 10000: listening on 0.0.0.0:10000: Address already in use (os error 98); {OTHER_PROGRAM}"),
    ("port taken, UDP", port(socket.SOCK_DGRAM, 10000), [FADELINK, "receive", "--udp", 10000], 1, f"--udp 10000: listening on 0.0.0.0:10000: Address already in use (os error 98); {OTHER_PROGRAM}"),
    ("port taken, builder", port(socket.SOCK_STREAM, 10000), BUILD, 1, f"--tcp 10000: listening on 0.0.0.0:10000: Address already in use (os error 98); {OTHER_PROGRAM}"),
    ("port taken, page", port(socket.SOCK_STREAM, 8080), [*BUILD, "--web", "0.0.0.0:8080"], 1, f"--web 0.0.0.0:8080: Address already in use (os error 98); {OTHER_PROGRAM}"),
    ("port taken, ZeroMQ", port(socket.SOCK_STREAM, 5555), [*BUILD, "--sink", "zmq-pub:tcp://0.0.0.0:5555"], 1, "Address already in use: tcp://0.0.0.0:5555; another program uses it (`ss -lntup` lists them); end it, or choose another"),
    ("port taken, metrics", port(socket.SOCK_STREAM, 9777), [*RECEIVE, "--metrics", "0.0.0.0:9777"], 1, f"--metrics 0.0.0.0:9777: Address already in use (os error 98); {OTHER_PROGRAM}"),
    ("file exists", data_exists, [*RECEIVE, "--out", "{tmp}/data"], 1, "data exists; choose another name, or allow to replace it: --overwrite, or the option overwrite of a --sink"),
    ("file exists, HDF5", data_exists, [*RECEIVE, "--sink", "hdf5:{tmp}/data"], 1, "data exists; choose another name, or allow to replace it"),
    ("file exists, events", data_exists, [*BUILD, "--sink", "parquet:{tmp}/data"], 1, "data exists; choose another name, or allow to replace it"),
    ("file exists, share", data_exists, [*RECEIVE, "--sink", "share:{tmp}/data"], 1, "data exists, and is not a socket; choose another name"),
    ("file exists, TCP", stream_to_file_that_exists, [FADELINK, "receive", "--tcp", 10000, "--streams", 1, "--out", "{tmp}/data"], 3, "data exists; choose another name, or allow to replace it"),
    ("folder", nothing, [*RECEIVE, "--out", "{tmp}"], 1, "Is a directory (os error 21); it is a folder; name a file in it"),
    ("folder, HDF5", nothing, [*RECEIVE, "--sink", "hdf5:{tmp}"], 1, "Is a directory (os error 21); it is a folder; name a file in it"),
    ("no folder, events", nothing, [*BUILD, "--sink", "parquet:{tmp}/none/data"], 1, "none/data: No such file or directory (os error 2); make the folder first: mkdir -p"),
    ("no folder", nothing, [*RECEIVE, "--out", "{tmp}/none/data"], 1, "none/data: No such file or directory (os error 2); make the folder first: mkdir -p"),
    ("disk full", full_disk, [*RECEIVE, "--out", "{tmp}/full/data"], 3, "full/data: No space left on device (os error 28); the disk is full; make space, or choose another place; the "),
    ("disk full, HDF5", full_disk, [*RECEIVE, "--sink", "hdf5:{tmp}/full/data"], 3, "full/data: No space left on device (os error 28); the disk is full; make space, or choose another place"),
    ("disk full, preallocated", full_disk, [*RECEIVE, "--sink", "file:{tmp}/full/data,preallocate=2G"], 3, "No space left on device (os error 28); the disk is full; make space, or choose another place"),
    ("board silent", nothing, RECEIVE, 3, f"START (if the board sends to another computer: --take-over): FEB {FEBS[0]}: no response to command 0x0001 after 21 attempts; {CHECK_BOARD}"),
    ("board silent, command", nothing, [FADELINK, "cmd", "--iface", "eth0", *FEB, "0x0100", *QUICK], 1, f"FEB {FEBS[0]}: no answer to IDENTIFY after 12 attempts; command 0x0100 was not sent; {CHECK_BOARD}; an idle board with a published FADE v1 core answers nothing"),
    ("boards silent, discover", nothing, [FADELINK, "discover", "--iface", "eth0", "--timeout", 0.2], 1, "no board answered on eth0; check its power and the cable; a board with a published core must be named with --feb"),
    ("boards silent, discover by address", nothing, [FADELINK, "discover", "--iface", "eth0", "--timeout", 0.2, *FEB], 1, "no board answered on eth0; check its power and the cable; an idle board with a published FADE v1 core answers nothing, and is found only while it sends"),
    ("boards silent, discover, JSON", nothing, [FADELINK, "discover", "--iface", "eth0", "--timeout", 0.2, "--json"], 1, "no board answered on eth0; check its power and the cable; a board with a published core must be named with --feb"),
    ("boards silent, status", nothing, [FADELINK, "status", "--iface", "eth0"], 1, "no board answered on eth0; check its power and the cable, or name one with --feb"),
    ("boards silent, TCP", nothing, [FADELINK, "receive", "--tcp", 10000, "--idle-timeout", 0.2], 1, "no board has connected for 0.2 s; check its address, and the address and port that it sends to"),
    ("boards silent, duration", nothing, [FADELINK, "receive", "--tcp", 10000, "--duration", 0.2], 3, f"0 streams came, expected 1; {WHERE_TO_SEND}"),
    ("board silent, register", add_address, [*REGISTER, "10.9.0.77"], 1, "board 10.9.0.77: no answer from its slow control in 2 attempts; is it on, and is this its address?"),
    ("wrong address", nothing, [*REGISTER, "10.9.0.77"], 1, "board 10.9.0.77: Network is unreachable (os error 101); this computer has no address in the network of the board; `ip address` lists those it has"),
    ("wrong address, syntax", nothing, [*REGISTER, "10.9.0"], 2, "--board 10.9.0: expected an IPv4 address, as 10.9.0.2; see `fadelink register --help`"),
    ("wrong MAC address", nothing, [FADELINK, "receive", "--iface", "eth0", "--feb", "02:fa:de"], 2, "--feb 02:fa:de: expected a unicast address, six two-digit hexadecimal bytes joined by colons, as 02:fa:de:00:00:01; see `fadelink receive --help`"),
    ("board in use", running, RECEIVE, 1, f"FEB {FEBS[0]}: it is open already: fadelink (pid "),
    ("no driver", nothing, [*RECEIVE, "--backend", "kernel"], 1, "the kernel driver is not loaded: modprobe fadelink (docs/driver.md)"),
    ("no broker", link("lo", "up"), [FADELINK, "feed", "--tcp", 10000, "--kafka", "127.0.0.1:9"], 1, "Kafka: no broker answers at 127.0.0.1:9 ("),
    ("no capture", nothing, [FADELINK, "dissect", "{tmp}/run.pcap"], 1, "run.pcap: No such file or directory (os error 2); check the name"),
    ("wrong capture", data_exists, [FADELINK, "dissect", "{tmp}/data"], 1, "data: neither pcap nor pcapng"),
    ("wave cannot be written", nothing, [SIM, "--virtual", "--wave", "{tmp}/none/run.fst"], 1, "run.fst: No such file or directory"),
    ("capture cannot be written", nothing, [SIM, "--virtual", "--pcap", "{tmp}/none/run.pcap"], 1, "run.pcap: No such file or directory"),
    ("argument misspelt", nothing, [*RECEIVE, "--packet", 5], 2, "unexpected argument '--packet' found; a similar argument exists: '--packets'; see `fadelink receive --help`"),
    ("argument missing", nothing, [FADELINK, "receive"], 2, "the following required arguments were not provided: --iface <NAME> --feb <MAC>; see `fadelink receive --help`"),
    ("unknown sink", nothing, [*RECEIVE, "--sink", "tape:x"], 2, "sink `tape`: expected file:PATH"),
]  # fmt: skip


@pytest.mark.parametrize("make, words, expected_status, message", [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_say_what_happened_and_what_to_do(bench, make, words, expected_status, message):
    bench.as_user, bench.copies, bench.mounted = [], {}, None
    try:
        make(bench)
        words = [bench.copies.get(word, word) for word in words]
        words = [word.replace("{tmp}", str(bench.tmp)) if isinstance(word, str) else word for word in words]
        status, _, err = bench.start(bench.pc_ns, *bench.as_user, *words).finish()
    finally:
        bench.end_processes()
        if bench.mounted:
            sh("umount", bench.mounted)
    lines = [line for line in err.splitlines() if message in line]
    assert status == expected_status and len(lines) == 1, err
    assert lines[0].startswith((f"{FADELINK.name}: ", f"{SIM.name}: ")), err
    if make in (data_exists, stream_to_file_that_exists):
        assert (bench.tmp / "data").read_bytes() == bytes(8), "what was there before is still there"


def test_a_file_is_replaced_if_that_is_asked_for(bench):
    data_exists(bench)
    out = bench.tmp / "data"
    bench.sim("--words", 2048)
    status, _, err = bench.receive("--out", out, "--sink", f"file:{out}2", "--overwrite", "--packets", 2).finish()
    assert status == 0, err
    assert out.read_bytes() == Path(f"{out}2").read_bytes() and out.stat().st_size == 2048 * 8
