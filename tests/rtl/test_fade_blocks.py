"""What the two FADE protocols share, each block on its own."""

import zlib

import pytest
from support.block import ClockCycles, RisingEdge, cocotb, rng, run, start

UNIT = 4
SHORTEST, INITIAL, LONGEST = 32 // UNIT, 399 // UNIT, 3999 // UNIT


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("fade_round_trip", {"UNIT_BITS": 2, "SHORTEST": 32, "INITIAL": 400, "LONGEST": 4000}),
        ("fade_buffer", {"SLOT_BITS": 2, "WORD_BITS": 3}),
        ("fade_buffer", {"SLOT_BITS": 2, "WORD_BITS": 3, "CHECKSUM": 1}),
        ("fade_checksum", {}),
        ("fade_buffer", {"SLOT_BITS": 2, "WORD_BITS": 3, "SEND_EMPTY": 0, "READ_CLOCKS": 2}),
    ],
)
def test_block(toplevel, parameters):
    run("fade_blocks", parameters, toplevel)


def crc_of(words):
    return zlib.crc32(b"".join(word.to_bytes(8, "little") for word in words))


@cocotb.test()
async def fade_checksum_is_that_of_all_words(dut):
    """Words with and without gaps; `last` as early as it can come; the next transmission begins anew."""
    random = rng("checksum")
    for name in ["running", "accept", "word", "last"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, [])
    crc = None
    for count in [0, 1, 2, 3, 100, 0, 33, 7]:
        words, share = [random.getrandbits(64) for _ in range(count)], random.choice([1, 0.5])
        dut.running.value = 1
        for word in words:
            while random.random() > share:
                dut.word.value = random.getrandbits(64)
                await RisingEdge(dut.clk)
            dut.accept.value, dut.word.value = 1, word
            await RisingEdge(dut.clk)
            dut.accept.value = 0
        assert crc is None or int(dut.crc.value) == crc, "until the end"
        await RisingEdge(dut.clk)
        dut.last.value = 1
        await ClockCycles(dut.clk, 3)
        crc = crc_of(words)
        for _ in range(random.randrange(1, 5)):
            assert int(dut.crc.value) == crc, words
            await RisingEdge(dut.clk)
        dut.running.value = dut.last.value = 0
        await ClockCycles(dut.clk, random.randrange(1, 5))


async def pulse(dut, *names):
    for name in names:
        getattr(dut, name).value = 1
    await RisingEdge(dut.clk)
    for name in names:
        getattr(dut, name).value = 0


@cocotb.test()
async def fade_round_trip_follows_growth_at_once_and_shrinks_slowly(dut):
    """Against the rule in numbers: the estimate, and whether frames wait in a queue."""
    random = rng("round trip")
    for name in ["start", "answered", "abandoned", "lost"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    estimate, best = INITIAL, LONGEST
    queued = set()
    for _ in range(150):
        before = int(dut.round_trip.value)
        assert before == estimate
        await pulse(dut, "start")
        await ClockCycles(dut.clk, random.choice([4, 40, 200, 300, 800]) + random.randrange(8))
        await pulse(dut, "answered")
        await RisingEdge(dut.clk)
        sample = int(dut.sample.value)
        await ClockCycles(dut.clk, 8)
        estimate = sample if sample > before else before - before // 4 + sample // 4
        is_queued = sample - min(best, sample) > min(best, sample) // 4
        best = min(best, sample)
        assert int(dut.round_trip.value) == estimate and int(dut.measuring.value) == 0
        assert int(dut.queued.value) == is_queued, (sample, best)
        queued.add(is_queued)
    assert queued == {False, True}


@cocotb.test()
async def fade_round_trip_measures_frames_in_units(dut):
    for name in ["start", "answered", "abandoned", "lost"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    await pulse(dut, "start")
    await ClockCycles(dut.clk, 100 * UNIT)
    assert abs(int(dut.sample.value) - SHORTEST - 100) <= 1, "a little longer than it was"
    await pulse(dut, "abandoned")
    await ClockCycles(dut.clk, 10)
    assert int(dut.measuring.value) == 0 and int(dut.round_trip.value) == INITIAL, "measures nothing"
    for expected in [2 * INITIAL, 4 * INITIAL, 8 * INITIAL, LONGEST, LONGEST]:
        await pulse(dut, "start")
        for _ in range(3 * LONGEST * UNIT):
            await RisingEdge(dut.clk)
            if int(dut.overdue.value):
                break
        else:
            raise AssertionError("it is never overdue")
        assert int(dut.sample.value) >= min(expected, LONGEST)
        await pulse(dut, "lost")
        await ClockCycles(dut.clk, 3)
        assert int(dut.round_trip.value) == min(expected, LONGEST)


def gray(value):
    return value ^ (value >> 1)


@cocotb.test()
async def fade_buffer_tells_the_last_packet_after_all_others(dut):
    """Whatever the clocks: `closed` comes with the head behind the last packet, never at an earlier one."""
    random = rng("buffer")
    send_empty, read_clocks = int(dut.SEND_EMPTY.value), int(dut.READ_CLOCKS.value)
    for name in ["s_axis", "session", "stop", "tail_gray", "read_enable", "first_slot"]:
        getattr(dut, name).value = 0
    periods = [(6400, 6400), (2002, 6400), (20006, 6400), (6400, 2002), (6410, 6400)]
    period = periods[int(rng("clocks", send_empty).randrange(len(periods)))]
    await start(dut, {"user_clk": period[0], "tx_clk": period[1]}, ["user_rst"])
    for words in [0, 1, 7, 8, 9, 15, 16, 24, 31]:
        dut.session.value = 1
        sent = 0
        heads = []
        stopped = False
        for _ in range(4000):
            if not stopped and sent == words:
                # A STOP in the clocks in which the head moves.
                for _ in range(random.randrange(4)):
                    await RisingEdge(dut.tx_clk)
                dut.stop.value = 1
                stopped = True
            dut.s_axis.value = (sent << 2 | 2) if sent < words else 0
            await RisingEdge(dut.user_clk)
            if int(dut.s_axis.value) and int(dut.s_axis_tready.value):
                sent += 1
            dut.s_axis.value = 0
            heads.append((int(dut.head.value), int(dut.closed.value)))
            if heads[-1][1]:
                break
        crc = crc_of(range(words)) if int(dut.CHECKSUM.value) else 0
        assert int(dut.words_crc.value) == crc, "with the head"
        await ClockCycles(dut.tx_clk, 5)
        assert int(dut.words_crc.value) == crc and int(dut.closed.value) == 1 and int(dut.last_words.value) == words % 8
        is_sent = bool(words % 8) or send_empty
        assert int(dut.head.value) == words // 8 + is_sent
        assert all(not closed or head == words // 8 + is_sent for head, closed in heads), heads
        for place in range(words):
            dut.read_enable.value, dut.read_address.value = 1, place
            await RisingEdge(dut.tx_clk)
            dut.read_enable.value = 0
            await ClockCycles(dut.tx_clk, read_clocks)
            assert int(dut.read_data.value) == place
        dut.session.value = dut.stop.value = 0
        await ClockCycles(dut.tx_clk, 20)
        await ClockCycles(dut.user_clk, 20)
        assert int(dut.closed.value) == 0 and int(dut.user_running.value) == 0
