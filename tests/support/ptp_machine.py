"""The machine that runs PTP's program, as an interpreter: what rtl/ptp/ptp_machine.sv is held against."""

import importlib.util

from support.paths import TOP

_spec = importlib.util.spec_from_file_location("ptp_assemble", TOP / "tools/ptp_assemble.py")
assemble = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(assemble)
OPERATIONS = {code: name for name, code in assemble.OPERATIONS.items()}
PROGRAM = assemble.Program(assemble.texts())
WINDOW = 0x380


class Machine:
    """One instruction a step. `read(address)` and `write(address, word)` are its words outside of the memory."""

    def __init__(self, read, write, parameters=None, window=0):
        self.read_outside, self.write_outside, self.window = read, write, window
        self.memory = [PROGRAM.memory.get(address, 0) for address in range(assemble.RAM)]
        for i, word in enumerate(parameters or [0] * PROGRAM.parameters):
            self.memory[PROGRAM.parameters_at + i] = word
        self.pc, self.clocks = 0, 2  # clocks: when the instruction began
        self.time = 0  # of a read: the clock in which its address is shown
        self.carry = self.zero = self.negative = 0

    def at(self, address):
        return 2 * self.window + (address & 1) if address >= WINDOW else address

    def read(self, address):
        address = self.at(address)
        return self.memory[address] if address < 0x200 else self.read_outside(address)

    def write(self, address, word):
        address = self.at(address)
        if address < 0x200:
            self.memory[address] = word
        else:
            self.write_outside(address, word)

    def get(self, name):
        """A place of the memory, as a signed number."""
        address, words = PROGRAM.place(name)
        value = 0
        for i in range(words):
            value = value << 16 | self.memory[address + i]
        return value - (value >> 16 * words - 1 << 16 * words)

    def step(self):
        code = PROGRAM.code[self.pc]
        name, count, a, b = OPERATIONS[code >> 24], code >> 20 & 15, code >> 10 & 1023, code & 1023
        self.pc += 1
        self.time = self.clocks + 1
        if name == "jump":
            self.clocks += 4
            taken = (1, self.zero, self.carry, self.negative)[count >> 1]
            if taken != (count & 1):
                self.pc = b
        elif name == "call":
            self.write(a, self.pc)
            self.pc = b
            self.clocks += 4
        elif name == "ret":
            self.clocks += 7
            self.pc = self.read(b)
        else:
            self.arithmetic(name, count + 1, a, b)

    def arithmetic(self, name, words, a, b):
        carry, zero, word = int(name in ("sub", "cmp")), True, 0
        for i in range(words):
            source = self.read(b)
            self.time += 1
            old = self.read(a)
            self.time += 5
            if name == "shr":
                full = (old >> 15 if i == 0 else carry) << 16 | old
                word, carry = full >> 1, full & 1
            elif name in ("and", "tst"):
                word = old & source
            else:
                total = (0 if name == "mov" else old) + (source ^ 0xFFFF if name in ("sub", "cmp") else source) + carry
                word, carry = total & 0xFFFF, total >> 16
            if name not in ("cmp", "tst"):
                self.write(a, word)
            zero = zero and word == 0
            a, b = a + (1 if name == "shr" else -1), b - 1
        self.clocks += assemble.clocks(words)
        if name not in ("and", "tst"):
            self.carry = carry
        self.zero, self.negative = int(zero), word >> 15
