"""The `fadelink` command over the kernel driver: as over any other backend."""

import json
import re
import signal

import pytest
from support.guest import LOAD, session
from support.netns import FEBS
from support.paths import FADELINK as FADELINK_HERE
from support.paths import SEED

FADELINK = "fadelink {0} --backend kernel --iface eth0"
# The driver, which was loaded anew, has sent START.
UNTIL_STARTED = "until grep -q '^commands [1-9]' /sys/kernel/debug/fadelink/l3_fpga0; do sleep 0.1; done"


# Behind a program that receives: data of N boards has come.
TAKEN = "--sink file:/tmp/taken-{feb}.dat"
UNTIL_TAKEN = "until [ $(find /tmp/taken-* -size +0 | wc -l) -ge {0} ]; do sleep 0.1; done"


def fadelink(action, *words):
    return " ".join([FADELINK.format(action), *map(str, words)])


def reports(out):
    return [json.loads(line) for line in re.findall(r"(\{\".*\})\s*$", out, re.M)]


@pytest.mark.parametrize("link", ["loss=0", "loss=0.02,reorder=0.05,duplicate=0.05"])
def test_receive(bench, link):
    """STOP finds the last packet partly filled; every word is verified, by the command and in its file."""
    out, boards = session(
        bench,
        [
            f"{fadelink('receive', '--feb', FEBS[0], '--packets', 2000, '--verify counter --json --quiet --out /tmp/data')}",
            "fadelink_size=$(stat -c %s /tmp/data); echo size $fadelink_size",
        ],
        "--link", link,
    )  # fmt: skip
    report = reports(out)[0]
    feb = report["febs"][0]
    assert report["complete"] and feb["verified"] and feb["words"] >= 2000 * 1024
    assert f"size {feb['bytes']}" in out
    assert feb["counters"]["packets"] == -(-feb["words"] // 1024) or feb["words"] % 1024 == 0
    assert not boards[0]["running"]


def test_two_febs_and_commands_meanwhile(bench):
    """One run receives two FEBs over small rings; other programs send commands and ask for the state."""
    out, boards = session(
        bench,
        [
            fadelink("receive", "--feb", FEBS[0], "--feb", FEBS[1], "--ring 128 --verify counter --json --quiet", TAKEN)
            + " >/tmp/report & R=$!",
            UNTIL_TAKEN.format(2),
            fadelink("discover", "--json"),
            fadelink("cmd", "--feb", FEBS[0], "0x0207 1 --repeat 40 --timeout 50 --json"),
            fadelink("cmd", "--feb", FEBS[2], "0x0100 --json"),
            fadelink("status", "--feb", FEBS[1], "--json"),
            "for i in 1 2 3; do " + fadelink("cmd", "--feb", FEBS[1], "0x0207 1 --repeat 10 --timeout 50") + " >/tmp/$i & P=\"$P $!\"; done",
            "for p in $P; do wait $p; done; kill -INT $R; wait $R; cat /tmp/report",
            # A third program finds the FEB free again, and the driver quiet.
            fadelink("receive", "--feb", FEBS[1], "--packets 50 --verify counter --quiet"),
            fadelink("cmd", "--feb", FEBS[1], "0x0107 --json"),
        ],
        "--boards", 3, "--link", "loss=0.01",
    )  # fmt: skip
    lines = reports(out)
    found = {line["feb"]: line["identity"] for line in lines if "identity" in line and "counters" not in line}
    assert set(found) == set(FEBS[:3]) and found[FEBS[0]]["running"] and not found[FEBS[2]]["running"]
    # Exactly once, though frames are lost: each of the commands adds one.
    sums = [line["value"] for line in lines if line.get("code") == 0x0207]
    assert sums == list(range(1, 41)), sums
    status = next(line for line in lines if "identity" in line and "counters" in line)
    assert status["identity"]["running"] and status["counters"]["sent"] > 0
    report = next(line for line in lines if "febs" in line)
    assert report["complete"] and all(feb["verified"] for feb in report["febs"]), report
    assert lines[-1]["value"] == 30
    assert not any(board["running"] for board in boards)


def test_killed_reader_and_a_taken_feb(bench):
    out, boards = session(
        bench,
        [
            fadelink("receive", "--feb", FEBS[0], "--verify counter --quiet", TAKEN) + " & R=$!",
            UNTIL_TAKEN.format(1),
            # While one has it nobody else can.
            fadelink("receive", "--feb", FEBS[0], "--packets 10") + " 2>&1 && exit 1",
            f"fadelink receive --backend packet --iface eth0 --feb {FEBS[0]} --packets 10 2>&1 && exit 1",
            "kill -9 $R; wait $R || true; rm /tmp/taken-*",
            fadelink("receive", "--feb", FEBS[0], "--packets 500 --verify counter --json --quiet"),
            # Ctrl-C: the rest is drained.
            fadelink("receive", "--feb", FEBS[0], "--verify counter --json --quiet", TAKEN) + " >/tmp/report & R=$!",
            UNTIL_TAKEN.format(1),
            "kill -INT $R; wait $R; cat /tmp/report",
        ],
        "--link", "loss=0.01",
    )  # fmt: skip
    assert out.count("it is open already") == 2
    first, second = reports(out)
    assert first["complete"] and first["febs"][0]["verified"]
    assert second["complete"] and second["febs"][0]["verified"] and second["febs"][0]["words"] > 0
    assert not boards[0]["running"]


def test_commands_beside_another_programs_run(bench):
    """The driver lends a free device to a command: the run of a program that needs no driver goes on."""
    command = fadelink("cmd", "--feb", FEBS[0], "0x0207 1 --timeout 50 --json")
    out, boards = session(
        bench,
        [
            # Of a device's last owner nothing is left: this one takes the FEB for one of FADE v1.
            fadelink("receive", "--feb", FEBS[0], "--protocol fade1 --idle-timeout 1 --quiet") + " 2>&1 && exit 1",
            command,
            f"fadelink receive --backend packet --iface eth0 --feb {FEBS[0]} --verify counter --json --quiet {TAKEN} >/tmp/report & R=$!",
            UNTIL_TAKEN.format(1),
            *[command] * 3,
            "kill -INT $R; wait $R; cat /tmp/report",
        ],
    )  # fmt: skip
    lines = reports(out)
    assert [line["value"] for line in lines if "value" in line] == [1, 2, 3, 4], out
    assert lines[-1]["complete"] and lines[-1]["febs"][0]["verified"] and lines[-1]["febs"][0]["words"] > 0, out


def test_each_command_is_executed_once(bench):
    """Sessions of one command each through the driver and past it, in turns and at the same time, and one that is killed."""
    add = f"cmd --iface eth0 --feb {FEBS[0]} 0x0207 1 --timeout 50 --json"
    out, _ = session(
        bench,
        [
            f"for i in $(seq 12); do fadelink {add} --backend kernel || echo no-answer; fadelink {add} || echo no-answer; done",
            f"for i in $(seq 4); do fadelink {add} --backend kernel --repeat 20 >/dev/null & P=\"$P $!\"",
            f"fadelink {add} --repeat 20 >/dev/null & P=\"$P $!\"; done",
            "for p in $P; do wait $p || echo no-answer; done",
            f"fadelink cmd --iface eth0 --feb {FEBS[0]} --json 0x0107",
            f"fadelink {add} --backend kernel --repeat 100000 >/dev/null & P=$!",
            f"value() {{ fadelink cmd --iface eth0 --feb {FEBS[0]} --json 0x0107 | grep -o '\"value\": *[0-9]*' | grep -o '[0-9]*$'; }}",
            f"until [ \"$(value)\" -gt {24 + 8 * 20} ]; do :; done; kill -KILL $P; wait $P || true",
            f"fadelink cmd --iface eth0 --feb {FEBS[0]} --json 0x0107",
            *[f"fadelink {add} --backend kernel"] * 2,
        ],
        "--link", "loss=0.02",
    )  # fmt: skip
    values = [line["value"] for line in reports(out)]
    assert "no-answer" not in out and values[:24] == list(range(1, 25)), out
    assert values[24] == 24 + 8 * 20, "each one of those at the same time, and none twice"
    assert values[25] > values[24] and values[26:] == [values[25] + 1, values[25] + 2]


def test_what_is_wrong_is_said(bench):
    out = bench.guest.run(f"""fadelink receive --backend kernel --iface eth0 --feb {FEBS[0]} 2>&1; echo status $?
{LOAD} max_slaves=1
fadelink receive --backend kernel --iface eth9 --feb {FEBS[0]} 2>&1; echo status $?
fadelink receive --backend kernel --iface eth0 --feb {FEBS[0]} --ring 262144 2>&1; echo status $?
fadelink receive --backend kernel --iface eth0 --feb {FEBS[0]} --feb {FEBS[1]} 2>&1; echo status $?
fadelink cmd --backend kernel --iface eth0 --feb {FEBS[0]} 0x0100 --retries 1 --timeout 20 2>&1; echo status $?
rmmod fadelink; {LOAD}
fadelink receive --backend kernel --iface eth0 --feb {FEBS[0]} 2>&1 & R=$!
{UNTIL_STARTED}; ip link set eth0 down; wait $R; echo status $?
""")
    said = re.findall(r"(?:fadelink:|\bstatus ).*", out)
    expected = [
        "l3_fpga_ctl: the kernel driver is not loaded: modprobe fadelink", "status 1",
        "interface eth9 does not exist", "status 1",
        "ring of 262144 packets: expected at most 131072", "status 1",
        "all 1 devices of the kernel driver are in use", "status 1",
        "no response to command 0x0100 after 2 attempts", "status 1",
        "eth0", "status 3",
    ]  # fmt: skip
    assert len([line for line in said if line.startswith("status")]) == 6, out
    position = 0
    for text in expected:
        position = next((i + 1 for i in range(position, len(said)) if text in said[i]), None)
        assert position, f"{text!r} is not in order in {said}"


@pytest.mark.parametrize("link", ["loss=0", "loss=0.03,reorder=0.05,duplicate=0.05"])
def test_fade1(bench, link):
    """FADE v1 through the driver: found out and told, a killed reader, a last packet that is filled up, no commands."""
    words = 400 * 128 + 5
    out, boards = session(
        bench,
        [
            fadelink("receive", "--feb", FEBS[0], "--packets 40 --verify counter --json --quiet --out /tmp/data"),
            "size=$(stat -c %s /tmp/data); echo size $size",
            fadelink("receive", "--feb", FEBS[0], "--protocol fade1 --ring 64 --quiet", TAKEN) + " & R=$!",
            UNTIL_TAKEN.format(1),
            fadelink("cmd", "--feb", FEBS[0], "0x0101 --timeout 20 --retries 1") + " 2>&1 && exit 1",
            "kill -9 $R; wait $R || true",
            fadelink("receive", "--feb", FEBS[0], "--protocol fade1 --packets 50 --verify counter --json --quiet"),
            fadelink("receive", "--feb", FEBS[1], "--protocol fade1 --duration 1 --quiet") + " 2>&1 && exit 1",
            "cat /sys/kernel/debug/fadelink/l3_fpga0",
            "rmmod fadelink",
        ],
        "--protocol", "fade1", "--link", link, "--words", words,
    )  # fmt: skip
    assert "the board speaks FADE v1, which has no user commands" in out and "no data came, not even after STOP" in out
    first, second = [report["febs"][0] for report in reports(out)]
    for feb in (first, second):
        assert feb["protocol"] == "fade1" and feb["verified"] and feb["counters"]["protocol_errors"] == 0, feb
        assert feb["bytes"] % 1024 == 0 and feb["filler_words"] < 128
        assert feb["verdict"] == "complete", "the board has told how many packets it had"
        assert feb["board_resets"] == {"count": 0, "by": None}, "and that nobody sent RESET"
    assert f"size {first['bytes']}" in out and first["words"] >= 40 * 1024
    assert second["words"] - second["filler_words"] == words
    assert not boards[0]["running"]


def test_both_protocols_at_once(bench):
    bench.sim("--packet-socket", "--protocol", "fade1", "--feb", FEBS[0], "--link", "loss=0.01", iface="fade0")
    bench.sim("--packet-socket", "--feb", FEBS[1], "--link", "loss=0.01", iface="fade0")
    out = bench.guest.run(f"""set -e
{LOAD}
{fadelink("receive", "--feb", FEBS[0], "--feb", FEBS[1], "--packets 60 --verify counter --json --quiet")}
""")
    febs = reports(out)[0]["febs"]
    assert [feb["protocol"] for feb in febs] == ["fade1", "fade10g"] and all(feb["verified"] for feb in febs)


@pytest.mark.parametrize(
    "firmware,protocol,loss",
    [("fadelink", "fade10g", "0.03"), ("published-10g", "fade10g", "0"), ("published-v1", "fade1", "0.03")],
)
def test_boards_of_every_firmware(bench, firmware, protocol, loss):
    """Found out by the driver, its words made native there; killed readers, and numbers of valid words."""
    words = 200 * 1024 + 77
    board = bench.start(bench.board_ns, FADELINK_HERE, "feb", "--iface", "fade0", "--feb", FEBS[0], "--firmware", firmware,
                        "--loss", loss, "--seed", SEED, "--words", words)  # fmt: skip
    # The published core of FADE v1 tells no end.
    is_v1 = firmware == "published-v1"
    receive = fadelink("receive", "--feb", FEBS[0], "--packets 200 --verify counter --json --quiet" + " --end silence" * is_v1)
    unconfirmed = fadelink("receive", "--feb", FEBS[0], "--packets 200 --json --quiet") + " && exit 1 || [ $? = 3 ]"
    out = bench.guest.run(f"""set -e
{LOAD}
{receive}
for i in 1 2; do
    {fadelink("receive", "--feb", FEBS[0], "--quiet", TAKEN)} & R=$!
    {UNTIL_TAKEN.format(1)}; kill -9 $R; wait $R || true; rm /tmp/taken-*
done
{receive} --out /tmp/data
cat /tmp/data.json
{unconfirmed if is_v1 else fadelink("status", "--feb", FEBS[0], "--json")}
rmmod fadelink
""")
    board.signal(signal.SIGTERM)
    assert board.finish()[0] == 0
    lines = reports(out)
    first, last, *more = [line["febs"][0] for line in lines if "febs" in line]
    assert [feb["verdict"] for feb in more] == ["end_not_confirmed"] * is_v1
    expected = words // 128 * 128 if is_v1 else words
    for feb in (first, last):
        assert feb["verified"] and feb["words"] == expected, feb
        assert (feb["firmware"], feb["protocol"]) == (firmware, protocol), feb
    assert first["counters"]["interrupted"] == 0
    if firmware == "published-10g" and loss == "0":
        # On a slow machine a command is repeated, and has two responses.
        assert last["counters"]["unexpected_responses"] < last["counters"]["commands"], last
    manifest = json.loads(re.search(r"^\{$.*?^\}$", out.replace("\r", ""), re.M | re.S)[0])
    assert manifest["firmware"] == firmware and manifest["complete"] and manifest["bytes"] == 8 * expected
    assert manifest["wire_word_order"] == ("little" if firmware == "fadelink" else "big") and manifest["word_order"] == "little"


def test_doctor_and_a_card_with_settings(bench):
    """Ring and interrupt moderation of a card that has them: found, mended by the lines that are printed, and good."""
    doctor = "fadelink doctor --iface eth1 --json"
    has_carrier = "for i in $(seq 100); do [ $(cat /sys/class/net/eth1/carrier) = 0 ] || break; sleep 0.1; done"
    fixes = r"""tr '{' '\n' | sed -n 's/.*"fix":"\(ethtool [^"]*\)".*/\1/p' >/tmp/fixes"""
    script = ["set -e", "ip link set eth1 up", has_carrier, doctor, f"{doctor} | {fixes}", "sh -e /tmp/fixes", "sleep 0.1", has_carrier, doctor]
    out = bench.guest.run("\n".join(script))
    before, after = ({finding["check"]: finding for finding in json.loads(line)} for line in re.findall(r"(\[\{.*\}\])\s*$", out, re.M))
    assert before["receive ring"]["fix"] == "ethtool -G eth1 rx 4096"
    assert before["interrupt moderation"]["fix"] == "ethtool -C eth1 rx-usecs 0"
    assert {after[check]["state"] for check in ("receive ring", "interrupt moderation")} == {"good"}, after
