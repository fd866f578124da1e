// SPDX-License-Identifier: Apache-2.0
//
// A board with a Lattice ECP5 and a gigabit PHY behind RGMII, with data and registers of one's own (docs/boards.md).
//
//            +----------+
//   clk100 ->| template |====> rgmii_tx*  |
//            |          |<==== rgmii_rx*  |  pins of the PHY
//            |          |<===> mdc, mdio  |
//            |          |----> phy_enable | (low: reset)
//            |          |----> led (low: lit; the link is up)
//            +----------+
//
// Pins: template.lpf, those of the LambdaConcept ECPIX-5. Yours to change: the pins, the PLL's dividers, and the delays of RGMII.
// Parameters: see template_design.
`default_nettype none
module template #(
    parameter int PACKETS = 16,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0
) (
    input  logic       clk100,
    output logic       led,
    output logic       phy_enable,
    output logic       mdc,
    inout  wire        mdio,
    output logic [3:0] rgmii_txd,
    output logic       rgmii_tx_ctl,
    output logic       rgmii_txc,
    input  logic       rgmii_rxc,
    input  logic [3:0] rgmii_rxd,
    input  logic       rgmii_rx_ctl
);
  logic rst, user_clk, tx_clk, tx_ce, rx_clk, rx_ce, running;
  link_pkg::gmii_t gmii_tx, gmii_rx;
  mac_pkg::phy_t phy_status;
  assign led = !phy_status.link.up;

  ecp5_ethernet #(
      .INPUT_DIV   (4),
      .FEEDBACK_DIV(5),
      .TXC_DELAY   (80),
      .RX_DELAY    (0),
      .SIMULATED   (SIMULATED)
  ) ethernet (
      .clk_pin(clk100),
      .*
  );

  template_design #(
      .PACKETS  (PACKETS),
      .NUMBER   (NUMBER),
      .SIMULATED(SIMULATED)
  ) template_design (
      .*
  );

  logic unused;
  assign unused = running;
endmodule
`default_nettype wire
