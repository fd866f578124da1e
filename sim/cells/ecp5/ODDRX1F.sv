// SPDX-License-Identifier: Apache-2.0
//
// Model of the output DDR register of a Lattice ECP5 (FPGA-TN-02035): D0 while SCLK is high, D1 while it is low.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module ODDRX1F (
    input  logic SCLK,
    input  logic RST,
    input  logic D0,
    input  logic D1,
    output logic Q
);
  logic first, second;
  always_ff @(posedge SCLK or posedge RST)
    if (RST) {first, second} <= '0;
    else {first, second} <= {D0, D1};
  assign Q = SCLK ? first : second;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
