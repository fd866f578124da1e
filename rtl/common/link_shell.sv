// SPDX-License-Identifier: Apache-2.0
//
// The part of every link core around its protocol: resets, MAC adapter, tick, counters, status reader.
//
//                 +------------+
//   s_mac ======> |            | =====> rx            |
//   mac_stat ===> |            | -----> tick          |
//   m_axis <===== | link_shell | <===== tx            |  the protocol's engine is plugged in here
//   rst --------> |            | <===== tx_events,    |
//   status_* <==> |            | <===== rx_events     |
//                 |            | =====> *_count       |
//                 +------------+ <====> tx_index/word |
//     user_clk, tx_clk, rx_clk
//
// With ADAPT the frames of the engine always have 64 bits. `rst` may come from any clock; user_rst, tx_rst and
// rx_rst end with their clocks. `tick` is high in one clock of TICK_CLOCKS.
//
// Counters run since reset and wrap: the first TX_LONG of tx_events (tx_clk) have 32 bits, the others and those of
// rx_events (rx_clk) have 16.
//
// With STATUS the reader (see status_reader) reads, where the first bit of the index is clear, the word that tx_word gives
// for tx_index; where it is set the counters of mac_stat and then those of rx_events. Index STATUS_VERSION gives VERSION.
// Without STATUS the pulses of the MAC are not counted.
`default_nettype none
module link_shell #(
    parameter int WIDTH = 64,  // width of the MAC: 8 (GMII) or 64 (XGMII)
    parameter int ADAPT = 1,
    parameter int TICK_CLOCKS = 1,
    parameter int TX_EVENTS = 1,
    parameter int TX_LONG = TX_EVENTS,
    parameter int RX_EVENTS = 1,
    parameter int STATUS = 0,  // 1: with the reader of status words, and counters of the MAC
    parameter logic [31:0] VERSION = '0,
    parameter int INDEX_BITS = 6
) (
    input logic rst,
    // user side
    input logic user_clk,
    output logic user_rst,
    input logic [INDEX_BITS-1:0] status_index,  // which word to read
    input logic status_request,  // the word of status_index is asked for
    output logic status_accepted,  // the request is taken
    output logic [31:0] status_value,  // the word
    output logic status_valid,  // a pulse: status_value has the answer
    // transmit side
    input logic tx_clk,
    output logic tx_rst,
    output logic tick,
    input link_pkg::frame_t tx,
    output logic tx_tready,
    output link_pkg::frame_t m_axis,  // frames to the MAC
    input logic m_axis_tready,
    input logic [TX_EVENTS-1:0] tx_events,
    output logic [TX_EVENTS*32-1:0] tx_count,
    output logic [INDEX_BITS-2:0] tx_index,
    input logic [31:0] tx_word,
    input logic tx_word_valid,
    // receive side
    input logic rx_clk,
    output logic rx_rst,
    input link_pkg::frame_t s_mac,  // frames from the MAC, which cannot wait
    input link_pkg::mac_stat_t mac_stat,  // a pulse for each bad frame, by its reason
    output link_pkg::frame_t rx,
    input logic [RX_EVENTS-1:0] rx_events,
    output logic [RX_EVENTS*16-1:0] rx_count,
    output logic [link_pkg::MAC_STATS*16-1:0] mac_count
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
  if (TX_LONG != 0) begin : g_long
    event_counters #(
        .EVENTS(TX_LONG),
        .WIDTH (32)
    ) tx_counters (
        .clk  (tx_clk),
        .clear(tx_rst),
        .pulse(tx_events[TX_LONG-1:0]),
        .count(tx_count[TX_LONG*32-1:0])
    );
  end
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

    localparam int RX_BITS = $clog2(RX_WORDS);
    logic [RX_BITS-1:0] rx_index;
    logic tx_accepted, rx_accepted, is_rx, tx_valid, rx_valid, is_version, version_valid;
    assign is_version = status_index == INDEX_BITS'(link_pkg::STATUS_VERSION);
    assign is_rx = status_index[INDEX_BITS-1];
    always_ff @(posedge user_clk) version_valid <= !user_rst && status_request && is_version;
    logic [31:0] tx_value, rx_value;
    status_reader #(
        .INDEX_BITS(INDEX_BITS - 1)
    ) tx_reader (
        .clk        (user_clk),
        .rst        (user_rst),
        .s_index    (status_index[INDEX_BITS-2:0]),
        .s_valid    (status_request && !is_rx && !is_version),
        .s_ready    (tx_accepted),
        .m_value    (tx_value),
        .m_valid    (tx_valid),
        .there_clk  (tx_clk),
        .there_rst  (tx_rst),
        .index      (tx_index),
        .value      (tx_word),
        .value_valid(tx_word_valid)
    );
    status_reader #(
        .INDEX_BITS(RX_BITS)
    ) rx_reader (
        .clk        (user_clk),
        .rst        (user_rst),
        .s_index    (status_index[RX_BITS-1:0]),
        .s_valid    (status_request && is_rx),
        .s_ready    (rx_accepted),
        .m_value    (rx_value),
        .m_valid    (rx_valid),
        .there_clk  (rx_clk),
        .there_rst  (rx_rst),
        .index      (rx_index),
        .value      (rx_words[rx_index*32+:32]),
        .value_valid(1'b1)
    );
    assign status_accepted = is_version || (is_rx ? rx_accepted : tx_accepted);
    assign status_value = is_version ? VERSION : is_rx ? rx_value : tx_value;
    assign status_valid = tx_valid || rx_valid || version_valid;
    logic unused;
    assign unused = &{1'b0, status_index};
  end else begin : g_no_status
    assign {status_accepted, status_value, status_valid, mac_count, tx_index} = '0;
    logic unused;
    assign unused = &{1'b0, mac_stat, tx_word, tx_word_valid, status_index, status_request};
  end
endmodule
`default_nettype wire
