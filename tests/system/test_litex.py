"""The cores in LiteX: a SoC in LiteX's simulator against the real receiver (docs/boards.md)."""

import json
import os
import subprocess
import sys

import pytest
from support.netns import FEBS, report, sh, wait_for
from support.paths import TOP

LITEX = TOP / "rtl/litex"
IFACE = ["--iface", "tap0"]
FEB = [*IFACE, "--feb", FEBS[0]]


def printed():
    """The commands of docs/boards.md that run the example, of which the last does."""
    text = (TOP / "docs/boards.md").read_text().partition("\n## LiteX\n")[2].partition("\n## ")[0]
    return [line.strip().partition("  #")[0] for line in text.splitlines() if line.startswith("    ")]


def build(*options, path=os.environ["PATH"], commands=None):
    """Builds the simulated SoC with this PATH, as it is printed."""
    *first, last = commands or printed()
    shell = ["bash", "-ec", "\n".join([*first, f'{last} --no-run "$@"']), "bash", *options]
    return subprocess.run(shell, cwd=TOP, env=os.environ | {"PATH": path}, capture_output=True, text=True)


def start(bench, *options):
    """Starts the simulated SoC: the description of its registers."""
    out = bench.tmp / "litex"
    made = build("--out", out, *options)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    bench.start(bench.pc_ns, "env", "-C", out / "gateware", "obj_dir/Vsim")
    wait_for(lambda: "tap0" in sh("ip", "-n", bench.pc_ns, "-br", "link"))
    sh("ip", "-n", bench.pc_ns, "link", "set", "tap0", "up", "mtu", 9000)
    return out / "board.toml"


def answer(bench, *words):
    status, out, err = bench.run(*words)
    assert status == 0, err
    return out


@pytest.mark.long
def test_a_soc_sends_and_has_registers_by_name(bench):
    registers = ["--registers", start(bench)]
    found = json.loads(answer(bench, "discover", *IFACE, "--json"))
    assert found["feb"] == FEBS[0] and found["identity"]["window"] == 8
    status, result = report(bench.fadelink("receive", *FEB, "--json", "--verify", "counter", "--packets", 30).finish())
    assert status == 0 and result["complete"] and result["febs"][0]["verified"] and result["febs"][0]["words"] >= 30 * 1024
    assert answer(bench, "cmd", *FEB, *registers, "gap", 100, "--json") and "  gap   100\n" in answer(bench, "status", *FEB, *registers)
    counters = json.loads(answer(bench, "status", *FEB, *registers, "--json"))["counters"]
    assert counters == {"gap": 100, "sent": 0}
    # Slower now: one word in 101 clocks.
    status, result = report(bench.fadelink("receive", *FEB, "--json", "--verify", "counter", "--packets", 3).finish())
    assert status == 0 and result["complete"] and result["febs"][0]["verified"]


def test_without_verilator_the_example_says_so(tmp_path):
    """No traceback; the same for a simulator that does not compile."""
    made = build("--out", tmp_path, path="/usr/sbin:/usr/bin:/sbin:/bin", commands=printed()[-1:])
    assert made.returncode == 1 and made.stderr.count("\n") == 1, made.stderr
    assert "verilator is not in the PATH; tools/fusesoc/bin has the one" in made.stderr
    (tmp_path / "verilator").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    (tmp_path / "verilator").chmod(0o755)
    made = build("--out", tmp_path / "out", path=f"{tmp_path}:/usr/bin:/bin", commands=printed()[-1:])
    assert made.returncode == 1 and "broken" in made.stderr and "Traceback" not in made.stderr, made.stderr
    assert made.stderr.endswith("build_sim.sh failed; its messages are above\n")


def test_wrong_parameters():
    sys.path.insert(0, str(LITEX))
    try:
        from litex_fadelink import Fade
    finally:
        sys.path.pop(0)
    for wrong, message in [
        ({"protocol": 2}, "protocol 2: expected 10 (FADE-10G) or 1 (FADE v1)"),
        ({"width": 32}, "width 32: expected 8 (1 Gb/s) or 64 (10 Gb/s)"),
        ({"packets": 12}, "packets 12: expected a power of two, 2 or more"),
    ]:
        with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
            Fade(None, **wrong)


@pytest.mark.long
def test_csrs_of_the_core(bench):
    registers = ["--registers", start(bench, "--reach", "fade")]
    status, result = report(bench.fadelink("receive", *FEB, "--json", "--packets", 20).finish())
    assert status == 0

    def csr(name, *value):
        return int(json.loads(answer(bench, "cmd", *FEB, *registers, name, *value, "--json"))["value"])

    assert (csr("mac_address_1"), csr("mac_address_0")) == (0x02FA, 0xDE000001) and csr("control") == 1 and csr("status") == 0
    for number, least in [(0, 20), (2, 20), (4, 0)]:  # sent, acknowledged, protocol errors
        csr("counter", number)
        assert csr("counter_valid") == 1 and least <= csr("counter_value") < 100, number
