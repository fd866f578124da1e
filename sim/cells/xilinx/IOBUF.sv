// SPDX-License-Identifier: Apache-2.0
//
// Model of a bidirectional pin of an AMD 7 Series FPGA (UG471): T high leaves it to the other side.
`default_nettype none
module IOBUF (
    input  logic I,
    input  logic T,
    output logic O,
    inout  wire  IO
);
  assign IO = T ? 1'bz : I;
  assign O  = IO;
endmodule
`default_nettype wire
