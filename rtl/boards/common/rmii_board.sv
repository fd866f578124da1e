// SPDX-License-Identifier: Apache-2.0
//
// A board with a PHY of 10 and 100 Mb/s behind RMII: the PHY, its management, and the design behind them.
//
//                +------------+
//                |            |====> rmii_txd, rmii_tx_en
//                | rmii_board |<==== rmii_rxd, rmii_crs_dv, rmii_rx_er
//                |            |<===> mdc, mdio_*
//                |            |----> phy_enable (low: reset), up, running
//                +------------+
//                 clk, user_clk
//
// clk: the reference clock of 50 MHz. rst: until user_clk is stable. Parameters: see board_design.
`default_nettype none
module rmii_board #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0
) (
    input  logic       clk,
    input  logic       rst,
    output logic       up,
    output logic       running,
    output logic       phy_enable,
    output logic       mdc,
    output logic       mdio_out,
    output logic       mdio_drive,
    input  logic       mdio_in,
    output logic [1:0] rmii_txd,
    output logic       rmii_tx_en,
    input  logic [1:0] rmii_rxd,
    input  logic       rmii_crs_dv,
    input  logic       rmii_rx_er,
    input  logic       user_clk
);
  localparam int KHZ = 50_000;  // of clk

  logic clk_rst;
  sync_reset reset (
      .clk    (clk),
      .rst_in (rst),
      .rst_out(clk_rst)
  );

  mac_pkg::phy_t phy;
  assign up = phy.link.up;
  phy_manager #(
      .MS     (SIMULATED != 0 ? KHZ / 100 : KHZ),
      .GIGABIT(0)
  ) manager (
      .rst   (clk_rst),
      .status(phy),
      .*
  );

  link_pkg::gmii_t gmii_tx, gmii_rx;
  logic tx_ce, rx_ce, fast;
  assign fast = phy.link.speed == mac_pkg::SPEED_100;
  rmii rmii (
      .rst(clk_rst),
      .*
  );

  board_design #(
      .DESIGN   (DESIGN),
      .PROTOCOL (PROTOCOL),
      .PACKETS  (PACKETS),
      .BITS     (BITS),
      .NUMBER   (NUMBER),
      .SIMULATED(SIMULATED),
      .TX_KHZ   (KHZ)
  ) board_design (
      .phy_status(phy),
      .tx_clk    (clk),
      .rx_clk    (clk),
      .*
  );
endmodule
`default_nettype wire
