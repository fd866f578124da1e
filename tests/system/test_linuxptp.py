"""PTP against linuxptp's ptp4l, with time stamps in software: messages are understood in both directions.

Simulated time runs slower than the computer's, so clocks are not held together here; tests/rtl/test_ptp.py does that, two
boards in virtual time. No clock of the computer is set.
"""

import json
import re
import time

import pytest
from support.netns import BOARD, sh, wait_for

ROLE, OFFSET, SECONDS, LOG = "0x80000010", "0x80000012", "0x80000015", "0x80000018"
SLAVE, MASTER = "1", "2"


def ptp4l(net, **settings):
    """Starts it: the file that holds what it says."""
    config = net.tmp / "ptp4l.conf"
    settings = {
        "time_stamping": "software", "free_running": 1, "network_transport": "UDPv4", "announceReceiptTimeout": 60,
        "tx_timestamp_timeout": 200, "logging_level": 6, "verbose": 1, "use_syslog": 0,
        "uds_address": net.tmp / "ptp4l.socket", **settings,
    }  # fmt: skip
    config.write_text("[global]\n" + "".join(f"{name} {value}\n" for name, value in settings.items()))
    log = net.tmp / "ptp4l.log"
    net.start(net.pc_ns, "ptp4l", "-f", config, "-i", "eth0", stdout_to=log.open("w"))
    return log


def counters(net, sim):
    return net.end_sim(sim)["boards"][0]


def register(net, *words):
    status, out, err = net.run("register", "--board", BOARD, "--json", *words)
    assert status == 0, err
    return json.loads(out)["value"]


def tshark(capture, *words):
    return sh("tshark", "-n", "-r", capture, *words).splitlines()


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
def test_ptp4l_follows_the_board(net, phy):
    capture = net.tmp / "ptp.pcap"
    sim = net.sim("--protocol", "udp", "--stopped", "--phy", phy, "--ptp", MASTER, "--pcap", capture)
    # A master is believed when its Announce come as often as it tells: by the computer's clock.
    register(net, LOG, 0xFF)
    log = ptp4l(net, slaveOnly=1)
    wait_for(lambda: len(re.findall(r"rms +\d+ max +\d+ freq .* delay +-?\d+", log.read_text())) >= 2, timeout=60)
    text = log.read_text()
    assert "selected best master clock 02fade.fffe.000001" in text and "LISTENING to UNCALIBRATED on RS_SLAVE" in text
    assert not re.search(r"bad message|ignor|unexpected|malformed", text), text
    board = counters(net, sim)
    assert board["drop_ptp_malformed"] == 0
    # Each Sync has its Follow_Up, each Delay_Req its answer; tshark dissects all of them.
    kinds = [int(kind, 0) for kind in tshark(capture, "-Y", "ptp", "-T", "fields", "-e", "ptp.v2.messagetype")]
    assert abs(kinds.count(0) - kinds.count(8)) <= 1 and 0 < kinds.count(1) and abs(kinds.count(1) - kinds.count(9)) <= 1
    assert kinds.count(0xB) > 0 and set(kinds) == {0, 1, 8, 9, 0xB}
    assert tshark(capture, "-o", "ip.check_checksum:TRUE", "-Y", "_ws.malformed or ip.checksum.status == 0") == []
    lengths = {tuple(map(int, line.split())) for line in
               tshark(capture, "-Y", f"ptp and ip.src == {BOARD}", "-T", "fields", "-e", "ptp.v2.messagelength", "-e", "udp.length")}  # fmt: skip
    assert lengths == {(44, 52), (54, 62), (64, 72)}


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
def test_the_board_follows_ptp4l(net, phy):
    """It takes the computer's time, over and over: its own runs slower here."""
    sim = net.sim("--protocol", "udp", "--stopped", "--phy", phy, "--ptp", SLAVE)
    log = ptp4l(net, masterOnly=1, logSyncInterval=-3, logAnnounceInterval=-1)
    wait_for(lambda: abs(register(net, SECONDS) - time.time()) < 100, timeout=60)
    assert register(net, ROLE) == int(SLAVE)
    time.sleep(1)
    text = log.read_text()
    assert "assuming the grand master role" in text and not re.search(r"bad message|unexpected|malformed", text), text
    board = counters(net, sim)
    assert board["ptp_offsets"] >= 4 and board["drop_ptp_malformed"] == 0


def test_roles_and_time_are_set_by_the_slow_control(net):
    net.sim("--protocol", "udp", "--stopped", "--ptp", MASTER)
    register(net, SECONDS, 1_700_000_000)
    assert 0 <= register(net, SECONDS) - 1_700_000_000 < 5
    status, _, err = net.run("register", "--board", BOARD, ROLE, 3)
    assert status == 1 and "not to be written" in err
    assert register(net, ROLE, 0) == 0 and register(net, ROLE) == 0
    assert register(net, OFFSET) == 0
