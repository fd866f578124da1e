// SPDX-License-Identifier: Apache-2.0
//
// A timer for each stream.
//
//                 +-----------+
//   stream ======>|           |----> runs (of the stream)
//   interval ====>| tcp_timer |====> due (a bit a stream, until it is set or stopped)
//   set, stop --->|           |====> now (microseconds)
//   tick -------->|           |
//                 +-----------+
//
// It checks one deadline per clock, and each at least once in a microsecond.
`default_nettype none
module tcp_timer #(
    parameter int STREAMS = 1,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   tick,
    input  logic [STREAM_BITS-1:0] stream,
    input  logic                   set,
    input  logic                   stop,
    input  logic [           22:0] interval,
    output logic                   runs,
    output logic [    STREAMS-1:0] due,
    output logic [           23:0] now
);
  logic [STREAMS-1:0] running;
  logic [STREAM_BITS-1:0] scan, scanned, touched;
  logic [23:0] deadline;
  logic is_over, was_touched;
  assign runs = running[stream];

  if (STREAMS == 1) begin : g_register
    always_ff @(posedge clk) if (set) deadline <= now + 24'(interval);
    assign scan = '0;
  end else begin : g_memory
    (* ram_style = "distributed" *)
    logic [23:0] deadlines[STREAMS];
    always_ff @(posedge clk) begin
      if (set) deadlines[stream] <= now + 24'(interval);
      scan <= rst || scan == STREAM_BITS'(STREAMS - 1) ? '0 : scan + 1'b1;
    end
    assign deadline = deadlines[scan];
  end

  always_ff @(posedge clk) begin
    if (tick) now <= now + 24'd1;
    is_over <= deadline == now;
    scanned <= scan;
    was_touched <= set || stop;
    touched <= stream;
    // What was looked at may be of the interval before.
    if (is_over && running[scanned] && !(was_touched && touched == scanned)) due[scanned] <= 1'b1;
    if (set || stop) begin
      running[stream] <= set;
      due[stream] <= 1'b0;
    end
    if (rst) begin
      running <= '0;
      due <= '0;
      now <= '0;
    end
  end
endmodule
`default_nettype wire
