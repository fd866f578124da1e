"""Boards of every firmware, in software, against the command: found out, received without loss, whatever dies."""

import json
import signal
import sys

import h5py
import numpy as np
import pytest
from support.netns import FEBS, report, wait_for
from support.paths import FADELINK, SEED

#: Name of the kind: how the board is started, and what is to be found.
KINDS = {
    "fadelink": (["--firmware", "fadelink"], "fade10g", "fadelink", "little"),
    "fadelink-v1": (["--protocol", "fade1"], "fade1", "fadelink", "little"),
    "published-10g": (["--firmware", "published-10g"], "fade10g", "published-10g", "big"),
    "published-v1": (["--firmware", "published-v1"], "fade1", "published-v1", "big"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
INTERRUPTED = "earlier transmission was still running"


def board(bench, kind, *options, feb=FEBS[0], iface="feb0"):
    process = bench.start(bench.board_ns, FADELINK, "feb", "--iface", iface, "--feb", feb, "--seed", SEED, *KINDS[kind][0], *options)
    assert "in software" in process.popen.stderr.readline()
    return process


def end(kind):
    """What is accepted as the end of its data: the published core of FADE v1 tells none."""
    return ["--end", "silence"] if kind == "published-v1" else []


def assert_counter(data, words):
    assert len(data) == words and (data == np.arange(words, dtype="u8")).all()


@pytest.mark.parametrize("kind,loss", [*((kind, "0.03") for kind in KINDS), ("published-10g", "0")])
def test_every_word_arrives_and_its_kind_is_told(bench, kind, loss):
    """Nothing is told to the receiver but the board's address; files and sinks hold native words, and say so."""
    board(bench, kind, "--loss", loss)
    _, protocol, firmware, order = KINDS[kind]
    out, h5 = bench.tmp / "data", bench.tmp / "data.h5"
    finished = bench.receive("--packets", 300, "--verify", "counter", "--out", out, "--sink", f"hdf5:{h5}", *end(kind)).finish()
    status, result = report(finished)
    feb = result["febs"][0]
    assert status == 0 and feb["verified"] and result["complete"], finished
    assert (feb["protocol"], feb["firmware"], feb["word_order"]) == (protocol, firmware, order)
    assert feb["counters"]["protocol_errors"] == 0 and feb["counters"]["interrupted"] == 0
    assert INTERRUPTED not in finished[2], "a fresh board"
    if loss == "0":
        assert feb["counters"]["unexpected_responses"] == 0
    words = feb["words"] - feb["filler_words"]
    assert_counter(np.fromfile(out, "u8")[:words], words)
    bits = 32 if kind == "published-v1" else 64
    manifest = json.loads((bench.tmp / "data.json").read_text())
    assert manifest == {
        "feb": FEBS[0], "protocol": protocol, "firmware": firmware, "word_bits": bits, "word_order": "little",
        "wire_word_order": order, "bytes": feb["bytes"], "complete": True,
    }  # fmt: skip
    with h5py.File(h5) as file:
        assert file["words"].dtype == f"u{bits // 8}"
        assert_counter(file["words"][:].view("u8")[:words], words)
        told = {name: file.attrs[name] for name in ("firmware", "word_order", "wire_word_order", "word_bits", "complete")}
        assert told == {"firmware": firmware, "word_order": "little", "wire_word_order": order, "word_bits": bits, "complete": 1}


def all_of(bench, full, *options):
    """Receives all that a board has, as `finish`: STOP comes behind its full packets of so many bytes; a last one follows STOP."""
    out = bench.tmp / "all"
    receiver = bench.receive("--verify", "counter", "--out", out, "--overwrite", *options, *([] if full else ["--duration", 0.2]))
    if full:
        wait_for(lambda: out.exists() and out.stat().st_size >= full)
        receiver.signal(signal.SIGINT)
    finished = receiver.finish()
    out.unlink()
    return finished


@every_kind
def test_killed_receivers_leave_nothing_behind_that_the_next_takes_for_its_own(bench, kind):
    board(bench, kind, "--loss", "0.03")
    out = bench.tmp / "data"
    for _ in range(4):
        receiver = bench.receive("--out", out, "--quiet")
        wait_for(lambda: out.exists() and out.stat().st_size > 300_000)
        receiver.signal(signal.SIGKILL)
        receiver.finish()
        out.unlink()
        out.with_name("data.json").unlink()
    finished = bench.receive("--out", out, "--verify", "counter", "--packets", 100, *end(kind)).finish()
    status, result = report(finished)
    feb = result["febs"][0]
    assert status == 0 and feb["verified"], finished
    # It is told where data of it was heard.
    assert (INTERRUPTED in finished[2]) == (feb["counters"]["interrupted"] > 0)
    # It has ended well: there is nothing to report the next time.
    finished = bench.receive("--verify", "counter", "--packets", 20, *end(kind)).finish()
    assert report(finished)[0] == 0 and INTERRUPTED not in finished[2], finished


@pytest.mark.parametrize("words", [1, 255, 256, 1023, 1024, 5000])
def test_numbers_of_valid_words(bench, words):
    """Of the last packet. (host/receiver/tests/all/firmware.rs has all 1,024.)"""
    board(bench, "published-10g", "--loss", "0.02", "--words", words)
    finished = all_of(bench, words // 1024 * 8192)
    status, result = report(finished)
    assert status == 0 and result["febs"][0]["words"] == words and result["febs"][0]["verified"], finished


def test_a_published_v1_board_keeps_a_partly_filled_packet(bench):
    """Its STOP sends nothing: whole packets of 128 words arrive, and nothing tells that there were no more of them."""
    board(bench, "published-v1", "--words", 1000)
    for more, expected, verdict in (([], 3, "end_not_confirmed"), (end("published-v1"), 0, "complete")):
        finished = all_of(bench, 7 * 1024, "--firmware", "published-v1", *more)
        status, result = report(finished)
        feb = result["febs"][0]
        assert (status, feb["verdict"]) == (expected, verdict), finished
        assert feb["words"] == 7 * 128 and feb["filler_words"] == feb["wrong_words"] == 0, finished


def test_firmware_and_word_order_can_be_told(bench):
    board(bench, "published-10g")
    finished = bench.receive("--packets", 20, "--verify", "counter", "--firmware", "published-10g").finish()
    assert report(finished)[0] == 0, finished
    out = bench.tmp / "wire"
    finished = bench.receive("--packets", 20, "--word-order", "little", "--out", out).finish()
    status, result = report(finished)
    assert status == 0 and result["febs"][0]["word_order"] == "little"
    words = result["febs"][0]["words"]
    assert_counter(np.fromfile(out, ">u8"), words)
    # One who says what is not so gets what he asked for, and the words tell.
    finished = bench.receive("--packets", 20, "--word-order", "little", "--verify", "counter").finish()
    assert report(finished)[0] == 3
    for wrong in (["--firmware", "other"], ["--word-order", "middle"], ["--firmware", "published-v1", "--protocol", "fade10g"]):
        status, _, err = bench.receive(*wrong).finish()
        assert status == 2 and len(err.splitlines()) == 1 and wrong[-1] in err, err


def test_one_way_of_the_published_core_alone_is_harmless(bench):
    for quirk in ["big-count", "start-continues", "sequence-from-1", "no-identify", "ignores-nack", "response-stays",
                  "zero-filler", "executes-again", "any-computer"]:  # fmt: skip
        process = board(bench, "fadelink", "--quirk", quirk, "--words", 3333, "--loss", "0.02")
        finished = all_of(bench, 3 * 8192, "--word-order", "little")
        status, result = report(finished)
        assert status == 0 and result["febs"][0]["words"] == 3333 and result["febs"][0]["verified"], (quirk, finished)
        process.signal(signal.SIGTERM)
        process.finish()


def lines(finished):
    status, out, err = finished
    return status, {line["feb"]: line for line in map(json.loads, out.splitlines())}


def test_discover_status_and_top_tell_the_kind(bench):
    febs = dict(zip(KINDS, FEBS))
    for kind, feb in febs.items():
        board(bench, kind, feb=feb)
    status, found = lines(bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.4))
    ours = {febs["fadelink"], febs["fadelink-v1"]}
    assert status == 0 and set(found) == ours, "idle boards of others do not hear what is sent to all"
    assert found[febs["fadelink-v1"]]["identity"] == {"state": "idle", "transmission": 0, "packets": 0, "resets": {"count": 0, "by": None},
                                                        "checksum": None}  # fmt: skip
    status, found = lines(bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.4, "--feb", febs["published-10g"]))
    assert status == 0 and found[febs["published-10g"]]["firmware"] == "published-10g"
    assert found[febs["published-10g"]]["identity"] is None and febs["fadelink"] in found
    # Those that send are heard: here to a receiver on this computer.
    files = {feb: bench.tmp / feb for feb in febs.values()}
    receivers = [bench.receive("--quiet", "--out", files[feb], *end(kind), feb=feb) for kind, feb in febs.items()]
    wait_for(lambda: all(file.exists() and file.stat().st_size > 0 for file in files.values()))
    status, found = lines(bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.4))
    told = {kind: (found[feb]["protocol"], found[feb]["firmware"]) for kind, feb in febs.items()}
    assert status == 0 and told == {kind: KINDS[kind][1:3] for kind in KINDS}, found
    named = [word for feb in febs.values() for word in ("--feb", feb)]
    status, found = lines(bench.run("status", "--iface", "eth0", "--json", *named))
    assert status == 0 and {kind: found[feb]["firmware"] for kind, feb in febs.items()} == {k: KINDS[k][2] for k in KINDS}
    assert found[febs["published-10g"]]["counters"]["sent"] > 0 and found[febs["published-v1"]]["counters"] is None
    status, out, err = bench.run("top", "--iface", "eth0", "--batch", 1, *named)
    assert status == 0 and [line.split()[-1] for line in out.splitlines()[1:]] == [KINDS[kind][2] for kind in KINDS], out
    for receiver in receivers:
        receiver.signal(signal.SIGINT)
        assert report(receiver.finish())[1]["complete"]
    # In words: for who reads it.
    status, out, err = bench.run("receive", "--iface", "eth0", "--feb", febs["published-10g"], "--packets", 5)
    assert status == 0 and "FADE-10G, published-10g, words big-endian on the wire" in err, err


PYTHON = """
import sys, numpy as np, fadelink
with fadelink.Receiver("eth0") as receiver, receiver.open(sys.argv[1]) as feb:
    feb.start()
    words, stopped = [], False
    for block in feb.blocks(timeout=0.2):
        words.append(block.copy())
        if not stopped and sum(map(len, words)) > 50_000:
            feb.stop()
            stopped = True
    words = np.concatenate(words)
    print(feb.kind(), words.dtype, feb.ending())
    assert (words.view("u8") == np.arange(len(words.view("u8")), dtype="u8")).all()
"""


@pytest.mark.parametrize("kind", ["published-10g", "published-v1"])
def test_python_hands_out_native_words(bench, kind):
    board(bench, kind)
    process = bench.start(bench.pc_ns, sys.executable, "-c", PYTHON, FEBS[0])
    status, out, err = process.finish()
    dtype = "uint32" if kind == "published-v1" else "uint64"
    ending = "silence" if kind == "published-v1" else "confirmed"
    assert status == 0 and out.strip() == f"{(KINDS[kind][1], KINDS[kind][2], 'big')} {dtype} {ending}", (out, err)
