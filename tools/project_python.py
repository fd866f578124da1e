"""Imported first by a tool that needs what `make setup` installs: goes on in the Python of .venv, and finds `support` of the tests."""

import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
VENV = TOP / ".venv"

if not (VENV / "bin/python").exists():
    sys.exit(f"{Path(sys.argv[0]).name}: expected the project's Python, {VENV}: run `make setup`")
if not os.path.samefile(sys.prefix, VENV):
    os.execv(VENV / "bin/python", [VENV / "bin/python", *sys.argv])
sys.path.insert(1, str(TOP / "tests"))
