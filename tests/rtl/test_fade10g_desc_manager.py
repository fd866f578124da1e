"""The descriptor manager: the paper's figure 4, every kind of acknowledgment, and a reference model."""

import pytest
from support.block import ClockCycles, Pulses, ReadOnly, RisingEdge, cocotb, from_gray, rng, run, start

SLOT_BITS = 3
SLOTS = 1 << SLOT_BITS
POINTERS = 2 * SLOTS
EVENTS = ["event_confirmed", "event_early", "event_protocol_error", "event_stale"]


@pytest.mark.parametrize("slot_bits", [SLOT_BITS])
def test_desc_manager(slot_bits):
    run("fade10g_desc_manager", {"SLOT_BITS": slot_bits, "UNIT_BITS": 2, "TICK_MIN": 20, "TICK_INIT": 400, "TICK_MAX": 1000})


class Manager:
    """Drives the manager as the writer, the receiver and the sender do."""

    def __init__(self, dut, first=0, sequence=0):
        self.dut, self.head, self.first = dut, first, first
        for name in ["session", "closed", "ack_valid", "ack_negative", "ack_sequence", "ack_packet", "ack_stored", "ack_block",
                     "next_lock", "next_take", "sending", "sending_slot", "sending_done"]:  # fmt: skip
            getattr(dut, name).value = 0
        dut.first_packet.value, dut.first_sequence.value = first, sequence
        dut.head.value = first % POINTERS

    async def run(self):
        await start(self.dut, {"clk": 6400}, ["rst"])
        self.dut.session.value = 1
        self.events = Pulses(self.dut, self.dut.clk, EVENTS)
        await ClockCycles(self.dut.clk, 2)

    def fill(self, count=1):
        self.head = (self.head + count) % 2**32
        self.dut.head.value = self.head % POINTERS

    async def send(self, wait=0, lock=4):
        """Sends the next packet: (packet, sequence, again, last); None if none comes in `wait` clocks."""
        dut = self.dut
        for _ in range(wait + 5 * SLOTS):
            await ReadOnly()
            if int(dut.next_valid.value):
                break
            await RisingEdge(dut.clk)
        else:
            return None
        await RisingEdge(dut.clk)
        dut.next_lock.value = 1
        await ReadOnly()
        if not int(dut.next_valid.value):  # withdrawn in this very clock
            await RisingEdge(dut.clk)
            dut.next_lock.value = 0
            return await self.send(wait)
        read = lambda: tuple(int(getattr(dut, f"next_{n}").value) for n in ("packet", "sequence", "again", "last"))
        await ClockCycles(dut.clk, 2)  # the number is there in the third clock
        await ReadOnly()
        offer = read()
        for _ in range(lock):
            await RisingEdge(dut.clk)
            await ReadOnly()
            assert read() == offer, "stable while locked"
        await RisingEdge(dut.clk)
        dut.next_take.value = 1
        await RisingEdge(dut.clk)
        dut.next_take.value = dut.next_lock.value = 0
        return offer

    async def ack(self, packet, sequence, negative=False, stored=None, settle=6 * SLOTS):
        """`stored`: the bits of a block ACK; they come a clock after ack_bits, in the place of the fields."""
        dut = self.dut
        fields = (packet % 2**32, sequence % 2**16, 2**64 - 1, 1)
        bits = (2**32 - 1, 2**16 - 1, 2**64 - 1 if stored is None else stored, int(stored is not None))
        dut.ack_negative.value, dut.ack_valid.value = int(negative), 1
        here = False
        while True:
            for name, value in zip(("ack_packet", "ack_sequence", "ack_stored", "ack_block"), bits if here else fields, strict=True):
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
async def sends_in_order_and_moves_the_tail(dut):
    m = Manager(dut)
    await m.run()
    assert await m.send() is None
    for i in range(40):
        m.fill()
        assert await m.send() == (i, i, 0, 0)
        await m.ack(i, i)
        assert await m.tail() == (i + 1) % POINTERS
    assert m.events.count["event_confirmed"] == 40 and m.events.count["event_protocol_error"] == 0


@cocotb.test()
async def figure_4_only_the_lost_packet_goes_again(dut):
    """Packets 1 to 5 are sent; 2 is lost on the way, and so is the ACK of 4 (paper, figure 4b)."""
    m = Manager(dut, first=1, sequence=1)
    await m.run()
    m.fill(5)
    for i in range(1, 6):
        assert await m.send() == (i, i, 0, 0)
    await m.ack(1, 1)
    assert await m.send() is None
    await m.ack(3, 3)
    assert await m.send() == (2, 6, 1, 0), "the ACK of 3 proves that 2 was lost"
    assert await m.send() is None
    await m.ack(5, 5)
    assert await m.send() == (4, 7, 1, 0), "that of 5 does so for 4, but 2 is on its way again"
    assert await m.send() is None
    await m.ack(2, 6)
    assert await m.send() is None, "and the ACK of 2, sent before 4 went again, schedules nothing"
    await m.ack(4, 7)
    assert await m.tail() == 6 and int(dut.all_confirmed.value) == 1
    assert m.events.count == {"event_confirmed": 5, "event_early": 2, "event_protocol_error": 0, "event_stale": 0}


@cocotb.test()
async def a_retransmission_that_is_lost_again_goes_again(dut):
    m = Manager(dut)
    await m.run()
    m.fill(4)
    for i in range(4):
        await m.send()
    await m.ack(1, 1)
    assert await m.send() == (0, 4, 1, 0)
    await m.ack(2, 2)
    assert await m.send() is None, "sequence 2 was before the retransmission"
    m.fill(1)
    assert await m.send() == (4, 5, 0, 0)
    await m.ack(4, 5)
    assert await m.send() == (0, 6, 1, 0), "sequence 5 was behind it"


@cocotb.test()
async def a_block_ack_confirms_what_its_bits_name(dut):
    """Packet 0 is confirmed; of the others 2 and 4 are lost, and so is every ACK but that of 6, with bits for 5, 3 and 1."""
    m = Manager(dut)
    await m.run()
    m.fill(7)
    for i in range(7):
        assert await m.send() == (i, i, 0, 0)
    await m.ack(0, 0)
    await m.ack(6, 6, stored=0b110101)
    assert await m.tail() == 2
    assert m.events.count == {"event_confirmed": 5, "event_early": 2, "event_protocol_error": 0, "event_stale": 0}
    assert await m.send() == (2, 7, 1, 0)
    await m.ack(6, 6, stored=0b110111)
    assert m.events.count["event_confirmed"] == 6, "a packet behind an ACK that was confirmed already"
    assert await m.send() is None, "4 was on offer, and is not any more"
    await m.ack(2, 7, stored=2**64 - 1)
    assert await m.tail() == 7 and int(dut.all_confirmed.value) == 1
    assert m.events.count["event_confirmed"] == 7 and m.events.count["event_protocol_error"] == 0


@cocotb.test()
async def no_place_is_free_that_is_read(dut):
    """Packets are confirmed, one by one or by bits, while the first of them is sent again: its place is not free before that is done."""
    for stored in (None, 2**64 - 1):
        m = Manager(dut)
        await m.run()
        m.fill(4)
        for i in range(4):
            assert await m.send() == (i, i, 0, 0)
        await m.ack(1, 1)
        assert await m.send() == (0, 4, 1, 0)
        dut.sending.value, dut.sending_slot.value = 1, 0
        for packet, sequence in [(3, 3)] if stored else [(0, 4), (2, 2), (3, 3)]:
            await m.ack(packet, sequence, stored=stored)
        assert m.events.count["event_confirmed"] == 4 and await m.tail() == 0
        await m.ack(0, 4)
        assert await m.tail() == 0 and not int(dut.all_confirmed.value)
        dut.sending.value, dut.sending_done.value = 0, 1
        await RisingEdge(dut.clk)
        dut.sending_done.value = 0
        await ClockCycles(dut.clk, 20)
        assert await m.tail() == 4 and int(dut.all_confirmed.value) == 1
        dut.session.value = 0
        await ClockCycles(dut.clk, 3)


@cocotb.test()
async def bits_of_acks_that_do_not_count_are_not_looked_at(dut):
    m = Manager(dut)
    await m.run()
    m.fill(5)
    for _ in range(3):
        await m.send()
    await m.ack(3, 0, stored=2**64 - 1)  # not sent
    await m.ack(2**32 - 1, 0, stored=2**64 - 1)  # from before the start
    await m.ack(2, 2, negative=True, stored=2**64 - 1)
    assert m.events.count["event_confirmed"] == 0 and await m.tail() == 0


@cocotb.test()
async def early_goes_before_fresh(dut):
    m = Manager(dut)
    await m.run()
    m.fill(2)
    await m.send()
    await m.send()
    m.fill(2)  # a fresh one is on offer
    await ClockCycles(dut.clk, 5)
    await m.ack(1, 1)
    assert await m.send() == (0, 2, 1, 0)
    assert await m.send() == (2, 3, 0, 0)


@cocotb.test()
async def nack_sends_again_under_the_sequence_rule(dut):
    m = Manager(dut)
    await m.run()
    m.fill(3)
    for _ in range(3):
        await m.send()
    await m.ack(0, 0)
    await m.ack(1, 1, negative=True)
    assert await m.send() == (1, 3, 1, 0)
    await m.ack(1, 1, negative=True)
    assert await m.send() is None, "answers a frame before the last transmission"
    await m.ack(1, 3)
    await m.ack(1, 3, negative=True)
    assert await m.send() is None, "confirmed"
    await m.ack(2, 9, negative=True)
    assert await m.send() == (2, 4, 1, 0)


@cocotb.test()
async def acks_of_packets_not_sent_are_errors_and_change_nothing(dut):
    m = Manager(dut)
    await m.run()
    m.fill(3)
    await m.send()
    for packet in [1, 2, 3, 100, 2**31 - 1]:  # filled but not sent, not filled, far ahead
        await m.ack(packet, 0)
    assert m.events.count["event_protocol_error"] == 5
    await m.ack(-1, 0)
    await m.ack(-(2**31) + 1, 0)
    assert m.events.count["event_stale"] == 2 and m.events.count["event_confirmed"] == 0
    assert await m.tail() == 0
    assert await m.send() == (1, 1, 0, 0)
    await m.ack(0, 0)
    await m.ack(0, 0)
    assert m.events.count["event_stale"] == 3, "a duplicate of a confirmed packet is not an error"
    assert await m.tail() == 1


@cocotb.test()
async def numbers_wrap(dut):
    first = 2**32 - 3
    m = Manager(dut, first, 2**16 - 4)
    await m.run()
    m.fill(SLOTS)
    for i in range(SLOTS):
        assert await m.send() == ((first + i) % 2**32, (2**16 - 4 + i) % 2**16, 0, 0)
    await m.ack(first + 5, 1)  # packet 2, sequence 1: across both wraps
    lost = [await m.send() for _ in range(5)]
    assert lost == [((first + i) % 2**32, 4 + i, 1, 0) for i in range(5)]
    for i in range(SLOTS):
        await m.ack(first + i, 4 + i)
    assert int(dut.all_confirmed.value) == 1
    assert m.events.count["event_protocol_error"] == 0


@cocotb.test()
async def cyclic_scan_sends_what_stays_unconfirmed(dut):
    m = Manager(dut)
    await m.run()
    m.fill(3)
    for _ in range(3):
        await m.send()
    await m.ack(1, 1)
    assert (await m.send())[0] == 0  # early
    again = [await m.send(3000) for _ in range(4)]
    assert {offer[0] for offer in again} == {0, 2} and all(offer[2] for offer in again)
    assert [offer[1] for offer in again] == [4, 5, 6, 7]
    await m.ack(0, 7)
    await m.ack(2, 7)
    assert await m.send(5000) is None, "nothing is left"


@cocotb.test()
async def scan_waits_for_the_round_trip(dut):
    """With confirmations after 100 clocks nothing is sent twice, though the window is always full."""
    m = Manager(dut)
    await m.run()
    clock, pending, sent = 0, [], 0
    m.fill(SLOTS)

    async def acks():
        while True:
            await ClockCycles(dut.clk, 2)
            if pending and pending[0][0] <= clock:
                _, packet, sequence = pending.pop(0)
                await m.ack(packet, sequence, settle=1)
                m.fill()

    async def clocks():
        nonlocal clock
        while True:
            await RisingEdge(dut.clk)
            clock += 1

    cocotb.start_soon(clocks())
    cocotb.start_soon(acks())
    while sent < 300:
        offer = await m.send(2000)
        assert offer is not None
        if sent > 20:
            assert not offer[2], f"packet {offer[0]} went again without a loss"
        pending.append((clock + 100, offer[0], offer[1]))
        sent += 1


@cocotb.test()
async def last_packet_is_marked(dut):
    m = Manager(dut)
    await m.run()
    m.fill(2)
    await m.send()
    assert (await m.send())[3] == 0
    m.fill(1)
    dut.closed.value = 1
    assert await m.send() == (2, 2, 0, 1)
    await m.ack(1, 1)
    await m.ack(2, 2)
    assert (await m.send())[:1] == (0,)
    assert int(dut.all_confirmed.value) == 0


@cocotb.test()
async def a_confirmed_packet_is_withdrawn(dut):
    m = Manager(dut)
    await m.run()
    m.fill(3)
    for _ in range(3):
        await m.send()
    await m.ack(2, 2)  # 0 and 1 are to go again
    await m.ack(0, 0)
    assert await m.send() == (1, 3, 1, 0), "0 was confirmed before it went"
    assert await m.send() is None


@cocotb.test()
async def random_traffic_against_a_model(dut):
    """Losses, duplicates and disorder; the model knows what may be sent and what must be confirmed."""
    random = rng("model")
    for round_ in range(4):
        first, sequence = random.getrandbits(32), random.getrandbits(16)
        m = Manager(dut, first, sequence)
        await m.run()
        sent, arrived, confirmed, filled = {}, set(), set(), 0  # index: last sequence
        wire = []
        for step in range(1200):
            tail = next(i for i in range(step + 2) if i not in confirmed)
            action = random.random()
            if action < 0.35 and filled - tail < SLOTS:
                m.fill()
                filled += 1
            elif action < 0.7:
                offer = await m.send(lock=random.randrange(4))
                if offer:
                    packet, number, again, _ = offer
                    index = (packet - first) % 2**32
                    assert number == sequence, "one more for each frame"
                    sequence = (sequence + 1) % 2**16
                    assert index < filled and index not in confirmed, "inside the window, unconfirmed"
                    assert again == int(index in sent) and (again or index == len(sent)), "fresh ones in order"
                    sent[index] = number
                    if random.random() < 0.8:
                        wire.append((index, number))
            elif wire:
                at = 0 if random.random() < 0.7 else random.randrange(len(wire))
                index, number = wire[at] if random.random() < 0.1 else wire.pop(at)
                arrived.add(index)
                if random.random() < 0.8:
                    block = random.random() < 0.5
                    before = {i for i in arrived if index - 64 <= i < index} if block else set()
                    bits = sum(1 << index - 1 - i for i in before)
                    await m.ack(first + index, number, stored=bits if block else None)
                    confirmed |= before | {index}
                    tail = next(i for i in range(step + 2) if i not in confirmed)
                    assert await m.tail() == (first + tail) % POINTERS
        for _ in range(20 * SLOTS):
            if len(confirmed) == filled:
                break
            offer = await m.send(8000)
            assert offer, "what is unconfirmed always goes again"
            index = (offer[0] - first) % 2**32
            await m.ack(offer[0], offer[1])
            confirmed.add(index)
        assert confirmed == set(range(filled)) and filled > 100
        assert m.events.count["event_protocol_error"] == 0
        m.dut.session.value = 0
        await ClockCycles(dut.clk, 5)
