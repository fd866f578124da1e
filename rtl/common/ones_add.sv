// SPDX-License-Identifier: Apache-2.0
//
// Adds 16-bit words in one's complement, one in each clock (RFC 1071).
//
//               +----------+
//   load, seed =>|          |====> sum
//   add, term ==>| ones_add |
//               +----------+
//
// The carry of an addition is added with the next one, so a last addition of zero completes `sum`.
`default_nettype none
module ones_add (
    input  logic        clk,
    input  logic        load,
    input  logic [15:0] seed,
    input  logic        add,
    input  logic [15:0] term,
    output logic [15:0] sum
);
  // The lowest bit is the carry into the others.
  logic [17:0] added;
  logic carry;
  assign added = {1'b0, sum, 1'b1} + {1'b0, term, carry};
  always_ff @(posedge clk) begin
    if (add) {carry, sum} <= added[17:1];
    if (load) {carry, sum} <= {1'b0, seed};
  end
  logic unused;
  assign unused = added[0];
endmodule
`default_nettype wire
