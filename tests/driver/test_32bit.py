"""32-bit computers, as the Zynq-7000: the module is built for such a kernel, loads there and receives; and 32-bit programs with a 64-bit kernel."""

import contextlib
import re
import subprocess

import pytest
from support.guest import LOAD, Guest, build, compiler, kernel32
from support.netns import FEBS, Bench
from support.paths import TOP

RULES = ["fade_frames", "fade_window", "fade_start", "fade_feb", "fade1_feb", "fade1_rules"]
# What a compiler calls for 64 bits where the processor has 32, and no kernel has.
DIVISION = re.compile(r"__u?(?:div|mod|divmod)[dt]i[34]|__aeabi_u?ldivmod")


def test_the_module_is_built_for_a_32_bit_kernel():
    """The kernel's modpost finds each symbol: also a division of 64 bits by a variable, which would be one that is not there."""
    build(kernel32())
    assert (kernel32().build / "fadelink.ko").exists()


@pytest.mark.parametrize("target", ["arm-linux-gnueabihf", "mipsel-linux-gnu", "riscv32-linux-gnu"])
def test_the_rules_divide_no_64_bits(tmp_path, target):
    """Also where they are not optimized, as the ARM of the Zynq-7000 has no such instruction."""
    headers = TOP / "build/kernel32/root/usr/include"
    for rule in RULES:
        words = ["clang", f"--target={target}", "-O0", "-ffreestanding", "-nostdlibinc", "-isystem", headers, "-isystem", headers / "i386-linux-gnu"]
        subprocess.run([*words, "-c", TOP / f"driver/{rule}.c", "-o", tmp_path / "rule.o"], check=True)
        assert not DIVISION.search((tmp_path / "rule.o").read_bytes().decode("latin1")), rule


@contextlib.contextmanager
def computer(folder, **guest):
    """A bench with a virtual machine of its own."""
    bench = Bench(folder)
    try:
        bench.guest = Guest(bench, **guest)
        try:
            yield bench
        finally:
            bench.guest.close()
    finally:
        bench.close()


@pytest.mark.long
def test_a_32_bit_kernel_loads_the_module_and_receives(tmp_path):
    """Two boards at a time, rings whose end is crossed; wrong calls, and an interface that goes down."""
    with computer(tmp_path, kernel=kernel32()) as bench:
        boards = bench.sim("--packet-socket", "--boards", 2, "--link", "loss=0.01", iface="fade0")
        out = bench.guest.run(f"""set -e
uname -m
{LOAD} ring_order=7
abi_reader /dev/l3_fpga0 eth0 {FEBS[0]} 4000000 & R=$!
abi_reader /dev/l3_fpga1 eth0 {FEBS[1]} 4000000; wait $R
abi_abuse errno /dev/l3_fpga0 eth0 {FEBS[0]}
abi_interface /dev/l3_fpga0 eth0 {FEBS[0]}
rmmod fadelink
""")
        assert not any(board["running"] for board in bench.end_sim(boards)["boards"])
    assert "i686" in out and out.count("words, all right") == 2, out
    assert "errno: 0 failures" in out and re.search(r"interface: \d+ bytes, all right", out), out


@pytest.mark.long
def test_32_bit_programs_and_a_64_bit_kernel(tmp_path):
    """The structures and numbers of the calls are the same for both."""
    programs = []
    for name in ("abi_reader", "abi_abuse", "abi_interface"):
        programs.append(tmp_path / f"{name}32")
        subprocess.run([*compiler(kernel32().root32), "-s", "-o", programs[-1], TOP / f"tests/driver/{name}.c"], check=True)
    with computer(tmp_path, programs=programs) as bench:
        bench.sim("--packet-socket", "--link", "loss=0.01", iface="fade0")
        out = bench.guest.run(f"""set -e
{LOAD} ring_order=7
abi_reader32 /dev/l3_fpga0 eth0 {FEBS[0]} 2000000
abi_abuse32 errno /dev/l3_fpga0 eth0 {FEBS[0]}
abi_interface32 /dev/l3_fpga0 eth0 {FEBS[0]}
""")
    assert "words, all right" in out and "errno: 0 failures" in out and re.search(r"interface: \d+ bytes, all right", out), out
