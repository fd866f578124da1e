// Carries one word at a time from one clock domain to another (toggle request and acknowledge).
//
//                 +---------------+
//   s_data ======>|               |======> m_data
//   s_valid ----->| cdc_handshake |------> m_valid
//   s_ready <-----|               |<------ m_ready
//                 +---------------+
//       s_clk, s_rst             m_clk, m_rst
//
// Both sides must be reset together. m_data is the source's register, held still until the
// destination has taken it, so only the two toggles are synchronized.
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
  logic s_toggle, s_toggle_at_m;
  logic m_toggle, m_toggle_at_s;
  logic [WIDTH-1:0] held;

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
  assign m_data  = held;

  always_ff @(posedge s_clk) begin
    if (s_rst) s_toggle <= 1'b0;
    else if (s_valid && s_ready) s_toggle <= ~s_toggle;
    if (s_valid && s_ready) held <= s_data;
  end

  always_ff @(posedge m_clk) begin
    if (m_rst) m_toggle <= 1'b0;
    else if (m_valid && m_ready) m_toggle <= ~m_toggle;
  end
endmodule
