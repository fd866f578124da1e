// SPDX-License-Identifier: Apache-2.0
//
// Example design of FADC streaming: generators of pulses, a crate, and the TCP sender.
//
//                +-------------------------------------+
//   settings ===>| example_crate => example_tcp_link   |====> m_axis (to the MAC)
//   status <=====|                                     |<==== s_mac (from the MAC)
//                +-------------------------------------+
//         user_clk                tx_clk, rx_clk
//
// user_clk is the clock of the samples. Each link is a TCP connection. Time begins when all connections have been opened
// for the first time; they are closed when settings.crate.windows windows (0: no limit) have been sent. With PTP and a PTP
// role the crate uses the time of PTP, and settings.crate.first_* are not used. status.counters: see example_tcp_link, then
// those of the links together, see fadc_link, and windows that were off their time.
`default_nettype none
module example_fadc #(
    parameter int WIDTH = 64,
    parameter int LINKS = 1,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int BUFFER_BITS = 16,
    parameter int BITS = 17,
    parameter int PTP = 0,
    parameter int SIMULATED = 1,
    parameter int TX_KHZ = 125_000
) (
    input  logic                   rst,
    input  example_pkg::settings_t settings,
    input  logic                   enable,
    input  logic                   pulse,
    input  ptp_pkg::time_t         time_now,
    input  logic                   time_locked,
    input  logic                   user_clk,
    input  logic                   tx_clk,
    output logic                   tx_rst,
    output link_pkg::frame_t       m_axis,
    input  logic                   m_axis_tready,
    input  logic                   m_axis_start,
    output example_pkg::status_t   status,
    input  logic                   rx_clk,
    output logic                   rx_rst,
    input  link_pkg::frame_t       s_mac,
    input  link_pkg::mac_stat_t    mac_stat
);
  localparam int LINK_COUNTERS = 15;
  localparam int CRATE_COUNTERS = 9;

  logic user_rst, start, started, quiet;
  logic [LINKS-1:0][link_pkg::WORDS_BITS-1:0] s_axis;
  logic [LINKS-1:0] tvalid, s_axis_tready, user_running, done, crate_running, idle;
  for (genvar l = 0; l < LINKS; l++) begin : g_link
    link_pkg::words_t words;
    assign words = s_axis[l];
    assign tvalid[l] = words.tvalid;
    logic unused;
    assign unused = &{1'b0, words};
  end

  always_ff @(posedge user_clk) begin
    start <= !started && (&user_running);
    if (&user_running) started <= 1'b1;
    done <= (settings.crate.windows != '0 && quiet) ? idle & ~tvalid & crate_running : '0;
    if (user_rst) begin
      start   <= 1'b0;
      started <= 1'b0;
    end
  end
  assign quiet = &idle;

  logic [LINKS-1:0][CRATE_COUNTERS*32-1:0] crate_counters;
  logic event_off;
  logic [31:0] windows_off;
  event_counter #(
      .WIDTH(32)
  ) off_counter (
      .clk  (user_clk),
      .clear(user_rst),
      .pulse(event_off),
      .count(windows_off)
  );
  example_crate #(
      .LINKS      (LINKS),
      .MODULES    (MODULES),
      .CHANNELS   (CHANNELS),
      .BUFFER_BITS(BUFFER_BITS),
      .FOLLOW     (PTP)
  ) crate (
      .clk          (user_clk),
      .rst          (user_rst),
      .start        (start),
      .settings     (settings.crate),
      .pulse        (pulse),
      .follow       (settings.ptp_role != '0),
      .time_now     (time_now),
      .time_locked  (time_locked),
      .event_off    (event_off),
      .m_axis       (s_axis),
      .m_axis_tready(s_axis_tready),
      .running      (crate_running),
      .idle         (idle),
      .counters     (crate_counters)
  );

  example_pkg::status_t link_status;
  example_tcp_link #(
      .WIDTH  (WIDTH),
      .STREAMS(LINKS),
      .BITS   (BITS),
      .PACKETS(1),
      .SIMULATED(SIMULATED),
      .TX_KHZ(TX_KHZ)
  ) link (
      .streams(3'(LINKS)),
      .status (link_status),
      .*
  );

  logic [example_pkg::COUNTERS-1:0][31:0] counters;
  always_comb begin
    counters = link_status.counters;
    for (int i = 0; i < CRATE_COUNTERS; i++)
    for (int l = 0; l < LINKS; l++) counters[LINK_COUNTERS+i] += crate_counters[l][i*32+:32];
    counters[LINK_COUNTERS+CRATE_COUNTERS] = windows_off;
  end
  assign status = {link_status[$bits(status)-1:$bits(counters)], counters};

  logic unused;
  assign unused = &{1'b0, settings, m_axis_start};
endmodule
`default_nettype wire
