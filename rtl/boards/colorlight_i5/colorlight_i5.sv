// SPDX-License-Identifier: Apache-2.0
//
// Colorlight i5, version 7.0, on its extension board: a Lattice LFE5U-25F and the first of its two PHYs, a Broadcom B50612D.
//
//            +---------------+
//   clk25 -->| colorlight_i5 |====> rgmii_tx*  |
//            |               |<==== rgmii_rx*  |  pins of the PHY
//            |               |<===> mdc, mdio  |
//            |               |----> phy_enable | (low: reset)
//            |               |----> led (low: lit; the link is up)
//            +---------------+
//
// The PHY delays both clocks itself, as it is strapped on this module. Pins: colorlight_i5.lpf. Parameters: see board_design.
`default_nettype none
module colorlight_i5 #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0
) (
    input  logic       clk25,
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
  logic up, running;
  assign led = !up;

  ecp5_gigabit #(
      .INPUT_DIV   (1),
      .FEEDBACK_DIV(5),
      .RX_DELAY    (80),
      .DESIGN      (DESIGN),
      .PROTOCOL    (PROTOCOL),
      .PACKETS     (PACKETS),
      .BITS        (BITS),
      .NUMBER      (NUMBER),
      .SIMULATED   (SIMULATED)
  ) board (
      .clk_pin(clk25),
      .*
  );

  logic unused;
  assign unused = running;
endmodule
`default_nettype wire
