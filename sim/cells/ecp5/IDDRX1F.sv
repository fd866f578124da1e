// SPDX-License-Identifier: Apache-2.0
//
// Model of the input DDR register of a Lattice ECP5 (FPGA-TN-02035): Q0 is D at the last rising edge but one, Q1 at the falling
// edge after it; both change at the rising edge.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module IDDRX1F (
    input  logic D,
    input  logic SCLK,
    input  logic RST,
    output logic Q0,
    output logic Q1
);
  logic first, second;
  always_ff @(posedge SCLK or posedge RST)
    if (RST) first <= 1'b0;
    else first <= D;
  always_ff @(negedge SCLK or posedge RST)
    if (RST) second <= 1'b0;
    else second <= D;
  always_ff @(posedge SCLK or posedge RST)
    if (RST) {Q0, Q1} <= '0;
    else {Q0, Q1} <= {first, second};
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
