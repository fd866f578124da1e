"""The descriptor manager of FADE v1: sets, every kind of acknowledgment, and a reference model."""

import pytest
from support.block import ClockCycles, Pulses, ReadOnly, RisingEdge, cocotb, from_gray, rng, run, start

TX = {"clk": 8000}
SETS = 2**16
EVENTS = ["event_confirmed", "event_protocol_error", "event_stale"]


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("fade1_desc_manager", {"WAIT_MIN": 128, "WAIT_INIT": 2048, "WAIT_MAX": 16384}),
    ],
)
def test_block(toplevel, parameters):
    run("fade1_desc_manager", parameters, toplevel)


class Manager:
    """Drives the descriptor manager as the writer, the receiver and the sender do."""

    def __init__(self, dut, first_set=0):
        self.dut, self.head = dut, first_set * 32
        for name in [
            "session",
            "closed",
            "ack_valid",
            "ack_set",
            "ack_packet",
            "ack_stored",
            "ack_block",
            "next_lock",
            "next_take",
            "sending",
            "sending_slot",
            "sending_done",
        ]:
            getattr(dut, name).value = 0
        dut.first_set.value, dut.head.value = first_set, self.head % 64

    async def run(self):
        await start(self.dut, TX, ["rst"])
        self.dut.session.value = 1
        self.events = Pulses(self.dut, self.dut.clk, EVENTS)
        await ClockCycles(self.dut.clk, 2)

    def fill(self, count=1):
        self.head += count
        self.dut.head.value = self.head % 64

    async def send(self, wait=100, lock=4):
        """Sends the next packet: (number, again, last); None if none comes in `wait` clocks."""
        dut = self.dut
        for _ in range(wait):
            dut.next_lock.value = 0
            await ReadOnly()
            if int(dut.next_valid.value):
                break
            await RisingEdge(dut.clk)
        else:
            return None
        await RisingEdge(dut.clk)
        dut.next_lock.value = 1
        await ReadOnly()
        read = lambda: tuple(int(getattr(dut, f"next_{n}").value) for n in ("set", "packet", "again", "last"))
        if not int(dut.next_valid.value):  # withdrawn in this very clock
            await RisingEdge(dut.clk)
            dut.next_lock.value = 0
            return await self.send(wait, lock)
        await ClockCycles(dut.clk, 2)  # the number is there in the third clock
        await ReadOnly()
        set_, packet, again, last = offer = read()
        for _ in range(lock):
            await RisingEdge(dut.clk)
            await ReadOnly()
            assert read() == offer, "stable while locked"
        await RisingEdge(dut.clk)
        dut.next_take.value = 1
        await RisingEdge(dut.clk)
        dut.next_take.value = dut.next_lock.value = 0
        return set_ * 32 + packet, again, last

    async def ack(self, number, settle=100, packet=None, stored=None):
        """`packet`: another number in its set; `stored`: the bits of a block ACK, which come a clock after ack_bits, in the place of the
        fields."""
        dut = self.dut
        fields = (number // 32 % SETS, number % 32 if packet is None else packet, 2**32 - 1, 1)
        bits = (SETS - 1, 63, 2**32 - 1 if stored is None else stored, int(stored is not None))
        dut.ack_valid.value = 1
        here = False
        while True:
            for name, value in zip(("ack_set", "ack_packet", "ack_stored", "ack_block"), bits if here else fields, strict=True):
                getattr(dut, name).value = value
            await ReadOnly()
            ready, here = int(dut.ack_ready.value), int(dut.ack_bits.value)
            await RisingEdge(dut.clk)
            if ready:
                break
        dut.ack_valid.value = 0
        await ClockCycles(dut.clk, settle)

    async def tail(self):
        await ReadOnly()
        gray = int(self.dut.tail_gray.value)
        await RisingEdge(self.dut.clk)
        return from_gray(gray)


@cocotb.test()
async def fade1_desc_manager_puts_the_next_set_in_freed_places(dut):
    """Packets of set s+1 go as soon as those of s with their number are confirmed; numbers wrap."""
    for first_set in (0, SETS - 1):
        m = Manager(dut, first_set)
        await m.run()
        assert await m.send() is None
        first = first_set * 32
        m.fill(32)
        for i in range(32):
            assert await m.send() == (first + i, 0, 0)
        assert await m.tail() == first % 64
        for i in (1, 2, 5):
            await m.ack(first + i)
        assert await m.tail() == first % 64, "packet 0 is not confirmed"
        await m.ack(first)
        assert await m.tail() == (first + 3) % 64
        m.fill(3)
        sets = SETS * 32
        for i in range(3):
            assert await m.send() == ((first + 32 + i) % sets, 0, 0)
        # The same number in its place now belongs to the next set.
        assert m.events.count == {"event_confirmed": 4, "event_protocol_error": 0, "event_stale": 0}
        await m.ack(first + 1)
        assert m.events.count["event_stale"] == 1
        await m.ack((first + 33) % sets)
        await m.ack((first + 33) % sets)
        assert m.events.count["event_confirmed"] == 5 and m.events.count["event_stale"] == 2
        await m.ack((first + 35) % sets)
        await m.ack((first + 32 + 64) % sets)
        assert m.events.count["event_protocol_error"] == 2, "not sent yet"
        await m.ack(first + 34, packet=33)
        assert m.events.count["event_protocol_error"] == 3, "a set has 32 packets"
        dut.session.value = 0
        await ClockCycles(dut.clk, 3)


@cocotb.test()
async def fade1_desc_manager_confirms_what_the_bits_of_a_block_ack_name(dut):
    """Packet 0 is confirmed; of the others 2 and 4 are lost, and so is every ACK but that of 33, in the next set."""
    m = Manager(dut)
    await m.run()
    m.fill(32)
    for i in range(32):
        assert await m.send() == (i, 0, 0)
    for i in (0, 1):
        await m.ack(i)
    m.fill(2)
    for i in (32, 33):
        assert await m.send() == (i, 0, 0)
    bits = sum(1 << 32 - i for i in range(2, 33) if i not in (2, 4))
    await m.ack(33, stored=bits)
    assert await m.tail() == 2
    assert m.events.count == {"event_confirmed": 32, "event_protocol_error": 0, "event_stale": 0}
    await ClockCycles(dut.clk, 20000)
    assert int(dut.next_valid.value) == 1 and int(dut.next_again.value) == 1
    await m.ack(33, stored=2**32 - 1)
    assert m.events.count["event_confirmed"] == 34, "packets before one that was confirmed already"
    assert await m.tail() == 34 and await m.send() is None, "2 was on offer, and is not any more"
    assert int(dut.all_confirmed.value) == 1 and m.events.count["event_protocol_error"] == 0


@cocotb.test()
async def fade1_desc_manager_frees_no_place_that_is_read(dut):
    """Packets are confirmed, one by one or by bits, while the first of them is sent again: its place is not free before that is done."""
    for stored in (None, 2**32 - 1):
        m = Manager(dut)
        await m.run()
        m.fill(4)
        for i in range(4):
            assert await m.send() == (i, 0, 0)
        await ClockCycles(dut.clk, 20000)
        while (await m.send(wait=5000))[0] != 0:
            pass
        dut.sending.value, dut.sending_slot.value = 1, 0
        for i in (3,) if stored else (0, 1, 2, 3):
            await m.ack(i, stored=stored)
        assert m.events.count["event_confirmed"] == 4 and await m.tail() == 0
        await m.ack(0)
        assert await m.tail() == 0 and not int(dut.all_confirmed.value)
        dut.sending.value, dut.sending_done.value = 0, 1
        await RisingEdge(dut.clk)
        dut.sending_done.value = 0
        await ClockCycles(dut.clk, 20)
        assert await m.tail() == 4 and int(dut.all_confirmed.value) == 1
        dut.session.value = 0
        await ClockCycles(dut.clk, 3)


@cocotb.test()
async def fade1_desc_manager_does_not_look_at_bits_of_acks_that_do_not_count(dut):
    m = Manager(dut)
    await m.run()
    m.fill(5)
    for _ in range(3):
        await m.send()
    await m.ack(3, stored=2**32 - 1)  # not sent
    await m.ack(SETS * 32 - 1, stored=2**32 - 1)  # from before the start
    await m.ack(2, packet=34, stored=2**32 - 1)  # no number of a set
    assert m.events.count["event_confirmed"] == 0 and await m.tail() == 0
    await m.ack(2)  # an ordinary one
    assert m.events.count["event_confirmed"] == 1 and await m.tail() == 0


@cocotb.test()
async def fade1_desc_manager_sends_overdue_packets_again_in_turn(dut):
    m = Manager(dut)
    await m.run()
    m.fill(8)
    for i in range(8):
        assert await m.send() == (i, 0, 0)
        if i not in (2, 5):
            await m.ack(i, settle=5)
    assert await m.send(wait=1000) is None, "not before the round trip"
    first = await m.send(wait=5000)
    second = await m.send(wait=5000)
    assert [first, second] == [(2, 1, 0), (5, 1, 0)]
    # Overdue goes before fresh: the window must not stand still.
    m.fill(4)
    assert (await m.send())[0] == 8
    await ClockCycles(dut.clk, 12000)
    again = []
    for _ in range(3):
        await ClockCycles(dut.clk, 40)  # a frame takes longer: time for a whole turn of the scan
        again.append(await m.send())
    assert {number for number, again, _ in again} == {2, 5, 8} and all(again for _, again, _ in again)
    assert await m.send() == (9, 0, 0)
    for number in (2, 5, 8, 9):
        await m.ack(number)
    assert await m.tail() == 10
    # An ACK withdraws the offer of a packet that was overdue.
    assert (await m.send())[0] == 10
    await ClockCycles(dut.clk, 30000)
    assert int(dut.next_valid.value) == 1 and int(dut.next_again.value) == 1
    await m.ack(10)
    assert await m.send() == (11, 0, 0)
    await m.ack(11)
    assert int(dut.all_confirmed.value) == 1


@cocotb.test()
async def fade1_desc_manager_agrees_with_a_model(dut):
    """Random fills, losses and confirmations: every packet is sent and confirmed, inside the window."""
    random = rng("manager 1")
    m = Manager(dut, SETS - 2)
    await m.run()
    first = (SETS - 2) * 32
    sent, confirmed, arrived, total = 0, set(), set(), 300
    for _ in range(20000):
        tail = next(i for i in range(total + 1) if i not in confirmed)
        if tail == total:
            break
        m.fill(min(total + first - m.head, random.randrange(tail + 33 - (m.head - first))))
        offer = await m.send(wait=50, lock=2)
        if offer is None:
            continue
        number, again, last = offer
        index = (number - first) % (SETS * 32)
        assert tail <= index < tail + 32, "at most the window is in flight"
        assert index == sent if not again else index < sent and index not in confirmed
        sent = max(sent, index + 1)
        if random.random() < 0.8:
            arrived.add(index)
            if random.random() < 0.7:  # else the ACK is lost: the next block ACK may replace it
                block = random.random() < 0.5
                before = {i for i in arrived if index - 32 <= i < index} if block else set()
                bits = sum(1 << index - 1 - i for i in before) if block else None
                await m.ack((first + index) % (SETS * 32), settle=random.randrange(4), stored=bits)
                confirmed |= {index, *before}
        if sent > 40 and random.random() < 0.1:  # a late one, of a packet behind the window
            await m.ack((first + tail - 1 - random.randrange(8)) % (SETS * 32), settle=2)
    await ClockCycles(dut.clk, 5)
    assert len(confirmed) == total and m.events.count["event_confirmed"] == total
    assert m.events.count["event_protocol_error"] == 0
