// SPDX-License-Identifier: Apache-2.0
//
// A field of the state of each stream: in distributed RAM, or in a register if there is one stream.
//
//               +-------------+
//   stream ====>|             |====> q (of the stream, at once)
//   d ========> | tcp_context |
//   write ----->|             |
//               +-------------+
`default_nettype none
module tcp_context #(
    parameter int WIDTH = 32,
    parameter int STREAMS = 1,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                   clk,
    input  logic [STREAM_BITS-1:0] stream,
    input  logic                   write,
    input  logic [      WIDTH-1:0] d,
    output logic [      WIDTH-1:0] q
);
  if (STREAMS == 1) begin : g_register
    always_ff @(posedge clk) if (write) q <= d;
    logic unused;
    assign unused = &{1'b0, stream};
  end else begin : g_memory
    (* ram_style = "distributed" *)
    logic [WIDTH-1:0] fields[STREAMS];
    always_ff @(posedge clk) if (write) fields[stream] <= d;
    assign q = fields[stream];
  end
endmodule
`default_nettype wire
