"""Fadelink cores for LiteX: a link core with its streams, commands and CSRs, the MACs, and user commands on the bus of a SoC."""

from litex_fadelink.commands import CommandBus, describe_csrs
from litex_fadelink.fade import Fade
from litex_fadelink.mac import GmiiMac, XgmiiMac

__all__ = ["CommandBus", "Fade", "GmiiMac", "XgmiiMac", "describe_csrs"]
