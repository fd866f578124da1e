// SPDX-License-Identifier: Apache-2.0
//
// Reverses the byte order of a field of any length; for 64 bits see link_pkg::swap64.
//
//             +--------------+
//   field ===>| byte_reverse |===> reversed
//             +--------------+
`default_nettype none
module byte_reverse #(
    parameter int BYTES = 8
) (
    input  logic [8*BYTES-1:0] field,
    output logic [8*BYTES-1:0] reversed
);
  for (genvar i = 0; i < BYTES; i++) begin : g_byte
    assign reversed[i*8+:8] = field[(BYTES-1-i)*8+:8];
  end
endmodule
`default_nettype wire
