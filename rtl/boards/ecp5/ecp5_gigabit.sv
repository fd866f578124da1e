// SPDX-License-Identifier: Apache-2.0
//
// A board with a Lattice ECP5 and a gigabit PHY behind RGMII: ecp5_ethernet and the design behind it.
//
//              +--------------+
//   clk_pin -->| ecp5_gigabit |====> rgmii_tx*  |
//              |              |<==== rgmii_rx*  |  pins of the PHY
//              |              |<===> mdc, mdio  |
//              |              |----> phy_enable | (low: reset)
//              |              |----> up, running
//              +--------------+
//
// Parameters: see ecp5_ethernet and board_design.
`default_nettype none
module ecp5_gigabit #(
    parameter int INPUT_DIV = 1,
    parameter int FEEDBACK_DIV = 5,
    parameter int TXC_DELAY = 0,
    parameter int RX_DELAY = 0,
    parameter int ADDRESS = 0,
    parameter int WRITE_COUNT = 0,
    parameter logic [21*8-1:0] WRITES = '0,
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0
) (
    input  logic       clk_pin,
    output logic       up,
    output logic       running,
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
  logic rst, user_clk, tx_clk, tx_ce, rx_clk, rx_ce;
  link_pkg::gmii_t gmii_tx, gmii_rx;
  mac_pkg::phy_t phy_status;
  assign up = phy_status.link.up;
  ecp5_ethernet #(
      .INPUT_DIV   (INPUT_DIV),
      .FEEDBACK_DIV(FEEDBACK_DIV),
      .TXC_DELAY   (TXC_DELAY),
      .RX_DELAY    (RX_DELAY),
      .ADDRESS     (ADDRESS),
      .WRITE_COUNT (WRITE_COUNT),
      .WRITES      (WRITES),
      .SIMULATED   (SIMULATED)
  ) ethernet (
      .*
  );

  board_design #(
      .DESIGN   (DESIGN),
      .PROTOCOL (PROTOCOL),
      .PACKETS  (PACKETS),
      .BITS     (BITS),
      .NUMBER   (NUMBER),
      .SIMULATED(SIMULATED)
  ) board_design (
      .*
  );
endmodule
`default_nettype wire
