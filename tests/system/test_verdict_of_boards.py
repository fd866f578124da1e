"""Nothing is called complete that is not: boards that are replaced, disturbed at their begin, or stopped by others."""

import contextlib
import json
import os
import signal
import socket
import struct
import threading

import h5py
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from support.lab import Lab, end, fade
from support.netns import BOARD, FEBS, PATIENCE, PC, add_address, received_datagrams, report, sh, wait_for
from support.paths import FADELINK
from support.udp_software_board import datagram

PORT = 10000


def reasons(of):
    return [reason["reason"] for reason in of["reasons"]]


def data_of_fade1(bench, number, packet=0, words=bytes(1024)):
    """A data frame of FADE v1 in the board's name."""
    mac = bench.run_in(bench.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
    addresses = bytes.fromhex((mac + FEBS[0]).replace(":", ""))
    return addresses + b"\xfa\xde\xa5\xa5" + struct.pack(">HHI", number, packet << 10 | 0x2A5, 0xC0000000) + words


@pytest.mark.parametrize("protocol", [None, "fade1"])
def test_a_board_that_was_replaced_does_not_end_the_run(bench, protocol):
    """FADE v1 before the kill, FADE-10G behind it: the length of the data is not that of a last packet."""
    lab = Lab(bench)
    sim = bench.sim("--protocol", "fade1", "--phy", "gmii", "--gap", 400)
    more = f'protocol = "{protocol}"' if protocol else ""
    lab.write('confirm = "durable"\nsinks = ["file:{board}.dat"]\n' + fade("left", more=more))
    file = lab.runs / "run_000001/left.dat"
    for _ in range(20):
        run, before = lab.start(), file.stat().st_size if file.exists() else 0
        wait_for(lambda size=before: file.exists() and file.stat().st_size > size)
        run.signal(signal.SIGKILL)
        run.finish()
        if file.stat().st_size % 8192:
            break
    assert file.stat().st_size % 8192
    sim.signal(signal.SIGKILL)
    sim.finish()
    bench.sim("--gap", 20)
    size = file.stat().st_size
    run = lab.start()
    wait_for(lambda: file.stat().st_size > size or run.popen.poll() is not None)
    status, err = end(run)
    assert status == 3 and "another transmission was recorded behind byte" in err, err
    assert lab.check()[0] == 3
    (board,) = lab.manifest()["boards"]
    assert [one.get("protocol") for one in board["transmissions"]] == ["fade1", "fade10g"]


def test_what_comes_before_the_first_packet_resets_no_board(bench):
    """A frame in the board's name, which another transmission would have, before the slow board has filled its first packet: the
    words that it has taken are recorded."""
    record = bench.tmp / "record"
    bench.sim("--protocol", "fade1", "--phy", "gmii", "--gap", 20000, "--random", "--record", record)
    raw = bench.raw(bench.board_ns, "feb0")
    receive = bench.receive("--out", bench.tmp / "a.dat")
    first = bench.tmp / "record.1.1"
    wait_for(lambda: first.exists() and first.stat().st_size > 0)
    raw.send(data_of_fade1(bench, 5))
    wait_for((bench.tmp / "a.dat").exists)
    wait_for(lambda: (bench.tmp / "a.dat").stat().st_size > 0 or receive.popen.poll() is not None)
    receive.signal(signal.SIGINT)
    status, found = report(receive.finish())
    (feb,) = found["febs"]
    assert status == 3 and reasons(feb) == ["foreign"] and feb["counters"]["begun_again"] == 0, found
    data, taken = (bench.tmp / "a.dat").read_bytes(), first.read_bytes()
    assert taken and data.startswith(taken) and not (bench.tmp / "record.1.2").exists()


def test_a_published_board_that_is_begun_again_may_have_taken_words(bench):
    """Its START has no answer, and its first packet does not come: nobody knows whose the others are."""
    raw = bench.in_namespace(bench.board_ns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0xFADE)))
    raw.bind(("feb0", 0xFADE))
    raw.settimeout(0.02)
    receive = bench.receive("--firmware", "published-v1", "--end", "silence", "--out", bench.tmp / "a.dat")
    start, reset = (b"\xfa\xde" + bytes([0, kind]) for kind in (1, 5))
    seen = []

    def is_reset():
        """RESET behind START; until then another packet than the first comes again and again."""
        try:
            seen.append(raw.recv(2000)[12:16])
        except TimeoutError:
            pass
        if start in seen:
            raw.send(frame)
        return start in seen and reset in seen[seen.index(start) :]

    frame = data_of_fade1(bench, 0, 3)
    wait_for(is_reset)
    # The board itself comes late.
    bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--rate", 1, "--firmware", "published-v1")
    wait_for(lambda: (bench.tmp / "a.dat").stat().st_size > 0)
    receive.signal(signal.SIGINT)
    status, found = report(receive.finish())
    (feb,) = found["febs"]
    assert status == 3 and feb["counters"]["begun_again"] > 0 and "begun_again" in reasons(feb), found


def test_a_stream_that_others_stop_before_the_user_does_is_not_complete(net):
    """A sink is slow, so the end of the stream waits in the kernel when the user asks for it."""
    net.sim("--protocol", "udp", "--stopped", "--phy", "gmii", "--payload", 512)
    pipe = net.tmp / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    sinks = ["--out", pipe, "--sink", f"file:{net.tmp / 'a.dat'}"]
    receive = net.fadelink("receive", "--udp", PORT, "--streams", 1, "--ring", 16, "--board", BOARD, "--json", *sinks)
    net.wait_for_frames(2000)
    register = ["register", "--board", BOARD, "--json"]
    assert net.run(*register, "0x80000001", 0)[0] == 0
    wait_for(lambda: json.loads(net.run(*register, "0x80000006")[1])["value"] == 1)
    receive.signal(signal.SIGINT)
    os.set_blocking(reader, True)

    def read():
        while os.read(reader, 1 << 16):
            pass

    reading = threading.Thread(target=read)
    reading.start()
    status, found = report(receive.finish())
    reading.join()
    os.close(reader)
    (stream,) = found["streams"]
    assert status == 3 and reasons(stream) == ["board"] and "stopped by another program" in stream["reasons"][0]["text"], found


@pytest.mark.parametrize("has_end", [False, True])
def test_datagrams_that_the_kernel_dropped_are_missing(bench, has_end):
    """Behind the last one that came, of a stream whose end nobody tells; an end has their number."""
    add_address(bench)
    sh("ip", "-n", bench.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
    board = bench.in_namespace(bench.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    board.bind((BOARD, 49152))
    out = bench.tmp / "{stream}.dat"
    options = ["--streams", 1] if has_end else ["--end", "silence"]
    receive = bench.fadelink("receive", "--udp", PORT, "--json", "--receive-buffer", 20000, "--out", out, *options)
    file = bench.tmp / f"{BOARD}-49152.dat"

    def send(number, is_end=False):
        words = b"" if is_end else struct.pack("<8Q", *range(number * 8, number * 8 + 8))
        board.sendto(struct.pack(">IHBB", number, len(words) // 8, 3, is_end) + words, (PC, PORT))

    def listens():
        send(0)
        return file.exists()

    wait_for(listens)
    receive.signal(signal.SIGSTOP)
    for number in range(1, 2000):
        send(number)
    receive.signal(signal.SIGCONT)
    if has_end:
        wait_for(lambda: send(2000, True) or receive.popen.poll() is not None)
    else:
        wait_for(lambda: file.stat().st_size > 64)
        receive.signal(signal.SIGINT)
    status, found = report(receive.finish())
    (stream,) = found["streams"]
    assert status == 3 and found["dropped"]["kernel"] > 0, found
    assert "missing" in reasons(stream if has_end else found), found


@pytest.mark.parametrize("by", ["run", "receive"])
def test_data_of_more_connections_than_expected_is_named(bench, by):
    add_address(bench)
    bench.sim("--protocol", "tcp", "--phy", "gmii", "--streams", 2, "--gap", 100)
    if by == "run":
        lab = Lab(bench)
        lab.write(f'[[tcp]]\nname = "cal"\naddress = "{BOARD}"\nport = {PORT}\nsinks = ["file:{{board}}.dat"]\n')
        program, file = lab.start(), lab.runs / "run_000001/cal.dat"
    else:
        file = bench.tmp / "a.dat"
        program = bench.fadelink("receive", "--tcp", PORT, "--streams", 1, "--json", "--out", file)
    messages, text = program.popen.stderr.fileno(), []
    os.set_blocking(messages, False)

    def tells():
        with contextlib.suppress(BlockingIOError):
            text.append(os.read(messages, 4096).decode())
        return "data of one more connection is not recorded" in "".join(text)

    wait_for(tells)
    os.set_blocking(messages, True)
    wait_for(lambda: file.exists() and file.stat().st_size > 0)
    program.signal(signal.SIGINT)
    status, out, err = program.finish()
    group = lab.manifest()["groups"][0] if by == "run" else json.loads(out)
    assert status == 3 and group["unrecorded_connections"] > 0 and reasons(group) == ["foreign"], (group, err)


def test_a_run_is_not_called_complete_before_its_manifest_is(bench):
    """Its disk is full at the end; the data is on another one."""
    lab = Lab(bench)
    bench.sim("--gap", 20)
    lab.runs.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", lab.runs)
    try:
        lab.write(f'sinks = ["file:{bench.tmp}/a.dat"]\n[disk]\nreserve = "1K"\n' + fade("left"))
        run = lab.start()
        wait_for(lambda: (bench.tmp / "a.dat").exists() and (bench.tmp / "a.dat").stat().st_size > 0)
        with open(lab.runs / "full", "wb", buffering=0) as full, pytest.raises(OSError):
            while True:
                full.write(bytes(1024))
        status, err = end(run)
        assert status != 0 and "No space left" in err and "NOT COMPLETE" in err and ": complete" not in err, err
        assert lab.manifest()["state"] != "complete" and bench.run("check", lab.folder(), "--outside")[0] == 3
    finally:
        sh("umount", lab.runs)


def test_what_comes_behind_a_proven_end_is_against_the_whole(bench):
    """The board says that all of its run came, and its files are whole. Then somebody sends in its name, while another board goes on:
    all that is told says the same."""
    lab = Lab(bench)
    add_address(bench)
    options = ["--protocol", "udp", "--stopped", "--phy", "gmii", "--payload", 512]
    bench.sim(*options, "--words", 20000)
    bench.sim(*options, "--ip", "10.9.0.3", "--feb", FEBS[1])
    sinks = 'verify = "counter"\nsinks = ["file:{board}.dat", "hdf5:{board}.h5"]\n'
    lab.write("".join(f'[[udp]]\nname = "{name}"\naddress = "{at}"\nport = {PORT}\n{sinks}' for name, at in [("u", BOARD), ("v", "10.9.0.3")]))
    process = lab.start()
    description = lab.runs / "run_000001/u.dat.json"
    wait_for(lambda: description.exists() and '"complete": true' in description.read_text())
    mac = bench.run_in(bench.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
    forged = datagram(900, [1, 2, 3, 4])
    frame = Ether(src=FEBS[0], dst=mac) / IP(src=BOARD, dst=PC) / UDP(sport=49152, dport=PORT) / forged
    bench.raw(bench.board_ns, "feb0").send(bytes(frame))
    wait_for(lambda: "behind the end of its run" in (lab.folder() / "log.jsonl").read_text())
    status, _ = end(process)
    manifest = lab.manifest()
    (of_the_whole,) = manifest["groups"]
    assert status == 3 and manifest["state"] == "incomplete" and reasons(of_the_whole) == ["foreign"], manifest
    assert of_the_whole["dropped"]["after_end"] == 1, of_the_whole
    assert {board["name"]: board["verdict"] for board in manifest["boards"]} == {"u": "complete", "v": "complete"}, manifest
    for name in "uv":
        assert json.loads((lab.folder() / f"{name}.dat.json").read_text())["complete"]
        with h5py.File(lab.folder() / f"{name}.h5") as file:
            assert file.attrs["complete"] == 1


@pytest.mark.parametrize("accept", ["confirmed", "told", "silence"])
def test_a_description_waits_for_the_end_of_all_where_nobody_proves_an_end(bench, accept):
    """Another computer sends an end in the name of a board, which goes on; a second board keeps the program there."""
    add_address(bench)
    senders = []
    for address in (BOARD, "10.9.0.3"):
        sh("ip", "-n", bench.board_ns, "addr", "add", f"{address}/24", "dev", "feb0")
        senders.append(bench.in_namespace(bench.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
        senders[-1].bind((address, 49152))
    sinks = ["--out", bench.tmp / "{stream}.dat", "--sink", f"hdf5:{bench.tmp / '{stream}.h5'}"]
    receive = bench.fadelink("receive", "--udp", PORT, "--json", "--end", accept, *sinks)
    wait_for(lambda: f":{PORT:04X} " in bench.run_in(bench.pc_ns, "cat", "/proc/net/udp"))
    for counter in range(10):
        for sender in senders:
            sender.sendto(datagram(counter, [counter]), (PC, PORT))
    first, second = (bench.tmp / f"{address}-49152.dat" for address in (BOARD, "10.9.0.3"))
    senders[0].sendto(datagram(10, end=True), (PC, PORT))
    # The receiver has seen the end when it writes what came behind it.
    senders[1].sendto(datagram(10, [10]), (PC, PORT))
    wait_for(lambda: first.exists() and first.stat().st_size == 80 and second.stat().st_size == 88)
    senders[0].sendto(datagram(10, [10]), (PC, PORT))
    senders[1].sendto(datagram(11, end=True), (PC, PORT))
    # Counted when they are read.
    wait_for(lambda: received_datagrams(bench) == 24)
    receive.signal(signal.SIGINT)
    status, found = report(receive.finish())
    verdicts = [stream["verdict"] for stream in found["streams"]]
    assert status == 3 and verdicts == ["incomplete", "end_not_confirmed" if accept == "confirmed" else "complete"], found
    assert reasons(found["streams"][0]) == ["foreign"], found
    for path, verdict in zip((first, second), verdicts):
        complete = verdict == "complete"
        assert json.loads(path.with_suffix(".dat.json").read_text())["complete"] == complete
        with h5py.File(path.with_suffix(".h5")) as file:
            assert file.attrs["complete"] == complete


class Sender:
    """A TCP sender whose segments are made by hand, of a computer that nobody else has."""

    ADDRESS = "10.9.0.77"

    def __init__(self, bench):
        self.raw = bench.in_namespace(bench.board_ns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)))
        self.raw.bind(("feb0", 0x0800))
        self.raw.settimeout(PATIENCE)
        here, there = (
            bench.run_in(ns, "cat", f"/sys/class/net/{iface}/address").strip() for ns, iface in ((bench.board_ns, "feb0"), (bench.pc_ns, "eth0"))
        )
        bench.run_in(bench.pc_ns, "ip", "neighbour", "replace", self.ADDRESS, "lladdr", here, "dev", "eth0")
        self.ethernet, self.sequence = Ether(src=here, dst=there), 1000
        self.send("S")
        self.ack = self.receive("S").seq + 1
        self.sequence += 1
        self.send("A")

    def send(self, flags, data=b"", ack=None):
        ack = ack or getattr(self, "ack", 0)
        segment = TCP(sport=5000, dport=PORT, flags=flags, seq=self.sequence, ack=ack, window=8192)
        self.raw.send(bytes(self.ethernet / IP(src=self.ADDRESS, dst=PC) / segment / data))

    def receive(self, flag):
        """The next segment with this flag."""
        while True:
            frame = Ether(self.raw.recv(4096))
            if TCP in frame and frame[IP].dst == self.ADDRESS and flag in frame[TCP].flags:
                return frame[TCP]


@pytest.mark.parametrize("crosses", [True, False])
def test_an_end_that_crosses_the_question_is_not_the_answer(bench, crosses):
    """Both have sent FIN before they had that of the other end: the sender had not heard that it was asked."""
    add_address(bench)
    process = bench.fadelink("receive", "--tcp", PORT, "--streams", 1, "--out", bench.tmp / "{stream}.dat", "--json")
    out, data = bench.tmp / f"{Sender.ADDRESS}-5000.dat", bytes(800)
    wait_for(lambda: f":{PORT}" in bench.run_in(bench.pc_ns, "ss", "-Hltn"))
    sender = Sender(bench)
    sender.send("PA", data)
    wait_for(lambda: out.exists() and out.stat().st_size == len(data))
    sender.sequence += len(data)
    process.signal(signal.SIGINT)
    question = sender.receive("F")
    sender.send("FA", ack=question.seq + (not crosses))
    status, found = report(process.finish())
    assert found["verdict"] == ("end_not_confirmed" if crosses else "complete") and status == (3 if crosses else 0), found
    sender.send("A", ack=question.seq + 1)
