"""What others do to a listening socket costs a bounded amount of memory, time and file descriptors, and no data of a board."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import threading

import pytest
from support import fadc_model as model
from support.control import COUNTER, CRATES, DATA, TCP, ask, state, waits
from support.crate import WINDOW_NS, Crate, peak
from support.netns import PATIENCE, wait_for

HTTP = 'http = "127.0.0.1:9470"\n'
# More than a server has room for.
MANY = 700


@pytest.fixture
def allow_many():
    """As the program itself, the test needs more file descriptors than a process has at first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(lab, port, count=1):
    """Connections to a port of the computer's own. When the kernel has no room for more, the rest is still trying."""

    def all_of_them():
        made, wait = [], 1
        for _ in range(count):
            made.append(socket.socket())
            made[-1].settimeout(wait)
            try:
                made[-1].connect(("127.0.0.1", port))
            except (TimeoutError, BlockingIOError):
                wait = 0
        return made

    return lab.bench.in_namespace(lab.bench.pc_ns, all_of_them)


def listens(lab, port):
    """True when the program has opened the port."""
    return f":{port:04X} 00000000:0000 0A" in lab.bench.run_in(lab.bench.pc_ns, "cat", "/proc/net/tcp")


def board(lab, data):
    """A board that sends all that it has, and ends when it is asked to."""
    wait_for(lambda: listens(lab, 10000))
    (made,) = connect(lab, 10000)
    made.settimeout(60)
    made.sendall(data)
    return made


def begin(lab, text, *prefix):
    lab.write(text)
    process = lab.bench.start(
        lab.bench.pc_ns, *prefix, *lab.bench.fadelink_words("run", lab.file, "--quiet"), stderr_to=open(lab.bench.tmp / "err", "w")
    )
    wait_for(lambda: (lab.runs / "control.socket").exists())
    assert ask(lab, "POST", "/start")[0] == 202
    wait_for(lambda: state(lab)["state"] == "running")
    return process


def finish(lab, count):
    """The run when so many bytes have come."""
    wait_for(lambda: state(lab)["bytes"] >= count)
    assert ask(lab, "POST", "/stop")[0] == 202
    wait_for(lambda: waits(lab))
    return lab.manifest()


def unused(lab, port):
    """The connections to a port that no data was taken of, as the metrics show them by reason."""
    rows = re.findall(r'^fadelink_port_connections_total{port="(\d+)",reason="(\w+)"} (\d+)$', ask(lab, "GET", "/metrics")[1], re.M)
    return {reason: int(value) for at, reason, value in rows if int(at) == port}


@pytest.mark.parametrize("text, data", DATA.items(), ids=["tcp", "crates"])
@pytest.mark.parametrize("limit", [None, 300], ids=["", "few descriptors"])
def test_idle_connections_keep_no_board_out(lab, allow_many, text, data, limit):
    """Connections over which nothing comes leave when there is no room, and file descriptors are left for the files."""
    prefix = ["prlimit", f"--nofile={limit}:{limit}"] if limit else []
    process = begin(lab, text, *prefix)
    wait_for(lambda: listens(lab, 10000))
    idle = []

    def is_full():
        """A connection that the kernel has no room for at once may never come to the program: others are made."""
        if "there is no room for more connections" in (lab.bench.tmp / "err").read_text():
            return True
        idle.extend(connect(lab, 10000, MANY // 4))
        return False

    wait_for(is_full)
    sender = board(lab, data)
    wait_for(lambda: state(lab)["bytes"] >= len(data) or waits(lab))
    # The board ends first; that is accepted here.
    sender.close()
    # Those that were not accepted until the end may have had data, for all that is known.
    for one in idle:
        one.close()
    manifest = finish(lab, len(data))
    (group,), (found,) = manifest["groups"], manifest["boards"]
    assert manifest["state"] == "complete" and found["verdict"] == "complete", (manifest, (lab.bench.tmp / "err").read_text())
    counts = group | found
    shown = unused(lab, 10000)
    assert shown["displaced"] == counts["displaced_connections"] and shown["refused"] == counts["refused"], (shown, counts)
    assert counts["displaced_connections"] > 0 and (counts["refused"] > 0) == bool(limit), counts
    process.signal(signal.SIGTERM)
    process.finish()


def test_strangers_take_no_descriptor_of_a_file(lab, allow_many):
    """Each connection that sends something opens files: it is accepted when there are descriptors for them. The metrics of streams that
    have ended are bounded."""
    bench, limit = lab.bench, 300
    words = ["receive", "--tcp", 10000, "--json", "--end", "told", "--metrics", "127.0.0.1:9470"]
    sinks = ["--sink", f"file:{bench.tmp}/{{stream}}.dat", "--sink", f"hashes:{bench.tmp}/{{stream}}.hashes"]
    process = bench.start(bench.pc_ns, "prlimit", f"--nofile={limit}:{limit}", *bench.fadelink_words(*words, *sinks))
    sender = board(lab, COUNTER)
    name = f"127.0.0.1:{sender.getsockname()[1]}"

    def metrics():
        return bench.run_in(bench.pc_ns, "curl", "-s", "http://127.0.0.1:9470/metrics")

    wait_for(lambda: f'fadelink_received_bytes_total{{board="{name}"}} {len(COUNTER)}' in metrics())
    for _ in range(80):
        stranger = board(lab, COUNTER[:8])
        stranger.shutdown(socket.SHUT_WR)
        stranger.recv(1)
        stranger.close()
    # Those beyond the first 64 are there together.
    wait_for(lambda: f'fadelink_received_bytes_total{{board="(others)"}} {8 * 17}' in metrics())
    assert metrics().count("fadelink_received_bytes_total{") == 65
    strangers = connect(lab, 10000, MANY)
    for one in strangers:
        one.setblocking(False)
        with contextlib.suppress(OSError):
            one.send(COUNTER[:8])
    wait_for(lambda: float(re.search(r'"10000",reason="refused"} (\d+)', metrics())[1]) > 0)
    sender.sendall(COUNTER)
    wait_for(lambda: f'fadelink_received_bytes_total{{board="{name}"}} {2 * len(COUNTER)}' in metrics())
    assert 'fadelink_sink_failed{board="' + name in metrics() and not re.search(r"fadelink_sink_failed\{.*\} 1$", metrics(), re.M)
    for one in [sender, *strangers]:
        one.close()
    process.signal(signal.SIGTERM)
    _, out, err = process.finish()
    streams = json.loads(out)["streams"]
    assert not any("os error 24" in json.dumps(stream) for stream in streams), err
    (whole,) = (stream for stream in streams if stream["name"] == name)
    assert whole["bytes"] == 2 * len(COUNTER) and whole["verdict"] == "complete", whole


def test_half_requests_keep_nobody_from_asking(lab, allow_many):
    """Of a client that never ends its request, and of one that reads no answer; the run goes on."""
    process = begin(lab, HTTP + TCP)
    half = connect(lab, 9470, MANY)
    for one in half:
        with contextlib.suppress(OSError):
            one.settimeout(60)
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
    with contextlib.closing(connect(lab, 9470)[0]) as asker:
        asker.settimeout(60)
        asker.sendall(b"GET /run HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert asker.recv(100).startswith(b"HTTP/1.1 200")
    open_files = len(os.listdir(f"/proc/{process.popen.pid}/fd"))
    assert open_files < 150, open_files
    assert unused(lab, 9470)["displaced"] > 0
    for one in connect(lab, 10000, 3):
        one.close()
    wait_for(lambda: unused(lab, 10000)["empty"] == 3)
    assert unused(lab, 10000)["other"] == 0
    sender = board(lab, COUNTER)
    wait_for(lambda: state(lab)["bytes"] >= len(COUNTER))
    sender.close()
    assert finish(lab, len(COUNTER))["state"] == "complete"
    process.signal(signal.SIGTERM)
    process.finish()


def test_a_crate_that_connects_again_and_again_takes_no_memory(lab):
    """Each of its connections is counted, the last ones one by one; metrics have one entry for the source."""
    process = begin(lab, HTTP + CRATES)
    for record in range(400):
        with contextlib.closing(board(lab, model.message(1, record, [], WINDOW_NS))):
            pass
    manifest = finish(lab, 400 * 48)
    (group,) = manifest["groups"]
    (found,) = manifest["boards"]
    earlier = found["earlier_connections"]
    assert len(found["connections"]) == 256 and earlier["connections"] == 144, (group, found)
    assert sum(one["messages"] for one in found["connections"]) + earlier["messages"] == 400, found
    assert sum(line.startswith("fadelink_crate_messages_total") for line in ask(lab, "GET", "/metrics")[1].splitlines()) == 1
    process.signal(signal.SIGTERM)
    process.finish()


def large(source, record, data):
    """A message with so many bytes of hits."""
    size, fields = model.Header.size, list(model.Header.unpack(model.message(source, record, window_ns=WINDOW_NS)))
    fields[1:3] = [size + len(data), len(data)]
    return model.Header.pack(*fields) + data


def refusals(connection):
    """How often in a row the other end has answered that it has no room (tcpi_backoff of struct tcp_info)."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[4]


def test_large_messages_of_a_crate_that_is_ahead_wait(build):
    """Few enough windows to be open at once, if it were not for their size; the others come late, and nothing is missing."""
    windows, hits = 600, model.message(1, 0, words=[1 << 31 | model.C["type_hits"] << 15 | 3] + [0] * 249_999)[model.Header.size :]
    builder = build("--sources", "1,2", "--silence", 300)
    ahead, awaited = (Crate(builder.port, source, builder.popen) for source in (1, 2))
    ahead.socket.settimeout(PATIENCE)
    sent = []

    def send():
        for record in range(windows):
            ahead.socket.sendall(large(1, record, hits))
            sent.append(record)

    thread = threading.Thread(target=send)
    thread.start()
    # It refuses more again and again, or takes all.
    wait_for(lambda: refusals(ahead.socket) >= 3 or not thread.is_alive())
    assert thread.is_alive() and len(sent) * len(hits) > 250 << 20, "it waits when it has so much"
    awaited.send(*range(windows), hits=[])
    thread.join()
    for crate in (ahead, awaited):
        crate.close()
    builder.wait_for("joiner", "windows", "complete", count=windows)
    most = peak(builder.popen)
    _, found, err = builder.stop()
    assert found["complete"] and most < 450, (most, found, err)
