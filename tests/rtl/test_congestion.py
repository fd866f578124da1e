"""Congestion control: the pause behind each frame, by the rules of docs/protocol/fade10g.md."""

import pytest
from support.block import ClockCycles, RisingEdge, cocotb, rng, run, start


@pytest.mark.parametrize("toplevel,parameters", [("congestion", {"FRAME_CLOCKS": 300, "PERIOD": 64, "PAPER_PERIOD": 96, "CEILING": 1000})])
def test_congestion(toplevel, parameters):
    run("congestion", parameters, toplevel)


async def congestion_frame(dut, again=False):
    """The pause behind a frame."""
    dut.sent.value, dut.again.value = 1, int(again)
    await RisingEdge(dut.clk)
    dut.sent.value = 0
    await ClockCycles(dut.clk, 9)
    return int(dut.pause.value)


@cocotb.test()
async def congestion_follows_the_share_of_retransmissions(dut):
    """Both rules in numbers: fair over 64 frames of 300 clocks, the paper's over 96; 1/8 and 1/32."""
    random = rng("congestion")
    for name in ["sent", "again", "session", "paper_rule", "queued", "idle"]:
        getattr(dut, name).value = 0
    dut.seed.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    for paper, frames, shift in [(0, 64, 5), (1, 96, 2)]:
        dut.paper_rule.value = paper
        await ClockCycles(dut.clk, 2)
        dut.session.value = 1
        delay, seen = 0, set()
        for period in range(160):
            again = random.choice([frames // 8 + 1, 40, frames] if period < 40 else [0, 1, 2, 3, frames // 8])
            marks = [True] * again + [False] * (frames - again)
            random.shuffle(marks)
            for mark in marks:
                dut.sent.value = 1
                dut.again.value = int(mark)
                await RisingEdge(dut.clk)
                dut.sent.value = 0
                await ClockCycles(dut.clk, random.randint(8, 10))
            if again > frames // 8:
                delay = min(1000, delay + ((delay >> shift) + 16 if paper else 4 * (again - 8)))
                seen.add("up")
            elif not paper or again * 32 < frames:
                delay -= (delay >> shift) or min(delay, 1)
                seen.add("down")
            else:
                seen.add("still")
            assert int(dut.delay.value) == delay, f"period {period}, {again} of {frames}"
            seen.add("ceiling" if delay == 1000 else "floor" if delay == 0 else "between")
        assert seen >= {"up", "down", "ceiling", "between"} and ("still" in seen) == bool(paper)
        dut.session.value = 0
        await ClockCycles(dut.clk, 2)
        assert int(dut.delay.value) == 0


@cocotb.test()
async def congestion_dithers_while_frames_are_queued(dut):
    """Up to 1/32 of a frame, spread evenly, with the fair rule alone; another seed, another sequence.

    With a delay up to 3/4 of a frame."""
    sequences = []
    for seed in (1, 2):
        for name in ["sent", "again", "session", "paper_rule", "queued", "idle"]:
            getattr(dut, name).value = 0
        dut.seed.value = seed
        await start(dut, {"clk": 6400}, ["rst"])
        dut.session.value = 1
        assert await congestion_frame(dut) == 0
        dut.queued.value = 1
        values = []
        for _ in range(400):
            values.append(await congestion_frame(dut))
        counts = [values.count(n) for n in range(8)]
        assert sum(counts) == 400 and min(counts) > 20, counts
        sequences.append(values)
        for n in range(64 + 63):  # a period with more retransmissions than an eighth
            await congestion_frame(dut, again=n < 90)
        for queued in (0, 1):
            dut.queued.value = queued
            extra = []
            for n in range(400):
                pause = await congestion_frame(dut, again=n % 4 == 0)
                extra.append(pause - int(dut.delay.value))
            assert min(extra) < 20 and 172 < max(extra) <= 192 and 80 < sum(extra) / 400 < 112
        dut.session.value = 0
        await ClockCycles(dut.clk, 2)
        dut.session.value = 1
        dut.paper_rule.value = 1
        assert await congestion_frame(dut) == 0
        dut.paper_rule.value = 0
    assert sequences[0] != sequences[1]


@cocotb.test()
async def congestion_probes_unless_frames_are_queued(dut):
    """After periods 1, 2, 4 .. 32 and each 64th a pause is a quarter of a frame longer, with the fair rule alone."""
    for name in ["sent", "again", "session", "paper_rule", "queued", "idle"]:
        getattr(dut, name).value = 0
    dut.seed.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    for paper_rule, queued in [(0, 0), (0, 0), (0, 1), (1, 0)]:
        dut.paper_rule.value, dut.queued.value = paper_rule, queued
        await ClockCycles(dut.clk, 2)
        dut.session.value = 1
        periods = [[await congestion_frame(dut) for _ in range(64)] for _ in range(199)]
        if queued:
            assert max(map(max, periods)) < 8
        else:
            probed = [i + 1 for i, pauses in enumerate(periods) if pauses == [0] * 63 + [75]]
            assert probed == ([] if paper_rule else [1, 2, 4, 8, 16, 32, 64, 128, 192])
            assert all(pauses == [0] * 64 for i, pauses in enumerate(periods) if i + 1 not in probed)
        dut.session.value = 0
        await ClockCycles(dut.clk, 2)


@cocotb.test()
async def congestion_pauses_while_the_sender_is_idle(dut):
    for name in ["sent", "again", "session", "paper_rule", "queued", "idle"]:
        getattr(dut, name).value = 0
    dut.seed.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    dut.session.value = 1
    for n in range(128):
        await congestion_frame(dut, again=n < 80)
    pause = await congestion_frame(dut)
    assert pause > 0
    await ClockCycles(dut.clk, 50)
    assert int(dut.pause.value) == pause and int(dut.pausing.value) == 1, "the frame is still under way"
    dut.idle.value = 1
    waited = 0
    while int(dut.pausing.value):
        await RisingEdge(dut.clk)
        waited += 1
    assert pause <= waited <= pause + 3
