// SPDX-License-Identifier: Apache-2.0
//
// 1000BASE-X, or SGMII as its MAC, between a GMII MAC and a transceiver without coding (IEEE 802.3 clauses 36 and 37).
//
//                       +-----------+
//   gmii_tx, tx_ce <===>|           |====> tx_code   (tx_clk, 125 MHz; ten bits, bit 0 first)
//   gmii_rx, rx_ce <====| basex_pcs |<==== rx_code   (rx_clk, from the line; ten bits at any alignment)
//                       |           |====> link, code_error (rx_clk)
//                       +-----------+
//
// Below 1 Gb/s SGMII has each byte ten times, or a hundred times; tx_ce, rx_ce: as in gmii_mac.
// code_error: a pulse for each code group that is not valid.
`default_nettype none
module basex_pcs #(
    parameter int SGMII = 0,  // 0: 1000BASE-X; 1: SGMII, as its MAC
    parameter int TIMER = SGMII != 0 ? 200_000 : 1_250_000  // clocks in 10 ms; SGMII: 1.6 ms
) (
    input  logic                  tx_clk,
    input  logic                  tx_rst,
    input  link_pkg::gmii_t       gmii_tx,    // from the MAC
    output logic                  tx_ce,      // a byte of gmii_tx is taken
    output logic            [9:0] tx_code,    // code group to the transceiver, bit 0 first
    input  logic                  rx_clk,
    input  logic                  rx_rst,
    input  logic            [9:0] rx_code,    // ten bits from the transceiver, at any alignment
    output link_pkg::gmii_t       gmii_rx,    // to the MAC
    output logic                  rx_ce,      // gmii_rx has a byte
    output mac_pkg::link_t        link,       // state of the link
    output logic                  code_error
);
  // ---- receive -------------------------------------------------------------------------------
  link_pkg::gmii_t received;
  logic [15:0] partner, word;
  logic partner_valid, idle, synced;
  logic [1:0] mode;
  basex_rx receiver (
      .clk       (rx_clk),
      .rst       (rx_rst),
      .code      (rx_code),
      .gmii_rx   (received),
      .word      (partner),
      .word_valid(partner_valid),
      .*
  );
  basex_negotiation #(
      .SGMII(SGMII),
      .TIMER(TIMER)
  ) negotiation (
      .clk         (rx_clk),
      .rst         (rx_rst),
      .s_word      (partner),
      .s_word_valid(partner_valid),
      .*
  );

  // Of the copies of a byte one in the middle.
  localparam logic [6:0] TEN = 7'd9;
  localparam logic [6:0] HUNDRED = 7'd99;
  logic [6:0] rx_count, rx_last;
  logic rx_valid;
  assign rx_last = link.speed == mac_pkg::SPEED_10 ? HUNDRED : link.speed == mac_pkg::SPEED_100 ? TEN : '0;
  always_ff @(posedge rx_clk) begin
    rx_valid <= received.valid;
    rx_count <= (received.valid && !rx_valid) || rx_count >= rx_last ? '0 : rx_count + 7'd1;
    gmii_rx  <= received;
    rx_ce    <= rx_count == rx_last >> 1;
    if (rx_rst) {rx_valid, rx_count, rx_ce} <= '0;
  end

  // ---- transmit ------------------------------------------------------------------------------
  logic [1:0] tx_mode, tx_speed;
  logic [15:0] tx_word;
  cdc_steady #(
      .WIDTH(20)
  ) to_tx (
      .clk(tx_clk),
      .rst(tx_rst),
      .d  ({link.speed, mode, word}),
      .q  ({tx_speed, tx_mode, tx_word})
  );
  logic [6:0] tx_count, tx_last;
  assign tx_last = tx_speed == mac_pkg::SPEED_10 ? HUNDRED : tx_speed == mac_pkg::SPEED_100 ? TEN : '0;
  always_ff @(posedge tx_clk) begin
    tx_count <= tx_count >= tx_last ? '0 : tx_count + 7'd1;
    tx_ce <= tx_count >= tx_last;
    if (tx_rst) {tx_count, tx_ce} <= '0;
  end
  basex_tx sender (
      .clk (tx_clk),
      .rst (tx_rst),
      .mode(tx_mode),
      .word(tx_word),
      .code(tx_code),
      .*
  );
endmodule
`default_nettype wire
