"""Places and routes a core in a Lattice ECP5 by Yosys and nextpnr, out of context: clocks, resources, longest paths."""

import json
import re
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from support import yowasp
from support.paths import TOP
from support.sources import digest, files_of, modules
from support.synth import run_yosys

# Name: options of nextpnr. A board for large cores, and the cheap one.
DEVICES = {
    "LFE5UM5G-85F-8": ["--um5g-85k", "--speed", "8", "--package", "CABGA756"],
    "LFE5U-25F-6": ["--25k", "--speed", "6", "--package", "CABGA381"],
}
# What Yosys puts behind the name of a signal to name the cell that drives it.
CELL = re.compile(r"(_(TRELLIS|LUT4|PFUMX|L6MUX21|CCU2C|MULT)|\$).*")


@dataclass
class Core:
    """A core in one configuration. `clocks`: name to (MHz needed, MHz aimed at) in the first device."""

    name: str
    top: str
    clocks: dict
    parameters: dict = field(default_factory=dict)
    device: str = "LFE5UM5G-85F-8"

    def sources(self):
        """Its own files alone: the names in others move the placement."""
        return files_of(self.top, modules())

    def digest(self):
        """Of what its clocks depend on."""
        return digest(self.sources(), self)


@dataclass
class Placement:
    """The result of one seed. clocks: name to MHz; paths: name to the longest path, as `from -> to`."""

    clocks: dict
    comb: int
    ff: int
    ram: int
    paths: dict


def signal(cell):
    """The signal of a cell, with the instances that it lies in."""
    *instances, name = cell.split(".")
    return ".".join([*instances, CELL.sub("", name)]).rstrip(".")


def describe(path):
    """A path of nextpnr's report: where it begins and ends, its levels of logic, ns in logic and in wires."""
    wires = [step for step in path if step["type"] == "routing"]
    wired, total = sum(step["delay"] for step in wires), sum(step["delay"] for step in path)
    begin, end = signal(path[0]["from"]["cell"]), signal(path[-1]["to"]["cell"])
    return f"{begin} -> {end}: {len(wires) - 1} levels, {total - wired:.1f} + {wired:.1f} ns"


def netlist(core, file):
    """Synthesizes a core into a file for nextpnr."""
    run_yosys(core.top, core.parameters, f"synth_ecp5 -top {core.top} -json {file.relative_to(TOP)}", sources=core.sources())


def place(core, file, seed):
    """Places and routes a netlist."""
    with tempfile.TemporaryDirectory(dir=TOP / "build") as folder:
        constraints, report = Path(folder) / "clocks.sdc", Path(folder) / "report.json"
        constraints.write_text(
            "".join(f"create_clock -name {name} -period {1000 / aim:.3f} [get_ports {name}]\n" for name, (_, aim) in core.clocks.items())
        )
        # This placer finds places near the block RAMs, which are spread over the device; the default one leaves 6 ns of wire.
        words = [*DEVICES[core.device], "--placer", "static", "--json", file, "--sdc", constraints, "--report", report, "--seed", seed,
                 "--out-of-context", "--timing-allow-fail", "--quiet"]  # fmt: skip
        run = yowasp.run("nextpnr-ecp5", *words, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr[-4000:]
        found = json.loads(report.read_text())
    used = {name: cells["used"] for name, cells in found["utilization"].items()}
    paths = {}
    for path in found["critical_paths"]:
        if path["from"] == path["to"]:
            paths[path["from"].removeprefix("posedge ")] = describe(path["path"])
    return Placement(
        clocks={name: clock["achieved"] for name, clock in found["fmax"].items()},
        comb=used["TRELLIS_COMB"],
        ff=used["TRELLIS_FF"],
        ram=used["DP16KD"],
        paths=paths,
    )


def place_all(core, seeds):
    """A placement for each seed."""
    (TOP / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOP / "build") as folder:
        file = Path(folder) / "netlist.json"
        netlist(core, file)
        return [place(core, file, seed) for seed in seeds]


def median(placements, clock):
    """MHz of a clock."""
    return statistics.median(placement.clocks[clock] for placement in placements)


def gigabit(*names):
    """Clocks of a core of 8 bits, with a fifth to spare."""
    return {name: (125, 150) for name in names}


def ten_gigabit(*names):
    """Clocks of a core of 64 bits, with a fifth to spare."""
    return {name: (156.25, 188) for name in names}


THREE = ("user_clk", "tx_clk", "rx_clk")
CHEAP = {name: (125, 125) for name in THREE}
CORES = [
    Core("gmii_mac", "gmii_mac", gigabit("tx_clk", "rx_clk")),
    Core("xgmii_mac", "xgmii_mac", ten_gigabit("tx_clk", "rx_clk")),
    Core("rgmii", "rgmii", gigabit("tx_clk", "rx_clk")),
    Core("mii", "mii", {"tx_clk": (25, 150), "rx_clk": (25, 150)}),
    Core("rmii", "rmii", {"clk": (50, 150)}),
    Core("phy_manager", "phy_manager", gigabit("clk")),
    Core("basex_pcs", "basex_pcs", gigabit("tx_clk", "rx_clk")),
    Core("fade10g_8", "fade_core", gigabit(*THREE), {"WIDTH": 8, "PACKETS": 16}),
    Core("fade10g_8_25F", "fade_core", CHEAP, {"WIDTH": 8, "PACKETS": 4}, "LFE5U-25F-6"),
    Core("fade10g_64", "fade_core", ten_gigabit(*THREE), {"WIDTH": 64, "PACKETS": 32}),
    Core("fade1_8", "fade_core", gigabit(*THREE), {"PROTOCOL": 1, "WIDTH": 8}),
    Core("fade1_8_25F", "fade_core", CHEAP, {"PROTOCOL": 1, "WIDTH": 8}, "LFE5U-25F-6"),
    # Samples of 250 MHz.
    Core("fadc_link_2", "fadc_link", {"clk": (125, 150)}, {"SAMPLES": 2, "MODULES": 2, "CHANNELS": 4}),
    Core("fadc_link_4", "fadc_link", {"clk": (62.5, 75)}, {"SAMPLES": 4, "MODULES": 2, "CHANNELS": 4}),
    Core("fadc_core_time", "fadc_core", {"clk": (125, 150)}, {"SAMPLES": 2, "MODULES": 2, "CHANNELS": 4, "FOLLOW": 1}),
    Core("ptp_node_8", "ptp_node", gigabit("tx_clk", "rx_clk"), {"WIDTH": 8}),
    Core("ptp_node_8_25F", "ptp_node", {"tx_clk": (125, 125), "rx_clk": (125, 125)}, {"WIDTH": 8}, "LFE5U-25F-6"),
    Core("ptp_node_64", "ptp_node", ten_gigabit("tx_clk", "rx_clk"), {"WIDTH": 64}),
    Core("ptp_follower", "ptp_follower", {"clk": (125, 150), "s_clk": (156.25, 188)}),
    Core("tcp_8", "tcp_core", gigabit(*THREE), {"WIDTH": 8, "STREAMS": 1}),
    Core("tcp_8_25F", "tcp_core", CHEAP, {"WIDTH": 8, "STREAMS": 1}, "LFE5U-25F-6"),
    Core("tcp_64", "tcp_core", ten_gigabit(*THREE), {"WIDTH": 64, "STREAMS": 1}),
    Core("udp_8", "udp_core", gigabit(*THREE), {"WIDTH": 8}),
    Core("udp_8_25F", "udp_core", CHEAP, {"WIDTH": 8}, "LFE5U-25F-6"),
    Core("udp_64", "udp_core", ten_gigabit(*THREE), {"WIDTH": 64}),
    Core("fade_axi_8", "fade_axi", gigabit(*THREE), {"WIDTH": 8, "PACKETS": 16}),
    Core("fade_axi_64", "fade_axi", ten_gigabit(*THREE), {"WIDTH": 64, "PACKETS": 32}),
    Core("tcp_axi_8", "tcp_axi", gigabit(*THREE), {"WIDTH": 8}),
    Core("udp_axi_8", "udp_axi", gigabit(*THREE), {"WIDTH": 8}),
    Core("fadc_axi", "fadc_axi", {"clk": (125, 150)}, {"MODULES": 2, "CHANNELS": 4}),
    Core("ptp_axi_8", "ptp_axi", gigabit("tx_clk", "rx_clk"), {"WIDTH": 8}),
    Core("example_board", "example_board", gigabit(*THREE), {"DESIGN": 0, "WIDTH": 8, "PACKETS": 16}),
]
