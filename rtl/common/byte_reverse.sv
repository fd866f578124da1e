// SPDX-License-Identifier: Apache-2.0
//
// A field of any length with its bytes in the opposite order; of 64 bits: link_pkg::swap64.
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
