"""FADE-10G and FADE v1 (rtl/fade/fade_core.sv, docs/protocol)."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRField, CSRStatus, CSRStorage
from migen import Cat, ClockSignal, If, Instance, ResetSignal, Signal

from litex_fadelink.layouts import COMMAND, MAC_STATS, RESPONSE, WORDS, command_struct, frame_struct, frames, response_struct, words_struct
from litex_fadelink.sources import add_sources

STATUS_BITS = 6


class Fade(LiteXModule):
    """A link core.

    The user's side is in the clock domain `sys`:
    sink: words of 64 bits; a block ends with `last` (FADE-10G ignores it).
    command, response: user commands, each answered in order; without a user of them, set command.ready and ignore the answers.
    running: a run is under way.

    The MAC's side is in the clock domains `eth_tx` and `eth_rx`: connect(mac) connects it.

    protocol: 10 or 1; width: 8 (1 Gb/s) or 64 bits (10 Gb/s); packets: size of the buffer in packets, a power of two; other
    parameters: those of fade_core.

    CSRs: docs/boards.md. The MAC address and the rule of congestion control are taken while `control.enable` is 0.
    """

    def __init__(self, platform, protocol=10, width=8, packets=16, mac_address=0x02FADE000001, enable=True, **parameters):
        if protocol not in (1, 10):
            raise ValueError(f"protocol {protocol}: expected 10 (FADE-10G) or 1 (FADE v1)")
        if width not in (8, 64):
            raise ValueError(f"width {width}: expected 8 (1 Gb/s) or 64 (10 Gb/s)")
        if packets < 2 or packets & (packets - 1):
            raise ValueError(f"packets {packets}: expected a power of two, 2 or more")
        self.sink = stream.Endpoint(WORDS)
        self.command = stream.Endpoint(COMMAND)
        self.response = stream.Endpoint(RESPONSE)
        self.running = Signal()
        self.clear = Signal()
        self.tx = stream.Endpoint(frames(width))
        self.rx = stream.Endpoint(frames(width))
        self.mac_stat = Signal(MAC_STATS)

        self.control = CSRStorage(
            fields=[
                CSRField("enable", reset=int(enable), description="The core works; 0: it is in reset."),
                CSRField("paper_rule", description="Congestion control by the rule of the paper."),
            ]
        )
        self.mac_address = CSRStorage(48, reset=mac_address, description="MAC address of the core.")
        self.status = CSRStatus(fields=[CSRField("running", description="A run is under way.")])
        self.counter = CSRStorage(
            STATUS_BITS,
            description="A write reads the counter of this number (docs/registers.md: the address of FADE's counters, behind 0x100, divided by 4).",
        )
        self.counter_value = CSRStatus(32, description="The counter; all ones if the core is in reset.")
        self.counter_valid = CSRStatus(description="The counter has been read.")

        # # #

        add_sources(platform, "axi/fade_axi")
        core_rst, idle = Signal(reset=1), Signal(reset=1)
        held = Signal(49)
        self.comb += self.status.fields.running.eq(self.running)
        self.sync += [core_rst.eq(~self.control.fields.enable), idle.eq(~self.control.fields.enable)]
        self.specials += Instance(
            "cdc_register",
            p_WIDTH=49,
            i_clk=ClockSignal("sys"),
            i_load=idle,
            i_d=Cat(self.mac_address.storage, self.control.fields.paper_rule),
            o_q=held,
        )

        # A counter comes from the clock of the MAC.
        request, acknowledge, value = Signal(), Signal(), Signal(32)
        index, wanted, accepted, found, valid = Signal(STATUS_BITS), Signal(), Signal(), Signal(32), Signal()
        self.sync += [
            request.eq(self.counter.re),
            If(self.counter.re, self.counter_valid.status.eq(0)),
            If(acknowledge, self.counter_valid.status.eq(1), self.counter_value.status.eq(value)),
        ]
        self.specials += Instance(
            "status_window",
            p_INDEX_BITS=STATUS_BITS,
            i_clk=ClockSignal("sys"),
            i_rst=ResetSignal("sys"),
            i_enable=~core_rst,
            i_request=request,
            i_address=self.counter.storage,
            o_ack=acknowledge,
            o_data=value,
            o_status_index=index,
            o_status_request=wanted,
            i_status_accepted=accepted,
            i_status_value=found,
            i_status_valid=valid,
        )

        self.specials += Instance(
            "fade_core",
            p_PROTOCOL=protocol,
            p_WIDTH=width,
            p_PACKETS=packets,
            p_STATUS=1,
            **{f"p_{name}": number for name, number in parameters.items()},
            i_rst=core_rst | ResetSignal("sys"),
            i_mac_address=held[:48],
            i_paper_rule=held[48],
            i_first_packet=0,
            i_first_sequence=0,
            i_user_clk=ClockSignal("sys"),
            o_user_rst=Signal(),
            i_s_axis=words_struct(self.sink),
            o_s_axis_tready=self.sink.ready,
            o_m_cmd=command_struct(self.command),
            i_m_cmd_ready=self.command.ready,
            i_s_rsp=response_struct(self.response),
            o_s_rsp_ready=self.response.ready,
            o_user_running=self.running,
            o_user_clear=self.clear,
            i_status_index=index,
            i_status_request=wanted,
            o_status_accepted=accepted,
            o_status_value=found,
            o_status_valid=valid,
            i_tx_clk=ClockSignal("eth_tx"),
            o_tx_rst=Signal(),
            o_m_axis=frame_struct(self.tx),
            i_m_axis_tready=self.tx.ready,
            o_status=Signal(),
            i_rx_clk=ClockSignal("eth_rx"),
            o_rx_rst=Signal(),
            i_s_mac=frame_struct(self.rx),
            i_mac_stat=self.mac_stat,
            o_status_drops=Signal(),
        )
        # Frames from a MAC cannot wait.
        self.comb += self.rx.ready.eq(1)

    def connect(self, mac):
        """Statements that connect the core with a MAC; add them to comb."""
        return [self.tx.connect(mac.sink), mac.source.connect(self.rx), self.mac_stat.eq(mac.stat)]
