"""`fadelink run`: experiments, and the folders of their runs."""

import contextlib
import json
import re
import signal
import socket
import time

import blake3
import h5py
import jsonschema
import numpy
import pytest
import tomllib
from support import fadc_model as model
from support.files import stands_still
from support.lab import fade, fetch, words
from support.netns import BOARD, FEBS, add_address, sh, wait_for
from support.paths import TOP

BLOCK = 16 << 20


def hashes(data):
    return [blake3.blake3(data[i : i + BLOCK]).hexdigest() for i in range(0, len(data), BLOCK)]


def test_a_run_has_all_in_its_folder(lab):
    lab.bench.sim("--boards", 2, "--link", "loss=0.01")
    lab.write('title = "first light"\n[stop]\nsize = "40M"\n' + fade("left") + fade("right", 1, 'sinks = ["file:{board}.bin,roll=8M", "hdf5:r.h5"]'))
    status, manifest, err = lab.run()
    assert status == 0, err
    folder = lab.folder()
    assert folder.name == "run_000001" and manifest["run"] == 1 and manifest["title"] == "first light"
    assert manifest["state"] == "complete" and manifest["ended_by"] == "size" and manifest["error"] is None
    begin, end = manifest["begin"]["utc"], manifest["end"]["utc"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", begin) and begin < end
    left, right = manifest["boards"]
    assert (left["name"], right["name"]) == ("left", "right") and left["feb"] == FEBS[0]
    assert left["verified"] and right["verified"] and left["bytes"] + right["bytes"] >= 40 << 20
    assert left["settings"]["verify"] == "counter" and right["settings"]["sinks"][1] == "hdf5:r.h5"
    assert manifest["begin"]["boards"]["left"]["acknowledged"] == 0
    assert manifest["end"]["boards"]["right"]["acknowledged"] == right["counters"]["packets"]
    assert left["counters"]["acks"] > 0 and left["firmware"] == "fadelink" and left["word_order"] == "little"
    data = (folder / "left.dat").read_bytes()
    assert (words(folder / "left.dat") == numpy.arange(len(data) // 8, dtype="<u8")).all()
    assert left["hashes"] == {"block_bytes": BLOCK, "bytes": len(data), "blake3": hashes(data)}
    parts = [folder / "right.bin", *sorted(folder.glob("right.0*.bin"))]
    assert len(parts) > 1
    data = b"".join(part.read_bytes() for part in parts)
    assert right["hashes"]["blake3"] == hashes(data) and right["hashes"]["bytes"] == len(data) == right["bytes"]
    with h5py.File(folder / "r.h5") as file:
        assert file["words"][:].tobytes() == data[: file["words"].size * 8]
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert "run 1 begins" in log[0]["message"] and not any("complete" in line["message"] for line in log), "the manifest says so"
    assert (folder / "experiment.toml").read_text() == lab.file.read_text()
    assert not list(folder.glob("*.hashes"))
    assert lab.check() == (0, lab.check()[1]) and lab.check()[1]["good"]


def spoil(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def test_check_finds_what_has_changed(lab):
    lab.bench.sim()
    lab.write('sinks = ["file:{board}.dat,roll=10M", "hdf5:{board}.h5"]\n[stop]\nsize = "40M"\n' + fade("left"))
    status, manifest, err = lab.run()
    assert status == 0, err
    folder = lab.folder()
    names = sorted(path.name for path in folder.glob("left*.dat"))
    assert lab.check()[0] == 0
    for name, at in [(names[0], 0), (names[1], 12345), (names[-1], 5), ("left.h5", 70000)]:
        spoil(folder / name, at)
        status, found = lab.check()
        assert status == 3 and not found["good"] and name in found["findings"][0], found
        spoil(folder / name, at)
    last = folder / names[-1]
    data = last.read_bytes()
    last.write_bytes(data[:-8])
    assert any("bytes, expected" in finding for finding in lab.check()[1]["findings"])
    last.unlink()
    assert any("it is missing" in finding for finding in lab.check()[1]["findings"])
    last.write_bytes(data)
    (folder / "other.dat").write_bytes(b"")
    assert lab.check()[1]["findings"] == ["other.dat: it does not belong to the run"]
    (folder / "other.dat").unlink()
    assert lab.check()[0] == 0
    status, out, err = lab.bench.run("check", lab.runs)
    assert status == 1 and "expected the folder of a run" in err


def test_a_run_misses_what_its_board_sends_after_another_start(lab):
    """Another program stops the stream and starts it again: the words of the second run are recorded nowhere."""
    add_address(lab.bench)
    lab.bench.sim("--protocol", "udp", "--stopped", "--phy", "gmii", "--payload", 512, "--boards", 2)
    # The other one keeps the run going.
    lab.write("".join(f'[[udp]]\nname = "{name}"\naddress = "{at}"\nport = 10000\n' for name, at in [("stack", BOARD), ("other", "10.9.0.3")]))
    process = lab.start()

    def register(*words):
        status, out, err = lab.bench.run("register", "--board", BOARD, *words, "--json")
        assert status == 0, err
        return json.loads(out)["value"]

    wait_for(lambda: register("0x80000100") > 10)
    register("0x80000001", 0)
    sent = register("0x80000100")
    register("0x80000001", 1)
    wait_for(lambda: register("0x80000100") > sent + 10)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    (board,) = (board for board in lab.manifest()["boards"] if board["name"] == "stack")
    assert status == 3 and lab.manifest()["state"] == "incomplete", err
    assert "foreign" in [reason["reason"] for reason in board["reasons"]] and board["after_end"] > 0, board


def test_the_last_number_of_a_run_is_followed_by_none(lab):
    (lab.runs / "run_999999999999").mkdir(parents=True)
    lab.write(fade("left"))
    status, _, err = lab.start().finish()
    assert status == 1 and "run_999999999999 has the last number: move it away" in err, err
    assert len(list(lab.runs.glob("run_*"))) == 1


def test_the_summary_tells_a_file_that_failed(lab):
    lab.bench.sim()
    lab.write(fade("left"))
    process = lab.bench.fadelink("run", lab.file)
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 0)
    data.unlink()
    status, _, err = process.finish()
    assert status == 3 and "left: NOT COMPLETE: file:left.dat has failed" in err and "not kept" not in err, err


def test_a_later_sink_that_dropped_hides_no_earlier_one(lab):
    """The file has every word, whatever a slow reader behind it has lost."""
    lab.bench.sim()
    lab.write(fade("left", 0, 'sinks = ["file:left.dat", "share:left.socket"]'))
    assert lab.run("--duration", 1)[0] == 0
    boards = lab.manifest()["boards"]
    (share,) = (sink for sink in boards[0]["sinks"] if sink["sink"].startswith("share"))
    share["dropped"] = 8
    lab.change(boards=boards)
    status, _, err = lab.bench.run("replay", lab.folder(), "--iface", "lo")
    assert status == 1 and "interface lo is not an Ethernet interface" in err, err


def test_runs_by_command_and_by_http(lab):
    lab.bench.sim()
    lab.write('start = "command"\nhttp = "127.0.0.1:9470"\n' + fade("left"))
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())

    def http(path, method="GET"):
        return json.loads(fetch(lab.bench, path, method))

    assert http("/run")["state"] == "waiting"
    status, _, err = lab.bench.run("stop", lab.file)
    assert status == 1 and "no run goes on" in err
    state = lab.ask("start")
    assert state["state"] == "running" and state["run"] == 1
    assert "run 1 goes on" in http("/start", "POST")["error"]
    wait_for(lambda: http("/run")["bytes"] > 1 << 20)
    board = http("/run")["boards"][0]
    assert board["name"] == "left" and board["bytes"] > 0
    metrics = fetch(lab.bench, "/metrics")
    assert re.search(r"^fadelink_received_bytes_total\{.*\} [1-9]", metrics, re.M)
    state = lab.ask("stop")
    assert state["state"] == "waiting" and state["complete"]
    assert http("/start", "POST")["state"] in ("starting", "running")
    wait_for(lambda: http("/run")["run"] == 2 and http("/run")["bytes"] > 1 << 20)
    http("/stop", "POST")
    wait_for(lambda: http("/run")["state"] == "waiting")
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 0, err
    assert [lab.manifest(n)["ended_by"] for n in (1, 2)] == ["command", "command"]
    assert lab.check(1)[0] == lab.check(2)[0] == 0
    assert not (lab.runs / "control.socket").exists()
    status, _, err = lab.bench.run("start", lab.file)
    assert status == 1 and "no `fadelink run` of this experiment is there" in err


def test_a_stop_right_behind_a_start_ends_the_run(lab):
    """Whenever it comes, also before the run has begun."""
    lab.write('start = "command"\n[[tcp]]\nname = "sender"\naddress = "10.9.0.2"\nport = 10000\nsinks = ["file:{board}.dat"]\n')
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    for _ in range(5):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as one:
            one.connect(str(lab.runs / "control.socket"))
            one.sendall(b"POST /start HTTP/1.1\r\nHost: x\r\n\r\nPOST /stop HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answers = b"".join(iter(lambda: one.recv(4096), b"")).decode()
        assert answers.count("202 Accepted") == 2, answers
        wait_for(lambda: "no run goes on" in lab.bench.run("stop", lab.file)[2])
        assert not list(lab.runs.glob("run_*")), "its board has not come"
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 3 and err.count("run 1 has not begun, and nothing of it is left") == 5, err


def test_start_and_stop_at_a_time(lab):
    lab.bench.sim()
    begin = time.time() + 2
    moment = lambda t: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + f".{int(t * 1000) % 1000:03}Z"  # noqa: E731
    lab.write(f'start = {moment(begin)}\nstop = {{ time = "{moment(begin + 2)}" }}\n' + fade("left"))
    status, manifest, err = lab.run()
    assert status == 0, err
    assert manifest["begin"]["utc"][:23] >= moment(begin)[:23] and manifest["ended_by"] == "time"
    assert manifest["end"]["utc"][:23] >= moment(begin + 2)[:23]


def test_duration_signal_and_another_program(lab):
    lab.bench.sim()
    lab.write("stop = { duration = 1.5 }\n" + fade("left"))
    status, manifest, err = lab.run()
    assert status == 0 and manifest["ended_by"] == "duration", err
    assert manifest["boards"][0]["seconds"] >= 1.4
    lab.write(fade("left"))
    process = lab.start()
    wait_for(lambda: len(list(lab.runs.glob("run_*"))) == 2 and (lab.folder(2) / "left.dat").exists())
    status, _, err = lab.bench.run("run", lab.file)
    assert status == 1 and "another `fadelink run` uses it" in err
    lab.bench.wait_for_frames()
    process.signal(signal.SIGINT)
    assert process.finish()[0] == 0
    assert lab.manifest(2)["ended_by"] == "signal" and lab.check(2)[0] == 0


def test_boards_that_cannot_be_opened_fail_the_run(lab):
    lab.write(fade("left").replace("eth0", "eth9"))
    status, _, err = lab.start().finish()
    assert status == 1 and "run 1 has not begun: interface eth9 does not exist" in err
    assert not list(lab.runs.glob("run_*"))


def test_a_board_that_fails_is_told_and_the_other_is_whole(lab):
    lab.bench.sim()
    lab.write("stop = { duration = 3 }\n" + fade("left") + fade("right", 3))
    status, manifest, err = lab.run()
    assert status == 3 and manifest["state"] == "incomplete"
    left, right = manifest["boards"]
    assert not right["complete"] and right["error"] and "right: " in err
    assert lab.check()[0] == 3


def test_boards_of_every_kind(lab):
    bench = lab.bench
    add_address(bench)
    bench.sim("--feb", FEBS[0], "--link", "loss=0.01")
    bench.sim("--feb", FEBS[1], "--protocol", "fade1")
    bench.sim("--feb", FEBS[2], "--protocol", "tcp", "--streams", 2, "--words", 200000)
    bench.sim("--feb", FEBS[3], "--protocol", "udp", "--ip", "10.9.0.3", "--port", 10001, "--stopped", "--user-mhz", 2)
    bench.sim("--feb", "02:fa:de:00:00:05", "--protocol", "fadc", "--small", "--phy", "gmii", "--ip", "10.9.0.4", "--port", 10002, "--windows", 2000)
    lab.write(
        'end = "told"\n'
        + fade("ten")
        + fade("one", 1, 'protocol = "fade1"')
        + f'[[tcp]]\nname = "sender"\naddress = "{BOARD}"\nport = 10000\nstreams = 2\nverify = "counter"\n'
        'sinks = ["file:{board}-{stream}.dat"]\n'
        '[[udp]]\nname = "stack"\naddress = "10.9.0.3"\nport = 10001\nverify = "counter"\n'
        '[[crates]]\nname = "events"\nport = 10002\nwindow_ns = 65536\nexpect = 1\n'
        'sinks = ["hdf5:{board}.h5", "parquet:{board}.parquet", "file:{board}.dat"]\n'
    )
    process = lab.start()

    def all_have_enough():
        """Each of the others has more than 1,000 words, and the crate has more than ten windows."""
        events = lab.runs / "run_000001/events.dat.part"
        sizes = [path.stat().st_size for path in lab.runs.glob("run_000001/*.dat")]
        return len(sizes) == 5 and min(sizes) > 8 * 1200 and events.exists() and model.count_messages(events.read_bytes()) > 12

    wait_for(all_have_enough)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    manifest = lab.manifest()
    boards = {board["name"]: board for board in manifest["boards"]}
    assert status == 0 and manifest["state"] == "complete", (err, boards)
    senders = [name for name in sorted(boards) if name.startswith("sender/")]
    assert sorted(boards) == ["events", "one", *senders, "stack", "ten"] and len(senders) == 2
    assert boards["ten"]["protocol"] == "fade10g" and boards["one"]["protocol"] == "fade1"
    assert all(board["verified"] for name, board in boards.items() if name != "events")
    assert boards["stack"]["counts"]["lost"] == 0 and boards["stack"]["gaps"] == []
    assert manifest["begin"]["boards"]["stack"]["payload"] > 0 and "ptp_seconds" in manifest["end"]["boards"]["stack"]
    assert boards["events"]["events"] > 10
    for name in ("ten.dat", "one.dat", "stack.dat", *(f"sender-{BOARD}-{name[7:]}.dat" for name in senders)):
        found = words(lab.folder() / name)
        if name == "one.dat":
            # FADE v1 has no length of the last packet: its end is filled.
            found = found[: found.size - boards["one"]["filler_words"]]
        assert found.size > 1000 and (found == numpy.arange(found.size, dtype="<u8")).all(), name
    assert all("blake3" in manifest["files"][name] for name in ("events.h5", "events.parquet"))
    status, found = lab.check()
    assert status == 0, found
    spoil(lab.folder() / "events.parquet", 100)
    assert lab.check()[1]["findings"] == ["events.parquet: its content is not what was written"]


def experiments():
    """The examples of the document."""
    return re.findall(r"```toml\n(.*?)```", (TOP / "docs/runs.md").read_text(), re.S)


def test_the_schema_describes_the_file(lab):
    status, out, err = lab.bench.run("run", "--schema")
    assert status == 0, err
    schema = json.loads(out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert experiments()
    for text in experiments():
        lab.write(text)
        assert lab.bench.run("run", "--check", lab.file)[0] == 0, text
        validator.validate(json.loads(json.dumps(tomllib.loads(text), default=lambda moment: moment.isoformat())))
    for wrong in [
        {"folders": "x"},
        {"fade": [{"name": "a"}]},
        {"disk": {"full": "wait"}},
        {"tcp": [{"name": "a", "address": "10.9.0.2", "port": "x"}]},
    ]:
        assert not validator.is_valid(wrong), wrong
    names = {name for table in schema["$defs"].values() for name in table.get("properties", {})} | set(schema["properties"])
    undescribed = [
        name for table in [schema, *schema["$defs"].values()] for name, field in table.get("properties", {}).items() if "description" not in field
    ]
    assert {"interface", "verify", "window_ns", "reserve"} <= names and not undescribed


FADE = fade("left").rstrip().removesuffix("\n")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", ["no boards: expected [[fade]], [[tcp]], [[udp]] or [[crates]]"]),
        (fade("a/b"), ["line 2: fade[0].name: `a/b`: expected 1 to 128 letters, digits"]),
        (fade("a") + fade("a", 1), ["line 8: fade[1].name: `a`: expected a name that no other board has"]),
        (fade("a") + fade("b"), ["line 10: fade[1].mac: ", "expected an address that no other board of eth0 has"]),
        (fade("a").replace("02:fa", "03:fa"), ["line 4: fade[0].mac: ", "expected a unicast address"]),
        (fade("a", 0, "ring = 100"), ["line 6: fade[0].ring: ", "100", "power of two"]),
        (fade("a", 0, 'sinks = ["tape:x"]'), ["line 6: fade[0].sinks: `tape:x`: sink `tape`: expected file:PATH"]),
        ('sinks = ["file:x"]\n' + fade("a") + fade("b", 1), ["line 8: fade[1].sinks: `file:x`: `a` has a sink at the same place; expected {board} in it"]),
        ('[[tcp]]\nname = "a"\naddress = "10.9.0.2"\nport = 1\nstreams = 2\n', ["line 1: tcp[0].sinks: ", "expected {stream} in the path"]),
        ('[[crates]]\nname = "a"\nport = 1\nwindow_ns = 5\nsinks = []\n', ["line 4: crates[0].window_ns: `5`: expected", "a multiple of"]),
        ('disk = { full = "hold" }\n[[udp]]\nname = "a"\naddress = "10.9.0.2"\nport = 1\n', ["line 1: disk.full: `hold`: ", "not with [[udp]]"]),
        ("".join(f'[[udp]]\nname = "{name}"\naddress = "10.9.0.2"\nport = {port}\n' for name, port in [("a", 1), ("b", 2)]),
         ["line 7: udp[1].address: `10.9.0.2`: expected an address that no board of another port has"]),
        ('confirm = "durable"\n' + fade("a", 0, 'sinks = ["hdf5:a.h5"]'), ["line 7: fade[0].sinks: confirm = \"durable\": `hdf5:a.h5`: expected file or kafka, or share beside it"]),
        ('confirm = "durable"\n' + fade("a", 0, 'sinks = ["share:s"]'), ["line 7: fade[0].sinks: ", "expected a file or kafka with policy=wait"]),
        ('confirm = "durable"\n' + fade("a", 0, 'sinks = ["file:a,direct"]'), ["line 7: fade[0].sinks: ", "`direct`"]),
        ('confirm = "durable"\n' + fade("a", 0, 'backend = "kernel"'), ["line 7: fade[0].backend: `kernel`: ", "expected packet or xdp"]),
        ('confirm = "durable"\n[[tcp]]\nname = "a"\naddress = "10.9.0.2"\nport = 1\n', ["line 1: confirm: `durable`: the kernel confirms the data of TCP; expected memory"]),
        *((fade("a", 0, f'sinks = ["{kind}:sub/a"]'), [f"line 6: fade[0].sinks: `{kind}:sub/a`: there is no folder sub, and the run makes none: expected"])
          for kind in ("file", "hdf5", "hashes", "share")),
        (fade("a", 0, 'sinks = ["file:{time}.dat"]'), ["line 6: fade[0].sinks: `file:{time}.dat`: `{time}` is not the name of a file; expected {run}"]),
        (fade("a", 0, 'sinks = ["file:/nowhere/a"]'), ["line 6: fade[0].sinks: `file:/nowhere/a`: there is no folder /nowhere, "]),
        (fade("a", 0, 'sinks = ["file:{baord}.dat"]'), ["line 6: fade[0].sinks: `file:{baord}.dat`: `{baord}` is replaced by nothing; expected {board}"]),
        (fade("a").replace("eth0", "a/b"), ["line 3: fade[0].interface: `a/b`: expected a name of 1 to 15 characters"]),
        (fade("a").replace(FEBS[0], "00:00:00:00:00:00"), ["line 4: fade[0].mac: `00:00:00:00:00:00`: expected a unicast address"]),
        (fade("a", 0, "busy_poll = true"), ["line 6: fade[0].busy_poll: `true`: expected backend xdp"]),
        *((f'{listen}[[{kind}]]\nname = "a"\naddress = "{address}"\nport = {port}\n{more}', [f"{field}: `"])
          for kind in ("tcp", "udp") for listen, address, port, more, field in (
              ("", "10.9.0.2", 0, "", "port"), ("", "0.0.0.0", 1, "", "address"), ("", "224.0.0.1", 1, "", "address"),
              ("", "255.255.255.255", 1, "", "address"), ("", "10.9.0.2", 1, "ring = 33554432\n", "ring"),
              ("", "10.9.0.2", 1, 'listen = "::1"\n', "address" if kind == "tcp" else "listen"))),
        ('[[crates]]\nname = "a"\nport = 0\nwindow_ns = 65536\nexpect = 1\nsinks = ["file:a"]\n', ["line 3: crates[0].port: `0`: expected 1 to 65535"]),
        ('[[crates]]\nname = "a"\nport = 1\nwindow_ns = 65536\nsources = [1, 2, 1]\nsinks = ["file:a"]\n', ["line 5: crates[0].sources: `1`: expected each"]),
        ("threads = { priority = 100 }\n" + fade("a"), ["line 1: threads.priority: `100`: expected 1 to 99"]),
        ("[threads]\npriority = 1\nslice = 200\n" + fade("a"), ["line 3: threads.slice: `200`: expected either priority or slice"]),
        ("[stop]\nsize = '5 GB'\n" + fade("a"), ["line 2: stop.size: `5 GB`: expected a size like 512M or 1G"]),
    ],
)  # fmt: skip
def test_errors_name_line_field_value_and_expectation(lab, text, words):
    lab.write(text)
    for more in [(), ("--check",)]:
        status, out, err = lab.bench.run("run", lab.file, *more)
        assert status == 2, more
    assert len(err.splitlines()) == 1 and "experiment.toml: " in err, err
    assert all(word in err for word in words), err
    assert not lab.runs.exists()


@pytest.fixture
def small_disk(lab):
    """The folder of the runs on a file system of 64 MB."""
    lab.runs.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", lab.runs)
    yield lab
    sh("umount", lab.runs)


def test_the_run_ends_before_the_disk_is_full(small_disk):
    lab = small_disk
    lab.bench.sim()
    lab.write('[disk]\nreserve = "16M"\n' + fade("left"))
    status, manifest, err = lab.run()
    assert status == 0 and manifest["state"] == "complete" and manifest["ended_by"] == "disk", err
    assert "less than 16777216 bytes are free" in err
    assert manifest["boards"][0]["bytes"] > 32 << 20 and lab.check()[0] == 0


def test_the_boards_wait_before_the_disk_is_full(small_disk):
    lab = small_disk
    lab.bench.sim()
    ballast = lab.runs / "ballast"
    ballast.write_bytes(bytes(24 << 20))
    lab.write('[disk]\nreserve = "16M"\nfull = "hold"\n' + fade("left", 0, "ring = 256"))
    process = lab.start()
    size = lambda: (lab.folder() / "left.dat").stat().st_size  # noqa: E731
    wait_for(lambda: (lab.runs / "run_000001/left.dat").exists() and size() > 20 << 20)
    said = ""
    while "the boards wait" not in said:
        line = process.popen.stderr.readline()
        assert line, said
        said += line
    # What a sink was given before is written still; then nothing is, though there is space.
    wait_for(lambda: stands_still(lab.folder() / "left.dat", 1))
    held = size()
    assert held < 40 << 20
    ballast.unlink()
    wait_for(lambda: size() > held + (4 << 20))
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status == 0 and "the boards go on" in err
    assert lab.check()[0] == 0
