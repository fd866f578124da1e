// SPDX-License-Identifier: Apache-2.0
//
// Retransmission time-out of each stream, from measured round trips (RFC 6298).
//
//                +---------+
//   stream =====>|         |====> timeout (microseconds, of the stream)
//   op ========> | tcp_rtt |----> busy
//   begun, now =>|         |
//                +---------+
//
// CLEAR deletes the measurements, DOUBLE follows a time-out; both act at once. SAMPLE uses now - begun, and takes eight
// more clocks, the first one sixteen.
// While it is busy with one stream another may be selected, but `timeout` belongs to the stream that it is busy with.
//
// SRTT is stored in eighths, RTTVAR in quarters of a microsecond. Four times RTTVAR is made odd, so it is at least a
// microsecond (the G of RFC 6298). The RFC asks for a time-out of at least a second; MINIMUM is a parameter, because a
// local link is a thousand times faster.
`default_nettype none
module tcp_rtt #(
    parameter int STREAMS = 1,
    parameter int MINIMUM = 200_000,  // microseconds
    parameter int INITIAL = 1_000_000,
    parameter int MAXIMUM = 8_000_000,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic           [STREAM_BITS-1:0] stream,
    input  tcp_pkg::rtt_op                   op,
    input  logic           [           23:0] begun,
    input  logic           [           23:0] now,
    output logic                             busy,
    output logic           [           22:0] timeout,
    output logic                             slower,     // by more than four times the variation
    output logic           [           22:0] two_rounds
);
  if (MINIMUM < 1 || INITIAL < MINIMUM || MAXIMUM < INITIAL || MAXIMUM >= 2 ** 23) begin : g_check
    $error("tcp_rtt: expected 1 <= MINIMUM <= INITIAL <= MAXIMUM < 2^23");
  end

  // The operands of the adder: x = now, work, variation, smooth; y = begun, smooth / 8, work, variation / 4.
  typedef enum logic [4:0] {
    REST = {2'd0, 2'd0, 1'b0},
    ERROR = {2'd1, 2'd1, 1'b0},  // of what was expected
    COMPARE = {2'd2, 2'd2, 1'b0},
    SMOOTH = {2'd3, 2'd2, 1'b0},
    SHRINK = {2'd2, 2'd3, 1'b0},  // of the variation, by a quarter
    GROW = {2'd2, 2'd2, 1'b1},  // by the error
    SUM = {2'd2, 2'd1, 1'b0},
    JUDGE = {2'd1, 2'd0, 1'b0},
    STORE = {2'd1, 2'd3, 1'b0}
  } state_t;

  (* fsm_encoding = "none" *)
  state_t state, next;
  logic [2:0] repeats;
  logic measured, measured_next, slower_next, is_slower, clears;
  logic [25:0] smooth, x, y, sum;
  logic [26:0] raw_sum;
  logic [24:0] variation;
  logic [25:0] work;  // the sample, the error, the time-out before it is bounded
  logic subtract, is_low, is_high, write_smooth, write_variation, write_timeout;
  logic [22:0] timeout_next;
  logic [STREAM_BITS-1:0] owner, here;
  assign busy = state != REST;
  assign here = busy ? owner : stream;

  // One adder; the lowest bit is the carry into the others.
  assign raw_sum = {x, 1'b1} + {y ^ {26{subtract}}, subtract};
  assign sum = raw_sum[26:1];
  always_comb begin
    case (state[4:3])
      2'd0: x = {2'd0, now};
      2'd1: x = work;
      2'd2: x = {1'b0, variation[24:1], variation[0] || state == SUM};
      default: x = smooth;
    endcase
    case (state[2:1])
      2'd0: y = {2'd0, begun};
      2'd1: y = {3'd0, smooth[25:3]};
      2'd2: y = work;
      default: y = {3'd0, variation[24:2]};
    endcase
    next = REST;
    case (state)
      REST: if (op == tcp_pkg::RTT_SAMPLE) next = ERROR;
      ERROR: next = COMPARE;
      COMPARE: next = SMOOTH;
      // Eight times the first sample, and twice: of both there is nothing yet.
      SMOOTH: next = measured || repeats == '1 ? SHRINK : SMOOTH;
      SHRINK: next = GROW;
      GROW: next = measured || repeats[0] ? SUM : GROW;
      SUM: next = JUDGE;
      JUDGE: next = STORE;
      default: ;
    endcase
  end

  assign clears = op == tcp_pkg::RTT_CLEAR;
  assign write_smooth = state == SMOOTH || clears;
  assign write_variation = state == SHRINK || state == GROW || clears;
  tcp_context #(
      .WIDTH  (26),
      .STREAMS(STREAMS)
  ) smooth_context (
      .clk   (clk),
      .stream(here),
      .write (write_smooth),
      .d     (clears ? '0 : sum),
      .q     (smooth)
  );
  tcp_context #(
      .WIDTH  (25),
      .STREAMS(STREAMS)
  ) variation_context (
      .clk   (clk),
      .stream(here),
      .write (write_variation),
      .d     (clears ? '0 : sum[24:0]),
      .q     (variation)
  );

  assign write_timeout = state == STORE || op == tcp_pkg::RTT_CLEAR || op == tcp_pkg::RTT_DOUBLE;
  assign slower_next   = state == STORE && is_slower && measured;
  assign measured_next = state == STORE || (op == tcp_pkg::RTT_DOUBLE && measured);
  always_comb begin
    timeout_next = work[22:0];
    if (state == STORE) begin
      if (is_low) timeout_next = 23'(MINIMUM);
      if (is_high) timeout_next = 23'(MAXIMUM);
    end else if (op == tcp_pkg::RTT_DOUBLE)
      timeout_next = timeout > 23'(MAXIMUM / 2) ? 23'(MAXIMUM) : {timeout[21:0], 1'b0};
    else timeout_next = 23'(INITIAL);
  end
  tcp_context #(
      .WIDTH  (25),
      .STREAMS(STREAMS)
  ) timeout_context (
      .clk   (clk),
      .stream(here),
      .write (write_timeout),
      .d     ({slower_next, measured_next, timeout_next}),
      .q     ({slower, measured, timeout})
  );

  always_ff @(posedge clk) begin
    state <= next;
    subtract <= next == GROW ? work[25] : next != SMOOTH && next != SUM;
    // A sample is at most a time-out, which has 23 bits.
    if (state == REST) {owner, work} <= {stream, 3'd0, sum[22:0]};
    if (state == ERROR || state == SUM) work <= sum;
    repeats <= state == SMOOTH || state == GROW ? repeats + 3'd1 : '0;
    if (state == COMPARE) is_slower <= sum[25];
    is_low  <= work < 26'(MINIMUM);
    is_high <= work > 26'(MAXIMUM);
    if (rst) begin
      state <= REST;
      subtract <= 1'b1;
    end
  end
  assign two_rounds = {smooth[24:4], 1'b1, smooth[2]};
  logic unused;
  assign unused = raw_sum[0];
endmodule
`default_nettype wire
