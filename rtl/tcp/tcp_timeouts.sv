// SPDX-License-Identifier: Apache-2.0
//
// Timers of the streams: a timer and its time-out for each, and keep-alive (transmit clock; RFC 6298).
//
//                 +--------------+
//   stream =====> |              |====> due (a bit a stream), runs
//   set, span --> | tcp_timeouts |====> now, timeout (microseconds)
//   stop -------->|              |----> busy
//   heard, probed >|              |----> keepalive_* (a bit a stream)
//   op, begun ===>|              |
//                 +--------------+
//
// `set` and `stop` act a clock later, while `stream` is stable. For `op` and `busy`, while it need not be stable, see
// tcp_rtt.
`default_nettype none
module tcp_timeouts #(
    parameter int STREAMS = 1,
    parameter int MINIMUM = 200_000,  // microseconds
    parameter int INITIAL = 1_000_000,
    parameter int MAXIMUM = 8_000_000,
    parameter int RETRY = 1_000_000,
    parameter int KEEPALIVE = 0,  // milliseconds, 0: none
    parameter int KEEPALIVE_INTERVAL = 75_000,
    parameter int KEEPALIVE_PROBES = 9,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic                             tick,
    input  logic           [STREAM_BITS-1:0] stream,
    input  logic                             set,
    input  logic                             stop,
    input  tcp_pkg::span_t                   span,
    input  tcp_pkg::rtt_op                   op,
    input  logic           [           23:0] begun,
    output logic                             busy,
    output logic           [           22:0] timeout,
    output logic                             slower,
    output logic                             runs,
    output logic           [    STREAMS-1:0] due,
    output logic           [           23:0] now,
    // see tcp_keepalive
    input  logic                             heard,
    input  logic                             probed,
    output logic           [    STREAMS-1:0] keepalive_due,
    output logic           [    STREAMS-1:0] keepalive_lost
);
  logic timer_set, timer_stop;
  logic [22:0] interval, two_rounds;
  tcp_pkg::span_t timer_span;

  always_ff @(posedge clk) begin
    {timer_set, timer_stop} <= rst ? '0 : {set, stop};
    timer_span <= span;
  end
  always_comb begin
    case (timer_span)
      tcp_pkg::TWICE: interval = {timeout[21:0], 1'b0};
      tcp_pkg::TWO_ROUNDS: interval = two_rounds;
      tcp_pkg::LONGEST: interval = 23'(MAXIMUM);
      tcp_pkg::UNTIL_RETRY: interval = 23'(RETRY);
      default: interval = timeout;
    endcase
  end

  tcp_timer #(
      .STREAMS(STREAMS)
  ) timer (
      .set (timer_set),
      .stop(timer_stop),
      .*
  );
  tcp_rtt #(
      .STREAMS(STREAMS),
      .MINIMUM(MINIMUM),
      .INITIAL(INITIAL),
      .MAXIMUM(MAXIMUM)
  ) round_trip (
      .*
  );
  if (KEEPALIVE != 0) begin : g_keepalive
    tcp_keepalive #(
        .STREAMS (STREAMS),
        .REST    (KEEPALIVE),
        .INTERVAL(KEEPALIVE_INTERVAL),
        .PROBES  (KEEPALIVE_PROBES)
    ) keepalive (
        .due (keepalive_due),
        .lost(keepalive_lost),
        .*
    );
  end else begin : g_no_keepalive
    assign {keepalive_due, keepalive_lost} = '0;
    logic unused;
    assign unused = &{1'b0, heard, probed};
  end
endmodule
`default_nettype wire
