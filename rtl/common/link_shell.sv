// SPDX-License-Identifier: Apache-2.0
//
// What every link core has around its protocol: resets, MAC adapter, tick, counters, status reader.
//
//                 +------------+
//   s_mac ======> |            | =====> rx            |
//   mac_stat ===> |            | -----> tick          |
//   m_axis <===== | link_shell | <===== tx            |  the protocol's engine is plugged in here
//   rst --------> |            | <===== tx_events,    |
//   status_* <==> |            | <===== rx_events     |
//                 +------------+ =====> *_count       |
//     user_clk, tx_clk, rx_clk
//
// WIDTH is the MAC's datapath: 8 for GMII, 64 for XGMII. With ADAPT the engine's frames are 64 bits wide all the same.
// `rst` may come from any clock; user_rst, tx_rst and rx_rst leave with theirs. `tick` is one clock in TICK_CLOCKS.
//
// Counters run since reset and wrap: of tx_events (tx_clk) the first TX_LONG have 32 bits, the others and those of
// rx_events (rx_clk) have 16.
//
// With STATUS the reader (see status_reader) reads tx_words, bit 5 of the index clear, or the counters of mac_stat and
// then those of rx_events, bit 5 set; index STATUS_VERSION gives VERSION. Without it the MAC's pulses are not counted.
`default_nettype none
module link_shell #(
    parameter int WIDTH = 64,
    parameter int ADAPT = 1,
    parameter int TICK_CLOCKS = 1,
    parameter int TX_EVENTS = 1,
    parameter int TX_LONG = TX_EVENTS,
    parameter int RX_EVENTS = 1,
    parameter int STATUS = 0,
    parameter logic [31:0] VERSION = '0,
    parameter int TX_WORDS = 2
) (
    input  logic                                             rst,
    // user side
    input  logic                                             user_clk,
    output logic                                             user_rst,
    input  logic                [                       5:0] status_index,
    input  logic                                             status_request,
    output logic                                             status_accepted,
    output logic                [                      31:0] status_value,
    output logic                                             status_valid,
    // transmit side
    input  logic                                             tx_clk,
    output logic                                             tx_rst,
    output logic                                             tick,
    input  link_pkg::frame_t                                 tx,
    output logic                                             tx_tready,
    output link_pkg::frame_t                                 m_axis,
    input  logic                                             m_axis_tready,
    input  logic                [             TX_EVENTS-1:0] tx_events,
    output logic                [          TX_EVENTS*32-1:0] tx_count,
    input  logic                [           TX_WORDS*32-1:0] tx_words,
    // receive side
    input  logic                                             rx_clk,
    output logic                                             rx_rst,
    input  link_pkg::frame_t                                 s_mac,
    input  link_pkg::mac_stat_t                              mac_stat,
    output link_pkg::frame_t                                 rx,
    input  logic                [             RX_EVENTS-1:0] rx_events,
    output logic                [          RX_EVENTS*16-1:0] rx_count,
    output logic                [link_pkg::MAC_STATS*16-1:0] mac_count
);
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

  // ---- frames --------------------------------------------------------------------------------
  mac_adapter #(.WIDTH(ADAPT != 0 ? WIDTH : 64)) mac_adapter (.*);

  // ---- time ----------------------------------------------------------------------------------
  if (TICK_CLOCKS > 1) begin : g_tick
    localparam int TICK_BITS = $clog2(TICK_CLOCKS);
    logic [TICK_BITS-1:0] clocks;
    always_ff @(posedge tx_clk) begin
      tick   <= clocks == '0;
      clocks <= clocks == '0 ? TICK_BITS'(TICK_CLOCKS - 1) : clocks - 1'b1;
      if (tx_rst) clocks <= '0;
    end
  end else begin : g_no_tick
    assign tick = 1'b1;
  end

  // ---- counters ------------------------------------------------------------------------------
  event_counters #(
      .EVENTS(TX_LONG),
      .WIDTH (32)
  ) tx_counters (
      .clk  (tx_clk),
      .clear(tx_rst),
      .pulse(tx_events[TX_LONG-1:0]),
      .count(tx_count[TX_LONG*32-1:0])
  );
  for (genvar i = TX_LONG; i < TX_EVENTS; i++) begin : g_short
    event_counter #(
        .WIDTH(16)
    ) counter (
        .clk  (tx_clk),
        .clear(tx_rst),
        .pulse(tx_events[i]),
        .count(tx_count[i*32+:16])
    );
    assign tx_count[i*32+16+:16] = '0;
  end
  event_counters #(
      .EVENTS(RX_EVENTS),
      .WIDTH (16)
  ) rx_counters (
      .clk  (rx_clk),
      .clear(rx_rst),
      .pulse(rx_events),
      .count(rx_count)
  );

  // ---- status --------------------------------------------------------------------------------
  if (STATUS != 0) begin : g_status
    localparam int RX_WORDS = link_pkg::MAC_STATS + RX_EVENTS;
    event_counters #(
        .EVENTS(link_pkg::MAC_STATS),
        .WIDTH (16)
    ) mac_counters (
        .clk  (rx_clk),
        .clear(rx_rst),
        .pulse(mac_stat),
        .count(mac_count)
    );
    logic [RX_WORDS*16-1:0] rx_counts;
    logic [RX_WORDS*32-1:0] rx_words;
    assign rx_counts = {rx_count, mac_count};
    for (genvar i = 0; i < RX_WORDS; i++) begin : g_word
      assign rx_words[i*32+:32] = 32'(rx_counts[i*16+:16]);
    end

    logic tx_accepted, rx_accepted, tx_valid, rx_valid, is_version, version_valid;
    assign is_version = status_index == link_pkg::STATUS_VERSION;
    always_ff @(posedge user_clk) version_valid <= !user_rst && status_request && is_version;
    logic [31:0] tx_value, rx_value;
    status_reader #(
        .WORDS(TX_WORDS)
    ) tx_reader (
        .clk      (user_clk),
        .rst      (user_rst),
        .s_index  (status_index[$clog2(TX_WORDS)-1:0]),
        .s_valid  (status_request && !status_index[5] && !is_version),
        .s_ready  (tx_accepted),
        .m_value  (tx_value),
        .m_valid  (tx_valid),
        .there_clk(tx_clk),
        .there_rst(tx_rst),
        .values   (tx_words)
    );
    status_reader #(
        .WORDS(RX_WORDS)
    ) rx_reader (
        .clk      (user_clk),
        .rst      (user_rst),
        .s_index  (status_index[$clog2(RX_WORDS)-1:0]),
        .s_valid  (status_request && status_index[5]),
        .s_ready  (rx_accepted),
        .m_value  (rx_value),
        .m_valid  (rx_valid),
        .there_clk(rx_clk),
        .there_rst(rx_rst),
        .values   (rx_words)
    );
    assign status_accepted = is_version || (status_index[5] ? rx_accepted : tx_accepted);
    assign status_value = is_version ? VERSION : status_index[5] ? rx_value : tx_value;
    assign status_valid = tx_valid || rx_valid || version_valid;
    logic unused;
    assign unused = &{1'b0, status_index};
  end else begin : g_no_status
    assign {status_accepted, status_value, status_valid, mac_count} = '0;
    logic unused;
    assign unused = &{1'b0, mac_stat, tx_words, status_index, status_request};
  end
endmodule
`default_nettype wire
