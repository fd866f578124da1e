"""The TCP sender against the kernel's TCP: every word arrives, whatever the link and the receiver do."""

import json
import signal
import socket
import struct

import numpy
import pytest
from support.netns import BOARD, FEBS, PATIENCE, PC, add_tap, sh, wait_for

PORT = 10000
WORDS = 30000


def boards(net, *options, words=WORDS):
    return net.sim("--protocol", "tcp", "--words", words, *options)


def receive(net, *options):
    return net.fadelink("receive", "--tcp", PORT, "--json", "--verify", "counter", *options)


def report(process):
    status, out, err = process.finish()
    assert out, err
    return status, json.loads(out), err


def received(net, *options, streams=1):
    """Receives whole streams, to the end of their sources, and returns the report."""
    status, found, err = report(receive(net, "--streams", streams, "--end", "told", *options))
    assert status == 0 and found["complete"], (found, err)
    return found


class Server:
    """A plain socket server in a thread: takes one connection after another, reads as it is told, checks words."""

    def __init__(self, net, receive_buffer=0, port=PORT):
        def make():
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if receive_buffer:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            listener.bind((PC, port))
            listener.listen(8)
            listener.settimeout(PATIENCE)
            return listener

        self.listener = net.in_namespace(net.pc_ns, make)

    def accept(self):
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE)
        return connection


def read_all(connection, first=0):
    """Reads to the end and checks the counter: the number of words."""
    data = bytearray()
    while block := connection.recv(1 << 20):
        data += block
    assert len(data) % 8 == 0
    words = numpy.frombuffer(data, "<u8")
    assert (words == numpy.arange(first, first + len(words), dtype="u8")).all()
    return len(words)


def connections(net):
    """What `ss` says of the computer's connections that are not over, a line each."""
    return [line for line in net.run_in(net.pc_ns, "ss", "-tinHO", "state", "connected", "exclude", "time-wait").splitlines() if line]


def wait_for_close(net):
    """Both sides have closed, and have confirmed it."""
    wait_for(lambda: not connections(net))


def wait_for_data(net):
    wait_for(lambda: any("bytes_received" in line for line in connections(net)))


def test_a_stream_arrives(net):
    sim = boards(net)
    found = received(net)
    assert found["streams"][0]["words"] == WORDS and found["streams"][0]["verified"]
    wait_for_close(net)
    board = net.end_sim(sim)["boards"][0]
    assert board["sent"] > 0 and board["retransmitted"] == 0 and board["connections"] == 0


def test_over_a_tap(net):
    add_tap(net)
    net.sim("--protocol", "tcp", "--words", WORDS, iface="fade0")
    words = net.fadelink_words("receive", "--tcp", PORT, "--json", "--verify", "counter", "--streams", 1, "--end", "told")
    status, found, err = report(net.start(net.board_ns, *words))
    assert status == 0 and found["streams"][0]["words"] == WORDS, (found, err)


def test_boards_end_without_a_receiver(net):
    """What nobody receives does not hold the simulation up."""
    sim = boards(net, words=0)
    received(net, "--packets", 20)
    wait_for_close(net)
    assert net.end_sim(sim)["boards"][0]["connections"] == 0


@pytest.mark.parametrize("link", ["loss=0", "loss=0.01"])
@pytest.mark.parametrize("block", [1, 100, 5000])
def test_pushed_blocks_arrive(net, block, link):
    sim = boards(net, "--mtu", 9000, "--block", block, "--push", "--link", link, "--rtt", 20, words=5000)
    assert received(net)["streams"][0]["words"] == 5000
    wait_for_close(net)
    assert net.end_sim(sim)["boards"][0]["sent"] >= 5000 / min(block, 1120)


@pytest.mark.parametrize("mark", [0, 20000])
def test_the_kernel_agrees_to_marks(net, tmp_path, mark):
    """RFC 3168, as Linux understands it: it counts what comes marked, tells the board, and hears that the board has slowed down."""
    pcap = tmp_path / "run.pcap"
    # What the board's link holds is marked from so many bytes on.
    sim = boards(net, "--ecn", "--pcap", pcap, "--up", f"rate=100,queue=1000000,mark={mark}")
    assert received(net)["streams"][0]["words"] == WORDS
    names, values = (line.split() for line in net.run_in(net.pc_ns, "cat", "/proc/net/netstat").splitlines() if line.startswith("IpExt:"))
    counts = dict(zip(names[1:], map(int, values[1:])))
    board = net.end_sim(sim)["boards"][0]
    assert board["retransmitted"] == 0 and counts["InECT0Pkts"] > 0
    assert counts["InCEPkts"] == board["up"]["marked"]
    fields = ["-T", "fields", "-e", "ip.src", "-e", "tcp.flags.ece", "-e", "tcp.flags.cwr"]
    lines = [line.split("\t") for line in sh("tshark", "-r", pcap, *fields, "tcp.flags.syn == 0 && tcp.flags.reset == 0").splitlines()]
    told = sum(line[0] == PC and line[1] == "1" for line in lines)
    heard = sum(line[0] == BOARD and line[2] == "1" for line in lines)
    assert (board["up"]["marked"] > 0) == (told > 0) == (heard > 0) == (mark > 0)


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize("link", ["loss=0.001", "loss=0.01", "loss=0.05", "reorder=0.1,duplicate=0.1", "corrupt=0.02"])
def test_every_word_arrives_over_a_bad_link(net, phy, mtu, link):
    sim = boards(net, "--phy", phy, "--mtu", mtu, "--link", link, "--rtt", 20)
    found = received(net)
    assert found["streams"][0]["words"] == WORDS
    board = net.end_sim(sim)["boards"][0]
    lost = sum(board[way][what] for way in ("up", "down") for what in ("lost", "corrupted"))
    assert lost == 0 or board["retransmitted"] + board["down"]["lost"] + board["down"]["corrupted"] > 0


@pytest.mark.parametrize("link", ["loss=0.03", "loss=0.1", "reorder=0.1,duplicate=0.1"])
@pytest.mark.parametrize("block", [0, 50])
def test_the_kernel_tells_what_it_misses(net, tmp_path, link, block):
    """RFC 2018, as Linux understands it."""
    pcap = tmp_path / "run.pcap"
    pushed = ["--block", block, "--push"] if block else []
    sim = boards(net, "--sack", *pushed, "--pcap", pcap, "--up", link, "--rtt", 20)
    assert received(net)["streams"][0]["words"] == WORDS
    board = net.end_sim(sim)["boards"][0]
    blocks = sh("tshark", "-r", pcap, "-T", "fields", "-e", "tcp.options.sack_le", f"ip.src == {PC} && tcp.options.sack.count > 0").split()
    assert blocks and board["retransmitted"] > 0


def test_four_streams_arrive(net):
    boards(net, "--streams", 4)
    found = received(net, streams=4)
    assert [stream["words"] for stream in found["streams"]] == [WORDS] * 4
    assert len({stream["peer"] for stream in found["streams"]}) == 4


def test_sixteen_boards_arrive(net):
    boards(net, "--boards", 16, words=1000)
    found = received(net, streams=16)
    assert [stream["words"] for stream in found["streams"]] == [1000] * 16


@pytest.mark.parametrize("mtu", [1500, 9000])
def test_the_capture_is_clean(net, tmp_path, mtu):
    """tshark finds no malformed segment and no wrong checksum."""
    pcap = tmp_path / "run.pcap"
    sim = boards(net, "--mtu", mtu, "--pcap", pcap, "--link", "loss=0.01", words=5000)
    received(net)
    net.end_sim(sim)
    checks = [word for name in ("ip", "tcp") for word in ("-o", f"{name}.check_checksum:TRUE")]
    fields = ["-T", "fields", "-e", "ip.src", "-e", "ip.checksum.status", "-e", "tcp.checksum.status", "-e", "tcp.len"]
    lines = [line.split("\t") for line in sh("tshark", "-r", pcap, *checks, *fields, "tcp").splitlines()]
    assert len(lines) > 10 and all(line[1:3] == ["1", "1"] for line in lines), "1 means good"
    assert max(int(line[3]) for line in lines) <= mtu - 40
    expert = sh("tshark", "-r", pcap, *checks, "-q", "-z", "expert")
    assert "Malformed" not in expert and "hecksum" not in expert and "Errors" not in expert, expert


def test_a_receiver_that_stops_reading_loses_nothing(net):
    """Zero window for a while: the board asks now and then, and goes on."""
    server = Server(net, receive_buffer=16384)
    sim = boards(net)
    connection = server.accept()
    wait_for(lambda: "TcpExtTCPToZeroWindowAdv" in net.run_in(net.pc_ns, "nstat", "-a"))
    # What comes now is beyond the window.
    net.wait_for_frames(2)
    assert read_all(connection) == WORDS
    connection.close()
    board = net.end_sim(sim)["boards"][0]
    assert board["probes"] > 0, "the window was closed"


def test_a_tiny_receive_buffer(net):
    server = Server(net, receive_buffer=2048)
    boards(net, words=6000)
    connection = server.accept()
    assert read_all(connection) == 6000


def test_a_killed_receiver_and_the_next_one(net):
    """A connection that was reset goes on in the next one with the first word that was not confirmed."""
    server = Server(net)
    sim = boards(net, words=60000)
    connection = server.accept()
    head = b""
    while len(head) < 8 * 1000:
        head += connection.recv(8 * 1000 - len(head))
    # Reset, as the kernel does for a killed process with unread data.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    connection = server.accept()
    first = b""
    while len(first) < 8:
        first += connection.recv(8 - len(first))
    (number,) = struct.unpack("<Q", first)
    assert number >= 1000
    assert read_all(connection, number + 1) == 60000 - number - 1
    connection.close()
    assert net.end_sim(sim)["boards"][0]["resets"] >= 1


def test_a_refused_connection_is_tried_again(net):
    sim = boards(net)

    def refusals():
        names, values = [line.split() for line in net.run_in(net.pc_ns, "cat", "/proc/net/snmp").splitlines() if line.startswith("Tcp:")]
        return int(values[names.index("OutRsts")])

    wait_for(lambda: refusals() > 1)
    found = received(net)
    assert found["streams"][0]["words"] == WORDS
    assert net.end_sim(sim)["boards"][0]["resets"] > 0


def test_stop_from_the_receivers_side(net):
    """--packets and Ctrl-C: the receiver closes its direction, the board sends what it has and closes."""
    boards(net, words=0)
    status, found, err = report(receive(net, "--streams", 1, "--packets", 20))
    assert status == 0 and found["streams"][0]["bytes"] >= 20 * 8192, (found, err)
    process = receive(net)
    assert "waiting" in process.popen.stderr.readline()
    wait_for_data(net)
    process.signal(signal.SIGINT)
    status, found, err = report(process)
    assert status == 0 and found["streams"][0]["words"] > 0, (found, err)


def test_the_data_is_written(net, tmp_path):
    boards(net, "--streams", 2)
    received(net, "--out", tmp_path / "{stream}.bin", streams=2)
    files = sorted(tmp_path.glob("*.bin"))
    assert len(files) == 2
    for file in files:
        assert (numpy.fromfile(file, "<u8") == numpy.arange(WORDS, dtype="u8")).all()


def test_ping_while_data_flows(net):
    process = receive(net)
    sim = boards(net, words=0)
    wait_for_data(net)
    for size in (0, 1, 56, 1472, 8000):
        out = net.run_in(net.pc_ns, "ping", "-c", 3, "-i", 0.2, "-W", 60, "-s", size, "-M", "do", BOARD)
        assert "3 received" in out, out
    process.signal(signal.SIGINT)
    status, found, err = report(process)
    assert status == 0 and found["streams"][0]["verified"], (found, err)
    net.end_sim(sim)


def test_arp_is_answered(net):
    boards(net)
    out = net.run_in(net.pc_ns, "arping", "-c", 3, "-I", "eth0", BOARD)
    assert FEBS[0].upper() in out.upper() and "0 response" not in out


def test_a_gateway_that_is_not_there(net):
    """The board asks for it, sends nothing else, and goes on when it appears."""
    sh("ip", "-n", net.pc_ns, "addr", "add", "10.8.0.1/32", "dev", "lo")
    sh("ip", "-n", net.pc_ns, "link", "set", "lo", "up")
    sim = boards(net, "--peer", "10.8.0.1", "--gateway", "10.9.0.9")
    net.wait_for_frames(3)
    sh("ip", "-n", net.pc_ns, "addr", "add", "10.9.0.9/24", "dev", "eth0")
    found = received(net)
    assert found["streams"][0]["words"] == WORDS
    board = net.end_sim(sim)["boards"][0]
    assert board["path"] == 1


def test_a_receiver_whose_address_changes(net):
    """Another MAC address: the board notices by time-outs, asks again, and goes on."""
    server = Server(net)
    boards(net, words=40000)
    connection = server.accept()
    head = connection.recv(8)
    sh("ip", "-n", net.pc_ns, "link", "set", "eth0", "address", "02:00:00:00:77:77")
    sh("ip", "-n", net.pc_ns, "neigh", "flush", "dev", "eth0")
    while len(head) < 8:
        head += connection.recv(8 - len(head))
    assert read_all(connection, 1) == 39999


@pytest.mark.parametrize("mtu", [1500, 9000])
def test_sequence_numbers_wrap(net, mtu):
    """The buffer of the simulated board is 2^20 bytes: the first number is 2^32 - 2^21."""
    boards(net, "--first-sequence", 2**11 - 1, "--mtu", mtu, words=300_000)
    assert received(net)["streams"][0]["words"] == 300_000


def test_strange_frames_are_dropped_and_counted(net):
    """Other addresses and protocols, fragments, wrong checksums, truncated packets: counted, and the data goes on."""
    process = receive(net)
    sim = boards(net, words=0)
    raw = net.in_namespace(net.pc_ns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
    raw.bind(("eth0", 0))
    me = bytes.fromhex(FEBS[0].replace(":", "")) + bytes.fromhex("02000000bb01")

    def ip(protocol, payload, fragment=0, total=None, destination=BOARD, spoil=0):
        length = 20 + len(payload) if total is None else total
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 1, fragment, 64, protocol, 0, socket.inet_aton(PC), socket.inet_aton(destination))
        value = sum(struct.unpack(">10H", head))
        value = (value & 0xFFFF) + (value >> 16)
        return me + b"\x08\x00" + head[:10] + struct.pack(">H", (0xFFFF ^ value) ^ spoil) + head[12:] + payload

    wait_for_data(net)
    segment = struct.pack(">HHIIHHHH", PORT, 5, 1, 1, 0x5010, 100, 0, 0)
    for _ in range(3):
        raw.send(ip(6, segment))  # checksum
        raw.send(ip(6, segment, spoil=1))  # IP checksum
        raw.send(ip(17, bytes(40)))  # protocol
        raw.send(ip(6, segment, fragment=0x2000))
        raw.send(ip(6, segment, fragment=7))
        raw.send(ip(6, segment, total=200))  # short
        raw.send(ip(6, segment, destination="10.9.0.77"))
        raw.send(me + b"\x86\xdd" + bytes(60))  # IPv6
    net.wait_for_frames(2)
    process.signal(signal.SIGINT)
    status, found, err = report(process)
    assert status == 0 and found["streams"][0]["verified"], (found, err)
    board = net.end_sim(sim)["boards"][0]
    assert board["drop_checksum"] >= 6 and board["drop_protocol"] >= 6 and board["drop_fragment"] == 6
    assert board["drop_short"] == 3 and board["drop_destination"] >= 3


def test_two_receivers_want_one_port(net):
    first = receive(net, "--streams", 1)
    assert "waiting" in first.popen.stderr.readline()
    status, out, err = net.run("receive", "--tcp", PORT)
    assert status == 1 and f"--tcp {PORT}" in err and "in use" in err


@pytest.mark.parametrize(
    "words,name",
    [
        (["--tcp", "0"], "--tcp"),
        (["--tcp", "10000", "--feb", FEBS[0]], "--feb"),
        (["--tcp", "10000", "--sink", "file:/tmp/x"], "--sink"),
        (["--tcp", "10000", "--out", "data.bin"], "--out"),
        (["--streams", "3", "--iface", "eth0", "--feb", FEBS[0]], ": not with --"),
    ],
)
def test_wrong_arguments_are_named(net, words, name):
    status, out, err = net.run("receive", *words)
    assert status == 2 and name in err


def test_wrong_data_is_found(net):
    boards(net, "--random")
    status, found, err = report(receive(net, "--streams", 1))
    assert status == 3 and found["streams"][0]["wrong_words"] > 0 and found["streams"][0]["first_wrong"]["index"] <= 1
