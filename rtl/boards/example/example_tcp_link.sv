// SPDX-License-Identifier: Apache-2.0
//
// The TCP sender of the example boards: core, socket buffers and counters.
//
//                  +------------------+
//   s_axis[] =====>| example_tcp_link |====> m_axis (to the MAC)
//   settings =====>|                  |<==== s_mac (from the MAC)
//                  +------------------+
//         user_clk                tx_clk, rx_clk
//
// Streams 0 to streams-1 open connections to ip.peer:peer_port. When the source of a stream says `done`, the stream is
// closed after everything is sent. SIMULATED: times are shorter, as simulated time is slow. status.counters: of all streams together (tx_clk), then dropped frames (rx_clk).
`default_nettype none
module example_tcp_link #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 4,
    parameter int BITS = 17,
    parameter int PACKETS = 0,
    parameter int SIMULATED = 1,
    parameter int TX_KHZ = 125_000,
    parameter int TIMEOUT_MIN = SIMULATED != 0 ? 500 : 200_000,
    parameter int TIMEOUT_INIT = SIMULATED != 0 ? 5_000 : 1_000_000,
    parameter int TIMEOUT_MAX = SIMULATED != 0 ? 100_000 : 8_000_000,
    parameter int RETRY = SIMULATED != 0 ? 2_000 : 1_000_000,
    parameter int KEEPALIVE = SIMULATED != 0 ? 10 : 10_000,
    parameter int KEEPALIVE_INTERVAL = SIMULATED != 0 ? 2 : 1_000,
    parameter int KEEPALIVE_PROBES = 3
) (
    input  logic                                                           rst,
    input  example_pkg::settings_t                                         settings,
    input  logic                                                           enable,
    input  logic                   [        2:0]                           streams,
    input  logic                                                           user_clk,
    output logic                                                           user_rst,
    input  logic                   [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] s_axis,
    output logic                   [STREAMS-1:0]                           s_axis_tready,
    output logic                   [STREAMS-1:0]                           user_running,
    input  logic                   [STREAMS-1:0]                           done,
    input  logic                                                           tx_clk,
    output logic                                                           tx_rst,
    output link_pkg::frame_t                                               m_axis,
    input  logic                                                           m_axis_tready,
    output example_pkg::status_t                                           status,
    input  logic                                                           rx_clk,
    output logic                                                           rx_rst,
    input  link_pkg::frame_t                                               s_mac,
    input  link_pkg::mac_stat_t                                            mac_stat
);
  localparam int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1;

  logic [STREAMS-1:0] done_tx, enables;
  logic [STREAMS-1:0][15:0] peer_ports, local_ports;
  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    assign peer_ports[i] = settings.peer_port;
    assign local_ports[i] = settings.local_port + 16'(i);
    assign enables[i] = enable && i < 32'(streams) && !done_tx[i];
  end
  sync_bits #(
      .WIDTH(STREAMS)
  ) sync_done (
      .clk(tx_clk),
      .d  (done),
      .q  (done_tx)
  );

  // ---- core and socket buffers ---------------------------------------------------------------
  logic [STREAMS-1:0] write_valid, write_ready;
  logic [STREAMS-1:0][BITS-1:0] write_address;
  logic [STREAMS-1:0][63:0] write_data;
  logic fetch_valid, fetch_ready, fetched_valid;
  logic [STREAM_BITS+BITS-1:0] fetch_address;
  logic [63:0] fetched_data;
  tcp_memory #(
      .STREAMS(STREAMS),
      .BITS   (BITS)
  ) memory (
      .*
  );

  logic status_path;
  logic [STREAMS-1:0] status_connected, status_active;
  logic [tcp_pkg::EVENTS-1:0] event_streams;
  logic [tcp_pkg::DROPS-1:0] event_drop;
  logic event_port;
  logic [23:0] status_timeout;
  logic [29:0] status_window;
  logic [15:0] status_port;
  logic [tcp_pkg::DROPS*16-1:0] status_drops;
  logic [link_pkg::MAC_STATS*16-1:0] status_mac;
  logic status_accepted, status_valid;
  logic [31:0] status_value;
  tcp_core #(
      .WIDTH             (WIDTH),
      .STREAMS           (STREAMS),
      .BITS              (BITS),
      .ECHO_BITS         (11),
      .BLOCKS            (64),
      .PACKETS           (PACKETS),
      .ECN               (1),
      .SACK              (1),
      .TICK_CLOCKS       (TX_KHZ / 1000),
      .TIMEOUT_MIN       (TIMEOUT_MIN),
      .TIMEOUT_INIT      (TIMEOUT_INIT),
      .TIMEOUT_MAX       (TIMEOUT_MAX),
      .RETRY             (RETRY),
      .KEEPALIVE         (KEEPALIVE),
      .KEEPALIVE_INTERVAL(KEEPALIVE_INTERVAL),
      .KEEPALIVE_PROBES  (KEEPALIVE_PROBES),
      .STATUS            (1)
  ) core (
      .enable        (enables),
      .mac_address   (settings.mac_address),
      .ip            (settings.ip),
      .peer_port     (peer_ports),
      .local_port    (local_ports),
      .mtu           (settings.mtu),
      .push          (settings.push),
      .ecn           (settings.ecn),
      .sack          (settings.sack),
      .first_sequence(settings.first_sequence),
      .status_index  ('0),
      .status_request(1'b0),
      .*
  );

  // ---- counters ------------------------------------------------------------------------------
  logic [31:0] connections;
  always_comb begin
    connections = '0;
    for (int i = 0; i < STREAMS; i++) connections += 32'(status_connected[i]);
  end
  logic [tcp_pkg::EVENTS-1:0][31:0] sum;
  event_counters #(
      .EVENTS(tcp_pkg::EVENTS)
  ) events (
      .clk  (tx_clk),
      .clear(tx_rst),
      .pulse(event_streams),
      .count(sum)
  );

  logic [example_pkg::COUNTERS-1:0][31:0] counters;
  always_comb begin
    counters = '0;
    counters[0] = connections;
    counters[1] = 32'(status_path);
    counters[2] = sum[tcp_pkg::EVENT_TIMEOUT];
    counters[3] = sum[tcp_pkg::EVENT_PROBE];
    counters[4] = sum[tcp_pkg::EVENT_RESET];
    counters[5] = sum[tcp_pkg::EVENT_UNACCEPTABLE];
    counters[6] = 32'(status_window);
    counters[7] = 32'(status_port);
    for (int i = 0; i < tcp_pkg::DROPS; i++) counters[8+i] = 32'(status_drops[i*16+:16]);
    for (int i = 0; i < link_pkg::MAC_STATS; i++) counters[14] += 32'(status_mac[i*16+:16]);
  end
  assign status = {
    status_active != '0,
    status_path,
    sum[tcp_pkg::EVENT_SENT],
    sum[tcp_pkg::EVENT_RETRANSMITTED],
    sum[tcp_pkg::EVENT_FAST],
    32'(status_timeout),
    {ptp_pkg::STATUS_BITS{1'b0}},
    counters
  };

  logic unused;
  assign unused = &{
    1'b0, settings, event_drop, event_port, status_window, status_timeout, status_accepted, status_valid, status_value
  };
endmodule
`default_nettype wire
