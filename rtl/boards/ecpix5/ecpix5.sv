// SPDX-License-Identifier: Apache-2.0
//
// LambdaConcept ECPIX-5: an LFE5UM5G-85F and a Microchip KSZ9031RNX.
//
//            +---------------+
//   clk100 -->| ecpix5 |====> rgmii_tx*  |
//            |               |<==== rgmii_rx*  |  pins of the PHY
//            |               |<===> mdc, mdio  |
//            |               |----> phy_enable | (low: reset)
//            |               |----> led (low: lit; the link is up)
//            +---------------+
//
// The PHY delays the clock that it sends, and expects the board's delayed by 2 ns. Pins: ecpix5.lpf. Parameters: see
// board_design.
`default_nettype none
module ecpix5 #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
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
  logic up, running;
  assign led = !up;

  ecp5_gigabit #(
      .INPUT_DIV   (4),
      .FEEDBACK_DIV(5),
      .TXC_DELAY   (80),
      .DESIGN      (DESIGN),
      .PROTOCOL    (PROTOCOL),
      .PACKETS     (PACKETS),
      .BITS        (BITS),
      .NUMBER      (NUMBER),
      .SIMULATED   (SIMULATED)
  ) board (
      .clk_pin(clk100),
      .*
  );

  logic unused;
  assign unused = running;
endmodule
`default_nettype wire
