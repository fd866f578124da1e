"""The four halves of the MACs, pin by pin, against frames made with zlib's CRC."""

import zlib

import pytest
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from support.block import AxisMonitor, ClockCycles, Pulses, ReadOnly, RisingEdge, cocotb, on_wire, rng, run, send_axis, spoil, start

STATS = ["stat_error", "stat_runt", "stat_oversize", "stat_bad_fcs"]


@pytest.mark.parametrize("toplevel", ["gmii_mac_tx", "gmii_mac_rx", "xgmii_mac_tx", "xgmii_mac_rx"])
def test_mac(toplevel):
    run("mac", {}, toplevel)


@pytest.mark.long
@pytest.mark.parametrize("toplevel", ["xgmii_mac_tx", "xgmii_mac_rx"])
def test_netlist(toplevel):
    """Yosys reads structures in its own way: what it makes of them does the same."""
    run("mac", {}, toplevel, netlist=True)


@pytest.mark.parametrize("pause", [0, 1])
def test_pause(pause):
    run("mac", {"PAUSE": pause}, "extra_xgmii_mac")


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
    dut.ce.value = 1
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
    dut.ce.value = 1
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
    dut.ce.value = 1
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
                assert data is None and lane in (0, 4)
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


def deficits(gaps):
    """Bytes that the gaps so far are below a mean of 12, after each frame of a stream without a pause."""
    total, found = 0, []
    for gap in gaps:
        total = max(total + 12 - gap, 0)
        found.append(total)
    return found


@cocotb.test()
async def xgmii_mac_tx_sends_frames_with_a_mean_gap_of_12(dut):
    random = rng("xgmii tx")
    dut.s_axis_tvalid.value = 0
    dut.pause.value = 0
    sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
    await start(dut, {"clk": 6400}, ["rst"])
    lines = []
    cocotb.start_soon(xgmii_lines(dut, lines))
    for length in [*range(58, 78), random.randrange(78, 300), 1514, 8232]:
        lines.clear()
        frames = [random.randbytes(length) for _ in range(9)]
        for frame in frames:
            await send_axis(dut, dut.clk, frame, 8)
        await ClockCycles(dut.clk, 30)
        assert [line[:2] for line in lines] == [(on_wire(frame), False) for frame in frames]
        gaps = [line[2] for line in lines[1:]]
        assert all(9 <= gap <= 15 for gap in gaps) and abs(sum(gaps) - 12 * len(gaps)) <= 3, (length, gaps)
        if length % 4 == 0:
            assert set(gaps) == {12}, length
        seen = [sink.recv_nowait() for _ in frames]
        assert sink.empty() and all(frame.check_fcs() for frame in seen)
        assert [bytes(frame.get_payload()) for frame in seen] == [frame.ljust(60, b"\0") for frame in frames]
        assert {frame.start_lane for frame in seen} <= {0, 4}
    assert any(frame.start_lane == 4 for frame in seen) or length % 8 == 0


@cocotb.test()
async def xgmii_mac_tx_never_owes_more_than_3_bytes_of_gap(dut):
    random = rng("xgmii tx lengths")
    dut.s_axis_tvalid.value = 0
    dut.pause.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    lines = []
    cocotb.start_soon(xgmii_lines(dut, lines))
    frames = [random.randbytes(n) for n in [*lengths(random), *(random.randrange(1, 200) for _ in range(300))]]
    for frame in frames:
        if random.random() < 0.3:
            await ClockCycles(dut.clk, random.randrange(9))
        await send_axis(dut, dut.clk, frame, 8)
    await ClockCycles(dut.clk, 30)
    assert [line[:2] for line in lines] == [(on_wire(frame), False) for frame in frames]
    gaps = [line[2] for line in lines[1:]]
    assert min(gaps) >= 9 and max(deficits(gaps)) <= 3


@cocotb.test()
async def xgmii_mac_tx_waits_while_pause_is_high(dut):
    dut.s_axis_tvalid.value = 0
    dut.pause.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    lines = []
    cocotb.start_soon(xgmii_lines(dut, lines))
    frame = bytes(range(200))
    sender = cocotb.start_soon(send_axis(dut, dut.clk, frame, 8))
    await ClockCycles(dut.clk, 100)
    assert not lines and not int(dut.s_axis_start.value)
    dut.pause.value = 0
    await ClockCycles(dut.clk, 5)
    dut.pause.value = 1  # a frame that has begun goes on
    await sender
    sender = cocotb.start_soon(send_axis(dut, dut.clk, frame, 8))
    await ClockCycles(dut.clk, 100)
    assert [line[:2] for line in lines] == [(on_wire(frame), False)]
    dut.pause.value = 0
    await sender
    await ClockCycles(dut.clk, 30)
    assert len(lines) == 2


@cocotb.test()
async def xgmii_mac_tx_spoils_bad_frames_and_ends_dry_ones(dut):
    dut.s_axis_tvalid.value = 0
    dut.pause.value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    lines = []
    cocotb.start_soon(xgmii_lines(dut, lines))
    frame = bytes(range(100))
    await send_axis(dut, dut.clk, frame, 8, bad=True)
    dry = iter([True] + [False] * 1000)
    await send_axis(dut, dut.clk, frame, 8, gaps=lambda i: i == 5 and next(dry))
    await send_axis(dut, dut.clk, frame, 8)
    await ClockCycles(dut.clk, 30)
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
        self.idle(80 - len(self.bytes) % 8)
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


@cocotb.test()
async def xgmii_mac_rx_takes_what_another_sender_sends(dut):
    random = rng("xgmii rx model")
    source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk, dut.rst)
    await start(dut, {"clk": 6400}, ["rst"])
    monitor = AxisMonitor(dut, dut.clk, 8, has_ready=False)
    pulses = Pulses(dut, dut.clk, STATS)
    frames = [random.randbytes(n) for n in [*range(60, 90), 1514, 9014, *(random.randrange(60, 200) for _ in range(200))]]
    starts = []
    for frame in frames:
        await source.send(XgmiiFrame.from_payload(frame, tx_complete=lambda done: starts.append(done.start_lane)))
    await source.wait()
    await ClockCycles(dut.clk, 20)
    assert monitor.frames == [(frame, False) for frame in frames]
    assert set(starts) == {0, 4} and pulses.count == dict.fromkeys(STATS, 0)


CONTROL, PAUSE_OPCODE = bytes.fromhex("0180C2000001"), 1


def pause_frame(quanta, to=CONTROL, ethertype=0x8808, opcode=PAUSE_OPCODE):
    """IEEE 802.3 annex 31B."""
    return to + bytes.fromhex("020000000001") + ethertype.to_bytes(2, "big") + opcode.to_bytes(2, "big") + quanta.to_bytes(2, "big") + bytes(42)


@cocotb.test()
async def extra_xgmii_mac_stops_as_long_as_pause_frames_ask(dut):
    random = rng("pause")
    obeys = bool(dut.PAUSE.value)
    dut.s_axis_tvalid.value = 0
    source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.rx_clk, dut.rx_rst)
    sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.tx_clk, dut.tx_rst)
    await start(dut, {"tx_clk": 6400, "rx_clk": 6402}, ["tx_rst", "rx_rst"])
    monitor = AxisMonitor(dut, dut.rx_clk, 8, has_ready=False)

    async def send():
        while True:
            await send_axis(dut, dut.tx_clk, random.randbytes(random.randrange(60, 300)), 8)

    cocotb.start_soon(send())

    async def longest_silence(frames, clocks):
        """Clocks between the starts of two frames while these come in, at most."""
        sink.clear()
        for frame in frames:
            await source.send(frame)
        await ClockCycles(dut.tx_clk, clocks)
        starts = []
        while not sink.empty():
            starts.append(sink.recv_nowait().sim_time_start / 6400)
        return max((b - a for a, b in zip(starts, starts[1:])), default=clocks)

    frame_clocks = 45  # the longest that is sent here
    good = lambda *args, **more: XgmiiFrame.from_payload(pause_frame(*args, **more))
    spoiled = good(200)
    spoiled.data[-1] ^= 1
    usual = await longest_silence([XgmiiFrame.from_payload(random.randbytes(100))], 1000)
    assert usual <= frame_clocks
    for frame in (good(200, to=bytes.fromhex("0180C2000002")), good(200, ethertype=0x8809), good(200, opcode=2), spoiled, good(0)):
        assert await longest_silence([frame], 500) <= frame_clocks, frame
    for quanta in (20, random.randrange(30, 100)):
        silence = await longest_silence([good(quanta)], 8 * quanta + 500)
        assert (8 * quanta - 2 <= silence <= 8 * quanta + 2 * frame_clocks) if obeys else silence <= frame_clocks, (quanta, silence)
    # The last one counts: it may shorten the time, or start it again.
    silence = await longest_silence([good(60000), good(10)], 1000)
    assert (80 <= silence <= 80 + 2 * frame_clocks) if obeys else silence <= frame_clocks, silence
    silence = await longest_silence([good(50), XgmiiFrame.from_payload(random.randbytes(1600)), good(50)], 2000)
    assert (600 <= silence <= 600 + 2 * frame_clocks) if obeys else silence <= frame_clocks, silence
    silence = await longest_silence([good(60000), XgmiiFrame.from_payload(random.randbytes(800)), good(0)], 1000)
    assert (100 <= silence <= 100 + 2 * frame_clocks) if obeys else silence <= frame_clocks, silence
    assert len(monitor.frames) == 16 and sum(bad for _, bad in monitor.frames) == 1, "what came in goes on to the core"
