"""Nothing is called complete that is not: what others do to a board, its network and its sinks while it is received."""

import json
import signal
import socket
import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from support import udp_software_board
from support.netns import BOARD, FEBS, PC, report, wait_for
from support.paths import FADELINK
from support.resets import OTHER, send_reset
from support.udp_software_board import UdpBoard, datagram

UDP_PORT, TCP_PORT, STREAM_PORT = 10000, 10000, 49152
ENABLE, PEER_IP, PEER_PORT, RUN, DATAGRAMS = "0x80000001", "0x80000002", "0x80000003", "0x80000006", "0x80000100"


def reasons(stream):
    return [reason["reason"] for reason in stream["reasons"]]


class Stream:
    """A stream of a UDP/IP stack that runs, is received into a file, and is slow enough to be spoiled meanwhile."""

    def __init__(self, net, *options, frames=100):
        self.net, self.out = net, net.tmp / "{stream}.dat"
        self.sim = net.sim("--protocol", "udp", "--stopped", "--phy", "gmii", "--payload", 512, *options)
        self.process = net.fadelink("receive", "--udp", UDP_PORT, "--board", BOARD, "--json", "--out", self.out)
        # Answers of its slow control are frames, too.
        self.file = net.tmp / f"{BOARD}-{STREAM_PORT}.dat"
        wait_for(self.file.exists)
        net.wait_for_frames(frames)

    def calls_complete(self):
        """What the description of the file says."""
        return json.loads(self.file.with_suffix(".dat.json").read_text())["complete"]

    def register(self, *words):
        status, out, err = self.net.run("register", "--board", BOARD, *words, "--json")
        assert status == 0, err
        return json.loads(out)["value"]

    def forge(self, *payloads):
        """Datagrams in the board's name."""
        raw = self.net.raw(self.net.board_ns, "feb0")
        mac = self.net.run_in(self.net.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
        for payload in payloads:
            frame = Ether(src=FEBS[0], dst=mac) / IP(src=BOARD, dst=PC) / UDP(sport=STREAM_PORT, dport=UDP_PORT) / payload
            raw.send(bytes(frame))

    def end(self, how=signal.SIGINT):
        if how:
            self.process.signal(how)
        code, found = report(self.process.finish())
        return code, found["streams"][0], found


@pytest.fixture
def stream(net):
    return Stream(net)


def test_a_stream_that_was_asked_to_end_is_complete(stream):
    code, found, all_of_it = stream.end()
    assert code == 0 and found["complete"] and found["verdict"] == all_of_it["verdict"] == "complete" and found["reasons"] == []
    assert stream.file.stat().st_size == found["bytes"] > 0 and stream.calls_complete()


class SilentBoard(UdpBoard):
    """The slow control of a board whose source gives nothing; its ends come, or are lost."""

    def __init__(self, net, ends, port=STREAM_PORT):
        super().__init__(net, BOARD, port)
        self.registers |= {udp_software_board.RUN: 7, udp_software_board.LAST: 99}
        self.ends = ends

    def stop(self):
        self.delivers = bool(self.ends)
        if self.ends == "other":
            self.send(0, [0, 1], ahead=1)
            self.send(1, ahead=1, end=True)
            self.delivers = False
        self.end()
        self.is_silent = self.ends == "alone"


@pytest.mark.parametrize("ends", ["come", None])
def test_a_board_that_was_stopped_before_it_sent_anything(net, ends):
    """Its registers tell that nothing was sent: a complete run of 0 words, also where no frame of it came at all."""
    SilentBoard(net, ends)
    code, found = report(net.run("receive", "--udp", UDP_PORT, "--board", BOARD, "--json", "--duration", 0.001, "--out", net.tmp / "{stream}.dat"))
    (stream,) = found["streams"]
    assert (code, stream["verdict"], stream["words"], stream["datagrams"]) == (0, "complete", 0, 0), found
    assert [path.stat().st_size for path in net.tmp.glob("*.dat")] == [0]


@pytest.mark.parametrize("accept,verdict", [([], "end_not_confirmed"), (["--end", "told"], "complete"), (["--end", "silence"], "complete")])
def test_who_takes_an_end_that_is_told_for_the_end_needs_no_answer(net, accept, verdict):
    """The board is switched off behind its end."""
    SilentBoard(net, "alone")
    code, found = report(net.run("receive", "--udp", UDP_PORT, "--board", BOARD, "--json", "--duration", 0.001, *accept))
    (stream,) = found["streams"]
    assert (code, stream["verdict"]) == (0 if verdict == "complete" else 3, verdict), found


@pytest.mark.parametrize("accept", [[], ["--end", "told"], ["--end", "silence"]])
def test_another_run_is_not_the_one_that_was_asked_for(net, accept):
    """The board says that it has sent nothing of ours, and sends another one: whole, but who has begun it?"""
    SilentBoard(net, "other")
    code, found = report(net.run("receive", "--udp", UDP_PORT, "--board", BOARD, "--json", "--duration", 0.001, *accept))
    texts = [reason["text"] for reason in found["reasons"] if reason["reason"] == "board"]
    assert code == 3 and any("has sent nothing of the run that it was asked for" in text for text in texts), found


def test_a_stream_that_another_program_stops_is_not(stream):
    stream.register(ENABLE, 0)
    wait_for(lambda: stream.register(RUN) == 1)
    code, found, _ = stream.end()
    assert not stream.calls_complete()
    assert code == 3 and found["verdict"] == "incomplete" and "board" in reasons(found), found
    assert "stopped by another program" in found["reasons"][0]["text"]


def test_a_stream_that_is_sent_elsewhere_is_not(stream):
    stream.register(ENABLE, 0)
    stream.register(PEER_PORT, UDP_PORT + 1)
    stream.register(ENABLE, 1)
    code, found, _ = stream.end()
    assert code == 3 and "board" in reasons(found), found
    # Which of the two the receiver sees is a matter of time.
    told = (f"told to send to {PC}:{UDP_PORT + 1} instead", "stopped by another program")
    assert any(text in found["reasons"][0]["text"] for text in told), found


@pytest.mark.parametrize("counter", [0, 50, 1_000_000])
def test_an_end_that_the_board_did_not_send_ends_nothing(stream, counter):
    stream.forge(datagram(counter, end=True))
    begin = stream.net.frames()
    wait_for(lambda: stream.net.frames() > begin + 200)
    code, found, _ = stream.end()
    # The board's own end tells another number: somebody else has sent one of the two.
    assert code == 3 and reasons(found) == ["board"], found
    assert found["datagrams"] == found["counts"]["received"] and f"tells {counter}" in found["reasons"][0]["text"]


def test_words_that_the_board_did_not_send_are_no_duplicates(net):
    """The next numbers come from elsewhere first; then the board's own, which is slow."""
    stream = Stream(net, "--gap", 6000, frames=3)
    first = stream.register(DATAGRAMS) + 10
    stream.forge(*(datagram(counter, [0xBAD] * 63) for counter in range(first, first + 3)))
    wait_for(lambda: stream.register(DATAGRAMS) > first + 4)
    code, found, _ = stream.end()
    assert code == 3 and reasons(found) == ["contradictions"] and found["counts"]["contradictions"] == 3, found
    assert not stream.calls_complete()


def test_the_board_is_stopped_behind_a_slow_link(net):
    """Its answers take long, and it is asked about the end of its run meanwhile: by no more questions than it answers."""
    stream = Stream(net, "--link", "delay=300us", frames=20)
    stream.forge(datagram(1_000_000, end=True))
    before = stream.net.frames()
    wait_for(lambda: stream.net.frames() > before + 400)
    code, found, _ = stream.end()
    assert code == 3 and reasons(found) == ["board"] and found["ended"], found
    assert stream.register(ENABLE) == 0


def test_numbers_that_jump_ahead_lose_what_is_between(stream):
    stream.forge(*(datagram(counter, [7]) for counter in range(1_000_000, 1_000_100)))
    begin = stream.net.frames()
    wait_for(lambda: stream.net.frames() > begin + 100)
    code, found, _ = stream.end()
    assert code == 3 and "missing" in reasons(found) and "foreign" in reasons(found), found


def test_more_runs_than_a_number_has_bits(net):
    """Each run is a stream with a file of its own, also where its number comes again."""
    net.sim("--protocol", "udp", "--stopped", "--phy", "gmii", "--payload", 512)
    listener = net.fadelink("receive", "--udp", UDP_PORT, "--json", "--out", net.tmp / "{stream}.dat", "--end", "told", "--streams", 260)
    sender = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    net.run_in(net.board_ns, "ip", "addr", "add", "10.9.0.77/24", "dev", "feb0")
    sender.bind(("10.9.0.77", STREAM_PORT))
    listens = f":{UDP_PORT:04X} "
    wait_for(lambda: listens in net.run_in(net.pc_ns, "cat", "/proc/net/udp"))
    for run in range(260):
        for counter in range(3):
            sender.sendto(datagram(counter, [run, counter], run=run % 256), (PC, UDP_PORT))
        sender.sendto(datagram(3, run=run % 256, end=True), (PC, UDP_PORT))
        path = net.tmp / (f"10.9.0.77-{STREAM_PORT}" + (f"-{run + 1}" if run else "") + ".dat")
        wait_for(lambda path=path: path.exists() and path.stat().st_size == 48)
    code, found = report(listener.finish())
    assert code == 0 and len(found["streams"]) == 260 and all(stream["complete"] for stream in found["streams"]), found["verdict"]


def test_an_end_that_nobody_asked_for_is_not_confirmed(net):
    """Without slow control nobody knows who has sent it."""
    process = net.fadelink("receive", "--udp", UDP_PORT, "--json", "--streams", 1)
    board = net.sim("--protocol", "udp", "--stopped", "--phy", "gmii", "--words", 20_000)
    for name, value in ((PEER_IP, "0x0a090001"), (PEER_PORT, UDP_PORT), (ENABLE, 1)):
        assert net.run("register", "--board", BOARD, name, value)[0] == 0
    code, found = report(process.finish())
    assert code == 3 and found["verdict"] == found["streams"][0]["verdict"] == "end_not_confirmed"
    assert found["streams"][0]["words"] == 20_000
    net.end_sim(board)


@pytest.mark.parametrize("who", ["the board", "another computer"])
def test_an_end_of_tcp_that_nobody_asked_for_is_not_confirmed(net, who):
    """The board closes by itself; a program on another computer sends words and closes."""
    out = net.tmp / "{stream}.dat"
    process = net.fadelink("receive", "--tcp", TCP_PORT, "--json", "--streams", 1, "--out", out, "--verify", "counter")
    if who == "the board":
        net.sim("--protocol", "tcp", "--words", 1000)
    else:
        net.run_in(net.board_ns, "ip", "addr", "add", "10.9.0.77/24", "dev", "feb0")
        made = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        wait_for(lambda: made.connect_ex((PC, TCP_PORT)) == 0)
        made.sendall(struct.pack("<1000Q", *range(1000)))
        made.close()
    code, found = report(process.finish())
    (stream,) = found["streams"]
    assert (code, stream["verdict"], stream["words"], stream["wrong_words"]) == (3, "end_not_confirmed", 1000, 0), found
    (described,) = net.tmp.glob("*.dat.json")
    assert not json.loads(described.read_text())["complete"]


def test_a_connection_without_data_is_no_stream(net):
    """A scan of ports, before the board connects, while it sends, and one that stays."""
    out = net.tmp / "{stream}.dat"
    process = net.fadelink("receive", "--tcp", TCP_PORT, "--json", "--streams", 1, "--out", out, "--verify", "counter", "--end", "told")

    net.run_in(net.board_ns, "ip", "addr", "add", "10.9.0.77/24", "dev", "feb0")

    def scan():
        return net.in_namespace(net.board_ns, lambda: socket.create_connection((PC, TCP_PORT), timeout=5))

    def is_there():
        try:
            scan().close()
            return True
        except OSError:
            return False

    wait_for(is_there)
    stays = scan()
    net.sim("--protocol", "tcp", "--words", 30_000)
    code, found = report(process.finish())
    assert code == 0 and [stream["words"] for stream in found["streams"]] == [30_000], found
    assert found["empty_connections"] >= 1 and len(list(net.tmp.glob("*.dat"))) == 1
    stays.close()


class Client:
    """A program in the place of a board with the TCP sender, which has connected; the receiver is then asked for the end."""

    def __init__(self, net):
        self.net = net
        words = ("receive", "--tcp", TCP_PORT, "--json", "--streams", 1, "--verify", "counter", "--out", net.tmp / "{stream}.dat")
        self.process = net.fadelink(*words)
        self.socket = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        net.run_in(net.board_ns, "ip", "addr", "add", "10.9.0.77/24", "dev", "feb0")
        wait_for(lambda: self.socket.connect_ex((PC, TCP_PORT)) == 0)

    def is_asked(self):
        """The receiver is interrupted, and its FIN has come."""
        self.process.signal(signal.SIGINT)
        assert self.socket.recv(1) == b""

    def end(self):
        self.socket.close()
        return report(self.process.finish())


@pytest.mark.parametrize("words", [0, 1000])
def test_a_board_that_was_silent_until_its_end(net, words):
    """What it sends behind the FIN of the receiver is data, however soon it closes then; without any it is not a stream."""
    client = Client(net)
    client.is_asked()
    client.socket.sendall(struct.pack(f"<{words}Q", *range(words)))
    code, found = client.end()
    if words:
        (stream,) = found["streams"]
        assert (code, stream["verdict"], stream["words"], stream["wrong_words"]) == (0, "complete", words, 0), found
    else:
        assert code == 3 and found["streams"] == [] and found["missing_streams"] == 1 and not list(net.tmp.glob("*.dat*")), found


def test_urgent_data_is_data(net):
    """TCP numbers it as all other, so it is in the stream where it was sent."""
    client = Client(net)
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.socket.sendall(struct.pack("<1000Q", *range(1000)))
    for byte in struct.pack("<Q", 1000):
        client.socket.send(bytes([byte]), socket.MSG_OOB)
    client.socket.sendall(struct.pack("<1000Q", *range(1001, 2001)))
    client.is_asked()
    code, found = client.end()
    (stream,) = found["streams"]
    assert (code, stream["verdict"], stream["words"], stream["wrong_words"]) == (0, "complete", 2001, 0), found


def test_a_stream_behind_a_broken_one_of_its_board_is_not_complete(net):
    """The board may go on in the middle of its data; that of another board does not."""
    for number in (77, 78):
        net.run_in(net.board_ns, "ip", "addr", "add", f"10.9.0.{number}/24", "dev", "feb0")
    process = net.fadelink("receive", "--tcp", TCP_PORT, "--json", "--streams", 3, "--out", net.tmp / "{stream}.dat", "--end", "told")

    def send(number, port, how):
        made = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        made.bind((f"10.9.0.{number}", port))
        wait_for(lambda: made.connect_ex((PC, TCP_PORT)) == 0)
        made.sendall(bytes(800))
        data = net.tmp / f"10.9.0.{number}-{port}.dat"
        wait_for(lambda: data.exists() and data.stat().st_size == 800)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", how == "reset", 0))
        made.close()
        wait_for(data.with_suffix(".dat.json").exists)

    send(77, 40000, "reset")
    send(77, 40001, "close")
    send(78, 40000, "close")
    code, found = report(process.finish())
    assert code == 3 and [reasons(stream) for stream in found["streams"]] == [["error"], ["error"], []], found
    assert "may begin in the middle" in found["streams"][1]["error"]
    described = [json.loads((net.tmp / f"10.9.0.{name}.dat.json").read_text())["complete"] for name in ("77-40000", "77-40001", "78-40000")]
    assert described == [False, False, True]


class Fade:
    """A board with FADE that sends slowly, so that its next packet is known, and is received into a file."""

    def __init__(self, net, protocol, *options):
        self.net, self.out, self.packet_bytes = net, net.tmp / "data", 8192 if protocol == "fade10g" else 1024
        self.sim = net.sim("--protocol", protocol, "--phy", "gmii", "--gap", 1000 if protocol == "fade10g" else 400)
        self.process = net.receive("--out", self.out, "--verify", "counter", *options)
        pc = net.run_in(net.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
        self.head = bytes.fromhex((pc + FEBS[0]).replace(":", "")) + b"\xfa\xde\x01\0\xa5"
        wait_for(lambda: self.packets() > 2)

    def packets(self):
        """Packets that were recorded."""
        return self.out.stat().st_size // self.packet_bytes if self.out.exists() else 0

    def forge(self, packets, payload, last=None):
        """Data frames of FADE-10G in the board's name, with these numbers behind what was recorded; `last`: with so many words."""
        payload = (payload * 8192)[: 8192 if last is None else 8184] + (b"" if last is None else last.to_bytes(8, "little"))
        with self.net.raw(self.net.board_ns, "feb0") as raw:
            before = self.packets()
            for packet in packets:
                kind = b"\xa5" if last is None else b"\xa6"
                raw.send(self.head + kind + struct.pack(">HIIHHQ", 0, before + packet, 0, 0, 0, 0) + payload)
        return before

    def end(self):
        self.process.signal(signal.SIGINT)
        code, found = report(self.process.finish())
        return code, found["febs"][0]


def test_an_end_of_fade_that_nobody_asked_for_ends_nothing(net):
    fade = Fade(net, "fade10g")
    before = fade.forge(range(8), b"x", last=5)
    wait_for(lambda: fade.packets() > before + 4)
    code, found = fade.end()
    assert code == 3 and reasons(found) == ["foreign"] and found["wrong_words"] == 0 and found["counters"]["protocol_errors"] == 8, found


def test_packets_of_another_sender_are_no_duplicates(net):
    """The next packets come from elsewhere first; the board's own contradict them."""
    fade = Fade(net, "fade10g")
    before = fade.forge(range(2, 6), b"x")
    wait_for(lambda: fade.packets() > before + 8)
    code, found = fade.end()
    assert code == 3 and "contradictions" in reasons(found) and found["counters"]["contradictions"] >= 3, found
    assert not json.loads((net.tmp / "data.json").read_text())["complete"]


def test_a_board_of_fade1_that_loses_its_power_is_not_complete(net):
    """It is silent, as one that has sent everything."""
    fade = Fade(net, "fade1")
    fade.sim.popen.kill()
    fade.sim.finish()
    code, found = fade.end()
    assert code == 3 and found["verdict"] == "end_not_confirmed" and reasons(found) == ["end_not_confirmed"], found
    assert found["wrong_words"] == 0 and not json.loads((net.tmp / "data.json").read_text())["complete"]


def test_a_board_of_fade1_that_was_restarted_says_so(net):
    fade = Fade(net, "fade1")
    fade.sim.popen.kill()
    fade.sim.finish()
    net.sim("--protocol", "fade1", "--phy", "gmii")
    code, found = fade.end()
    assert code == 3 and reasons(found) == ["board"] and "switched off" in found["reasons"][0]["text"], found
    assert not json.loads((net.tmp / "data.json").read_text())["complete"]


def test_a_board_of_fade10g_that_was_restarted_says_so(net):
    """It answers STOP, and sends no last packet."""
    fade = Fade(net, "fade10g")
    fade.sim.popen.kill()
    fade.sim.finish()
    net.sim("--phy", "gmii")
    code, found = fade.end()
    assert code == 3 and reasons(found) == ["board"] and "switched off" in found["reasons"][0]["text"], found
    assert found["board_resets"] is None and not json.loads((net.tmp / "data.json").read_text())["complete"]


@pytest.mark.parametrize("protocol,accept", [("fade10g", []), ("fade1", []), ("fade1", ["--end", "silence"])])
def test_a_reset_from_any_computer_is_no_end(net, protocol, accept):
    """The board tells who has sent it: to its receiver, and to everybody who looks for boards."""
    fade = Fade(net, protocol, *accept)
    send_reset(net, protocol)
    code, found = fade.end()
    assert code == 3 and reasons(found) == ["board"], found
    assert f"RESET was sent to the board by {OTHER}" in found["reasons"][0]["text"], found
    assert found["board_resets"] == {"count": 1, "by": OTHER} and found["error"] is None, found
    # The receiver ends with RESETs of its own, as for any transmission that is not complete.
    pc = net.run_in(net.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
    status, out, err = net.run("discover", "--iface", "eth0", "--json", "--feb", FEBS[0])
    board = json.loads(out.splitlines()[0])
    count = board["identity"]["resets"] if protocol == "fade10g" else board["identity"]["resets"]["count"]
    assert status == 0 and board["reset_by"] == pc and count > 1, (out, err)


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_boards_that_do_not_count_resets_are_received_as_before(net, protocol):
    out = net.tmp / "data"
    net.start(net.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--protocol", protocol, "--quirk", "no-reset-count")
    code, found = report(net.receive("--out", out, "--verify", "counter", "--packets", 100).finish())
    feb = found["febs"][0]
    assert code == 0 and feb["verdict"] == "complete" and feb["verified"] and feb["board_resets"] is None, found
    status, told, err = net.run("discover", "--iface", "eth0", "--json", "--feb", FEBS[0])
    assert status == 0 and json.loads(told.splitlines()[0])["identity"]["resets"] is None, (told, err)


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_a_run_that_nobody_disturbs_is_complete(net, protocol):
    code, found = Fade(net, protocol).end()
    assert code == 0 and found["verdict"] == "complete" and found["reasons"] == [] and found["verified"], found
    assert found["board_resets"] == {"count": 0, "by": None}, found
