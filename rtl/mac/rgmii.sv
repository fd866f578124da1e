// SPDX-License-Identifier: Apache-2.0
//
// RGMII: 10, 100 or 1000 Mb/s, between a GMII MAC and DDR registers at the pins (RGMII 2.0).
//
//                       +-------+
//   gmii_tx, tx_ce <===>|       |====> rgmii_txd, rgmii_tx_ctl, rgmii_txc   (tx_clk, 125 MHz)
//   gmii_rx, rx_ce <====| rgmii |<==== rgmii_rxd, rgmii_rx_ctl              (rx_clk, from the PHY)
//   in_band, speed ---->|       |====> link
//                       +-------+
//
// Of the vectors to and from DDR registers the lower half is at the pins first: rgmii_txd[3:0] while tx_clk is high,
// rgmii_txd[7:4] while it is low; rgmii_rxd[3:0] was sampled at the rising edge of rx_clk and rgmii_rxd[7:4] at the falling
// edge after it. Data and rgmii_txc change together: a delay of 2 ns is the board's, or the PHY's (RGMII-ID).
//
// in_band: the speed, and `link` (tx_clk), are those that the PHY sends between frames; else the speed is `speed`
// (mac_pkg), and `link` means nothing. rx_clk is 125, 25 or 2.5 MHz, by the speed; tx_clk always 125 MHz. Full duplex only.
`default_nettype none
module rgmii (
    input logic in_band,
    input logic [1:0] speed,  // without in_band (mac_pkg)
    input logic tx_clk,
    input logic tx_rst,
    input link_pkg::gmii_t gmii_tx,  // from the MAC
    output logic tx_ce,  // a byte of gmii_tx is taken
    output mac_pkg::link_t link,  // with in_band: as the PHY says between frames
    output logic [7:0] rgmii_txd,  // to DDR registers, lower half first
    output logic [1:0] rgmii_tx_ctl,  // to DDR registers: valid, then valid xor error
    output logic [1:0] rgmii_txc,  // to DDR registers: the clock
    input logic rx_clk,
    input logic rx_rst,
    input logic [7:0] rgmii_rxd,  // from DDR registers, lower half first
    input logic [1:0] rgmii_rx_ctl,  // from DDR registers: valid, then valid xor error
    output link_pkg::gmii_t gmii_rx,  // to the MAC
    output logic rx_ce  // gmii_rx has a byte
);
  // ---- speed ---------------------------------------------------------------------------------
  logic [1:0] tx_speed;
  logic tx_gigabit, rx_gigabit;
  always_ff @(posedge tx_clk) begin
    tx_speed   <= in_band ? link.speed : speed;
    tx_gigabit <= tx_speed == mac_pkg::SPEED_1000;
  end
  sync_bits sync_gigabit (
      .clk(rx_clk),
      .d  (tx_gigabit),
      .q  (rx_gigabit)
  );

  // ---- transmit ------------------------------------------------------------------------------
  // Clocks of a nibble below 1 Gb/s, and halves of clocks in which the PHY's clock is high.
  logic [5:0] clocks;
  logic [6:0] high;
  logic [5:0] count;
  logic nibble_ce, byte_ce;
  logic [3:0] nibble;
  logic nibble_valid, nibble_error;
  assign clocks = tx_speed == mac_pkg::SPEED_100 ? 6'd5 : 6'd50;
  assign high = 7'(clocks);
  assign nibble_ce = count == '0;
  bytes_to_symbols #(
      .BITS(4)
  ) nibbles (
      .clk    (tx_clk),
      .rst    (tx_rst),
      .gmii_tx(gmii_tx),
      .tx_ce  (byte_ce),
      .m_ce   (nibble_ce),
      .m_data (nibble),
      .m_valid(nibble_valid),
      .m_error(nibble_error)
  );

  // The count of the clock whose nibble is at hand.
  logic [5:0] shown;
  logic [1:0] is_high;
  assign is_high = {{shown, 1'b1} < high, {shown, 1'b0} < high};
  always_ff @(posedge tx_clk) begin
    count <= count + 6'd1 >= clocks ? '0 : count + 6'd1;
    shown <= count;
    tx_ce <= tx_gigabit || byte_ce;
    if (tx_gigabit) begin
      rgmii_txd <= gmii_tx.data;
      rgmii_tx_ctl <= {gmii_tx.valid ^ gmii_tx.error, gmii_tx.valid};
      rgmii_txc <= 2'b01;
    end else begin
      rgmii_txd <= {2{nibble}};
      for (int i = 0; i < 2; i++) rgmii_tx_ctl[i] <= nibble_valid ^ (nibble_error && !is_high[i]);
      rgmii_txc <= is_high;
    end
    if (tx_rst) count <= '0;
  end

  // ---- receive -------------------------------------------------------------------------------
  logic [7:0] rxd;
  logic rx_dv, rx_er;
  link_pkg::gmii_t slow;
  logic slow_ce;
  always_ff @(posedge rx_clk)
    {rxd, rx_dv, rx_er} <= {
      rgmii_rxd, rgmii_rx_ctl[0], rgmii_rx_ctl[0] ^ rgmii_rx_ctl[1]
    };
  symbols_to_bytes #(
      .BITS(4)
  ) bytes (
      .clk    (rx_clk),
      .rst    (rx_rst),
      .s_ce   (1'b1),
      .s_data (rxd[3:0]),
      .s_valid(rx_dv),
      .s_error(rx_er),
      .gmii_rx(slow),
      .rx_ce  (slow_ce)
  );
  always_ff @(posedge rx_clk) begin
    gmii_rx <= rx_gigabit ? {rxd, rx_dv, rx_er} : slow;
    rx_ce   <= rx_gigabit || slow_ce;
  end

  // ---- in-band status ------------------------------------------------------------------------
  // Taken when it has been the same for some clocks, on both sides: a PHY may change it in any clock, and its bits arrive in
  // different ones.
  logic [3:0] received;
  steady_bits #(
      .WIDTH(4)
  ) between_frames (
      .clk(rx_clk),
      .rst(rx_rst),
      .ce (!rx_dv && !rx_er),
      .d  (rxd[3:0]),
      .q  (received)
  );
  cdc_steady #(
      .WIDTH(4)
  ) sync_received (
      .clk(tx_clk),
      .rst(tx_rst),
      .d  (received),
      .q  (link)
  );
endmodule
`default_nettype wire
