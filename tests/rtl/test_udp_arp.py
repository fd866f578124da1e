"""ARP in the UDP/IP stack: what it answers, asks and tells, and the neighbours that it remembers."""

import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, Timer, cocotb, rng, run, start
from support.udp_block import IP, MAC, PEER, PEER_MAC, TX, arp, give, width_of


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        *[("udp_arp", {"WIDTH": width}) for width in (8, 64)],
        ("udp_neighbours", {"ENTRIES": 4, "TIMEOUT": 50, "RETRY": 5}),
    ],
)
def test_udp_arp(toplevel, parameters):
    run("udp_arp", parameters, toplevel)


def mac_of(ip):
    return 0x020000000000 | ip


@cocotb.test()
async def udp_arp_answers_asks_and_tells(dut):
    """Of messages at random: each is reported, answered, asked for or counted; a reply waits for its start, and stays what it is."""
    for name in ("s_valid", "s_end", "start", "ask", "learned", "learned_nothing", "learn_place"):
        getattr(dut, name).value = 0
    dut.mac_address.value, dut.ip_address.value = MAC, IP
    await start(dut, {"clk": TX}, ["rst"])
    random = rng("arp")
    width = width_of(dut.data)
    seen = {"reply": 0, "ask": 0, "short": 0, "protocol": 0, "destination": 0, "full": 0}
    told = []

    async def count():
        while True:
            await RisingEdge(dut.clk)
            for name in ("short", "protocol", "destination", "full"):
                seen[name] += int(getattr(dut, f"drop_{name}").value)

    async def neighbours():
        """Takes its time; who is new and not for this board is nobody."""
        while True:
            await RisingEdge(dut.clk)
            if int(dut.learn.value):
                parts = bytearray()
                for place in range(2, 12):
                    dut.learn_place.value = place
                    await ClockCycles(dut.clk, 1)
                    await ReadOnly()
                    parts.append(int(dut.learn_byte.value))
                    await Timer(1, "ps")
                told.append((int.from_bytes(parts[6:], "big"), int.from_bytes(parts[:6], "big"), int(dut.learn_new.value)))
                dut.learned.value, dut.learned_nothing.value = 1, 1 - told[-1][2]
                await RisingEdge(dut.clk)
                dut.learned.value = 0
                await RisingEdge(dut.clk)

    async def pull():
        await ReadOnly()
        for _ in range(40):
            if int(dut.request.value):
                break
            await RisingEdge(dut.clk)
            await ReadOnly()
        else:
            await Timer(1, "ps")
            return None
        to = int(dut.destination.value)
        await RisingEdge(dut.clk)
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        out = b""
        while len(out) < 28:
            await ReadOnly()
            out += int(dut.data.value).to_bytes(width, "little")
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, 2)
        return to, out[:28]

    cocotb.start_soon(count())
    cocotb.start_soon(neighbours())
    mine = MAC.to_bytes(6, "big") + IP.to_bytes(4, "big")
    for _ in range(60):
        ip = random.choice([0, *(PEER + i for i in range(8))])
        sender = mac_of(ip).to_bytes(6, "big") + ip.to_bytes(4, "big")
        operation, target, shape, size = (
            random.choice([1, 1, 1, 2, 3]),
            random.choice([IP, IP, IP + 1]),
            random.randrange(8),
            random.choice([46, 46, 46, 46, 27]),
        )
        message = (
            bytes.fromhex("000108000605" if shape == 0 else "000108000604")
            + operation.to_bytes(2, "big")
            + sender
            + bytes(6)
            + target.to_bytes(4, "big")
        )
        before = dict(seen)
        told.clear()
        await give(dut, message.ljust(46, b"\0")[:size])
        await ClockCycles(dut.clk, 24)
        news = {name: seen[name] - before[name] for name in seen}
        if size < 28:
            assert news == {**dict.fromkeys(seen, 0), "short": 1} and not told
        elif shape == 0 or operation == 3:
            assert news == {**dict.fromkeys(seen, 0), "protocol": 1} and not told
        else:
            new = int(target == IP and ip != 0)
            assert told == [(ip, mac_of(ip), new)] and news == {**dict.fromkeys(seen, 0), "destination": 1 - new}
        if size >= 28 and shape and operation == 1 and target == IP:
            if random.random() < 0.5:
                # The reply is not out: what comes is counted, and the reply is the first one's.
                await give(dut, arp(random.choice([1, 2]), IP).ljust(46, b"\0"))
                await ClockCycles(dut.clk, 6)
                assert seen["full"] == before["full"] + 1
            assert await pull() == (mac_of(ip), bytes.fromhex("0001080006040002") + mine + sender)
        assert await pull() is None
        if random.random() < 0.3:
            wanted = random.getrandbits(32)
            dut.ask.value, dut.ask_ip.value = 1, wanted
            asked = cocotb.start_soon(pull())
            while True:
                await RisingEdge(dut.clk)
                await ReadOnly()
                if int(dut.ask_taken.value):
                    break
            await RisingEdge(dut.clk)
            dut.ask.value = 0
            assert await asked == (2**48 - 1, bytes.fromhex("0001080006040001") + mine + bytes(6) + wanted.to_bytes(4, "big"))


@cocotb.test()
async def udp_neighbours_know_the_way(dut):
    """Against a model: four addresses, the oldest makes room, each for 50 ms; gateway, groups, broadcast; what is not known is asked for."""
    gateway, mask = 0x0A0900FE, 0xFFFFFF00
    for name in ("tick_ms", "lookup", "stream_changed", "stream_active", "learn", "ask_taken", "learn_byte", "in_use"):
        getattr(dut, name).value = 0
    dut.ip_address.value, dut.mask.value, dut.gateway.value, dut.stream_ip.value = IP, mask, gateway, PEER
    await start(dut, {"clk": TX}, ["rst"])
    await ClockCycles(dut.clk, 20)
    random = rng("neighbours")
    table, place = [None] * 4, 0  # (IP, MAC, milliseconds)
    sender = bytes(16)  # from 2 on MAC and IP address

    async def give_bytes():
        while True:
            dut.learn_byte.value = sender[int(dut.learn_place.value)] if dut.learn_place.value.is_resolvable else 0
            await dut.learn_place.value_change

    cocotb.start_soon(give_bytes())

    def entry(ip):
        return next((i for i, found in enumerate(table) if found and found[0] == ip and found[2] > 0), None)

    def way(ip):
        if ip == 2**32 - 1 or ip == IP | 0xFF:
            return 2**48 - 1
        if ip >> 28 == 0xE:
            return 0x01005E000000 | ip & 0x7FFFFF
        i = entry(ip if ip & mask == IP & mask else gateway)
        return None if i is None else table[i][1]

    async def until(signal):
        for clock in range(1, 80):
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(signal.value):
                await Timer(1, "ps")
                return clock
        raise AssertionError(f"{signal._name} did not come")

    async def learn(ip, mac, new):
        nonlocal place, sender
        sender = bytes(2) + mac.to_bytes(6, "big") + ip.to_bytes(4, "big") + bytes(4)
        dut.learn_byte.value = sender[int(dut.learn_place.value)]
        dut.learn.value, dut.learn_new.value = 1, new
        await until(dut.learned)
        i = entry(ip)
        assert int(dut.learned_nothing.value) == int(i is None and not new)
        if i is None and new:
            place = i = (place + 1) % 4
        if i is not None:
            table[i] = (ip, mac, 50)
        await RisingEdge(dut.clk)
        dut.learn.value = 0
        await ClockCycles(dut.clk, 40)

    async def lookup(ip):
        dut.lookup.value, dut.in_use.value, dut.lookup_ip.value = 1, 1, ip
        clocks = await until(dut.lookup_done)
        found = int(dut.mac.value) if int(dut.known.value) else None
        await RisingEdge(dut.clk)
        dut.lookup.value = 0
        # While the address is needed nothing changes it.
        await ClockCycles(dut.clk, random.randrange(1, 30))
        assert int(dut.mac.value) == found or found is None
        dut.in_use.value = 0
        assert found == way(ip), f"{ip:08X}"
        return clocks

    async def millisecond():
        dut.tick_ms.value = 1
        await RisingEdge(dut.clk)
        dut.tick_ms.value = 0
        await ClockCycles(dut.clk, 50)
        for i, found in enumerate(table):
            table[i] = found and (*found[:2], max(0, found[2] - 1))

    peers = [PEER + i for i in range(6)] + [gateway]
    for _ in range(400):
        action = random.random()
        if action < 0.3:
            await learn(random.choice(peers), random.getrandbits(48), random.randrange(2))
        elif action < 0.7:
            await lookup(random.choice([*peers, 0x08080808, 0xE0000181, 0xEF7FFFFF, 2**32 - 1, IP | 0xFF]))
        elif action < 0.8:
            dut.stream_ip.value = random.choice([*peers, 0x08080808, 0xE0000181])
            dut.stream_changed.value = 1
            await RisingEdge(dut.clk)
            dut.stream_changed.value = 0
            await ReadOnly()
            assert int(dut.stream_path.value) == 0, "not before it is looked up"
            await Timer(1, "ps")
            await ClockCycles(dut.clk, random.choice([2, 50]))
        else:
            for _ in range(random.choice([1, 5, 20])):
                await millisecond()
        if action >= 0.7:
            await ClockCycles(dut.clk, 40)
        assert int(dut.stream_path.value) == int(way(int(dut.stream_ip.value)) is not None)
        if int(dut.ask.value):
            dut.ask_taken.value = 1
            await RisingEdge(dut.clk)
            dut.ask_taken.value = 0
            await RisingEdge(dut.clk)
    # What is found again is found at once, and so is where the stream goes.
    await learn(PEER + 1, PEER_MAC + 1, 1)
    await learn(PEER, PEER_MAC, 1)
    assert await lookup(PEER) <= 27
    assert await lookup(PEER) <= 3
    dut.stream_ip.value, dut.stream_changed.value = PEER + 1, 1
    await RisingEdge(dut.clk)
    dut.stream_changed.value = 0
    await ClockCycles(dut.clk, 40)
    assert await lookup(PEER + 1) <= 3
    # Wanted by the stream: asked for each 5 ms. A packet's goes before it.
    for _ in range(60):
        await millisecond()
    dut.stream_ip.value, dut.stream_active.value = PEER + 9, 1
    asked = []
    for ms in range(31):
        await millisecond()
        if ms == 17:
            await lookup(PEER + 10)
        if int(dut.ask.value):
            asked.append(int(dut.ask_ip.value))
            dut.ask_taken.value = 1
            await RisingEdge(dut.clk)
            dut.ask_taken.value = 0
            await RisingEdge(dut.clk)
    assert 5 <= len(asked) <= 7 and asked.count(PEER + 10) == 1 and set(asked) == {PEER + 9, PEER + 10}, asked
