// SPDX-License-Identifier: Apache-2.0
//
// Model of a bidirectional pin of a Gowin FPGA: OEN high leaves it to the other side.
`default_nettype none
module IOBUF (
    input  logic I,
    input  logic OEN,
    output logic O,
    inout  wire  IO
);
  assign IO = OEN ? 1'bz : I;
  assign O  = IO;
endmodule
`default_nettype wire
