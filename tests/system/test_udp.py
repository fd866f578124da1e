"""The UDP/IP stack against the kernel's: ping, arping, a plain socket, and the fadelink command, over good and bad links."""

import json
import re
import signal
import socket
import struct
import sys
import time

import pytest
from support.block import rng
from support.files import write_capture
from support.netns import BOARD, FEBS, PATIENCE, PC, add_tap, received_datagrams, report, sh, wait_for
from support.udp_board import dropped_frames

PORT, WORDS = 10000, 20000
ENABLE, COUNTERS = "0x80000001", "0x80000100"


def boards(net, *options, words=WORDS):
    """Boards whose stream waits for the slow control."""
    return net.sim("--protocol", "udp", "--stopped", "--words", words, *options)


def receive(net, *options, board=BOARD):
    return net.fadelink("receive", "--udp", PORT, "--board", board, "--json", "--verify", "counter", *options)


def received(net, *options, status=0):
    """Receives one whole run: the report of its stream, and of all."""
    code, found = report(receive(net, "--streams", 1, *options).finish())
    assert code == status, found
    return found["streams"][0], found


def register(net, *words, board=BOARD):
    status, out, err = net.run("register", "--board", board, *words, "--json")
    assert status == 0, err
    return json.loads(out)["value"]


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
@pytest.mark.parametrize("payload,options", [(8972, []), (1472, ["--checksum"]), (256, [])])
def test_a_stream_arrives(net, phy, payload, options):
    sim = boards(net, "--phy", phy, "--payload", payload, *options)
    stream, found = received(net)
    full = (payload - 8) // 8
    assert stream["words"] == WORDS and stream["verified"] and stream["datagrams"] == -(-WORDS // full)
    assert stream["counts"]["lost"] == 0 and set(found["dropped"].values()) == {0}
    board = net.end_sim(sim)["boards"][0]
    assert board["datagrams"] == stream["datagrams"] and board["drop_mac"] == 0


def test_over_a_tap(net):
    add_tap(net)
    net.sim("--protocol", "udp", "--stopped", "--words", WORDS, iface="fade0")
    words = net.fadelink_words("receive", "--udp", PORT, "--board", BOARD, "--json", "--verify", "counter", "--streams", 1)
    code, found = report(net.start(net.board_ns, *words).finish())
    assert code == 0 and found["streams"][0]["words"] == WORDS


@pytest.mark.parametrize("payload,ring", [(1024, 2048), (8972, 16)])
def test_the_data_is_what_was_sent(net, tmp_path, payload, ring):
    boards(net, "--payload", payload)
    stream, _ = received(net, "--ring", ring, "--out", tmp_path / "{stream}.dat")
    data = (tmp_path / f"{BOARD}-{49152}.dat").read_bytes()
    assert data == b"".join(struct.pack("<Q", n) for n in range(WORDS))


@pytest.mark.parametrize("link", ["loss=0.03", "loss=0.1", "corrupt=0.05"])
def test_loss_is_counted_to_the_datagram(net, link):
    """Lost are all that the link lost or spoilt, but the ends of the run and answers, which are repeated."""
    sim = boards(net, "--payload", 512, "--up", link, "--down", link)
    stream, found = received(net, status=3)
    counts = stream["counts"]
    assert counts["lost"] > 0 and counts["received"] + counts["lost"] == stream["datagrams"] == -(-WORDS // 63)
    assert sum(gap["count"] for gap in stream["gaps"]) == counts["lost"]
    assert stream["wrong_words"] == 0 and not stream["complete"] and not found["complete"], "what came is right, and not whole"
    board = net.end_sim(sim)["boards"][0]
    gone = board["up"]["lost"] + board["fcs_errors"]
    assert 0 <= gone - counts["lost"] <= 30


def test_disorder_and_repetition_lose_nothing(net):
    boards(net, "--payload", 512, "--up", "reorder=0.1,duplicate=0.1")
    stream, _ = received(net)
    counts = stream["counts"]
    assert counts["reordered"] > 0 and counts["duplicates"] > 0 and counts["lost"] == counts["late"] == 0


def test_a_receiver_that_sleeps_loses_and_says_so(net):
    """The socket's buffer is full meanwhile: the kernel's drops are what is missing, and perhaps the ends of the run."""
    boards(net, "--phy", "gmii", "--payload", 1472, words=500_000)
    process = receive(net, "--streams", 1, "--receive-buffer", 100_000)
    net.wait_for_frames(50)
    process.signal(signal.SIGSTOP)
    net.wait_for_frames(500)
    process.signal(signal.SIGCONT)
    code, found = report(process.finish())
    stream = found["streams"][0]
    assert code == 3 and 0 <= found["dropped"]["kernel"] - stream["counts"]["lost"] <= 4 and stream["counts"]["lost"] > 0
    assert stream["wrong_words"] == 0


def test_sources_are_told_apart(net):
    net.sim("--protocol", "udp", "--stopped", "--words", WORDS, "--boards", 3, "--payload", 1472)
    others = [word for n in (3, 4) for word in ("--board", f"10.9.0.{n}")]
    code, found = report(receive(net, *others, "--streams", 3, "--out", net.tmp / "{stream}").finish())
    assert code == 0 and sorted(stream["peer"] for stream in found["streams"]) == [f"10.9.0.{n}:49152" for n in (2, 3, 4)]
    assert all(stream["words"] == WORDS and stream["verified"] for stream in found["streams"])
    # One that ends before the others keeps the reports of its sinks.
    assert [[sink["written"] for sink in stream["sinks"]] for stream in found["streams"]] == [[8 * WORDS]] * 3, found


@pytest.mark.parametrize("how", ["packets", "duration", "interrupt"])
def test_the_board_is_stopped_at_the_end(net, how):
    boards(net, "--payload", 1472, words=0)
    options = {"packets": ["--packets", 20], "duration": ["--duration", 2], "interrupt": []}[how]
    process = receive(net, *options)
    if how == "interrupt":
        net.wait_for_frames()
        process.signal(signal.SIGINT)
    code, found = report(process.finish())
    stream = found["streams"][0]
    assert code == 0 and stream["ended"] and stream["verified"] and stream["words"] >= 20 * 1024 * (how == "packets")
    assert register(net, ENABLE) == 0


def test_boards_are_drained_while_others_are_started(net):
    """One that is not there takes 5 s to be given up for; what the others send meanwhile fits into no buffer."""
    # Slow enough that a receiver which has to wait for a processor does not lose anything.
    boards(net, "--payload", 1472, "--boards", 2, "--user-mhz", 10, words=0)
    process = receive(net, "--board", BOARD, "--board", "10.9.0.3", "--receive-buffer", 20_000, board="10.9.0.99")
    code, found = report(process.finish())
    assert code == 3 and found["failed_boards"] == [
        "board 10.9.0.99: no answer from its slow control in 26 attempts; is it on, and is this its address?"
    ]
    assert {stream["peer"]: stream["complete"] and stream["verified"] for stream in found["streams"]} == dict.fromkeys(
        [f"{BOARD}:49152", "10.9.0.3:49152"], True
    )
    # The kernel doubles it.
    assert sum(stream["bytes"] for stream in found["streams"]) > 2 * 20_000 and found["dropped"]["kernel"] == 0
    assert [register(net, ENABLE, board=address) for address in (BOARD, "10.9.0.3")] == [0, 0]


def test_a_board_that_dies_keeps_no_other_running(net):
    boards(net, "--payload", 1472, "--boards", 2, words=0)
    process = receive(net, "--board", "10.9.0.3", "--out", net.tmp / "{stream}")
    wait_for(lambda: sum(path.stat().st_size > 0 for path in net.tmp.glob("10.9.0.?-49152")) == 2)
    sh("ip", "-n", net.pc_ns, "route", "add", "blackhole", f"{BOARD}/32")
    process.signal(signal.SIGINT)
    status, out, err = process.finish()
    found = json.loads(out)
    assert status == 3 and f"board {BOARD}: no answer from its slow control" in err, err
    ended = {stream["peer"]: stream["ended"] and stream["complete"] for stream in found["streams"]}
    assert ended["10.9.0.3:49152"] and not ended[f"{BOARD}:49152"], found
    (dead,) = (stream for stream in found["streams"] if stream["peer"] == f"{BOARD}:49152")
    assert "no answer from its slow control" in " ".join(reason["text"] for reason in dead["reasons"]), dead
    assert register(net, ENABLE, board="10.9.0.3") == 0


def test_a_second_run_begins_anew(net):
    boards(net, "--payload", 1472)
    runs = [received(net)[0]["run"] for _ in range(3)]
    assert runs == [0, 1, 2]


def test_without_a_board_to_command(net):
    """A stream that runs already is taken from where it is; only who says so takes a part of it for the whole."""
    net.sim("--protocol", "udp", "--payload", 1472)
    net.wait_for_frames()
    for accept, expected, verdict in ((["--end", "silence"], 0, "complete"), ([], 3, "incomplete")):
        status, found = report(net.run("receive", "--udp", PORT, "--duration", 2, "--json", *accept))
        stream = found["streams"][0]
        assert status == expected and stream["verdict"] == found["verdict"] == verdict, found
        counts = stream["counts"]
        assert stream["first"] == counts["before"] > 0 and not stream["ended"] and counts["lost"] == 0 and stream["words"] > 0


def datagram(counter, *words, run=0, end=False):
    head = struct.pack(">IHBB", counter, len(words), run, end)
    return head + b"".join(struct.pack("<Q", word) for word in words)


def sent(*counters):
    return [datagram(counter, counter) for counter in counters]


TEN = sent(*range(10))
END = datagram(10, end=True)


@pytest.mark.parametrize(
    "accept,datagrams,reasons",
    [
        ("told", [*TEN, END, END], {}),
        ("told", [*sent(5, 0, 1, 2, 3, 4, 6, 7, 8, 9), END], {}),
        ("told", [*TEN, TEN[3], END, TEN[9]], {}),
        ("told", [*TEN[1:], END], {"missing": 1}),
        ("told", [*sent(*range(100, 200)), datagram(200, end=True)], {"missing": 100}),
        ("told", [*TEN[2:], *TEN[:2], END], {}),
        ("told", [*TEN, END, datagram(20, end=True)], {"contradictions": 1}),
        ("told", [*TEN, TEN[3][:-1] + b"x", END], {"contradictions": 1}),
        ("told", [*sent(*range(100)), *TEN, datagram(100, end=True)], {"foreign": 10}),
        ("told", [*TEN, END, 1.2, *TEN, END], {"foreign": 10}),
        ("told", [*TEN[:9], TEN[9][:-1], END], {"missing": 1, "foreign": 1}),
        ("silence", TEN[4:], {}),
        ("silence", [*TEN[:9], TEN[9][:-1]], {"foreign": 1}),
        ("silence", [*TEN, datagram(10, 7, end=True)], {"foreign": 1}),
        ("silence", [*TEN, bytes(8973)], {"foreign": 1}),
        ("silence", [*TEN, b"1234567"], {"foreign": 1}),
    ],
)
def test_a_run_that_others_have_started_is_whole_or_why_not(net, accept, datagrams, reasons):
    """A board that begins anew, too; none of this is seen in the files alone."""
    receiver = net.fadelink("receive", "--udp", PORT, "--end", accept, "--json")
    wait_for(lambda: f":{PORT:04X} " in net.run_in(net.pc_ns, "cat", "/proc/net/udp"))
    board = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sh("ip", "-n", net.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
    count = 0
    for what in [*datagrams, 0.0]:
        if isinstance(what, float):
            # From the moment in which the receiver has them all.
            wait_for(lambda count=count: received_datagrams(net) == count)
            time.sleep(what)
        else:
            board.sendto(what, (PC, PORT))
            count += 1
    receiver.signal(signal.SIGINT)
    status, found = report(receiver.finish())
    (stream,) = found["streams"]
    told = {reason["reason"]: reason["amount"] for reason in stream["reasons"]}
    assert (told, status, found["verdict"]) == (reasons, 3 if reasons else 0, "incomplete" if reasons else "complete"), found


def test_datagrams_that_wait_for_the_first_one_are_heard(net):
    """Of a run that was going on few come, seldom: each is a sign of life."""
    receiver = net.fadelink("receive", "--udp", PORT, "--end", "silence", "--idle-timeout", 5, "--json")
    wait_for(lambda: f":{PORT:04X} " in net.run_in(net.pc_ns, "cat", "/proc/net/udp"))
    board = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sh("ip", "-n", net.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
    for what in sent(*range(5, 25)):
        board.sendto(what, (PC, PORT))
        time.sleep(0.4)
    receiver.signal(signal.SIGINT)
    status, found = report(receiver.finish())
    assert status == 0 and found["streams"][0]["words"] == 20, found


def test_what_comes_behind_a_missing_datagram_is_not_kept_back_for_ever(net, tmp_path):
    """Of a board that sends seldom: its words are written when the one before them cannot come any more, which is missing then."""
    receiver = net.fadelink("receive", "--udp", PORT, "--end", "silence", "--sink", f"file:{tmp_path}/{{stream}}.dat", "--json")
    wait_for(lambda: f":{PORT:04X} " in net.run_in(net.pc_ns, "cat", "/proc/net/udp"))
    board = net.in_namespace(net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sh("ip", "-n", net.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
    for what in sent(0, 2):
        board.sendto(what, (PC, PORT))
    wait_for(lambda: [data.read_bytes() for data in tmp_path.glob("*.dat")] == [struct.pack("<QQ", 0, 2)])
    board.sendto(*sent(1), (PC, PORT))
    wait_for(lambda: received_datagrams(net) == 3)
    receiver.signal(signal.SIGINT)
    status, found = report(receiver.finish())
    (stream,) = found["streams"]
    assert status == 3 and stream["counts"]["late"] == 1 and [reason["reason"] for reason in stream["reasons"]] == ["missing"], found


def test_a_board_that_begins_anew_with_the_same_words(net):
    """It loses its power and starts by itself: the numbers and words that come again are not those of the network."""
    options = ("--protocol", "udp", "--phy", "gmii", "--payload", 512, "--gap", 20)
    sim = net.sim(*options, "--stopped")
    receiver = net.fadelink("receive", "--udp", PORT, "--board", BOARD, "--json")
    net.wait_for_frames(500)
    sim.popen.kill()
    sim.popen.wait()
    net.sim(*options)
    net.wait_for_frames(1000)
    receiver.signal(signal.SIGINT)
    status, found = report(receiver.finish())
    (stream,) = found["streams"]
    assert status == 3 and "foreign" in [reason["reason"] for reason in stream["reasons"]] and stream["counts"]["repeated"] > 0, found


def test_a_plain_socket_counts_what_is_missing(net):
    def make():
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
        receiver.bind((PC, PORT))
        receiver.settimeout(PATIENCE)
        return receiver

    receiver = net.in_namespace(net.pc_ns, make)
    sim = boards(net, "--payload", 1024, "--up", "loss=0.02")
    register(net, ENABLE, "1")
    next_counter, missing, total = 0, 0, None
    while total is None:
        data, peer = receiver.recvfrom(9000)
        counter, words, _, flags = struct.unpack(">IHBB", data[:8])
        if flags:
            total = counter
            continue
        missing += counter - next_counter
        next_counter = counter + 1
        first = struct.unpack("<Q", data[8:16])[0]
        assert peer == (BOARD, 49152) and first == 127 * counter
    missing += total - next_counter
    assert total == -(-WORDS // 127) and missing > 0
    board = net.end_sim(sim)["boards"][0]
    assert 0 <= board["up"]["lost"] - missing <= 10


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
def test_ping_of_every_size(net, phy):
    boards(net, "--phy", phy)
    for size in [*range(0, 64), 100, 255, 256, 1000, 1471, 1472, 1473, 4000, 8971, 8972]:
        out = net.run_in(net.pc_ns, "ping", "-c", 1, "-W", 60, "-M", "do", "-p", "a5c3", "-s", size, BOARD)
        assert " 0% packet loss" in out and "wrong data byte" not in out, out


def test_arping(net):
    boards(net)
    out = net.run_in(net.pc_ns, "arping", "-c", 3, "-w", 60, "-I", "eth0", BOARD)
    assert "Received 3 response" in out and FEBS[0].upper() in out.upper(), out


def test_malformed_packets_replayed(net):
    """tcpreplay of fragments, options, wrong lengths, wrong checksums and more while the stream runs: it loses nothing, each frame is counted."""
    sim = boards(net, "--payload", 1472, words=400_000)
    random, groups, sent = rng("replay"), dropped_frames(), {}
    frames = []
    for _ in range(3000):
        name = random.choice(list(groups))
        sent[name] = sent.get(name, 0) + 1
        frames.append(random.choice(groups[name]).ljust(60, b"\0"))
    capture = net.tmp / "malformed.pcap"
    write_capture(capture, frames)
    process = receive(net, "--streams", 1)
    net.wait_for_frames(20)
    out = net.run_in(net.pc_ns, "tcpreplay", "--intf1", "eth0", "--pps", 3000, capture)
    assert re.search(r"Successful packets: +3000", out), out
    code, found = report(process.finish())
    assert code == 0 and found["streams"][0]["words"] == 400_000 and found["streams"][0]["counts"]["lost"] == 0
    register(net, COUNTERS)  # answered behind all that came before
    board = net.end_sim(sim)["boards"][0]
    counted = {name: board[name] for name in sent}
    # While the board answers another frame, it does not look into the next one.
    for name, full in (("drop_arp", "drop_arp_full"), ("drop_control_short", "drop_control_full")):
        counted[name] += board[full]
    # What the kernel itself sends (IPv6, groups, that a port is closed), and questions that are repeated, come on top.
    for name in ("drop_arp", "drop_control_short", "drop_ethertype", "drop_destination", "drop_icmp_type"):
        counted[name] = min(counted[name], sent[name])
    assert counted == sent


def test_datagrams_to_a_closed_port(net):
    """An ordinary socket sends to a port that nobody has, while the stream runs: all are counted, and it loses nothing."""
    sim = boards(net, "--payload", 1472, words=200_000)
    process = receive(net, "--streams", 1)
    net.wait_for_frames(20)
    plain = net.in_namespace(net.pc_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    for i in range(2000):
        plain.sendto(bytes(i % 1400), (BOARD, 9))
        if i % 100 == 99:
            register(net, COUNTERS)  # answered behind these: no more are under way than its interface has room for
    plain.close()
    code, found = report(process.finish())
    assert code == 0 and found["streams"][0]["words"] == 200_000
    assert net.end_sim(sim)["boards"][0]["drop_port"] == 2000


def test_all_at_once(net):
    """As in the paper: the stream, ping and arping together; nothing is lost of the stream, every echo comes."""
    capture = net.tmp / "all.pcap"
    sim = boards(net, "--payload", 1472, "--pcap", capture, words=100_000)
    process = receive(net, "--streams", 1)
    ping = net.start(net.pc_ns, "ping", "-c", 20, "-i", "0.2", "-W", 60, "-s", 1000, BOARD)
    arping = net.start(net.pc_ns, "arping", "-c", 4, "-w", 60, "-I", "eth0", BOARD)
    # Two clients at once would not be told apart from repetitions (docs/protocol/udp.md): the receiver has asked what it asks.
    net.wait_for_frames(20)
    control = [register(net, 1, 3) for _ in range(10)]
    code, found = report(process.finish())
    assert code == 0 and found["streams"][0]["words"] == 100_000
    assert control == [3] * 10 and register(net, 1) == 30
    assert " 0% packet loss" in ping.finish()[1]
    assert "Received 4 response" in arping.finish()[1]
    board = net.end_sim(sim)["boards"][0]
    assert board["drop_icmp_full"] == 0
    # Wireshark's opinion of every frame; what datagrams hold it would guess (RTCP).
    out = sh("tshark", "-n", "-r", capture, "-d", "udp.port==1-65535,data", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
             "-Y", "_ws.malformed or _ws.expert.severity >= 6291456 or ip.checksum.status == 0 or udp.checksum.status == 0"
             " or icmp.checksum.status == 0")  # fmt: skip
    assert out == "", out[:2000]


def test_registers_over_a_bad_link(net):
    """Each write is done once, whatever is lost: the accumulator tells."""
    boards(net, "--link", "loss=0.2,duplicate=0.1")
    for _ in range(10):
        register(net, 1, 7, "--timeout", 100, "--retries", 60)
    assert register(net, 1, "--retries", 60) == 70
    assert register(net, 0, "0xffffffff", "--retries", 60) == 0xFFFFFFFF


@pytest.mark.parametrize(
    "words,status,message",
    [
        (["register", "--board", "10.9.0.99", "0", "--timeout", "20", "--retries", "2"], 1,
         "board 10.9.0.99: no answer from its slow control in 3 attempts"),
        (["register", "--board", BOARD, "77"], 1, "register 0x0000004d: there is no such register"),
        (["register", "--board", BOARD, "0x80000004", "13"], 1, "0xd cannot be written: no such register, read-only"),
        (["register", "--board", "here", "0"], 2, "--board here: expected an IPv4 address, as 10.9.0.2"),
        (["register", "--board", BOARD, "0x100000000"], 2, "expected a number from 0 to 0xffffffff"),
        (["receive", "--udp", "0"], 2, "--udp 0: expected 1 to 65535"),
        (["receive", "--udp", "10000", "--tcp", "10000"], 2, "not with --"),
        (["receive", "--udp", "10000", "--iface", "eth0"], 2, "--iface: not with --udp"),
        (["receive", "--tcp", "10000", "--board", BOARD], 2, "--tcp: not with --board"),
        (["receive", "--udp", "10000", "--board", "10.9.0.3", "--board", BOARD, "--board", BOARD], 2, f"--board {BOARD}: expected each board once"),
        (["receive", "--udp", "10000", "--listen", "::1"], 2, "--listen ::1: expected an IPv4 address"),
        (["receive", "--udp", "10000", "--listen", "10.9.0.77"], 1, "--udp 10000: listening on 10.9.0.77:10000"),
        (["receive", "--udp", "10000", "--out", "x", "--streams", "2"], 2, "--out: expected {stream} in the path"),
        (["receive", "--udp", "10000", "--ring", "8"], 2, "--ring 8: expected a power of two from 16 to 16777216"),
        (["receive", "--tcp", "10000", "--ring", "100"], 2, "--ring 100: expected a power of two from 16 to 16777216"),
        (["receive", "--udp", "10000", "--ring", "33554432"], 2, "--ring 33554432: expected a power of two from 16 to 16777216"),
        (["receive", "--udp", "10000", "--out", "{board}"], 2, "--out: `{board}` is replaced by nothing; expected {stream}"),
        (["receive", "--udp", "10000", "--idle-timeout", "0.3", "--json"], 3, "0 streams came, expected 1"),
    ],
)  # fmt: skip
def test_clear_errors(net, words, status, message):
    boards(net)
    code, _, err = net.run(*words)
    assert code == status and message in err, (code, err)


def test_datagrams_of_others_are_counted(net, tmp_path):
    boards(net, "--payload", 1472, words=0)
    sh("ip", "-n", net.pc_ns, "link", "set", "lo", "up")

    def make():
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        stranger.bind((PC, 0))
        return stranger

    stranger = net.in_namespace(net.pc_ns, make)
    process = receive(net, "--out", tmp_path / "{stream}")
    net.wait_for_frames(20)
    good = struct.pack(">IHBB", 0, 1, 0, 0) + bytes(8)
    for data in (b"", b"short", struct.pack(">IHBB", 0, 9, 0, 0), struct.pack(">IHBB", 0, 0, 0, 64), bytes(8973), good):
        stranger.sendto(data, (PC, PORT))
    net.wait_for_frames(20)
    process.signal(signal.SIGINT)
    code, found = report(process.finish())
    reasons = {"truncated": 2, "words": 1, "flags": 1, "oversize": 1, "other_sender": 1}
    assert {reason: count for reason, count in found["dropped"].items() if count} == reasons, found
    assert code == 0 and len(found["streams"]) == 1
    board = f"{BOARD}-49152"
    assert sorted(path.name for path in tmp_path.iterdir()) == [board, f"{board}.json"], "the stranger has no file"


def test_metrics(net):
    boards(net, "--payload", 512, "--up", "loss=0.05")
    sh("ip", "-n", net.pc_ns, "link", "set", "lo", "up")
    process = receive(net, "--streams", 2, "--metrics", f"{PC}:9090")
    found = {}

    def look():
        fetch = f"import urllib.request; print(urllib.request.urlopen('http://{PC}:9090/metrics', timeout=60).read().decode())"
        out = net.start(net.pc_ns, sys.executable, "-c", fetch).finish()[1]
        found.update(re.findall(r"fadelink_(\w+)_total\{board=\"10.9.0.2:49152\"\} (\d+)", out))
        return int(found.get("udp_datagrams", 0)) > 100 and int(found.get("udp_lost_datagrams", 0)) > 0

    wait_for(look)
    process.signal(signal.SIGINT)
    process.finish()
    datagrams = {f"udp_{what}_datagrams" for what in ("lost", "late", "duplicate", "reordered")}
    assert set(found) == {"received_bytes", "wrong_words", "udp_datagrams", *datagrams}
