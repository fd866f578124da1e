// SPDX-License-Identifier: Apache-2.0
//
// Clocks and Ethernet of a board with a Lattice ECP5 and a gigabit PHY behind RGMII.
//
//              +---------------+
//   clk_pin -->|               |====> rgmii_tx*  |
//              |               |<==== rgmii_rx*  |  pins of the PHY
//   gmii_tx ==>| ecp5_ethernet |<===> mdc, mdio  |
//   gmii_rx <==|               |----> phy_enable | (low: reset)
//              |               |====> phy_status
//              +---------------+
//              user_clk, tx_clk, rx_clk, rst: for the design
//
// INPUT_DIV, FEEDBACK_DIV: see ecp5_pll, for a tx_clk of 125 MHz. TXC_DELAY, RX_DELAY: see ecp5_rgmii. ADDRESS, WRITE_COUNT,
// WRITES: see phy_manager. The speed is the one that the PHY has negotiated; tx_ce, rx_ce: as in gmii_mac.
`default_nettype none
module ecp5_ethernet #(
    parameter int INPUT_DIV = 1,
    parameter int FEEDBACK_DIV = 5,
    parameter int TXC_DELAY = 0,
    parameter int RX_DELAY = 0,
    parameter int ADDRESS = 0,
    parameter int WRITE_COUNT = 0,
    parameter logic [21*8-1:0] WRITES = '0,
    parameter int SIMULATED = 0
) (
    input  logic                  clk_pin,
    output logic                  rst,
    output mac_pkg::phy_t         phy_status,
    output logic                  phy_enable,
    output logic                  mdc,
    inout  wire                   mdio,
    output logic                  user_clk,
    output logic                  tx_clk,
    output logic                  tx_ce,
    input  link_pkg::gmii_t       gmii_tx,
    output logic            [3:0] rgmii_txd,
    output logic                  rgmii_tx_ctl,
    output logic                  rgmii_txc,
    output logic                  rx_clk,
    output logic                  rx_ce,
    output link_pkg::gmii_t       gmii_rx,
    input  logic                  rgmii_rxc,
    input  logic            [3:0] rgmii_rxd,
    input  logic                  rgmii_rx_ctl
);
  logic tx_rst, rx_rst;
  ecp5_pll #(
      .INPUT_DIV   (INPUT_DIV),
      .FEEDBACK_DIV(FEEDBACK_DIV)
  ) pll (
      .*
  );
  assign rx_clk = rgmii_rxc;
  sync_reset tx_reset (
      .clk    (tx_clk),
      .rst_in (rst),
      .rst_out(tx_rst)
  );
  sync_reset rx_reset (
      .clk    (rx_clk),
      .rst_in (rst),
      .rst_out(rx_rst)
  );

  logic mdio_out, mdio_drive, mdio_in;
  BB mdio_pad (
      .I(mdio_out),
      .T(!mdio_drive),
      .O(mdio_in),
      .B(mdio)
  );
  phy_manager #(
      .MS         (SIMULATED != 0 ? 1_250 : 125_000),
      .ADDRESS    (ADDRESS),
      .WRITE_COUNT(WRITE_COUNT),
      .WRITES     (WRITES)
  ) manager (
      .clk   (tx_clk),
      .rst   (tx_rst),
      .status(phy_status),
      .*
  );

  mac_pkg::link_t in_band_link;
  ecp5_rgmii #(
      .TXC_DELAY(TXC_DELAY),
      .RX_DELAY (RX_DELAY)
  ) rgmii (
      .in_band(1'b0),
      .speed  (phy_status.link.speed),
      .link   (in_band_link),
      .*
  );

  logic unused;
  assign unused = &{1'b0, in_band_link};
endmodule
`default_nettype wire
