// SPDX-License-Identifier: Apache-2.0
//
// RMII: 10 or 100 Mb/s, between a GMII MAC and the pins (RMII Consortium, specification 1.2).
//
//                       +------+
//   gmii_tx, tx_ce <===>|      |====> rmii_txd, rmii_tx_en
//   gmii_rx, rx_ce <====| rmii |<==== rmii_rxd, rmii_crs_dv, rmii_rx_er
//   fast -------------->|      |
//                       +------+
//                          clk (the reference clock of 50 MHz)
//
// fast: 100 Mb/s, a dibit a clock; else 10 Mb/s, a dibit in ten clocks. Full duplex only.
`default_nettype none
module rmii (
    input  logic                  clk,          // reference clock, 50 MHz
    input  logic                  rst,
    input  logic                  fast,
    input  link_pkg::gmii_t       gmii_tx,      // from the MAC
    output logic                  tx_ce,        // a byte of gmii_tx is taken
    output logic            [1:0] rmii_txd,     // dibit, the lowest first
    output logic                  rmii_tx_en,   // rmii_txd is valid
    input  logic            [1:0] rmii_rxd,     // dibit, the lowest first
    input  logic                  rmii_crs_dv,  // carrier; rmii_rxd is valid
    input  logic                  rmii_rx_er,   // rmii_rxd is bad
    output link_pkg::gmii_t       gmii_rx,      // to the MAC
    output logic                  rx_ce         // gmii_rx has a byte
);
  localparam logic [3:0] LAST = 4'd9;

  logic [3:0] count;
  logic ce;
  always_ff @(posedge clk) begin
    count <= fast || count == LAST ? '0 : count + 4'd1;
    ce <= fast || count == LAST;
    if (rst) count <= '0;
  end

  // There is no pin for an error: a frame that the MAC spoils has a wrong check sequence or ends early.
  logic tx_error;
  bytes_to_symbols #(
      .BITS(2)
  ) transmit (
      .clk    (clk),
      .rst    (rst),
      .gmii_tx(gmii_tx),
      .tx_ce  (tx_ce),
      .m_ce   (ce),
      .m_data (rmii_txd),
      .m_valid(rmii_tx_en),
      .m_error(tx_error)
  );

  // CRS_DV comes before the first data, with zeros; at the end it is low in every second dibit while the PHY still has
  // data. So data begin with a dibit that is not zero, and end with the second low one.
  logic [1:0] rxd0, rxd;
  logic crs_dv0, crs_dv, rx_er0, rx_er, active, valid;
  assign valid = active ? crs_dv || crs_dv0 : crs_dv && rxd != '0;
  always_ff @(posedge clk) begin
    if (ce) begin
      {rxd0, crs_dv0, rx_er0} <= {rmii_rxd, rmii_crs_dv, rmii_rx_er};
      {rxd, crs_dv, rx_er} <= {rxd0, crs_dv0, rx_er0};
      active <= valid;
    end
    if (rst) active <= 1'b0;
  end
  symbols_to_bytes #(
      .BITS(2)
  ) receive (
      .clk    (clk),
      .rst    (rst),
      .s_ce   (ce),
      .s_data (rxd),
      .s_valid(valid),
      .s_error(rx_er),
      .gmii_rx(gmii_rx),
      .rx_ce  (rx_ce)
  );

  logic unused;
  assign unused = &{1'b0, tx_error};
endmodule
`default_nettype wire
