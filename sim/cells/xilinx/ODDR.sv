// SPDX-License-Identifier: Apache-2.0
//
// Model of the output DDR register of an AMD 7 Series FPGA (UG471): D1 while C is high, D2 while it is low.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module ODDR #(
    parameter string DDR_CLK_EDGE = "OPPOSITE_EDGE"
) (
    input  logic C,
    input  logic CE,
    input  logic D1,
    input  logic D2,
    input  logic R,
    input  logic S,
    output logic Q
);
  logic first, second;
  always_ff @(posedge C) if (CE) {first, second} <= {D1, D2};
  assign Q = C ? first : second;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
