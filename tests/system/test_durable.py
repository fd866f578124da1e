"""`confirm = "durable"`: a packet is confirmed when it is on the disk, and a run goes on after its program was killed."""

import errno
import json
import random
import signal
import time
import zlib

import numpy
import pytest
from support import faults
from support.block import C
from support.crate import reasons
from support.lab import end, fade, is_counter, sealed_list, words
from support.netns import FEBS, wait_for
from support.paths import SEED

CORES = {"fade10g": [], "fade1": ["--protocol", "fade1"]}
# Slow enough that a program that was killed has not had all.
SLOW = {"fade10g": ["--gap", 200], "fade1": ["--protocol", "fade1", "--phy", "gmii", "--gap", 1600]}
PACKET_BYTES = {"fade10g": 8192, "fade1": 1024}


def kill(process):
    process.signal(signal.SIGKILL)
    process.finish()


def power_cycle(lab, sim, *options):
    """Switches a board off without a word, and another one on."""
    kill(sim)
    return lab.bench.sim(*options)


def wait_for_more(path, count):
    """Waits until a file has so many bytes more."""
    before = path.stat().st_size if path.exists() else 0
    wait_for(lambda: path.exists() and path.stat().st_size >= before + count)


def has_more_since_it_goes_on(lab, count):
    """Whether the file of a run that goes on has so many bytes more than were certain of the run before."""
    resumed = lab.manifest(1).get("resumed", [])
    return resumed and (lab.runs / "run_000001/left.dat").stat().st_size >= resumed[-1]["bytes"]["left"] + count


def wait_until_it_runs(lab):
    """Waits until the board says that a transmission of it runs."""

    def runs():
        status, out, _ = lab.bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.2, "--feb", FEBS[0])
        # It may be busy.
        identity = json.loads(out)["identity"] if status == 0 else None
        return identity is not None and (identity.get("running") or identity.get("state") == "running")

    wait_for(runs)


def begins(board):
    """Where the transmissions of its data begin."""
    return [transmission["begin"] for transmission in board["transmissions"]]


@pytest.mark.parametrize("protocol", CORES)
def test_a_run_goes_on_after_it_was_killed(lab, protocol):
    """Killed again and again at random moments: no confirmed word is missing, and none is there twice."""
    moments = random.Random(f"{SEED} {protocol}")
    sim = lab.bench.sim(*CORES[protocol], "--link", "loss=0.01")
    lab.write('confirm = "durable"\nsinks = ["file:{board}.dat,roll=1M"]\n' + fade("left"))
    data = lab.runs / "run_000001"
    size = lambda: sum(path.stat().st_size for path in data.glob("left*.dat"))  # noqa: E731
    for _ in range(5):
        process = lab.start()
        before = size()
        wait_for(lambda: size() > before)
        # The moment of the kill is random.
        time.sleep(moments.uniform(0, 0.5))
        kill(process)
    lab.write(lab.file.read_text())
    process = lab.start()
    before = size()
    wait_for(lambda: size() > before)
    status, err = end(process)
    manifest = lab.manifest()
    board = manifest["boards"][0]
    assert status == 0 and manifest["state"] == "complete", (err, manifest)
    assert manifest["run"] == 1 and len(manifest["resumed"]) == 5 and board["restarted"] is None
    parts = [data / "left.dat", *sorted(data.glob("left.0*.dat"))]
    found = numpy.concatenate([words(part) for part in parts])
    assert is_counter(found[: found.size - board["filler_words"]]) and found.size * 8 == board["bytes"]
    crc = f"{zlib.crc32(found.tobytes()):08x}"
    assert board["crc32"] == {"board": crc, "received": crc, "filler_words": board["filler_words"]}, "of the whole"
    assert board["verified"] and lab.check()[0] == 0
    assert not lab.bench.end_sim(sim)["boards"][0]["running"]


def test_a_run_of_confirmation_in_memory_is_closed_after_a_crash(lab):
    """What is certain of it is kept, and the next run begins."""
    lab.bench.sim()
    lab.write('sinks = ["file:{board}.dat,roll=4M", "hdf5:{board}.h5"]\n' + fade("left"))
    process = lab.start()
    # What is certain of it: the number in front of the last record of hashes, which are 56 bytes long.
    certain = lambda: int.from_bytes((lab.runs / "run_000001/left.hashes").read_bytes()[-56:][:8], "little")  # noqa: E731
    wait_for(lambda: len(list(lab.runs.glob("run_000001/left.0*.dat"))) > 2 and certain() >= 8 << 20)
    kill(process)
    assert lab.check(1)[1]["findings"][0].startswith("the run is running: it goes on, or its program was ended by force")
    status, out, err = lab.start("--duration", "1").finish()
    assert status == 0 and "run 1 was ended by force" in err, err
    first, second = lab.manifest(1), lab.manifest(2)
    board = first["boards"][0]
    assert (first["state"], first["ended_by"], second["state"]) == ("crashed", "crash", "complete")
    data = lab.runs / "run_000001"
    found = numpy.concatenate([words(part) for part in [data / "left.dat", *sorted(data.glob("left.0*.dat"))]])
    assert is_counter(found) and found.size * 8 == board["bytes"] == board["hashes"]["bytes"] >= 8 << 20
    status, checked = lab.check(1)
    # Of what was written in the moment of the kill, too.
    unfinished = [finding for finding in checked["findings"] if "crashed" not in finding]
    assert status == 3 and "left.h5.part: it was not finished" in unfinished
    assert all(finding.endswith(".part: it was not finished") for finding in unfinished), unfinished


def test_a_board_that_was_reset_begins_anew_in_the_same_run(lab):
    sim = lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    kill(process)
    lab.bench.end_sim(sim)
    before = data.stat().st_size
    lab.bench.sim()
    process = lab.start()
    wait_for(lambda: has_more_since_it_goes_on(lab, 8192))
    status, err = end(process)
    manifest = lab.manifest(1)
    board = manifest["boards"][0]
    # What the board had not sent when it was reset is lost.
    assert status == 3 and "a new one begins behind byte" in err, err
    assert reasons(board) == ["restarted"] and manifest["state"] == "incomplete"
    restarted = board["restarted"]
    assert 0 < restarted <= before and manifest["resumed"][0]["bytes"] == {"left": restarted}
    found = words(data)
    assert is_counter(found[: restarted // 8]) and is_counter(found[restarted // 8 :]) and found.size * 8 > restarted
    assert board["wrong_words"] == 0 and lab.check(1)[1]["findings"] == ["the run is incomplete: data of it is missing, see boards in its manifest"]


def follow_each_other(found, board):
    """Each transmission in the words of a board has every word from its first one on."""
    ends = [*(begin // 8 for begin in begins(board)[1:]), found.size - board["filler_words"]]
    return all(is_counter(found[begin // 8 : end]) for begin, end in zip(begins(board), ends, strict=True))


@pytest.mark.parametrize("protocol", SLOW)
def test_a_restart_is_not_forgotten(lab, protocol):
    """The run goes on again and again behind it, and with the newest transmission, of which no confirmed word is lost."""
    sim = lab.bench.sim(*SLOW[protocol])
    lab.write('confirm = "durable"\n' + fade("left"))
    data, packet = lab.runs / "run_000001/left.dat", PACKET_BYTES[protocol]
    process = lab.start()
    wait_for_more(data, 10 * packet)
    kill(process)
    for _ in range(2):
        sim = power_cycle(lab, sim, *SLOW[protocol])
        for _ in range(2):
            process = lab.start()
            wait_for_more(data, 5 * packet)
            kill(process)
    process = lab.start()
    wait_for_more(data, 5 * packet)
    status, err = end(process)
    manifest = lab.manifest(1)
    (board,) = manifest["boards"]
    resumed = [moment["bytes"]["left"] for moment in manifest["resumed"]]
    assert status == 3 and manifest["state"] == "incomplete" and reasons(board) == ["restarted"], (err, manifest)
    assert begins(board) == [0, resumed[0], resumed[2]] and board["restarted"] == resumed[0] >= packet
    assert f"recorded behind byte {resumed[0]}" in board["reasons"][0]["text"] and board["wrong_words"] == 0
    found = words(data)
    assert follow_each_other(found, board) and found.size * 8 == board["bytes"]
    assert lab.check(1)[1]["findings"] == ["the run is incomplete: data of it is missing, see boards in its manifest"]
    assert not lab.bench.end_sim(sim)["boards"][0]["running"]


@pytest.mark.parametrize("protocol", SLOW)
def test_a_transmission_of_another_program_is_not_taken_for_this_one(lab, protocol):
    """While the run is away, another program has the board, gets further, and is killed, too."""
    sim = lab.bench.sim(*SLOW[protocol])
    lab.write('confirm = "durable"\n' + fade("left"))
    data, other = lab.runs / "run_000001/left.dat", lab.bench.tmp / "other"
    packet = PACKET_BYTES[protocol]
    process = lab.start()
    wait_for_more(data, 5 * packet)
    kill(process)
    ours = data.stat().st_size
    stranger = lab.bench.receive("--out", other, "--confirm", "durable")
    wait_for(lambda: other.exists() and other.stat().st_size > ours + packet)
    kill(stranger)
    process = lab.start()
    wait_for_more(data, 5 * packet)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and reasons(board) == ["restarted"], (err, board)
    numbers = [transmission["transmission"] for transmission in board["transmissions"]]
    assert len(set(numbers)) == 2 and None not in numbers and "another program has begun another transmission" in err, (err, numbers)
    found, begin = words(data), board["restarted"] // 8
    behind = found[begin : found.size - board["filler_words"]]
    assert begin * 8 <= ours and is_counter(found[:begin]) and (numpy.diff(behind) == 1).all(), (begin, behind)
    assert not lab.bench.end_sim(sim)["boards"][0]["running"]


@pytest.mark.parametrize("protocol", SLOW)
def test_a_transmission_of_which_nothing_has_come_is_lost_too(lab, protocol):
    """Its words do not fill a packet, and the board loses its power."""
    sim = lab.bench.sim(*CORES[protocol], "--words", 100)
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    wait_until_it_runs(lab)
    kill(process)
    power_cycle(lab, sim, *CORES[protocol], "--words", 50)
    process = lab.start()
    wait_until_it_runs(lab)
    status, err = end(process)
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and reasons(board) == ["restarted"] and board["restarted"] == 0, (err, board)
    assert begins(board) == [0, 0] and "a new one begins behind byte 0" in err
    found = words(lab.runs / "run_000001/left.dat")
    assert found.size - board["filler_words"] == 50 and is_counter(found[:50])


@pytest.mark.parametrize("protocol", SLOW)
@pytest.mark.parametrize("half_written", [False, True])
def test_a_kill_between_the_note_of_a_transmission_and_its_start(lab, protocol, half_written):
    """What is noted and was not begun counts as lost; a note that is half-written is none."""
    sim = lab.bench.sim(*SLOW[protocol])
    lab.write('confirm = "durable"\n' + fade("left"))
    data, packet = lab.runs / "run_000001/left.dat", PACKET_BYTES[protocol]
    process = lab.start()
    wait_for_more(data, 10 * packet)
    kill(process)
    # As of a program that has found the board reset: all that is in the file is certain.
    list_ = lab.runs / "run_000001/left.transmissions"
    note = sealed_list([{"begin": 0, "transmission": None}, {"begin": data.stat().st_size, "transmission": None}])
    if half_written:
        list_.with_name(list_.name + ".part").write_text(note[:40])
    else:
        list_.write_text(note)
    power_cycle(lab, sim, *SLOW[protocol])
    process = lab.start()
    wait_for_more(data, 5 * packet)
    status, err = end(process)
    (board,) = lab.manifest(1)["boards"]
    restarted = lab.manifest(1)["resumed"][0]["bytes"]["left"]
    assert status == 3 and reasons(board) == ["restarted"] and board["restarted"] == restarted >= 10 * packet, (err, board)
    assert begins(board) == [0, restarted] + [restarted] * (not half_written) and follow_each_other(words(data), board)
    assert lab.check(1)[1]["findings"] == ["the run is incomplete: data of it is missing, see boards in its manifest"]


def test_a_new_transmission_of_which_nothing_has_come_goes_on(lab):
    """The program is killed directly behind its START; the words that the board has come with STOP."""
    sim = lab.bench.sim(*SLOW["fade10g"])
    lab.write('confirm = "durable"\n' + fade("left"))
    data = lab.runs / "run_000001/left.dat"
    process = lab.start()
    wait_for_more(data, 5 * 8192)
    kill(process)
    sim = power_cycle(lab, sim, "--words", 50)
    process = lab.start()
    wait_until_it_runs(lab)
    kill(process)
    process = lab.start()
    wait_for(lambda: lab.manifest(1).get("resumed", [])[1:])
    status, err = end(process)
    (board,) = lab.manifest(1)["boards"]
    first, second = (moment["bytes"]["left"] for moment in lab.manifest(1)["resumed"])
    found = words(data)
    assert status == 3 and reasons(board) == ["restarted"] and first == second == board["restarted"], (err, board)
    assert begins(board) == [0, first] and found.size == first // 8 + 50 and follow_each_other(found, board)
    assert not lab.bench.end_sim(sim)["boards"][0]["running"]


def test_the_last_packet_of_a_restarted_transmission_is_its_end(lab):
    """Killed when STOP was sent and all was confirmed: only the last packet of the newest transmission is not full."""
    sim = lab.bench.sim(*SLOW["fade10g"])
    lab.write('confirm = "durable"\n' + fade("left"))
    data, manifest = lab.runs / "run_000001/left.dat", lab.runs / "run_000001/manifest.json"
    process = lab.start()
    wait_for_more(data, 5 * 8192)
    kill(process)
    power_cycle(lab, sim, "--words", 3000)
    # All is recorded, and the file with the description of it cannot be written: the run does not end.
    failing = faults.environment(disk=data.with_name("left.dat.json"), after=400, error=errno.EIO)
    process = lab.bench.fadelink("run", lab.file, "--quiet", env=failing)
    wait_for(lambda: has_more_since_it_goes_on(lab, 2 * 8192))
    process.signal(signal.SIGTERM)
    process.finish()
    assert json.loads(manifest.read_text())["state"] == "stopping"
    status, _, err = lab.start().finish()
    (board,) = lab.manifest(1)["boards"]
    found = words(data)
    assert status == 3 and reasons(board) == ["restarted"], (err, board)
    assert found.size == board["restarted"] // 8 + 3000 and follow_each_other(found, board)


def test_a_board_beside_one_that_was_restarted_is_complete(lab):
    sims = [lab.bench.sim(*SLOW["fade10g"], "--feb", feb) for feb in FEBS[:2]]
    lab.write('confirm = "durable"\n' + fade("left") + fade("right", 1))
    folder = lab.runs / "run_000001"
    files = [folder / "left.dat", folder / "right.dat"]
    for cycle in (False, True, False):
        if cycle:
            sims[1] = power_cycle(lab, sims[1], *SLOW["fade10g"], "--feb", FEBS[1])
        process = lab.start()
        before = [path.stat().st_size if path.exists() else 0 for path in files]
        grown = lambda: [path.exists() and path.stat().st_size > was + 4 * 8192 for path, was in zip(files, before, strict=True)]  # noqa: B023, E731
        wait_for(lambda: all(grown()))
        kill(process)
    process = lab.start()
    wait_for(lambda: len(lab.manifest(1).get("resumed", [])) == 3)
    status, err = end(process)
    left, right = lab.manifest(1)["boards"]
    assert status == 3 and lab.manifest(1)["state"] == "incomplete", err
    assert left["verdict"] == "complete" and left["restarted"] is None and begins(left) == [0], left
    assert reasons(right) == ["restarted"] and begins(right) == [0, right["restarted"]], right
    for board, path in zip((left, right), files, strict=True):
        assert follow_each_other(words(path), board) and words(path).size * 8 == board["bytes"]


def test_a_run_that_could_not_begin_has_ended(lab):
    """The board is away when the run begins: nothing of it is left, no list of transmissions either, and the next one is whole."""
    lab.write('confirm = "durable"\n' + fade("left", more='protocol = "fade10g"\nfirmware = "fadelink"'))
    status, _, err = lab.start().finish()
    assert status == 1 and "START" in err and not list(lab.runs.glob("run_*")), err
    lab.bench.sim()
    status, _, err = lab.start("--duration", "1").finish()
    (board,) = lab.manifest(1)["boards"]
    assert status == 0 and board["verdict"] == "complete" and begins(board) == [0], (err, board)
    assert lab.check(1)[0] == 0


@pytest.mark.parametrize("was_killed", [False, True])
def test_a_board_of_fade1_that_has_lost_its_power_ends_the_run(lab, was_killed):
    """Asked to stop it says that it has sent nothing: the run ends, and the next one begins."""
    sim = lab.bench.sim(*SLOW["fade1"])
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    wait_for_more(lab.runs / "run_000001/left.dat", 5 * 1024)
    if was_killed:
        kill(process)
        lab.change(1, state="stopping")
    power_cycle(lab, sim, *SLOW["fade1"])
    if was_killed:
        process = lab.start()
    else:
        process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and lab.manifest(1)["state"] == "incomplete" and reasons(board) == ["board"], (err, board)
    assert "switched off" in board["reasons"][0]["text"] and board["error"] is None and board["restarted"] is None
    assert is_counter(words(lab.folder(1) / "left.dat"))
    process = lab.start()
    wait_for_more(lab.runs / "run_000002/left.dat", 1024)
    status, err = end(process)
    assert status == 0 and lab.manifest(2)["state"] == "complete", err


@pytest.mark.parametrize("lost_its_power", [False, True])
def test_an_end_that_nobody_has_seen_is_none(lab, lost_its_power):
    """STOP was sent, the program was killed, and the board was reset before the next one asks for its last packet."""
    sim = lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    kill(process)
    if lost_its_power:
        power_cycle(lab, sim)
    else:
        feb, other = (bytes.fromhex(mac.replace(":", "")) for mac in (FEBS[0], "02:00:00:00:00:99"))
        with lab.bench.raw(lab.bench.pc_ns, "eth0") as raw:
            raw.send((feb + other + b"\xfa\xde\1\0" + C["CMD_RESET"].to_bytes(2, "big")).ljust(C["REQUEST_LEN"], b"\xa5"))
    lab.change(1, state="stopping")
    status, _, err = lab.start().finish()
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and lab.manifest(1)["state"] == board["verdict"], (err, board)
    # The board says that the last packet has not come.
    text = "switched off" if lost_its_power else "has sent RESET"
    assert reasons(board) == ["board"] and text in board["reasons"][0]["text"], board


def test_another_experiment_does_not_go_on_with_the_run(lab):
    lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    kill(process)
    lab.write('title = "other"\nconfirm = "durable"\n' + fade("left"))
    status, _, err = lab.start("--duration", "1").finish()
    assert status == 0 and lab.manifest(1)["state"] == "crashed" and lab.manifest(2)["state"] == "complete", err
