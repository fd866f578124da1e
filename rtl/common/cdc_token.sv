// SPDX-License-Identifier: Apache-2.0
//
// Carries events one at a time from one clock domain to another (toggle request and acknowledge).
//
//                 +-----------+
//   s_valid ----->|           |------> m_valid
//   s_ready <-----| cdc_token |<------ m_ready
//                 +-----------+
//       s_clk, s_rst      m_clk, m_rst
//
// Both sides must be reset together. Data of an event is in a cdc_register, which is loaded when s_valid and s_ready are
// high, and is stable while m_valid is high.
`default_nettype none
module cdc_token (
    input  logic s_clk,
    input  logic s_rst,
    input  logic s_valid,
    output logic s_ready,
    input  logic m_clk,
    input  logic m_rst,
    output logic m_valid,
    input  logic m_ready
);
  logic s_toggle, s_toggle_at_m;
  logic m_toggle, m_toggle_at_s;

  sync_bits to_m (
      .clk(m_clk),
      .d  (s_toggle),
      .q  (s_toggle_at_m)
  );
  sync_bits to_s (
      .clk(s_clk),
      .d  (m_toggle),
      .q  (m_toggle_at_s)
  );

  assign s_ready = s_toggle == m_toggle_at_s;
  assign m_valid = m_toggle != s_toggle_at_m;

  always_ff @(posedge s_clk) begin
    if (s_rst) s_toggle <= 1'b0;
    else if (s_valid && s_ready) s_toggle <= ~s_toggle;
  end

  always_ff @(posedge m_clk) begin
    if (m_rst) m_toggle <= 1'b0;
    else if (m_valid && m_ready) m_toggle <= ~m_toggle;
  end
endmodule
`default_nettype wire
