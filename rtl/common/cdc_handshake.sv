// SPDX-License-Identifier: Apache-2.0
//
// Carries one word at a time from one clock domain to another.
//
//                 +---------------+
//   s_data ======>|               |======> m_data
//   s_valid ----->| cdc_handshake |------> m_valid
//   s_ready <-----|               |<------ m_ready
//                 +---------------+
//       s_clk, s_rst             m_clk, m_rst
//
// Both sides must be reset together. m_data is the register of the source, which is stable until the
// destination has read it, so only the two toggles of cdc_token are synchronized.
`default_nettype none
module cdc_handshake #(
    parameter int WIDTH = 32
) (
    input  logic             s_clk,
    input  logic             s_rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,
    input  logic             m_clk,
    input  logic             m_rst,
    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);
  cdc_token token (.*);

  cdc_register #(
      .WIDTH(WIDTH)
  ) held (
      .clk (s_clk),
      .load(s_valid && s_ready),
      .d   (s_data),
      .q   (m_data)
  );
endmodule
`default_nettype wire
