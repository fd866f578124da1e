#!/usr/bin/env python3
"""Translates the program of PTP (rtl/ptp/ptp.asm and the files beside it) into the package that ptp_machine runs (rtl/ptp/ptp_program_pkg.sv).

Usage: tools/ptp_assemble.py [--check]

Numbers are of 1 to 16 words of 16 bit, the most significant first. A line is one of

    reg NAME                    a register of the slow control: 2 words, in order
    parameter NAME WORDS        set by the core's parameters, in order
    var NAME WORDS              memory
    data NAME WORD ...          memory with contents: numbers, or a text in quotes
    at NAME PLACE WORDS         another name for a place
    constant NAME VALUE
    NAME:                       a place of the program
    routine NAME                a place that is called; its `ret` goes back
    mov|add|sub|and A, B        A := A op B         (flags: zero, carry (no borrow), negative)
    cmp|tst A, B                flags of sub, of and
    shr A                       half of A, with its sign
    jmp|jz|jnz|jc|jnc|jn|jp L   always; zero, not; carry, not; negative, not
    call NAME

An operand is a name, NAME[word], NAME[word:words], or #VALUE, which has the size of the other one. A comment begins with ;
"""

import ast
import operator
import re
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parent.parent / "rtl/ptp"
# In the order of the program.
FILES = ["ptp_names.asm", "ptp.asm", "ptp_receive.asm", "ptp_times.asm", "ptp_send.asm"]
WORD = 28
ROM, RAM = 1024, 512
REGISTERS = 32
OPERATIONS = {"mov": 0, "add": 1, "sub": 2, "and": 4, "shr": 6, "call": 7, "jump": 8, "ret": 9, "cmp": 10, "tst": 12}
CONDITIONS = {"jmp": 0, "jz": 2, "jnz": 3, "jc": 4, "jnc": 5, "jn": 6, "jp": 7}
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift, ast.BitOr: operator.or_}


class ProgramError(Exception):
    pass


def clocks(words):
    """Of an instruction that is not a jump."""
    return 1 + 6 * words


class Program:
    """Of texts, by the names of their files."""

    def __init__(self, texts):
        self.places = {}  # name: (address, words)
        self.constants = {}
        self.memory = {}  # address: word, with contents
        self.next = 2 * REGISTERS
        self.registers = []
        self.parameters = 0
        self.labels = {}
        self.lines = []  # (file and number, routine, words of the line)
        routine = None
        lines = [(f"{name}:{number}", line) for name, text in texts.items() for number, line in enumerate(text.splitlines(), 1)]
        for where, line in lines:
            line = re.sub(r'("[^"]*")|;.*', lambda match: match[1] or "", line).strip()
            if not line:
                continue
            try:
                routine = self.declare(line, routine, where)
            except (ProgramError, ValueError, IndexError, KeyError, SyntaxError) as error:
                raise ProgramError(f"{where}: {line}: {error}") from error
        self.code = []
        for where, routine, line in self.lines:
            try:
                self.code.append(self.translate(line, routine))
            except (ProgramError, ValueError, KeyError, SyntaxError) as error:
                raise ProgramError(f"{where}: {line}: {error}") from error
        if len(self.code) > ROM or self.next > RAM:
            raise ProgramError(f"{len(self.code)} instructions of {ROM}, {self.next} words of {RAM}")

    # ---- declarations ----------------------------------------------------------------------
    def declare(self, line, routine, where):
        kind, _, rest = line.partition(" ")
        words = rest.split()
        if line.endswith(":"):
            self.label(line[:-1])
        elif kind == "reg":
            self.registers.append(words[0])
            self.name(words[0], 2 * (len(self.registers) - 1), 2)
            self.constants[words[0].upper() + "_AT"] = len(self.registers) - 1
            self.constants["REGISTERS"] = len(self.registers)
        elif kind == "parameter":
            if not self.parameters:
                self.parameters_at = self.next
            self.allocate(words[0], self.number(words[1]))
            self.parameters = self.next - self.parameters_at
        elif kind == "var":
            self.allocate(words[0], self.number(words[1]))
        elif kind == "data":
            name, _, contents = rest.partition(" ")
            self.data(name, self.contents(contents.strip()))
        elif kind == "at":
            self.name(words[0], *self.place(words[1], self.number(words[2])))
        elif kind == "constant":
            self.constants[words[0]] = self.number(" ".join(words[1:]))
        elif kind == "routine":
            routine = words[0]
            self.label(routine)
            self.allocate(routine + ".back", 1)
        else:
            self.lines.append((where, routine, line))
        return routine

    def label(self, name):
        if name in self.labels:
            raise ProgramError("label twice")
        self.labels[name] = len(self.lines)

    def name(self, name, address, words):
        if name in self.places:
            raise ProgramError("name twice")
        self.places[name] = (address, words)

    def allocate(self, name, words):
        self.name(name, self.next, words)
        self.next += words

    def data(self, name, words):
        self.memory.update(enumerate(words, self.next))
        self.allocate(name, len(words))

    def contents(self, text):
        if text.startswith('"'):
            octets = ast.literal_eval(text).encode()
            octets = bytes([len(octets)]) + octets  # PTPText
            if len(octets) % 2:
                raise ProgramError("a text with its length must fill whole words")
            return [int.from_bytes(octets[i : i + 2], "big") for i in range(0, len(octets), 2)]
        return [self.number(word) for word in text.split()]

    # ---- numbers and operands --------------------------------------------------------------
    def number(self, text):
        """A number, a constant, or both joined by + - * << |."""

        def of(node):
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                return node.value
            if isinstance(node, ast.Name):
                return self.constants[node.id]
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                return -of(node.operand)
            if isinstance(node, ast.BinOp):
                return ARITHMETIC[type(node.op)](of(node.left), of(node.right))
            raise ProgramError(f"{text}: expected a number")

        return of(ast.parse(text, mode="eval").body)

    def place(self, text, words=None):
        """(address, words) of NAME, NAME[word] or NAME[word:words]; of a number, which is an address, with `words`."""
        match = re.fullmatch(r"([A-Za-z_][\w.]*)(?:\[(\w+)(?::(\w+))?\])?", text)
        if match and match[1] in self.places:
            address, size = self.places[match[1]]
            if match[2]:
                first, size_wanted = self.number(match[2]), self.number(match[3] or "1")
                if first + size_wanted > size:
                    raise ProgramError(f"{text}: expected at most {size} words")
                return address + first, size_wanted
            return address, words or size
        if words is None:
            raise ProgramError(f"{text}: expected a name")
        return self.number(text), words

    def literal(self, value, words):
        """The address of a constant in memory."""
        wanted = [value >> 16 * (words - 1 - i) & 0xFFFF for i in range(words)]
        if not -(1 << 16 * words - 1) <= value < 1 << 16 * words:
            raise ProgramError(f"{value}: expected a number of {words} words")
        for address in range(min(self.memory, default=0), self.next - words + 1):
            if all(self.memory.get(address + i) == word for i, word in enumerate(wanted)):
                return address
        self.memory.update(enumerate(wanted, self.next))
        self.next += words
        return self.next - words

    # ---- instructions ----------------------------------------------------------------------
    def translate(self, line, routine):
        name, _, rest = line.partition(" ")
        operands = [part.strip() for part in rest.split(",")] if rest.strip() else []
        if name in CONDITIONS:
            return self.encode("jump", CONDITIONS[name], 0, self.labels[operands[0]])
        if name == "call":
            return self.encode("call", 0, self.places[operands[0] + ".back"][0], self.labels[operands[0]])
        if name == "ret":
            return self.encode("ret", 0, 0, self.places[routine + ".back"][0])
        if name not in OPERATIONS:
            raise ProgramError(f"{name}: expected an instruction")
        to, words = self.place(operands[0])
        if not 1 <= words <= 16:
            raise ProgramError(f"{words} words: expected 1 to 16")
        if name == "shr":
            return self.encode("shr", words - 1, to, 0)
        if operands[1].startswith("#"):
            source = self.literal(self.number(operands[1][1:]), words)
        else:
            source, size = self.place(operands[1])
            if size != words:
                raise ProgramError(f"{operands[0]} has {words} words, {operands[1]} {size}")
        return self.encode(name, words - 1, to + words - 1, source + words - 1)

    @staticmethod
    def encode(operation, count, a, b):
        return OPERATIONS[operation] << 24 | count << 20 | a << 10 | b

    def clocks_between(self, first, last):
        """From the end of the instruction before `first` to the end of that before `last`; none of them jumps."""
        codes = self.code[self.labels[first] : self.labels[last]]
        assert all(code >> 24 < OPERATIONS["call"] for code in codes)
        return sum(clocks((code >> 20 & 15) + 1) for code in codes)

    # ---- the package -----------------------------------------------------------------------
    def package(self):
        memory = [self.memory.get(address, 0) for address in range(RAM)]
        outside = "".join(f"  localparam logic [4:0] {name.upper()} = 5'h{address & 31:02x};\n"
                          for name, (address, _) in self.places.items() if name.startswith("io_"))  # fmt: skip
        return f"""\
// SPDX-License-Identifier: Apache-2.0
//
// The program of PTP for ptp_machine, and its memory at configuration. Made by tools/ptp_assemble.py from ptp*.asm:
// {len(self.code)} instructions of {ROM}, {self.next} words of {RAM}.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package ptp_program_pkg;
  localparam int REGISTERS = {len(self.registers)};
  localparam int PARAMETERS = {self.parameters};
  localparam int PARAMETERS_AT = {self.parameters_at};
  localparam int HOLD_CLOCKS = {self.clocks_between("held", "released")};  // that a step takes

  // Words from 0x300 on.
{outside}
  // verilog_format: off
  localparam logic [{ROM}*{WORD}-1:0] PROGRAM = {{
{self.rows(self.code + [0] * (ROM - len(self.code)), WORD, 10)}
  }};
  localparam logic [{RAM}*16-1:0] DATA = {{
{self.rows(memory, 16, 14)}
  }};
  // verilog_format: on
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
"""

    @staticmethod
    def rows(words, bits, a_line):
        """The first one is the lowest of the vector."""
        digits = [f"{bits}'h{word:0{bits // 4}x}" for word in reversed(words)]
        return ",\n".join("    " + ", ".join(digits[i : i + a_line]) for i in range(0, len(digits), a_line))


def texts():
    """The program, file by file."""
    return {name: (RTL / name).read_text() for name in FILES}


def main():
    package = Program(texts()).package()
    target = RTL / "ptp_program_pkg.sv"
    if sys.argv[1:] == ["--check"]:
        return 0 if target.read_text() == package else f"{target.name} is not what ptp*.asm say: run tools/ptp_assemble.py"
    target.write_text(package)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ProgramError as error:
        sys.exit(str(error))
