"""An interface that is not Ethernet, goes down and up again in a transmission, or changes."""

import json
import re

import pytest
from support.guest import LOAD, UNTIL_IT_HEARS, session
from support.netns import FEBS

UNTIL_DATA = "until grep -q '^packets [1-9]' /sys/kernel/debug/fadelink/l3_fpga0; do sleep 0.1; done"
DOWN_AND_UP = "ip link set eth0 down; sleep {}; ip link set eth0 up"
RECEIVE = f"fadelink receive --backend kernel --iface eth0 --feb {FEBS[0]} --json --quiet"


def test_what_a_reader_sees_of_its_interface(bench):
    """Foreign interfaces and their frames; down before START and after; another address, MTU and name."""
    out, boards = session(bench, [f"abi_interface /dev/l3_fpga0 eth0 {FEBS[0]}", "cat /sys/kernel/debug/fadelink/l3_fpga0"], "--link", "loss=0.01")
    assert re.search(r"interface: \d+ bytes, all right", out), out
    assert not boards[0]["running"]


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_a_run_goes_on_when_its_interface_is_up_again(bench, protocol):
    """Twice down, once for longer than the FEB is asked to stop; then STOP while it is down."""
    out, boards = session(
        bench,
        [
            f"{RECEIVE} --verify counter >/tmp/report & R=$!",
            f"{UNTIL_DATA}; {DOWN_AND_UP.format(0.5)}; sleep 1; {DOWN_AND_UP.format(3)}; sleep 1",
            f"ip link set eth0 down; {UNTIL_IT_HEARS}; kill -INT $R; sleep 2; ip link set eth0 up",
            "grep interface_ /sys/kernel/debug/fadelink/l3_fpga0",
            "wait $R; cat /tmp/report",
        ],
        "--protocol", protocol, "--link", "loss=0.01",
    )  # fmt: skip
    assert "interface_downs 3" in out, out
    feb = json.loads(re.search(r"^\{.*febs.*\}", out, re.M)[0])["febs"][0]
    assert feb["verified"] and feb["verdict"] == "complete" and feb["words"] > 1000, feb
    assert not boards[0]["running"]


ADDRESS = "ip link set eth0 down; ip link set eth0 address {}; ip link set eth0 up"
# What keeps frames from coming, and how it is undone. FADE-10G ends by a frame alone. Frames that are larger than its MTU come to a virtual
# interface nevertheless.
STAYS = {
    "down": ("ip link set eth0 down", "ip link set eth0 up"),
    "address": (f"A=$(cat /sys/class/net/eth0/address); {ADDRESS.format('02:00:00:00:00:99')}", ADDRESS.format("$A")),
    "port": ("brctl addbr br0; brctl addif br0 eth0; ip link set br0 up", "ip link set br0 down; brctl delif br0 eth0; brctl delbr br0"),
}


@pytest.mark.parametrize("protocol, stays", [("fade10g", "down"), *(("fade1", stays) for stays in STAYS)])
def test_silence_of_an_interface_that_cannot_receive_is_no_end(bench, protocol, stays):
    """Also for one who accepts silence; the run can be ended, and is not complete."""
    bench.sim("--packet-socket", "--protocol", protocol, iface="fade0")
    happens, undone = STAYS[stays]
    out = bench.guest.run(f"""{LOAD}
{RECEIVE} --end silence >/tmp/report 2>/tmp/error & R=$!
{UNTIL_DATA}; {happens}; {UNTIL_IT_HEARS}; kill -INT $R; sleep 3
grep interface_ /sys/kernel/debug/fadelink/l3_fpga0
kill -0 $R && echo waits; kill -INT $R; wait $R; echo status $?; cat /tmp/report /tmp/error
{undone}
""")
    assert "waits" in out and re.search(r"status [13]\b", out), out
    assert '"complete":true' not in out.replace(" ", ""), out
