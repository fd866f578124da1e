// SPDX-License-Identifier: Apache-2.0
//
// Gray code to binary.
//
//             +----------------+
//   gray ====>| gray_to_binary |====> binary
//             +----------------+
`default_nettype none
module gray_to_binary #(
    parameter int WIDTH = 6
) (
    input  logic [WIDTH-1:0] gray,
    output logic [WIDTH-1:0] binary
);
  for (genvar i = 0; i < WIDTH; i++) begin : g_bit
    assign binary[i] = ^gray[WIDTH-1:i];
  end
endmodule
`default_nettype wire
