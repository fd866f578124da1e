"""Files that `fadelink` has written, as numpy and pyarrow read them."""

import h5py
import numpy as np


def in_order(paths):
    """Files that rolled over: the first has no number in its name."""
    return sorted(paths, key=lambda path: (path.name.count("."), path.name))


def wrong_words(words, first=0):
    """How many of these words are not those of a counter."""
    return int((words != np.arange(first, first + len(words), dtype="u8")).sum())


def read_hits(path):
    """{window: sorted (source, slot, channel, tick, charge)} of an HDF5 file, and its columns of windows."""
    with h5py.File(path) as file:
        assert file.attrs["complete"] == 1
        windows = {name: column[:] for name, column in file["windows"].items()}
        hits = {int(window): [] for window in windows["window"]}
        columns = [file["hits"][name][:].tolist() for name in ("window", "source", "slot", "channel", "tick", "charge")]
    for window, *hit in zip(*columns, strict=True):
        hits[window].append(tuple(hit))
    return {window: sorted(found) for window, found in hits.items()}, windows
