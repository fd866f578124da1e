"""The kernel driver in Debian's kernel, against the simulated boards."""

import random
import re
import select
import signal
import time
from pathlib import Path

import pytest
from support.guest import LOAD, default_kernel, session
from support.netns import FEBS
from support.paths import FADELINK, SEED

# The first device has data, of the first program since the driver was loaded.
UNTIL_DATA = "until grep -q '^packets [1-9]' /sys/kernel/debug/fadelink/l3_fpga0; do sleep 0.1; done"
# The card leaves its driver, and comes back.
UNBIND = "D=$(basename $(readlink /sys/class/net/eth0/device)); echo $D >/sys/bus/virtio/drivers/virtio_net/unbind"
BIND = "echo $D >/sys/bus/virtio/drivers/virtio_net/bind"
READ = "abi_reader /dev/l3_fpga{0} eth0 {1} {2}"


@pytest.mark.parametrize("link", ["loss=0", "loss=0.02", "loss=0.01,reorder=0.1,duplicate=0.1"])
def test_published_abi(bench, link):
    out, boards = session(bench, [READ.format(0, FEBS[0], 8_000_000), "cat /sys/kernel/debug/fadelink/l3_fpga0"], "--link", link)
    assert "words, all right" in out
    assert not boards[0]["running"]


def test_published_calls_mean_what_is_published(bench):
    """Each line of the table in docs/driver.md, by a program that has nothing of this project."""
    hz = re.search(r"^CONFIG_HZ=(\d+)$", Path(default_kernel().headers, ".config").read_text(), re.M)[1]
    out, _ = session(bench, [f"abi_reader /dev/l3_fpga0 eth0 {FEBS[0]} meanings {hz}"], "--link", "loss=0.01")
    assert "all calls mean what is published" in out, out


def test_signals_during_commands(bench):
    """A call that signals disturb executes its command once, and a START among them begins."""
    out, _ = session(bench, [f"abi_reader /dev/l3_fpga0 eth0 {FEBS[0]} signals 20"], "--link", "loss=0.02,delay=1ms")
    assert "20 commands, 20 executed, many signals" in out, out


def test_published_abi_and_published_firmware(bench):
    """What was written for both reads big-endian words from the ring; a killed reader, and another."""
    board = bench.start(bench.board_ns, FADELINK, "feb", "--iface", "fade0", "--feb", FEBS[0],
                        "--firmware", "published-10g", "--loss", "0.02", "--seed", SEED, "--json")  # fmt: skip
    out = bench.guest.run(f"""set -e
{LOAD}
{READ.format(0, FEBS[0], 2_000_000)} kill big || echo killed $?
{READ.format(0, FEBS[0], 4_000_000)} big
cat /sys/kernel/debug/fadelink/l3_fpga0
rmmod fadelink
""")
    board.signal(signal.SIGTERM)
    assert board.finish()[0] == 0
    assert "killed 137" in out and "words, all right" in out, out
    counts = dict(re.findall(r"^(\w+) (\d+)\s*$", out, re.M))
    assert int(counts["unexpected_responses"]) == 0 and int(counts["protocol_errors"]) == 0, counts


def test_example_program(bench):
    out, _ = session(bench, [f"receive /dev/l3_fpga0 eth0 {FEBS[0]} 3"], "--link", "loss=0.01")
    assert "every one verified" in out


def test_two_boards_and_a_killed_reader(bench):
    """Small rings, so that data runs across their end; the last packet partly filled, numbers wrap."""
    first = 2**32 - 50
    out, boards = session(
        bench,
        [
            f"{READ.format(0, FEBS[0], 4_000_000)} & {READ.format(1, FEBS[1], 4_000_000)}; wait $!",
            f"{READ.format(0, FEBS[0], 1_000_000)} kill || echo killed",
            READ.format(0, FEBS[0], 1_000_000),
        ],
        "--boards", 2, "--link", "loss=0.01", "--first-packet", first,
        parameters=f"ring_order=7 first_packet={first}",
    )  # fmt: skip
    assert out.count("words, all right") == 3 and "killed" in out
    assert not any(board["running"] for board in boards)


def test_unload_and_removal_with_boards_sending(bench):
    out, _ = session(
        bench,
        [
            # The reader dies, its board goes on until the driver tells it to stop; then the module goes.
            f"{READ.format(0, FEBS[0], 200_000)} kill || true",
            "rmmod fadelink",
            LOAD,
            f"{READ.format(0, FEBS[0], 400_000_000)} >/tmp/out 2>&1 &",
            # Down and removed while a reader waits.
            f"{UNTIL_DATA}; ip link set eth0 down; sleep 1; {UNBIND}; wait $! && exit 1; cat /tmp/out",
            f"rmmod fadelink; {BIND}; ip link set eth0 mtu 9000 up; {LOAD}",
            f"{READ.format(0, FEBS[0], 400_000_000)} >/tmp/out 2>&1 &",
            UNTIL_DATA,
            UNBIND,
            "wait $! && exit 1; cat /tmp/out; rmmod fadelink",
        ],
    )
    assert out.count("Input/output error") + out.count("No such device") >= 2, out[-2000:]


def test_wrong_calls_have_their_errno(bench):
    out, _ = session(bench, [f"abi_abuse errno /dev/l3_fpga0 eth0 {FEBS[0]}"], parameters="ring_order=6")
    assert "errno: 0 failures" in out


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_random_calls_and_frames_under_load(bench, step):
    """Calls at random on one device while another receives; meanwhile frames of every length that the
    interface passes, or of each `step`-th one, with random content, and random ones that look like data."""
    bench.sim("--packet-socket", "--boards", 4, "--link", "loss=0.01", iface="fade0")
    bench.guest.start(f"""set -e
{LOAD} ring_order=8
abi_abuse fuzz /dev/l3_fpga1 {SEED} 2000 1 &
{READ.format(0, FEBS[3], 12_000_000 // step)}
wait $!
# Until no more frames come.
last=x; now=0
while [ $now != $last ]; do last=$now; sleep 4; now=$(sed -n 's/^frames //p' /sys/kernel/debug/fadelink/link); done
cat /sys/kernel/debug/fadelink/link
rmmod fadelink
""")
    raw = bench.raw(bench.board_ns, "fade0")
    guest_mac = bytes.fromhex("525400123456")
    generator = random.Random(SEED)
    # Of the frame after its ethertype: from nothing to the MTU.
    sent = range(int(SEED) % step, 9001, step)
    lengths = iter(sent)
    # From before the driver is there: some meet every state of it. The sweep begins when its first frame comes.
    is_up = False
    for i in range(60_000):
        assert bench.guest.is_busy(), bench.guest.finish()
        is_up = is_up or bool(select.select([raw], [], [], 0)[0])
        sweep = is_up and i % 2
        length = next(lengths, None) if sweep else generator.choice([generator.randrange(9001), 1034, 8213, 8217, 8218, 8219, 9000])
        if length is None:
            break
        body = bytearray(generator.randbytes(length))
        start_of_body = generator.choice([b"", b"\x01\x00\xa5\xa5", b"\x01\x00\xa5\xa6", b"\x01\x00\xa5\x5a", b"\xa5\xa5", b"\x00\x05"])
        body[: len(start_of_body)] = start_of_body[: len(body)]
        source = generator.choice([b"\x02\xfa\xde\0\0\x04", b"\x02\xfa\xde\0\x01\x04"])
        raw.send(guest_mac + source + b"\xfa\xde" + bytes(body))
        time.sleep(0.003)
    assert next(lengths, None) is None, "every length was sent"
    raw.close()
    out = bench.guest.finish()
    assert "words, all right" in out and "calls had something to do" in out
    counts = dict(re.findall(r"^(\w+) (\d+)\s*$", out, re.M))
    # Each length with each beginning: some are dropped as truncated, others by version or as strangers.
    assert int(counts["frames"]) > 1.7 * len(sent) and int(counts["wrong_version"]) > 0.2 * len(sent), counts
    assert int(counts["truncated"]) > 0 and int(counts["unknown_feb"]) > 0.1 * len(sent), counts


def test_threads_on_one_device_and_an_interface_that_comes_and_goes(bench):
    """Random calls of three threads on one descriptor, each meeting the others' FEB; the interface goes
    down and up, and the module goes in the end, with boards sending all the time."""
    bench.sim("--packet-socket", "--boards", 3, "--link", "loss=0.01", iface="fade0")
    out = bench.guest.run(f"""set -e
{LOAD} ring_order=8
abi_abuse fuzz /dev/l3_fpga0 {SEED} 1500 3 & A=$!
abi_abuse fuzz /dev/l3_fpga1 1{SEED} 1500 3 & B=$!
for i in 1 2 3 4 5 6 7 8 9 10; do ip link set eth0 down; sleep 0.1; ip link set eth0 up; sleep 0.7; done
wait $A; wait $B
rmmod fadelink
for i in 1 2 3; do
    {LOAD} ring_order=8
    abi_reader /dev/l3_fpga0 eth0 {FEBS[0]} 10000000000 kill & R=$!
    sleep 1
    kill -9 $R; wait $R || true
    rmmod fadelink
done
""")
    assert out.count("calls had something to do") == 2
