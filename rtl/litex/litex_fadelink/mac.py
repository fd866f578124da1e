"""The MACs (rtl/mac)."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, ClockSignal, Instance, ResetSignal, Signal

from litex_fadelink.layouts import MAC_STATS, frame_struct, frames
from litex_fadelink.sources import add_sources


class _Mac(LiteXModule):
    """sink: frames to the line (`eth_tx`); source: frames from the line (`eth_rx`), which cannot wait; stat: pulses, see layouts."""

    def __init__(self, width):
        self.sink = stream.Endpoint(frames(width))
        self.source = stream.Endpoint(frames(width))
        self.stat = Signal(MAC_STATS)
        self.start = Signal()

    def _common(self):
        return {
            "i_tx_clk": ClockSignal("eth_tx"),
            "i_tx_rst": ResetSignal("eth_tx"),
            "i_s_axis": frame_struct(self.sink),
            "o_s_axis_tready": self.sink.ready,
            "o_s_axis_start": self.start,
            "i_rx_clk": ClockSignal("eth_rx"),
            "i_rx_rst": ResetSignal("eth_rx"),
            "o_m_axis": frame_struct(self.source),
            "o_mac_stat": self.stat,
        }


class GmiiMac(_Mac):
    """The MAC of 1 Gb/s between frames and GMII. pads: tx_data, tx_en, tx_er, rx_data, rx_dv, rx_er."""

    def __init__(self, platform, pads):
        super().__init__(width=8)
        add_sources(platform, "mac/gmii_mac")
        self.specials += Instance(
            "gmii_mac",
            **self._common(),
            i_tx_ce=1,
            i_rx_ce=1,
            o_gmii_tx=Cat(pads.tx_er, pads.tx_en, pads.tx_data),
            i_gmii_rx=Cat(pads.rx_er, pads.rx_dv, pads.rx_data),
        )


class XgmiiMac(_Mac):
    """The MAC of 10 Gb/s between frames and XGMII of 64 bits. pads: tx_data, tx_ctl, rx_data, rx_ctl."""

    def __init__(self, platform, pads):
        super().__init__(width=64)
        add_sources(platform, "mac/xgmii_mac")
        self.specials += Instance(
            "xgmii_mac",
            **self._common(),
            o_paused=Signal(),
            o_xgmii_tx=Cat(pads.tx_ctl, pads.tx_data),
            i_xgmii_rx=Cat(pads.rx_ctl, pads.rx_data),
        )
