"""Files that `fadelink` has written, as numpy and pyarrow read them; captures for it to read."""

import time

import h5py
import numpy as np
from scapy.utils import PcapWriter


def in_order(paths):
    """Files that rolled over: the first has no number in its name."""
    return sorted(paths, key=lambda path: (path.name.count("."), path.name))


def stands_still(path, seconds):
    """Whether a file has something, and did not grow for some time: no event tells that nothing more comes."""
    size = path.stat().st_size if path.exists() else 0
    time.sleep(seconds)
    return size and path.stat().st_size == size


def wrong_words(words, first=0):
    """How many of these words are not those of a counter."""
    return int((words != np.arange(first, first + len(words), dtype="u8")).sum())


def read_hits(path, complete=True):
    """{window: sorted (source, slot, channel, tick, charge)} of an HDF5 file, and its columns of windows. `complete`: what it says."""
    with h5py.File(path) as file:
        assert file.attrs["complete"] == complete
        windows = {name: column[:] for name, column in file["windows"].items()}
        hits = {int(window): [] for window in windows["window"]}
        columns = [file["hits"][name][:].tolist() for name in ("window", "source", "slot", "channel", "tick", "charge")]
    for window, *hit in zip(*columns, strict=True):
        hits[window].append(tuple(hit))
    return {window: sorted(found) for window, found in hits.items()}, windows


def write_capture(path, frames):
    """A capture of Ethernet frames, a microsecond apart. With times of day scapy rounds some to a second and a million microseconds."""
    with PcapWriter(str(path), linktype=1) as capture:
        capture.write_header(None)
        for number, frame in enumerate(frames):
            capture.write_packet(frame, sec=number // 1_000_000, usec=number % 1_000_000)
