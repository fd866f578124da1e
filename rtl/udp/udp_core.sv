// SPDX-License-Identifier: Apache-2.0
//
// UDP/IP stack (docs/protocol/udp.md): streams of words and a slow control over UDP, ARP, ICMP echo, PTP.
//
//                   +--------------------------------------------------------------+
//   s_axis ========>| stream --+                                                   |
//                   |          +-> UDP --+                                         |
//   reg_* <========>| control -+         +-> IP --+                                |
//                   |            ICMP ---+        +-> Ethernet ======================>| m_axis (to the MAC)
//   m_udp <=========|                      ARP ---+        <- m_axis_start            |
//                   |  (the same layers back)  <===== Ethernet <== crossing <=========| s_mac (from the MAC)
//                   +--------------------------------------------------------------+
//      user_clk                          tx_clk                            rx_clk
//
// One module for each layer, connected by the data-pull contract (docs/protocol/udp.md): no layer stores a frame.
// Everything except the user side of the streams is in tx_clk.
//
// There are STREAMS streams, 1 to 8, with their own ports, which share the line by turns. With RECEIVE datagrams to local_port
// also come to the user (m_udp, see udp_receive); without SEND that is all that a stream does.
//
// Without PTP, CONTROL (slow control), ICMP or ARP their logic is left out. Without ARP all packets go to peer_mac; without
// slow control the inputs, which must be stable, are the settings of the streams.
//
// ip.peer, peer_port, payload and checksum are the settings of the streams at reset; `start`: they are enabled. Slow control
// changes them (udp_pkg). status_enabled is the register; enable low ends the streams in any case.
// `events`, one pulse each, are counted in registers that slow control reads; STATUS adds the reader for the user
// side (see link_shell), and counters of the MAC.
`default_nettype none
module udp_core #(
    parameter int WIDTH = 8,
    parameter int STREAMS = 1,  // streams, 1 to 8
    parameter int SEND = 1,  // 0: the streams only receive
    parameter int RECEIVE = 0,  // 1: datagrams to local_port come to m_udp
    parameter int PAYLOAD_MAX = 8972,  // largest value of the input payload, in bytes
    parameter int SLOTS = WIDTH == 8 ? 2 : 4,  // datagrams that a stream buffers
    parameter int PTP = 1,  // 0: without PTP
    parameter int CONTROL = 1,  // 0: without slow control
    parameter int ICMP = 1,  // 0: without echo
    parameter int ECHO_BYTES = 2048,  // longest echo request, in bytes
    parameter int ARP = 1,  // 0: without ARP; all packets go to peer_mac
    parameter int ARP_ENTRIES = 4,  // addresses that are stored
    parameter int ARP_TIMEOUT = 60_000,  // milliseconds that an address is valid
    parameter int ARP_RETRY = 100,  // milliseconds between two requests
    parameter int TICK_CLOCKS = WIDTH == 8 ? 125_000 : 156_250,  // clocks of tx_clk in a millisecond
    parameter logic [37:0] PERIOD = WIDTH == 8 ? 38'd8 << 32 : 38'd27_487_790_694,  // period of tx_clk, 2^-32 ns
    parameter int SYNC_CLOCKS = WIDTH == 8 ? 125_000_000 : 156_250_000,
    parameter int SYNC_LOG = 0,
    parameter int STATUS = 0
) (
    input logic rst,  // resets everything; from any clock
    // settings
    input logic enable,  // 0: the streams end
    input logic [47:0] mac_address,  // of this board
    input net_pkg::ip_t ip,  // addresses of this board, its gateway and the peer
    input logic [47:0] peer_mac,  // of the peer, without ARP
    input logic [STREAMS-1:0][15:0] peer_port,  // of each stream, at the peer
    input logic [STREAMS-1:0][15:0] local_port,  // of each stream, here
    input logic [13:0] payload,  // of a datagram: 16 to PAYLOAD_MAX bytes, a multiple of 4
    input logic checksum,  // 1: datagrams have a UDP checksum
    input logic [STREAMS-1:0] start,  // of each stream: it is enabled at reset
    input logic [1:0] ptp_role,  // at reset: 0 off, 1 slave, 2 master, 3 by the best master clock
    // user side
    input logic user_clk,
    output logic user_rst,
    input logic [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] s_axis,  // a link_pkg::words_t of each stream
    output logic [STREAMS-1:0] s_axis_tready,
    output logic [STREAMS-1:0] user_running,  // of each stream: it is enabled and takes words
    input logic [5:0] status_index,
    input logic status_request,
    output logic status_accepted,
    output logic [31:0] status_value,
    output logic status_valid,
    // datagrams to the user (tx_clk)
    output link_pkg::frame_t m_udp,  // datagrams, without tready (see udp_receive)
    output logic [2:0] m_udp_stream,  // whose local_port it came to; valid with tlast
    output logic [31:0] m_udp_ip,  // of the sender; valid with tlast
    output logic [15:0] m_udp_port,  // of the sender; valid with tlast
    // the user's registers (tx_clk)
    output logic reg_valid,  // an access; it is stable until reg_ready
    output logic reg_write,  // 1: write; 0: read
    output logic [31:0] reg_address,  // number of the register
    output logic [31:0] reg_wdata,  // word to write
    input logic reg_ready,  // the access is done
    input logic reg_error,  // with reg_ready: there is no such register
    input logic [31:0] reg_rdata,  // with reg_ready: the word that was read; reg_wdata for a write
    // frames to the MAC
    input logic tx_clk,
    output logic tx_rst,
    output link_pkg::frame_t m_axis,  // frames to the MAC; they cannot wait
    input logic m_axis_start,
    output logic [STREAMS-1:0] status_path,  // of each stream: its next hop is known
    output logic [STREAMS-1:0] status_active,  // of each stream: a run is under way
    output logic [STREAMS-1:0] status_enabled,  // of each stream: the register that enables it
    output ptp_pkg::status_t status_time,  // time of PTP and state of its servo (ptp_pkg)
    output udp_pkg::events_t events,  // a pulse for each event (udp_pkg)
    // frames from the MAC
    input logic rx_clk,
    output logic rx_rst,
    input link_pkg::frame_t s_mac,
    input link_pkg::mac_stat_t mac_stat,
    output logic [link_pkg::MAC_STATS*16-1:0] status_mac  // the counters of mac_stat, 16 bits each
);
  localparam int ECHO_BITS = $clog2(ECHO_BYTES / (WIDTH / 8));

  if (WIDTH != 8 && WIDTH != 64) begin : g_check_width
    $error("udp_core: WIDTH must be 8 or 64");
  end
  if (STREAMS < 1 || STREAMS > 8) begin : g_check_streams
    $error("udp_core: STREAMS must be 1 to 8");
  end

  // ---- shell ---------------------------------------------------------------------------------
  link_pkg::frame_t rx, tx;
  logic tick_ms, tx_tready;
  logic [15:0] rx_count;
  logic [31:0] tx_count, count;
  logic count_valid, counter_read;
  logic [4:0] tx_index, counter_index;
  link_shell #(
      .WIDTH      (WIDTH),
      .ADAPT      (0),
      .TICK_CLOCKS(TICK_CLOCKS),
      .STATUS     (STATUS),
      .VERSION    (udp_pkg::CORE_VERSION)
  ) shell (
      .tick(tick_ms),
      .m_axis_tready(1'b0),
      .tx_events(1'b0),
      .tx_word(count),
      .tx_word_valid(count_valid && !counter_read),
      .rx_events(1'b0),
      .rx_count(rx_count),
      .mac_count(status_mac),
      .*
  );

  counter_memory #(
      .EVENTS(udp_pkg::COUNTERS)
  ) counters (
      .clk   (tx_clk),
      .rst   (tx_rst),
      .page  (1'b0),
      .events(events),
      .index (counter_read ? counter_index : tx_index),
      .value (count),
      .valid (count_valid)
  );

  logic [WIDTH-1:0] frame_data;
  logic [3:0] frame_count;
  logic frame_valid, frame_end, frame_good;
  frame_crossing #(
      .WIDTH(WIDTH)
  ) crossing (
      .rx_clk       (rx_clk),
      .rx_rst       (rx_rst),
      .s_axis_tdata (rx.tdata[WIDTH-1:0]),
      .s_axis_tkeep (rx.tkeep[WIDTH/8-1:0]),
      .s_axis_tvalid(rx.tvalid),
      .s_axis_tlast (rx.tlast),
      .s_axis_tuser (rx.tuser),
      .tx_clk       (tx_clk),
      .tx_rst       (tx_rst),
      .m_data       (frame_data),
      .m_count      (frame_count),
      .m_valid      (frame_valid),
      .m_end        (frame_end),
      .m_good       (frame_good)
  );

  // ---- network -------------------------------------------------------------------------------
  logic ip_request, ip_start;
  logic [13:0] ip_length;
  logic [31:0] ip_to, packet_source;
  logic [STREAMS-1:0][31:0] stream_ip;
  logic [WIDTH-1:0] ip_data, packet_data, l2_data;
  logic [3:0] packet_count, l2_count;
  logic packet_valid, packet_end, packet_good, packet_claimed, packet_addresses;
  logic [STREAMS-1:0] stream_active, stream_changed;
  logic ptp_open, ptp_layer2, ptp_to_peer, l2_valid, l2_end, l2_good, l2_request, l2_start;
  localparam int UDP_PTP = 0, UDP_CONTROL = 1, UDP_STREAM = 2;
  localparam int CLIENTS = UDP_STREAM + STREAMS;
  localparam int FIRST = PTP != 0 ? UDP_PTP : UDP_CONTROL;
  logic [CLIENTS-1:0] port_request, port_start, port_checksum;
  logic [CLIENTS-1:0][13:0] port_length;
  logic [CLIENTS-1:0][31:0] port_to;
  logic [CLIENTS-1:0][15:0] port_from, port_to_port, port_sum;
  logic [CLIENTS-1:0][WIDTH-1:0] port_data;
  udp_network #(
      .WIDTH      (WIDTH),
      .STREAMS    (STREAMS),
      .ICMP       (ICMP),
      .ECHO_BITS  (ECHO_BITS),
      .ARP        (ARP),
      .ARP_ENTRIES(ARP_ENTRIES),
      .ARP_TIMEOUT(ARP_TIMEOUT),
      .ARP_RETRY  (ARP_RETRY),
      .PTP        (PTP)
  ) network (
      .clk           (tx_clk),
      .rst           (tx_rst),
      .tick_ms       (tick_ms),
      .mac_address   (mac_address),
      .ip            (ip),
      .peer_mac      (peer_mac),
      .ptp_open      (ptp_open),
      .ptp_layer2    (ptp_layer2),
      .stream_ip     (stream_ip),
      .stream_changed(stream_changed),
      .stream_active (stream_active),
      .stream_path   (status_path),
      .s_data        (frame_data),
      .s_count       (frame_count),
      .s_valid       (frame_valid),
      .s_end         (frame_end),
      .s_good        (frame_good),
      .tx            (tx),
      .tx_start      (m_axis_start),
      .m_data        (packet_data),
      .m_count       (packet_count),
      .m_valid       (packet_valid),
      .m_addresses   (packet_addresses),
      .m_end         (packet_end),
      .m_good        (packet_good),
      .m_claimed     (packet_claimed),
      .m_source      (packet_source),
      .request       (ip_request),
      .length        (ip_length),
      .destination   (ip_to),
      .start         (ip_start),
      .data          (ip_data),
      .m_l2_data     (l2_data),
      .m_l2_count    (l2_count),
      .m_l2_valid    (l2_valid),
      .m_l2_end      (l2_end),
      .m_l2_good     (l2_good),
      .l2_request    (l2_request),
      .l2_length     (port_length[UDP_PTP]),
      .l2_to_peer    (ptp_to_peer),
      .l2_start      (l2_start),
      .l2_data       (port_data[UDP_PTP]),
      .events        (events.network)
  );

  // ---- UDP -----------------------------------------------------------------------------------
  logic control_claim, ptp_claim;
  logic [STREAMS-1:0] with_checksum, stream_claims;
  logic [15:0] ptp_port_number;
  assign port_from = {local_port, udp_pkg::CONTROL_PORT, ptp_port_number};
  assign port_checksum = {with_checksum, 2'b10};
  udp_datagram_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(CLIENTS - FIRST),
      .FAIR   (UDP_STREAM - FIRST)
  ) datagram_tx (
      .clk               (tx_clk),
      .rst               (tx_rst),
      .ip_address        (ip.address),
      .s_request         (port_request[CLIENTS-1:FIRST]),
      .s_length          (port_length[CLIENTS-1:FIRST]),
      .s_destination     (port_to[CLIENTS-1:FIRST]),
      .s_port            (port_from[CLIENTS-1:FIRST]),
      .s_destination_port(port_to_port[CLIENTS-1:FIRST]),
      .s_checksum        (port_checksum[CLIENTS-1:FIRST]),
      .s_sum             (port_sum[CLIENTS-1:FIRST]),
      .s_start           (port_start[CLIENTS-1:FIRST]),
      .s_data            (port_data[CLIENTS-1:FIRST]),
      .m_request         (ip_request),
      .m_length          (ip_length),
      .m_destination     (ip_to),
      .m_start           (ip_start),
      .m_data            (ip_data)
  );

  logic [WIDTH-1:0] datagram_data;
  logic [3:0] datagram_count;
  logic datagram_valid, datagram_end, datagram_good;
  logic [31:0] datagram_source;
  logic [15:0] datagram_source_port, datagram_port;
  udp_datagram_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2 + STREAMS)
  ) datagram_rx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .s_data       (packet_data),
      .s_count      (packet_count),
      .s_valid      (packet_valid),
      .s_addresses  (packet_addresses),
      .s_end        (packet_end),
      .s_good       (packet_good),
      .s_source     (packet_source),
      .s_claimed    (packet_claimed),
      .m_data       (datagram_data),
      .m_count      (datagram_count),
      .m_valid      (datagram_valid),
      .m_end        (datagram_end),
      .m_good       (datagram_good),
      .source       (datagram_source),
      .source_port  (datagram_source_port),
      .port         (datagram_port),
      .claims       ({stream_claims, control_claim, ptp_claim}),
      .drop_short   (events.drop_udp_short),
      .drop_checksum(events.drop_udp_checksum),
      .drop_port    (events.drop_port)
  );
  assign control_claim = CONTROL != 0 && datagram_port == udp_pkg::CONTROL_PORT;
  assign ptp_claim = ptp_open && !ptp_layer2
      && (datagram_port == ptp_pkg::PORT_EVENT || datagram_port == ptp_pkg::PORT_GENERAL);

  // ---- PTP -----------------------------------------------------------------------------------
  logic ptp_event, ptp_valid, ptp_ready, ptp_error;
  logic [ 4:0] ptp_index;
  logic [31:0] ptp_rdata;
  if (PTP != 0) begin : g_ptp
    ptp_port #(
        .WIDTH      (WIDTH),
        .PERIOD     (PERIOD),
        .SYNC_CLOCKS(SYNC_CLOCKS),
        .SYNC_LOG   (SYNC_LOG)
    ) ptp (
        .clk           (tx_clk),
        .rst           (tx_rst),
        .mac_address   (mac_address),
        .ip_address    (ip.address),
        .role          (ptp_role),
        .status        (status_time),
        .open          (ptp_open),
        .layer2        (ptp_layer2),
        .reg_valid     (ptp_valid),
        .reg_write     (reg_write),
        .reg_index     (ptp_index),
        .reg_wdata     (reg_wdata),
        .reg_ready     (ptp_ready),
        .reg_error     (ptp_error),
        .reg_rdata     (ptp_rdata),
        .s_valid       (frame_valid),
        .s_end         (frame_end),
        .s_udp_data    (datagram_data),
        .s_udp_count   (datagram_count),
        .s_udp_valid   (datagram_valid),
        .s_udp_end     (datagram_end),
        .s_udp_good    (datagram_good && ptp_claim),
        .s_l2_data     (l2_data),
        .s_l2_count    (l2_count),
        .s_l2_valid    (l2_valid),
        .s_l2_end      (l2_end),
        .s_l2_good     (l2_good),
        .request_udp   (port_request[UDP_PTP]),
        .request_l2    (l2_request),
        .length        (port_length[UDP_PTP]),
        .event_port    (ptp_event),
        .to_peer       (ptp_to_peer),
        .start         (l2_start || port_start[UDP_PTP]),
        .data          (port_data[UDP_PTP]),
        .event_offset  (events.ptp_offsets),
        .drop_malformed(events.drop_ptp_malformed),
        .drop_ignored  (events.drop_ptp_ignored),
        .drop_full     (events.drop_ptp_full)
    );
  end else begin : g_no_ptp
    assign {status_time, ptp_open, ptp_layer2, ptp_ready, ptp_error, ptp_rdata} = {
      ptp_pkg::STATUS_BITS'(0), 4'b0011, 32'd0
    };
    assign {port_request[UDP_PTP], l2_request, port_length[UDP_PTP], ptp_event, ptp_to_peer} = '0;
    assign {port_data[UDP_PTP], port_start[UDP_PTP]} = '0;
    assign {events.ptp_offsets, events.drop_ptp_malformed, events.drop_ptp_ignored, events.drop_ptp_full} = '0;
  end
  assign port_to[UDP_PTP] = ptp_to_peer ? ptp_pkg::GROUP_PEER : ptp_pkg::GROUP;
  assign ptp_port_number = ptp_event ? ptp_pkg::PORT_EVENT : ptp_pkg::PORT_GENERAL;
  assign port_to_port[UDP_PTP] = ptp_port_number;
  assign port_sum[UDP_PTP] = '0;

  // ---- slow control --------------------------------------------------------------------------
  logic [STREAMS-1:0] stream_enable;
  logic [STREAMS-1:0][15:0] stream_port;
  logic [STREAMS-1:0][13:0] stream_payload;
  logic [STREAMS-1:0][7:0] run;
  logic [STREAMS-1:0][31:0] last_count;
  if (CONTROL != 0) begin : g_control
    logic control_ready, control_error, control_valid;
    logic [31:0] control_rdata;
    udp_control #(
        .WIDTH(WIDTH)
    ) control (
        .clk             (tx_clk),
        .rst             (tx_rst),
        .s_data          (datagram_data),
        .s_count         (datagram_count),
        .s_valid         (datagram_valid),
        .s_end           (datagram_end),
        .s_good          (datagram_good),
        .s_claimed       (control_claim),
        .s_source        (datagram_source),
        .s_source_port   (datagram_source_port),
        .drop_short      (events.drop_control_short),
        .drop_full       (events.drop_control_full),
        .request         (port_request[UDP_CONTROL]),
        .length          (port_length[UDP_CONTROL]),
        .destination     (port_to[UDP_CONTROL]),
        .destination_port(port_to_port[UDP_CONTROL]),
        .sum             (port_sum[UDP_CONTROL]),
        .start           (port_start[UDP_CONTROL]),
        .data            (port_data[UDP_CONTROL]),
        .reg_valid       (control_valid),
        .reg_write       (reg_write),
        .reg_address     (reg_address),
        .reg_wdata       (reg_wdata),
        .reg_ready       (control_ready),
        .reg_error       (control_error),
        .reg_rdata       (control_rdata)
    );
    udp_registers #(
        .STREAMS    (STREAMS),
        .PAYLOAD_MAX(PAYLOAD_MAX)
    ) registers (
        .clk       (tx_clk),
        .rst       (tx_rst),
        .peer_ip   (ip.peer),
        .reg_valid (control_valid),
        .reg_ready (control_ready),
        .reg_error (control_error),
        .reg_rdata (control_rdata),
        .user_valid(reg_valid),
        .user_ready(reg_ready),
        .user_error(reg_error),
        .user_rdata(reg_rdata),
        .*
    );
  end else begin : g_no_control
    // The settings are the stream's.
    assign {reg_valid, reg_write, reg_address, reg_wdata, ptp_valid, ptp_index, counter_read, counter_index} = '0;
    assign {events.drop_control_short, events.drop_control_full, stream_changed} = '0;
    assign {port_request[UDP_CONTROL], port_length[UDP_CONTROL], port_to[UDP_CONTROL]} = '0;
    assign {port_to_port[UDP_CONTROL], port_sum[UDP_CONTROL], port_data[UDP_CONTROL]} = '0;
    assign {stream_enable, stream_ip, stream_port, with_checksum} = {
      start, {STREAMS{ip.peer}}, peer_port, {STREAMS{checksum}}
    };
    assign stream_payload = {STREAMS{payload > 14'(PAYLOAD_MAX) ? 14'(PAYLOAD_MAX) : payload}};
  end

  // ---- streams -------------------------------------------------------------------------------
  udp_streams #(
      .WIDTH      (WIDTH),
      .STREAMS    (STREAMS),
      .SEND       (SEND),
      .PAYLOAD_MAX(PAYLOAD_MAX),
      .SLOTS      (SLOTS)
  ) streams (
      .path      (status_path),
      .request   (port_request[CLIENTS-1:UDP_STREAM]),
      .length    (port_length[CLIENTS-1:UDP_STREAM]),
      .sum       (port_sum[CLIENTS-1:UDP_STREAM]),
      .start     (port_start[CLIENTS-1:UDP_STREAM]),
      .data      (port_data[CLIENTS-1:UDP_STREAM]),
      .event_sent(events.datagrams),
      .*
  );
  assign port_to[CLIENTS-1:UDP_STREAM] = stream_ip;
  assign port_to_port[CLIENTS-1:UDP_STREAM] = stream_port;
  assign status_active = stream_active | (enable ? stream_enable : '0);
  assign status_enabled = stream_enable;
  always_comb
    for (int i = 0; i < STREAMS; i++)
      stream_claims[i] = RECEIVE != 0 && datagram_port == local_port[i];
  if (RECEIVE != 0) begin : g_receive
    udp_receive #(
        .WIDTH  (WIDTH),
        .STREAMS(STREAMS)
    ) receive (
        .clk          (tx_clk),
        .rst          (tx_rst),
        .s_data       (datagram_data),
        .s_count      (datagram_count),
        .s_valid      (datagram_valid),
        .s_end        (datagram_end),
        .s_good       (datagram_good),
        .s_claims     (packet_claimed ? stream_claims : '0),
        .s_source     (datagram_source),
        .s_source_port(datagram_source_port),
        .m_axis       (m_udp),
        .m_stream     (m_udp_stream),
        .m_ip         (m_udp_ip),
        .m_port       (m_udp_port)
    );
  end else begin : g_no_receive
    assign {m_udp, m_udp_stream, m_udp_ip, m_udp_port} = '0;
  end

  logic unused;
  assign unused = &{
      1'b0, reg_ready, reg_error, reg_rdata, start, ptp_role, datagram_data, datagram_count, datagram_valid, datagram_end, datagram_good,
      datagram_source, datagram_source_port, run, last_count, ptp_valid, ptp_index, ptp_ready, ptp_error, ptp_rdata,
      l2_data, l2_count, l2_valid, l2_end, l2_good, l2_start, port_request, port_length, port_data, port_start, port_from, port_to, port_to_port, port_checksum, port_sum, tx_tready, rx_count, tx_count
  };
endmodule
`default_nettype wire
