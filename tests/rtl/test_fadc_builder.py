"""FADC streaming: the queue of a module's hits, and the builder, which makes messages of what the modules send."""

import pytest
from support import fadc_model as model
from support.block import ReadOnly, RisingEdge, cocotb, rng, run, start


@pytest.mark.parametrize("toplevel,parameters", [("fadc_hit_queue", {"DEPTH": 4}), ("fadc_builder", {"MODULES": 3, "MAX_WORDS": 512})])
def test_fadc_builder(toplevel, parameters):
    run("fadc_builder", parameters, toplevel, optimize=True)


@pytest.mark.long
def test_netlist():
    """What Yosys makes of the builder does the same."""
    run("fadc_builder", {"MODULES": 3, "MAX_WORDS": 512}, "fadc_builder", netlist=True)


@cocotb.test()
async def fadc_hit_queue_counts_what_it_cannot_keep(dut):
    r = rng("queue")
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    await start(dut, {"clk": 4000}, ["rst"])
    given, got, number = 0, [], 0
    for turn in range(4000):
        give, take = r.random() < 0.5, r.random() < (0.1 if turn // 500 % 2 else 0.8)
        dut.s_valid.value = int(give)
        dut.s_tick.value = number % 16384
        dut.s_sum.value = 0
        dut.s_frame.value = 0
        dut.m_ready.value = int(take)
        await ReadOnly()
        if take and int(dut.m_valid.value):
            got.append((int(dut.m_tick.value), int(dut.m_lost.value)))
        given += give
        number += give
        await RisingEdge(dut.clk)
    dut.s_valid.value = 0
    dut.m_ready.value = 1
    for _ in range(10):
        await ReadOnly()
        if int(dut.m_valid.value):
            got.append((int(dut.m_tick.value), int(dut.m_lost.value)))
        await RisingEdge(dut.clk)
    # Each entry stands for one hit, or for as many lost ones from it on: together the whole row.
    place = 0
    for tick, lost in got:
        assert tick == place
        place += lost or 1
    assert place == given and sum(lost > 1 for _, lost in got) > 10


class BuilderInputs:
    """Drives fadc_builder: words of modules wait in rows of their own, as inboxes have them."""

    def __init__(self, dut, modules=3):
        self.dut, self.rows, self.modules = dut, [[] for _ in range(modules)], modules
        self.words, self.windows, self.frames, self.now = [], [], [], 0

    async def begin(self):
        dut = self.dut
        for name in ("now", "info_valid", "inbox_valid", "inbox_mark", "inbox_frame", "inbox_hit", "inbox_lost", "keepalive"):
            getattr(dut, name).value = 0
        for name in ("info_first", "info_last", "info_record", "info_sec", "info_nsec", "info_lost", "info_deadline"):
            getattr(dut, name).value = 0
        dut.module_enable.value = (1 << self.modules) - 1
        dut.inbox_ripe.value = (1 << self.modules) - 1
        dut.m_ready.value = 1
        dut.window_ready.value = 1
        await start(dut, {"clk": 4000}, ["rst"])
        cocotb.start_soon(self.drive())

    async def drive(self):
        dut = self.dut
        while True:
            self.now += 1
            dut.now.value = self.now
            heads = [row[0] if row else None for row in self.rows]
            pack = lambda bits, get: sum((get(head) if head else 0) << (bits * i) for i, head in enumerate(heads))
            dut.inbox_valid.value = pack(1, lambda head: 1)
            dut.inbox_mark.value = pack(1, lambda head: int(head[0] == "mark"))
            dut.inbox_frame.value = pack(8, lambda head: head[1])
            dut.inbox_hit.value = pack(31, lambda head: head[2] if head[0] == "hit" else 0)
            dut.inbox_lost.value = pack(10, lambda head: head[2] if head[0] == "mark" else 0)
            dut.info_valid.value = int(bool(self.frames))
            if self.frames:
                for name, value in self.frames[0].items():
                    getattr(dut, f"info_{name}").value = value
            await ReadOnly()
            ready = int(dut.inbox_ready.value)
            taken = [i for i in range(self.modules) if heads[i] and ready >> i & 1]
            if int(dut.m_valid.value):
                self.words.append(int(dut.m_data.value))
            closed = bool(self.frames) and bool(int(dut.info_ready.value))
            if int(dut.window_valid.value) and closed:
                self.windows.append((int(dut.window_record.value), int(dut.window_words.value), self.words))
                self.words = []
            await RisingEdge(dut.clk)
            for i in taken:
                self.rows[i].pop(0)
            if closed:
                self.frames.pop(0)

    def frame(self, number, deadline, record=None, **more):
        info = dict(first=1, last=1, record=number if record is None else record, sec=0, nsec=0, lost=0, deadline=deadline)
        self.frames.append(info | more)

    async def until_closed(self, limit=2000):
        for _ in range(limit):
            if not self.frames:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError("a frame was not closed")


def told(words):
    return [("header", word >> 15 & 0xFFFF, word >> 5 & 0x3FF, word & 31) if word >> 31 else ("hit", word) for word in words]


@cocotb.test()
async def fadc_builder_closes_at_the_marks(dut):
    """A window whose modules have all sent their marks is closed at once, long before its deadline."""
    b = BuilderInputs(dut)
    await b.begin()
    for m, row in enumerate(b.rows):
        row += [("hit", 0, 100 + m), ("mark", 0, 0), ("hit", 1, 200 + m), ("mark", 1, 0)]
    b.frame(0, 100000)
    b.frame(1, 100000)
    await b.until_closed(60)
    assert [window[:2] for window in b.windows] == [(0, 6), (1, 6)]
    for record, _, words in b.windows:
        hits = {(words[i] & 31, words[i + 1]) for i in (0, 2, 4)}
        assert hits == {(model.slot_of(m), 100 * (record + 1) + m) for m in range(3)}
    assert int(dut.timeouts.value) == 0


@cocotb.test()
async def fadc_builder_times_out(dut):
    """A module without a mark: the window leaves at its deadline and says so; what comes later is counted, not misplaced."""
    b = BuilderInputs(dut)
    await b.begin()
    b.rows[0] += [("hit", 0, 7), ("mark", 0, 0)]
    b.rows[1] += [("mark", 0, 3)]
    b.rows[2] += [("hit", 0, 9)]
    deadline = b.now + 300
    b.frame(0, deadline)
    await b.until_closed()
    assert b.now >= deadline
    words = told(b.windows[0][2])
    assert ("header", model.C["type_timeout"], 0, 5) in words and ("header", model.C["type_lost"], 3, 4) in words
    assert ("hit", 7) in words and ("hit", 9) in words and int(dut.timeouts.value) == 1
    # Two hits too late and the mark of that window, then the next window as it should be.
    b.rows[2] += [("hit", 0, 10), ("hit", 0, 11), ("mark", 0, 0), ("hit", 1, 12), ("mark", 1, 0)]
    for row in b.rows[:2]:
        row += [("mark", 1, 0)]
    b.frame(1, b.now + 100000)
    await b.until_closed(100)
    assert told(b.windows[1][2]) == [("header", 1, 0, 5), ("hit", 12)] and int(dut.late.value) == 2
    # One that skips a window has nothing in it, and is not waited for.
    b.rows[0] += [("mark", 2, 0), ("mark", 3, 0)]
    b.rows[1] += [("mark", 2, 0), ("mark", 3, 0)]
    b.rows[2] += [("hit", 3, 13), ("mark", 3, 0)]
    b.frame(2, b.now + 100000)
    b.frame(3, b.now + 100000)
    await b.until_closed(100)
    assert [told(window[2]) for window in b.windows[2:]] == [[], [("header", 1, 0, 5), ("hit", 13)]]


@cocotb.test()
async def fadc_builder_limits_a_window(dut):
    """A window above MAX_WORDS leaves without the rest of its hits, which are counted for their module."""
    b = BuilderInputs(dut)
    await b.begin()
    b.rows[0] += [("hit", 0, 1)] * 1500 + [("mark", 0, 1000)]
    b.rows[1] += [("mark", 0, 0)]
    b.rows[2] += [("mark", 0, 0)]
    b.frame(0, 100000, lost=1023)
    await b.until_closed(4000)
    record, count, words = b.windows[0]
    found = told(words)
    assert count == len(words) <= 512
    assert found[0] == ("header", model.C["type_windows_lost"], 1023, 0)
    hits = sum(word[0] == "hit" for word in found)
    assert int(dut.over.value) == 1500 - hits and hits == int(dut.hits.value) > 300
    assert found[-1] == ("header", model.C["type_lost"], 1023, 3)


@cocotb.test()
async def fadc_builder_slices(dut):
    """Slices of a long window are told apart by a header without a slot."""
    b = BuilderInputs(dut)
    await b.begin()
    for number in range(3):
        b.rows[1] += [("hit", number, 50 + number)]
        for row in b.rows:
            row += [("mark", number, 0)]
        b.frame(number, 100000, record=0, first=int(number == 0), last=int(number == 2))
    await b.until_closed(200)
    assert [window[:2] for window in b.windows] == [(0, 8)]
    assert told(b.windows[0][2]) == [
        ("header", 1, 0, 4), ("hit", 50), ("header", 1, 0, 0), ("header", 1, 0, 4), ("hit", 51),
        ("header", 1, 0, 0), ("header", 1, 0, 4), ("hit", 52)]  # fmt: skip
