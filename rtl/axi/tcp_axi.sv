// SPDX-License-Identifier: Apache-2.0
//
// tcp_core with AXI4-Stream and AXI4-Lite on its sides, and its socket buffers in block RAM.
//
//                  +---------------------+
//   s_axis_* =====>| tcp_core            |====> m_axis_* (frames to the MAC)
//   (a stream each)|                     |<==== s_mac_*  (frames from the MAC)
//   s_axil_* <====>| tcp_csr: registers  |
//                  +---------------------+
//        user_clk            tx_clk, rx_clk
//
// Names and handshakes are those of the AMBA specifications; resets are active high. s_axis: the streams, that of stream i
// in bits 64 i to 64 i + 63. s_axil: docs/registers.md. m_axis, s_mac, mac_stat: as in fade_axi. For parameters see tcp_core; for
// another memory use it in place of this module.
`default_nettype none
module tcp_axi #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 1,
    parameter int BITS = 12,
    parameter int MTU = 9000,
    parameter int BLOCKS = 0,
    parameter int PACKETS = 0,
    parameter int ECN = 0,
    parameter int SACK = 0,
    parameter int TICK_CLOCKS = WIDTH == 8 ? 125 : 156,
    parameter int TIMEOUT_MIN = 200_000,
    parameter int TIMEOUT_INIT = 1_000_000,
    parameter int TIMEOUT_MAX = 8_000_000,
    parameter int RETRY = 1_000_000,
    parameter int KEEPALIVE = 0
) (
    input logic rst,
    input logic user_clk,
    output logic user_rst,
    output logic [STREAMS-1:0] user_running,
    input logic [STREAMS*64-1:0] s_axis_tdata,
    input logic [STREAMS-1:0] s_axis_tvalid,
    output logic [STREAMS-1:0] s_axis_tready,
    input logic [STREAMS-1:0] s_axis_tlast,
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
  localparam int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1;

  // ---- registers -----------------------------------------------------------------------------
  logic status_request, status_accepted, status_valid;
  logic [tcp_pkg::INDEX_BITS-1:0] status_index;
  logic [31:0] status_value;
  logic csr_rst, core_rst, is_idle;
  sync_reset csr_reset (
      .clk    (user_clk),
      .rst_in (rst),
      .rst_out(csr_rst)
  );
  tcp_csr_pkg::tcp__in_t  csr_in;
  tcp_csr_pkg::tcp__out_t csr;
  tcp_csr registers (
      .clk     (user_clk),
      .rst     (csr_rst),
      .hwif_in (csr_in),
      .hwif_out(csr),
      .*
  );
  always_ff @(posedge user_clk) {core_rst, is_idle} <= {2{csr_rst || !csr.control.enable.value}};
  logic status_path;
  logic [STREAMS-1:0] status_connected, status_active, connected, active;
  sync_bits #(
      .WIDTH(1 + 2 * STREAMS)
  ) sync (
      .clk(user_clk),
      .d  ({status_path, status_connected, status_active}),
      .q  ({csr_in.status.path.next, connected, active})
  );
  logic [STREAMS-1:0] enable;
  sync_bits #(
      .WIDTH(STREAMS)
  ) sync_enable (
      .clk(tx_clk),
      .d  (csr.streams.enable.value[STREAMS-1:0]),
      .q  (enable)
  );
  // What stands still while the core works.
  logic [47:0] mac_address;
  net_pkg::ip_t ip;
  logic [15:0] first_local_port, all_peer_port;
  logic [13:0] mtu;
  logic push, ecn, sack;
  cdc_register #(
      .WIDTH(225)
  ) settings (
      .clk(user_clk),
      .load(is_idle),
      .d({
        csr.mac_high.value.value,
        csr.mac_low.value.value,
        csr.address.value.value,
        csr.mask.value.value,
        csr.gateway.value.value,
        csr.peer.value.value,
        csr.ports.local_port.value,
        csr.ports.peer_port.value,
        csr.mtu.value.value,
        csr.control.push.value,
        csr.control.ecn.value,
        csr.control.sack.value
      }),
      .q({mac_address, ip, first_local_port, all_peer_port, mtu, push, ecn, sack})
  );
  assign csr_in.version.value.next = tcp_pkg::CORE_VERSION;
  assign csr_in.connections.connected.next = 16'(connected);
  assign csr_in.connections.active.next = 16'(active);
  status_window #(
      .INDEX_BITS(tcp_pkg::INDEX_BITS)
  ) window (
      .clk    (user_clk),
      .rst    (csr_rst),
      .enable (!core_rst),
      .request(csr.counters.req && !csr.counters.req_is_wr),
      .address(csr.counters.addr[9:2]),
      .ack    (csr_in.counters.rd_ack),
      .data   (csr_in.counters.rd_data),
      .*
  );
  // A write does nothing.
  logic write_ack;
  always_ff @(posedge user_clk) write_ack <= !csr_rst && csr.counters.req && csr.counters.req_is_wr;
  assign csr_in.counters.wr_ack = write_ack;

  // ---- streams -------------------------------------------------------------------------------
  logic [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] words;
  logic [STREAMS-1:0][15:0] peer_port, local_port;
  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    assign words[i] = {s_axis_tdata[i*64+:64], s_axis_tvalid[i], s_axis_tlast[i]};
    assign peer_port[i] = all_peer_port;
    assign local_port[i] = first_local_port + 16'(i);
  end

  logic [STREAMS-1:0] write_valid, write_ready;
  logic [STREAMS-1:0][BITS-1:0] write_address;
  logic [STREAMS-1:0][63:0] write_data;
  logic fetch_valid, fetch_ready, fetched_valid;
  logic [STREAM_BITS+BITS-1:0] fetch_address;
  logic [63:0] fetched_data;
  tcp_memory #(
      .STREAMS(STREAMS),
      .BITS   (BITS)
  ) buffers (
      .*
  );

  // ---- frames ----------------------------------------------------------------------------------
  link_pkg::frame_t to_mac, from_mac;
  assign {m_axis_tdata, m_axis_tkeep} = {to_mac.tdata[WIDTH-1:0], to_mac.tkeep[WIDTH/8-1:0]};
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {to_mac.tvalid, to_mac.tlast, to_mac.tuser};
  assign from_mac = {64'(s_mac_tdata), 8'(s_mac_tkeep), s_mac_tvalid, s_mac_tlast, s_mac_tuser};

  // ---- core ----------------------------------------------------------------------------------
  logic [tcp_pkg::EVENTS-1:0] event_streams;
  logic event_port;
  logic [23:0] status_timeout;
  logic [29:0] status_window;
  logic [15:0] status_port;
  logic [tcp_pkg::DROPS-1:0] event_drop;
  logic [tcp_pkg::DROPS*16-1:0] status_drops;
  logic [link_pkg::MAC_STATS*16-1:0] status_mac;
  tcp_core #(
      .WIDTH       (WIDTH),
      .STREAMS     (STREAMS),
      .BITS        (BITS),
      .MTU         (MTU),
      .BLOCKS      (BLOCKS),
      .PACKETS     (PACKETS),
      .ECN         (ECN),
      .SACK        (SACK),
      .TICK_CLOCKS (TICK_CLOCKS),
      .TIMEOUT_MIN (TIMEOUT_MIN),
      .TIMEOUT_INIT(TIMEOUT_INIT),
      .TIMEOUT_MAX (TIMEOUT_MAX),
      .RETRY       (RETRY),
      .KEEPALIVE   (KEEPALIVE),
      .STATUS      (1)
  ) core (
      .rst           (core_rst),
      .first_sequence('0),
      .s_axis        (words),
      .m_axis        (to_mac),
      .s_mac         (from_mac),
      .*
  );

  logic unused;
  assign unused = &{1'b0, csr, event_streams, event_port, status_timeout, status_window, status_port, event_drop, status_drops, status_mac, to_mac};
endmodule
`default_nettype wire
