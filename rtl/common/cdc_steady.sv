// SPDX-License-Identifier: Apache-2.0
//
// A value that changes rarely, read in another clock domain.
//
//            +------------+
//   d ======>| cdc_steady |=====> q     (clk: the destination's clock)
//            +------------+
//
// The bits of d, each from a register, arrive in different clocks; q changes when all have been the same for some clocks. A
// value that stays for less is not seen.
`default_nettype none
module cdc_steady #(
    parameter int WIDTH = 4
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
  logic [WIDTH-1:0] seen;
  sync_bits #(
      .WIDTH(WIDTH)
  ) sync (
      .clk(clk),
      .d  (d),
      .q  (seen)
  );
  steady_bits #(
      .WIDTH(WIDTH)
  ) steady (
      .clk(clk),
      .rst(rst),
      .ce (1'b1),
      .d  (seen),
      .q  (q)
  );
endmodule
`default_nettype wire
