"""Runs that somebody has changed: between a crash and the program that goes on, and when they have ended."""

import json
import os
import random
import re
import shutil
import signal
import time
import warnings

import fadelink
import pytest
from support.lab import end, fade, is_counter, sealed, words
from support.netns import FEBS, wait_for
from support.paths import FADELINK, SEED

KIB = 1 << 10
# More of a board's words than this is confirmed, but for so much of their end.
UNCONFIRMED = 512 * KIB


def kill(process):
    process.signal(signal.SIGKILL)
    process.finish()


def begin(lab, more="", size=3 << 20):
    """A run of confirmation on the disk that was killed: its folder."""
    sim = lab.bench.sim()
    lab.write('confirm = "durable"\nsinks = ["file:{board}.dat,roll=2M", "file:{board}.copy"]\n' + more + fade("left"))
    process = lab.start()
    copy = lab.runs / "run_000001/left.copy"
    wait_for(lambda: copy.exists() and copy.stat().st_size > size)
    kill(process)
    return sim, lab.folder(1)


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def restore(folder, files):
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_a_run_does_not_go_on_without_what_was_confirmed(lab):
    """The error names file and byte; nothing is cut. With all back in its place the run goes on, and is complete."""
    sim, folder = begin(lab)
    left, copy, hashes = folder / "left.dat", folder / "left.copy", folder / "left.hashes"
    transmissions, manifest = folder / "left.transmissions", folder / "manifest.json"
    # What one sink has more than the other is not confirmed.
    size = min(copy.stat().st_size, sum(path.stat().st_size for path in folder.glob("left*.dat")))
    moments = random.Random(SEED)
    middle = moments.randrange(size - UNCONFIRMED)
    other = bytes(copy.stat().st_size)
    cases = [
        (copy, lambda: os.truncate(copy, size - UNCONFIRMED - 65536), "the words end at byte"),
        (copy, lambda: os.truncate(copy, 0), "the words end at byte 0, expected"),
        (copy, copy.unlink, "the words end at byte 0, expected"),
        (copy, lambda: copy.write_bytes(other), "bytes 0 to"),
        (copy, lambda: flip(copy, middle), "of the words are not those that were received"),
        (left, left.unlink, "the words end at byte 0, expected"),
        (left, lambda: flip(left, 1000), "bytes 0 to"),
        (hashes, hashes.unlink, "it is missing, and there are"),
        (hashes, lambda: os.truncate(hashes, 0), "it ends with byte 0 of the words, expected"),
        (hashes, lambda: flip(hashes, 60), "byte 56: expected the record of a hash"),
        (transmissions, transmissions.unlink, "No such file"),
        (transmissions, lambda: flip(transmissions, 3), "left.transmissions"),
        (manifest, lambda: flip(manifest, manifest.read_bytes().index(b'"computer": "') + 14), "it is not as it was written"),
        (manifest, manifest.unlink, "expected the folder of a run"),
    ]
    before = snapshot(folder)
    for path, change, what in cases:
        change()
        changed = {name: content for name, content in snapshot(folder).items() if name != "log.jsonl"}
        status, _, err = lab.start("--duration", "1").finish()
        assert status == 1 and path.name in err and what in err and "Traceback" not in err, (path.name, what, err)
        assert {name: content for name, content in snapshot(folder).items() if name != "log.jsonl"} == changed, "nothing is cut"
        assert not (lab.runs / "run_000002").exists()
        restore(folder, before)
    process = lab.start()
    wait_for(lambda: copy.stat().st_size > size + (1 << 20))
    status, err = end(process)
    assert status == 0 and lab.manifest(1)["state"] == "complete", err
    assert is_counter(words(copy)) and lab.check(1)[0] == 0, lab.check(1)
    lab.bench.end_sim(sim)


@pytest.mark.parametrize("name", ["experiment.toml", "left.hashes", "left.transmissions", "manifest.json", "left.dat", "left.000001.dat"])
def test_a_run_does_not_go_on_with_pipes_or_links(lab, name):
    """They are not waited for, and not followed: such a run is left as it is, and blocks no other one if its user lets it not go on."""
    _, folder = begin(lab)
    path = folder / name
    moved = path.rename(lab.bench.tmp / "moved")
    before = moved.read_bytes()
    # Data may also be in a pipe.
    for make in (lambda: path.symlink_to(moved), *([] if name.endswith(".dat") else [lambda: os.mkfifo(path), path.mkdir])):
        make()
        for options in ([], ["--close"]):
            status, _, err = lab.start("--duration", "1", *options).finish()
            assert status == (0 if options else 1) and str(path) in err and ("expected a file" in err or "it is a link" in err), err
            assert lab.folder(1).is_dir() and moved.read_bytes() == before
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_such_a_run_can_be_closed(lab):
    """As it is, and the next one begins."""
    _, folder = begin(lab)
    copy, hashes = folder / "left.copy", folder / "left.hashes"
    hashes.unlink()
    before = copy.read_bytes()
    status, _, err = lab.start("--close", "--duration", "1").finish()
    manifest = lab.manifest(1)
    (board,) = manifest["boards"]
    assert status == 0 and manifest["state"] == "crashed" and copy.read_bytes() == before, err
    assert [reason["reason"] for reason in board["reasons"]] == ["changed"] and "left.hashes: it is missing" in board["reasons"][0]["text"]
    assert lab.check(1)[0] == 3 and lab.manifest(2)["state"] == "complete" and lab.check(2)[0] == 0


def test_what_was_written_long_before_is_compared(lab):
    """A block that is not the last one is read while the run goes on."""
    _, folder = begin(lab, size=18 << 20)
    copy = folder / "left.copy"
    flip(copy, 5 << 20)
    process = lab.start()
    size = copy.stat().st_size
    wait_for(lambda: copy.stat().st_size > size + (1 << 20))
    status, err = end(process)
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and lab.manifest(1)["state"] == "incomplete", err
    (reason,) = board["reasons"]
    assert reason["reason"] == "changed" and reason["text"].endswith("left.copy: bytes 0 to 16777216 of the words are not those that were received")
    assert "left.copy: bytes 0 to" in err


def test_a_board_tells_what_was_confirmed(lab):
    """The hashes end before what the board has confirmation of, and may be all that there was: the run does not go on."""
    sim, folder = begin(lab)
    hashes = folder / "left.hashes"
    content = hashes.read_bytes()
    ends = [int.from_bytes(content[at : at + 8], "little") for at in range(0, len(content) - 55, 56)]
    # The board has 32 packets on the way at most, other boards 64.
    os.truncate(hashes, 56 * sum(end <= ends[-1] - 36 * 8192 for end in ends))
    before = snapshot(folder)
    process = lab.start()
    status, _, err = process.finish()
    assert status == 3 and "the board sends words behind those that it has confirmation of" in err and "left.copy has" in err, err
    assert {name: before[name] for name in before if not name.endswith((".json", ".jsonl", ".toml"))}.items() <= snapshot(folder).items(), (
        "nothing is cut"
    )
    assert lab.manifest(1)["state"] == "running"
    lab.bench.end_sim(sim)


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_board_tells_at_once_what_its_files_miss(lab, cut):
    """Fewer packets than it may have on the way: nothing but what the board sends shows that they were confirmed."""
    sim, folder = begin(lab)
    status, out, err = lab.bench.run("status", "--iface", "eth0", "--feb", FEBS[0], "--json")
    assert status == 0, err
    # The files may have packets of which the board has no confirmation.
    least = 8192 * (json.loads(out)["counters"]["acknowledged"] - cut)
    os.truncate(folder / "left.copy", least)
    before = 0
    for path in [folder / "left.dat", *sorted(folder.glob("left.0*.dat"))]:
        size = path.stat().st_size
        os.truncate(path, max(0, min(size, least - before)))
        before += size
    begun = time.monotonic()
    process = lab.start()
    status, _, err = process.finish()
    assert status == 3 and time.monotonic() - begun < 10, err
    (found,) = re.findall(r"left.copy has (\d+) bytes alone: expected (\d+) bytes or more, those from byte (\d+) on are missing", err)[:1]
    has, expected, byte = map(int, found)
    assert has == byte <= least and 0 < expected - has <= 64 * 8192, err
    assert lab.manifest(1)["state"] == "running"
    lab.bench.end_sim(sim)


@pytest.fixture
def ended(lab):
    """A run that has ended: its folder."""
    sim = lab.bench.sim()
    lab.write('sinks = ["file:{board}.dat,roll=4M", "hdf5:{board}.h5"]\n[stop]\nsize = "20M"\n' + fade("left"))
    status, _, err = lab.run()
    assert status == 0 and lab.check()[0] == 0, err
    lab.bench.end_sim(sim)
    return lab.folder()


def changes(folder):
    """(what is done, what the check says) of each kind of change of a folder."""
    at = lambda name: folder / name  # noqa: E731
    content = json.loads(at("manifest.json").read_text())

    def claim(change):
        def write():
            changed = json.loads(json.dumps(content))
            change(changed, changed["boards"][0])
            at("manifest.json").write_text(sealed(changed))

        return write

    def link(name, to):
        at(name).rename(to)
        at(name).symlink_to(to)

    twice = lambda: at("manifest.json").write_text(at("manifest.json").read_text().replace('"files": {', '"files": {"left.h5": {"bytes": 1},', 1))  # noqa: E731
    return [
        (at("log.jsonl").unlink, "log.jsonl: it is missing"),
        (lambda: os.truncate(at("log.jsonl"), 10), "log.jsonl: it has 10 bytes, expected"),
        (lambda: flip(at("log.jsonl"), 20), "log.jsonl: its content is not what was written"),
        (lambda: flip(at("experiment.toml"), 3), "experiment.toml: its content is not what was written"),
        (at("experiment.toml").unlink, "experiment.toml: it is missing"),
        (lambda: flip(at("manifest.json"), len(at("manifest.json").read_bytes()) // 2), "manifest.json"),
        (twice, "`left.h5`: expected it once"),
        (claim(lambda run, board: board.update(complete=False)), "left: complete: false: expected true"),
        (claim(lambda run, board: board.update(reasons=[{"reason": "missing"}])), "left: reasons: "),
        (claim(lambda run, board: board["hashes"]["blake3"].pop()), "left: hashes.blake3: "),
        (claim(lambda run, board: board.update(bytes=8)), "left: hashes.bytes: "),
        (claim(lambda run, board: board.update(words=1)), "left: words: 1: expected"),
        (claim(lambda run, board: board.update(sinks=[])), "left: sinks: []: expected one or more"),
        (claim(lambda run, board: run["boards"].append(board)), "boards: name: \"left\": expected a name that no other board has"),
        (claim(lambda run, board: run.update(boards=[])), "boards: expected `left`, which the experiment has"),
        (claim(lambda run, board: run["files"]["left.dat"].update(bytes=8)), "bytes of the files of file:left.dat,roll=4M"),
        (claim(lambda run, board: run["files"].pop("log.jsonl")), "manifest.json: files: log.jsonl: expected its hash"),
        (claim(lambda run, board: run["files"].update({"a/b.dat": {"bytes": 1}})), "files: a/b.dat: expected the name of a file in the folder"),
        (claim(lambda run, board: run["files"].update({"../b.dat": {"bytes": 1}})), "../b.dat: it is outside the folder of the run, and was not read"),
        (claim(lambda run, board: run.update(error="x")), "manifest.json: error: \"x\": expected nothing"),
        (claim(lambda run, board: run.update(state="done")), "the run is done: expected complete"),
        (lambda: at("more.dat").touch(), "more.dat: it does not belong to the run"),
        (lambda: at("more").mkdir(), "more: the folder does not belong to the run"),
        (lambda: at("left.dat.part").touch(), "left.dat.part: it was not finished"),
        (lambda: at("left.hashes").touch(), "left.hashes: it is of a run that goes on"),
        (lambda: link("left.dat", folder.parent / "moved"), "left.dat: it is a link, and was not followed"),
        (lambda: link("left.h5", folder.parent / "moved"), "left.h5: it is a link, and was not followed"),
        (at("left.000001.dat").unlink, "left.000001.dat: it is missing"),
        (lambda: os.truncate(at("left.dat"), 8), "left.dat: it has 8 bytes, expected"),
        (at("left.h5").unlink, "left.h5: it is missing"),
    ]  # fmt: skip


def clean(folder, files):
    shutil.rmtree(folder)
    folder.mkdir()
    restore(folder, files)


def test_each_change_has_its_finding(lab, ended):
    """By the check, by the playback and by Python: none calls it what was received."""
    before = snapshot(ended)
    for change, what in changes(ended):
        change()
        status, out, err = lab.bench.run("check", ended, "--json")
        findings = json.loads(out)["findings"] if out else [err]
        assert status in (1, 3) and any(what in finding for finding in findings), (what, findings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                run = fadelink.Run(ended)
                told = run.verify()
            except (OSError, ValueError) as error:
                told = [str(error)]
        assert any(what in finding for finding in told), (what, told)
        clean(ended, before)
        assert lab.check()[0] == 0


def test_python_tells_of_what_is_not_as_it_was(ended):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fadelink.Run(ended)
    assert run.complete and run.reasons == [] == run.verify()
    flip(ended / "left.dat", 8)
    assert fadelink.Run(ended).complete and ["bytes 0 to 16777216 of" in found for found in run.verify()] == [True]
    flip(ended / "left.dat", 8)
    with open(ended / "left.dat", "ab") as file:
        file.write(bytes(8))
    with pytest.warns(fadelink.RunWarning, match="left.dat: it has"):
        run = fadelink.Run(ended)
    assert not run.complete and run.reasons == run.findings
    with pytest.raises(ValueError, match="board left: .*: the words end at byte"):
        run["left"].numpy()


def test_a_playback_tells_of_what_is_not_as_it_was(lab, ended):
    """It compares what it sends, and ends with status 3."""
    flip(ended / "left.dat", 1 << 20)
    lab.write(lab.file.read_text().replace('verify = "counter"', "").replace('"20M"', '"1T"'))
    played = lab.bench.start(lab.bench.board_ns, FADELINK, "replay", ended, "--iface", "feb0", "--speed", "max")
    assert "are played back" in played.popen.stderr.readline()
    process = lab.start()
    size = lambda: sum(path.stat().st_size for path in lab.runs.glob("run_000002/left*.dat"))  # noqa: E731
    total = sum(path.stat().st_size for path in ended.glob("left*.dat"))
    wait_for(lambda: size() >= total - 8192)
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 0
    status, _, err = played.finish()
    assert status == 3 and "left: bytes 0 to 16777216 of the board's words are not those that were received" in err, err


def test_a_run_whose_words_nobody_keeps(lab):
    """It has received all, and says that no output keeps it."""
    lab.bench.sim("--feb", FEBS[0])
    lab.write(fade("left", 0, 'sinks = ["share:left.socket"]'))
    status, manifest, err = lab.run("--duration", 1)
    (board,) = manifest["boards"]
    assert status == 0 and manifest["state"] == "complete" and board["kept"] is False, err
    assert "complete, not kept by any output" in err
    status, found = lab.check()
    assert status == 3 and "left: there is nothing to check: no output of the run keeps what it has sent" in found["findings"], found
    status, out, err = lab.bench.fadelink("receive", "--iface", "eth0", "--feb", FEBS[0], "--packets", 10, "--out", "/dev/null").finish()
    assert status == 0 and "complete, not kept by any output" in err, err
    status, out, err = lab.bench.fadelink("receive", "--iface", "eth0", "--feb", FEBS[0], "--packets", 10, "--out", lab.bench.tmp / "data").finish()
    assert status == 0 and "not kept" not in err, err


def test_check_refuses_what_it_cannot_read(lab):
    """A file that is gone or elsewhere, links, folders, pipes, unfinished files: nothing of it is called right."""
    elsewhere = lab.bench.tmp / "elsewhere.dat"
    lab.bench.sim("--boards", 2)
    lab.write(fade("left", 0, f'sinks = ["file:{elsewhere}"]') + fade("right", 1, 'sinks = ["share:right.socket"]'))
    assert lab.run("--duration", 1)[0] == 0
    status, found = lab.check()
    assert status == 3 and found["bytes"] < elsewhere.stat().st_size, found
    outside = [f"{elsewhere}{end}: it is outside the folder of the run, and was not read (--outside reads it)" for end in ("", ".json")]
    nothing = [
        "left: nothing of what it has sent could be checked",
        "right: there is nothing to check: no output of the run keeps what it has sent",
    ]
    assert found["findings"] == [outside[0], *nothing, outside[1], "there is nothing to check: the run has data of no board"]
    status, out, _ = lab.bench.run("check", lab.folder(), "--json", "--outside")
    assert status == 3 and json.loads(out)["findings"] == nothing[1:] and json.loads(out)["bytes"] >= elsewhere.stat().st_size
    elsewhere.unlink()
    status, out, _ = lab.bench.run("check", lab.folder(), "--json", "--outside")
    assert status == 3 and f"{elsewhere}: it is missing" in json.loads(out)["findings"]

    lab.bench.sim("--feb", FEBS[2])
    lab.write(fade("left", 2))
    assert lab.run("--duration", 1)[0] == 0
    folder = lab.folder()
    data = folder / "left.dat"
    assert lab.check()[0] == 0
    for make, finding in [
        (lambda path: path.mkdir(), "{}: the folder does not belong to the run"),
        (lambda path: path.symlink_to("/etc/passwd"), "{}: it does not belong to the run"),
        (os.mkfifo, "{}: it does not belong to the run"),
    ]:
        make(folder / "more")
        assert lab.check()[1]["findings"] == [finding.format("more")]
        (folder / "more").rmdir() if (folder / "more").is_dir() else (folder / "more").unlink()
    (folder / "more.h5.part").touch()
    assert lab.check()[1]["findings"] == ["more.h5.part: it was not finished"]
    (folder / "more.h5.part").unlink()
    moved = data.rename(lab.bench.tmp / "moved.dat")
    for make in (lambda: data.symlink_to(moved), lambda: data.mkdir(), lambda: os.mkfifo(data)):
        make()
        status, found = lab.check()
        assert status == 3 and found["bytes"] < moved.stat().st_size and any(line.startswith("left.dat: ") for line in found["findings"]), found
        data.rmdir() if data.is_dir() and not data.is_symlink() else data.unlink()
    boards = lab.manifest()["boards"]
    boards[0]["sinks"][0]["files"] = ["../../../../etc/passwd"]
    lab.change(boards=boards)
    assert any("is outside the folder of the run" in line or "is missing" in line for line in lab.check()[1]["findings"])
    manifest = folder / "manifest.json"
    moved = manifest.rename(lab.bench.tmp / "moved.json")
    for make, expected in [
        (lambda: manifest.symlink_to(moved), "it is a link, and was not followed (--outside follows it)"),
        (lambda: os.mkfifo(manifest), "expected a file"),
    ]:
        make()
        for command in ("check", "replay"):
            status, _, err = lab.bench.run(command, folder)
            assert status == 1 and err == f"fadelink: {manifest}: {expected}\n", err
        manifest.unlink()
