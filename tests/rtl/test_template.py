"""The template's own data: windows of an ADC, and an ADC of 1 GB/s before a core of 10 Gb/s (docs/boards.md)."""

import cocotb
import pytest
from cocotb.utils import get_sim_time
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from support.block import C, ClockCycles, ReadOnly, RisingEdge, rng, run, start

MAGIC = 0xADC0
MAC, PC = bytes.fromhex("02fade000001"), bytes.fromhex("02fade0000f0")


@pytest.mark.parametrize("toplevel,parameters", [("adc_words", {"DEPTH": 64}), ("extra_adc", {})])
def test_template(toplevel, parameters):
    run("template", parameters, toplevel)


def pack(samples):
    return sum((sample & 0xFFFF) << 16 * i for i, sample in enumerate(samples))


def parse(header):
    """(lower half of lost, number of the first word)."""
    assert header >> 48 == MAGIC
    return header >> 32 & 0xFFFF, header & 0xFFFFFFFF


async def take(dut, random, got, pauses):
    """Takes words: (value, is last)."""
    while True:
        dut.m_axis_tready.value = ready = random.random() >= pauses()
        await ReadOnly()
        if ready and int(dut.m_axis_tvalid.value):
            got.append((int(dut.m_axis_tdata.value), int(dut.m_axis_tlast.value)))
        await RisingEdge(dut.clk)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def adc_words_cuts_windows(dut):
    """Against a list of all words: each window is whole and at its place, and each one is there or counted as lost."""
    random = rng("adc words")
    share = 0.1
    got = []
    dut.running.value = dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    cocotb.start_soon(take(dut, random, got, lambda: share))
    for turn in range(40):
        length, continuous = random.choice([1, 2, 7, 20, 50]), random.random() < 0.3
        threshold = random.choice([-20000, 0, 25000])
        share = random.choice([0, 0.2, 0.9])
        dut.length.value, dut.continuous.value, dut.threshold.value = length, continuous, threshold & 0xFFFF
        # What came before the run is not in it.
        dut.s_axis_tvalid.value = 0
        await ClockCycles(dut.clk, 10)
        got.clear()
        dut.running.value = 1
        await ClockCycles(dut.clk, 4)
        words = []
        for _ in range(600):
            # Slower than the clock by more than one in length + 1.
            if random.random() < 0.45:
                dut.s_axis_tvalid.value = 0
                await RisingEdge(dut.clk)
                continue
            scale = 32000 if random.random() < 0.05 else 1000
            samples = [random.randint(-scale, scale) for _ in range(4)]
            dut.s_axis_tdata.value, dut.s_axis_tvalid.value = pack(samples), 1
            await ReadOnly()
            while not int(dut.s_axis_tready.value):
                await RisingEdge(dut.clk)
                await ReadOnly()
            await RisingEdge(dut.clk)
            words.append(samples)
        dut.s_axis_tvalid.value = 0
        share = 0
        await ClockCycles(dut.clk, 200)
        begins, place = [], 0
        while place < len(words):
            if continuous or any(sample >= threshold for sample in words[place]):
                begins.append(place)
                place += length
            else:
                place += 1
        windows, lost = int(dut.windows.value), int(dut.lost.value)
        assert windows + lost == len(begins), (turn, windows, lost, len(begins))
        seen, place = 0, 0
        while place < len(got):
            before, number = parse(got[place][0])
            index = begins.index(number)
            assert index - seen == before, "as many were lost before it"
            window = got[place + 1 : place + 1 + length]
            expected = [pack(samples) for samples in words[number : number + length]]
            assert [word for word, _ in window] == expected[: len(window)]
            assert [last for _, last in window] == ([0] * (length - 1) + [1])[: len(window)] and not got[place][1]
            seen, place = seen + 1, place + 1 + length
        assert seen == windows
        dut.running.value = 0
        await ClockCycles(dut.clk, 10)
        assert not int(dut.m_axis_tvalid.value)


def request(code, csn, argument=0):
    head = MAC + PC + C["ETHERTYPE"].to_bytes(2, "big") + C["VERSION"].to_bytes(2, "big")
    fields = code.to_bytes(2, "big") + csn.to_bytes(2, "big") + argument.to_bytes(4, "big")
    return (head + fields + bytes(4) * (code == C["ACK"])).ljust(max(60, C["REQUEST_LEN"]), b"\xa5")


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def extra_adc_of_a_gigabyte_loses_nothing(dut):
    """8 Gb/s of samples, all of them in windows of 1,023 words, and a tenth of a percent of headers."""
    length, packets = 1023, 60
    dut.length.value = length
    into, out = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.rx_clk), XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.tx_clk)
    await start(dut, {"adc_clk": 8000, "user_clk": 6400, "tx_clk": 6400, "rx_clk": 6402}, ["rst"])
    await ClockCycles(dut.adc_clk, 40)
    await into.send(XgmiiFrame.from_payload(request(C["CMD_START"], 1)))
    got, begun = {}, None
    while len(got) < packets:
        frame = bytes((await out.recv()).get_payload())
        if int.from_bytes(frame[16:18], "big") != C["TYPE_DATA"]:
            continue
        begun = begun or get_sim_time("ns")
        packet = int.from_bytes(frame[20:24], "big")
        got[packet] = frame[40:]
        await into.send(XgmiiFrame.from_payload(request(C["ACK"], int.from_bytes(frame[18:20], "big"), packet)))
    rate = (packets - 1) * C["PACKET_BYTES"] / (get_sim_time("ns") - begun)
    data = b"".join(got[packet] for packet in sorted(got))
    assert sorted(got) == list(range(packets))
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
    first = words[1]
    for index, at in enumerate(range(0, len(words) - length, length + 1)):
        assert parse(words[at]) == (0, index * length)
        assert words[at + 1 : at + 1 + length] == list(range(first + index * length, first + (index + 1) * length))
    assert int(dut.lost.value) == 0 and not int(dut.overflow.value)
    assert 0.99 < rate < 1.01, f"{rate} GB/s"
