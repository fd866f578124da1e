// SPDX-License-Identifier: Apache-2.0
//
// ptp_node with AXI4-Stream and AXI4-Lite on its sides: PTP beside the data of a core.
//
//                  +---------------------+
//   s_axis_* =====>| ptp_node            |====> m_axis_* (to one of our MACs)
//   (of the core)  |                     |<---- m_axis_start
//   s_axil_* <====>| ptp_csr: registers  |<==== s_mac_*  (what the core gets from the MAC)
//                  +---------------------+
//                              tx_clk, rx_clk
//
// Names and handshakes are those of the AMBA specifications; resets are active high. s_axil (in tx_clk): docs/registers.md.
// m_axis_start: s_axis_start of the MAC, for the time stamps. now: {seconds 48, nanoseconds 32}; pps: a pulse each second.
`default_nettype none
module ptp_axi #(
    parameter int WIDTH = 8,
    parameter logic [37:0] PERIOD = WIDTH == 8 ? 38'd8 << 32 : 38'd27_487_790_694,  // period of tx_clk, 2^-32 ns
    parameter int SYNC_CLOCKS = WIDTH == 8 ? 125_000_000 : 156_250_000,
    parameter int SYNC_LOG = 0
) (
    input logic rst,  // resets everything; from any clock
    input logic tx_clk,
    output logic tx_rst,
    input logic [WIDTH-1:0] s_axis_tdata,
    input logic [WIDTH/8-1:0] s_axis_tkeep,
    input logic s_axis_tvalid,
    output logic s_axis_tready,
    input logic s_axis_tlast,
    input logic s_axis_tuser,
    input logic [11:0] s_axil_awaddr,
    input logic [2:0] s_axil_awprot,
    input logic s_axil_awvalid,
    output logic s_axil_awready,
    input logic [31:0] s_axil_wdata,
    input logic [3:0] s_axil_wstrb,
    input logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input logic s_axil_bready,
    input logic [11:0] s_axil_araddr,
    input logic [2:0] s_axil_arprot,
    input logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input logic s_axil_rready,
    output logic [WIDTH-1:0] m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic m_axis_tvalid,
    input logic m_axis_tready,
    output logic m_axis_tlast,
    output logic m_axis_tuser,
    input logic m_axis_start,
    output logic [79:0] now,
    output logic pps,
    output logic locked,  // the time follows the master
    input logic rx_clk,
    input logic [WIDTH-1:0] s_mac_tdata,
    input logic [WIDTH/8-1:0] s_mac_tkeep,
    input logic s_mac_tvalid,
    input logic s_mac_tlast,
    input logic s_mac_tuser
);
  // ---- registers -----------------------------------------------------------------------------
  logic csr_rst, node_rst, ended, rx_ended, rx_rst;
  sync_reset csr_reset (
      .clk    (tx_clk),
      .rst_in (rst),
      .rst_out(csr_rst)
  );
  sync_reset rx_reset (
      .clk    (rx_clk),
      .rst_in (rx_ended),
      .rst_out(rx_rst)
  );
  assign tx_rst = csr_rst;
  ptp_csr_pkg::ptp__in_t  csr_in;
  ptp_csr_pkg::ptp__out_t csr;
  ptp_csr registers (
      .clk     (tx_clk),
      .rst     (csr_rst),
      .hwif_in (csr_in),
      .hwif_out(csr),
      .*
  );
  assign ended = csr_rst || !csr.control.enable.value;
  always_ff @(posedge tx_clk) {node_rst, rx_ended} <= {2{ended}};

  // An access stands until the port has done it; a port in reset is answered for.
  logic reg_valid, reg_write, reg_ready, reg_error, read_ack, write_ack;
  logic [4:0] reg_index;
  logic [31:0] reg_wdata, reg_rdata, read_value;
  always_ff @(posedge tx_clk) begin
    {read_ack, write_ack} <= '0;
    if (csr.port.req) begin
      reg_valid <= 1'b1;
      reg_write <= csr.port.req_is_wr;
      reg_index <= csr.port.addr[6:2];
      reg_wdata <= csr.port.wr_data;
    end
    if (reg_valid && (reg_ready || node_rst)) begin
      reg_valid <= 1'b0;
      {read_ack, write_ack} <= {!reg_write, reg_write};
      read_value <= node_rst || reg_error ? '1 : reg_rdata;
    end
    if (csr_rst) {reg_valid, read_ack, write_ack} <= '0;
  end
  assign csr_in.port = {read_ack, read_value, write_ack};

  // ---- frames ----------------------------------------------------------------------------------
  link_pkg::frame_t to_mac, from_mac, from_core;
  assign from_core = {
    64'(s_axis_tdata), 8'(s_axis_tkeep), s_axis_tvalid, s_axis_tlast, s_axis_tuser
  };
  assign {m_axis_tdata, m_axis_tkeep} = {to_mac.tdata[WIDTH-1:0], to_mac.tkeep[WIDTH/8-1:0]};
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {to_mac.tvalid, to_mac.tlast, to_mac.tuser};
  assign from_mac = {64'(s_mac_tdata), 8'(s_mac_tkeep), s_mac_tvalid, s_mac_tlast, s_mac_tuser};

  // ---- port ----------------------------------------------------------------------------------
  ptp_pkg::status_t status;
  ptp_pkg::events_t events;
  logic start;
  assign {now, pps, locked} = {status.now, status.pps, status.locked};
  assign csr_in.status.locked.next = status.locked;
  ptp_node #(
      .WIDTH      (WIDTH),
      .PERIOD     (PERIOD),
      .SYNC_CLOCKS(SYNC_CLOCKS),
      .SYNC_LOG   (SYNC_LOG)
  ) node (
      .tx_rst      (node_rst),
      .mac_address ({csr.mac_high.value.value, csr.mac_low.value.value}),
      .role        (csr.control.role.value),
      .s_axis      (from_core),
      .s_axis_start(start),
      .m_axis      (to_mac),
      .s_mac       (from_mac),
      .*
  );

  logic unused;
  assign unused = &{1'b0, csr, status, events, start, to_mac};
endmodule
`default_nettype wire
