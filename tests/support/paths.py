"""Where things are, and the seed of everything random."""

import os
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
RTL = TOP / "rtl"
BUILD = TOP / "build"
SIM = BUILD / "sim/fadelink-sim"
FADELINK = TOP / "host/target/release/fadelink"
VECTORS = TOP / "tests/vectors"
SEED = os.environ.get("FADELINK_SEED", "1")
