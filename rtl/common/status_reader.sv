// SPDX-License-Identifier: Apache-2.0
//
// Reads one of many status words of another clock domain.
//
//                  +---------------+====> index
//   s_index ======>|               |<==== value
//   s_valid ------>| status_reader |<---- value_valid
//   s_ready <------|               |
//   m_value <======|               |
//   m_valid <------|               |
//                  +---------------+
//          clk                  there_clk
//
// The word is sampled in its own domain, so its bits are consistent.
`default_nettype none
module status_reader #(
    parameter int INDEX_BITS = 3
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [INDEX_BITS-1:0] s_index,
    input  logic                  s_valid,
    output logic                  s_ready,
    output logic [          31:0] m_value,
    output logic                  m_valid,
    input  logic                  there_clk,
    input  logic                  there_rst,
    output logic [INDEX_BITS-1:0] index,
    input  logic [          31:0] value,
    input  logic                  value_valid
);
  logic index_valid, back_ready;

  cdc_handshake #(
      .WIDTH(INDEX_BITS)
  ) request (
      .s_clk  (clk),
      .s_rst  (rst),
      .s_data (s_index),
      .s_valid(s_valid),
      .s_ready(s_ready),
      .m_clk  (there_clk),
      .m_rst  (there_rst),
      .m_data (index),
      .m_valid(index_valid),
      .m_ready(back_ready && value_valid)
  );
  cdc_handshake #(
      .WIDTH(32)
  ) answer (
      .s_clk  (there_clk),
      .s_rst  (there_rst),
      .s_data (value),
      .s_valid(index_valid && value_valid),
      .s_ready(back_ready),
      .m_clk  (clk),
      .m_rst  (rst),
      .m_data (m_value),
      .m_valid(m_valid),
      .m_ready(1'b1)
  );
endmodule
`default_nettype wire
