"""Addresses, and frames as words, for the blocks of the UDP/IP stack."""

from support.block import ClockCycles, ReadOnly, RisingEdge

PEER_PORT, LOCAL_PORT = 10000, 49152
MAC, IP, PEER_MAC, PEER = 0x02FADE000001, 0x0A090002, 0x02FADE0000F0, 0x0A090001
TX = 6400


def width_of(signal):
    return len(signal) // 8


async def give(dut, frame, good=1, pauses=None):
    """A frame as words with a byte count; two clocks of rest behind it, as the crossing leaves."""
    width = width_of(dut.s_data)
    words = [frame[i : i + width] for i in range(0, len(frame), width)]
    for i, word in enumerate(words):
        while pauses and pauses():
            dut.s_valid.value = 0
            await RisingEdge(dut.clk)
        dut.s_data.value = int.from_bytes(word, "little")
        dut.s_count.value = len(word)
        dut.s_valid.value = 1
        dut.s_end.value = int(i == len(words) - 1)
        dut.s_good.value = good
        await RisingEdge(dut.clk)
    dut.s_valid.value = 0
    dut.s_end.value = 0
    await ClockCycles(dut.clk, 1)


async def pull_frame(dut, gap=2):
    """What a MAC does: sees a request, starts it, takes a word each clock. (The frame, clocks until there was a request)."""
    width = width_of(dut.m_axis_tdata)
    clocks = 0
    await ReadOnly()
    while not int(dut.m_axis_tvalid.value):
        await RisingEdge(dut.clk)
        await ReadOnly()
        clocks += 1
        assert clocks < 1000, "no request"
    await ClockCycles(dut.clk, gap)
    dut.m_axis_start.value = 1
    await RisingEdge(dut.clk)
    dut.m_axis_start.value = 0
    frame = b""
    while True:
        await ReadOnly()
        assert int(dut.m_axis_tvalid.value)
        keep, word = int(dut.m_axis_tkeep.value), int(dut.m_axis_tdata.value).to_bytes(width, "little")
        frame += word[: keep.bit_count()]
        last = int(dut.m_axis_tlast.value)
        assert last or keep == 2**width - 1
        await RisingEdge(dut.clk)
        if last:
            return frame, clocks


def ethernet(to, ethertype, payload, source=PEER_MAC):
    return to.to_bytes(6, "big") + source.to_bytes(6, "big") + ethertype.to_bytes(2, "big") + payload


def arp(operation, target):
    return (bytes.fromhex("0001080006040000")[:6] + operation.to_bytes(2, "big") + PEER_MAC.to_bytes(6, "big")
            + PEER.to_bytes(4, "big") + bytes(6) + target.to_bytes(4, "big"))  # fmt: skip
