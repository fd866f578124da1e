"""The shared modules: crossings, counters, width converters, status reader, packet buffer."""

import pytest
from support.block import AxisMonitor, ClockCycles, Pulses, ReadOnly, RisingEdge, Timer, cocotb, rng, run, send_axis, start

CLOCKS = {"s_clk": 6400, "m_clk": 10102}


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("sync_bits", {"WIDTH": 4}),
        ("sync_reset", {}),
        ("gray_to_binary", {"WIDTH": 6}),
        ("event_counter", {"WIDTH": 4}),
        ("event_counters", {"EVENTS": 3, "WIDTH": 4}),
        ("cdc_handshake", {"WIDTH": 16}),
        ("cdc_token", {}),
        ("async_fifo", {"WIDTH": 16, "DEPTH": 8}),
        ("record_fifo", {"WIDTH": 16, "DEPTH": 8}),
        ("record_fifo", {"WIDTH": 16, "DEPTH": 8, "READ_CLOCKS": 2}),
        ("axis_upsizer", {}),
        ("axis_downsizer", {}),
        ("status_reader", {"INDEX_BITS": 4}),
        ("link_shell", {"STATUS": 1, "VERSION": 0x0A000100}),
        ("packet_memory", {"ADDRESS_BITS": 12}),
        ("packet_writer", {"SLOT_BITS": 2}),
    ],
)
def test_common(toplevel, parameters):
    run("common", parameters, toplevel)


@cocotb.test()
async def sync_bits_delays_two_clocks(dut):
    await start(dut, {"clk": 1000})
    random = rng("sync_bits")
    sent = []
    for _ in range(100):
        await RisingEdge(dut.clk)
        sent.append(random.randrange(16))
        dut.d.value = sent[-1]
        await ReadOnly()
        if len(sent) > 3:
            assert int(dut.q.value) == sent[-3]
        await Timer(1, "ps")


@cocotb.test()
async def sync_reset_falls_with_the_clock(dut):
    dut.rst_in.value = 1
    await Timer(1, "ns")
    assert int(dut.rst_out.value) == 1, "asserted without a clock"
    await start(dut, {"clk": 1000}, ["rst_in"])
    await RisingEdge(dut.clk)
    await ReadOnly()
    assert int(dut.rst_out.value) == 0
    await Timer(100, "ps")
    dut.rst_in.value = 1
    await Timer(1, "ps")
    assert int(dut.rst_out.value) == 1, "asserted between clock edges"
    dut.rst_in.value = 0
    await Timer(1, "ps")
    assert int(dut.rst_out.value) == 1, "held until clocks have passed"
    await ClockCycles(dut.clk, 5)
    assert int(dut.rst_out.value) == 0


@cocotb.test()
async def gray_to_binary_inverts_gray(dut):
    for value in range(64):
        dut.gray.value = value ^ (value >> 1)
        await Timer(1, "ns")
        assert int(dut.binary.value) == value


@cocotb.test()
async def event_counter_counts_wraps_and_clears(dut):
    dut.pulse.value = 0
    await start(dut, {"clk": 1000}, ["clear"])
    dut.pulse.value = 1
    await ClockCycles(dut.clk, 20)
    dut.pulse.value = 0
    await RisingEdge(dut.clk)
    assert int(dut.count.value) == 20 % 16
    dut.clear.value = 1
    await ClockCycles(dut.clk, 2)
    assert int(dut.count.value) == 0


@cocotb.test()
async def event_counters_count_each_for_itself(dut):
    dut.pulse.value = 0
    await start(dut, {"clk": 1000}, ["clear"])
    for pulse in [0b001] * 5 + [0b110] * 3 + [0b100]:
        dut.pulse.value = pulse
        await RisingEdge(dut.clk)
    dut.pulse.value = 0
    await ClockCycles(dut.clk, 2)
    assert int(dut.count.value) == 4 << 8 | 3 << 4 | 5


async def words_cross(dut, clocks, count=500):
    """Every word arrives once, in order, whatever the two sides do."""
    random = rng(dut._name, tuple(clocks.values()))
    sent = [random.randrange(1 << 16) for _ in range(count)]
    got = []
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    await start(dut, clocks, ["s_rst", "m_rst"])

    async def source():
        for word in sent:
            while random.random() < 0.3:
                await RisingEdge(dut.s_clk)
            dut.s_data.value = word
            dut.s_valid.value = 1
            await ReadOnly()
            while not int(dut.s_ready.value):
                await RisingEdge(dut.s_clk)
                await ReadOnly()
            await RisingEdge(dut.s_clk)
            dut.s_valid.value = 0

    cocotb.start_soon(source())
    busy = 0.1
    for cycle in range(100 * count):
        if len(got) == count:
            break
        if cycle % 100 == 0:
            busy = random.choice([0.0, 0.5, 0.9])  # lets a FIFO fill and run dry
        dut.m_ready.value = int(random.random() > busy)
        await ReadOnly()
        if int(dut.m_valid.value) and int(dut.m_ready.value):
            got.append(int(dut.m_data.value))
        await RisingEdge(dut.m_clk)
    assert got == sent


@cocotb.test()
async def cdc_handshake_to_a_slower_clock(dut):
    await words_cross(dut, CLOCKS)


@cocotb.test()
async def async_fifo_to_a_slower_clock(dut):
    await words_cross(dut, CLOCKS)


@cocotb.test()
async def async_fifo_fills_to_its_depth(dut):
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    await start(dut, CLOCKS, ["s_rst", "m_rst"])
    dut.s_valid.value = 1
    accepted = 0
    for word in range(20):
        dut.s_data.value = word
        await ReadOnly()
        accepted += int(dut.s_ready.value)
        await RisingEdge(dut.s_clk)
    assert accepted == 9, "and the register at the output"
    dut.s_valid.value = 0
    dut.m_ready.value = 1
    got = []
    for _ in range(30):
        await ReadOnly()
        if int(dut.m_valid.value):
            got.append(int(dut.m_data.value))
        await RisingEdge(dut.m_clk)
    assert got == list(range(9))


@cocotb.test()
async def cdc_token_carries_each_event_once(dut):
    random = rng("token")
    dut.s_valid.value = dut.m_ready.value = 0
    await start(dut, CLOCKS, ["s_rst", "m_rst"])
    count = {"s": 0, "m": 0}

    async def side(name, mine, other):
        clk = getattr(dut, f"{name}_clk")
        while True:
            getattr(dut, f"{name}_{mine}").value = int(random.random() < 0.5)
            await ReadOnly()
            moved = int(getattr(dut, f"{name}_{mine}").value) and int(getattr(dut, f"{name}_{other}").value)
            await RisingEdge(clk)
            count[name] += moved
            assert count["s"] - count["m"] in (0, 1)

    cocotb.start_soon(side("s", "valid", "ready"))
    cocotb.start_soon(side("m", "ready", "valid"))
    await ClockCycles(dut.m_clk, 3000)
    assert count["m"] > 300


@cocotb.test()
async def record_fifo_hands_over_what_was_committed(dut):
    """Records that are given up are written over; it fills to one place less than its depth."""
    random = rng("records")
    for name in ["s_write", "s_commit", "m_word", "m_ready"]:
        getattr(dut, name).value = 0
    await start(dut, CLOCKS, ["s_rst", "m_rst"])
    committed = []

    async def write(commit):
        words = [random.randrange(1 << 16) for _ in range(2)]
        for i in random.sample([0, 1], 2):
            dut.s_write.value, dut.s_word.value, dut.s_data.value = 1, i, words[i]
            await RisingEdge(dut.s_clk)
        dut.s_write.value = 0
        await ReadOnly()
        ready = int(dut.s_ready.value)
        await RisingEdge(dut.s_clk)
        if commit and ready:
            dut.s_commit.value = 1
            await RisingEdge(dut.s_clk)
            dut.s_commit.value = 0
            committed.append(words)
        await ClockCycles(dut.s_clk, random.randrange(3))
        return ready

    while await write(True):
        pass
    assert len(committed) == 7
    got = []

    async def read():
        while True:
            await ReadOnly()
            valid = int(dut.m_valid.value)
            await RisingEdge(dut.m_clk)
            if not valid:
                continue
            words = [None, None]
            for i in random.choice([(0, 1), (1, 0), (0, 1, 0)]):
                dut.m_word.value = i
                await ClockCycles(dut.m_clk, int(dut.READ_CLOCKS.value) + 1)
                words[i] = int(dut.m_data.value)
            got.append(words)
            dut.m_ready.value = 1
            await RisingEdge(dut.m_clk)
            dut.m_ready.value = 0
            await ClockCycles(dut.m_clk, random.randrange(8))

    cocotb.start_soon(read())
    for _ in range(300):
        await write(random.random() < 0.7)
    await ClockCycles(dut.m_clk, 200)
    assert got == committed and len(got) > 50


@cocotb.test()
async def axis_upsizer_keeps_every_byte(dut):
    random = rng("up")
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, has_ready=False)
    frames = [(random.randbytes(n), random.random() < 0.2) for n in [*range(1, 30), 64, 65]]
    for data, bad in frames:
        gaps = lambda _: random.random() < 0.2
        await send_axis(dut, dut.clk, data, 1, bad=bad, gaps=gaps, ready=False)
    assert await monitor.wait(len(frames)) == frames


@cocotb.test()
async def axis_downsizer_keeps_every_byte(dut):
    random = rng("down")
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, 1, stall=lambda: random.random() < 0.3)
    frames = [random.randbytes(n) for n in [*range(1, 30), 64, 65]]
    for data in frames:
        await send_axis(dut, dut.clk, data, 8)
    assert [data for data, _ in await monitor.wait(len(frames))] == frames


async def answer(dut, clk, index, value, valid, words):
    """The word for an index, valid now and then only."""
    random = rng("answers")
    while True:
        valid.value = good = int(random.random() < 0.4)
        asked = int(index.value) if index.value.is_resolvable else 0
        value.value = words[asked] if good and asked < len(words) else random.getrandbits(32)
        await RisingEdge(clk)
        await Timer(100, "ps")


@cocotb.test()
async def status_reader_reads_each_word_whole(dut):
    random = rng("status")
    dut.s_valid.value = 0
    values = [random.getrandbits(32) for _ in range(12)]
    cocotb.start_soon(answer(dut, dut.there_clk, dut.index, dut.value, dut.value_valid, values))
    await start(dut, {"clk": 8000, "there_clk": 6400}, ["rst", "there_rst"])
    for index in [*range(12), 3, 3]:
        dut.s_index.value = index
        dut.s_valid.value = 1
        await ReadOnly()
        while not int(dut.s_ready.value):
            await RisingEdge(dut.clk)
            await ReadOnly()
        await RisingEdge(dut.clk)
        dut.s_valid.value = 0
        answers = Pulses(dut, dut.clk, ["m_valid"])
        for _ in range(50):
            await ReadOnly()
            if int(dut.m_valid.value):
                assert int(dut.m_value.value) == values[index]
            await RisingEdge(dut.clk)
        assert answers.count["m_valid"] == 1


@cocotb.test()
async def link_shell_reads_both_sides_and_the_version(dut):
    """The words of the transmit side, counters of MAC and engine, and at the last index the version, in any order."""
    random = rng("shell")
    words = [random.getrandbits(32) for _ in range(5)]
    cocotb.start_soon(answer(dut, dut.tx_clk, dut.tx_index, dut.tx_word, dut.tx_word_valid, words))
    for name in ("status_request", "tx_events", "rx_events", "mac_stat", "s_mac", "tx", "m_axis_tready"):
        getattr(dut, name).value = 0
    await start(dut, {"user_clk": 8000, "tx_clk": 6400, "rx_clk": 6402}, ["rst"])
    await ClockCycles(dut.user_clk, 20)
    dut.mac_stat.value = 0b0101  # error and oversize
    await RisingEdge(dut.rx_clk)
    dut.mac_stat.value = 0
    await ClockCycles(dut.user_clk, 10)
    wanted = dict(enumerate(words)) | {31: 0x0A000100, 32: 1, 33: 0, 34: 1, 35: 0}
    for index in random.choices(sorted(wanted), k=60):
        dut.status_index.value = index
        dut.status_request.value = 1
        await ReadOnly()
        while not int(dut.status_accepted.value):
            await RisingEdge(dut.user_clk)
            await ReadOnly()
        await RisingEdge(dut.user_clk)
        dut.status_request.value = 0
        answers = []
        for _ in range(random.randrange(20, 40)):
            await ReadOnly()
            if int(dut.status_valid.value):
                answers.append(int(dut.status_value.value))
            await RisingEdge(dut.user_clk)
        assert answers == [wanted[index]], index


@cocotb.test()
async def packet_memory_reads_what_was_written(dut):
    random = rng("memory")
    dut.write_enable.value = 0
    dut.read_enable.value = 0
    await start(dut, {"write_clk": 6400, "read_clk": 8000})
    words = {random.randrange(4096): random.getrandbits(64) for _ in range(200)}
    for address, word in words.items():
        dut.write_enable.value = 1
        dut.write_address.value = address
        dut.write_data.value = word
        await RisingEdge(dut.write_clk)
    dut.write_enable.value = 0
    await ClockCycles(dut.read_clk, 3)
    for address, word in words.items():
        dut.read_enable.value = 1
        dut.read_address.value = address
        await RisingEdge(dut.read_clk)
        dut.read_enable.value = 0
        dut.read_address.value = 0
        await ClockCycles(dut.read_clk, 2)
        assert int(dut.read_data.value) == word, "held while not enabled"


def gray(value):
    return value ^ value >> 1


async def writer_at_start(dut, first):
    for name in ["s_axis_tvalid", "session", "stop", "last_seen"]:
        getattr(dut, name).value = 0
    dut.first_packet.value = first
    dut.tail_gray.value = gray(first)
    await start(dut, {"clk": 6400}, ["rst"])
    dut.session.value = 1
    writes = []

    async def watch():
        while True:
            await ReadOnly()
            if int(dut.write_enable.value):
                writes.append((int(dut.write_address.value), int(dut.write_data.value)))
            await RisingEdge(dut.clk)

    cocotb.start_soon(watch())
    return writes


async def feed(dut, words):
    """Offers words until they are taken or no word is accepted for 50 clocks; returns how many were."""
    taken = idle = 0
    while taken < len(words) and idle < 50:
        dut.s_axis_tvalid.value = 1
        dut.s_axis_tdata.value = words[taken]
        await ReadOnly()
        if int(dut.s_axis_tready.value):
            taken, idle = taken + 1, 0
        else:
            idle += 1
        await RisingEdge(dut.clk)
    dut.s_axis_tvalid.value = 0
    return taken


@cocotb.test()
async def packet_writer_stops_when_full(dut):
    writes = await writer_at_start(dut, 6)  # the pointers run modulo 8, over the wrap
    words = list(range(1, 5 * 1024))
    assert await feed(dut, words) == 4 * 1024
    assert int(dut.head_gray.value) == gray((6 + 4) % 8)
    assert writes == [((6 + i // 1024) % 4 * 1024 + i % 1024, 1 + i) for i in range(4096)]
    dut.tail_gray.value = gray(7)
    assert await feed(dut, words[4096:]) == 5 * 1024 - 1 - 4096
    assert int(dut.last.value) == 0


@cocotb.test()
async def packet_writer_closes_partly_filled_packets(dut):
    for words in [0, 1, 1023, 1024, 1025]:
        await writer_at_start(dut, 3)
        assert await feed(dut, list(range(words))) == words or words == 0
        dut.stop.value = 1
        await ClockCycles(dut.clk, 8)
        assert int(dut.s_axis_tready.value) == 0, "nothing is taken behind a STOP"
        assert int(dut.last.value) == 1
        assert int(dut.last_words.value) == words % 1024
        assert int(dut.head_gray.value) == gray((3 + words // 1024) % 8), "not before it was seen"
        dut.last_seen.value = 1
        await ClockCycles(dut.clk, 8)
        assert int(dut.head_gray.value) == gray((4 + words // 1024) % 8)
        dut.session.value = 0
        await ClockCycles(dut.clk, 8)
        assert int(dut.active.value) == 0 and int(dut.last.value) == 0


@cocotb.test()
async def packet_writer_waits_for_a_free_place_to_stop(dut):
    await writer_at_start(dut, 0)
    assert await feed(dut, list(range(4097))) == 4096
    dut.stop.value = 1
    await ClockCycles(dut.clk, 20)
    assert int(dut.last.value) == 0
    dut.tail_gray.value = gray(1)
    await ClockCycles(dut.clk, 8)
    assert int(dut.last.value) == 1 and int(dut.last_words.value) == 0
