// The TCP sender of the example boards: core, socket buffers and counters, without a MAC.
//
//                  +------------------+
//   s_axis_*[] ===>| example_tcp_link |====> m_axis_* (to the MAC)
//   settings =====>|                  |<==== s_mac_* (from the MAC)
//   mac_stat =====>|                  |
//                  +------------------+
//         user_clk                tx_clk, rx_clk
//
// Streams 0 to streams-1 open connections to peer_ip:peer_port. A stream whose source says `done`
// is closed when all is sent. counters: of all streams together (tx_clk), then the frames that were
// dropped (rx_clk).
module example_tcp_link #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 4,
    parameter int BITS = 17,
    parameter int TIMEOUT_MIN = 500,
    parameter int TIMEOUT_INIT = 5_000,
    parameter int TIMEOUT_MAX = 100_000,
    parameter int RETRY = 2_000
) (
    input  logic                     rst,
    input  logic                     user_clk,
    input  logic [       47:0]       mac_address,
    input  logic [       31:0]       ip_address,
    input  logic [       31:0]       ip_mask,
    input  logic [       31:0]       ip_gateway,
    input  logic [       31:0]       peer_ip,
    input  logic [       15:0]       peer_port,
    input  logic [       15:0]       local_port,
    input  logic [       13:0]       mtu,
    input  logic [       31:0]       first_sequence,
    input  logic                     enable,
    input  logic [        2:0]       streams,
    input  logic                     push,
    output logic                     user_rst,
    input  logic [STREAMS-1:0][63:0] s_axis_tdata,
    input  logic [STREAMS-1:0]       s_axis_tvalid,
    output logic [STREAMS-1:0]       s_axis_tready,
    input  logic [STREAMS-1:0]       s_axis_tlast,
    output logic [STREAMS-1:0]       user_running,
    input  logic [STREAMS-1:0]       done,
    output logic                     running,
    output logic [       31:0]       status_sent,
    output logic [       31:0]       status_retransmitted,
    output logic [       31:0]       status_early,
    output logic [       31:0]       status_delay,
    output logic [       14:0][31:0] counters,
    input  logic                     tx_clk,
    output logic                     tx_rst,
    output logic [  WIDTH-1:0]       m_axis_tdata,
    output logic [WIDTH/8-1:0]       m_axis_tkeep,
    output logic                     m_axis_tvalid,
    input  logic                     m_axis_tready,
    output logic                     m_axis_tlast,
    output logic                     m_axis_tuser,
    input  logic                     rx_clk,
    output logic                     rx_rst,
    input  logic [  WIDTH-1:0]       s_mac_tdata,
    input  logic [WIDTH/8-1:0]       s_mac_tkeep,
    input  logic                     s_mac_tvalid,
    input  logic                     s_mac_tlast,
    input  logic                     s_mac_tuser,
    input  logic [        3:0]       mac_stat
);
  localparam int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1;

  sync_reset user_reset (
      .clk    (user_clk),
      .rst_in (rst),
      .rst_out(user_rst)
  );
  sync_reset tx_reset (
      .clk    (tx_clk),
      .rst_in (rst),
      .rst_out(tx_rst)
  );
  sync_reset rx_reset (
      .clk    (rx_clk),
      .rst_in (rst),
      .rst_out(rx_rst)
  );

  logic [STREAMS-1:0] done_tx, enables;
  logic [STREAMS-1:0][15:0] peer_ports, local_ports;
  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    assign peer_ports[i] = peer_port;
    assign local_ports[i] = local_port + 16'(i);
    assign enables[i] = enable && i < 32'(streams) && !done_tx[i];
  end
  sync_bits #(
      .WIDTH(STREAMS)
  ) sync_done (
      .clk(tx_clk),
      .d  (done),
      .q  (done_tx)
  );

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
      .user_clk     (user_clk),
      .write_valid  (write_valid),
      .write_ready  (write_ready),
      .write_address(write_address),
      .write_data   (write_data),
      .tx_clk       (tx_clk),
      .tx_rst       (tx_rst),
      .fetch_valid  (fetch_valid),
      .fetch_ready  (fetch_ready),
      .fetch_address(fetch_address),
      .fetched_valid(fetched_valid),
      .fetched_data (fetched_data)
  );

  logic path;
  logic [STREAMS-1:0] connected, active;
  logic [STREAMS-1:0][31:0] sent, again, fast, timeouts, probes, resets, unacceptable;
  logic [STREAMS-1:0][23:0] timeout;
  logic [STREAMS-1:0][29:0] window;
  logic [15:0]
      drop_port,
      drop_destination,
      drop_protocol,
      drop_fragment,
      drop_checksum,
      drop_short,
      drop_full;

  tcp_core #(
      .WIDTH       (WIDTH),
      .STREAMS     (STREAMS),
      .BITS        (BITS),
      .ECHO_BITS   (11),
      .BLOCKS      (64),
      .TIMEOUT_MIN (TIMEOUT_MIN),
      .TIMEOUT_INIT(TIMEOUT_INIT),
      .TIMEOUT_MAX (TIMEOUT_MAX),
      .RETRY       (RETRY)
  ) core (
      .user_clk               (user_clk),
      .user_rst               (user_rst),
      .s_axis_tdata           (s_axis_tdata),
      .s_axis_tvalid          (s_axis_tvalid),
      .s_axis_tready          (s_axis_tready),
      .s_axis_tlast           (s_axis_tlast),
      .user_running           (user_running),
      .write_valid            (write_valid),
      .write_ready            (write_ready),
      .write_address          (write_address),
      .write_data             (write_data),
      .fetch_valid            (fetch_valid),
      .fetch_ready            (fetch_ready),
      .fetch_address          (fetch_address),
      .fetched_valid          (fetched_valid),
      .fetched_data           (fetched_data),
      .enable                 (enables),
      .mac_address            (mac_address),
      .ip_address             (ip_address),
      .ip_mask                (ip_mask),
      .ip_gateway             (ip_gateway),
      .peer_ip                (peer_ip),
      .peer_port              (peer_ports),
      .local_port             (local_ports),
      .mtu                    (mtu),
      .push                   (push),
      .first_sequence         (first_sequence),
      .tx_clk                 (tx_clk),
      .tx_rst                 (tx_rst),
      .m_axis_tdata           (m_axis_tdata),
      .m_axis_tkeep           (m_axis_tkeep),
      .m_axis_tvalid          (m_axis_tvalid),
      .m_axis_tready          (m_axis_tready),
      .m_axis_tlast           (m_axis_tlast),
      .m_axis_tuser           (m_axis_tuser),
      .status_path            (path),
      .status_connected       (connected),
      .status_active          (active),
      .status_sent            (sent),
      .status_retransmitted   (again),
      .status_fast            (fast),
      .status_timeouts        (timeouts),
      .status_probes          (probes),
      .status_resets          (resets),
      .status_unacceptable    (unacceptable),
      .status_timeout         (timeout),
      .status_window          (window),
      .status_drop_port       (drop_port),
      .rx_clk                 (rx_clk),
      .rx_rst                 (rx_rst),
      .s_mac_tdata            (s_mac_tdata),
      .s_mac_tkeep            (s_mac_tkeep),
      .s_mac_tvalid           (s_mac_tvalid),
      .s_mac_tlast            (s_mac_tlast),
      .s_mac_tuser            (s_mac_tuser),
      .status_drop_destination(drop_destination),
      .status_drop_protocol   (drop_protocol),
      .status_drop_fragment   (drop_fragment),
      .status_drop_checksum   (drop_checksum),
      .status_drop_short      (drop_short),
      .status_drop_full       (drop_full)
  );

  logic [3:0][15:0] mac_count;
  event_counters #(
      .EVENTS(4),
      .WIDTH (16)
  ) mac_stat_counters (
      .clk  (rx_clk),
      .clear(rx_rst),
      .pulse(mac_stat),
      .count(mac_count)
  );

  logic [31:0]
      connections,
      all_sent,
      all_again,
      all_fast,
      all_timeouts,
      all_probes,
      all_resets,
      all_unacceptable;
  always_comb begin
    {connections, all_sent, all_again, all_fast, all_timeouts, all_probes, all_resets, all_unacceptable} = '0;
    for (int i = 0; i < STREAMS; i++) begin
      connections += 32'(connected[i]);
      all_sent += sent[i];
      all_again += again[i];
      all_fast += fast[i];
      all_timeouts += timeouts[i];
      all_probes += probes[i];
      all_resets += resets[i];
      all_unacceptable += unacceptable[i];
    end
  end
  assign running = active != '0;
  assign status_sent = all_sent;
  assign status_retransmitted = all_again;
  assign status_early = all_fast;
  assign status_delay = 32'(timeout[0]);
  assign counters[0] = connections;
  assign counters[1] = 32'(path);
  assign counters[2] = all_timeouts;
  assign counters[3] = all_probes;
  assign counters[4] = all_resets;
  assign counters[5] = all_unacceptable;
  assign counters[6] = 32'(window[0]);
  assign counters[7] = 32'(drop_port);
  assign counters[8] = 32'(drop_destination);
  assign counters[9] = 32'(drop_protocol);
  assign counters[10] = 32'(drop_fragment);
  assign counters[11] = 32'(drop_checksum);
  assign counters[12] = 32'(drop_short);
  assign counters[13] = 32'(drop_full);
  assign counters[14] = 32'(mac_count[0]) + 32'(mac_count[1]) + 32'(mac_count[2]) + 32'(mac_count[3]);

  logic unused;
  assign unused = &{1'b0, window, timeout};
endmodule
