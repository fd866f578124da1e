"""What a run is begun with is right before it begins: names of sinks that are free, folders that are there, fields that mean something."""

import os

import pytest
from support.lab import Lab, fade
from support.tcp_run import tcp, whole_run

REGISTERS = 'name = "a board"\n'
READS = "it is a file that `fadelink run` reads itself; expected another name"
WRITES = "is the name of a file that the run writes itself; expected another name"


@pytest.fixture
def lab(bench):
    return Lab(bench)


def check(lab, **options):
    """The error of `--check`, which makes nothing."""
    before = sorted(lab.bench.tmp.rglob("*"))
    status, out, err = lab.bench.run("run", "--check", lab.file, **options)
    assert sorted(lab.bench.tmp.rglob("*")) == before and status in (0, 2) and not out, (status, out, err)
    assert (status == 0) == (not err), err
    return err


def test_the_files_of_the_program_are_no_sinks(lab):
    lab.file = lab.file.with_name("e.toml")
    (lab.bench.tmp / "registers.toml").write_text(REGISTERS)
    (lab.bench.tmp / "kafka.conf").write_text("")
    registers = fade("b", 0, 'registers = "registers.toml"')
    for sink in ("file:../../e.toml,overwrite", "file:../lock,overwrite", "hashes:../control.socket", f"file:{lab.file},overwrite",
                 "file:../../registers.toml,overwrite", "hdf5:../../kafka.conf,overwrite"):  # fmt: skip
        tcp(lab, sink, "file:{board}.dat", more='kafka_config_file = "kafka.conf"')
        lab.write(lab.file.read_text() + registers)
        err = check(lab)
        assert f": tcp[0].sinks: `{sink}`: " in err and READS in err, err


@pytest.mark.parametrize(
    ("experiment", "sink"),
    [
        ("x.dat.json", "file:../../x.dat,overwrite"),
        ("x.dat.json.part", "file:../../x.dat"),
        ("e.000001.toml", "file:../../e.toml,roll=1M,overwrite"),
        ("e.1234567.toml.json", "file:../../e.toml,every=1,overwrite"),
        ("e.h5.part", "hdf5:../../e.h5,overwrite"),
        ("e.000002.h5.part", "hdf5:../../e.h5,overwrite"),
        ("e.toml", "file:../../link.toml,overwrite"),
        ("e.toml", "file:../../other.toml,overwrite"),
        ("e.toml", "file:../../far/e.toml,overwrite"),
        ("e.toml", "file:../../numbered.dat,roll=1M"),
        ("e.toml", "file:../../described.dat,overwrite"),
        ("e.toml", "file:../../lock.link,overwrite"),
        ("e.toml", "file:../../kafka,overwrite"),
        ("e.toml", "file:../../key,overwrite"),
        ("e.toml", "hdf5:../../registers,overwrite"),
    ],
)
def test_no_name_of_a_sink_leads_to_a_file_of_the_program(lab, experiment, sink):
    """Neither by a number, nor by its description, nor by a link, whether that leads to what is there or not."""
    tmp = lab.bench.tmp
    lab.file = tmp / experiment
    (tmp / "kafka.json").write_text(f"ssl.ca.location={tmp}/key.json\n")
    (tmp / "key.json").write_text("")
    (tmp / "registers.part").write_text(REGISTERS)
    tcp(lab, sink, "file:{board}.dat", more='kafka_config_file = "kafka.json"')
    lab.write(lab.file.read_text() + fade("b", 0, 'registers = "registers.part"\nsinks = ["file:{board}.dat"]'))
    (tmp / "link.toml").symlink_to(experiment)
    os.link(lab.file, tmp / "other.toml")
    (tmp / "far").symlink_to(".")
    os.link(lab.file, tmp / "numbered.000007.dat")
    os.link(lab.file, tmp / "described.dat.json")
    (tmp / "lock.link").symlink_to("runs/lock")
    err = check(lab)
    assert f": tcp[0].sinks: `{sink}`: " in err and READS in err, err


@pytest.mark.parametrize(
    "sink",
    ["file:manifest,overwrite", "hdf5:manifest", "file:experiment.toml", "file:unfinished", "hashes:log.jsonl", "file:../../run_{run}/manifest",
     "file:x.hashes", "file:x.hashes,roll=1M", "file:{board}/manifest"],
)  # fmt: skip
def test_no_name_of_a_sink_is_that_of_a_file_of_a_run(lab, sink):
    (lab.bench.tmp / "run_1").mkdir()
    tcp(lab, sink.replace("{board}", "../.."), "file:{board}.dat")
    err = check(lab)
    assert ": tcp[0].sinks: `" in err and WRITES in err, err


def test_names_that_are_like_those_of_the_program_are_free(lab):
    (lab.bench.tmp / "copy.toml").write_text("")
    for sink in ("file:manifest.dat", "hdf5:experiment", "file:../../e.toml.dat,roll=1M", "file:../../copy.toml", "file:lock", "file:/dev/null"):
        tcp(lab, sink, "file:{board}.dat")
        assert check(lab) == "", sink


def test_a_folder_with_the_number_of_the_run_is_there_when_it_has_one(lab):
    tcp(lab, "file:../../data/{run}/{board}.dat", "file:{board}.dat")
    assert "there is no folder " in check(lab)
    (lab.bench.tmp / "data").mkdir()
    assert check(lab) == ""
    status, _, err = lab.start().finish()
    told = f"sinks: `file:../../data/{{run}}/{{board}}.dat`: there is no folder {lab.bench.tmp}/data/1, and the run makes none: expected a folder"
    assert status == 1 and told in err and not list(lab.runs.glob("run_*")), err
    (lab.bench.tmp / "data/1").mkdir()
    status, err = whole_run(lab)
    assert status == 0 and (lab.bench.tmp / "data/1/a.dat").stat().st_size == 8000, err
    assert lab.bench.run("check", "--outside", lab.folder())[0] == 0


@pytest.mark.parametrize("made", [False, True])
def test_a_sink_is_at_the_same_place_wherever_the_program_is_started(lab, made):
    tmp = lab.bench.tmp
    (tmp / "sub").mkdir()
    (tmp / "data").mkdir()
    lab.file, lab.runs = tmp / "sub/e.toml", tmp / "sub/runs"
    if made:
        lab.runs.mkdir()
    for place, is_there in (("../../../data/x", True), ("../../../../data/x", False)):
        tcp(lab, f"file:{place}")
        for folder, name in ((tmp, "sub/e.toml"), (tmp / "sub", "e.toml"), (tmp / "data", "../sub/e.toml"), (tmp, lab.file)):
            status, _, err = lab.bench.start(lab.bench.pc_ns, *lab.bench.fadelink_words("run", "--check", name), cwd=folder).finish()
            assert (status == 0) == is_there and (is_there or "there is no folder " in err), (place, folder, err)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('folder = ""', "folder: ``: expected a path"),
        ('folder = "\\u0000"', "folder: `\\0`: expected a path"),
        ('folder = "e.toml"', "folder: `{tmp}/e.toml`: {tmp}/e.toml is not a folder; expected one, or a name that nothing has"),
        ('folder = "e.toml/runs"', "folder: `{tmp}/e.toml/runs`: {tmp}/e.toml is not a folder; expected one, or a name that nothing has"),
        ('kafka_config_file = "none"', "kafka_config_file: `{tmp}/none`: No such file or directory"),
        (f'folder = "{"x" * 256}"', "folder: `{tmp}/" + "x" * 256 + "`: File name too long"),
        ('stop = [10.0, 2030-12-01T18:00:00Z, "1T", 5.0]', 'stop: `[10.0, 2030-12-01T18:00:00Z, "1T", 5.0]`: expected a table'),
        ('disk = ["1G", "hold"]', 'disk: `["1G", "hold"]`: expected a table'),
        ('crates = [["a", 10000]]', 'crates[0]: `["a", 10000]`: expected a table'),
        ("confirm = 5", "confirm: `5`: expected memory or durable"),
        ("http = 5", "http: `5`: expected an IP address and a port, as 127.0.0.1:9470"),
        *(
            (f"{name} = {value}", f"{name}: `{value}`: expected {expected}")
            for value in (1 << 63, 1 << 70)
            for name, expected in (
                ("folder", "a text"),
                ("title", "a text"),
                ("sinks", "a list"),
                ("confirm", "memory or durable"),
                ("disk", "a table"),
            )
        ),
    ],
)
def test_a_field_that_is_none_is_told(lab, line, told):
    lab.file = lab.bench.tmp / "e.toml"
    tcp(lab)
    lab.write(line + "\n" + lab.file.read_text().replace('http = "127.0.0.1:9470"\n', ""))
    told = f"e.toml: line 1: {told.format(tmp=lab.bench.tmp)}"
    assert told in check(lab)
    # Nothing is made by a run either.
    status, _, err = lab.start().finish()
    assert status == 2 and told in err and list(lab.bench.tmp.iterdir()) == [lab.file], err


@pytest.mark.parametrize(("text", "told"), [(None, "cannot read {path}: No such file"), ("x", "{path} does not describe registers")])
def test_a_description_of_registers_that_is_none_is_told(lab, text, told):
    path = lab.bench.tmp / "muon.toml"
    if text:
        path.write_text(text)
    lab.write(fade("b", 0, 'registers = "muon.toml"'))
    assert f"fade[0].registers: `muon.toml`: {told.format(path=path)}" in check(lab)


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        ("file:.", "it is the name of a folder; expected that of a file"),
        ("file:..", "it is the name of a folder; expected that of a file"),
        ("file:x/", "it is the name of a folder; expected that of a file"),
        ("file:x/.", "it is the name of a folder; expected that of a file"),
        ("hdf5:../../data", "/data is a folder; expected the name of a file"),
        ("file:../../runs", "/runs is a folder; expected the name of a file"),
        ("file:../run_000005/a.dat", "/runs/run_000005 is the name of the folder of a run; expected another name"),
        ("file:../run_000005", "/runs/run_000005 is the name of the folder of a run; expected another name"),
        ("file:{Run}.dat", "`{Run}` is replaced by nothing; expected {board}, {run}, {stream}"),
        ("file:a\0b", "it has a zero byte; expected the name of a file"),
    ],
)
def test_a_sink_that_is_no_file_is_told(lab, sink, told):
    (lab.bench.tmp / "data").mkdir()
    tcp(lab, sink)
    err = check(lab)
    shown = sink.replace("\0", "\\0")
    assert f": tcp[0].sinks: `{shown}`: " in err and told in err, err


@pytest.mark.parametrize("name", ["e.toml", "runs/lock", "runs/control.socket"])
def test_a_socket_of_a_sink_is_no_file_of_the_program(lab, name):
    lab.file = lab.bench.tmp / "e.toml"
    sink = f"zmq-pub:ipc://{lab.bench.tmp}/{name}"
    lab.write(f"[[crates]]\nname = 'a'\nport = 10000\nwindow_ns = 4096\nexpect = 1\nsinks = ['{sink}']\n")
    err = check(lab)
    assert f": crates[0].sinks: `{sink}`: " in err and READS in err, err


@pytest.mark.parametrize(
    ("ports", "told"),
    [
        (["crates 10000", "crates 10000"], "crates[1].port: `10000`: crates[0].port has this port; expected another one"),
        (["tcp 10000", "crates 10000"], "crates[0].port: `10000`: tcp[0].port has this port; expected another one"),
        (["http 127.0.0.1:10000", "tcp 10000"], "tcp[0].port: `10000`: http has this port; expected another one"),
        (["http 127.0.0.1:9000", "crates 1", "web 127.0.0.1:9000"], "crates[0].web: `9000`: http has this port; expected another one"),
        (["http [::ffff:127.0.0.1]:10000", "crates 10000"], "crates[0].port: `10000`: http has this port; expected another one"),
        (["http [::]:10000", "crates 10000"], "crates[0].port: `10000`: http has this port; expected another one"),
        (["http [::1]:10000", "crates 10000"], None),
        (["http 127.0.0.1:0", "crates 1", "web 127.0.0.1:0"], None),
        (["http 127.0.0.1:9000", "crates 1", "sinks zmq-pub:tcp://*:9000"], "crates[0].sinks: `9000`: http has this port; expected another one"),
        (["crates 9000", "sinks zmq-push:tcp://[::]:9000"], "crates[0].port: `9000`: crates[0].sinks has this port; expected another one"),
        (["crates 1", "sinks zmq-pub:tcp://lo:9000", "crates 9000"], None),
        (["crates 10000", "listen 127.0.0.2", "crates 10000", "listen 127.0.0.3"], None),
        (["tcp 10000", "tcp 10000"], None),
    ],
)
def test_ports_that_two_have_are_told(lab, ports, told):
    def has_sinks(ports, number):
        return any(line.startswith("sinks") for line in ports[number + 1 : number + 2])

    text = ""
    for number, line in enumerate(ports):
        kind, value = line.split()
        board = f"[[{kind}]]\nname = 'b{number}'\nport = {value}\n"
        text += {
            "tcp": board + f"address = '10.9.0.{number + 2}'\n",
            "crates": board + "window_ns = 4096\nexpect = 1\n" + "sinks = ['file:{board}.dat']\n" * (not has_sinks(ports, number)),
            "sinks": f"sinks = ['file:{{board}}.dat', '{value}']\n",
        }.get(kind, f"{kind} = '{value}'\n")
    lab.write(text)
    err = check(lab)
    assert err == "" if told is None else told in err, err
