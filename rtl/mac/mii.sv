// SPDX-License-Identifier: Apache-2.0
//
// MII: 10 or 100 Mb/s, between a GMII MAC and the pins (IEEE 802.3 clause 22).
//
//                       +-----+
//   gmii_tx, tx_ce <===>|     |====> mii_txd, mii_tx_en, mii_tx_er   (tx_clk)
//   gmii_rx, rx_ce <====| mii |<==== mii_rxd, mii_rx_dv, mii_rx_er   (rx_clk)
//                       +-----+
//
// Both clocks come from the PHY: 25 MHz at 100 Mb/s, 2.5 MHz at 10 Mb/s. Full duplex only.
`default_nettype none
module mii (
    input  logic                  tx_clk,
    input  logic                  tx_rst,
    input  link_pkg::gmii_t       gmii_tx,    // from the MAC
    output logic                  tx_ce,      // a byte of gmii_tx is taken
    output logic            [3:0] mii_txd,    // half a byte, the lower one first
    output logic                  mii_tx_en,  // mii_txd is valid
    output logic                  mii_tx_er,  // mii_txd is bad
    input  logic                  rx_clk,
    input  logic                  rx_rst,
    input  logic            [3:0] mii_rxd,    // half a byte, the lower one first
    input  logic                  mii_rx_dv,  // mii_rxd is valid
    input  logic                  mii_rx_er,  // mii_rxd is bad
    output link_pkg::gmii_t       gmii_rx,    // to the MAC
    output logic                  rx_ce       // gmii_rx has a byte
);
  bytes_to_symbols #(
      .BITS(4)
  ) transmit (
      .clk    (tx_clk),
      .rst    (tx_rst),
      .gmii_tx(gmii_tx),
      .tx_ce  (tx_ce),
      .m_ce   (1'b1),
      .m_data (mii_txd),
      .m_valid(mii_tx_en),
      .m_error(mii_tx_er)
  );

  logic [3:0] rxd;
  logic rx_dv, rx_er;
  always_ff @(posedge rx_clk) {rxd, rx_dv, rx_er} <= {mii_rxd, mii_rx_dv, mii_rx_er};
  symbols_to_bytes #(
      .BITS(4)
  ) receive (
      .clk    (rx_clk),
      .rst    (rx_rst),
      .s_ce   (1'b1),
      .s_data (rxd),
      .s_valid(rx_dv),
      .s_error(rx_er),
      .gmii_rx(gmii_rx),
      .rx_ce  (rx_ce)
  );
endmodule
`default_nettype wire
