"""Clients of ZeroMQ that leave, read slowly, or not at all."""

import contextlib
import itertools
import os
import re
import resource
import socket
import struct
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
import zmq
from support import fadc_model as model
from support.broker import free_ports
from support.crate import Crate, peak, slow_puller
from support.netns import PATIENCE, wait_for


def subscriber(zeromq, endpoint, **options):
    client = zeromq.socket(zmq.SUB)
    for name, value in options.items():
        client.setsockopt(getattr(zmq, name.upper()), value)
    client.subscribe(b"")
    client.connect(endpoint)
    return client


def greet(connection, kind):
    """A handshake of ZMTP 3.0 (RFC 23). Words before the other side's READY end the connection."""
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 4) + kind
    connection.sendall(bytes([0xFF, *bytes(8), 0x7F, 3, 0]) + b"NULL".ljust(20, b"\0") + bytes(32) + bytes([4, len(ready)]) + ready)
    connection.recv(64, socket.MSG_WAITALL)
    connection.recv(connection.recv(2, socket.MSG_WAITALL)[1], socket.MSG_WAITALL)


def frame_head(size):
    """Of a message of one frame: what a test says comes as it is, in one piece."""
    return bytes([0, size]) if size < 256 else bytes([2]) + size.to_bytes(8, "big")


def test_clients_that_leave_together(build, tmp_path, zeromq):
    """Hundreds, several times: the next ones have every event."""
    endpoint = f"ipc://{tmp_path}/pub"
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-pub:{endpoint}")
    crate, record = Crate(builder.port, 1), 0
    wait_for(lambda: os.path.exists(tmp_path / "pub"))
    for _ in range(3):
        clients = [subscriber(zeromq, endpoint) for _ in range(300)]

        def has_come():
            nonlocal record
            crate.send(record)
            record += 1
            return all(client.poll(20) for client in clients)

        wait_for(has_come)
        for client in clients:
            client.close(0)
    crate.close()
    status, found, err = builder.finish()
    (sink,) = found["sinks"]
    assert (status, sink["error"], sink["handed_over"], sink["dropped"]) == (0, None, record, 0), (found, err)
    assert len(err.splitlines()) == 2, err


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_subscriber_that_does_not_read_costs_a_bounded_number_of_bytes(build, tmp_path, zeromq, transport):
    """However large the events are; another one goes on."""
    endpoint = f"ipc://{tmp_path}/pub" if transport == "ipc" else f"tcp://127.0.0.1:{free_ports(1)[0]}"
    builder = build("--sources", "1", "--streams", 1, "--max-open", 8, "--sink", f"zmq-pub:{endpoint},queue=8M")
    crate = Crate(builder.port, 1)
    slow, reads = subscriber(zeromq, endpoint, rcvhwm=1, rcvbuf=1 << 14), subscriber(zeromq, endpoint)
    # The builder knows both when they have its first events.
    record = 0
    while not (slow.poll(0) and reads.poll(0)):
        crate.send(record)
        record += 1
        reads.poll(20)
    data, before, numbers = [0x8000_8003] + [5] * 50_000, peak(builder.popen), []
    first = record
    for record in range(first, first + 600):
        crate.send(raw=model.message(1, record, words=data))
        while reads.poll(0 if record % 10 else 20):
            numbers.append(model.read_event(reads.recv())[0].record)
    while reads.poll(2000):
        numbers.append(model.read_event(reads.recv())[0].record)
    grown = peak(builder.popen) - before
    crate.close()
    status, found, err = builder.finish()
    assert status == 0 and slow.poll(0), (found, err)
    # 120 MB came. The queue and what waits in the socket have 8 MiB each.
    assert grown < 60 and len(numbers) > 300 and numbers[-1] > record - 100 and numbers == sorted(set(numbers)), (grown, len(numbers), found, err)
    assert err.count("wait for slow subscribers") == 1, err


@pytest.mark.parametrize("kind", ["zmq-pub", "zmq-push"])
def test_idle_clients_take_no_descriptor_of_a_file(build, tmp_path, zeromq, kind):
    """Connections that say nothing leave soon, and at once when descriptors are scarce; files are opened, and clients come in later."""
    port, limit = free_ports(1)[0], 300
    endpoint, metrics = f"tcp://127.0.0.1:{port}", free_ports(1)[0]
    builder = build("--sources", "1", "--streams", 1, "--metrics", f"127.0.0.1:{metrics}", "--sink", f"{kind}:{endpoint},policy=drop,optional",
                    "--sink", f"hdf5:{tmp_path}/a.h5,every=1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))  # fmt: skip
    crate, record, idle = Crate(builder.port, 1), 0, []

    def shown():
        return urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics").read().decode()

    def turned_away():
        found = re.search(rf'port="{port}",reason="turned_away"}} (\d+)', shown())
        return found and int(found[1])

    def feed():
        nonlocal record
        crate.send(record)
        record += 1
        return True

    feed()
    wait_for(lambda: (tmp_path / "a-0000.h5.part").exists() or list(tmp_path.glob("a*")))
    for _ in range(400):
        with contextlib.suppress(OSError):
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=1))
    wait_for(turned_away)
    # Files end and begin meanwhile.
    wait_for(lambda: feed() and len(list(tmp_path.glob("*.h5"))) >= 3)
    # Those that were not turned away are closed for their silence.
    wait_for(lambda: feed() and len(os.listdir(f"/proc/{builder.popen.pid}/fd")) < 100)
    client = zeromq.socket(zmq.SUB if kind == "zmq-pub" else zmq.PULL)
    if kind == "zmq-pub":
        client.subscribe(b"")
    client.connect(endpoint)
    wait_for(lambda: feed() and client.poll(20))
    crate.close()
    for one in idle:
        one.close()
    while client.poll(100):
        client.recv()
    status, found, err = builder.finish()
    assert status == 0 and all(sink["error"] is None for sink in found["sinks"]), (found, err)
    assert found["sinks"][1]["written"] == record, found


@pytest.mark.parametrize("size", [20, 1000, 60_000])
@pytest.mark.parametrize("kind", ["pub", "push"])
def test_a_client_that_says_much_takes_no_memory(build, tmp_path, zeromq, kind, size):
    """It subscribes to one name after the other, and connects again and again; others go on."""
    port, web = free_ports(2)
    endpoint = f"tcp://127.0.0.1:{port}"
    builder = build("--sources", "1", "--streams", 1, "--metrics", f"127.0.0.1:{web}", "--sink", f"zmq-{kind}:{endpoint}")
    crate, record = Crate(builder.port, 1), 0

    def turned_away():
        shown = urllib.request.urlopen(f"http://127.0.0.1:{web}/metrics").read().decode()
        found = re.search(rf'port="{port}",reason="turned_away"}} (\d+)', shown)
        return int(found[1]) if found else 0

    good = zeromq.socket(zmq.SUB if kind == "pub" else zmq.PULL)
    if kind == "pub":
        good.subscribe(b"")
    good.connect(endpoint)

    def events_come():
        nonlocal record
        crate.send(record)
        record += 1
        return good.poll(20)

    wait_for(events_come)
    before, numbers = peak(builder.popen), itertools.count()
    head = frame_head(size)

    def say(one):
        nonlocal words
        with contextlib.suppress(BlockingIOError):
            for _ in range(4000 // size):
                words = words or b"".join(head + b"\1" + next(numbers).to_bytes(size - 1, "little") for _ in range(50))
                words = words[one.send(words) :]
        return events_come()

    def connected():
        """When the builder listens: not at once when subscriptions were too many."""
        found = []

        def connect():
            with contextlib.suppress(ConnectionRefusedError):
                found.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            return found

        wait_for(connect)
        return found[0]

    number = tried = 0
    while number < 3:
        words, tried = b"", tried + 1
        assert tried < 30, turned_away()
        with contextlib.suppress(ConnectionError, IndexError), connected() as one:
            greet(one, b"XSUB" if kind == "pub" else b"PULL")
            one.setblocking(False)
            for _ in range(40):
                wait_for(lambda one=one: say(one))
            wait_for(lambda one=one: say(one) and (turned_away() > number or size > 1024))
        wait_for(events_come)
        # The library itself closes who sends a larger message than a subscription, and some whose first words come at once.
        number = tried if size > 1024 else turned_away()
    after = peak(builder.popen)
    assert after < before + 200, f"{before} MiB became {after} MiB"
    crate.close()
    status, _, err = builder.finish()
    if size <= 1024:
        assert "a client has sent more than subscribers have to say" in err, err


def test_many_clients_that_each_say_little_take_no_memory(build, zeromq):
    """Their subscriptions are bounded together; what is said to see whether the builder is there is not."""
    port = free_ports(1)[0]
    endpoint = f"tcp://127.0.0.1:{port}"
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-pub:{endpoint}")
    crate, record = Crate(builder.port, 1), 0
    good = subscriber(zeromq, endpoint, heartbeat_ivl=20)

    def events_come(count=1):
        """Of those that are sent now: all before have been read."""
        nonlocal record
        while good.poll(0):
            good.recv()
        for _ in range(count):
            crate.send(record)
            record += 1
        return good.poll(100)

    wait_for(events_come)
    before, numbers, names = peak(builder.popen), itertools.count(), 300
    with contextlib.ExitStack() as stack:
        # Twice what all may have together, and each less than one may.
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) for _ in range(90)]
        for client in clients:
            greet(client, b"XSUB")
            client.sendall(b"".join(frame_head(21) + b"\1" + next(numbers).to_bytes(20, "little") for _ in range(names)))
        # The builder closes them, as others, which connect again.
        for client in clients:
            wait_for(lambda client=client: events_come() is not None and (client.setblocking(False) or has_ended(client)))
        wait_for(events_come)
    assert peak(builder.popen) < before + 100
    crate.close()
    status, _, err = builder.finish()
    assert status == 0 and err.count("subscribers have too many subscriptions: all are disconnected") == 1, err


def test_clients_that_come_and_go_leave_nothing(build, zeromq):
    """While no event comes; the builder ends as ever."""
    port, clients, names = free_ports(1)[0], 100, 700
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-pub:tcp://127.0.0.1:{port}")
    crate = Crate(builder.port, 1)
    crate.send(0)
    descriptors = f"/proc/{builder.popen.pid}/fd"
    before = peak(builder.popen), len(os.listdir(descriptors))

    def come_and_go(first):
        for number in range(first, first + clients * names, names):
            # Those that are too many are turned away.
            with contextlib.suppress(ConnectionError, IndexError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
                greet(client, b"XSUB")
                client.sendall(b"".join(frame_head(9) + b"\1" + (number + name).to_bytes(8, "big") for name in range(names)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(0, 4 * clients * names, clients * names)))
    # Clients are accepted in their order: when this one has an event all before it were.
    last, records = subscriber(zeromq, f"tcp://127.0.0.1:{port}"), itertools.count(1)
    wait_for(lambda: crate.send(next(records)) or last.poll(20))
    wait_for(lambda: len(os.listdir(descriptors)) < before[1] + 10)
    assert peak(builder.popen) < before[0] + 150
    crate.close()
    status, found, err = builder.finish()
    assert (status, found["complete"], found["events"]) == (0, True, next(records)), (found, err)


@pytest.mark.parametrize("kind", ["pub", "push"])
@pytest.mark.parametrize("how", ["many", "fast"])
def test_clients_are_bounded_by_number_and_by_how_fast_they_come(build, zeromq, kind, how):
    """Those that are there have every event, and others come in later."""
    port, web = free_ports(2)
    endpoint = f"tcp://127.0.0.1:{port}"
    builder = build("--sources", "1", "--streams", 1, "--metrics", f"127.0.0.1:{web}", "--sink", f"zmq-{kind}:{endpoint}")
    crate, record = Crate(builder.port, 1), 0
    descriptors = f"/proc/{builder.popen.pid}/fd"

    def client():
        if kind == "pub":
            return subscriber(zeromq, endpoint)
        one = zeromq.socket(zmq.PULL)
        one.connect(endpoint)
        return one

    def turned_away():
        shown = urllib.request.urlopen(f"http://127.0.0.1:{web}/metrics").read().decode()
        found = re.search(rf'port="{port}",reason="turned_away"}} (\d+)', shown)
        return int(found[1]) if found else 0

    def event_comes(to):
        nonlocal record
        crate.send(record)
        record += 1
        return to.poll(20)

    good, numbers = client(), []
    wait_for(lambda: event_comes(good))
    before = len(os.listdir(descriptors))

    def greeted():
        """A client that speaks and wants nothing."""
        one = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        with contextlib.suppress(ConnectionError, IndexError):
            greet(one, b"XSUB" if kind == "pub" else b"PULL")
        return one

    with contextlib.ExitStack() as stack:
        if how == "many":
            for _ in range(600):
                stack.enter_context(greeted())
            wait_for(lambda: turned_away() >= 600 + 1 - 512)
            wait_for(lambda: len(os.listdir(descriptors)) <= before + 512)
        else:
            for _ in range(10_000):
                greeted().close()
                if turned_away():
                    break
            assert turned_away()
        assert kind == "push" or event_comes(good)
    late = client()
    wait_for(lambda: event_comes(late))
    while kind == "pub" and good.poll(500):
        numbers.append(model.read_event(good.recv())[0].record)
    assert kind == "push" or numbers == list(range(numbers[0], record)), (numbers, record)
    crate.close()
    status, _, err = builder.finish()
    told = {"many": "there are too many clients", "fast": "clients come too fast"}[how]
    assert err.count(told) == 1, err
    assert status == 0 or kind == "push", err


def has_ended(connection):
    """What has come is discarded."""
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_what_clients_of_push_did_not_take_is_counted(build, tmp_path, zeromq):
    endpoint = f"ipc://{tmp_path}/push"
    builder = build("--sources", "1", "--streams", 1, "--sink", f"zmq-push:{endpoint}")
    wait_for(lambda: os.path.exists(tmp_path / "push"))
    client = slow_puller(zeromq, endpoint)
    crate = Crate(builder.port, 1)
    for record in range(60):
        crate.send(raw=model.message(1, record, words=[0x8000_8003] + [5] * 20_000))
    crate.close()
    status, found, err = builder.finish()
    arrived = 0
    while client.poll(500):
        client.recv()
        arrived += 1
    (sink,) = found["sinks"]
    lost = int(sink["error"].split("the last ")[1].split()[0])
    # What is in the buffers of the sockets may have arrived, or be cut.
    assert status == 3 and sink["intact"] == 0 and 60 - 8 <= arrived + lost <= 60, (arrived, found, err)
