"""The blocks of the TCP sender, each for itself; the core as a whole: test_tcp_core.py."""

import pytest
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, from_gray, rng, run, start

RTO = {"STREAMS": 3, "MINIMUM": 300, "INITIAL": 1000, "MAXIMUM": 5000}
CONGESTION = {"STREAMS": 2, "BITS": 12}
KEEPALIVE = {"STREAMS": 3, "REST": 5, "INTERVAL": 2, "PROBES": 3}


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("tcp_rtt", RTO),
        ("tcp_congestion", CONGESTION),
        ("tcp_timer", {"STREAMS": 3}),
        ("tcp_keepalive", KEEPALIVE),
        ("tcp_arp", {"RETRY": 50}),
        ("tcp_writer", {"BITS": 4}),
    ],
)
def test_tcp_blocks(toplevel, parameters):
    run("tcp_blocks", parameters, toplevel)


def test_tcp_writer_with_packets():
    run("tcp_blocks", {"BITS": 4, "PACKETS": 1}, "tcp_writer", tests="packets")


async def operation(dut, stream, op):
    """One of tcp_rtt or tcp_congestion, to its end."""
    dut.stream.value = stream
    dut.op.value = op
    await RisingEdge(dut.clk)
    dut.op.value = 0
    for _ in range(24):
        await ReadOnly()
        if not int(dut.busy.value):
            return
        await RisingEdge(dut.clk)
    raise AssertionError("busy for too long")


@cocotb.test()
async def tcp_rtt_follows_rfc6298(dut):
    """Of three streams, each for itself."""
    random = rng("rtt")
    clear, double, sample = 1, 2, 3
    for name in ["op", "stream", "begun", "now"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    model = [None] * RTO["STREAMS"]  # (smooth, variation, time-out)
    for n in range(900):
        stream = random.randrange(RTO["STREAMS"])
        op = clear if model[stream] is None else random.choices([clear, double, sample], [1, 2, 40])[0]
        elapsed = random.randrange(1, 40) if n > 700 else random.randrange(100, 3000)
        await RisingEdge(dut.clk)
        dut.begun.value = begun = random.randrange(2**24)
        dut.now.value = (begun + elapsed) % 2**24
        await operation(dut, stream, op)
        slower = False
        if op == clear:
            model[stream] = (None, None, RTO["INITIAL"])
        elif op == double:
            smooth, variation, timeout = model[stream]
            model[stream] = (smooth, variation, min(2 * timeout, RTO["MAXIMUM"]))
        else:
            smooth, variation, _ = model[stream]
            if smooth is None:
                smooth, variation = elapsed, elapsed / 2
            else:
                slower = elapsed - smooth - 4 * variation
                variation += (abs(smooth - elapsed) - variation) / 4
                smooth += (elapsed - smooth) / 8
            model[stream] = (smooth, variation, min(RTO["MAXIMUM"], max(RTO["MINIMUM"], smooth + 4 * variation)))
        found = int(dut.timeout.value)
        assert abs(found - model[stream][2]) <= 32, (n, stream, op, found, model[stream])
        model[stream] = (*model[stream][:2], found)
        # By more than the core's rounding.
        assert abs(slower) < 8 or int(dut.slower.value) == (slower > 0), (n, stream, op, slower)
        assert op != sample or abs(int(dut.two_rounds.value) - 2 * model[stream][0]) <= 4


class Window:
    """The congestion window of RFC 5681, 6582, 6928 and 3168, in words; slow start ends, too, when the round trip grows."""

    MOST = 2 ** CONGESTION["BITS"]

    def __init__(self):
        self.window = self.threshold = self.credit = 0

    def initial(self, limit):
        return 10 * limit if limit <= 14600 // 80 else 2 * limit

    def do(self, op, amount, flight, limit, slower):
        if op == "opened":
            self.threshold = self.MOST
            self.window, self.credit = min(self.MOST, self.initial(limit)), 0
        elif op == "opened late":
            self.threshold, self.window, self.credit = self.MOST, limit, 0
        elif op == "acked" and self.window < self.threshold:
            if slower and self.window >= 2048:
                self.threshold = self.window
            self.window += min(amount, 2 * limit)
        elif op == "acked" and self.window < self.MOST:
            self.credit += amount
            if self.credit >= self.window:
                self.window += limit
                self.credit = 0
        elif op == "lost":
            self.threshold = max(flight // 2, 2 * limit)
            self.window, self.credit = self.threshold + 3 * limit, 0
        elif op == "lost too":
            self.window, self.credit = self.threshold + 3 * limit, 0
        elif op == "marked":
            self.threshold = self.window = max(flight // 2, 2 * limit)
        elif op == "another":
            self.window, self.credit = self.window + limit, 0
        elif op == "partial":
            self.window, self.credit = max(0, self.window - amount) + limit, 0
        elif op == "mended":
            self.window, self.credit = min(self.threshold, max(flight, limit) + limit), 0
        elif op == "timed out":
            self.threshold, self.window = max(flight // 2, 2 * limit), limit
        elif op == "timed out again":
            self.threshold, self.window = max(self.threshold, 2 * limit), limit
        elif op == "rested":
            self.window, self.credit = min(self.window, self.initial(limit)), 0
        self.window = min(self.window, self.MOST)


@cocotb.test()
async def tcp_congestion_follows_rfc5681(dut):
    """Operations of two streams, in any order; the segments from small to large."""
    names = ["", "opened", "opened late", "acked", "lost", "lost too", "marked", "another", "partial", "mended", "timed out",
             "timed out again", "rested"]  # fmt: skip
    weights = [0, 1, 1, 40, 2, 1, 2, 5, 3, 2, 1, 1, 1]
    random = rng("congestion")
    for name in ["op", "stream", "amount", "flight", "limit", "slower"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    model = [None] * CONGESTION["STREAMS"]
    for n in range(4000):
        stream = random.randrange(CONGESTION["STREAMS"])
        if model[stream] is None:
            model[stream], op = Window(), 1
        else:
            op = random.choices(range(len(names)), weights)[0]
        limit = random.choice([67, 182, 182, 500, 1120])
        amount = random.randrange(1, 3 * limit)
        flight = random.randrange(Window.MOST + 1)
        await RisingEdge(dut.clk)
        dut.amount.value, dut.flight.value, dut.limit.value = amount, flight, limit
        dut.slower.value = slower = random.random() < 0.2
        await operation(dut, stream, op)
        model[stream].do(names[op], amount, flight, limit, slower)
        assert int(dut.window.value) == model[stream].window, (n, names[op], stream, amount, flight, limit)


@cocotb.test()
async def tcp_timer_runs_out_when_it_should(dut):
    """Three timers that are set, stopped and set again at random."""
    random = rng("timer")
    for name in ["tick", "stream", "set", "stop", "interval"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    deadlines, now, expired = [None] * 3, 0, 0
    for clock in range(12000):
        stream, do = random.randrange(3), random.random()
        dut.stream.value = stream
        dut.tick.value = ticks = int(clock % 8 == 7)
        dut.set.value = sets = int(do < 0.01)
        dut.stop.value = stops = int(0.01 <= do < 0.013)
        dut.interval.value = interval = random.randrange(1, 60)
        await ReadOnly()
        due = int(dut.due.value)
        assert int(dut.now.value) == now
        assert int(dut.runs.value) == (deadlines[stream] is not None)
        for n, deadline in enumerate(deadlines):
            expired += due >> n & 1
            assert not due >> n & 1 or (deadline is not None and now >= deadline), "too early"
            assert due >> n & 1 or deadline is None or now <= deadline + 1, "too late"
        await RisingEdge(dut.clk)
        if sets:
            deadlines[stream] = now + interval
        if stops:
            deadlines[stream] = None
        now += ticks
    assert expired > 20


@cocotb.test()
async def tcp_keepalive_asks_each_stream_and_gives_it_up(dut):
    """Three streams, heard and asked at random; what is due or lost is so within a millisecond, the unit of the time."""
    random = rng("keepalive")
    for name in ["tick", "stream", "heard", "probed"]:
        getattr(dut, name).value = 0
    await start(dut, {"clk": 6400}, ["rst"])
    dut.tick.value = 1
    # Of each stream: since when it rests, for how long it does, probes left.
    model = [[0, KEEPALIVE["REST"], KEEPALIVE["PROBES"]] for _ in range(3)]
    found = set()
    for now in range(60_000):
        stream, do = random.randrange(3), random.random()
        asks = model[stream][2] > 0 and now - model[stream][0] > (model[stream][1] + 1) * 1000 and do < 0.1
        dut.stream.value = stream
        dut.heard.value = hears = int(not asks and do > 0.9999)
        dut.probed.value = int(asks)
        await ReadOnly()
        due, lost = int(dut.due.value), int(dut.lost.value)
        for n, (since, rest, probes) in enumerate(model):
            over = now - since - rest * 1000
            found |= {("due", n)} if due >> n & 1 else set()
            found |= {("lost", n)} if lost >> n & 1 else set()
            assert over > -1000 or now - since < 3 or not (due | lost) >> n & 1, "too early"
            assert over < 10 or (due if probes else lost) >> n & 1, "too late"
            assert now - since < 3 or not (lost if probes else due) >> n & 1
        await RisingEdge(dut.clk)
        if asks:
            model[stream] = [now, KEEPALIVE["INTERVAL"], model[stream][2] - 1]
        if hears:
            model[stream] = [now, KEEPALIVE["REST"], KEEPALIVE["PROBES"]]
    assert len(found) == 6


@cocotb.test()
async def tcp_arp_asks_learns_and_forgets(dut):
    for name in ["wanted", "forget", "learn_valid", "request_take", "learn_ip", "learn_mac"]:
        getattr(dut, name).value = 0
    dut.tick.value = 1
    dut.next_hop.value = 0x0A000001
    await start(dut, {"clk": 6400}, ["rst"])
    await ClockCycles(dut.clk, 200)
    assert int(dut.request_valid.value) == 0, "nobody wants it"
    dut.wanted.value = 1
    requests = 0
    for _ in range(520):
        await RisingEdge(dut.clk)
        dut.request_take.value = int(dut.request_valid.value) and not int(dut.request_take.value)
        requests += int(dut.request_take.value)
    assert 9 <= requests <= 11, "each 50 microseconds"

    async def learn(ip, mac):
        dut.learn_ip.value, dut.learn_mac.value, dut.learn_valid.value = ip, mac, 1
        await RisingEdge(dut.clk)
        dut.learn_valid.value = 0
        await ClockCycles(dut.clk, 2)

    await learn(0x0A000002, 5)
    assert int(dut.known.value) == 0, "another's address"
    await learn(0x0A000001, 0x020000000001)
    assert int(dut.known.value) == 1 and int(dut.address.value) == 0x020000000001
    await learn(0x0A000001, 0x020000000002)
    assert int(dut.address.value) == 0x020000000002, "it has changed"
    dut.forget.value = 1
    await RisingEdge(dut.clk)
    dut.forget.value = 0
    await ClockCycles(dut.clk, 2)
    assert int(dut.known.value) == 0
    await learn(0x0A000001, 7)
    dut.next_hop.value = 0x0A000009
    await ClockCycles(dut.clk, 3)
    assert int(dut.known.value) == 0, "of another hop"


@cocotb.test()
async def tcp_writer_fills_the_buffer_and_no_more(dut):
    """16 words: each is written once, in order; tready falls when they are unconfirmed, and without `accept`.

    With `push`, a block's last word and its mark are taken together or not at all.
    """
    random = rng("writer")
    for name in ["s_axis_tvalid", "s_axis_tdata", "s_axis_tlast", "push", "mark_ready", "accept", "tail"]:
        getattr(dut, name).value = 0
    dut.write_ready.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    written, tail, value, marks = [], 0, 0, []
    for clock in range(3000):
        dut.accept.value = int(clock % 500 < 400)
        dut.s_axis_tvalid.value = int(random.random() < 0.8)
        dut.s_axis_tdata.value = value
        dut.s_axis_tlast.value = int(value % 5 == 4)
        dut.push.value = int(clock > 1000)
        dut.mark_ready.value = int(random.random() < 0.5)
        dut.write_ready.value = int(random.random() < 0.9)
        if tail < len(written) and random.random() < 0.5 and clock % 300 > 50:
            tail += 1
        dut.tail.value = tail % 32
        await ReadOnly()
        taken = int(dut.s_axis_tvalid.value) and int(dut.s_axis_tready.value)
        assert taken == (int(dut.write_valid.value) and int(dut.write_ready.value))
        if taken:
            assert int(dut.write_address.value) == len(written) % 16
            written.append(int(dut.write_data.value))
            value += 1
            if int(dut.push.value) and int(dut.s_axis_tlast.value):
                marks.append(len(written) % 32)
        assert int(dut.mark_valid.value) == int(taken and int(dut.push.value) and int(dut.s_axis_tlast.value))
        if int(dut.mark_valid.value):
            assert int(dut.mark_ready.value) and int(dut.mark.value) == len(written) % 32
        assert len(written) - tail <= 16
        head = from_gray(int(dut.head_gray.value))
        assert (len(written) - head) % 32 <= 2, "counted soon, and not before it is written"
        if clock % 500 > 410:
            assert not int(dut.accepting.value) and not taken
        await RisingEdge(dut.clk)
    assert written == list(range(len(written))) and len(written) > 500 and len(marks) > 50


@cocotb.test()
async def packets_are_taken_whole(dut):
    """When `accept` falls inside a packet, the packet is taken to its end, also through a full buffer; then nothing more is."""
    random = rng("packets")
    for name in ["s_axis_tvalid", "s_axis_tdata", "s_axis_tlast", "push", "mark_ready", "accept", "tail"]:
        getattr(dut, name).value = 0
    dut.write_ready.value = 1
    await start(dut, {"clk": 6400}, ["rst"])
    head, tail, left, cuts, quiet = 0, 0, 0, 0, 0
    for _ in range(200):
        for accept, clocks in [(1, random.randrange(1, 60)), (0, 300)]:
            dut.accept.value = accept
            is_inside = left > 0
            for clock in range(clocks):
                length = left or random.randrange(1, 25)
                dut.s_axis_tvalid.value = int(random.random() < 0.7)
                dut.s_axis_tlast.value = int(length == 1)
                dut.write_ready.value = int(random.random() < 0.9)
                tail += int(tail < head and random.random() < 0.5)
                dut.tail.value = tail % 32
                await ReadOnly()
                was_accepting = int(dut.accepting.value)
                if int(dut.s_axis_tvalid.value) and int(dut.s_axis_tready.value):
                    assert was_accepting
                    head, left = head + 1, length - 1
                    cuts += int(not accept and clock > 4)
                elif not accept and clock > 4:
                    # The synchronizer has passed on that `accept` has fallen.
                    assert was_accepting == int(left > 0), (clock, left, is_inside)
                await RisingEdge(dut.clk)
            if not accept:
                assert left == 0 and not was_accepting
                quiet += 1
    assert cuts > 100 and quiet == 200
