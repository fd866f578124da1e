// SPDX-License-Identifier: Apache-2.0
//
// Model of a bidirectional pin of a Lattice ECP5: T high leaves it to the other side.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module BB (
    input  logic I,
    input  logic T,
    output logic O,
    inout  wire  B
);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
