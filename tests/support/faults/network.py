"""Faults: the network is cut."""

import signal

from support.faults.site import PORT, Outcome, fault
from support.netns import BOARD, sh
from support.netns import report as report_of


def cut(site):
    """Takes the cable out for a while, once or several times."""
    for _ in range(site.random.randrange(1, 4)):
        site.pause(0.1, 1)
        sh("ip", "-n", site.net.board_ns, "link", "set", "feb0", "down")
        site.pause(0.1, 1)
        sh("ip", "-n", site.net.board_ns, "link", "set", "feb0", "up")
    site.net.wait_for_frames(1)
    site.pause(0.3, 0.6)


@fault("network-cut", "the cable is out for up to 1 s, up to 3 times, FADE-10G", "words", "every word arrives")
def network_cut(site):
    net = site.net
    net.sim()
    process = net.receive("--verify", "counter", "--quiet")
    net.wait_for_frames(1)
    cut(site)
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    feb = result["febs"][0]
    assert status == 0 and feb["complete"] and feb["verified"], result
    return Outcome(feb["words"], feb["wrong_words"])


@fault("network-cut-tcp", "the same, TCP sender", "words", "every word arrives")
def network_cut_tcp(site):
    net = site.net
    net.sim("--protocol", "tcp", "--words", 0)
    process = net.fadelink("receive", "--tcp", PORT, "--json", "--verify", "counter", "--quiet")
    net.wait_for_frames(10)
    cut(site)
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    stream = result["streams"][0]
    assert status == 0 and stream["complete"] and stream["verified"] and len(result["streams"]) == 1, result
    return Outcome(stream["words"], stream["wrong_words"])


@fault("network-cut-udp", "the same, UDP/IP stack", "datagrams", "what is lost is counted to the datagram; what arrives is right")
def network_cut_udp(site):
    net = site.net
    sim = net.sim("--protocol", "udp", "--stopped", "--words", 0, "--payload", 1472)
    process = net.fadelink("receive", "--udp", PORT, "--board", BOARD, "--json", "--verify", "counter", "--quiet")
    net.wait_for_frames(50)
    cut(site)
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    stream = result["streams"][0]
    sent, counts = net.end_sim(sim)["boards"][0]["datagrams"], stream["counts"]
    assert status == 3 and stream["ended"] and stream["wrong_words"] == 0 and counts["lost"] > 0, result
    return Outcome(sent, abs(sent - counts["received"] - counts["lost"]), counts["lost"])
