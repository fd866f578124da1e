"""Where the signals of a core cross from one clock to another, found in the netlist that Yosys makes of it."""

from dataclasses import dataclass

# Modules of rtl/common in which a signal may cross. What a synchronizer takes comes straight from a register; a carrier
# takes what it sent itself; a held register is read while a synchronized signal tells that it stands still.
SYNCHRONIZERS = {"sync_bits", "sync_reset"}
CARRIERS = {"async_fifo", "packet_memory"}
HELD = {"cdc_register"}
# Cells whose output bits depend on the input bits of the same place, and on all of S.
BITWISE = {"$mux", "$pmux", "$and", "$or", "$xor", "$xnor", "$not", "$bwmux"}


@dataclass(frozen=True, order=True)
class Crossing:
    """Registers of one instance feed those of another that has another clock."""

    source_clock: str
    clock: str
    source: str  # instance
    target: str  # instance
    module: str  # of the target
    source_module: str
    gates: bool  # logic lies between

    def is_safe(self):
        if self.module in SYNCHRONIZERS:
            return not self.gates
        return self.source_module in HELD or (self.module in CARRIERS and self.source == self.target)

    def __str__(self):
        return f"{self.source_clock} -> {self.clock}: {self.source} -> {self.target} ({self.module}{', through logic' * self.gates})"


def instance_of(cell):
    """The instance that a cell of the flattened netlist lies in; the top has no name."""
    name = cell.removeprefix("$flatten").replace("\\", "")
    head, dot, _ = name.partition(".$")
    return head if dot else name.rpartition(".")[0] if not name.startswith("$") else ""


def crossings(top, module):
    """All crossings of a core that `elaborate` gave. Input ports count as no clock's: settings stand still."""
    cells = module["cells"]
    modules = {"": top}
    for name, cell in cells.items():
        if cell["type"] == "$scopeinfo":
            words = cell["attributes"]
            modules[name] = words.get("module_hdlname", words.get("module"))
    names = {port["bits"][0]: name for name, port in module["ports"].items() if port["direction"] == "input"}
    drivers = {}
    for name, cell in cells.items():
        for port, direction in cell.get("port_directions", {}).items():
            if direction == "output":
                drivers |= {bit: (name, port, place) for place, bit in enumerate(cell["connections"][port])}

    def clock_of(bit):
        assert bit in names, f"{top}: a clock comes from inside, which this tool cannot follow"
        return names[bit]

    def is_register(cell):
        return cell["type"].endswith(("ff", "ffe", "ffce")) and "CLK" in cell["connections"]

    def read_clock(cell):
        """The clock of a memory's first read port, if it has one."""
        is_clocked = int(cell["parameters"]["RD_CLK_ENABLE"], 2)
        return clock_of(cell["connections"]["RD_CLK"][0]) if is_clocked else None

    # What a bit comes from: set of (cell, its clock, whether logic lies between).
    known = {}

    def sources(bit):
        found, todo, seen = set(), [(bit, False)], set()
        while todo:
            bit, gates = todo.pop()
            if (bit, gates) in seen or bit not in drivers:
                continue
            seen.add((bit, gates))
            name, port, place = drivers[bit]
            cell = cells[name]
            ports = cell["connections"]
            if is_register(cell):
                found.add((name, clock_of(ports["CLK"][0]), gates))
            elif cell["type"] == "$mem_v2" and (clock := read_clock(cell)):
                found.add((name, clock, gates))
            else:
                if cell["type"] == "$mem_v2":
                    # One that nobody writes is logic of its address.
                    found |= {(name, clock_of(clock), True) for clock in ports["WR_CLK"][:1]}
                    inputs = ports["RD_ADDR"]
                elif cell["type"] in BITWISE:
                    width = len(ports["Y"])
                    inputs = [b for p, bits in ports.items() if p not in "YS" for b in bits[place::width]] + ports.get("S", [])
                else:
                    inputs = [b for p, bits in ports.items() if cell["port_directions"][p] == "input" for b in bits]
                todo += [(b, True) for b in inputs]
        return found

    def module_of(instance):
        """The module of an instance; a block of a generate has that of the instance around it."""
        while instance not in modules:
            instance = instance.rpartition(".")[0]
        return modules[instance]

    result = set()

    def look(name, clock, bits):
        for bit in bits:
            if bit not in known:
                known[bit] = sources(bit)
            for source, source_clock, gates in known[bit]:
                if source_clock != clock:
                    source, target = instance_of(source), instance_of(name)
                    result.add(Crossing(source_clock, clock, source, target, module_of(target), module_of(source), gates))

    for name, cell in cells.items():
        ports = cell.get("connections", {})
        if is_register(cell):
            look(name, clock_of(ports["CLK"][0]), [b for p, bits in ports.items() if p not in ("CLK", "Q") for b in bits])
        elif cell["type"] == "$mem_v2" and ports["WR_CLK"]:
            write_clock = clock_of(ports["WR_CLK"][0])
            look(name, write_clock, ports["WR_ADDR"] + ports["WR_DATA"] + ports["WR_EN"])
            if clock := read_clock(cell):
                look(name, clock, ports["RD_ADDR"] + ports["RD_EN"])
                if clock != write_clock:
                    target = instance_of(name)
                    result.add(Crossing(write_clock, clock, target, target, modules[target], modules[target], False))
    return sorted(result)
