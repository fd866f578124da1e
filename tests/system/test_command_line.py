"""The other commands, their errors, and the capture tools."""

import json
import re
import signal
import subprocess

import pytest
from support.files import write_capture
from support.netns import FEBS, report
from support.paths import FADELINK, SIM, TOP


def run(*words):
    process = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    return process.returncode, process.stdout, process.stderr


FEB = ["--feb", FEBS[0]]
RECEIVE = [FADELINK, "receive", "--iface", "lo"]
WRONG = [
    [FADELINK, "fly"],
    [FADELINK, "receive"],
    [*RECEIVE],
    [*RECEIVE, "--feb", "02:fa:de"],
    [*RECEIVE, "--feb", "01:00:5e:00:00:01"],
    [*RECEIVE, *FEB, *FEB],
    [*RECEIVE, *FEB, "--ring", 100],
    [*RECEIVE, *FEB, "--ring", 32],
    [*RECEIVE, *FEB, "--board", "10.0.0.1"],
    [*RECEIVE, *FEB, "--busy-poll"],
    [*RECEIVE, *FEB, "--sink", "file:/tmp/{board}"],
    [FADELINK, "receive", "--iface", "sixteencharacter", *FEB],
    [FADELINK, "receive", "--tcp", 5000, "--window", 8],
    [FADELINK, "build", "--tcp", 0, "--window-ns", 65536, "--expect", 1],
    [FADELINK, "build", "--tcp", 5000, "--window-ns", 65536, "--sources", "1,1"],
    [FADELINK, "build", "--tcp", 5000, "--window-ns", 65536],
    [FADELINK, "build", "--kafka", "127.0.0.1:1", "--window-ns", 65536],
    [FADELINK, "build", "--tcp", 5000, "--window-ns", 65536, "--expect", 1 << 32],
    [FADELINK, "build", "--tcp", 5000, "--window-ns", 65536, "--expect", 1, "--sink", "zmq-pub:tcp://a"],
    *(
        [FADELINK, "build", source, 5000, "--window-ns", 65536, "--expect", 1, *words]
        for source, others in (
            (
                "--tcp",
                (
                    ["--group", "a"],
                    ["--name", "a"],
                    ["--messages", "a"],
                    ["--events-topic", "a"],
                    ["--partitions", 1],
                    ["--from-oldest"],
                    ["--append"],
                    ["--kafka-config", "a=b"],
                    ["--kafka-config-file", "a"],
                    ["--kafka", "a:1"],
                ),
            ),
            ("--kafka", (["--listen", "127.0.0.1"], ["--addresses", "127.0.0.1"], ["--streams", 1], ["--sink", "file:a"])),
        )
        for words in others
    ),
    *([*RECEIVE, *FEB, *words] for words in (["--listen", "127.0.0.1"], ["--receive-buffer", 1], ["--streams", 1])),
    [*RECEIVE, *FEB, "--window", 0],
    [*RECEIVE, *FEB, "--window", 65],
    [*RECEIVE, *FEB, "--verify", "noise"],
    [*RECEIVE, *FEB, "--out", "a", "--out", "b"],
    [*RECEIVE, *FEB, "--out", "-", "--json"],
    [*RECEIVE, *FEB, "--packets", 0],
    [*RECEIVE, *FEB, "--packets", -1],
    [*RECEIVE, *FEB, "--duration", "soon"],
    [*RECEIVE, *FEB, "--backend", "pigeon"],
    [*RECEIVE, *FEB, "--cpus", "1-0"],
    [*RECEIVE, *FEB, "--priority", 100],
    [*RECEIVE, *FEB, "--slice", 99],
    [*RECEIVE, *FEB, "--slice", 100, "--priority", 1],
    [FADELINK, "receive", "--tcp", 5000, "--cpus", 0],
    [FADELINK, "receive", "--tcp", 5000, "--packets", 10],
    [FADELINK, "cmd", "--iface", "lo", *FEB],
    [FADELINK, "cmd", "--iface", "lo", *FEB, "0x0003"],
    [FADELINK, "cmd", "--iface", "lo", *FEB, "0x10000"],
    [FADELINK, "cmd", "--iface", "lo", *FEB, "0x0100", "0x100000000"],
    [FADELINK, "discover", "--iface", "lo", "--timeout", "-1"],
    [FADELINK, "dissect"],
    [SIM],
    [SIM, "--virtual", "--iface", "lo"],
    [SIM, "--virtual", "--link", "loss=2"],
    [SIM, "--virtual", "--link", "delay=5"],
    [SIM, "--virtual", "--link", "colour=1"],
    [SIM, "--virtual", "--window", 17],
    [SIM, "--virtual", "--feb", "02:fa:de"],
    [SIM, "--virtual", "--packets", 10, "--warmup", 10],
    [SIM, "--virtual", "--protocol", "tcp", "--words", 10, "--ptp", 1],
    [SIM, "--virtual", "--protocol", "udp", "--words", 10, "--ptp", 4],
    [SIM, "--virtual", "--protocol", "udp", "--words", 10, "--test-pulse-us", 5],
    [SIM, "--iface", "lo", "--protocol", "fadc", "--test-pulse-us", 5],
]


def test_without_arguments_there_is_help():
    status, out, err = run(FADELINK)
    assert status == 0 and not err
    assert "Usage: fadelink" in out and "receive" in out and "build" in out


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(str(word).split("/")[-1] for word in words))
def test_wrong_arguments_give_one_line_and_status_2(words):
    status, out, err = run(*words)
    assert status == 2, err
    assert out == "" and len(err.strip().splitlines()) == 1, err


@pytest.mark.parametrize("how", ["plain", "text", "json", "journald"])
def test_messages_as_they_are_wanted(how):
    """Time and level on request, or JSON; a journal that is not there is an error."""
    status, out, err = run(FADELINK, "receive", "--tcp", "10000", "--listen", "192.0.2.1", "--log-format", how)
    told = "--tcp 10000: listening on 192.0.2.1:10000: "
    assert status == 1 and not out and len(err.splitlines()) == 1, err
    if how == "plain":
        assert err.startswith(f"fadelink: {told}"), err
    elif how == "text":
        assert re.match(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z +ERROR {told}", err), err
    elif how == "json":
        message = json.loads(err)
        assert message["message"].startswith(told) and message["level"] == "ERROR" and "T" in message["timestamp"], err
    else:
        assert err.startswith("fadelink: --log-format journald: ") or err == "", err


def test_messages_by_their_level(bench):
    _, _, err = bench.run("receive", "--tcp", 10000, "--duration", 0.1)
    assert "waiting for TCP senders" in err and "0 streams came" in err
    _, _, err = bench.run("receive", "--tcp", 10000, "--duration", 0.1, "--log-level", "warn")
    assert "waiting for TCP senders" not in err and "0 streams came" in err


def test_discover_and_status(bench):
    bench.sim("--boards", 3, "--window", 16, "--link", "loss=0.05")
    status, out, err = bench.run("discover", "--iface", "eth0", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and [feb["feb"] for feb in found] == FEBS[:3]
    new = {"window": 16, "running": False, "stopping": False, "block_acks": True, "csn": None, "transmission": 0, "resets": 0,
           "checksum": False, "same_words": True}  # fmt: skip
    assert all(feb["identity"] == new for feb in found)
    status, result = report(bench.receive("--packets", 50).finish())
    assert status == 0
    status, out, _ = bench.run("status", "--iface", "eth0", *FEB, "--json")
    state = json.loads(out)
    assert status == 0 and not state["identity"]["running"]
    counters = state["counters"]
    # What was confirmed in frames that the link lost, at the very end, the board does not know.
    assert 0 <= result["febs"][0]["counters"]["packets"] - counters["acknowledged"] < 16
    assert counters["sent"] >= counters["acknowledged"] and counters["protocol_errors"] == 0
    assert counters["rx_wrong_destination"] == 0
    assert re.fullmatch(r"FADE-10G \d+\.\d+\.\d+", counters["core"])


def test_discover_while_running_disturbs_nothing(bench):
    bench.sim()
    receiver = bench.receive("--verify", "counter")
    bench.wait_for_frames()
    status, out, _ = bench.run("discover", "--iface", "eth0", "--json")
    assert status == 0 and json.loads(out)["identity"]["running"]
    status, _, _ = bench.run("status", "--iface", "eth0", *FEB, "--json")
    assert status == 0
    receiver.signal(signal.SIGINT)
    assert report(receiver.finish())[0] == 0


def test_commands_have_their_answers(bench):
    bench.sim("--link", "loss=0.1")
    assert bench.command(0x0100) == 0x4641444531304701
    assert bench.command(0x0201, 0xDEADBEEF) == 0
    assert bench.command(0x0101) == 0xDEADBEEF
    status, out, err = bench.run("cmd", "--iface", "eth0", *FEB, "0xFFFF", "--json")
    assert status == 1 and out == "" and "the board has no such register or command, or the access failed" in err, err
    status, out, _ = bench.run("cmd", "--iface", "eth0", *FEB, "0x0207", "1", "--repeat", 50)
    assert status == 0 and [int(line.split()[1]) for line in out.splitlines()] == list(range(1, 51))


def test_capture_is_dissected_by_both_tools(bench):
    capture = bench.tmp / "link.pcap"
    sim = bench.sim("--pcap", capture, "--link", "loss=0.02")
    status, result = report(bench.receive("--packets", 120).finish())
    assert status == 0
    bench.end_sim(sim)
    status, out, err = run(FADELINK, "dissect", capture, "--json")
    assert status == 0, err
    ours = [json.loads(line) for line in out.splitlines()]
    assert {frame["kind"] for frame in ours} >= {"start", "stop", "reset", "data", "last", "ack"}
    fields = ["fade.type", "fade.packet", "fade.sequence", "fade.csn", "fade.valid_words", "_ws.expert.message"]
    status, out, err = run(
        "tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-Y", "fade", "-T", "fields",
        *[word for field in fields for word in ("-e", field)],
    )  # fmt: skip
    assert status == 0, err
    theirs = [line.split("\t") for line in out.splitlines()]
    assert len(theirs) == len(ours) > 120
    for mine, (kind, packet, sequence, csn, words, expert) in zip(ours, theirs):
        assert expert == "", expert
        f = mine["fields"]
        if mine["kind"] in ("data", "last", "ack"):
            assert (int(packet), int(sequence)) == (f["packet"], f["sequence"])
        if mine["kind"] in ("start", "stop", "reset", "command"):
            assert (int(kind, 16), int(csn)) == (f["code"], f["csn"])
        if mine["kind"] == "last":
            assert int(words) == f["valid_words"]


def test_dissect_shared_vectors(tmp_path):
    """Each malformed vector is named so by both tools, each good one is not."""
    vectors = json.loads((TOP / "tests/vectors/fade10g.json").read_text())
    good = [bytes.fromhex(v["hex"]) for v in vectors["frames"] if "payload" not in v]
    # An unknown type may be the code of a user command, and what is not FADE is not dissected.
    bad = [v for v in vectors["malformed"] if len(v["hex"]) > 28 and v["reason"] not in ("ethertype", "type")]
    bad = [bytes.fromhex(v["hex"]) for v in bad]
    capture = tmp_path / "vectors.pcap"
    write_capture(capture, [*good, *bad])
    status, out, err = run(FADELINK, "dissect", capture, "--json")
    ours = [json.loads(line) for line in out.splitlines()]
    kinds = [frame["kind"] for frame in ours]
    assert status == 0 and kinds.count("malformed") == len(bad) and "malformed" not in kinds[: len(good)]
    told = [v["fields"]["identity"] for v in vectors["frames"] if "identity" in v["fields"]]
    assert [frame["fields"]["response"]["identity"] for frame in ours if "identity" in (frame["fields"].get("response") or {})] == told
    senders = [v["fields"]["reset_by"] for v in vectors["frames"] if "reset_by" in v["fields"]]
    assert [frame["fields"]["response"]["reset_by"] for frame in ours if "reset_by" in (frame["fields"].get("response") or {})] == senders
    flags = ["running", "stopping", "block_acks"]
    identity = [*(f"fade.identity.{name}" for name in ["window", *flags, "has_csn", "csn", "transmission"]), "fade.resets", "fade.identity.has_checksum",
                "fade.identity.same_words", "fade.reset_by"]  # fmt: skip
    status, out, err = run(
        "tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields",
        *[word for field in ["_ws.expert.message", *identity] for word in ("-e", field)],
    )  # fmt: skip
    rows = [line.split("\t") for line in out.splitlines()]
    assert status == 0 and [bool(row[0].strip()) for row in rows] == [False] * len(good) + [True] * len(bad), out
    theirs = [[int(field) if field else None for field in row[1:-1]] for row in rows if row[1]]
    expected = [
        [
            i["window"].bit_length() - 1,
            *[int(i[flag]) for flag in flags],
            int(i["csn"] is not None),
            i["csn"] or 0,
            i["transmission"],
            i["resets"],
            int(i["checksum"]),
            int(i["same_words"]),
        ]
        for i in told
    ]
    assert theirs == expected and len(told) == 8
    theirs = [{"transmission": int(row[-5]), "address": row[-1] if row[-1] != "00:00:00:00:00:00" else None} for row in rows if row[-1]]
    assert theirs == senders and len(senders) == 2
    status, out, err = run("tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields", "-e", "fade.permit")
    permits = [int(line, 0) for line in out.splitlines() if line]
    assert permits == [0, 0x2ABCDEF1, 0x3FFFFFFF, 0x2ABCDEF1], err
    assert [frame["fields"]["response"]["permit"] for frame in ours if "permit" in (frame["fields"].get("response") or {})] == [0x2ABCDEF1]


def test_dissect_shared_vectors_of_fade_v1(tmp_path):
    """Delays, and the bits of block ACKs, as the vectors have them."""
    vectors = json.loads((TOP / "tests/vectors/fade1.json").read_text())
    frames = vectors["frames"]
    length = {"request": 0, "feb": vectors["constants"]["DATA_FRAME_LEN"]}
    capture = tmp_path / "vectors.pcap"
    write_capture(capture, [bytes.fromhex(v["hex"]).ljust(length[v["direction"]], b"\0") for v in frames])
    status, out, err = run(FADELINK, "dissect", capture, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert status == 0, err
    expected = [{name: value for name, value in v["fields"].items() if name != "kind"} for v in frames]
    states = ["idle", "running", "stopping", "ended", "reset"]
    # A word that a double does not have is a string.
    for fields in [line["fields"] for line in found if "stored" in line["fields"]]:
        fields["stored"] = int(fields["stored"])
    for fields in [line["fields"] for line in found if "state" in line["fields"]]:
        fields["state"] = states.index(fields["state"])
    assert [{name: value for name, value in line["fields"].items() if name != "version"} for line in found] == expected
    names = {"delay": "delay", "stored": "stored", "state": "state", "transmission": "identity.transmission", "packets": "packets"}
    options = [word for name in names.values() for word in ("-e", f"fade.{name}")]
    status, out, err = run("tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields", *options)
    assert status == 0, err
    rows = [[int(field, 0) if field else None for field in line.split("\t")] for line in out.split("\n")[:-1]]
    assert rows == [[fields.get(name) for name in names] for fields in expected]
    status, out, err = run(
        "tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields", "-e", "fade.resets", "-e", "fade.reset_by"
    )  # fmt: skip
    rows = [line.split("\t") for line in out.split("\n")[:-1]]
    resets = [fields.get("resets") for fields in expected]
    assert rows == [[str(r["count"]), r["by"] or "00:00:00:00:00:00"] if r else ["", ""] for r in resets] and any(resets), err
    status, out, err = run(
        "tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields", "-e", "fade.last_words", "-e", "fade.crc"
    )  # fmt: skip
    checksums = [fields.get("checksum") for fields in expected]
    rows = [[int(field, 0) if field else None for field in line.split("\t")] for line in out.split("\n")[:-1]]
    assert rows == [[c["last_words"], c["crc"]] if c else [None, None] for c in checksums] and any(checksums), err
    status, out, err = run("tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields", "-e", "fade.permit")
    permits = [fields.get("permit") for fields in expected]
    assert [int(line, 0) if line else None for line in out.split("\n")[:-1]] == permits and any(permits), err


def test_the_crc_of_a_last_packet_is_read(tmp_path):
    frames = json.loads((TOP / "tests/vectors/fade10g.json").read_text())
    mark = frames["constants"]["CHECKSUM_MARK"]
    last = [v for v in frames["frames"] if v["fields"].get("last") is not None]
    expected = [(v["fields"]["last"], v["fields"]["crc"]) for v in last]
    final = [words if crc is None else words | mark << 16 | crc << 32 for words, crc in expected]
    capture = tmp_path / "last.pcap"
    write_capture(capture, [bytes.fromhex(v["hex"]) + bytes([0xA5]) * 8184 + f.to_bytes(8, "little") for v, f in zip(last, final)])
    status, out, err = run(FADELINK, "dissect", capture, "--json")
    found = [json.loads(line)["fields"] for line in out.splitlines()]
    assert status == 0 and [(fields["valid_words"], fields["crc"]) for fields in found] == expected, err
    status, out, err = run(
        "tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields",
        "-e", "fade.valid_words", "-e", "fade.crc", "-e", "_ws.expert.message",
    )  # fmt: skip
    rows = [line.split("\t") for line in out.splitlines()]
    assert [(int(words), int(crc, 0) if crc else None) for words, crc, _ in rows] == expected, err
    assert not any(expert for _, _, expert in rows) and sum(crc is not None for _, crc in expected) == 3


def test_valid_words_in_either_byte_order(tmp_path):
    """Both tools read every number of valid words, and name a final word that is invalid."""
    frames = json.loads((TOP / "tests/vectors/fade10g.json").read_text())["frames"]
    words = json.loads((TOP / "tests/vectors/fade10g_valid_words.json").read_text())
    head = bytes.fromhex(next(frame["hex"] for frame in frames if frame["name"] == "last_0"))
    final = [bytes.fromhex(word) for order in ("little", "big", "neither") for word in words[order]]
    expected = [*range(1024), *range(1024), *(None for _ in words["neither"])]
    capture = tmp_path / "last.pcap"
    write_capture(capture, [head + bytes([0xA5]) * 8184 + word for word in final])
    status, out, err = run(FADELINK, "dissect", capture, "--json")
    assert status == 0, err
    assert [json.loads(line)["fields"].get("valid_words") for line in out.splitlines()] == expected
    status, out, err = run(
        "tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields",
        "-e", "fade.valid_words", "-e", "_ws.expert.message",
    )  # fmt: skip
    assert status == 0, err
    rows = [line.split("\t") for line in out.splitlines()]
    assert [int(count) if count else None for count, _ in rows] == expected
    assert [bool(expert) for _, expert in rows] == [count is None for count in expected]


def test_dissect_bad_files(tmp_path):
    for name, content in [("empty", b""), ("short", b"abc"), ("junk", b"no capture at all, only text")]:
        (tmp_path / name).write_bytes(content)
        status, _, err = run(FADELINK, "dissect", tmp_path / name)
        assert status == 1 and name in err and len(err.splitlines()) == 1
    status, _, err = run(FADELINK, "dissect", tmp_path / "missing")
    assert status == 1 and "No such file" in err


def test_virtual_time_is_reproducible(tmp_path):
    words = [SIM, "--virtual", "--packets", 200, "--warmup", 20, "--link", "loss=0.03,reorder=0.02", "--json", "--seed", 7]
    results = []
    for _ in range(2):
        status, out, err = run(*words, "--pcap", tmp_path / "a.pcap", "--wave", tmp_path / "a.fst")
        assert status == 0, err
        result = json.loads(out)
        del result["wall_seconds"]
        results.append(result)
    assert results[0] == results[1]
    assert (tmp_path / "a.pcap").stat().st_size > 1_000_000 and (tmp_path / "a.fst").stat().st_size > 1000
    status, out, _ = run(FADELINK, "dissect", tmp_path / "a.pcap", "--summary", "--json")
    counts = json.loads(out)
    assert counts["data"] + counts["last"] >= 200 and counts.get("malformed", 0) == 0
