"""The permit of START (rtl/fade/fade_permit.sv), as both command processors keep it."""

from cocotb.triggers import ClockCycles

SOURCES = 2


async def starts_in_any_order(dut, random, reset, start):
    """STARTs in any order and again, from two computers, between RESETs, ends and losses of power: each is obeyed with the permit of its
    moment alone, and that is told where it is not.

    reset(computer), start(number, permit, computer, running): send it; the second gives the permit that the board tells, or None.
    """
    starts, permits, valid, obeyed, number = [], [0], 0, 0, 0
    for _ in range(400):
        what = random.randrange(10)
        running = bool(int(dut.session.value))
        if what == 0:
            await reset(random.randrange(SOURCES))
            valid = 0
        elif what == 1 and random.random() < 0.3:
            dut.rst.value = 1
            await ClockCycles(dut.clk, 3)
            dut.rst.value = 0
            await ClockCycles(dut.clk, random.randrange(1, 50))
            valid = 0
        elif what == 2 and running:
            dut.finished.value = 1
            await ClockCycles(dut.clk, 3)
            dut.finished.value = 0
            await ClockCycles(dut.clk, 60)
            assert int(dut.session.value) == 0
        else:
            if what > 6 or not starts:
                number += random.randrange(1, 3)
                permit = random.choice([valid, valid, valid ^ 1 << random.randrange(30), random.choice(permits)])
                starts.append((number, permit, random.randrange(SOURCES)))
            one = starts[-1] if random.random() < 0.6 else random.choice(starts)
            told = await start(*one, running)
            if not running and int(dut.session.value):
                assert one[1] == valid != 0, "not the permit of this moment"
                assert not told
                valid, obeyed = 0, obeyed + 1
            elif not running and told:
                assert 0 < told < 1 << 30 and valid in (0, told), "it stays until it is used up"
                valid = told
                permits.append(told)
    assert obeyed > 20 and len(set(permits)) > 20
