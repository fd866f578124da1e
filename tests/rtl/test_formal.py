"""Proofs with Yosys's solver; each must fail on a core that is broken on purpose."""

import re

import pytest
from support import yowasp
from support.paths import TOP

# Clocks from reset; `make test-long` goes deeper.
STEPS = 26
LONG_STEPS = 44
BREAK_STEPS = 38
# The time until an offer, with ACKs ten clocks apart as on a full line.
OFFERED = {"ONLY_OFFERED": 1, "ACK_PAUSE": 6}
MANAGER = "rtl/fade10g/fade10g_desc_manager.sv"
MANAGER1 = "rtl/fade1/fade1_desc_manager.sv"


def run(script):
    """False if a proof fails."""
    process = yowasp.run("yosys", "-q", "-p", script, capture_output=True, text=True)
    failed = "proof did fail" in process.stdout + process.stderr
    assert process.returncode == 0 or failed, process.stdout + process.stderr
    return not failed


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
    return run(script)


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
    "tail moves without ACK": (MANAGER, "if (tail_ptr != fresh && confirmed && ", "if (tail_ptr != fresh && "),
    "a place is free while it is read": (MANAGER, "tail_is_read <= sending &&", "tail_is_read <= 1'b0 &&"),
    "a place is never free": (MANAGER, "if (sending_done) tail_may_move <= 1'b1;", ""),
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
    "v1 tail moves without ACK": (MANAGER1, "if (tail_ptr != fresh && confirmed && ", "if (tail_ptr != fresh && "),
    "v1 a place is free while it is read": (MANAGER1, "tail_is_read <= sending &&", "tail_is_read <= 1'b0 &&"),
    "v1 a place is never free": (MANAGER1, "if (sending_done) tail_may_move <= 1'b1;", ""),
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
QUICK = ["v1 window is not looked at"]


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


PERMIT = "rtl/fade/fade_permit.sv"
PERMIT_BREAKS = {
    "used up by nothing": ("    if (used) valid <= 1'b0;\n", ""),
    "runs on": ("if (!valid && !asked) permit", "if (!asked) permit"),
    "half of it is compared": ("fits = valid && &same", "fits = valid && same[0]"),
    "fits without one": ("fits = valid && &same", "fits = &same"),
}


def prove_permit(source=PERMIT):
    proof = "tests/rtl/formal/permit_proof.sv"
    return run("; ".join([
        f"read_verilog -sv -formal {source} {proof}", "prep -flatten -top permit_proof", "chformal -lower", "setundef -undriven -anyseq",
        "sat -enable_undef -verify -prove-asserts -set-init-def -set-def-inputs -seq 12 permit_proof",
    ]))  # fmt: skip


def test_a_permit_is_used_once():
    assert prove_permit()


@pytest.mark.parametrize("name", PERMIT_BREAKS)
def test_the_proof_of_the_permit_can_fail(name):
    old, new = PERMIT_BREAKS[name]
    good = (TOP / PERMIT).read_text()
    assert good.count(old) == 1, "the line is still there"
    broken = TOP / "build" / f"broken_permit_{name.replace(' ', '_')}.sv"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(good.replace(old, new))
    assert not prove_permit(broken.relative_to(TOP))


# What an event reads is free: the state of the streams, what a look finds, what a segment means, which timers ran out, which
# holes there are.
FREE = ["tcp_look", "tcp_segment", "tcp_places", "tcp_fields", "tcp_timer", "tcp_gate", "tcp_sack"]


def prove_engine(streams=2, file="tcp_engine.sv", old="", new="", name=""):
    """True if no event of the TCP engine uses what an earlier one has not finished, by induction: for runs of any length.
    `old` is replaced by `new` in `file`."""
    folder = TOP / "build" / f"formal_tcp_{streams}{name.replace(' ', '_')}"
    folder.mkdir(parents=True, exist_ok=True)
    proof = (TOP / "tests/rtl/formal/tcp_engine_proof.sv").read_text()
    ports = re.findall(r"^    input .*?(\w+),?$", proof, re.MULTILINE)
    instance = f"  tcp_engine_proof #(.STREAM_BITS(STREAM_BITS)) proof ({', '.join(f'.{port}({port})' for port in ports)});\n"
    sources = ["rtl/common/link_pkg.sv", "rtl/common/net_pkg.sv", "rtl/tcp/tcp_pkg.sv", "tests/rtl/formal/tcp_engine_proof.sv"]
    for path in sorted((TOP / "rtl/tcp").glob("*.sv")):
        if path.stem in ("tcp_pkg", "tcp_core"):
            continue
        text = path.read_text()
        if path.name == file and old:
            assert text.count(old) == 1, "the line is still there"
            text = text.replace(old, new)
        if path.stem == "tcp_engine":
            end = text.rindex("endmodule")
            text = text[:end] + instance + text[end:]
        (folder / path.name).write_text(text)
        sources.append(str((folder / path.name).relative_to(TOP)))
    return run("; ".join([
        f"read_verilog -sv -formal {' '.join(sources)}",
        f"chparam -set STREAMS {streams} -set SACK 1 tcp_engine",
        "hierarchy -top tcp_engine",
        "proc",
        "cutpoint " + " ".join(f"t:*{module}*" for module in FREE),
        "flatten",
        "memory_map",
        "opt -full",
        "chformal -lower",
        "setundef -undriven -anyseq",
        "sat -verify -prove-asserts -tempinduct -maxsteps 20 tcp_engine",
    ]))  # fmt: skip


@pytest.mark.parametrize("streams", [2, pytest.param(1, marks=pytest.mark.long), pytest.param(5, marks=pytest.mark.long)])
def test_no_event_uses_an_old_context(streams):
    assert prove_engine(streams)


ENGINE_BREAKS = {
    "begins beside the congestion window": ("tcp_engine.sv", "        && congestion_due == tcp_pkg::CONGESTION_NOTHING && !congestion_busy;",
        "        && congestion_due == tcp_pkg::CONGESTION_NOTHING;"),
    "begins before the congestion window is told": ("tcp_engine.sv", "!rst && !step[tcp_pkg::SEGMENT_APPLY] && !step[tcp_pkg::TIMER_APPLY]", "!rst"),
    "ends beside the round trip": ("tcp_engine.sv", "rtt_due == tcp_pkg::RTT_NOTHING && !rtt_busy;", "rtt_due == tcp_pkg::RTT_NOTHING;"),
    "overwrites what waits": ("tcp_engine.sv", "assign settled = is_timed && (!step[tcp_pkg::LOOK_APPLY] || is_free);", "assign settled = is_timed;"),
    "writes though it waits": ("tcp_engine.sv", "assign applies_segment = step[tcp_pkg::SEGMENT_APPLY] && is_timed;", "assign applies_segment = step[tcp_pkg::SEGMENT_APPLY];"),
    "another stream at once": ("tcp_schedule.sv", "      if (!settled) step <= step;", "      stream <= segment_stream;\n      if (!settled) step <= step;"),
    "two at once": ("tcp_schedule.sv", "step[tcp_pkg::TIMER_APPLY] <= step[tcp_pkg::TIMER];", "step[tcp_pkg::TIMER_APPLY] <= step[tcp_pkg::TIMER] || step[tcp_pkg::LOOK];"),
    "a number too late": ("tcp_engine.sv", "una_due <= !rst && write_una;", "una_due <= !rst && (write_una || una_due);"),
}  # fmt: skip


ENGINE_QUICK = ["another stream at once"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in ENGINE_QUICK else pytest.mark.long) for name in ENGINE_BREAKS])
def test_the_proof_of_the_engine_can_fail(name):
    assert not prove_engine(2, *ENGINE_BREAKS[name], name)
