// SPDX-License-Identifier: Apache-2.0
//
// RGMII with the DDR registers and delays of a Lattice ECP5 (FPGA-TN-02035).
//
//                       +------------+
//   gmii_tx, tx_ce <===>|            |====> pins of RGMII, transmit   (tx_clk)
//   gmii_rx, rx_ce <====| ecp5_rgmii |<==== pins of RGMII, receive    (rx_clk)
//   in_band, speed ---->|            |====> link
//                       +------------+
//
// Ports and clocks as in rgmii. TXC_DELAY, RX_DELAY: in steps of 25 ps, up to 127: how much later rgmii_txc leaves than
// the data, and how much later rgmii_rxd and rgmii_rx_ctl arrive at their registers.
`default_nettype none
module ecp5_rgmii #(
    parameter int TXC_DELAY = 0,
    parameter int RX_DELAY  = 0
) (
    input  logic                  in_band,
    input  logic            [1:0] speed,
    input  logic                  tx_clk,
    input  logic                  tx_rst,
    input  link_pkg::gmii_t       gmii_tx,
    output logic                  tx_ce,
    output mac_pkg::link_t        link,
    output logic            [3:0] rgmii_txd,
    output logic                  rgmii_tx_ctl,
    output logic                  rgmii_txc,
    input  logic                  rx_clk,
    input  logic                  rx_rst,
    input  logic            [3:0] rgmii_rxd,
    input  logic                  rgmii_rx_ctl,
    output link_pkg::gmii_t       gmii_rx,
    output logic                  rx_ce
);
  logic [7:0] txd, rxd;
  logic [1:0] tx_ctl, txc, rx_ctl;
  rgmii rgmii (
      .rgmii_txd   (txd),
      .rgmii_tx_ctl(tx_ctl),
      .rgmii_txc   (txc),
      .rgmii_rxd   (rxd),
      .rgmii_rx_ctl(rx_ctl),
      .*
  );

  // Clock, control, data.
  logic [5:0] out_first, out_second, out, out_delayed;
  assign out_first = {txc[0], tx_ctl[0], txd[3:0]};
  assign out_second = {txc[1], tx_ctl[1], txd[7:4]};
  assign {rgmii_txc, rgmii_tx_ctl, rgmii_txd} = out_delayed;
  for (genvar i = 0; i < 6; i++) begin : g_out
    ODDRX1F register (
        .SCLK(tx_clk),
        .RST (1'b0),
        .D0  (out_first[i]),
        .D1  (out_second[i]),
        .Q   (out[i])
    );
    DELAYG #(
        .DEL_MODE ("USER_DEFINED"),
        .DEL_VALUE(i == 5 ? TXC_DELAY : 0)
    ) delay (
        .A(out[i]),
        .Z(out_delayed[i])
    );
  end

  logic [4:0] in, in_delayed, in_rise, in_fall;
  assign in = {rgmii_rx_ctl, rgmii_rxd};
  assign rxd = {in_fall[3:0], in_rise[3:0]};
  assign rx_ctl = {in_fall[4], in_rise[4]};
  for (genvar i = 0; i < 5; i++) begin : g_in
    DELAYG #(
        .DEL_MODE ("USER_DEFINED"),
        .DEL_VALUE(RX_DELAY)
    ) delay (
        .A(in[i]),
        .Z(in_delayed[i])
    );
    IDDRX1F register (
        .SCLK(rx_clk),
        .RST (1'b0),
        .D   (in_delayed[i]),
        .Q0  (in_rise[i]),
        .Q1  (in_fall[i])
    );
  end
endmodule
`default_nettype wire
