// SPDX-License-Identifier: Apache-2.0
//
// AMD KC705: a Kintex-7 XC7K325T and a Marvell 88E1111 behind GMII, at 1 Gb/s.
//
//                +-------+
//   clk200 ----->| kc705 |====> gmii_gtx_clk, gmii_tx*  |
//                |       |<==== gmii_rx*                |  pins of the PHY
//                |       |<===> mdc, mdio               |
//                |       |----> phy_enable              | (low: reset)
//                |       |----> led[0]: the link is up, led[1]: data are on their way
//                +-------+
//
// The PHY offers 1000 Mb/s alone: below that GMII takes its transmit clock from the PHY. Data leave with tx_clk and the
// PHY's clock half a period later. clk200: a differential pair. Pins: kc705.xdc. Parameters: see board_design.
`default_nettype none
module kc705 #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 64,
    parameter int BITS = 15,
    parameter int NUMBER = 1
) (
    input  logic [1:0] clk200,
    output logic [1:0] led,
    output logic       phy_enable,
    output logic       mdc,
    inout  wire        mdio,
    output logic       gmii_gtx_clk,
    output logic [7:0] gmii_txd,
    output logic       gmii_tx_en,
    output logic       gmii_tx_er,
    input  logic       gmii_rx_clk,
    input  logic [7:0] gmii_rxd,
    input  logic       gmii_rx_dv,
    input  logic       gmii_rx_er
);
  // ---- clocks --------------------------------------------------------------------------------
  logic clk200_in, feedback_out, feedback, tx_out, user_out, locked;
  logic rst, user_clk, tx_clk, tx_rst, rx_clk, rx_rst;
  IBUFDS clk200_pad (
      .I (clk200[0]),
      .IB(clk200[1]),
      .O (clk200_in)
  );
  // 1 GHz inside: 125 MHz and 62.5 MHz.
  MMCME2_BASE #(
      .CLKIN1_PERIOD   (5.0),
      .CLKFBOUT_MULT_F (5.0),
      .CLKOUT0_DIVIDE_F(8.0),
      .CLKOUT1_DIVIDE  (16)
  ) pll (
      .CLKIN1  (clk200_in),
      .CLKFBIN (feedback),
      .RST     (1'b0),
      .PWRDWN  (1'b0),
      .CLKFBOUT(feedback_out),
      .CLKOUT0 (tx_out),
      .CLKOUT1 (user_out),
      .LOCKED  (locked)
  );
  BUFG feedback_buffer (
      .I(feedback_out),
      .O(feedback)
  );
  BUFG tx_buffer (
      .I(tx_out),
      .O(tx_clk)
  );
  BUFG user_buffer (
      .I(user_out),
      .O(user_clk)
  );
  BUFG rx_buffer (
      .I(gmii_rx_clk),
      .O(rx_clk)
  );
  assign rst = !locked;
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

  // ---- PHY -----------------------------------------------------------------------------------
  mac_pkg::phy_t phy;
  logic mdio_out, mdio_drive, mdio_in, running;
  IOBUF mdio_pad (
      .I (mdio_out),
      .T (!mdio_drive),
      .O (mdio_in),
      .IO(mdio)
  );
  assign led = {running, phy.link.up};
  phy_manager #(
      .SLOW(0)
  ) manager (
      .clk   (tx_clk),
      .rst   (tx_rst),
      .status(phy),
      .*
  );

  // ---- pins ----------------------------------------------------------------------------------
  link_pkg::gmii_t gmii_tx, gmii_tx_late, gmii_rx;
  (* IOB = "TRUE" *) logic [9:0] tx_pins, rx_pins;
  always_ff @(posedge tx_clk) begin
    gmii_tx_late <= gmii_tx;
    tx_pins <= {gmii_tx_late.data, gmii_tx_late.valid, gmii_tx_late.error};
  end
  assign {gmii_txd, gmii_tx_en, gmii_tx_er} = tx_pins;
  ODDR #(
      .DDR_CLK_EDGE("SAME_EDGE")
  ) gtx_clk (
      .C (tx_clk),
      .CE(1'b1),
      .D1(1'b0),
      .D2(1'b1),
      .R (1'b0),
      .S (1'b0),
      .Q (gmii_gtx_clk)
  );
  always_ff @(posedge rx_clk) begin
    rx_pins <= {gmii_rxd, gmii_rx_dv, gmii_rx_er};
    gmii_rx <= rx_pins;
  end

  // ---- design --------------------------------------------------------------------------------
  board_design #(
      .DESIGN  (DESIGN),
      .PROTOCOL(PROTOCOL),
      .PACKETS (PACKETS),
      .BITS    (BITS),
      .NUMBER  (NUMBER)
  ) board_design (
      .phy_status(phy),
      .tx_ce     (1'b1),
      .rx_ce     (1'b1),
      .*
  );

  logic unused;
  assign unused = rx_rst;
endmodule
`default_nettype wire
