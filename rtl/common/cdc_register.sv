// SPDX-License-Identifier: Apache-2.0
//
// A register that another clock domain reads while it is stable.
//
//             +--------------+
//   d =======>|              |=====> q     (read in this clock or in another)
//   load ---->| cdc_register |
//             +--------------+
//                   clk
//
// In another clock domain its bits do not change together, so a synchronized signal must tell the reader when q is
// stable. Constraints of the crossings (crossings.sdc, crossings.xdc) find the register by its name.
`default_nettype none
module cdc_register #(
    parameter int WIDTH = 32
) (
    input  logic             clk,
    input  logic             load,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
  logic [WIDTH-1:0] cdc_held;
  always_ff @(posedge clk) if (load) cdc_held <= d;
  assign q = cdc_held;
endmodule
`default_nettype wire
