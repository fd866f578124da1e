"""What was written by a program that a fault has hit, and a builder with crates that send to it."""

import contextlib
import json
import select
import subprocess
import threading
from collections import Counter

import h5py
import numpy as np
import pyarrow.parquet

from support.broker import free_ports
from support.crate import WINDOW_NS, Crate, hits_of
from support.files import in_order, read_hits, wrong_words
from support.netns import PATIENCE
from support.paths import FADELINK


def closed_words(folder, stem):
    """Words of all HDF5 files that were closed, and how many of them are wrong, from the first of the run on."""
    words = wrong = 0
    for path in in_order(folder.glob(f"{stem}*.h5")):
        with h5py.File(path) as file:
            assert file.attrs["complete"] == 1 and file.attrs["first_word"] == words, path
            data = file["words"][:]
        wrong += wrong_words(data, words)
        words += len(data)
    return words, wrong


def plain_words(folder, stem):
    """Words of plain files that rolled over, wrong ones, and words of those whose manifests call them complete."""
    words = wrong = complete = 0
    for path in in_order(folder.glob(f"{stem}*.bin")):
        data = np.fromfile(path, dtype="<u8")
        wrong += wrong_words(data, words)
        words += len(data)
        manifest = path.with_name(f"{path.name}.json")
        if manifest.exists() and json.loads(manifest.read_text())["complete"]:
            complete += len(data)
    return words, wrong, complete


def closed_windows(folder, stem):
    """Windows of all files of hits that were closed, HDF5 and Parquet, and how many of them are wrong."""
    found = Counter()
    for kind in ("h5", "parquet"):
        expected = 0
        for path in in_order(path for path in folder.glob(f"{stem}*.{kind}") if ".windows." not in path.name):
            if kind == "h5":
                hits, _ = read_hits(path)
            else:
                table = path.with_name(path.name.replace(".parquet", ".windows.parquet"))
                if ".0" in path.name:
                    name, number, _ = path.name.split(".")
                    table = path.with_name(f"{name}.windows.{number}.parquet")
                if not table.exists():
                    continue
                hits = {window: [] for window in pyarrow.parquet.read_table(table)["window"].to_pylist()}
                columns = pyarrow.parquet.read_table(path)
                rows = zip(*(columns[name].to_pylist() for name in ("window", "source", "slot", "channel", "tick", "charge")), strict=True)
                for window, *hit in rows:
                    hits[window].append(tuple(hit))
            for window in sorted(hits):
                right = sorted((source, *hit) for source in (1, 2) for hit in hits_of(source, window))
                found["wrong"] += window != expected or sorted(hits[window]) != right
                expected = window + 1
                found["windows"] += 1
    return found["windows"], found["wrong"]


class Crates:
    """Two crates in software that send windows to `port`, `batch` at a time, until they are asked to end or nobody listens."""

    def __init__(self, port, batch):
        self.stopping, self.batch = threading.Event(), batch
        self.crates = [Crate(port, source) for source in (1, 2)]
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        first = 0
        with contextlib.suppress(OSError):
            # The builder closes its direction when it wants no more.
            while not self.stopping.is_set() and not select.select([crate.socket for crate in self.crates], [], [], 0.002)[0]:
                for crate in self.crates:
                    crate.send(*range(first, first + self.batch))
                first += self.batch
        for crate in self.crates:
            crate.close()

    def stop(self):
        self.stopping.set()
        self.thread.join()


@contextlib.contextmanager
def building(*words, batch=5, **options):
    """`fadelink build` on loopback with two crates that send to it: the process."""
    (port,) = free_ports(1)
    words = [FADELINK, "build", "--tcp", port, "--listen", "127.0.0.1", "--window-ns", WINDOW_NS, "--sources", "1,2",
             "--silence", 60, "--json", *words]  # fmt: skip
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    crates = Crates(port, batch)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        crates.stop()


def process_end(process):
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err
