"""The SystemVerilog sources."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# Those of an installed package, or of a checkout.
RTL = PACKAGE / "rtl" if (PACKAGE / "rtl").is_dir() else PACKAGE.parents[1]


def add_sources(platform, core):
    """Adds the files of a core, packages first, each once; `core` is the name of a file list in rtl, as `fade/fade_core`."""
    for line in (RTL / f"{core}.f").read_text().splitlines():
        if not line.startswith("//"):
            platform.add_source(str(RTL / line.removeprefix("rtl/")), language="systemverilog")
