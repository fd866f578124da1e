// SPDX-License-Identifier: Apache-2.0
//
// ULX3S, versions 2 and 3, with an LFE5U-25F (or 12F), and a LAN8720 module of 100 Mb/s at its header pins GP/GN 9 to 13.
//
//            +-------+
//   clk25 -->|       |====> rmii_txd, rmii_tx_en
//            | ulx3s |<==== rmii_refclk, rmii_rxd, rmii_crs_dv
//            |       |<===> mdc, mdio
//            |       |----> led (the link is up)
//            +-------+
//
// The module's oscillator of 50 MHz is the clock of both directions; its PHY has no reset pin. Pins: ulx3s.lpf. Parameters:
// see board_design.
`default_nettype none
module ulx3s #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0
) (
    input  logic       clk25,
    output logic       led,
    output logic       mdc,
    inout  wire        mdio,
    input  logic       rmii_refclk,
    output logic [1:0] rmii_txd,
    output logic       rmii_tx_en,
    input  logic [1:0] rmii_rxd,
    input  logic       rmii_crs_dv
);
  localparam int KHZ = 50_000;  // of rmii_refclk

  logic rst, user_clk, pll_clk, clk, clk_rst;
  ecp5_pll pll (
      .clk_pin (clk25),
      .rst     (rst),
      .user_clk(user_clk),
      .tx_clk  (pll_clk)
  );
  assign clk = rmii_refclk;
  sync_reset reset (
      .clk    (clk),
      .rst_in (rst),
      .rst_out(clk_rst)
  );

  mac_pkg::phy_t phy;
  logic mdio_out, mdio_drive, mdio_in, phy_enable;
  BB mdio_pad (
      .I(mdio_out),
      .T(!mdio_drive),
      .O(mdio_in),
      .B(mdio)
  );
  assign led = phy.link.up;
  phy_manager #(
      .MS     (SIMULATED != 0 ? KHZ / 100 : KHZ),
      .GIGABIT(0)
  ) manager (
      .clk   (clk),
      .rst   (clk_rst),
      .status(phy),
      .*
  );

  link_pkg::gmii_t gmii_tx, gmii_rx;
  logic tx_ce, rx_ce, fast, running;
  assign fast = phy.link.speed == mac_pkg::SPEED_100;
  rmii rmii (
      .rst       (clk_rst),
      .rmii_rx_er(1'b0),
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

  logic unused;
  assign unused = &{1'b0, phy_enable, running, pll_clk};
endmodule
`default_nettype wire
