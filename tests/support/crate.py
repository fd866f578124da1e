"""FADC crates in software, whose messages a test sends by hand, and a builder for them."""

import json
import random
import signal
import socket
import subprocess
import time
import urllib.request

import zmq

from support import fadc_model as model
from support.broker import free_ports
from support.netns import PATIENCE, wait_for
from support.paths import FADELINK

WINDOW_NS = 4096


class Crate:
    """A crate that a test sends by hand."""

    def __init__(self, port, source, receiver=None, address="127.0.0.1"):
        """`receiver`: the process that is to listen. `address`: its own, of loopback."""
        self.source = source
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
                return
            except OSError:
                assert receiver is None or receiver.poll() is None, receiver.communicate()
                assert time.monotonic() < end
                time.sleep(0.05)

    def send(self, *records, hits=None, raw=b""):
        data = raw
        for record in records:
            data += model.message(self.source, record, hits_of(self.source, record) if hits is None else hits, WINDOW_NS)
        self.socket.sendall(data)

    def wait_for_stop(self):
        """Until the receiver asks for the end."""
        self.socket.settimeout(PATIENCE)
        assert self.socket.recv(1) == b""

    def close(self):
        self.socket.close()


def hits_of(source, record):
    """Hits that anybody can compute again."""
    r = random.Random(f"{source}/{record}")
    slots = [slot for slot in range(3, 21) if slot not in (11, 12)]
    return sorted({(r.choice(slots), r.randrange(16), r.randrange(WINDOW_NS // 4), r.randrange(8192)) for _ in range(r.randrange(8))})


def report(finished):
    """Exit status, JSON report and standard error of `fadelink build` or `feed`."""
    status, out, err = finished
    assert out, err
    found = json.loads(out)
    # Exit status, verdict and reasons say the same.
    assert (status == 0) == found["complete"] == (found["verdict"] == "complete"), (status, found)
    assert found["complete"] == (not found.get("reasons", not found["complete"])), found
    return status, found, err


def reasons(found):
    """Names of the reasons for which it is not complete."""
    return [reason["reason"] for reason in found["reasons"]]


class Builder:
    """`fadelink build` on loopback, with its page, which shows what it has done so far. Its crates may close before they are asked to."""

    def __init__(self, *words, end="told", **options):
        self.port, self.web = free_ports(2)
        words = [FADELINK, "build", "--tcp", self.port, "--listen", "127.0.0.1", "--window-ns", WINDOW_NS, "--json",
                 "--web", f"127.0.0.1:{self.web}", "--end", end, *words]  # fmt: skip
        self.popen = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def wait_for(self, *path, count):
        """Waits until a count of live.json is reached: `joiner`, `sources`, a source as "0x00000001", its count."""

        def look():
            value = json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.web}/live.json"))
            for name in path:
                value = (value or {}).get(name)
            return value is not None and value >= count

        wait_for(look)

    def wait_for_source(self, source, name, count):
        self.wait_for("joiner", "sources", f"0x{source:08x}", name, count=count)

    def finish(self):
        out, err = self.popen.communicate(timeout=PATIENCE)
        return report((self.popen.returncode, out, err))

    def stop(self):
        self.popen.send_signal(signal.SIGTERM)
        return self.finish()


def peak(process):
    """The most memory that a process has had, in MiB."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) >> 10


def slow_puller(zeromq, endpoint):
    """A client of PUSH with as little room as there is, which reads when the test does."""
    client = zeromq.socket(zmq.PULL)
    client.setsockopt(zmq.RCVHWM, 1)
    client.setsockopt(zmq.RCVBUF, 1 << 14)
    client.connect(endpoint)
    return client
