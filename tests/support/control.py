"""A `fadelink run` that waits for commands, and what it is asked at its socket."""

import contextlib
import http.client
import json
import socket
import struct

from support import fadc_model as model
from support.crate import WINDOW_NS

HEAD = 'start = "command"\nend = "told"\n'
TCP = HEAD + '[[tcp]]\nname = "sender"\naddress = "127.0.0.1"\nport = 10000\nverify = "counter"\nsinks = ["file:{board}.dat"]\n'
CRATES = (
    HEAD + f'[[crates]]\nname = "sender"\nport = 10000\nwindow_ns = {WINDOW_NS}\nexpect = 1\n'
    'sinks = ["file:{board}.dat", "hdf5:{board}.h5", "parquet:{board}.parquet"]\n'
)
COUNTER = b"".join(struct.pack("<Q", n) for n in range(3000))
WINDOWS = b"".join(model.message(1, record, [], WINDOW_NS) for record in range(20))
DATA = {TCP: COUNTER, CRATES: WINDOWS}


class Unix(http.client.HTTPConnection):
    """HTTP at a UNIX socket."""

    def __init__(self, path):
        super().__init__("fadelink", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def ask(lab, method, path, **headers):
    """The answer of the `fadelink run`: its status, and what it says."""
    with contextlib.closing(Unix(lab.runs / "control.socket")) as one:
        one.request(method, path, headers=headers)
        answer = one.getresponse()
        text = answer.read()
    return answer.status, json.loads(text) if path != "/metrics" else text.decode()


def state(lab):
    return ask(lab, "GET", "/run")[1]


def waits(lab):
    return state(lab)["state"] == "waiting"
