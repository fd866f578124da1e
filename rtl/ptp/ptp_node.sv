// SPDX-License-Identifier: Apache-2.0
//
// PTP with the data of a link core: a port over Ethernet (IEEE 1588-2008, annex F) between the core and its MAC.
//
//                 +----------------------------------------------+
//   s_axis ======>|---------------------------------> multiplexer |====> m_axis (to the MAC)
//   (of the core) |                                   ^          |<---- m_axis_tready, m_axis_start
//                 |        udp_ethernet_tx <== ptp_port           |
//   s_mac =======>| crossing => udp_ethernet_rx ====> ^          |====> status, events
//                 +----------------------------------------------+
//        rx_clk                              tx_clk
//
// The core reads s_mac, too, and drops PTP messages as frames of another protocol. A message waits for the end of the
// core's frame; it is stamped when it leaves. reg_*: registers of the port (udp_pkg), from 0x80000010 on.
`default_nettype none
module ptp_node #(
    parameter int WIDTH = 8,  // width of the MAC: 8 (GMII) or 64 (XGMII)
    parameter logic [37:0] PERIOD = WIDTH == 8 ? 38'd8 << 32 : 38'd27_487_790_694,  // period of tx_clk, 2^-32 ns
    parameter int SYNC_CLOCKS = WIDTH == 8 ? 125_000_000 : 156_250_000,
    parameter int SYNC_LOG = 0
) (
    input logic [47:0] mac_address,  // of this board
    input logic [1:0] role,  // at reset: 0 off, 1 slave, 2 master, 3 by the best master clock
    // transmit side
    input logic tx_clk,
    input logic tx_rst,
    input link_pkg::frame_t s_axis,  // frames of the core
    output logic s_axis_tready,
    output logic s_axis_start,
    output link_pkg::frame_t m_axis,  // frames to the MAC, of the core and of PTP
    input logic m_axis_tready,
    input logic m_axis_start,  // s_axis_start of the MAC
    output ptp_pkg::status_t status,  // time and state of the servo (ptp_pkg)
    output ptp_pkg::events_t events,  // a pulse for each event (ptp_pkg)
    input logic reg_valid,  // an access; it is stable until reg_ready
    input logic reg_write,  // 1: write; 0: read
    input logic [4:0] reg_index,  // number of the register, from 0x10 on (udp_pkg)
    input logic [31:0] reg_wdata,  // word to write
    output logic reg_ready,  // the access is done
    output logic reg_error,  // with reg_ready: there is no such register
    output logic [31:0] reg_rdata,  // with reg_ready: the word that was read
    // receive side
    input logic rx_clk,
    input logic rx_rst,
    input link_pkg::frame_t s_mac  // frames from the MAC; the core reads them, too
);
  // ---- multiplexer ---------------------------------------------------------------------------
  // A frame is offered until its end: the MAC has begun its preamble.
  link_pkg::frame_t message;
  logic message_turn, in_frame;
  assign m_axis = message_turn ? message : s_axis;
  assign s_axis_tready = m_axis_tready && !message_turn;
  assign s_axis_start = m_axis_start && !message_turn;
  always_ff @(posedge tx_clk) begin
    if (m_axis.tvalid && m_axis_tready) in_frame <= !m_axis.tlast;
    if (m_axis.tvalid ? m_axis_tready && m_axis.tlast : !in_frame) message_turn <= message.tvalid;
    if (tx_rst) {in_frame, message_turn} <= '0;
  end

  // ---- Ethernet ------------------------------------------------------------------------------
  logic [WIDTH-1:0] frame_data, payload_data, data;
  logic [3:0] frame_count, payload_count;
  logic frame_valid, frame_end, frame_good, payload_valid, payload_end, payload_good;
  logic [15:0] ethertype;
  logic claim, open, request, to_peer, message_start;
  logic [13:0] length;
  frame_crossing #(
      .WIDTH(WIDTH)
  ) crossing (
      .rx_clk       (rx_clk),
      .rx_rst       (rx_rst),
      .s_axis_tdata (s_mac.tdata[WIDTH-1:0]),
      .s_axis_tkeep (s_mac.tkeep[WIDTH/8-1:0]),
      .s_axis_tvalid(s_mac.tvalid),
      .s_axis_tlast (s_mac.tlast),
      .s_axis_tuser (s_mac.tuser),
      .tx_clk       (tx_clk),
      .tx_rst       (tx_rst),
      .m_data       (frame_data),
      .m_count      (frame_count),
      .m_valid      (frame_valid),
      .m_end        (frame_end),
      .m_good       (frame_good)
  );
  // What is not of PTP is the core's to count.
  logic [47:0] source;
  logic drop_destination, drop_protocol, drop_short;
  udp_ethernet_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(1)
  ) ethernet_rx (
      .clk             (tx_clk),
      .rst             (tx_rst),
      .mac_address     (mac_address),
      .s_data          (frame_data),
      .s_count         (frame_count),
      .s_valid         (frame_valid),
      .s_end           (frame_end),
      .s_good          (frame_good),
      .m_data          (payload_data),
      .m_count         (payload_count),
      .m_valid         (payload_valid),
      .m_end           (payload_end),
      .m_good          (payload_good),
      .source          (source),
      .ethertype       (ethertype),
      .claims          (claim),
      .any_group       (claim),
      .drop_destination(drop_destination),
      .drop_protocol   (drop_protocol),
      .drop_short      (drop_short)
  );
  assign claim = open && ethertype == ptp_pkg::ETHERTYPE;

  logic [  WIDTH-1:0] message_data;
  logic [WIDTH/8-1:0] message_keep;
  logic message_valid, message_last;
  udp_ethernet_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(1)
  ) ethernet_tx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .mac_address  (mac_address),
      .s_request    (request),
      .s_length     (length),
      .s_destination(to_peer ? ptp_pkg::MAC_PEER : ptp_pkg::MAC),
      .s_ethertype  (ptp_pkg::ETHERTYPE),
      .s_start      (message_start),
      .s_data       (data),
      .m_axis_tdata (message_data),
      .m_axis_tkeep (message_keep),
      .m_axis_tvalid(message_valid),
      .m_axis_tlast (message_last),
      .m_axis_start (m_axis_start && message_turn)
  );
  assign message = {64'(message_data), 8'(message_keep), message_valid, message_last, 1'b0};

  // ---- PTP -----------------------------------------------------------------------------------
  logic layer2, request_udp, event_port;
  ptp_port #(
      .WIDTH      (WIDTH),
      .PERIOD     (PERIOD),
      .SYNC_CLOCKS(SYNC_CLOCKS),
      .SYNC_LOG   (SYNC_LOG),
      .LAYER2     (1)
  ) ptp (
      .clk           (tx_clk),
      .rst           (tx_rst),
      .mac_address   (mac_address),
      .ip_address    ('0),
      .role          (role),
      .status        (status),
      .open          (open),
      .layer2        (layer2),
      .reg_valid     (reg_valid),
      .reg_write     (reg_write),
      .reg_index     (reg_index),
      .reg_wdata     (reg_wdata),
      .reg_ready     (reg_ready),
      .reg_error     (reg_error),
      .reg_rdata     (reg_rdata),
      .s_valid       (frame_valid),
      .s_end         (frame_end),
      .s_udp_data    ('0),
      .s_udp_count   ('0),
      .s_udp_valid   (1'b0),
      .s_udp_end     (1'b0),
      .s_udp_good    (1'b0),
      .s_l2_data     (payload_data),
      .s_l2_count    (payload_count),
      .s_l2_valid    (payload_valid),
      .s_l2_end      (payload_end),
      .s_l2_good     (payload_good),
      .request_udp   (request_udp),
      .request_l2    (request),
      .length        (length),
      .event_port    (event_port),
      .to_peer       (to_peer),
      .start         (message_start),
      .data          (data),
      .event_offset  (events.offsets),
      .drop_malformed(events.drop_malformed),
      .drop_ignored  (events.drop_ignored),
      .drop_full     (events.drop_full)
  );

  logic unused;
  assign unused = &{1'b0, source, drop_destination, drop_protocol, drop_short, layer2, request_udp, event_port};
endmodule
`default_nettype wire
