// SPDX-License-Identifier: Apache-2.0
//
// Two-stage synchronizer for independent level signals or a Gray-coded bus.
//
//            +-----------+
//   d ------>| sync_bits |-----> q     (clk: the destination's clock)
//            +-----------+
//
// Two stages limit the chance of metastability. The bits of d may arrive in different cycles, so a
// bus may cross here only if it changes in one bit at a time.
`default_nettype none
module sync_bits #(
    parameter int WIDTH = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
  // crossings.sdc and crossings.xdc find the first one by its name.
  (* ASYNC_REG = "TRUE" *)logic [WIDTH-1:0] sync_first;
  (* ASYNC_REG = "TRUE" *)logic [WIDTH-1:0] sync_second;

  always_ff @(posedge clk) begin
    sync_first  <= d;
    sync_second <= sync_first;
  end

  assign q = sync_second;
endmodule
`default_nettype wire
