// SPDX-License-Identifier: Apache-2.0
//
// Reset for one clock domain: asserted immediately, released with the clock.
//
//              +------------+
//   rst_in --->| sync_reset |---> rst_out     (clk: the destination's clock)
//              +------------+
`default_nettype none
module sync_reset (
    input  logic clk,
    input  logic rst_in,
    output logic rst_out
);
  // crossings.sdc and crossings.xdc find it by its name.
  (* ASYNC_REG = "TRUE" *) logic [3:0] sync_reset_stages;

  always_ff @(posedge clk or posedge rst_in) begin
    if (rst_in) sync_reset_stages <= '1;
    else sync_reset_stages <= {sync_reset_stages[2:0], 1'b0};
  end

  assign rst_out = sync_reset_stages[3];
endmodule
`default_nettype wire
