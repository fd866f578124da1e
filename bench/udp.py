#!/usr/bin/env python3
"""The UDP/IP stack in virtual time: rate by payload, latency from UDP to the wire, PTP between two boards, resources by module, LiteEth's beside them, and
resources and clocks by parts.

Usage: bench/udp.py [PART ...]     of rates, latency, ptp, resources, liteeth, sets; default: all, some 40 minutes
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from support import sandbox
from support.paths import SIM, TOP
from support.place import THREE, Core, gigabit, median, place_all
from support.synth import synthesize, totals

# Preamble, Ethernet header, frame check sequence, gap; IP and UDP header.
WIRE, HEADERS = 8 + 14 + 4 + 12, 28
PAPER = {8972: 118.339, 1472: 114.094, 1024: 111.991, 512: 105.597, 256: 94.775}  # MiB/s, table 1
MODULES = [
    ("udp_ethernet_tx", {}), ("udp_ethernet_rx", {}), ("udp_arp", {}), ("udp_neighbours", None), ("udp_ip_tx", {}), ("udp_ip_rx", {}),
    ("udp_icmp", {}), ("udp_datagram_tx", {}), ("udp_datagram_rx", {}), ("udp_control", {}), ("udp_registers", None), ("udp_stream", {}),
    ("ptp_machine", None), ("ptp_clock", None), ("ptp_receive", {}), ("ptp_transmit", {}), ("ptp_port", {}), ("ptp_node", {}), ("ptp_follower", None), ("udp_core", {}),
]  # fmt: skip

# Sets of parts that boards need.
SETS = [
    ("all", {}),
    ("no PTP", {"PTP": 0}),
    ("two streams, and their ports received", {"PTP": 0, "STREAMS": 2, "RECEIVE": 1}),
    ("one peer: no ARP, no echo, no PTP", {"PTP": 0, "ICMP": 0, "ARP": 0}),
    ("the stream alone, its settings are inputs", {"PTP": 0, "ICMP": 0, "ARP": 0, "CONTROL": 0}),
    ("receive only", {"PTP": 0, "SEND": 0, "RECEIVE": 1}),
]
LITEETH = ("liteeth==2024.12", "litex==2024.12", "migen==0.10.0")


def run(*options):
    words = [SIM, "--virtual", "--json", "--protocol", "udp", *options]
    return json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)


def by_payload():
    print("## UDP/IP stack: rate by payload\n")
    print("| payload | 1G, MiB/s | limit | paper's table 1 | 10G, MiB/s | limit |")
    print("|---|---|---|---|---|---|")
    for payload, paper in PAPER.items():
        cells = []
        for phy, line in (("gmii", 125e6), ("xgmii", 1250e6)):
            # Less than the time after which the board asks for its peer's address again (20 ms, simulated).
            datagrams = min(400, int(0.012 * line / (payload + HEADERS + WIRE)))
            words = (payload - 8) // 8 * datagrams
            board = run("--phy", phy, "--payload", payload, "--words", words)["boards"][0]
            assert board["complete"] and board["wrong_words"] == board["protocol_errors"] == 0
            limit = line * payload / (payload + HEADERS + WIRE)
            cells += [f"{board['goodput_bps'] / 8 / 2**20:.3f}", f"{limit / 2**20:.3f}"]
        print(f"| {payload} B | {cells[0]} | {cells[1]} | {paper} | {cells[2]} | {cells[3]} |", flush=True)


def latency():
    """As the test of the core's ports measures it."""
    print("\n## UDP/IP stack: from a request at the UDP layer to the MAC\n")
    test = [sys.executable, "-m", "pytest", "-q", "-m", "long", "test_udp_core_ports.py"]
    subprocess.run(test, check=True, capture_output=True, cwd=TOP / "tests/rtl")
    for width in (8, 64):
        log = (TOP / f"build/cocotb/udp_core-PAYLOAD_MAX1024-WIDTH{width}.test.log").read_text()
        found = re.search(r"latency: (\d+ clocks)", log)
        print(f"{width} bit: {found[1]}", flush=True)


def ptp():
    print("\n## PTP: a slave against its master, 1024 Sync a second, cable of 1 us, 60 ms after 60 ms of settling\n")
    print("| interface | slave's oscillator | offset, mean | deviation | least, most | path delay |")
    print("|---|---|---|---|---|---|")
    for phy in ("gmii", "xgmii"):
        for ppm in (0, 100, -100):
            found = run("--ptp-pair", "--phy", phy, "--slave-ppm", ppm, "--rtt", 2, "--settle-ms", 60, "--limit-ms", 120)
            offset = found["offset"]
            print(f"| {phy.upper()} | {found['slave_ppm']:+.0f} ppm | {offset['mean']:.2f} ns | {offset['deviation']:.2f} ns "
                  f"| {offset['min']:.0f}, {offset['max']:.0f} ns | {found['path_delay']['mean']:.0f} ns |", flush=True)  # fmt: skip


def resources():
    print("\n## UDP/IP stack: resources by module, Yosys for 7-series\n")
    print("| module | 8 bit: LUT, FF, BRAM | 64 bit: LUT, FF, BRAM |")
    print("|---|---|---|")
    for module, parameters in MODULES:
        cells = []
        for width in (8, 64):
            if parameters is None:
                cells.append(totals(synthesize(module)))
            else:
                cells.append(totals(synthesize(module, WIDTH=width, **parameters)))
        print(f"| {module} | " + " | ".join(f"{luts:,}, {ffs:,}, {brams:g}" for luts, ffs, brams in cells) + " |", flush=True)


def install_liteeth():
    """A folder with the packages of LITEETH, of its own."""
    folder = TOP / "build/liteeth"
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *LITEETH], check=True)
    return folder


def liteeth():
    """LiteEth's core (see liteeth_udp.py), built by the same Yosys."""
    folder = install_liteeth()
    file = folder / "liteeth_udp.v"
    subprocess.run(
        [folder / "bin/python", TOP / "bench/liteeth_udp.py", file], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    luts, ffs, brams = totals(synthesize("liteeth_udp", sources=[file.relative_to(TOP)]))
    print(f"\n{LITEETH[0]}: {luts:,}, {ffs:,}, {brams:g}", flush=True)


def sets():
    print("\n## UDP/IP stack: resources and clocks by parts, 8 bit\n")
    print("| parts | parameters | LUT, FF, BRAM | tx_clk, user_clk, rx_clk: MHz |")
    print("|---|---|---|---|")
    cores = [Core(name, "udp_core", gigabit(*THREE), {"WIDTH": 8, **parameters}) for name, parameters in SETS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for core, placements in zip(cores, pool.map(lambda core: place_all(core, range(1, 4)), cores), strict=True):
            luts, ffs, brams = totals(synthesize(core.top, **core.parameters))
            told = ", ".join(f"{key}={value}" for key, value in core.parameters.items() if key != "WIDTH") or "-"
            clocks = ", ".join(
                f"{median(placements, clock):.0f}" if clock in placements[0].clocks else "-" for clock in ("tx_clk", "user_clk", "rx_clk")
            )
            print(f"| {core.name} | {told} | {luts:,}, {ffs:,}, {brams:g} | {clocks} |", flush=True)


PARTS = {"rates": by_payload, "latency": latency, "ptp": ptp, "resources": resources, "liteeth": liteeth, "sets": sets}

if __name__ == "__main__":
    wrong = sorted(set(sys.argv[1:]) - PARTS.keys())
    if wrong:
        sys.exit(f"bench/udp.py: {' '.join(wrong)}: expected of {', '.join(PARTS)}")
    # The sandbox has no network.
    install_liteeth()
    sandbox.enter()
    for name, part in PARTS.items():
        if name in sys.argv[1:] or not sys.argv[1:]:
            part()
