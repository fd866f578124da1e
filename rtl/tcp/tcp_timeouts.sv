// SPDX-License-Identifier: Apache-2.0
//
// Time of the streams: a timer for each, and the time-out that it runs for (transmit clock; RFC 6298).
//
//                 +--------------+
//   stream =====> |              |====> due (a bit a stream), runs
//   set, span --> | tcp_timeouts |====> now, timeout (microseconds)
//   stop -------->|              |----> busy
//   op, begun ===>|              |
//                 +--------------+
//
// `set` and `stop` act a clock later, in which `stream` stays. Of `op` and `busy`, in which it need not stay, see tcp_rtt.
`default_nettype none
module tcp_timeouts #(
    parameter int STREAMS = 1,
    parameter int MINIMUM = 200_000,  // microseconds
    parameter int INITIAL = 1_000_000,
    parameter int MAXIMUM = 8_000_000,
    parameter int RETRY = 1_000_000,
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
    output logic                             runs,
    output logic           [    STREAMS-1:0] due,
    output logic           [           23:0] now
);
  logic timer_set, timer_stop;
  logic [22:0] interval;
  tcp_pkg::span_t timer_span;

  always_ff @(posedge clk) begin
    {timer_set, timer_stop} <= rst ? '0 : {set, stop};
    timer_span <= span;
  end
  always_comb begin
    case (timer_span)
      tcp_pkg::TWICE: interval = {timeout[21:0], 1'b0};
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
endmodule
`default_nettype wire
