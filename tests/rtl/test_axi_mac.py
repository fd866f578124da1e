"""MACs and PTP with AXI4-Stream and AXI4-Lite on their sides, against the models of cocotbext-axi and cocotbext-eth."""

import cocotb
import pytest
from cocotbext.axi import AxiStreamFrame
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource, XgmiiFrame, XgmiiSink, XgmiiSource
from support.axi import REGISTERS, Processor, check_map, sink, source
from support.block import ClockCycles, RisingEdge, on_wire, rng, run, start

MAC = bytes.fromhex("02fade000001")


@pytest.mark.parametrize("toplevel,parameters", [("gmii_axi", {}), ("xgmii_axi", {}), ("extra_ptp_axi", {})])
def test_axi(toplevel, parameters):
    run("axi_mac", parameters, toplevel)


async def mac_both_ways(dut, key, into, out, frame_of):
    random = rng(key)
    sender, taker = source(dut, dut.tx_clk, "s_axis"), sink(dut, dut.rx_clk, "m_axis")
    await start(dut, {"tx_clk": 8000, "rx_clk": 8002}, ["tx_rst", "rx_rst"])
    frames = [random.randbytes(n) for n in (60, 61, 64, 65, *(random.randrange(60, 1500) for _ in range(8)))]
    for frame in frames:
        await sender.send(AxiStreamFrame(frame, tuser=0))
        await into.send(frame_of(frame))
    for frame in frames:
        seen = await out.recv()
        assert seen.check_fcs() and bytes(seen.get_payload()) == frame
        taken = await taker.recv()
        assert bytes(taken.tdata) == frame and not any([taken.tuser] if isinstance(taken.tuser, int) else taken.tuser)
    # A frame with a wrong frame check sequence is told at its end, and counted.
    bad = bytearray(on_wire(frames[0]))
    bad[30] ^= 1
    await into.send(type(frame_of(b"\0" * 60))(bytes(bad)))
    pulses = 0
    while taker.empty():
        await RisingEdge(dut.rx_clk)
        pulses += int(dut.mac_stat.value) >> 3 & 1
    taken = await taker.recv()
    for _ in range(8):
        await RisingEdge(dut.rx_clk)
        pulses += int(dut.mac_stat.value) >> 3 & 1
    assert (taken.tuser if isinstance(taken.tuser, int) else taken.tuser[-1]) and pulses == 1


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def gmii_axi_both_ways(dut):
    dut.tx_ce.value = dut.rx_ce.value = 1
    into = GmiiSource(dut.gmii_rxd, dut.gmii_rx_er, dut.gmii_rx_dv, dut.rx_clk)
    out = GmiiSink(dut.gmii_txd, dut.gmii_tx_er, dut.gmii_tx_en, dut.tx_clk)
    await mac_both_ways(dut, "gmii axi", into, out, GmiiFrame.from_payload)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def xgmii_axi_both_ways(dut):
    into = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.rx_clk)
    out = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.tx_clk)
    await mac_both_ways(dut, "xgmii axi", into, out, XgmiiFrame.from_payload)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def extra_ptp_axi_master_beside_data(dut):
    """ptp_axi between a stream of frames and gmii_axi: data passes, and a master's messages come between it."""
    random = rng("ptp axi")
    out = GmiiSink(dut.gmii_txd, dut.gmii_tx_er, dut.gmii_tx_en, dut.tx_clk)
    dut.gmii_rx_dv.value = dut.gmii_rx_er.value = dut.gmii_rxd.value = 0
    sender = source(dut, dut.tx_clk, "s_axis")
    cpu = Processor(dut, dut.tx_clk, "ptp")
    await start(dut, {"tx_clk": 8000, "rx_clk": 8002}, ["rst"])
    await ClockCycles(dut.tx_clk, 20)
    await check_map(cpu, REGISTERS.PTP, "ptp", without=("port.", "control"))
    frames = [random.randbytes(random.randrange(60, 300)) for _ in range(6)]
    for frame in frames:
        await sender.send(AxiStreamFrame(frame, tuser=0))
    for frame in frames:
        assert bytes((await out.recv()).get_payload()) == frame, "in reset frames pass"
    assert await cpu.get(REGISTERS.PTP, "port.role") == 0xFFFFFFFF
    await cpu.put(REGISTERS.PTP, mac_low=int.from_bytes(MAC[2:], "big"), mac_high=int.from_bytes(MAC[:2], "big"), control=1 | 2 << 2)
    await ClockCycles(dut.tx_clk, 2000)
    assert await cpu.get(REGISTERS.PTP, "port.role") == 2
    # Sync messages often enough for a simulation.
    assert await cpu.write(next(r.address for r in REGISTERS.PTP if r.name == "port.sync_clocks"), 4000)
    assert await cpu.get(REGISTERS.PTP, "port.sync_clocks") == 4000
    frames = [random.randbytes(random.randrange(60, 300)) for _ in range(100)]
    for frame in frames:
        await sender.send(AxiStreamFrame(frame, tuser=0))
    data, messages = [], []
    while len(data) < len(frames):
        seen = await out.recv()
        assert seen.check_fcs()
        frame = bytes(seen.get_payload())
        (messages if frame[12:14] == b"\x88\xf7" else data).append(frame)
    assert data == frames and messages and all(frame[6:12] == MAC for frame in messages)
    assert await cpu.get(REGISTERS.PTP, "port.seconds") is not None and await cpu.get(REGISTERS.PTP, "port.nanoseconds") > 0
