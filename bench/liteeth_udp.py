"""Writes LiteEth's UDP/IP core as Verilog, for bench/udp.py. Usage: liteeth_udp.py FILE (with the packages of LITEETH there)

8 bit, with its MAC, ARP (one address) and ICMP echo, and one port of 8 bit; MAC and IP address are constants. The PHY's streams are
ports.
"""

import sys

from liteeth.common import eth_phy_description
from liteeth.core import LiteEthUDPIPCore
from litex.gen import ClockDomain, LiteXModule
from litex.gen.fhdl import verilog
from litex.soc.interconnect import stream


class Phy(LiteXModule):
    dw = 8

    def __init__(self):
        self.sink, self.source = (stream.Endpoint(eth_phy_description(self.dw)) for _ in range(2))


class Top(LiteXModule):
    def __init__(self):
        self.cd_sys, self.cd_eth_tx, self.cd_eth_rx = (ClockDomain(name) for name in ("sys", "eth_tx", "eth_rx"))
        self.phy = Phy()
        self.core = LiteEthUDPIPCore(self.phy, 0x10E2D5000000, "192.168.1.50", 125e6, dw=8)
        self.port = self.core.udp.crossbar.get_port(6000, dw=8)


top = Top()
ports = {signal for end in (top.phy.sink, top.phy.source, top.port.sink, top.port.source) for signal in end.flatten()}
ports |= {signal for domain in (top.cd_sys, top.cd_eth_tx, top.cd_eth_rx) for signal in (domain.clk, domain.rst)}
verilog.convert(top, ports, name="liteeth_udp").write(sys.argv[1])
