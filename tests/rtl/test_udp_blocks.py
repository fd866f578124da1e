"""The blocks of the UDP/IP stack that any protocol needs, each for itself; the stack as a whole: test_udp_core.py."""

import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, rng, run, start
from support.sweep import long
from support.udp_block import IP, MAC, PEER, PEER_MAC, TX, arp, ethernet, give, pull_frame, width_of


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        *[("extra_stack", {"WIDTH": width}) for width in (8, 64)],
        *[("header_strip", {"WIDTH": width, "HEADER_BYTES": size}) for width, size in ((8, 14), (64, 14), (64, 44))],
        *[long("header_strip", {"WIDTH": 64, "HEADER_BYTES": size}) for size in (20, 8, 10)],
        *[("pull_header", {"WIDTH": width, "HEADER_BYTES": size}) for width, size in ((8, 14), (64, 20))],
        *[long("pull_header", {"WIDTH": 64, "HEADER_BYTES": size}) for size in (14, 8, 64)],
        ("pull_arbiter", {"CLIENTS": 3, "META_BITS": 8}),
        ("pull_arbiter", {"CLIENTS": 3, "META_BITS": 8, "FAIR": 1}),
        ("frame_crossing", {"WIDTH": 8, "DEPTH": 8}),
    ],
)
def test_udp_blocks(toplevel, parameters):
    run("udp_blocks", parameters, toplevel)


@cocotb.test()
async def extra_stack_serves_both_protocols(dut):
    """The further protocol answers, ARP goes before it, and each frame is whole."""
    for name in ("s_valid", "s_end", "m_axis_start"):
        getattr(dut, name).value = 0
    dut.mac_address.value, dut.ip_address.value = MAC, IP
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("extra")
    for _ in range(20):
        number = random.getrandbits(64)
        await give(dut, ethernet(MAC, 0x88B5, number.to_bytes(8, "big")).ljust(60, b"\0"))
        with_arp = random.random() < 0.5
        if with_arp:
            await give(dut, ethernet(2**48 - 1, 0x0806, arp(1, IP)).ljust(60, b"\0"))
            # The asker is remembered before it gets its reply.
            await ClockCycles(dut.clk, 40)
            frame, _ = await pull_frame(dut)
            assert frame[:14] == ethernet(PEER_MAC, 0x0806, b"", MAC) and frame[20:22] == b"\0\2"
            assert frame[22:] == MAC.to_bytes(6, "big") + IP.to_bytes(4, "big") + PEER_MAC.to_bytes(6, "big") + PEER.to_bytes(4, "big")
        frame, _ = await pull_frame(dut)
        assert frame == ethernet(PEER_MAC, 0x88B5, ((number + 1) % 2**64).to_bytes(8, "big"), MAC)
    # Neither to others nor of a third protocol.
    await give(dut, ethernet(MAC + 1, 0x88B5, bytes(46)))
    await give(dut, ethernet(MAC, 0x88B6, bytes(46)))
    await give(dut, ethernet(MAC, 0x88B5, bytes(46)), good=0)
    for _ in range(40):
        await RisingEdge(dut.clk)
        assert not int(dut.m_axis_tvalid.value)


@cocotb.test()
async def header_strip_takes_headers_off(dut):
    """Of frames of every length, with pauses or not, good or bad."""
    size = len(dut.header) // 8
    for name in ("s_valid", "s_end"):
        getattr(dut, name).value = 0
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("strip")
    found = []

    async def watch():
        data = b""
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(dut.m_valid.value):
                data += int(dut.m_data.value).to_bytes(width_of(dut.m_data), "little")[: int(dut.m_count.value)]
            if int(dut.m_end.value):
                header = int(dut.header.value).to_bytes(size, "big") if int(dut.complete.value) else None
                found.append((header, data if header is not None else b"", int(dut.m_good.value)))
                data = b""

    cocotb.start_soon(watch())
    expected = []
    for length in [*range(1, 140), 1500]:
        frame, good, slow = random.randbytes(length), random.randrange(2), random.random() < 0.5
        await give(dut, frame, good, (lambda: random.random() < 0.3) if slow else None)
        expected.append((frame[:size] if length >= size else None, frame[size:], good))
    await ClockCycles(dut.clk, 6)
    assert found == expected


@cocotb.test()
async def pull_header_puts_headers_before(dut):
    """The client's words fall in behind the header without a gap, whatever its length."""
    width, size = width_of(dut.data), len(dut.header) // 8
    dut.start.value = 0
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("header")
    for _ in range(30):
        header, data = random.randbytes(size), random.randbytes(width * 12)
        dut.header.value = int.from_bytes(header, "big")
        dut.start.value = 1
        out, place = b"", None
        for clock in range((size + len(data)) // width - 1):
            await ReadOnly()
            begins = int(dut.client_start.value)
            if clock > 0:
                out += int(dut.data.value).to_bytes(width, "little")
            await RisingEdge(dut.clk)
            dut.start.value = 0
            if begins:
                dut.header.value = random.getrandbits(size * 8)
            place = 0 if begins else None if place is None else place + 1
            if place is not None:
                dut.client_data.value = int.from_bytes(data[place * width : (place + 1) * width], "little")
        assert out == (header + data)[: len(out)] and len(out) > size + 4 * width
        await ClockCycles(dut.clk, random.randrange(1, 4))


@cocotb.test()
async def pull_arbiter_keeps_its_choice(dut):
    """Each request is started once, the lowest of a clock before first, from FAIR on by turns; what is taken is started even if a better one comes."""
    fair, last = int(dut.FAIR.value), 2
    for name in ("s_request", "m_accept", "m_start"):
        getattr(dut, name).value = 0
    dut.s_meta.value = 0x332211
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("arbiter")
    pending, offered, taken, served = 0, 2, None, [0, 0, 0]
    for _ in range(3000):
        pending |= 1 << random.randrange(3) if random.random() < 0.3 else 0
        dut.s_request.value = pending
        dut.s_data.value = int.from_bytes(random.randbytes(3), "little")
        on_offer = taken is None and pending >> offered & 1
        accept = int(on_offer and random.random() < 0.5)
        begin = int((taken is not None or accept) and random.random() < 0.5)
        dut.m_accept.value, dut.m_start.value = accept, begin
        await ReadOnly()
        assert int(dut.m_request.value) == int(on_offer)
        if on_offer:
            assert int(dut.m_meta.value) == 0x11 * (offered + 1)
        who = taken if taken is not None else offered
        assert int(dut.s_start.value) == (1 << who if begin else 0)
        lowest = min((i for i in range(3) if pending >> i & 1), key=lambda i: (i >= fair, i >= fair and i <= last, i), default=None)
        if accept:
            taken = offered
            last = offered if offered >= fair else last
        if pending:
            offered = lowest
        if begin:
            pending &= ~(1 << who)
            served[who] += 1
            taken = None
        await RisingEdge(dut.clk)
    assert min(served) > 50


@cocotb.test()
async def frame_crossing_ends_what_it_could_not_hold(dut):
    """A clock that is far too slow: frames end bad, none is joined with the next, the ones after are whole again."""
    for name in ("s_axis_tvalid", "s_axis_tlast", "s_axis_tuser"):
        getattr(dut, name).value = 0
    dut.s_axis_tkeep.value = 1
    await start(dut, {"tx_clk": 16000, "rx_clk": 8000}, ["tx_rst", "rx_rst"])
    frames = []

    async def watch():
        data = b""
        while True:
            await RisingEdge(dut.tx_clk)
            await ReadOnly()
            if int(dut.m_valid.value):
                data += bytes([int(dut.m_data.value)])
            if int(dut.m_end.value):
                frames.append((data, int(dut.m_good.value)))
                data = b""

    cocotb.start_soon(watch())
    for length in (5, 60, 6, 100, 4):
        for i in range(length):
            dut.s_axis_tdata.value, dut.s_axis_tvalid.value, dut.s_axis_tlast.value = i, 1, int(i == length - 1)
            await RisingEdge(dut.rx_clk)
        dut.s_axis_tvalid.value = 0
        await ClockCycles(dut.rx_clk, 40)
    good = [data for data, fine in frames if fine]
    assert len(frames) == 5 and good == [bytes(range(n)) for n in (5, 6, 4)]
