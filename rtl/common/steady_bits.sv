// SPDX-License-Identifier: Apache-2.0
//
// A value that is taken when it has been the same in some clocks.
//
//            +-------------+
//   d ======>|             |=====> q
//   ce ----->| steady_bits |
//            +-------------+
//
// CLOCKS: clocks with ce in which d must be the same.
`default_nettype none
module steady_bits #(
    parameter int WIDTH  = 4,
    parameter int CLOCKS = 4
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             ce,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
  localparam int COUNT_BITS = $clog2(CLOCKS);
  localparam logic [COUNT_BITS-1:0] LAST = COUNT_BITS'(CLOCKS - 1);

  logic [WIDTH-1:0] last;
  logic [COUNT_BITS-1:0] count;
  always_ff @(posedge clk) begin
    if (ce) begin
      last  <= d;
      count <= d != last ? '0 : count == LAST ? count : count + 1'b1;
      if (d == last && count == LAST) q <= d;
    end
    if (rst) begin
      count <= '0;
      q <= '0;
    end
  end
endmodule
`default_nettype wire
