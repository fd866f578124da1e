"""What crates tell, and what they cannot mean, is evidence whatever is done with their data; interrupted programs report it."""

import contextlib
import json
import resource
import signal
import socket
import subprocess
import sys
import threading

import pytest
from support import fadc_model as model
from support.broker import free_ports
from support.crate import WINDOW_NS, Crate, reasons
from support.netns import PATIENCE
from support.paths import FADELINK

SINKS = {"none": (), "file": ("file:{}/x.dat",), "hdf5": ("hdf5:{}/x.h5",), "parquet": ("parquet:{}/x.parquet",), "zmq": ("zmq-pub:ipc://{}/x",),
         "two": ("hdf5:{}/y.h5", "parquet:{}/y.parquet")}  # fmt: skip


def loss(kind, count=1, slot=3):
    return 1 << 31 | model.C[f"type_{kind}"] << 15 | count << 5 | slot


@pytest.mark.parametrize("sinks", SINKS)
def test_the_verdict_does_not_depend_on_the_sinks(build, tmp_path, sinks):
    """What the messages of crates tell is evidence before the sinks: the same reasons, amounts and sources with each of them."""
    words = [word for sink in SINKS[sinks] for word in ("--sink", sink.format(tmp_path))]
    builder = build("--sources", "1,2", "--streams", 2, *words)
    one, two = Crate(builder.port, 1), Crate(builder.port, 2)
    for record in range(8):
        payload = {1: [loss("lost", 5)], 2: [loss("timeout", 3), loss("lost", 1023)], 3: [loss("timeout", 0)], 5: [0x1234, 5]}.get(record, [])
        one.send(raw=model.message(1, record, words=payload))
        two.send(raw=model.message(2, record, words=[0x8000_8003, 5]))
    # A source that nobody has named, over the connection of another.
    two.send(raw=model.message(9, 8))
    one.close()
    two.close()
    status, found, err = builder.finish()
    told = {reason["reason"]: (reason["amount"], reason["sources"]) for reason in found["reasons"] if reason["reason"] != "windows"}
    first = "0x00000001"
    assert told == {
        "hits_lost": (1031, {first: 1031}), "timeouts": (2, {first: 2}), "wrong_messages": (1, {first: 1}), "unlisted": (1, {"0x00000009": 1}),
    }, (found, err)  # fmt: skip
    assert status == 3 and "window 5, source 0x00000001: word 0: a hit without a slot" in found["first_wrong"] and found["first_wrong"] in err, err
    assert "crates have lost 1031 hits (0x00000001: 1031)" in str(found["reasons"])


def moved(record, **by):
    """The message of a window of source 1, with another number or time."""
    data = bytearray(model.message(1, record, [], WINDOW_NS))
    place = {"number": 24, "seconds": 32, "ns": 40}
    for name, value in by.items():
        data[place[name] : place[name] + 8] = value.to_bytes(8, "little", signed=name != "number")
    return bytes(data)


@pytest.mark.parametrize(
    "expected,send",
    [
        ([], [moved(0), moved(3)]),
        (["wrong_time", "wrong_number"], [moved(0), moved(1, number=1 << 40)]),
        (["wrong_number"], [moved(0), moved(1, number=(1 << 64) - 1)]),
        (["wrong_number"], [moved(5), moved(3)]),
        (["wrong_time"], [moved(0), moved(1, seconds=0)]),
        (["wrong_time"], [moved(0), moved(1, seconds=-(1 << 62))]),
        (["wrong_time"], [moved(0), moved(1, seconds=4_000_000_000)]),
        # No file of hits can have these times.
        (["wrong_time"], [moved(0, seconds=1 << 62)]),
        (["wrong_time"], [moved(0, seconds=(1 << 63) // 10**9 + 1)]),
        (["wrong_time"], [moved(0, seconds=-(1 << 63) // 10**9 - 1)]),
        ([], [moved(0, seconds=(1 << 63) // 10**9 - 1)]),
    ],
)
def test_windows_that_cannot_be_are_never_complete(build, expected, send):
    """Of a single crate, too: a number far ahead, back before the begin, without an end, and times of another epoch."""
    builder = build("--sources", 1, "--streams", 1)
    crate = Crate(builder.port, 1)
    for data in send:
        crate.send(raw=data)
        builder.wait_for("joiner", "windows", "complete", count=1)
    crate.close()
    status, found, err = builder.finish()
    assert reasons(found) == expected, (found, err)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("expected", [("--expect", 2), ("--sources", "1,2")])
def test_a_crate_that_lost_its_first_windows_misses_them(build, expected, order):
    """Whichever crate is heard first."""
    builder = build(*expected, "--streams", 2, "--silence", 60)
    crates = {source: Crate(builder.port, source) for source in order}
    for source in order:
        crates[source].send(*range(5 if source == 2 else 0, 10))
        builder.wait_for_source(source, "messages", 10 - 5 * (source == 2))
    for crate in crates.values():
        crate.close()
    status, found, err = builder.finish()
    assert status == 3 and reasons(found) == ["windows"] and found["sources"]["0x00000002"]["missing"] == 5, (found, err)
    assert found["windows"] == {"complete": 5, "incomplete": 5, "dropped": 0, "late": 0}, found


def test_a_crate_that_begins_anew_is_never_complete(build):
    """In windows that wait for another crate: its two runs would be one."""
    builder = build("--sources", "1,2", "--streams", 3, "--silence", 60)
    for came, records in ((2, [0, 9]), (4, [3, 4])):
        crate = Crate(builder.port, 1)
        crate.send(*records)
        crate.close()
        builder.wait_for_source(1, "messages", came)
    two = Crate(builder.port, 2)
    two.send(*range(10))
    two.close()
    status, found, err = builder.finish()
    assert "wrong_number" in reasons(found), (found, err)


@pytest.mark.parametrize("command", ["build", "run"])
def test_the_second_interrupt_gives_a_verdict(tmp_path, command):
    """A crate that never ends is given up; what came is reported, at once."""
    (port,) = free_ports(1)
    words = ["build", "--tcp", port, "--listen", "127.0.0.1", "--window-ns", WINDOW_NS, "--expect", 1, "--json"]
    if command == "run":
        (tmp_path / "x.toml").write_text(
            f'folder = "{tmp_path}/runs"\n[[crates]]\nname = "c"\nport = {port}\nlisten = "127.0.0.1"\nwindow_ns = {WINDOW_NS}\nexpect = 1\n'
            'sinks = ["file:{board}.dat"]\n'
        )
        words = ["run", tmp_path / "x.toml", "--quiet"]
    program = subprocess.Popen([str(word) for word in (FADELINK, *words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    crate, stop = Crate(port, 1), threading.Event()

    def send():
        record = 1
        while not stop.wait(0.01):
            try:
                crate.send(record)
            except OSError:
                return
            record += 1

    crate.send(0)
    sender = threading.Thread(target=send)
    sender.start()
    program.send_signal(signal.SIGINT)
    crate.wait_for_stop()
    assert program.poll() is None, "the crate goes on"
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=PATIENCE)
    stop.set()
    sender.join()
    crate.close()
    found = json.loads(out) if command == "build" else json.loads((tmp_path / "runs/run_000001/manifest.json").read_text())
    told = found if command == "build" else found["boards"][0]
    assert program.returncode == 3, err
    assert told["verdict"] == "incomplete" and "error" in reasons(told) and "interrupted before the end" in str(told["reasons"]), told
    assert told["sources"]["0x00000001"]["messages"] > 0


# Sends what it reads, and stays.
PROGRAM = """import socket, sys, time
crate = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
crate.sendall(sys.stdin.buffer.read())
time.sleep(600)"""


@pytest.mark.parametrize(
    "end,connections,expected",
    [
        ("confirmed", {1: [("asked", 0, 10)], 2: [("asked", 0, 10)]}, "complete"),
        ("confirmed", {1: [("asked", 0, 10)], 2: [("closes", 0, 10)]}, "end_not_confirmed"),
        ("confirmed", {1: [("asked", 0, 10)], 2: [("killed", 0, 10)]}, "end_not_confirmed"),
        ("confirmed", {1: [("closes", 0, 5), ("asked", 5, 10)], 2: [("killed", 0, 7), ("asked", 7, 10)]}, "complete"),
        # Over the last connection of the second crate nothing comes.
        ("confirmed", {1: [("asked", 0, 10)], 2: [("closes", 0, 10), ("asked", 10, 10)]}, "end_not_confirmed"),
        # Its second connection began before the first one was closed.
        ("confirmed", {1: [("asked", 0, 10)], 2: [("killed later", 0, 5), ("asked", 5, 10)]}, "incomplete"),
        ("told", {1: [("closes", 0, 10)], 2: [("killed", 0, 10)]}, "complete"),
    ],
)
def test_an_end_that_nobody_has_asked_for_is_not_confirmed(build, end, connections, expected):
    """The kernel ends the connections of a program that is killed as those of one that has sent all."""
    builder = build("--sources", "1,2", "--silence", 60, end=end)
    asked, killed = [], []
    for source, ways in connections.items():
        for way, first, behind in ways:
            if way.startswith("killed"):
                words = [sys.executable, "-c", PROGRAM, str(builder.port)]
                program = subprocess.Popen(words, stdin=subprocess.PIPE)
                program.stdin.write(b"".join(model.message(source, record) for record in range(first, behind)))
                program.stdin.close()
                builder.wait_for_source(source, "messages", behind)
                killed.append(program)
                if way == "killed":
                    program.kill()
                    program.wait()
            else:
                crate = Crate(builder.port, source)
                crate.send(*range(first, behind))
                builder.wait_for_source(source, "messages", behind)
                asked += [crate] * (way == "asked")
                if way == "closes":
                    crate.close()
    for program in killed:
        program.kill()
        program.wait()
    builder.popen.send_signal(signal.SIGTERM)
    for crate in asked:
        crate.wait_for_stop()
        crate.close()
    _, found, err = builder.finish()
    assert found["verdict"] == expected and found["windows"]["complete"] == 10, (found, err)


def test_who_has_not_the_address_of_a_crate_is_kept_out(build):
    """Whatever it sends: it takes the place of none, and its number is none of theirs."""
    builder = build("--expect", 1, "--addresses", "127.0.0.1", "--streams", 1, end="told")
    crate = Crate(builder.port, 1)
    with socket.create_connection(("127.0.0.1", builder.port), source_address=("127.0.0.9", 0)) as other, contextlib.suppress(ConnectionError):
        other.sendall(model.message(1, 1 << 40))
        assert other.recv(1) == b"", "it is closed"
    for record in range(3):
        crate.send(record)
    crate.close()
    status, found, err = builder.finish()
    assert (status, found["windows"]["complete"], found["other_connections"]) == (0, 3, 1), (found, err)
    assert "127.0.0.9" in err and len(found["connections"]) == 1


def test_connections_without_data_leave_a_number_alone(build):
    """As of a program that looks whether the port is open."""
    builder = build("--sources", 1, "--streams", 1)
    crate = Crate(builder.port, 1)
    for _ in range(200):
        Crate(builder.port, 0).close()
    crate.send(*range(8))
    crate.close()
    status, found, err = builder.finish()
    assert status == 0 and len(found["connections"]) == 1 and 0 < found["empty_connections"] <= 200, (found, err)


def test_sources_without_number_are_counted_together(build):
    """Messages of any number of sources that nobody has named, over connections with as many as a crate may have; and with one more."""
    builder = build("--sources", 1, "--streams", 2)
    crate = Crate(builder.port, 1)
    crate.send(*range(8))
    crate.send(raw=b"".join(model.message(1000 + source, 0) for source in range(200)))
    crate.close()
    crate = Crate(builder.port, 1)
    crate.send(raw=b"".join(model.message(5000 + source, 0) for source in range(257)))
    status, found, err = builder.finish()
    told = {reason["reason"]: reason for reason in found["reasons"]}
    others = told["unlisted"]["sources"]["others"]
    assert told["unlisted"]["amount"] == 64 + others >= 200 and len(found["sources"]) == 1 + 64 + 1, (told, err)
    assert "more than 256 sources over one connection" in told["error"]["text"] and f"others: {others}" in told["unlisted"]["text"], told
    crate.close()


@pytest.mark.parametrize("first_closes", [False, True])
def test_two_senders_of_one_number(build, first_closes):
    """Each has windows of its own, so that all of them are there. A crate may go on over another connection when it has closed the first one."""
    builder = build("--sources", 1, end="confirmed")
    one, two = Crate(builder.port, 1), Crate(builder.port, 1)
    crates = [one, two, two, two] if first_closes else [one, two, one, two]
    for record, crate in enumerate(crates):
        crate.send(record)
        builder.wait_for_source(1, "messages", record + 1)
        if first_closes and record == 0:
            one.close()
    builder.popen.send_signal(signal.SIGTERM)
    for crate in [two] if first_closes else [one, two]:
        crate.wait_for_stop()
        crate.close()
    status, found, err = builder.finish()
    assert found["windows"]["complete"] == 4 and found["sources"]["0x00000001"]["sessions"] == 2, (found, err)
    assert reasons(found) == ([] if first_closes else ["two_senders"]), (found, err)


@pytest.mark.parametrize("end", ["confirmed", "told"])
@pytest.mark.parametrize("first, then", [(3, "127.0.0.9"), (1, "127.0.0.1")], ids=["a stranger goes on", "a stranger begins"])
def test_a_source_that_sends_from_another_address(build, end, first, then):
    """It has closed the connection before, and its windows go on: nothing else is wrong."""
    builder = build("--sources", "1,2", end=end)
    other = Crate(builder.port, 2)
    other.send(*range(6))
    one = Crate(builder.port, 1, address="127.0.0.1" if then == "127.0.0.9" else "127.0.0.9")
    one.send(*range(first))
    builder.wait_for_source(1, "messages", first)
    one.close()
    two = Crate(builder.port, 1, address=then)
    two.send(*range(first, 6))
    builder.wait_for_source(1, "messages", 6)
    builder.popen.send_signal(signal.SIGTERM)
    for crate in (two, other):
        crate.wait_for_stop()
        crate.close()
    status, found, err = builder.finish()
    assert status == 3 and found["windows"]["complete"] == 6 and reasons(found) == ["two_senders"], (found, err)
    assert found["sources"]["0x00000001"]["two_senders"] == 1 and found["sources"]["0x00000002"]["two_senders"] == 0, found
    assert f"source 0x00000001: it sends from {then}: expected " in err, err


@pytest.mark.parametrize("join", ["counter", "time"])
def test_a_wrong_length_of_windows_is_told(build, join):
    """Of windows twice as long, of which each has all its crates: also where they are joined by their times."""
    builder = build("--sources", "1,2", "--join", join, "--streams", 2)
    for source in (1, 2):
        crate = Crate(builder.port, source)
        for record in range(5):
            crate.send(raw=model.message(source, record, [], 2 * WINDOW_NS))
        crate.close()
    status, found, err = builder.finish()
    assert found["windows"]["complete"] == 5 and reasons(found) == ["wrong_time"], (found, err)
    assert f"its time is {2 * WINDOW_NS} ns behind that of window 0, expected {WINDOW_NS}" in found["first_wrong"], found


def test_urgent_data_of_a_crate_is_data(build):
    """TCP numbers it as all other: the message is not lost."""
    builder = build("--sources", 1, end="confirmed")
    crate = Crate(builder.port, 1)
    crate.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    crate.send(0)
    for byte in model.message(1, 1):
        crate.socket.send(bytes([byte]), socket.MSG_OOB)
    crate.send(2)
    builder.popen.send_signal(signal.SIGTERM)
    crate.wait_for_stop()
    crate.close()
    status, found, err = builder.finish()
    assert status == 0 and found["windows"]["complete"] == 3, (found, err)


@pytest.mark.parametrize("kind", ["file", "hdf5", "parquet"])
def test_a_file_that_may_not_be_longer_is_a_full_disk(build, tmp_path, kind):
    """RLIMIT_FSIZE: the sink fails, and the report says so."""
    limit = 1 << 16
    builder = build("--sources", 1, "--streams", 1, "--sink", f"{kind}:{tmp_path}/x,every=3600",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
    crate = Crate(builder.port, 1)
    crate.send(*range(100), hits=[(3, 0, tick, tick) for tick in range(1000)])
    with contextlib.suppress(OSError):
        crate.close()
    status, found, err = builder.finish()
    assert status == 3 and "sink_failed" in reasons(found) and "too large" in found["sinks"][0]["error"], (found, err)
