"""The blocks of PTP, each for itself; PTP as a whole: test_ptp.py."""

import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, Timer, cocotb, rng, run, start
from support.ptp_machine import Machine
from support.udp_block import TX, give, width_of


@pytest.mark.parametrize(
    "toplevel,parameters",
    [("ptp_clock", {"PPS_NS": 1000}), ("ptp_machine", {}), *[("ptp_receive", {"WIDTH": width}) for width in (8, 64)]],
)
def test_ptp_blocks(toplevel, parameters):
    run("ptp_blocks", parameters, toplevel)


@cocotb.test()
async def ptp_clock_counts_is_set_and_pulses(dut):
    """Over the ends of seconds, with rates of both signs; held, and set a word at a time."""
    dut.rate.value, dut.hold.value, dut.write.value = 0, 0, 0
    await start(dut, {"clk": 8000}, ["rst"])
    random = rng("clock")

    async def now():
        await ReadOnly()
        seconds, ns = divmod(int(dut.now.value), 2**32)
        await Timer(1, "ps")
        return seconds * 10**9 + ns, ns

    pulses = 0
    for stretch in range(60):
        rate = random.randrange(-(2**26), 2**26)
        dut.rate.value = rate % 2**32
        seconds, ns = random.randrange(2**48 - 10), random.choice([999_999_700, random.randrange(2_000_000_000)])
        dut.hold.value = 1
        for i, word in enumerate((ns & 0xFFFF, ns >> 16, seconds & 0xFFFF, seconds >> 16 & 0xFFFF, seconds >> 32)):
            dut.write.value, dut.wdata.value = 1 << i, word
            await RisingEdge(dut.clk)
        dut.hold.value, dut.write.value = 0, 0
        assert (await now())[0] == seconds * 10**9 + ns
        await RisingEdge(dut.clk)
        first, _ = await now()
        assert 7 <= first - seconds * 10**9 - ns <= 9
        for clock in range(1, 100):
            await RisingEdge(dut.clk)
            value, ns = await now()
            assert abs(value - first - (clock * ((8 << 32) + rate) >> 32)) <= 1 and ns < 10**9, (stretch, clock)
            pulses += int(dut.pps.value)
    assert pulses > 100, "the first microsecond of each second"


@cocotb.test()
async def ptp_machine_does_what_its_program_says(dut):
    """What it reads and writes outside is what the interpreter does, in the same clocks, over a world of random words."""
    random = rng("machine")
    clocks, epoch = 300_000, 700
    choices = [0, 1, 2, 3, 4, 5, 6, 12, 44, 54, 64, 0x102, 0xB02, 0xD02]
    table = [random.choice([random.randrange(2**16), random.choice(choices)]) for _ in range(1024)]
    window, wanted, found = random.randrange(18), [], []

    def world(address, clock):
        return table[(address + 37 * (clock // epoch)) % 1024]

    machine = Machine(lambda address: world(address, machine.time), lambda *write: wanted.append(write), window=window)
    dut.window.value, dut.rdata.value = window, 0
    await start(dut, {"clk": 8000}, ["rst"])
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    behind = 0
    for clock in range(clocks):
        await ReadOnly()
        address = int(dut.address.value)
        if int(dut.write.value) and 0x200 <= address < 0x380:
            found.append((address, int(dut.wdata.value)))
        await RisingEdge(dut.clk)
        # Two clocks behind its address.
        dut.rdata.value, behind = behind, world(address, clock)
    while machine.clocks < clocks:
        machine.step()
    assert len(found) > 300 and found == wanted[: len(found)] and len(wanted) - len(found) <= 16


@cocotb.test()
async def ptp_receive_keeps_messages(dut):
    """With their times; what has no room, or is bad, is not kept."""
    width = width_of(dut.s_data)
    for name in ("s_valid", "s_end", "s_begin", "next", "index"):
        getattr(dut, name).value = 0
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("messages")
    kept, dropped = [], 0

    async def count():
        nonlocal dropped
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            dropped += int(dut.drop_full.value)

    cocotb.start_soon(count())
    wanted_drops = 0
    for _ in range(200):
        if kept and random.random() < 0.4:
            message, stamp = kept.pop(0)
            await ReadOnly()
            assert int(dut.pending.value) == 1
            assert int(dut.length.value) == min(255, len(message)) and int(dut.arrival.value) == stamp
            await Timer(1, "ps")
            for index in range(min(64, len(message) // 2)):
                dut.index.value = index
                await ClockCycles(dut.clk, 2)
                await ReadOnly()
                assert int(dut.word.value) == int.from_bytes(message[2 * index : 2 * index + 2], "big"), index
                await Timer(1, "ps")
            dut.next.value = 1
            await RisingEdge(dut.clk)
            dut.next.value = 0
            continue
        message, stamp, good = random.randbytes(2 * random.randrange(17, 160)), random.randrange(2**48), int(random.random() < 0.8)
        dut.now.value, dut.s_begin.value = stamp, 1
        await RisingEdge(dut.clk)
        dut.now.value, dut.s_begin.value = stamp + 1, 0
        await give(dut, message, good)
        if good and len(kept) < 8:
            kept.append((message, stamp))
        else:
            wanted_drops += good
    await ClockCycles(dut.clk, 3)
    assert dropped == wanted_drops > 10 and width in (1, 8)
