// SPDX-License-Identifier: Apache-2.0
//
// Terasic DE2-115: an Intel Cyclone IV EP4CE115 and the first of its two Marvell 88E1111, behind RGMII.
//
//              +---------+
//   clk50 ---->| de2_115 |====> rgmii_tx*  |
//              |         |<==== rgmii_rx*  |  pins of the PHY
//              |         |<===> mdc, mdio  |
//              |         |----> phy_enable | (low: reset)
//              |         |----> led[0]: the link is up, led[1]: data are on their way
//              +---------+
//
// The jumper JP1 selects RGMII, as it is delivered. The PHY delays both clocks: bits 1 and 7 of its register 20, which a
// software reset puts into effect. Pins: pins.tcl. Parameters: see board_design.
`default_nettype none
module de2_115 #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 32,
    parameter int BITS = 14,
    parameter int NUMBER = 1
) (
    input  logic       clk50,
    output logic [1:0] led,
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
  localparam int WRITE_COUNT = 2;
  localparam logic [21*8-1:0] WRITES = {
    (21 * 6)'(0),
    {5'd0, 16'h9140},  // software reset
    {5'd20, 16'h0CE2}  // delays of both clocks
  };

  // ---- clocks --------------------------------------------------------------------------------
  logic rst, user_clk, tx_clk, tx_rst, rx_clk, rx_rst, locked;
  logic [4:0] clocks;
  // 125 MHz and 62.5 MHz of 50 MHz.
  altpll #(
      .intended_device_family("Cyclone IV E"),
      .lpm_type              ("altpll"),
      .operation_mode        ("NORMAL"),
      .compensate_clock      ("CLK0"),
      .inclk0_input_frequency(20000),
      .clk0_multiply_by      (5),
      .clk0_divide_by        (2),
      .clk0_duty_cycle       (50),
      .clk0_phase_shift      ("0"),
      .clk1_multiply_by      (5),
      .clk1_divide_by        (4),
      .clk1_duty_cycle       (50),
      .clk1_phase_shift      ("0")
  ) pll (
      .inclk ({1'b0, clk50}),
      .clk   (clocks),
      .locked(locked)
  );
  assign {user_clk, tx_clk} = {clocks[1], clocks[0]};
  assign rx_clk = rgmii_rxc;
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
  assign mdio = mdio_drive ? mdio_out : 1'bz;
  assign mdio_in = mdio;
  assign led = {running, phy.link.up};
  phy_manager #(
      .ADDRESS    (16),
      .WRITE_COUNT(WRITE_COUNT),
      .WRITES     (WRITES)
  ) manager (
      .clk   (tx_clk),
      .rst   (tx_rst),
      .status(phy),
      .*
  );

  // ---- pins ----------------------------------------------------------------------------------
  link_pkg::gmii_t gmii_tx, gmii_rx;
  logic tx_ce, rx_ce;
  mac_pkg::link_t in_band_link;
  logic [7:0] txd, rxd;
  logic [1:0] tx_ctl, txc, rx_ctl;
  rgmii rgmii (
      .in_band     (1'b0),
      .speed       (phy.link.speed),
      .link        (in_band_link),
      .rgmii_txd   (txd),
      .rgmii_tx_ctl(tx_ctl),
      .rgmii_txc   (txc),
      .rgmii_rxd   (rxd),
      .rgmii_rx_ctl(rx_ctl),
      .*
  );
  altddio_out #(
      .intended_device_family("Cyclone IV E"),
      .lpm_type              ("altddio_out"),
      .width                 (6)
  ) out (
      .outclock(tx_clk),
      .datain_h({txc[0], tx_ctl[0], txd[3:0]}),
      .datain_l({txc[1], tx_ctl[1], txd[7:4]}),
      .dataout ({rgmii_txc, rgmii_tx_ctl, rgmii_txd})
  );
  // Of the registers that it fills at the two edges it gives, at a rising edge, the rising one and the falling one before it.
  logic [4:0] in_rise, in_fall, in_rise_late;
  altddio_in #(
      .intended_device_family("Cyclone IV E"),
      .lpm_type              ("altddio_in"),
      .width                 (5)
  ) in (
      .inclock  (rx_clk),
      .datain   ({rgmii_rx_ctl, rgmii_rxd}),
      .dataout_h(in_rise),
      .dataout_l(in_fall)
  );
  always_ff @(posedge rx_clk) in_rise_late <= in_rise;
  assign rxd = {in_fall[3:0], in_rise_late[3:0]};
  assign rx_ctl = {in_fall[4], in_rise_late[4]};

  // ---- design --------------------------------------------------------------------------------
  board_design #(
      .DESIGN  (DESIGN),
      .PROTOCOL(PROTOCOL),
      .PACKETS (PACKETS),
      .BITS    (BITS),
      .NUMBER  (NUMBER)
  ) board_design (
      .phy_status(phy),
      .*
  );

  logic unused;
  assign unused = &{1'b0, in_band_link, clocks[4:2]};
endmodule
`default_nettype wire
