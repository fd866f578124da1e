// SPDX-License-Identifier: Apache-2.0
//
// Model of a clock buffer of an AMD 7 Series FPGA (UG472).
`default_nettype none
module BUFG (
    input  logic I,
    output logic O
);
  assign O = I;
endmodule
`default_nettype wire
