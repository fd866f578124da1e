// SPDX-License-Identifier: Apache-2.0
//
// Nibbles or dibits from a PHY into bytes of GMII.
//
//                        +------------------+
//   s_data, s_valid, ===>|                  |====> gmii_rx
//   s_error              | symbols_to_bytes |----> rx_ce (gmii_rx has a new byte)
//   s_ce --------------->|                  |
//                        +------------------+
//
// BITS: of a symbol, 4 (IEEE 802.3 clause 22.2.3: MII, RGMII below 1 Gb/s) or 2 (RMII); the lower bits come first. A PHY
// may lose symbols of the preamble, so bytes are counted from the start delimiter. Symbols at the end that fill no byte
// are discarded, as the standard says.
`default_nettype none
module symbols_to_bytes #(
    parameter int BITS = 4
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       s_ce,
    input  logic            [BITS-1:0] s_data,
    input  logic                       s_valid,
    input  logic                       s_error,
    output link_pkg::gmii_t            gmii_rx,
    output logic                       rx_ce
);
  localparam int SYMBOLS = 8 / BITS;
  localparam int PHASE_BITS = $clog2(SYMBOLS);
  localparam logic [PHASE_BITS-1:0] LAST = PHASE_BITS'(SYMBOLS - 1);

  logic [7:BITS] part;
  logic [7:0] shifted;
  logic [PHASE_BITS-1:0] phase;
  logic delimited, delimiter, bad;
  assign shifted   = {s_data, part};
  assign delimiter = !delimited && shifted == mac_pkg::SFD;

  always_ff @(posedge clk) begin
    rx_ce <= 1'b0;
    if (s_ce && s_valid) begin
      part  <= shifted[7:BITS];
      phase <= delimiter ? '0 : phase + 1'b1;
      bad   <= s_error || (bad && phase != '0);
      if (delimiter) delimited <= 1'b1;
      if (delimiter || phase == LAST) begin
        gmii_rx <= {shifted, 1'b1, s_error || (bad && phase != '0)};
        rx_ce   <= 1'b1;
      end
    end else if (s_ce) begin
      part <= '0;
      phase <= '0;
      bad <= 1'b0;
      delimited <= 1'b0;
      gmii_rx <= '0;
      rx_ce <= 1'b1;
    end
    if (rst) begin
      phase <= '0;
      delimited <= 1'b0;
      gmii_rx <= '0;
    end
  end

  if (BITS != 2 && BITS != 4) begin : g_check
    $error("symbols_to_bytes: BITS must be 2 or 4");
  end
endmodule
`default_nettype wire
