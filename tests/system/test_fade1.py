"""`fadelink receive` from simulated boards of FADE v1, and of both protocols at once."""

import json
import signal
import sys

import pytest
from support.block import C1
from support.netns import FEBS, sh, wait_for
from support.paths import FADELINK, TOP
from support.python import python

LINKS = ["", "loss=0.01", "loss=0.05,duplicate=0.02", "reorder=0.02,corrupt=0.01"]


def report(process):
    status, out, err = process.finish()
    assert out, err
    return status, json.loads(out), err


def fade1(bench, *options):
    return bench.sim("--protocol", "fade1", *options)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_every_word_arrives(bench, link, backend):
    """The receiver finds out by itself what the board speaks."""
    sim = fade1(bench, *(["--link", link] if link else []))
    process = bench.receive("--verify", "counter", "--packets", "150", "--backend", backend)
    status, result, err = report(process)
    feb = result["febs"][0]
    assert status == 0 and feb["verified"] and feb["protocol"] == "fade1", (result, err)
    assert feb["words"] >= 150 * 1024 and feb["counters"]["protocol_errors"] == 0
    assert feb["bytes"] % 1024 == 0 and feb["filler_words"] < 128
    board = bench.end_sim(sim)["boards"][0]
    assert board["running"] is False and (not link or board["retransmitted"] > 0)


def test_an_ordinary_mtu_is_enough(bench):
    for namespace, name in [(bench.board_ns, "feb0"), (bench.pc_ns, "eth0")]:
        sh("ip", "-n", namespace, "link", "set", name, "mtu", 1500)
    fade1(bench, "--words", 1280)
    status, result, err = report(bench.receive("--verify", "counter", "--protocol", "fade1", "--duration", "1"))
    assert status == 0 and result["febs"][0]["words"] == 1280, (result, err)
    status, _, err = bench.receive("--verify", "counter", "--duration", "1").finish()
    assert status == 1 and "MTU 1500" in err, "it may speak FADE-10G"


@pytest.mark.parametrize("words", [5, 128, 129])
def test_the_last_packet_is_filled_up(bench, words):
    fade1(bench, "--words", words)
    out = bench.tmp / "data"
    process = bench.receive("--verify", "counter", "--protocol", "fade1", "--duration", "0.5", "--out", out)
    status, result, err = report(process)
    feb = result["febs"][0]
    assert status == 0 and feb["words"] - feb["filler_words"] == words, (result, err)
    data = out.read_bytes()
    expected = b"".join(i.to_bytes(8, "little") for i in range(words))
    assert len(data) % 1024 == 0 and data == expected.ljust(len(data), b"\xa5")
    assert len(data) - len(expected) < 1024


def test_both_protocols_at_once(bench):
    fade1(bench, "--feb", FEBS[0], "--link", "loss=0.02")
    bench.sim("--feb", FEBS[1], "--link", "loss=0.02", "--packet-socket")
    process = bench.fadelink(
        "receive", "--iface", "eth0", "--feb", FEBS[0], "--feb", FEBS[1], "--verify", "counter", "--packets", "100",
        "--json",
    )  # fmt: skip
    status, result, err = report(process)
    assert status == 0 and [feb["protocol"] for feb in result["febs"]] == ["fade1", "fade10g"], (result, err)
    assert all(feb["verified"] for feb in result["febs"])


def test_a_killed_receiver_starts_again(bench):
    """The board still sends when the next START comes."""
    sim = fade1(bench)
    first = bench.receive("--protocol", "fade1", "--quiet", "--out", bench.tmp / "first")
    wait_for(lambda: (bench.tmp / "first").exists() and (bench.tmp / "first").stat().st_size > 100_000)
    first.popen.kill()
    first.popen.communicate()
    status, result, err = report(bench.receive("--verify", "counter", "--packets", "100"))
    assert status == 0 and result["febs"][0]["verified"], (result, err)
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_a_feb_that_nobody_opened_is_reset(bench):
    sim = fade1(bench)
    first = bench.receive("--protocol", "fade1", "--quiet", "--out", bench.tmp / "first")
    wait_for(lambda: (bench.tmp / "first").exists() and (bench.tmp / "first").stat().st_size > 100_000)
    first.popen.kill()
    first.popen.communicate()
    status, result, err = report(bench.receive("--protocol", "fade1", "--quiet", "--duration", "0.5", feb=FEBS[2]))
    assert status == 3 and "no data came" in err, "no such FEB"
    assert result["link"]["unknown_feb"] > 0 and result["link"]["resets"] > 0, result
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_user_commands_are_refused(bench):
    fade1(bench)
    words = ["cmd", "--iface", "eth0", "--feb", FEBS[0]]
    for command in ("0x0101", "scratch"):
        # Its answer says so, and nothing is waited for.
        status, _, err = bench.run(*words, command, "--timeout", 60_000)
        assert status == 1 and "the board speaks FADE v1, which has no user commands" in err, err
    status, _, err = bench.run("cmd", "--iface", "eth0", "--feb", FEBS[2], "0x0101", "--timeout", "50", "--retries", "2")
    assert status == 1 and "command 0x0101 was not sent" in err


def test_software_feb(bench):
    bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--protocol", "fade1")
    status, result, err = report(bench.receive("--verify", "counter", "--packets", "2000"))
    assert status == 0 and result["febs"][0]["verified"] and result["febs"][0]["protocol"] == "fade1", (result, err)


def test_block_acks_go_to_boards_that_take_them(bench):
    """Of three boards at full speed one offers no block ACKs and one is the published core: each of their frames gets an ACK."""
    options = [[], ["--quirk", "no-block-acks"], ["--firmware", "published-v1"]]
    for feb, option in zip(FEBS, options, strict=False):
        bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", feb, "--protocol", "fade1", "--loss", 0.01, *option)
    words = [word for feb in FEBS[:3] for word in ("--feb", feb)]
    process = bench.fadelink("receive", "--iface", "eth0", *words, "--protocol", "fade1", "--packets", 3000, "--quiet", "--json",
                             "--end", "silence")  # fmt: skip
    status, result, err = report(process)
    assert status == 0, err
    block, *each = (feb["counters"] for feb in result["febs"])
    assert block["acks"] < block["packets"] >= 3000
    assert all(feb["acks"] == feb["packets"] + feb["duplicates"] for feb in each)


def test_capture_is_dissected(bench):
    capture = bench.tmp / "fade1.pcap"
    sim = fade1(bench, "--pcap", capture, "--words", 1280)
    status, _, err = report(bench.receive("--verify", "counter", "--protocol", "fade1", "--duration", "0.5"))
    assert status == 0, err
    bench.end_sim(sim)
    status, out, err = bench.run("dissect", capture, "--json", "--summary")
    counts = json.loads(out)
    assert status == 0 and counts["data"] >= 10 and 0 < counts["ack"] <= counts["data"]
    # One without a permit, and one with it.
    assert counts["start"] == 2 and 1 <= counts["stop"] and 3 <= counts["state"] <= counts["start"] + counts["stop"] + counts.get("identify", 0)
    assert "malformed" not in counts
    fields = sh("tshark", "-X", f"lua_script:{TOP}/tools/wireshark/fade.lua", "-r", capture, "-T", "fields",
                "-e", "fade.type", "-e", "fade.set", "-e", "fade.set_packet", "-e", "_ws.malformed")  # fmt: skip
    rows = [line.split("\t") for line in fields.splitlines()]
    data = [(int(row[1]), int(row[2])) for row in rows if int(row[0], 16) == 0xA5A5]
    assert data[:10] == [(0, i) for i in range(10)] and len(data) == counts["data"]
    assert not any(row[3] for row in rows)


def told(bench):
    """What the board reports on its transmission."""
    status, out, err = bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.3, "--feb", FEBS[0])
    assert status == 0, err
    return json.loads(out)["identity"]


def send_as(bench, source, kind, fields=b""):
    """A request to the board in the name of `source`."""
    addresses = b"".join(bytes.fromhex(mac.replace(":", "")) for mac in (FEBS[0], source))
    with bench.raw(bench.pc_ns, "eth0") as raw:
        raw.send((addresses + b"\xfa\xde" + kind.to_bytes(2, "big") + fields).ljust(C1["REQUEST_LEN"], b"\xa5"))


def ended(process):
    """What is said at the end, which does not call it complete."""
    process.signal(signal.SIGINT)
    status, result, _ = report(process)
    assert status == 3 and not result["complete"], result
    return json.dumps(result["febs"][0])


def test_another_computers_transmission_is_not_this_one(bench):
    """It has as many packets, and was ended by STOP."""
    other, packets = "02:00:00:00:00:99", 12
    fade1(bench, "--words", packets * 128)
    out = bench.tmp / "data"
    process = bench.receive("--protocol", "fade1", "--out", out)
    wait_for(lambda: out.exists() and out.stat().st_size == packets * 1024)
    send_as(bench, other, C1["TYPE_RESET"])
    send_as(bench, other, C1["TYPE_START"])

    def is_confirmed():
        for packet in range(packets):
            send_as(bench, other, C1["TYPE_ACK"], bytes(2) + (packet << 10).to_bytes(2, "big"))
        send_as(bench, other, C1["TYPE_STOP"])
        found = json.loads(bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.3, "--feb", FEBS[0])[1] or "{}")
        return (found.get("identity") or {}).get("state") == "ended"

    wait_for(is_confirmed)
    assert told(bench)["packets"] == packets and told(bench)["transmission"] == 0xA5A5
    assert "another transmission" in ended(process)


def test_a_board_without_a_packet_that_loses_its_power(bench):
    """START is not repeated when the board has begun: it would begin anew, and what it had would be missing."""
    sim = fade1(bench, "--words", 100)
    process = bench.receive("--protocol", "fade1")
    wait_for(lambda: told(bench)["state"] == "running")
    sim.popen.kill()
    sim.finish()
    fade1(bench, "--words", 50)
    wait_for(lambda: told(bench)["state"] == "idle")
    assert "switched off" in ended(process)


def test_a_stop_that_the_receiver_did_not_send(bench):
    """It has the address of this computer."""
    fade1(bench, "--gap", 400)
    out = bench.tmp / "data"
    process = bench.receive("--protocol", "fade1", "--out", out)
    wait_for(lambda: out.exists() and out.stat().st_size > 0)
    local = bench.run_in(bench.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
    send_as(bench, local, C1["TYPE_STOP"])
    wait_for(lambda: told(bench)["state"] == "ended")
    assert "foreign" in ended(process)


def test_boards_share_a_port_of_a_switch(bench):
    """Two boards through one port with a small queue: loss, yet every word arrives from both."""
    sim = fade1(bench, "--boards", 2, "--switch", "rate=1000,queue=16384")
    process = bench.fadelink("receive", "--iface", "eth0", "--feb", FEBS[0], "--feb", FEBS[1], "--verify", "counter",
                             "--packets", "400", "--json")  # fmt: skip
    status, result, err = report(process)
    assert status == 0 and all(feb["verified"] for feb in result["febs"]), (result, err)
    assert bench.end_sim(sim)["switch"]["queue_full"] > 0


@pytest.mark.parametrize("words", [1, 127, 128, 129, 1285])
@pytest.mark.parametrize("how", ["blocks", "read", "asyncio"])
def test_python_leaves_filler_out(bench, words, how):
    """The board tells at the end how much of the last packet is filler; before, words that look like it are held back."""
    fade1(bench, "--words", words)
    python(
        bench,
        f"""
words, how = {words}, {how!r}
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC, protocol="fade1") as feb:
    feb.start()
    threading.Timer(0.1, feb.stop).start()
    found = []
    if how == "blocks":
        found = [block.copy() for block in feb.blocks(8)]
    elif how == "read":
        while (block := feb.read(1, 60)) is not None:
            with block as data:
                found.append(data.copy())
    else:
        async def main():
            async for data in feb.blocks_async(1024):
                found.append(data.copy())
        asyncio.run(main())
    found = np.concatenate(found)
    assert (found == np.arange(words)).all() and len(found) == words, found
    assert feb.filler() == fadelink.Filler(words=-words % 128, possible=0) and feb.ending() == "confirmed" and feb.against() == []
    raises(ValueError, "expected fade10g or fade1", receiver.open, OTHER, protocol="fade2")
""",
    )


# Words of a board that look like filler, at any place of its packets.
LOOKS = 0xA5A5A5A5A5A5A5A5
SENT = {
    "all of a packet": [LOOKS] * 128,
    "the last ones": [1] * 100 + [LOOKS] * 28,
    "all of several packets": [LOOKS] * 1000,
    "the end of each packet": ([7] * 127 + [LOOKS]) * 5,
    "before filler": [1] * 130 + [LOOKS] * 20,
}


@pytest.mark.parametrize("tells", ["tells", "tells-not"])
@pytest.mark.parametrize("sent", SENT)
def test_python_cuts_no_word_off(bench, sent, tells):
    """A board that tells its filler; and one that does not, of which all is given, and what may be filler is told."""
    words = SENT[sent]
    source = bench.start(bench.board_ns, sys.executable, TOP / "tests/support/fade1_source.py", "feb0", FEBS[0], tells, json.dumps(words))
    assert source.popen.stdout.readline() == "ready\n"
    python(
        bench,
        f"""
sent, is_told = np.array({words}, dtype="u8"), {tells == "tells"}
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC, protocol="fade1") as feb:
    feb.start()
    threading.Timer(0.1, feb.stop).start()
    found = np.concatenate([block.copy() for block in feb.blocks(8)])
    filler = -len(sent) % 128
    told = feb.filler()
    assert (found[:len(sent)] == sent).all(), found
    if is_told:
        assert len(found) == len(sent) and told == (filler, 0), told
    else:
        assert len(found) == len(sent) + filler and (found[len(sent):] == {LOOKS}).all()
        same = int(np.argmin(found[::-1] == {LOOKS})) if (found != {LOOKS}).any() else len(found)
        assert told == (None, min(same, 128)), told
""",
    )
