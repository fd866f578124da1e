"""AXI4-Lite and AXI4-Stream in cocotb: the models of cocotbext-axi with pauses, and the rules that a side must keep."""

import importlib.util
import logging

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiLiteRam, AxiResp, AxiStreamBus, AxiStreamSink, AxiStreamSource

from support.block import rng
from support.paths import TOP

logging.getLogger("cocotb").setLevel(logging.WARNING)
_SPEC = importlib.util.spec_from_file_location("fadelink_registers", TOP / "host/python/fadelink/registers.py")
REGISTERS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(REGISTERS)


class Rules:
    """Watches a channel: what is offered stays, unchanged, until it is taken (AMBA AXI A3.2.1, AXI4-Stream 2.2.1)."""

    def __init__(self, clk, valid, ready, payload, rst=None):
        self.waits = self.transfers = 0
        self.name, self.payload = valid._name, payload
        cocotb.start_soon(self.watch(clk, valid, ready, rst))

    async def watch(self, clk, valid, ready, rst):
        held = None
        while True:
            await ReadOnly()
            offered, taken = int(valid.value), int(ready.value)
            values = [str(signal.value) for signal in self.payload] if offered else None
            if rst is not None and int(rst.value):
                held = None
            elif held is not None:
                assert offered, f"{self.name} fell before the transfer"
                assert values == held, f"what belongs to {self.name} changed before the transfer: {held}, then {values}"
            held = values if offered and not taken else None
            self.waits += held is not None
            self.transfers += offered and taken
            await RisingEdge(clk)


def stream_rules(dut, clk, prefix="m_axis", rst=None):
    """The rules of an AXI4-Stream that the core sends."""
    signals = {name: getattr(dut, f"{prefix}_{name}") for name in ("tdata", "tkeep", "tlast", "tuser") if hasattr(dut, f"{prefix}_{name}")}
    return Rules(clk, getattr(dut, f"{prefix}_tvalid"), getattr(dut, f"{prefix}_tready"), list(signals.values()), rst)


CHANNELS = {"aw": ["awaddr", "awprot"], "w": ["wdata", "wstrb"], "b": ["bresp"], "ar": ["araddr", "arprot"], "r": ["rdata", "rresp"]}


def lite_rules(dut, clk, prefix, rst=None):
    """The rules of the channels of an AXI4-Lite interface that the core sends: of a slave the answers, of a master the others."""
    ours = ["b", "r"] if prefix.startswith("s_") else ["aw", "w", "ar"]
    get = lambda name: getattr(dut, f"{prefix}_{name}")
    return {name: Rules(clk, get(f"{name}valid"), get(f"{name}ready"), [get(field) for field in CHANNELS[name]], rst) for name in ours}


def pauses(*key, share=0.4):
    """For set_pause_generator: a pause in each clock with a probability."""
    random = rng("pauses", *key)
    while True:
        yield random.random() < share


class Processor:
    """A master on s_axil, with pauses in every channel."""

    def __init__(self, dut, clk, key, rst=None):
        self.rules = lite_rules(dut, clk, "s_axil", rst)
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), clk)
        for name, channel in (
            ("aw", self.bus.write_if.aw_channel), ("w", self.bus.write_if.w_channel), ("b", self.bus.write_if.b_channel),
            ("ar", self.bus.read_if.ar_channel), ("r", self.bus.read_if.r_channel),
        ):  # fmt: skip
            channel.set_pause_generator(pauses(key, name))

    async def read(self, address):
        """The word at an address; None if the answer is an error."""
        answer = await self.bus.read(address, 4)
        return int.from_bytes(answer.data, "little") if answer.resp == AxiResp.OKAY else None

    async def write(self, address, value):
        """Whether the answer is OKAY."""
        return (await self.bus.write(address, value.to_bytes(4, "little"))).resp == AxiResp.OKAY

    async def put(self, registers, **values):
        """Writes registers by name."""
        for name, value in values.items():
            (register,) = [register for register in registers if register.name == name]
            assert await self.write(register.address, value)

    async def get(self, registers, name):
        """The word of a register, by name."""
        (register,) = [register for register in registers if register.name == name]
        return await self.read(register.address)


def memory(dut, clk, key, prefix="m_axil", size=2**16):
    """A memory with pauses in every channel behind a master of the core."""
    ram = AxiLiteRam(AxiLiteBus.from_prefix(dut, prefix), clk, size=size)
    for name, channel in (
        ("aw", ram.write_if.aw_channel), ("w", ram.write_if.w_channel), ("b", ram.write_if.b_channel),
        ("ar", ram.read_if.ar_channel), ("r", ram.read_if.r_channel),
    ):  # fmt: skip
        channel.set_pause_generator(pauses(key, prefix, name))
    return ram


def source(dut, clk, prefix, key=None, **options):
    """Sends frames into the core; with a key, with pauses."""
    sender = AxiStreamSource(AxiStreamBus.from_prefix(dut, prefix), clk, **options)
    if key:
        sender.set_pause_generator(pauses(key, prefix))
    return sender


def sink(dut, clk, prefix, key=None, **options):
    """Takes frames from the core; with a key, with pauses."""
    taker = AxiStreamSink(AxiStreamBus.from_prefix(dut, prefix), clk, **options)
    if key:
        taker.set_pause_generator(pauses(key, prefix))
    return taker


async def check_map(processor, registers, key, without=()):
    """Every register of a map: those that can be written keep what is written; the others, and addresses between, give errors."""
    random = rng("map", key)
    addresses = {register.address for register in registers}
    written = {}
    shuffled = [register for register in registers if not register.name.startswith(without)]
    random.shuffle(shuffled)
    for register in shuffled:
        value = random.getrandbits(32)
        # Counters take a write, and it does nothing.
        assert await processor.write(register.address, value) == (register.writable or "." in register.name), register
        if register.writable:
            written[register] = sum(
                field.get(value) << field.low for field in register.fields if not (field.bits == 1 and field.name in ("start", "apply"))
            )
    for register in shuffled:
        found = await processor.read(register.address)
        assert found is not None, register
        if register in written:
            assert found == written[register], (register, found)
    first_external = min((register.address for register in registers if "." in register.name), default=max(addresses) + 4)
    for hole in sorted(set(range(0, first_external, 4)) - addresses)[:4] + [0xFFC]:
        assert await processor.read(hole) is None and not await processor.write(hole, 0), hex(hole)
    assert all(rules.waits for rules in processor.rules.values()), "the answers had to wait"
