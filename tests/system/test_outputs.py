"""Files that are written have one writer, replace nothing, and are what was written when the run calls them complete."""

import itertools
import json
import os
import shutil
import signal

import blake3
import pytest
from support.crate import Crate, reasons
from support.lab import fade
from support.netns import FEBS, report, wait_for
from support.paths import FADELINK

USED = "is being written by another sink, of this program or another one; choose another name"
BUILD = [FADELINK, "build", "--tcp", 10000, "--window-ns", 16384, "--expect", 1]


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def append(path):
    with open(path, "ab") as file:
        file.write(b"x")


def replace(path):
    shutil.copy(path, f"{path}.copy")
    os.rename(f"{path}.copy", path)


def rename_folder(path):
    path.parent.rename(path.parent.with_name("elsewhere"))


HARMS = {
    "removed": (os.unlink, "was removed or renamed"),
    "renamed": (lambda path: os.rename(path, f"{path}.other"), "was removed or renamed"),
    "folder": (rename_folder, "or a folder of its path was"),
    "replaced": (replace, "was replaced by another one"),
    # What is written behind that decides whether its size or its content tells it.
    "cut": (cut, "another program has changed it"),
    "appended": (append, "another program has changed it"),
}


def each_harm(argument, values):
    """Each to one of these: the tests of the crates do all to all."""
    return pytest.mark.parametrize(("harm", argument), list(zip(HARMS, itertools.cycle(values))))


def has_content(*paths):
    return all(path.exists() and path.stat().st_size > 1 for path in paths)


def words_of(sinks):
    return [word for sink in sinks for word in ("--sink", sink)]


@pytest.mark.parametrize(
    ("sinks", "status", "message"),
    [
        (["file:{}/a", "file:{}/./a"], 2, "/./a: file:{}/a has the same place; expected another name"),
        (["file:{}/a", "hdf5:{}/b/../a"], 2, "a has the same place"),
        (["file:{}/a", "file:{}/soft"], 1, USED),
        (["file:{}/a", "hashes:{}/soft"], 1, USED),
        (["file:{}/a.part"], 2, "names that end in `.part` are those of files that are not finished"),
        (["hdf5:{}/a.json"], 2, "names that end in `.json` are those of descriptions of files"),
    ],
)  # fmt: skip
def test_sinks_of_a_program_have_files_of_their_own(bench, sinks, status, message):
    """It is told before a board is asked for anything: none is there."""
    (bench.tmp / "b").mkdir()
    (bench.tmp / "soft").symlink_to("a")
    found, _, err = bench.receive(*words_of(sink.format(bench.tmp) for sink in sinks)).finish()
    assert found == status and message.format(bench.tmp) in err, err


@pytest.mark.parametrize(
    ("sinks", "message"),
    [
        (["parquet:{}/a.x", "parquet:{}/a.y"], "has files with the same names"),
        (["parquet:{}/a.x", "file:{}/a.000004.windows.parquet"], "has files with the same names"),
        (["file:{}/a", "hdf5:{}/a"], "has the same place"),
        (["hdf5:{}/a", "hdf5:{}/soft/a"], "has the same place"),
    ],
)
def test_sinks_of_a_builder_have_files_of_their_own(bench, sinks, message):
    (bench.tmp / "soft").symlink_to(".")
    status, _, err = bench.start(bench.pc_ns, *BUILD, *words_of(sink.format(bench.tmp) for sink in sinks)).finish()
    assert status == 2 and message in err, err


SAME = "of this program, too; choose another name"
ROOM = "this is standard output, which has room for one stream, and not for --json beside it"


@pytest.mark.parametrize(
    ("words", "stream", "status", "message"),
    [
        (["receive", "--out", "{}/run.dat"], "stdout", 1, f"run.dat is standard output {SAME}"),
        (["receive", "--out", "{}/run.dat", "--json"], "stdout", 2, f"--out {{}}/run.dat: {ROOM}"),
        (["receive", "--out", "/dev/stdout", "--json"], "stdout", 2, f"--out /dev/stdout: {ROOM}"),
        (["receive", "--out", "/dev/stdout"], "stdout", 1, f"/dev/stdout is standard output {SAME}"),
        (["receive", "--out", "/dev/stdout", "--json"], "pipe", 2, f"--out /dev/stdout: {ROOM}"),
        (["receive", "--out", "-", "--json"], "pipe", 2, f"--out -: {ROOM}"),
        (["receive", "--out", "-"], "both", 1, "--out -: standard error is the same file or pipe"),
        (["receive", "--sink", "hdf5:{}/run.dat,overwrite"], "stdout", 1, f"run.dat is standard output {SAME}"),
        (["receive", "--sink", "hashes:{}/run.dat", "--json"], "stderr", 1, f"run.dat is standard error {SAME}"),
        (["receive", "--out", "{}/run", "--overwrite", "--json"], "description", 1, f"run.json is standard output {SAME}"),
        (["build", "--sink", "file:{}/run.dat,overwrite"], "stdout", 1, f"run.dat is standard output {SAME}"),
        (["run", "{}/experiment.toml"], "stderr", 1, f"run.dat is standard error {SAME}"),
    ],
)  # fmt: skip
def test_no_sink_writes_where_the_program_prints(lab, words, stream, status, message):
    bench, tmp = lab.bench, lab.bench.tmp
    lab.write(fade("left", 0, f'sinks = ["file:{tmp}/run.dat"]'))
    command, *more = [word.format(tmp) for word in words]
    before = {"receive": ["--iface", "eth0", "--feb", FEBS[0]], "build": BUILD[2:], "run": []}[command]
    name = tmp / ("run.json" if stream == "description" else "run.dat")
    with open(name, "w") as file:
        to = {"stderr": {"stderr_to": file}, "pipe": {}, "both": {"stdout_to": file, "stderr_to": file}}.get(stream, {"stdout_to": file})
        found, _, err = bench.fadelink(command, *before, *more, **to).finish()
    told = err or name.read_text()
    assert found == status and message.format(tmp) in told, told
    assert "stderr_to" in to or name.read_text() == "", "nothing was written over it"


def test_programs_have_files_of_their_own(lab):
    """A receiver, a builder and two experiments: who comes second does not begin, and the first one is complete."""
    bench, data = lab.bench, lab.bench.tmp / "data"
    bench.sim("--boards", 2)
    process = bench.receive("--sink", f"hdf5:{data}.h5,every=0", "--out", data, "--verify", "counter", "--quiet")
    bench.wait_for_frames()
    for sink in (f"file:{data}", f"file:{data}.h5,overwrite", f"hdf5:{data}.h5"):
        status, _, err = bench.start(bench.pc_ns, *BUILD, "--sink", sink).finish()
        assert status == 1 and (USED in err or f"{data} exists" in err), err
    lab.write(fade("right", 1, f'sinks = ["file:{data},overwrite"]'))
    status, _, err = lab.start().finish()
    assert status == 1 and USED in err and not list(lab.runs.glob("run_*")), err
    process.signal(signal.SIGINT)
    status, found = report(process.finish())
    assert status == 0 and found["febs"][0]["verified"] and data.stat().st_size == found["febs"][0]["bytes"], found


@each_harm("name", ["a.dat", "a.h5.part", "a.b3"])
def test_what_others_do_to_a_file_is_told(bench, harm, name):
    bench.sim()
    folder = bench.tmp / "folder"
    folder.mkdir()
    process = bench.receive("--quiet", *words_of([f"file:{folder}/a.dat", f"hdf5:{folder}/a.h5,every=0", f"hashes:{folder}/a.b3"]))
    wait_for(lambda: has_content(folder / "a.dat", folder / "a.h5.part", folder / "a.b3"))
    do, expected = HARMS[harm]
    do(folder / name)
    process.signal(signal.SIGINT)
    status, found = report(process.finish())
    (feb,) = found["febs"]
    texts = [reason["text"] for reason in feb["reasons"] if reason["reason"] == "sink_failed"]
    assert status == 3 and any(expected in text and name in text for text in texts), feb
    damaged = {sink["sink"]: sink["intact"] for sink in feb["sinks"] if sink["error"]}
    assert harm == "folder" or list(damaged.values()) == [0], damaged


def written_events(build, kind, folder):
    """A builder, its crate, and the file that is written."""
    builder = build("--sources", "1", "--streams", 1, "--sink", f"{kind}:{folder}/a,every=0")
    crate = Crate(builder.port, 1)
    crate.send(*range(20))
    part = folder / "a.part"
    builder.wait_for("events", count=20)
    wait_for(lambda: has_content(part))
    return builder, crate, part


@each_harm("kind", ["file", "hdf5", "parquet"])
def test_what_others_do_to_events_is_told(build, tmp_path, harm, kind):
    folder = tmp_path / "folder"
    folder.mkdir()
    builder, crate, part = written_events(build, kind, folder)
    do, expected = HARMS[harm]
    do(part)
    crate.close()
    status, found, err = builder.finish()
    assert status == 3 and reasons(found) == ["sink_failed"] and expected in err, (found, err)


@each_harm("name", ["log.jsonl", "left.hashes", "left.dat"])
def test_what_others_do_in_the_folder_of_a_run_is_told(lab, harm, name):
    lab.bench.sim()
    lab.write(fade("left"))
    process, folder = lab.start(), lab.runs / "run_000001"
    wait_for(lambda: has_content(folder / "left.dat", folder / "left.hashes", folder / "log.jsonl"))
    do, expected = HARMS[harm]
    do(folder / name)
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status != 0 and ("complete" not in err.replace("NOT COMPLETE", "")) and expected in err, err
    if harm != "folder":
        assert lab.manifest()["state"] != "complete" and lab.check()[0] == 3


FILES = ["file:log.jsonl", "file:experiment.toml,overwrite", "hdf5:manifest.json", "file:x.part", "file:more.hashes",
         "file:sub/../log.jsonl", "file:{board}.transmissions"]  # fmt: skip
NAMES = [(kind, sink) for kind in ("fade", "crates") for sink in FILES] + [("fade", "hashes:x.hashes"), ("fade", "share:log.jsonl")]


@pytest.mark.parametrize(("kind", "sink"), NAMES)
def test_names_of_a_run_are_its_own(lab, kind, sink):
    if kind == "crates":
        lab.write(f'[[crates]]\nname = "left"\nport = 10002\nwindow_ns = 65536\nexpect = 1\nsinks = ["{sink}"]\n')
    else:
        lab.write(fade("left", 0, f'sinks = ["{sink}"]'))
    status, _, err = lab.bench.run("run", lab.file, "--check")
    assert status == 2 and f"line 6: {kind}[0].sinks: " in err and "expected another name" in err, err
    assert not lab.runs.exists()


def test_a_file_of_an_earlier_run_stays(bench):
    """Its numbered files, wherever the gap in them is, and one that comes while the run goes on."""
    bench.sim()
    data = bench.tmp / "data.dat"
    third = bench.tmp / "data.000003.dat"
    third.write_text("before")
    status, _, err = bench.receive("--sink", f"file:{data},roll=1M").finish()
    assert status == 1 and f"{third} exists; choose another name" in err and not data.exists(), err
    third.unlink()
    process = bench.receive("--quiet", "--sink", f"file:{data},roll=4M", "--sink", f"hdf5:{bench.tmp}/data.h5,roll=4M")
    wait_for(lambda: data.exists() and any(bench.tmp.glob("data*.h5*")))
    # One that it comes to: it is slower than this loop.
    names = [bench.tmp / f"data.{number:06}.h5" for number in range(5, 400)]
    for name in names:
        name.write_text("before")
    status, found = report(process.finish())
    assert status == 3 and reasons(found["febs"][0]) == ["sink_failed"], found
    assert "exists" in found["febs"][0]["reasons"][0]["text"]
    assert any(name.read_bytes() == b"before" for name in names)


def test_a_stream_that_has_ended_is_looked_at_again(net):
    """The file of one is cut while another one still comes."""
    out = net.tmp / "{stream}.dat"
    net.sim("--protocol", "tcp", "--phy", "gmii", "--words", 1000)
    process = net.fadelink("receive", "--tcp", 10000, "--streams", 2, "--end", "told", "--json", "--out", out)
    is_whole = lambda path: path.exists() and json.loads(path.read_text())["complete"]  # noqa: E731
    wait_for(lambda: any(is_whole(path) for path in net.tmp.glob("*.dat.json")))
    (file,) = net.tmp.glob("*.dat")
    cut(file)
    net.sim("--protocol", "tcp", "--phy", "gmii", "--feb", FEBS[1], "--ip", "10.9.0.3", "--words", 1000)
    status, found = report(process.finish())
    texts = [reason["text"] for stream in found["streams"] for reason in stream["reasons"]]
    assert status == 3 and any("has 4000 bytes instead of 8000" in text for text in texts), found


def write_into(path, at):
    """As another program does that has it open."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_what_is_written_into_words_of_hdf5_is_told(lab):
    """The plain file beside it is right, and does not answer for it."""
    lab.bench.sim()
    lab.write('sinks = ["file:{board}.dat", "hdf5:{board}.h5,every=0"]\n' + fade("left"))
    process, part = lab.start(), lab.runs / "run_000001/left.h5.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 12 << 20)
    write_into(part, 6 << 20)
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status == 3 and "left.h5: /words is not what was written: another program has changed it" in err, err
    assert lab.manifest()["state"] == "incomplete" and lab.check()[0] == 3


@pytest.mark.parametrize("kind", ["file", "parquet"])
def test_the_hash_of_events_is_that_of_what_was_written(build, tmp_path, kind):
    builder, crate, part = written_events(build, kind, tmp_path)
    written = part.read_bytes()
    write_into(part, 0)
    crate.close()
    status, found, err = builder.finish()
    assert status == 0, err
    files = {os.path.basename(file["path"]): file for file in found["sinks"][0]["files"]}
    content = (tmp_path / "a").read_bytes()
    right = written[:1] + content[1:]
    assert content != right and files["a"] == {
        "path": f"{tmp_path}/a",
        "bytes": len(content),
        "blake3": blake3.blake3(right).hexdigest(),
    }
    assert set(files) == ({"a", "a.windows.parquet"} if kind == "parquet" else {"a"})


REMADE = {
    "data": ("left.dat", "was replaced by another one"),
    "description": ("left.dat.json", "was replaced by another one"),
    "in place": ("left.dat", "was written by another program after it was finished"),
}


@pytest.mark.parametrize("what", REMADE)
def test_a_finished_file_stays_what_it_is(lab, what):
    """Also if the new one has the inode, the length and the content of the one before."""
    lab.bench.sim()
    lab.write('sinks = ["file:{board}.dat,roll=1M"]\n' + fade("left"))
    process, folder = lab.start(), lab.runs / "run_000001"
    wait_for((folder / "left.000003.dat").exists)
    name, expected = REMADE[what]
    if what == "in place":
        write_into(folder / name, 100)
    else:
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / name).write_bytes(content)
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status == 3 and f"{name} {expected}" in err, err
    assert lab.manifest()["state"] == "incomplete" and lab.check()[0] == 3


def test_files_of_others_are_not_those_of_the_run(lab):
    lab.bench.sim()
    lab.write(fade("left"))
    process, folder = lab.start(), lab.runs / "run_000001"
    wait_for(lambda: has_content(folder / "left.dat"))
    (folder / "notes.txt").write_text("of somebody else")
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status == 0 and lab.manifest()["state"] == "complete", err
    (folder / "experiment.toml").write_text("of somebody else")
    assert set(lab.manifest()["files"]) == {"left.dat", "left.dat.json", "experiment.toml", "log.jsonl"}
    status, found = lab.check()
    size = f"it has 16 bytes, expected {lab.manifest()['files']['experiment.toml']['bytes']}"
    assert status == 3 and found["findings"] == ["notes.txt: it does not belong to the run", f"experiment.toml: {size}"], found
