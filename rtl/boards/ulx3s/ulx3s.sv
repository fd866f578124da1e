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
  logic rst, user_clk, pll_clk;
  ecp5_pll pll (
      .clk_pin (clk25),
      .rst     (rst),
      .user_clk(user_clk),
      .tx_clk  (pll_clk)
  );

  logic mdio_out, mdio_drive, mdio_in, phy_enable, running;
  BB mdio_pad (
      .I(mdio_out),
      .T(!mdio_drive),
      .O(mdio_in),
      .B(mdio)
  );

  rmii_board #(
      .DESIGN   (DESIGN),
      .PROTOCOL (PROTOCOL),
      .PACKETS  (PACKETS),
      .BITS     (BITS),
      .NUMBER   (NUMBER),
      .SIMULATED(SIMULATED)
  ) board (
      .clk       (rmii_refclk),
      .up        (led),
      .rmii_rx_er(1'b0),
      .*
  );

  logic unused;
  assign unused = &{1'b0, phy_enable, running, pll_clk};
endmodule
`default_nettype wire
