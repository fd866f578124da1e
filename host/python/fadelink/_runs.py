"""Reads what `fadelink run` has written (docs/runs.md).

    run = fadelink.Run("runs/run_000012")
    words = run["left"].numpy()              # all words of the board `left`
    hits = run["events"].polars("hits")      # the hits of crates
    for run in fadelink.runs("runs"): ...    # all runs of a folder
    run.verify()                             # [] if it is complete, and every byte is what was received

A run that is not complete, or of which files are missing, longer or shorter, is opened with a `RunWarning`.

Plain files are mapped, not read: an array takes no memory until its words are looked at, and no copy is made of them.
pyarrow, polars, awkward and h5py are imported by the methods that use them: `pip install 'fadelink[runs]'`.
"""

from __future__ import annotations

import json
import mmap
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tomllib

from . import _fadelink

if TYPE_CHECKING:
    import awkward as ak
    import polars as pl
    import pyarrow as pa

__all__ = ["Board", "Crates", "Message", "Run", "RunWarning", "jagged", "runs"]

#: Version of the manifest's format that is read here.
FORMAT = 1
_HEADER = struct.Struct("<6IQqq")
_MAGIC = 0xC0DA2019


class RunWarning(UserWarning):
    """A run is not complete, or not what its manifest says."""


class _Sink(NamedTuple):
    """A sink of a board in the manifest."""

    kind: str
    place: str
    #: It has all that it was given.
    whole: bool
    #: The names of its files of data, in their order; None: the manifest does not say them.
    names: list[str] | None

    def files(self, folder: Path) -> list[Path]:
        """Its files of data, in their order: those that the manifest has, or those that are there."""
        return _parts(folder / self.place) if self.names is None else [folder / name for name in self.names]


def _sinks(board: Mapping[str, Any]) -> list[_Sink]:
    stream = _fadelink.stream_in_names(json.dumps({key: board.get(key) for key in ("stream", "peer")}))
    sinks = []
    for sink in board.get("sinks", []):
        kind, _, rest = str(sink["sink"]).partition(":")
        place = rest.split(",")[0].replace("{stream}", stream)
        whole, names = not sink.get("dropped") and not sink.get("error"), sink.get("files")
        # Descriptions, and the second table of Parquet, go with the file before them.
        data = None if names is None else [name for name in names if not name.endswith((".json", ".windows.parquet"))]
        sinks.append(_Sink(kind, place, whole, data))
    return sinks


def _parts(first: Path) -> list[Path]:
    """The files of one sink, in their order: data.h5, data.000001.h5, ..."""
    found: list[Path] = []
    part = first
    while part.exists():
        found.append(part)
        number = f"{len(found):06}"
        part = first.with_name(f"{first.stem}.{number}{first.suffix}")
    return found


def jagged(words: npt.ArrayLike, starts: npt.ArrayLike) -> ak.Array:
    """Splits an array into events of different lengths, without a copy.

    words: an array. starts: where each event begins; what is before the first one is left out.
    Returns an awkward array of as many lists as there are starts. Raises ValueError if the starts do not grow.
    """
    import awkward as ak

    array, offsets = np.asarray(words), np.append(np.asarray(starts, dtype=np.int64), len(np.asarray(words)))
    if len(offsets) > 1 and (np.diff(offsets) < 0).any() or offsets[0] < 0:
        raise ValueError(f"starts: expected places from 0 to {len(array)} that grow")
    layout = ak.contents.ListOffsetArray(ak.index.Index64(offsets), ak.contents.NumpyArray(array))
    return ak.Array(layout)


class Board:
    """The words of a board, or of one stream of it."""

    def __init__(self, folder: Path, report: Mapping[str, Any]):
        self._folder = folder
        #: All that the manifest has of it: settings, counters, hashes and more.
        self.report: Mapping[str, Any] = report

    def __repr__(self) -> str:
        return f"<Board {self.name}: {self.report.get('bytes', '?')} bytes, {'complete' if self.complete else 'NOT COMPLETE'}>"

    @property
    def name(self) -> str:
        """Its name in the experiment; of a TCP sender with several streams, with the port of this one."""
        return str(self.report["name"])

    @property
    def complete(self) -> bool:
        """True if all of its data is there."""
        return bool(self.report.get("complete"))

    @property
    def verified(self) -> bool | None:
        """True if its words were verified and are right; None if they were not verified."""
        return self.report.get("verified")

    @property
    def gaps(self) -> list[Any]:
        """Of a board with UDP: the datagrams that are missing, as the manifest has them."""
        return list(self.report.get("gaps") or [])

    @property
    def timeline(self) -> tuple[npt.NDArray[np.datetime64], npt.NDArray[np.uint64]]:
        """When its words have come: times in UTC, and the bytes that had come then; about one a second."""
        entries = np.array(self.report.get("timeline") or [], dtype=np.uint64).reshape(-1, 2)
        return entries[:, 0].astype("datetime64[ns]"), entries[:, 1]

    @property
    def files(self) -> list[Path]:
        """The files with all of its words, in their order: plain ones if there are any, else HDF5; empty if there are none."""
        for kind in ("file", "hdf5"):
            for sink in _sinks(self.report):
                if sink.kind == kind and sink.whole:
                    return sink.files(self._folder)
        return []

    def chunks(self, dtype: npt.DTypeLike | None = None) -> Iterator[npt.NDArray[Any]]:
        """The words of each file, in order: views of a plain file, copies of an HDF5 file.

        dtype: what to take the words as, such as "<u2" for four samples of each 64-bit word. Default: the words.
        Filler at the end of the last packet is left out. Raises FileNotFoundError if the run has no files of its words, ValueError
        if they have more or fewer words than the run.
        """
        files = self.files
        if not files:
            raise FileNotFoundError(f"board {self.name}: expected a sink file: or hdf5: that has lost nothing")
        arrays = [_words(file) for file in files]
        # A run that was closed after a crash may not know it.
        found, expected = sum(array.nbytes for array in arrays), self.report.get("bytes")
        if expected is not None and found != int(expected):
            raise ValueError(f"board {self.name}: {files[-1]}: the words end at byte {found}, expected {expected}")
        filler = int(self.report.get("filler_words") or 0)
        while filler:
            last = arrays.pop()
            if len(last) > filler:
                arrays.append(last[: len(last) - filler])
            filler -= min(filler, len(last))
        yield from (array if dtype is None else array.view(dtype) for array in arrays)

    def numpy(self, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """All words as one array: a view of the file if there is one plain file, a copy if there are several or HDF5.

        dtype: as for `chunks`, which makes no copies of several files either.
        """
        arrays = list(self.chunks(dtype))
        if not arrays:
            return np.empty(0, np.uint64 if dtype is None else dtype)
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def arrow(self, dtype: npt.DTypeLike | None = None) -> pa.ChunkedArray:
        """All words for Apache Arrow, a chunk for each file, without a copy of plain files."""
        import pyarrow as pa

        kind = pa.from_numpy_dtype(np.dtype(np.uint64 if dtype is None else dtype))
        chunks = [pa.array(array) for array in self.chunks(dtype)]
        return pa.chunked_array(chunks, type=chunks[0].type if chunks else kind)

    def polars(self, dtype: npt.DTypeLike | None = None) -> pl.Series:
        """All words as a Polars series, without a copy of plain files."""
        import polars as pl

        series = pl.from_arrow(self.arrow(dtype), rechunk=False)
        assert isinstance(series, pl.Series)
        return series.alias(self.name)

    def awkward(self, starts: npt.ArrayLike | None = None, dtype: npt.DTypeLike | None = None) -> ak.Array:
        """All words as an awkward array. starts: where events begin; the array has a list for each then (`jagged`)."""
        import awkward as ak

        words = self.numpy(dtype)
        return ak.Array(words) if starts is None else jagged(words, starts)


def _bytes(file: Path) -> IO[bytes]:
    """A regular file, open for reading: a pipe would have nothing until somebody writes into it."""
    if not S_ISREG(file.stat().st_mode):
        raise ValueError(f"{file}: not a regular file")
    return open(file, "rb")


def _text(file: Path) -> str:
    with _bytes(file) as opened:
        return opened.read().decode()


def _is_hdf5(file: Path) -> bool:
    with _bytes(file) as opened:
        return opened.read(8) == b"\x89HDF\r\n\x1a\n"


def _words(file: Path) -> npt.NDArray[Any]:
    if _is_hdf5(file):
        import h5py

        with h5py.File(file) as content:
            return np.asarray(content["words"][:])
    bits = int(json.loads(_text(file.with_name(file.name + ".json")))["word_bits"])
    kind = np.dtype(f"=u{bits // 8}")
    return np.memmap(file, kind, "r").view(np.ndarray) if file.stat().st_size else np.empty(0, kind)


class Message(NamedTuple):
    """A message of a crate."""

    source: int
    #: Number of the window.
    window: int
    #: Begin of the window in ns since 1970.
    time_ns: int
    #: Its words, a view of the file.
    words: npt.NDArray[np.uint32]


class Crates:
    """The events of crates. They have two tables: `hits`, a row for each hit, and `windows`, a row for each window (docs/fadc.md)."""

    def __init__(self, folder: Path, report: Mapping[str, Any]):
        self._folder = folder
        #: All that the manifest has of them: settings, windows and sources.
        self.report: Mapping[str, Any] = report

    def __repr__(self) -> str:
        return f"<Crates {self.name}: {self.report.get('events', '?')} events, {'complete' if self.complete else 'NOT COMPLETE'}>"

    @property
    def name(self) -> str:
        """Their name in the experiment."""
        return str(self.report["name"])

    @property
    def complete(self) -> bool:
        """True if no window is incomplete and nothing was late, twice or lost."""
        return bool(self.report.get("complete"))

    def _files(self, *kinds: str) -> tuple[str, list[Path]]:
        for kind in kinds:
            for sink in _sinks(self.report):
                if sink.kind == kind and sink.whole:
                    return kind, sink.files(self._folder)
        names = " or ".join(f"{kind}:" for kind in kinds)
        raise FileNotFoundError(f"crates {self.name}: expected a sink {names} that has lost nothing")

    def arrow(self, table: str = "hits") -> pa.Table:
        """The table `hits` or `windows` for Apache Arrow. Raises FileNotFoundError if the run has no Parquet or HDF5 files."""
        import pyarrow as pa
        import pyarrow.parquet

        if table not in ("hits", "windows"):
            raise ValueError(f"table {table!r}: expected hits or windows")
        kind, files = self._files("parquet", "hdf5")
        if kind == "parquet":
            parts = files if table == "hits" else [file.with_suffix(".windows.parquet") for file in files]
            return pa.concat_tables([pyarrow.parquet.read_table(part, memory_map=True) for part in parts])
        import h5py

        tables = []
        for file in files:
            with h5py.File(file) as content:
                # Of numpy's arrays no other copy is made.
                columns = {name: pa.array(content[table][name][:]) for name in content[table]}
            columns["time_ns"] = columns["time_ns"].view(pa.timestamp("ns", "UTC"))
            tables.append(pa.table(columns))
        return pa.concat_tables(tables)

    def numpy(self, table: str = "hits") -> dict[str, npt.NDArray[Any]]:
        """The columns of a table, by name."""
        columns = self.arrow(table)
        return {name: columns[name].to_numpy() for name in columns.column_names}

    def polars(self, table: str = "hits") -> pl.DataFrame:
        """A table as a Polars data frame, without a copy of what Arrow has read."""
        import polars as pl

        frame = pl.from_arrow(self.arrow(table), rechunk=False)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def awkward(self) -> ak.Array:
        """The events: a record for each window, with the columns of `windows`; its field `hits` is the list of the window's hits."""
        import awkward as ak

        windows, hits = self.arrow("windows"), self.arrow("hits")
        events = ak.from_arrow(windows)
        counts = windows["hits"].to_numpy()
        events["hits"] = ak.unflatten(ak.from_arrow(hits.drop_columns(["window", "time_ns"])), counts)
        return events

    def messages(self) -> Iterator[Message]:
        """The messages of the crates as they came, from a sink `file:`. Raises FileNotFoundError if the run has none."""
        for file in self._files("file")[1]:
            with _bytes(file) as opened:
                if not file.stat().st_size:
                    continue
                data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            place = 0
            while place < len(data):
                source, total, payload, _, magic, _, window, seconds, ns = _HEADER.unpack_from(data, place)
                if magic != _MAGIC:
                    raise ValueError(f"{file}: byte {place}: magic {magic:#010x}: expected {_MAGIC:#010x}")
                words = np.frombuffer(data, "<u4", payload // 4, place + _HEADER.size)
                yield Message(source, window, seconds * 1_000_000_000 + ns, words)
                place += total


class Run:
    """A run, by its folder. `run[name]` is a board or the crates of this name; `for name in run` gives all names."""

    def __init__(self, folder: str | Path, outside: bool = False):
        """Warns (`RunWarning`) of a run that is not complete, or whose files are not those of its manifest; `verify` reads them, too.

        outside: files elsewhere that the manifest names belong to it, and links are followed.
        Raises FileNotFoundError if the folder has no manifest, ValueError if its format is another one.
        """
        #: The folder.
        self.folder = Path(folder)
        self._outside = outside
        #: All that the program has written about the run (docs/runs.md).
        path = self.folder / "manifest.json"
        try:
            self.manifest: Mapping[str, Any] = json.loads(_text(path))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if not isinstance(self.manifest, dict):
            raise ValueError(f"{path}: expected an object of JSON")
        found = self.manifest.get("format")
        if found != FORMAT:
            raise ValueError(f"{path}: format {found}: expected {FORMAT}")
        #: What is known against it, as far as names and sizes of files tell; empty if nothing is.
        self.findings: list[str] = _fadelink.check_run(str(self.folder), outside, False)[1]
        for finding in self.findings:
            warnings.warn(f"{self.folder}: {finding}", RunWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<Run {self.number}: {self.state}, {', '.join(self)}>"

    @property
    def number(self) -> int:
        """Its number."""
        return int(self.manifest["run"])

    @property
    def title(self) -> str:
        """Its title in the experiment."""
        return str(self.manifest.get("title") or "")

    @property
    def state(self) -> str:
        """`running`, `stopping`, `complete`, `incomplete`, `end_not_confirmed`, `failed` or `crashed`."""
        return str(self.manifest["state"])

    @property
    def complete(self) -> bool:
        """True if all of its data was received, and nothing is known against it; `verify` reads it, too."""
        return self.state == "complete" and not self.findings

    @property
    def reasons(self) -> list[str]:
        """Why it is not complete: what each board reports, and what was found."""
        told = [f"{report['name']}: {reason['text']}" for report in self.manifest.get("boards") or [] for reason in report.get("reasons") or []]
        return told + self.findings

    def verify(self) -> list[str]:
        """Reads all of its files, and compares them with the hashes of the manifest, as `fadelink check` does.

        Returns what is not as it should be, in words; nothing of a run that is complete and as it was received.
        """
        return _fadelink.check_run(str(self.folder), self._outside, True)[1]

    @property
    def begin(self) -> datetime:
        """When it has begun, in UTC."""
        return datetime.fromisoformat(self.manifest["begin"]["utc"])

    @property
    def end(self) -> datetime | None:
        """When it has ended, in UTC; None: it goes on, or its program was ended by force."""
        end = self.manifest.get("end")
        return datetime.fromisoformat(end["utc"]) if end else None

    @property
    def experiment(self) -> dict[str, Any]:
        """The experiment, as its file has it."""
        return tomllib.loads(_text(self.folder / "experiment.toml"))

    @property
    def log(self) -> list[dict[str, Any]]:
        """What the program has told meanwhile: a record for each message."""
        return [json.loads(line) for line in _text(self.folder / "log.jsonl").splitlines()]

    @property
    def boards(self) -> dict[str, Board]:
        """The boards and streams with words, by name."""
        return {name: source for name, source in self._sources().items() if isinstance(source, Board)}

    @property
    def crates(self) -> dict[str, Crates]:
        """The crates, by name."""
        return {name: source for name, source in self._sources().items() if isinstance(source, Crates)}

    def _sources(self) -> dict[str, Board | Crates]:
        reports: Sequence[Mapping[str, Any]] = self.manifest.get("boards") or []
        sources: dict[str, Board | Crates] = {}
        for report in reports:
            is_crates = "events" in report
            sources[str(report["name"])] = Crates(self.folder, report) if is_crates else Board(self.folder, report)
        return sources

    def __getitem__(self, name: str) -> Any:
        sources = self._sources()
        if name not in sources:
            raise KeyError(f"{name}: expected one of {', '.join(sources)}")
        return sources[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources())


def runs(folder: str | Path) -> list[Run]:
    """All runs of a folder, in the order of their numbers. Warns (`RunWarning`) of those that cannot be read, and leaves them out.

    Raises FileNotFoundError if there is no such folder.
    """
    found: list[Run] = []
    for path in Path(folder).iterdir():
        if path.name.startswith("run_") and (path / "manifest.json").exists():
            try:
                found.append(Run(path))
            except (OSError, ValueError) as error:
                warnings.warn(str(error), RunWarning, stacklevel=2)
    return sorted(found, key=lambda run: run.number)
