// SPDX-License-Identifier: Apache-2.0
//
// Bytes of GMII into nibbles or dibits for a PHY.
//
//                  +------------------+
//   gmii_tx ======>|                  |====> m_data, m_valid, m_error
//   tx_ce <--------| bytes_to_symbols |<---- m_ce (the symbol changes)
//                  +------------------+
//
// BITS: of a symbol, 4 (IEEE 802.3 clause 22.2.3: MII, RGMII below 1 Gb/s) or 2 (RMII); the lower bits go first. tx_ce:
// the MAC shall give its next byte, because the last one has been taken.
`default_nettype none
module bytes_to_symbols #(
    parameter int BITS = 4
) (
    input  logic                       clk,
    input  logic                       rst,
    input  link_pkg::gmii_t            gmii_tx,
    output logic                       tx_ce,
    input  logic                       m_ce,
    output logic            [BITS-1:0] m_data,
    output logic                       m_valid,
    output logic                       m_error
);
  localparam int SYMBOLS = 8 / BITS;
  localparam int PHASE_BITS = $clog2(SYMBOLS);

  logic [PHASE_BITS-1:0] phase;
  logic [7:BITS] rest;  // of the byte

  always_ff @(posedge clk) begin
    tx_ce <= m_ce && phase == '0;
    if (m_ce) begin
      phase <= phase + 1'b1;
      if (phase == '0) begin
        {rest, m_data} <= gmii_tx.data;
        {m_valid, m_error} <= {gmii_tx.valid, gmii_tx.error};
      end else begin
        {rest, m_data} <= 8'(rest);
      end
    end
    if (rst) begin
      phase   <= '0;
      tx_ce   <= 1'b0;
      m_valid <= 1'b0;
      m_error <= 1'b0;
    end
  end

  if (BITS != 2 && BITS != 4) begin : g_check
    $error("bytes_to_symbols: BITS must be 2 or 4");
  end
endmodule
`default_nettype wire
