// SPDX-License-Identifier: Apache-2.0
//
// A register that another clock reads while it stands still.
//
//             +--------------+
//   d =======>|              |=====> q     (read in this clock or in another)
//   load ---->| cdc_register |
//             +--------------+
//                   clk
//
// Its bits do not change together as another clock sees them, so a synchronized signal must tell the reader that q stands
// still. Constraints of the crossings (crossings.sdc, crossings.xdc) find the register by its name.
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
