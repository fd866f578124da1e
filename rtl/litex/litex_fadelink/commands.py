"""User commands of FADE-10G on the bus of a SoC (rtl/axi/command_bus.sv), and their names for the fadelink command."""

from litex.gen import LiteXModule
from litex.soc.interconnect import axi
from migen import ClockSignal, Instance, ResetSignal, Signal

from litex_fadelink.sources import add_sources

ADDRESS_BITS = 10


class CommandBus(LiteXModule):
    """Makes AXI4-Lite accesses of a core's user commands: 0x01rr reads register rr, 0x02rr writes it.

    bus: a master for `soc.bus.add_master(name, bus)`. Register rr is at the address `base` + 4 rr: with the base of the
    CSRs they are those of the first location (`csr_map` gives a module the location 0).
    """

    def __init__(self, platform, fade, base):
        self.bus = axi.AXILiteInterface(data_width=32, address_width=32)

        # # #

        add_sources(platform, "axi/fade_axi")
        bus = self.bus
        valid, write, ready, error = Signal(), Signal(), Signal(), Signal()
        address, wdata, rdata = Signal(ADDRESS_BITS - 2), Signal(32), Signal(32)
        clocked = {"i_clk": ClockSignal("sys"), "i_rst": ResetSignal("sys")}
        self.specials += Instance(
            "command_bus",
            **clocked,
            i_clear=fade.clear,
            i_s_cmd_code=fade.command.code,
            i_s_cmd_argument=fade.command.argument,
            i_s_cmd_valid=fade.command.valid,
            o_s_cmd_ready=fade.command.ready,
            o_m_rsp_value=fade.response.value,
            o_m_rsp_valid=fade.response.valid,
            i_m_rsp_ready=fade.response.ready,
            o_bus_valid=valid,
            o_bus_write=write,
            o_bus_address=address,
            o_bus_wdata=wdata,
            i_bus_ready=ready,
            i_bus_error=error,
            i_bus_rdata=rdata,
        )
        awaddr, araddr = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        self.specials += Instance(
            "axil_master",
            p_ADDRESS_BITS=ADDRESS_BITS,
            **clocked,
            i_bus_valid=valid,
            i_bus_write=write,
            i_bus_address=address,
            i_bus_wdata=wdata,
            o_bus_ready=ready,
            o_bus_error=error,
            o_bus_rdata=rdata,
            o_m_axil_awaddr=awaddr,
            o_m_axil_awprot=bus.aw.prot,
            o_m_axil_awvalid=bus.aw.valid,
            i_m_axil_awready=bus.aw.ready,
            o_m_axil_wdata=bus.w.data,
            o_m_axil_wstrb=bus.w.strb,
            o_m_axil_wvalid=bus.w.valid,
            i_m_axil_wready=bus.w.ready,
            i_m_axil_bresp=bus.b.resp,
            i_m_axil_bvalid=bus.b.valid,
            o_m_axil_bready=bus.b.ready,
            o_m_axil_araddr=araddr,
            o_m_axil_arprot=bus.ar.prot,
            o_m_axil_arvalid=bus.ar.valid,
            i_m_axil_arready=bus.ar.ready,
            i_m_axil_rdata=bus.r.data,
            i_m_axil_rresp=bus.r.resp,
            i_m_axil_rvalid=bus.r.valid,
            o_m_axil_rready=bus.r.ready,
        )
        self.comb += [bus.aw.addr.eq(base + awaddr), bus.ar.addr.eq(base + araddr)]


def describe_csrs(soc, module, identity=None):
    """The description of a SoC's CSRs for `fadelink --registers` (docs/boards.md): those of the module in location 0.

    identity: what register 0 answers. Call it after the SoC is finalized.
    """
    lines = [f'name = "{type(soc).__name__}"']
    if identity is not None:
        lines.append(f"identity = {identity:#x}")
    number = 0
    for csr in soc.csr.regions[module].obj:
        words = (csr.size + 31) // 32
        for word in range(words):
            name = csr.name if words == 1 else f"{csr.name}_{words - 1 - word}"
            lines += ["", "[[register]]", f'name = "{name}"', f"number = {number}"]
            if hasattr(csr, "storage"):
                lines.append("writable = true")
            if getattr(csr, "description", None):
                lines.append(f"description = {csr.description.strip()!r}")
            number += 1
    return "\n".join(lines) + "\n"
