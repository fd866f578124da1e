// SPDX-License-Identifier: Apache-2.0
//
// Example design of FADE-10G or FADE v1: a link core, a source and user commands.
//
//                +----------------------------------------+
//   settings ===>| pattern_source  |                      |====> m_axis (to the MAC)
//                | or a crate      |==>  fade_core        |
//   status <=====| example_commands <==>                  |<==== s_mac (from the MAC)
//                +----------------------------------------+
//         user_clk                        tx_clk, rx_clk
//
// The source is the pattern, or with CRATE a crate of FADC modules (see example_crate): then the seed is that of its
// pulses, the limit is in windows, the gap is the length of a window in ticks. User commands can change settings.source,
// except for FADE v1. phy_status (tx_clk): see phy_manager. With PTP and a PTP role the crate uses the time of PTP.
`default_nettype none
module example_fade #(
    parameter int WIDTH = 64,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 32,
    parameter int TICK_INIT = (WIDTH == 8 ? 131072 : 65536) / (PROTOCOL == 1 ? 4 : 1),
    parameter int CRATE = 0,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int PTP = 0,
    parameter int CHECKSUM = 0
) (
    input  logic                          rst,
    input  example_pkg::settings_t        settings,
    input  logic                   [31:0] phy_status,
    input  logic                          enable,
    input  logic                          pulse,
    input  ptp_pkg::time_t                time_now,
    input  logic                          time_locked,
    input  logic                          user_clk,
    input  logic                          tx_clk,
    output logic                          tx_rst,
    output link_pkg::frame_t              m_axis,
    input  logic                          m_axis_tready,
    input  logic                          m_axis_start,
    output example_pkg::status_t          status,
    input  logic                          rx_clk,
    output logic                          rx_rst,
    input  link_pkg::frame_t              s_mac,
    input  link_pkg::mac_stat_t           mac_stat
);
  logic user_rst, user_running, user_clear;
  link_pkg::words_t words;
  link_pkg::command_t cmd;
  link_pkg::response_t rsp;
  logic words_tready, cmd_ready, rsp_ready;
  logic [ 5:0] status_index;
  logic [31:0] status_value;
  logic status_request, status_accepted, status_valid;
  fade_pkg::status_t core_status;
  logic [fade_pkg::DROPS*16-1:0] status_drops;

  fade_core #(
      .PROTOCOL (PROTOCOL),
      .WIDTH    (WIDTH),
      .PACKETS  (PACKETS),
      .TICK_INIT(TICK_INIT),
      .STATUS   (1),
      .CHECKSUM (CHECKSUM)
  ) core (
      .mac_address   (settings.mac_address),
      .first_packet  (settings.first_packet),
      .first_sequence(settings.first_sequence[15:0]),
      .paper_rule    (settings.paper_rule),
      .s_axis        (words),
      .s_axis_tready (words_tready),
      .m_cmd         (cmd),
      .m_cmd_ready   (cmd_ready),
      .s_rsp         (rsp),
      .s_rsp_ready   (rsp_ready),
      .status        (core_status),
      .*
  );
  assign status = {
    core_status.running[0],
    1'b0,
    core_status.sent,
    core_status.retransmitted,
    core_status.early,
    core_status.delay,
    {ptp_pkg::STATUS_BITS{1'b0}},
    {example_pkg::COUNTERS * 32{1'b0}}
  };

  // ---- source --------------------------------------------------------------------------------
  logic random;
  logic [63:0] seed;
  logic [31:0] limit;
  logic [15:0] gap;

  if (CRATE == 0) begin : g_pattern
    pattern_source source (
        .clk          (user_clk),
        .rst          (user_rst),
        .running      (user_running),
        .random       (random),
        .seed         (seed),
        .gap          (gap),
        .limit        (limit),
        .block        ('0),
        .m_axis_tdata (words.tdata),
        .m_axis_tvalid(words.tvalid),
        .m_axis_tready(words_tready),
        .m_axis_tlast (words.tlast)
    );
  end else begin : g_crate
    localparam logic [31:0] SOURCE_ID = 32'hC0DA0001;
    localparam logic [63:0] FIRST_SECOND = 64'd1_700_000_000;
    localparam logic [19:0] PULSE_RATE = 20'd419;  // 100,000 a second and channel
    logic begun, crate_rst, crate_running, idle;
    logic [9*32-1:0] crate_counters;
    example_pkg::crate_t crate_settings;
    // Each transmission begins anew.
    always_ff @(posedge user_clk) begin
      crate_rst <= user_rst || !user_running;
      begun <= !crate_rst;
    end
    assign crate_settings = {
      SOURCE_ID,
      64'd0,  // first window
      FIRST_SECOND,
      32'd0,
      18'(gap),
      24'd0,  // keepalive
      limit,
      16'hFFFF,
      seed[31:0],
      PULSE_RATE,
      20'd0,  // no bursts
      32'd0,
      32'd0,
      4'd4
    };
    logic event_off;
    example_crate #(
        .MODULES (MODULES),
        .CHANNELS(CHANNELS),
        .FOLLOW  (PTP)
    ) crate (
        .pulse        (pulse),
        .follow       (settings.ptp_role != '0),
        .time_now     (time_now),
        .time_locked  (time_locked),
        .event_off    (event_off),
        .clk          (user_clk),
        .rst          (crate_rst),
        .settings     (crate_settings),
        .start        (!crate_rst && !begun),
        .m_axis       (words),
        .m_axis_tready(words_tready),
        .running      (crate_running),
        .idle         (idle),
        .counters     (crate_counters)
    );
    logic unused;
    assign unused = &{1'b0, random, seed[63:32], crate_running, idle, crate_counters, event_off};
  end

  // ---- user commands -------------------------------------------------------------------------
  logic [31:0] phy;
  cdc_steady #(
      .WIDTH(32)
  ) sync_phy (
      .clk(user_clk),
      .rst(user_rst),
      .d  (phy_status),
      .q  (phy)
  );
  example_commands #(
      .TX_WORDS(fade_pkg::STATUS_WORDS),
      .RX_WORDS(link_pkg::MAC_STATS + fade_pkg::DROPS)
  ) commands (
      .clk           (user_clk),
      .rst           (user_rst),
      .clear         (user_clear),
      .random_default(settings.source.random),
      .seed_default  (settings.source.seed),
      .limit_default (settings.source.limit),
      .gap_default   (settings.source.gap),
      .s_cmd_code    (cmd.code),
      .s_cmd_argument(cmd.argument),
      .s_cmd_valid   (cmd.valid),
      .s_cmd_ready   (cmd_ready),
      .m_rsp_value   (rsp.value),
      .m_rsp_valid   (rsp.valid),
      .m_rsp_ready   (rsp_ready),
      .*
  );

  logic unused;
  assign unused = &{1'b0, settings, enable, m_axis_start, pulse, time_now, time_locked, cmd.csn, core_status, status_drops};
endmodule
`default_nettype wire
