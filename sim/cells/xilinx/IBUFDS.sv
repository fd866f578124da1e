// SPDX-License-Identifier: Apache-2.0
//
// Model of a differential input of an AMD 7 Series FPGA (UG471).
`default_nettype none
/* verilator lint_off UNUSEDSIGNAL */
module IBUFDS (
    input  logic I,
    input  logic IB,
    output logic O
);
  assign O = I;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
`default_nettype wire
