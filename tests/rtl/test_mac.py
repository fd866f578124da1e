"""The four halves of the MACs, pin by pin, against frames made with zlib's CRC."""

import zlib

import pytest
from support.block import AxisMonitor, ClockCycles, Pulses, ReadOnly, RisingEdge, cocotb, rng, run, send_axis, start

STATS = ["stat_error", "stat_runt", "stat_oversize", "stat_bad_fcs"]


@pytest.mark.parametrize("toplevel", ["gmii_mac_tx", "gmii_mac_rx", "xgmii_mac_tx", "xgmii_mac_rx"])
def test_mac(toplevel):
    run("mac", {}, toplevel)


def on_wire(frame):
    """Preamble, padded frame, frame check sequence."""
    frame = frame.ljust(60, b"\0")
    return b"\x55" * 7 + b"\xd5" + frame + zlib.crc32(frame).to_bytes(4, "little")


def lengths(random):
    return [*range(1, 80), 127, 128, 1514, 8232, *(random.randrange(60, 9000) for _ in range(5))]


async def gmii_lines(dut, lines):
    """Collects (bytes, error, gap before) of each burst on the transmit pins."""
    data, error, gap, before = b"", False, 0, 0
    while True:
        await ReadOnly()
        if int(dut.gmii_tx_en.value):
            data += bytes([int(dut.gmii_txd.value)])
            error |= bool(int(dut.gmii_tx_er.value))
        elif data:
            lines.append((data, error, before))
            data, error, gap = b"", False, 1
        else:
            gap += 1
        if not data:
            before = gap
        await RisingEdge(dut.clk)


@cocotb.test()
async def gmii_mac_tx_sends_frames_with_exact_gaps(dut):
    random = rng("gmii tx")
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    lines = []
    cocotb.start_soon(gmii_lines(dut, lines))
    frames = [random.randbytes(n) for n in lengths(random)]
    for frame in frames:
        await send_axis(dut, dut.clk, frame, 1)
    await ClockCycles(dut.clk, 100)
    assert [line[:2] for line in lines] == [(on_wire(frame), False) for frame in frames]
    assert {line[2] for line in lines[1:]} == {12}, "back to back the gap is 12 bytes"


@cocotb.test()
async def gmii_mac_tx_spoils_bad_frames_and_ends_dry_ones(dut):
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    lines = []
    cocotb.start_soon(gmii_lines(dut, lines))
    frame = bytes(range(100))
    await send_axis(dut, dut.clk, frame, 1, bad=True)
    await send_axis(dut, dut.clk, frame, 1)
    dry = iter([True] + [False] * 1000)
    await send_axis(dut, dut.clk, frame, 1, gaps=lambda i: i == 50 and next(dry))
    await send_axis(dut, dut.clk, frame, 1)
    await ClockCycles(dut.clk, 100)
    good = on_wire(frame)
    assert lines[0][0][:-4] == good[:-4] and lines[0][0][-4:] != good[-4:]
    assert lines[1][:2] == (good, False)
    assert lines[2][1] and len(lines[2][0]) < len(good), "a dry frame ends with an error"
    assert lines[3][:2] == (good, False), "and the next is whole"


async def gmii_burst(dut, data, error_at=None, gap=12):
    for i, byte in enumerate(data):
        dut.gmii_rxd.value = byte
        dut.gmii_rx_dv.value = 1
        dut.gmii_rx_er.value = int(i == error_at)
        await RisingEdge(dut.clk)
    dut.gmii_rx_dv.value = 0
    dut.gmii_rx_er.value = 0
    await ClockCycles(dut.clk, gap)


def spoil(random, wire):
    """One to three bits wrong behind the preamble: a CRC of 32 bits finds every such error."""
    data = bytearray(wire)
    for bit in random.sample(range(8 * 8, 8 * len(data)), random.randint(1, 3)):
        data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def receive_cases(random):
    """(what is on the wire, frame or None for a bad one, reason)."""
    cases = [(on_wire(random.randbytes(n)), None) for n in lengths(random) if n >= 60]
    cases = [(wire, wire[8:-4], None) for wire, _ in cases]
    cases += [(spoil(random, on_wire(random.randbytes(n))), None, "stat_bad_fcs") for n in (60, 61, 100, 1000)]
    for n in (1, 4, 5, 8, 9, 12, 30, 59):
        frame = random.randbytes(n)
        runt = b"\x55" * 7 + b"\xd5" + frame + zlib.crc32(frame).to_bytes(4, "little")
        cases.append((runt, None, "stat_runt"))
    cases += [(on_wire(random.randbytes(n)), None, "stat_oversize") for n in (9015, 9016, 9100)]
    cases += [(on_wire(random.randbytes(9014)), b"", None)]
    random.shuffle(cases)
    return [(wire, wire[8:-4] if frame == b"" else frame, why) for wire, frame, why in cases]


def check_received(cases, monitor, pulses):
    good = [data for data, bad in monitor.frames if not bad]
    expected = [frame for _, frame, _ in cases if frame is not None]
    wrong = [i for i, (a, b) in enumerate(zip(good, expected)) if a != b]
    assert len(good) == len(expected) and not wrong, [(len(good[i]), len(expected[i])) for i in wrong]
    expected = {name: sum(why == name for _, _, why in cases) for name in STATS}
    assert pulses.count == expected


@cocotb.test()
async def gmii_mac_rx_takes_good_frames_and_names_bad_ones(dut):
    random = rng("gmii rx")
    dut.gmii_rx_dv.value = 0
    dut.gmii_rx_er.value = 0
    await start(dut, {"clk": 8000}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, 1, has_ready=False)
    pulses = Pulses(dut, dut.clk, STATS)
    cases = receive_cases(random)
    for wire, _, _ in cases:
        # A receiver may see a shortened preamble.
        await gmii_burst(dut, wire[random.randrange(7) :], gap=random.choice([1, 5, 12]))
    error = on_wire(random.randbytes(100))
    await gmii_burst(dut, error, error_at=50)
    await gmii_burst(dut, b"\x55" * 8)
    await gmii_burst(dut, random.randbytes(20).replace(b"\x55", b"\0").replace(b"\xd5", b"\0"))
    cases += [(error, None, "stat_error"), (b"", None, "stat_error"), (b"", None, "stat_error")]
    await ClockCycles(dut.clk, 20)
    check_received(cases, monitor, pulses)


IDLE, START, TERMINATE, ERROR = 0x07, 0xFB, 0xFD, 0xFE


async def xgmii_lines(dut, lines):
    """Collects (bytes from the start character on, error, gap before) of each frame on the pins."""
    data, error, gap = None, False, 0
    while True:
        await ReadOnly()
        word, control = int(dut.xgmii_txd.value), int(dut.xgmii_txc.value)
        for lane in range(8):
            byte, is_control = word >> 8 * lane & 0xFF, control >> lane & 1
            if is_control and byte == START:
                assert data is None and lane == 0
                data, error, before = b"\x55", False, gap
            elif is_control and data is not None:
                assert byte in (TERMINATE, ERROR)
                error |= byte == ERROR
                if byte == TERMINATE:
                    lines.append((data, error, before))
                    data, gap = None, 1
            elif is_control:
                assert byte == IDLE
                gap += 1
            else:
                assert data is not None
                data += bytes([byte])
        await RisingEdge(dut.clk)


@cocotb.test()
async def xgmii_mac_tx_sends_frames_with_gaps_of_12_to_19(dut):
    random = rng("xgmii tx")
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    lines = []
    cocotb.start_soon(xgmii_lines(dut, lines))
    frames = [random.randbytes(n) for n in lengths(random)] + [random.randbytes(8232)] * 3
    for frame in frames:
        await send_axis(dut, dut.clk, frame, 8)
    await ClockCycles(dut.clk, 20)
    assert [line[:2] for line in lines] == [(on_wire(frame), False) for frame in frames]
    assert all(12 <= line[2] <= 19 for line in lines[1:]), [line[2] for line in lines]
    assert [line[2] for line in lines[-2:]] == [12, 12], "after a multiple of 8 bytes it is 12"


@cocotb.test()
async def xgmii_mac_tx_spoils_bad_frames_and_ends_dry_ones(dut):
    dut.s_axis_tvalid.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    lines = []
    cocotb.start_soon(xgmii_lines(dut, lines))
    frame = bytes(range(100))
    await send_axis(dut, dut.clk, frame, 8, bad=True)
    dry = iter([True] + [False] * 1000)
    await send_axis(dut, dut.clk, frame, 8, gaps=lambda i: i == 5 and next(dry))
    await send_axis(dut, dut.clk, frame, 8)
    await ClockCycles(dut.clk, 20)
    good = on_wire(frame)
    assert lines[0][0][:-4] == good[:-4] and lines[0][0][-4:] != good[-4:]
    assert lines[1][1] and len(lines[1][0]) < len(good)
    assert lines[2][:2] == (good, False)


class XgmiiWire:
    """Feeds the receive pins byte by byte, from any lane."""

    def __init__(self, dut):
        self.dut, self.bytes = dut, []

    def idle(self, count):
        self.bytes += [(IDLE, 1)] * count

    def frame(self, wire, lane, end=TERMINATE):
        while len(self.bytes) % 8 != lane:
            self.idle(1)
        self.bytes += [(START, 1), *((byte, 0) for byte in wire[1:]), (end, 1)]
        if end != TERMINATE:
            self.bytes += [(0xAA, 0)] * 3 + [(TERMINATE, 1)]

    async def play(self):
        self.idle(40 - len(self.bytes) % 8)
        for i in range(0, len(self.bytes), 8):
            word = self.bytes[i : i + 8]
            self.dut.xgmii_rxd.value = sum(byte << 8 * lane for lane, (byte, _) in enumerate(word))
            self.dut.xgmii_rxc.value = sum(control << lane for lane, (_, control) in enumerate(word))
            await RisingEdge(self.dut.clk)


@cocotb.test()
async def xgmii_mac_rx_takes_good_frames_and_names_bad_ones(dut):
    random = rng("xgmii rx")
    dut.xgmii_rxd.value = 0x0707070707070707
    dut.xgmii_rxc.value = 0xFF
    await start(dut, {"clk": 6400}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, 8, has_ready=False)
    pulses = Pulses(dut, dut.clk, STATS)
    wire = XgmiiWire(dut)
    cases = receive_cases(random)
    for data, _, _ in cases:
        # The shortest gap that a receiver must accept is 5 bytes with the terminate character.
        wire.idle(random.choice([4, 5, 8, 12]))
        wire.frame(data, random.choice([0, 4]))
    error = on_wire(random.randbytes(100))
    wire.idle(12)
    wire.frame(error, 0, end=ERROR)
    wire.idle(12)
    wire.frame(b"\x55" * 3 + b"\0" + error[4:], 4)
    cases += [(error, None, "stat_error"), (error, None, "stat_error")]
    wire.idle(12)
    last = on_wire(random.randbytes(64))
    wire.frame(last, 4)
    cases.append((last, last[8:-4], None))
    await wire.play()
    check_received(cases, monitor, pulses)
