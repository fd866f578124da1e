// SPDX-License-Identifier: Apache-2.0
//
// fade_core with AXI4-Stream and AXI4-Lite on its sides: for a system with a processor, or a block design.
//
//                  +----------------------------------+
//   s_axis_* =====>| fade_core                        |====> m_axis_* (frames to the MAC)
//   (words)        |                                  |<==== s_mac_*  (frames from the MAC)
//   s_axil_* <====>| fade_csr: registers              |
//   m_axil_* <====>| command_bus: user's registers    |
//                  +----------------------------------+
//        user_clk                       tx_clk, rx_clk
//
// Names and handshakes are those of the AMBA specifications; resets are active high. s_axis: words of 64 bits, tlast ends a
// packet early. s_axil: docs/registers.md. m_axil: user commands 0x01rr and 0x02rr of the computer read and write the
// register at the address 4 rr (see command_bus); FADE v1 has none. m_axis: frames without preamble and frame check
// sequence; s_mac: the same from the MAC, with tuser at the end of a bad one. It has no tready, because frames cannot wait.
// mac_stat: pulses in rx_clk, see link_pkg::mac_stat_t.
`default_nettype none
module fade_axi #(
    parameter int PROTOCOL = 10,
    parameter int WIDTH = 64,
    parameter int PACKETS = 32,
    parameter int TICK_MIN = 256,
    parameter int TICK_INIT = PROTOCOL == 1 ? 32768 : 65536,
    parameter int TICK_MAX = 1048576,
    parameter int CHECKSUM = 0
) (
    input logic rst,
    input logic user_clk,
    output logic user_rst,
    output logic user_running,
    input logic [63:0] s_axis_tdata,
    input logic s_axis_tvalid,
    output logic s_axis_tready,
    input logic s_axis_tlast,
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
    output logic [10-1:0] m_axil_awaddr,
    output logic [2:0] m_axil_awprot,
    output logic m_axil_awvalid,
    input logic m_axil_awready,
    output logic [31:0] m_axil_wdata,
    output logic [3:0] m_axil_wstrb,
    output logic m_axil_wvalid,
    input logic m_axil_wready,
    input logic [1:0] m_axil_bresp,
    input logic m_axil_bvalid,
    output logic m_axil_bready,
    output logic [10-1:0] m_axil_araddr,
    output logic [2:0] m_axil_arprot,
    output logic m_axil_arvalid,
    input logic m_axil_arready,
    input logic [31:0] m_axil_rdata,
    input logic [1:0] m_axil_rresp,
    input logic m_axil_rvalid,
    output logic m_axil_rready,
    input logic tx_clk,
    output logic tx_rst,
    output logic [WIDTH-1:0] m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic m_axis_tvalid,
    input logic m_axis_tready,
    output logic m_axis_tlast,
    output logic m_axis_tuser,
    input logic rx_clk,
    output logic rx_rst,
    input logic [WIDTH-1:0] s_mac_tdata,
    input logic [WIDTH/8-1:0] s_mac_tkeep,
    input logic s_mac_tvalid,
    input logic s_mac_tlast,
    input logic s_mac_tuser,
    input logic [link_pkg::MAC_STATS-1:0] mac_stat
);
  localparam logic [31:0] VERSION = PROTOCOL == 1 ? fade1_pkg::CORE_VERSION : fade10g_pkg::CORE_VERSION;

  // ---- registers -----------------------------------------------------------------------------
  logic status_request, status_accepted, status_valid;
  logic [ 5:0] status_index;
  logic [31:0] status_value;
  logic csr_rst, core_rst, is_idle;
  sync_reset csr_reset (
      .clk    (user_clk),
      .rst_in (rst),
      .rst_out(csr_rst)
  );
  fade_csr_pkg::fade__in_t  csr_in;
  fade_csr_pkg::fade__out_t csr;
  fade_csr registers (
      .clk     (user_clk),
      .rst     (csr_rst),
      .hwif_in (csr_in),
      .hwif_out(csr),
      .*
  );
  always_ff @(posedge user_clk) {core_rst, is_idle} <= {2{csr_rst || !csr.control.enable.value}};
  // What stands still while the core works.
  logic [47:0] mac_address;
  logic paper_rule;
  cdc_register #(
      .WIDTH(49)
  ) settings (
      .clk (user_clk),
      .load(is_idle),
      .d   ({csr.mac_high.value.value, csr.mac_low.value.value, csr.control.paper_rule.value}),
      .q   ({mac_address, paper_rule})
  );
  assign csr_in.version.value.next  = VERSION;
  assign csr_in.status.running.next = user_running;
  status_window #(
      .INDEX_BITS(6)
  ) window (
      .clk    (user_clk),
      .rst    (csr_rst),
      .enable (!core_rst),
      .request(csr.counters.req && !csr.counters.req_is_wr),
      .address(csr.counters.addr[7:2]),
      .ack    (csr_in.counters.rd_ack),
      .data   (csr_in.counters.rd_data),
      .*
  );
  // A write does nothing.
  logic write_ack;
  always_ff @(posedge user_clk) write_ack <= !csr_rst && csr.counters.req && csr.counters.req_is_wr;
  assign csr_in.counters.wr_ack = write_ack;

  // ---- user commands -------------------------------------------------------------------------
  link_pkg::command_t  cmd;
  link_pkg::response_t rsp;
  logic cmd_ready, rsp_ready, user_clear;
  logic bus_valid, bus_write, bus_ready, bus_error;
  logic [7:0] bus_address;
  logic [31:0] bus_wdata, bus_rdata;
  command_bus commands (
      .clk           (user_clk),
      .rst           (user_rst),
      .clear         (user_clear),
      .s_cmd_code    (cmd.code),
      .s_cmd_argument(cmd.argument),
      .s_cmd_valid   (cmd.valid),
      .s_cmd_ready   (cmd_ready),
      .m_rsp_value   (rsp.value),
      .m_rsp_valid   (rsp.valid),
      .m_rsp_ready   (rsp_ready),
      .*
  );
  axil_master #(
      .ADDRESS_BITS(10)
  ) bus (
      .clk(user_clk),
      .rst(user_rst),
      .*
  );

  // ---- frames ----------------------------------------------------------------------------------
  link_pkg::frame_t to_mac, from_mac;
  assign {m_axis_tdata, m_axis_tkeep} = {to_mac.tdata[WIDTH-1:0], to_mac.tkeep[WIDTH/8-1:0]};
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {to_mac.tvalid, to_mac.tlast, to_mac.tuser};
  assign from_mac = {64'(s_mac_tdata), 8'(s_mac_tkeep), s_mac_tvalid, s_mac_tlast, s_mac_tuser};

  // ---- core ----------------------------------------------------------------------------------
  link_pkg::words_t words;
  assign words = {s_axis_tdata, s_axis_tvalid, s_axis_tlast};
  fade_pkg::status_t status;
  logic [fade_pkg::DROPS*16-1:0] status_drops;
  fade_core #(
      .PROTOCOL (PROTOCOL),
      .WIDTH    (WIDTH),
      .PACKETS  (PACKETS),
      .TICK_MIN (TICK_MIN),
      .TICK_INIT(TICK_INIT),
      .TICK_MAX (TICK_MAX),
      .STATUS   (1),
      .CHECKSUM (CHECKSUM)
  ) core (
      .rst           (core_rst),
      .first_packet  ('0),
      .first_sequence('0),
      .s_axis        (words),
      .m_cmd         (cmd),
      .m_cmd_ready   (cmd_ready),
      .s_rsp         (rsp),
      .s_rsp_ready   (rsp_ready),
      .m_axis        (to_mac),
      .s_mac         (from_mac),
      .*
  );

  logic unused;
  assign unused = &{1'b0, csr, cmd.csn, status, status_drops, to_mac};
endmodule
`default_nettype wire
