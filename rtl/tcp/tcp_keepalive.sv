// SPDX-License-Identifier: Apache-2.0
//
// Keep-alive of each stream (transmit clock; RFC 9293 3.8.4).
//
//                +---------------+
//   stream =====>|               |----> due (a bit a stream): a probe, if nothing is under way
//   heard ------>| tcp_keepalive |----> lost (a bit a stream): no probe was answered
//   probed ----->|               |
//   tick ------->|               |
//                +---------------+
//
// A probe is due REST milliseconds after the last segment of the peer, the next ones INTERVAL apart, PROBES in all;
// INTERVAL after the last one the peer is lost. `heard` and `probed` are of `stream`.
`default_nettype none
module tcp_keepalive #(
    parameter int STREAMS = 1,
    parameter int REST = 7_200_000,
    parameter int INTERVAL = 75_000,
    parameter int PROBES = 9,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   tick,    // each microsecond
    input  logic [STREAM_BITS-1:0] stream,
    input  logic                   heard,
    input  logic                   probed,
    output logic [    STREAMS-1:0] due,
    output logic [    STREAMS-1:0] lost
);
  localparam int LEFT_BITS = $clog2((REST > INTERVAL ? REST : INTERVAL) + 1);
  localparam int PROBES_BITS = $clog2(PROBES + 1);
  localparam logic [9:0] MICROSECONDS = 10'd999;

  logic [9:0] microseconds;
  logic       millisecond;
  always_ff @(posedge clk) begin
    millisecond <= tick && microseconds == '0;
    if (tick) microseconds <= microseconds == '0 ? MICROSECONDS : microseconds - 1'b1;
    if (rst) {millisecond, microseconds} <= '0;
  end

  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    logic [LEFT_BITS-1:0] left;  // milliseconds
    logic [PROBES_BITS-1:0] probes;
    logic mine;
    assign mine = STREAMS == 1 || stream == STREAM_BITS'(i);
    always_ff @(posedge clk) begin
      if (millisecond && left != '0) left <= left - 1'b1;
      if (mine && probed) {left, probes} <= {LEFT_BITS'(INTERVAL), probes - 1'b1};
      if (mine && heard) {left, probes} <= {LEFT_BITS'(REST), PROBES_BITS'(PROBES)};
      due[i]  <= left == '0 && probes != '0;
      lost[i] <= left == '0 && probes == '0;
      if (rst) {left, probes} <= {LEFT_BITS'(REST), PROBES_BITS'(PROBES)};
    end
  end
endmodule
`default_nettype wire
