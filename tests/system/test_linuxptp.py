"""PTP against linuxptp's ptp4l and pmc, with time stamps in software: messages are understood in both directions.

Simulated time runs slower than the computer's, so clocks are not held together here; tests/rtl/test_ptp.py does that, two
boards in virtual time. On a busy computer it is slower still: an interval of a board may take half a minute. No clock of the
computer is set.
"""

import json
import re
import time

import pytest
from support.netns import BOARD, sh, wait_for
from support.sweep import long

ROLE, OFFSET, SECONDS, CLOCKS, LOG = "0x80000010", "0x80000012", "0x80000015", "0x80000017", "0x80000018"
OFFSETS = "0x80000115"  # the counter of what the board has measured
STATE, TRANSPORT, MECHANISM, PRIORITIES = "0x80000019", "0x8000001b", "0x8000001c", "0x8000001d"
SLAVE, MASTER, BEST = "1", "2", "3"
IS_MASTER = 6
# Of an interval of Sync: about a quarter of a second of the computer's time.
SLOW = 1_250_000


def ptp4l(net, name="ptp4l", **settings):
    """Starts it: the process, and the file that holds what it says."""
    config = net.tmp / f"{name}.conf"
    settings = {
        "time_stamping": "software", "free_running": 1, "network_transport": "UDPv4", "announceReceiptTimeout": 60,
        "tx_timestamp_timeout": 200, "logging_level": 6, "verbose": 1, "use_syslog": 0,
        "uds_address": net.tmp / f"{name}.socket", **settings,
    }  # fmt: skip
    config.write_text("[global]\n" + "".join(f"{name} {value}\n" for name, value in settings.items()))
    log = net.tmp / f"{name}.log"
    process = net.start(net.pc_ns, "ptp4l", "-f", config, "-i", "eth0", stdout_to=log.open("w"))
    return process, log


def counters(net, sim):
    return net.end_sim(sim)["boards"][0]


def register(net, *words):
    status, out, err = net.run("register", "--board", BOARD, "--json", *words)
    assert status == 0, err
    return json.loads(out)["value"]


def tshark(capture, *words):
    return sh("tshark", "-n", "-r", capture, *words).splitlines()


@pytest.mark.parametrize(
    "phy,transport,mechanism", [long("gmii", "UDPv4", "E2E"), ("xgmii", "UDPv4", "P2P"), ("xgmii", "L2", "E2E"), long("gmii", "L2", "P2P")]
)
def test_ptp4l_follows_the_board(net, phy, transport, mechanism):
    capture = net.tmp / "ptp.pcap"
    sim = net.sim("--protocol", "udp", "--stopped", "--phy", phy, "--ptp", MASTER, "--pcap", capture)
    # A master is believed when its Announce come as often as it tells: by the computer's clock.
    register(net, LOG, 0xFF)
    register(net, MECHANISM, 2 if mechanism == "P2P" else 1)
    register(net, TRANSPORT, int(transport == "L2"))
    _, log = ptp4l(net, slaveOnly=1, network_transport=transport, delay_mechanism=mechanism)
    wait_for(lambda: len(re.findall(r"rms +\d+ max +\d+ freq .* delay +-?\d+", log.read_text())) >= 2)
    text = log.read_text()
    assert "selected best master clock 02fade.fffe.000001" in text and "LISTENING to UNCALIBRATED on RS_SLAVE" in text
    assert not re.search(r"bad message|ignor|unexpected|malformed", text), text
    board = counters(net, sim)
    assert board["drop_ptp_malformed"] == board["drop_ptp_full"] == 0
    # Each Sync has its Follow_Up, each request its answer; tshark dissects all of them.
    kinds = [int(kind, 0) for kind in tshark(capture, "-Y", "ptp", "-T", "fields", "-e", "ptp.v2.messagetype")]
    request, response = (2, 3) if mechanism == "P2P" else (1, 9)
    assert abs(kinds.count(0) - kinds.count(8)) <= 1 and abs(kinds.count(request) - kinds.count(response)) <= 3 and kinds.count(response) >= 2
    assert kinds.count(0xB) > 0 and set(kinds) == {0, 8, 0xB} | ({2, 3, 10} if mechanism == "P2P" else {1, 9})
    assert tshark(capture, "-o", "ip.check_checksum:TRUE", "-Y", "(ptp and _ws.malformed) or ip.checksum.status == 0") == []


@pytest.mark.parametrize("phy,transport,mechanism", [("gmii", "UDPv4", "E2E"), long("xgmii", "L2", "P2P")])
def test_the_board_follows_ptp4l(net, phy, transport, mechanism):
    """It takes the computer's time, over and over: its own runs slower here."""
    sim = net.sim("--protocol", "udp", "--stopped", "--phy", phy, "--ptp", SLAVE)
    register(net, CLOCKS, SLOW)
    register(net, MECHANISM, 2 if mechanism == "P2P" else 1)
    register(net, TRANSPORT, int(transport == "L2"))
    _, log = ptp4l(net, masterOnly=1, logSyncInterval=-3, logAnnounceInterval=-1, network_transport=transport, delay_mechanism=mechanism)
    wait_for(lambda: abs(register(net, SECONDS) - time.time()) < 100)
    assert register(net, ROLE) == int(SLAVE)
    wait_for(lambda: register(net, OFFSETS) >= 4)
    text = log.read_text()
    assert "assuming the grand master role" in text and not re.search(r"bad message|unexpected|malformed", text), text
    board = counters(net, sim)
    assert board["ptp_offsets"] >= 4 and board["drop_ptp_malformed"] == 0


@pytest.mark.long
def test_of_two_masters_one_ends(net):
    """The board follows the better one; when that ends, the other; when that ends too, it is the master, and ptp4l its slave."""
    net.sim("--protocol", "udp", "--stopped", "--ptp", BEST)
    register(net, CLOCKS, SLOW)
    register(net, LOG, 2)
    wait_for(lambda: register(net, STATE) == IS_MASTER)
    master = {"masterOnly": 1, "logSyncInterval": -2, "logAnnounceInterval": -1}
    better, _ = ptp4l(net, "better", **master, clockIdentity="0000aa.fffe.000001", priority1=100)
    other, _ = ptp4l(net, "other", **master, clockIdentity="0000aa.fffe.000002", priority1=110)

    def follows(identity):
        return f"parentPortIdentity {identity}" in " ".join(pmc(net, "PARENT_DATA_SET").split())

    wait_for(lambda: follows("0000aa.fffe.000001-1"))
    better.signal(9)
    wait_for(lambda: follows("0000aa.fffe.000002-1"))
    other.signal(9)
    wait_for(lambda: register(net, STATE) == IS_MASTER)
    _, log = ptp4l(net, "slave", slaveOnly=1)
    wait_for(lambda: "selected best master clock 02fade.fffe.000001" in log.read_text())


def pmc(net, what):
    """What linuxptp's management client gets from the board."""
    config = net.tmp / "pmc.conf"
    config.write_text(f"[global]\nuds_address {net.tmp / 'pmc.socket'}\n")
    said = []

    def is_answered():
        """It waits for a second."""
        said.append(net.run_in(net.pc_ns, "pmc", "-4", "-i", "eth0", "-f", config, "-b", 1, f"GET {what}"))
        return f"RESPONSE MANAGEMENT {what}" in said[-1] or "MANAGEMENT_ERROR_STATUS" in said[-1]

    wait_for(is_answered)
    return said[-1]


def fields(text):
    """Fields of an answer, by name."""
    assert "RESPONSE MANAGEMENT" in text, text
    return dict(line.split(None, 1) for line in text.splitlines() if re.match(r"\t\t[\w.]+ +\S", line))


def test_pmc_reads_the_data_sets(net):
    net.sim("--protocol", "udp", "--stopped", "--ptp", MASTER)
    register(net, PRIORITIES, 0x6465)
    register(net, LOG, 0xFF)
    default = fields(pmc(net, "DEFAULT_DATA_SET"))
    wanted = {"twoStepFlag": "1", "slaveOnly": "0", "numberPorts": "1", "priority1": "100", "clockClass": "248", "clockAccuracy": "0xfe",
              "offsetScaledLogVariance": "0xffff", "priority2": "101", "clockIdentity": "02fade.fffe.000001", "domainNumber": "0"}  # fmt: skip
    assert default == wanted
    assert fields(pmc(net, "CURRENT_DATA_SET")) == {"stepsRemoved": "0", "offsetFromMaster": "0.0", "meanPathDelay": "0.0"}
    parent = fields(pmc(net, "PARENT_DATA_SET"))
    assert parent["parentPortIdentity"] == "02fade.fffe.000001-1" and parent["grandmasterIdentity"] == "02fade.fffe.000001"
    assert (parent["grandmasterPriority1"], parent["grandmasterPriority2"], parent["gm.ClockClass"]) == ("100", "101", "248")
    times = fields(pmc(net, "TIME_PROPERTIES_DATA_SET"))
    assert (times["currentUtcOffset"], times["currentUtcOffsetValid"], times["timeSource"]) == ("0", "0", "0xa0")
    port = fields(pmc(net, "PORT_DATA_SET"))
    assert (port["portIdentity"], port["portState"], port["delayMechanism"]) == ("02fade.fffe.000001-1", "MASTER", "1")
    assert (port["logSyncInterval"], port["logAnnounceInterval"], port["announceReceiptTimeout"], port["versionNumber"]) == ("-1", "0", "3", "2")
    description = pmc(net, "CLOCK_DESCRIPTION")
    for text in ("IEEE802.3", "02:fa:de:00:00:01", "10.9.0.2", "Fadelink;UDP/IP;-", "00:1b:19:00:01:00"):
        assert text in description, description
    assert "MANAGEMENT_ERROR_STATUS" in pmc(net, "GRANDMASTER_SETTINGS_NP") + pmc(net, "USER_DESCRIPTION")


def test_roles_and_time_are_set_by_the_slow_control(net):
    net.sim("--protocol", "udp", "--stopped", "--ptp", MASTER)
    register(net, SECONDS, 1_700_000_000)
    assert 0 <= register(net, SECONDS) - 1_700_000_000 < 5
    status, _, err = net.run("register", "--board", BOARD, ROLE, 4)
    assert status == 1 and "cannot be written" in err
    assert register(net, ROLE, 0) == 0 and register(net, ROLE) == 0
    assert register(net, OFFSET) == 0
