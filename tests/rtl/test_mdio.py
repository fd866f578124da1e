"""The management interface against a model of a PHY by IEEE 802.3, clauses 22.2.4 and 28.2.4."""

import pytest
from support.block import RisingEdge, Timer, cocotb, rng, run, start

# Clocks of a millisecond here.
MS = 2000
# {register, value}: those of extra_phy_manager.
WRITES = [(0x1E, 0x0123), (0x1F, 0xABCD)]


@pytest.mark.parametrize("toplevel", ["mdio_master", "extra_phy_manager"])
@pytest.mark.parametrize("netlist", [False, pytest.param(True, marks=pytest.mark.long)])
def test_mdio(toplevel, netlist):
    run("mdio", {} if toplevel == "mdio_master" else {"MS": MS}, toplevel, netlist=netlist)


class Phy:
    """The registers of a PHY at an address, behind the two wires."""

    def __init__(self, dut, address):
        self.dut, self.address, self.registers, self.writes = dut, address, {2: 0x0141, 3: 0x0C24}, []
        self.silent = False
        dut.mdio_in.value = 1
        cocotb.start_soon(self.frames())

    def line(self):
        """What is on the wire with its pull-up."""
        return int(self.dut.mdio_out.value) if int(self.dut.mdio_drive.value) else 1

    async def bit(self):
        await RisingEdge(self.dut.mdc)
        return self.line()

    async def frames(self):
        ones = 0
        while True:
            bit = await self.bit()
            if bit:
                ones += 1
                continue
            assert ones >= 32, f"a preamble of {ones} bits"
            assert await self.bit() == 1, "start 01"
            operation = [await self.bit(), await self.bit()]
            address, index = [await self.number(5), await self.number(5)]
            mine = address == self.address and not self.silent
            if operation == [0, 1]:
                assert [await self.bit(), await self.bit()] == [1, 0], "turnaround of a write"
                value = await self.number(16)
                if mine:
                    self.writes.append((index, value))
                    self.registers[index] = value
            else:
                assert operation == [1, 0], operation
                await RisingEdge(self.dut.mdc)
                assert not int(self.dut.mdio_drive.value), "nobody drives the first bit of the turnaround of a read"
                value = self.read(index) if mine else None
                await self.drive(0 if mine else 1)
                for i in reversed(range(16)):
                    await self.drive(value >> i & 1 if mine else 1)
                await self.release()
            ones = 0

    async def number(self, bits):
        value = 0
        for _ in range(bits):
            value = value << 1 | await self.bit()
        return value

    async def drive(self, bit):
        """Behind the edge at which the bit before was read (22.3.4: up to 300 ns)."""
        await Timer(100, "ns")
        assert not int(self.dut.mdio_drive.value), "only the PHY drives the data of a read"
        self.dut.mdio_in.value = bit
        await RisingEdge(self.dut.mdc)

    async def release(self):
        await Timer(100, "ns")
        self.dut.mdio_in.value = 1

    def read(self, index):
        return self.registers.get(index, 0)


async def access(dut, phy, index, value=None):
    dut.request.value, dut.write.value = 1, int(value is not None)
    dut.phy.value, dut.index.value, dut.wdata.value = phy, index, value or 0
    while True:
        await RisingEdge(dut.clk)
        if int(dut.ready.value):
            break
    dut.request.value = 0
    while not int(dut.done.value):
        await RisingEdge(dut.clk)
    return int(dut.rdata.value), int(dut.answered.value)


@cocotb.test()
async def mdio_master_reads_and_writes(dut):
    random = rng("mdio")
    dut.request.value = 0
    phy = Phy(dut, 5)
    await start(dut, {"clk": 8000}, ["rst"])
    expected = {}
    for _ in range(20):
        index, value = random.randrange(32), random.randrange(1 << 16)
        if random.random() < 0.5:
            await access(dut, 5, index, value)
            expected[index] = value
            assert phy.writes[-1] == (index, value)
        else:
            assert await access(dut, 5, index) == (phy.registers.get(index, 0), 1)
    assert expected.items() <= phy.registers.items()
    assert await access(dut, 6, 2) == (0xFFFF, 0), "nobody is there"


@cocotb.test()
async def mdio_master_clock_is_slow_enough(dut):
    dut.request.value = 1
    dut.write.value = dut.phy.value = dut.index.value = 0
    dut.mdio_in.value = 1
    await start(dut, {"clk": 8000}, ["rst"])
    last = None
    for _ in range(200):
        await RisingEdge(dut.mdc)
        now = cocotb.utils.get_sim_time("ns")
        assert last is None or now - last >= 400, "2.5 MHz at most (22.2.2.13)"
        last = now


CONTROL, STATUS, ADVERTISE, PARTNER, ADVERTISE_1000, PARTNER_1000 = 0, 1, 4, 5, 9, 10
UP, DOWN = 0x796D, 0x7949  # link and autonegotiation complete, or neither


class LinkPhy(Phy):
    """With a partner that has abilities; the link bit stays low until it is read (22.2.4.2.13)."""

    def __init__(self, dut, address):
        super().__init__(dut, address)
        self.up, self.was_down = False, True

    def plug(self, partner, partner_1000):
        self.registers[PARTNER], self.registers[PARTNER_1000], self.up = partner, partner_1000, True

    def pull(self):
        self.up, self.was_down = False, True

    def read(self, index):
        if index != STATUS:
            return super().read(index)
        value = UP if self.up and not self.was_down else DOWN
        self.was_down = not self.up
        return value


def state(dut):
    """(up, speed code, full duplex, address, found, downs)"""
    value = int(dut.status.value)
    return value & 1, value >> 1 & 3, value >> 3 & 1, value >> 8 & 31, value >> 13 & 1, value >> 16


async def ms(dut, count):
    await Timer(count * MS * 8, "ns")


async def begin(dut, address=3):
    phy = LinkPhy(dut, address)
    cocotb.start_soon(watch_reset(dut, phy))
    await start(dut, {"clk": 8000}, ["rst"])
    return phy


async def watch_reset(dut, phy):
    """No frame comes while the PHY is in reset."""
    while True:
        await RisingEdge(dut.mdc)
        assert int(dut.phy_enable.value), "the PHY is in reset"


@cocotb.test()
async def extra_phy_manager_brings_a_phy_up(dut):
    phy = await begin(dut)
    await ms(dut, 2)
    assert not int(dut.phy_enable.value)
    await ms(dut, 2)
    assert int(dut.phy_enable.value) and phy.writes == []
    await ms(dut, 120)
    assert phy.writes == [*WRITES, (ADVERTISE, 0x0141), (ADVERTISE_1000, 0x0200), (CONTROL, 0x1200)]
    assert state(dut) == (0, 0, 0, 3, 1, 0)
    downs = 0
    # (partner, its 1000BASE-T register, speed, full duplex): all, 100 alone, 10 alone, and two that negotiate no duplex.
    for partner, partner_1000, speed, full in [(0x01E1, 0x0800, 2, 1), (0x01E1, 0, 1, 1), (0x0061, 0, 0, 1), (0x0081, 0, 1, 0), (0x0021, 0, 0, 0)]:
        phy.plug(partner, partner_1000)
        await ms(dut, 40)
        assert state(dut) == (1, speed, full, 3, 1, downs), (partner, partner_1000)
        phy.pull()
        await ms(dut, 40)
        downs += 1
        assert state(dut) == (0, speed, full, 3, 1, downs)


@cocotb.test()
async def extra_phy_manager_sees_a_link_that_was_down_between_two_looks(dut):
    phy = await begin(dut)
    await ms(dut, 100)
    phy.plug(0x01E1, 0x0800)
    await ms(dut, 40)
    phy.pull()
    phy.plug(0x01E1, 0x0800)
    await ms(dut, 40)
    assert state(dut) == (1, 2, 1, 3, 1, 1)


@cocotb.test()
async def extra_phy_manager_begins_again_when_the_phy_is_lost(dut):
    phy = await begin(dut, 31)
    await ms(dut, 600)
    phy.plug(0x01E1, 0x0800)
    await ms(dut, 40)
    assert state(dut) == (1, 2, 1, 31, 1, 0)
    phy.silent = True
    await ms(dut, 12)
    assert state(dut)[0] == 0 and state(dut)[4:] == (0, 1)
    phy.silent = False
    phy.writes.clear()
    await ms(dut, 600)
    assert phy.writes[-1] == (CONTROL, 0x1200) and state(dut) == (1, 2, 1, 31, 1, 1)
