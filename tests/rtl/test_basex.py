"""1000BASE-X: the 8B/10B code against encdec8b10b, the PCS against that of LiteEth (IEEE 802.3 clauses 36 and 37)."""

import os
import re
import subprocess
import sys

import cocotb
import pytest
from cocotb.triggers import Timer
from encdec8b10b import EncDec8B10B
from support.block import ClockCycles, ReadOnly, RisingEdge, on_wire, rng, run, start
from support.paths import TOP

CONTROLS = [28 | y << 5 for y in range(8)] + [x | 7 << 5 for x in (23, 27, 29, 30)]
# LiteEth's PCS with short times, as Verilog.
PEER = """
import sys
from liteeth.phy.pcs_1000basex import PCS
from migen import ClockDomain, Module, Signal
from migen.fhdl import verilog

top = Module()
top.submodules.pcs = pcs = PCS(lsb_first=True, check_period=1e-4, breaklink_time=2e-5, more_ack_time=2e-5, sgmii_ack_time=2e-5)
top.clock_domains.cd_eth_tx, top.clock_domains.cd_eth_rx = tx, rx = ClockDomain("eth_tx"), ClockDomain("eth_rx")
ports = {name: Signal(bits, name=name) for name, bits in [("tbi_tx", 10), ("tbi_rx", 10), ("sink_valid", 1), ("sink_ready", 1), ("sink_data", 8),
    ("source_valid", 1), ("source_data", 8), ("source_last", 1), ("link_up", 1)]}
top.comb += [
    ports["tbi_tx"].eq(pcs.tbi_tx), pcs.tbi_rx.eq(ports["tbi_rx"]), ports["link_up"].eq(pcs.link_up),
    pcs.sink.valid.eq(ports["sink_valid"]), pcs.sink.data.eq(ports["sink_data"]), ports["sink_ready"].eq(pcs.sink.ready),
    ports["source_valid"].eq(pcs.source.valid), ports["source_data"].eq(pcs.source.data), ports["source_last"].eq(pcs.source.last),
    pcs.source.ready.eq(1),
]
verilog.convert(top, {*ports.values(), tx.clk, tx.rst, rx.clk, rx.rst}, name="liteeth_pcs").write(sys.argv[1])
"""


def test_code():
    run("basex", {}, "extra_code_8b10b")


def test_against_liteeth():
    path = TOP / "build/cocotb/liteeth_pcs.v"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", PEER, str(path)], check=True, cwd=path.parent, env=os.environ | {"PYTHONPATH": ""})
    # Its tables are files, which the simulator looks for where it runs.
    path.write_text(re.sub(r'readmemh\("', f'readmemh("{path.parent}/', path.read_text()))
    run("basex", {}, "extra_basex", others=[path])


@cocotb.test()
async def extra_code_8b10b_is_that_of_the_standard(dut):
    valid = {}
    for disparity in range(2):
        for octet in [*range(256), *(0x100 | control for control in CONTROLS)]:
            after, code = EncDec8B10B.enc_8b10b(octet & 0xFF, disparity, octet >> 8)
            dut.octet.value, dut.disparity.value = octet, disparity
            await Timer(1, "ns")
            assert int(dut.encoded.value) == after << 10 | code, (hex(octet), disparity)
            valid[code] = octet
    for code, octet in valid.items():
        dut.received.value = code
        await Timer(1, "ns")
        assert int(dut.decoded.value) == octet, (f"{code:010b}", hex(octet))
    # Other bits do not become one of its octet: so it is seen.
    for code in set(range(1024)) - valid.keys():
        dut.received.value = code
        await Timer(1, "ns")
        for disparity in range(2):
            dut.octet.value, dut.disparity.value = int(dut.decoded.value), disparity
            await Timer(1, "ns")
            assert int(dut.encoded.value) & 0x3FF != code


async def link_up(dut, clocks=60_000):
    for _ in range(clocks):
        await RisingEdge(dut.tx_clk)
        if int(dut.up.value) and int(dut.peer_up.value):
            # Until the transmit side knows, too.
            await ClockCycles(dut.tx_clk, 20)
            return True
    return False


async def send_gmii(dut, frame):
    for byte in on_wire(frame):
        dut.gmii_txd.value, dut.gmii_tx_en.value = byte, 1
        await RisingEdge(dut.tx_clk)
    dut.gmii_tx_en.value = 0


async def send_peer(dut, frame):
    for byte in on_wire(frame):
        dut.sink_data.value, dut.sink_valid.value = byte, 1
        await ReadOnly()
        while not int(dut.sink_ready.value):
            await RisingEdge(dut.rx_clk)
            await ReadOnly()
        await RisingEdge(dut.rx_clk)
    dut.sink_valid.value = 0


async def collect(clk, valid, data, frames):
    """Frames on a side, without what is in front of their start delimiter."""
    current = b""
    while True:
        await RisingEdge(clk)
        if int(valid.value):
            current += bytes([int(data.value)])
        elif current:
            frames.append(current[current.index(0xD5) + 1 :])
            current = b""


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def extra_basex_links_and_carries_frames(dut):
    """Both negotiate, at any alignment; frames of any length and gap arrive whole; what the line damages is told; a lost link comes again."""
    random = rng("basex")
    dut.gmii_tx_en.value = dut.gmii_tx_er.value = dut.sink_valid.value = dut.flip.value = 0
    dut.shift.value = 7
    await start(dut, {"tx_clk": 8000, "rx_clk": 8002}, ["rst"])
    assert await link_up(dut), "it comes up"
    here, there = [], []
    cocotb.start_soon(collect(dut.rx_clk, dut.gmii_rx_dv, dut.gmii_rxd, here))
    cocotb.start_soon(collect(dut.tx_clk, dut.source_valid, dut.source_data, there))
    ours = [random.randbytes(random.randrange(60, 200)) for _ in range(40)]
    theirs = [random.randbytes(random.randrange(60, 200)) for _ in range(40)]

    async def peer():
        for frame in theirs:
            await send_peer(dut, frame)
            await ClockCycles(dut.rx_clk, random.randrange(12, 20))

    task = cocotb.start_soon(peer())
    for frame in ours:
        await send_gmii(dut, frame)
        await ClockCycles(dut.tx_clk, random.randrange(12, 20))
    await task
    await ClockCycles(dut.tx_clk, 60)
    whole = lambda frames: [on_wire(frame)[8:] for frame in frames]
    assert there == whole(ours) and here == whole(theirs)
    # A bit wrong in a frame: an error at its place, or a wrong frame check sequence.
    frame = random.randbytes(100)
    sending = cocotb.start_soon(send_peer(dut, frame))
    await ClockCycles(dut.rx_clk, 40)
    dut.flip.value = 1 << random.randrange(10)
    await RisingEdge(dut.rx_clk)
    dut.flip.value = 0
    errors = 0
    for _ in range(150):
        await RisingEdge(dut.rx_clk)
        errors += int(dut.gmii_rx_er.value) + int(dut.code_error.value)
    await sending
    assert errors and int(dut.up.value) and here[-1] != whole([frame])[0]
    # The line is dead, and comes back at another alignment.
    dut.flip.value = 0b0101010101
    await ClockCycles(dut.rx_clk, 200)
    assert not int(dut.up.value)
    dut.flip.value, dut.shift.value = 0, 2
    assert await link_up(dut), "it comes up again"
    here.clear()
    await send_peer(dut, frame)
    await ClockCycles(dut.rx_clk, 60)
    assert here == whole([frame])


@pytest.mark.parametrize("speed", [1000, *(pytest.param(speed, marks=pytest.mark.long) for speed in (100, 10))])
def test_sgmii(speed):
    run("basex", {"SGMII": 1, "TIMER": 1000 + speed}, "basex_pcs", tests="basex_pcs")


class Line:
    """An SGMII PHY: code groups to the core, and what the core sends, decoded by somebody else."""

    def __init__(self, dut, speed):
        self.dut, self.queue, self.disparity, self.got = dut, [], 0, []
        self.word = 0x8001 | {10: 0, 100: 1, 1000: 2}[speed] << 10 | 1 << 12
        self.configures = self.acknowledges = True
        cocotb.start_soon(self.send())
        cocotb.start_soon(self.receive())

    async def send(self):
        kinds = 0
        while True:
            if not self.queue:
                if self.configures:
                    kinds += 1
                    word = self.word | 0x4000 * self.acknowledges
                    self.queue += [0x1BC, (0xB5, 0x42)[kinds % 2], word & 0xFF, word >> 8]
                else:
                    self.queue += [0x1BC, 0xC5 if self.disparity else 0x50]
            octet = self.queue.pop(0)
            self.disparity, code = EncDec8B10B.enc_8b10b(octet & 0xFF, self.disparity, octet >> 8)
            self.dut.rx_code.value = code
            await RisingEdge(self.dut.rx_clk)

    async def receive(self):
        while True:
            await RisingEdge(self.dut.tx_clk)
            try:
                control, data = EncDec8B10B.dec_8b10b(int(self.dut.tx_code.value))
            except Exception:
                continue  # before the first one
            self.got.append(control << 8 | data)

    def words(self):
        """The configurations among the last code groups."""
        last = self.got[-400:]
        return {last[i + 2] | last[i + 3] << 8 for i in range(len(last) - 3) if last[i] == 0x1BC and last[i + 1] in (0xB5, 0x42)}


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def basex_pcs_follows_the_phy(dut):
    """The speed is the PHY's; below 1 Gb/s a byte is there ten or a hundred times."""
    speed = int(dut.TIMER.value) - 1000
    copies = 1000 // speed
    random = rng("sgmii", speed)
    dut.gmii_tx.value = 0
    line = Line(dut, speed)
    line.acknowledges = False
    await start(dut, {"tx_clk": 8000, "rx_clk": 8000}, ["tx_rst", "rx_rst"])
    await ClockCycles(dut.tx_clk, 4000)
    assert line.words() == {0x4001} and not int(dut.link.value) & 1
    line.acknowledges = True
    await ClockCycles(dut.tx_clk, 2500)
    line.configures = False
    for _ in range(4000):
        await RisingEdge(dut.tx_clk)
        if int(dut.link.value) & 1:
            break
    assert int(dut.link.value) == 0b1001 | {10: 0, 100: 1, 1000: 2}[speed] << 1
    await ClockCycles(dut.tx_clk, 300)

    async def take(found):
        while True:
            await RisingEdge(dut.rx_clk)
            if int(dut.rx_ce.value) and int(dut.gmii_rx.value) & 2:
                found.append(int(dut.gmii_rx.value) >> 2)

    frame, found = on_wire(random.randbytes(60 if copies > 1 else 200)), []
    cocotb.start_soon(take(found))
    line.queue += [0x1FB] + [byte for byte in frame for _ in range(copies)][1:] + [0x1FD, 0x1F7]
    line.got.clear()
    for byte in frame:
        dut.gmii_tx.value = byte << 2 | 2
        while True:
            await ReadOnly()
            ce = int(dut.tx_ce.value)
            await RisingEdge(dut.tx_clk)
            if ce:
                break
    dut.gmii_tx.value = 0
    await ClockCycles(dut.tx_clk, 400)
    assert bytes(found) == frame
    begin, end = line.got.index(0x1FB), line.got.index(0x1FD)
    sent = bytes([0x55, *line.got[begin + 1 : end]])
    # The first copies are lost until the code group is even, and until the time of a byte begins.
    assert sent[::-1][::copies][::-1][-len(frame) + 2 :] == frame[2:] and (len(sent) - len(frame) * copies) in range(-2 * copies, 1)
    assert all(len(set(sent[len(sent) - (i + 1) * copies : len(sent) - i * copies])) == 1 for i in range(len(frame) - 2))
