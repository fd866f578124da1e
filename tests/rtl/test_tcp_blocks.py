"""The blocks of the TCP sender, each for itself; the core as a whole: test_tcp_core.py."""

import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, Timer, cocotb, from_gray, rng, run, start

RTO = {"MINIMUM": 300, "INITIAL": 1000, "MAXIMUM": 5000}


@pytest.mark.parametrize(
    "toplevel,parameters",
    [("tcp_options", {}), ("tcp_rtt", RTO), ("tcp_arp", {"RETRY": 50}), ("tcp_writer", {"BITS": 4})],
)
def test_tcp_blocks(toplevel, parameters):
    run("tcp_blocks", parameters, toplevel)


async def options(dut, data):
    """What is read from option bytes: MSS in words, scale."""
    padded = data.ljust(64, b"\xee")
    dut.s_length.value = len(data)
    dut.s_valid.value = 1
    indexes = [0, 0]
    for clocks in range(60):
        await RisingEdge(dut.clk)
        dut.s_valid.value = 0
        await ReadOnly()
        if int(dut.m_valid.value):
            found = int(dut.mss.value), int(dut.scale.value)
            await Timer(1, "ps")
            assert clocks <= len(data) + 6, "a byte a clock"
            return found
        # The memory answers two clocks later.
        indexes.append(int(dut.word_index.value))
        await Timer(1, "ps")
        index = indexes.pop(0)
        dut.word_data.value = int.from_bytes(padded[8 * index : 8 * index + 8], "big")
    raise AssertionError(f"no end: {data.hex()}")


def read_options(data):
    """The same in Python, after RFC 9293 3.1."""
    mss, scale, place = 536, 0, 0
    while place < len(data):
        kind = data[place]
        if kind == 0:
            break
        if kind == 1:
            place += 1
            continue
        if place + 1 >= len(data) or data[place + 1] < 2:
            break
        length = data[place + 1]
        if place + length <= len(data):
            if kind == 2 and length == 4:
                mss = int.from_bytes(data[place + 2 : place + 4], "big")
            if kind == 3 and length == 3:
                scale = min(14, data[place + 2])
        place += length
    return min(mss // 8, 0x7FF), scale


@cocotb.test()
async def tcp_options_reads_what_stacks_send(dut):
    dut.s_valid.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    for text in [
        "020405b40402080a000000000000000001030307",  # Linux
        "020423000103030a", "", "01", "00", "0101010102040218", "030315", "03030e", "0402", "fe0a0000000000000000020405dc",
        "0200020405b4", "0201020405b4", "00020405b4", "ff2801",
    ]:  # fmt: skip
        data = bytes.fromhex(text)
        assert await options(dut, data) == read_options(data), text


@cocotb.test()
async def tcp_options_never_hangs(dut):
    """Bytes at random, in whole words as the header has them; an option that goes over the end is no option."""
    random = rng("options")
    dut.s_valid.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    for _ in range(600):
        data = bytes(random.choice([0, 1, 1, 2, 3, 3, 4, 4, 8, random.randrange(256)]) for _ in range(4 * random.randrange(11)))
        found, expected = await options(dut, data), read_options(data)
        # A value cut off by the end of the header is read from what stands behind; no stack sends that.
        cut = any(data[i : i + 2] in (b"\2\4", b"\3\3") and i + data[i + 1] > len(data) for i in range(len(data) - 1))
        cut = cut or data[-1:] in (b"\2", b"\3")
        assert cut or found == expected, data.hex()


@cocotb.test()
async def tcp_rtt_follows_rfc6298(dut):
    random = rng("rtt")
    dut.valid.value = 0
    dut.sample.value = 0
    await start(dut, {"clk": 6400}, ["clear"])
    assert int(dut.timeout.value) == RTO["INITIAL"]
    smooth = variation = None
    for n in range(400):
        sample = random.randrange(1, 40) if n > 300 else random.randrange(100, 3000)
        dut.sample.value = sample
        dut.valid.value = 1
        await RisingEdge(dut.clk)
        dut.valid.value = 0
        await ClockCycles(dut.clk, 4)
        if smooth is None:
            smooth, variation = sample, sample / 2
        else:
            variation += (abs(smooth - sample) - variation) / 4
            smooth += (sample - smooth) / 8
        expected = min(RTO["MAXIMUM"], max(RTO["MINIMUM"], smooth + 4 * variation))
        assert abs(int(dut.timeout.value) - expected) <= 16, (n, int(dut.timeout.value), expected)


@cocotb.test()
async def tcp_arp_asks_learns_and_forgets(dut):
    for name in ["wanted", "forget", "learn_valid", "request_take", "learn_ip", "learn_mac"]:
        getattr(dut, name).value = 0
    dut.tick.value = 1
    dut.next_hop.value = 0x0A000001
    await start(dut, {"clk": 6400}, ["rst"])
    await ClockCycles(dut.clk, 200)
    assert int(dut.request_valid.value) == 0, "nobody wants it"
    dut.wanted.value = 1
    requests = 0
    for _ in range(520):
        await RisingEdge(dut.clk)
        dut.request_take.value = int(dut.request_valid.value) and not int(dut.request_take.value)
        requests += int(dut.request_take.value)
    assert 9 <= requests <= 11, "each 50 microseconds"

    async def learn(ip, mac):
        dut.learn_ip.value, dut.learn_mac.value, dut.learn_valid.value = ip, mac, 1
        await RisingEdge(dut.clk)
        dut.learn_valid.value = 0
        await ClockCycles(dut.clk, 2)

    await learn(0x0A000002, 5)
    assert int(dut.known.value) == 0, "another's address"
    await learn(0x0A000001, 0x020000000001)
    assert int(dut.known.value) == 1 and int(dut.address.value) == 0x020000000001
    await learn(0x0A000001, 0x020000000002)
    assert int(dut.address.value) == 0x020000000002, "it has changed"
    dut.forget.value = 1
    await RisingEdge(dut.clk)
    dut.forget.value = 0
    await ClockCycles(dut.clk, 2)
    assert int(dut.known.value) == 0
    await learn(0x0A000001, 7)
    dut.next_hop.value = 0x0A000009
    await ClockCycles(dut.clk, 3)
    assert int(dut.known.value) == 0, "of another hop"


@cocotb.test()
async def tcp_writer_fills_the_buffer_and_no_more(dut):
    """16 words: each is written once, in order; tready falls when they are unconfirmed, and without `accept`.

    With `push`, a block's last word and its mark are taken together or not at all.
    """
    random = rng("writer")
    for name in ["s_axis_tvalid", "s_axis_tdata", "s_axis_tlast", "push", "mark_ready", "accept", "tail_gray"]:
        getattr(dut, name).value = 0
    dut.write_ready.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    written, tail, value, marks = [], 0, 0, []
    for clock in range(3000):
        dut.accept.value = int(clock % 500 < 400)
        dut.s_axis_tvalid.value = int(random.random() < 0.8)
        dut.s_axis_tdata.value = value
        dut.s_axis_tlast.value = int(value % 5 == 4)
        dut.push.value = int(clock > 1000)
        dut.mark_ready.value = int(random.random() < 0.5)
        dut.write_ready.value = int(random.random() < 0.9)
        if tail < len(written) and random.random() < 0.5 and clock % 300 > 50:
            tail += 1
        dut.tail_gray.value = (tail % 32) ^ (tail % 32 >> 1)
        await ReadOnly()
        taken = int(dut.s_axis_tvalid.value) and int(dut.s_axis_tready.value)
        assert taken == (int(dut.write_valid.value) and int(dut.write_ready.value))
        if taken:
            assert int(dut.write_address.value) == len(written) % 16
            written.append(int(dut.write_data.value))
            value += 1
            if int(dut.push.value) and int(dut.s_axis_tlast.value):
                marks.append(len(written) % 32)
        assert int(dut.mark_valid.value) == int(taken and int(dut.push.value) and int(dut.s_axis_tlast.value))
        if int(dut.mark_valid.value):
            assert int(dut.mark_ready.value) and int(dut.mark.value) == len(written) % 32
        assert len(written) - tail <= 16
        head = from_gray(int(dut.head_gray.value))
        assert (len(written) - head) % 32 <= 2, "counted soon, and not before it is written"
        if clock % 500 > 410:
            assert not int(dut.accepting.value) and not taken
        await RisingEdge(dut.clk)
    assert written == list(range(len(written))) and len(written) > 500 and len(marks) > 50
