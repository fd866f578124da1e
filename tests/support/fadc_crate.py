"""A crate of FADCs in simulation (extra_fadc), with samples that a test chooses, and what the model makes of them."""

import numpy as np

from support import fadc_model as model
from support.block import ClockCycles, ReadOnly, RisingEdge, cocotb, start

PULSE = [24, 64, 46, 24, 11, 4, 1]  # in 64ths


class Crate:
    """extra_fadc with samples from an array [sample, module * channel], behind it the pedestal."""

    def __init__(self, dut, samples):
        self.dut, self.samples = dut, samples
        self.shape = (dut.MODULES.value.to_unsigned(), dut.CHANNELS.value.to_unsigned())
        self.links = len(dut.m_axis_tvalid)
        self.a_clock = dut.SAMPLES.value.to_unsigned()
        self.streams = [bytearray() for _ in range(self.links)]
        self.messages = [0] * self.links

    async def begin(self, window_ticks, limit=0, keepalive=0, record=5, sec=10, nsec=999_999_000, module_enable=None, stall=None, again=False):
        dut = self.dut
        modules = self.shape[0]
        for name, value in dict(
            start=0, enable=1, start_record=record, start_sec=sec, start_nsec=nsec, window_ticks=window_ticks, keepalive=keepalive,
            limit=limit, module_enable=(1 << modules) - 1 if module_enable is None else module_enable, config_valid=0,
            config_all=0, config_module=0, config_channel=0, config_item=0, config_value=0, m_axis_tready=(1 << self.links) - 1,
        ).items():  # fmt: skip
            getattr(dut, name).value = value
        self.give([])
        await self.reset(again)
        self.collector = cocotb.start_soon(self.collect(stall or (lambda: False)))

    async def reset(self, again):
        dut = self.dut
        if not again:
            await start(dut, {"clk": 4000}, ["rst"])
            return
        dut.rst.value = 1
        await ClockCycles(dut.clk, 20)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 20)

    async def configure(self, item, value, module=None, channel=0):
        dut = self.dut
        dut.config_valid.value = 1
        dut.config_all.value = int(module is None)
        dut.config_module.value = module or 0
        dut.config_channel.value = channel
        dut.config_item.value = item
        dut.config_value.value = value
        await RisingEdge(dut.clk)
        dut.config_valid.value = 0

    def give(self, rows):
        """The samples of a clock: a row for each time."""
        modules, channels = self.shape
        rows = [*rows, *[[model.PEDESTAL] * (modules * channels)] * (self.a_clock - len(rows))]
        value = 0
        for m in range(modules):
            for i, row in enumerate(rows):
                for c in range(channels):
                    value |= int(row[m * channels + c]) << 12 * ((m * self.a_clock + i) * channels + c)
        self.dut.samples.value = value

    async def play(self):
        """All samples from the start on; then waits until all is out."""
        dut = self.dut
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        for at in range(0, len(self.samples), self.a_clock):
            self.give(self.samples[at : at + self.a_clock])
            await RisingEdge(dut.clk)
        self.give([])
        for _ in range(20000):
            await RisingEdge(dut.clk)
            await ReadOnly()
            if int(dut.idle.value) == (1 << self.links) - 1 and int(dut.m_axis_tvalid.value) == 0:
                break
            await RisingEdge(dut.clk)
        else:
            raise AssertionError("it is not idle in the end")
        await RisingEdge(dut.clk)
        self.collector.cancel()

    async def collect(self, stall):
        dut = self.dut
        while True:
            dut.m_axis_tready.value = sum((not stall()) << i for i in range(self.links))
            # What is taken at the next edge.
            await ReadOnly()
            valid, ready, last = (int(getattr(dut, f"m_axis_{name}").value) for name in ("tvalid", "tready", "tlast"))
            data = int(dut.m_axis_tdata.value)
            for i in range(self.links):
                if valid >> i & 1 and ready >> i & 1:
                    self.pending = True
                    self.streams[i] += (data >> (64 * i) & (1 << 64) - 1).to_bytes(8, "little")
                    self.messages[i] += last >> i & 1
            await RisingEdge(dut.clk)

    def counter(self, index):
        return sum(int(self.dut.counters.value) >> (32 * (9 * link + index)) & 0xFFFFFFFF for link in range(self.links))

    def windows(self, window_ticks):
        """({record: sorted hits}, {record: flags}, messages) of all links."""
        hits, flags, messages = {}, {}, []
        for i, stream in enumerate(self.streams):
            found = model.read_messages(bytes(stream))
            assert len(found) == self.messages[i], "tlast ends each message"
            assert all(message.source == 0xC0DA0001 + i for message in found)
            assert [m.record for m in found] == sorted({m.record for m in found})
            for message in found:
                got, told = model.read_hits(message, window_ticks)
                hits.setdefault(message.record, []).extend(got)
                flags.setdefault(message.record, {}).update(told)
            messages.append(found)
        return {record: sorted(got) for record, got in hits.items()}, flags, messages


def baseline(dut, count):
    return np.full((count, dut.MODULES.value.to_unsigned() * dut.CHANNELS.value.to_unsigned()), model.PEDESTAL)


def add_pulse(samples, column, tick, amplitude):
    for i, part in enumerate(PULSE):
        if tick + i < len(samples):
            samples[tick + i, column] = min(samples[tick + i, column] + (amplitude * part >> 6), 4095)


def expected(samples, channels, window_ticks, windows, first=5, **settings):
    hits = model.find_hits(np.vstack([samples, np.full((16, samples.shape[1]), model.PEDESTAL)]), channels, **settings)
    return model.hits_by_window(hits, window_ticks, windows, first)
