// SPDX-License-Identifier: Apache-2.0
//
// What is behind the Ethernet interface of a real board: example_board with constants for its settings.
//
//                    +--------------+
//   phy_status =====>|              |----> running (data are on their way)
//                    | board_design |====> gmii_tx   (tx_clk)
//                    |              |<==== gmii_rx   (rx_clk)
//                    +--------------+
//                   user_clk, rst
//
// DESIGN, PROTOCOL, PACKETS, BITS, SIMULATED, TX_KHZ: as in example_board. NUMBER, 1 to 250, tells boards in one network apart: the MAC address
// is 02:fa:de:00:00:NUMBER, the IP address 10.9.0.(NUMBER + 1); data go to 10.9.0.1, port 10000. The source is a counter
// without an end. tx_ce, rx_ce: as in gmii_mac.
//
// A detector takes the place of pattern_source in the example design.
`default_nettype none
module board_design #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0,
    parameter int TX_KHZ = 125_000
) (
    input  logic                   rst,
    input  logic            [31:0] phy_status,
    input  logic                   user_clk,
    input  logic                   tx_clk,
    input  logic                   tx_ce,
    output link_pkg::gmii_t        gmii_tx,
    output logic                   running,
    input  logic                   rx_clk,
    input  logic                   rx_ce,
    input  link_pkg::gmii_t        gmii_rx
);
  localparam logic [47:0] MAC_ADDRESS = 48'h02FADE000000 + 48'(NUMBER);
  localparam logic [31:0] NETWORK = 32'h0A090000;
  localparam logic [31:0] MASK = 32'hFFFFFF00;
  localparam logic [7:0] COMPUTER = 8'd1;
  localparam logic [7:0] GATEWAY = 8'd254;
  localparam logic [15:0] PEER_PORT = 16'd10000;
  localparam logic [15:0] LOCAL_PORT = 16'hC000;
  localparam logic [1:0] PTP_SLAVE = 2'd1;

  logic [63:0] xgmii_txd;
  logic [ 7:0] xgmii_txc;
  logic path, ptp_pps, ptp_locked;
  logic [31:0] status_sent, status_retransmitted, status_early, status_delay;
  logic [28:0][31:0] counters;
  logic [79:0] ptp_now;
  logic [31:0] ptp_offset, ptp_delay, ptp_rate;

  example_board #(
      .DESIGN   (DESIGN),
      .WIDTH    (8),
      .PROTOCOL (PROTOCOL),
      .PACKETS  (PACKETS),
      .STREAMS  (1),
      .BITS     (BITS),
      .SIMULATED(SIMULATED),
      .TX_KHZ   (TX_KHZ)
  ) board (
      .enable_pin    (1'b1),
      .mac_address   (MAC_ADDRESS),
      .source_random (1'b0),
      .source_seed   ('0),
      .source_limit  ('0),
      .source_gap    ('0),
      .source_block  ('0),
      .first_packet  ('0),
      .first_sequence('0),
      .paper_rule    (1'b0),
      .ip_address    (NETWORK + 32'(NUMBER) + 32'd1),
      .ip_mask       (MASK),
      .ip_gateway    (NETWORK | 32'(GATEWAY)),
      .peer_ip       (NETWORK | 32'(COMPUTER)),
      .peer_port     (PEER_PORT),
      .local_port    (LOCAL_PORT),
      .mtu           (14'd1500),
      .push          (1'b0),
      .ecn           (1'b0),
      .sack          (1'b0),
      .streams       (3'd1),
      .payload       (14'd1472),
      .checksum      (1'b1),
      .start         (1'b1),
      .ptp_role      (PTP_SLAVE),
      .source_id     ('0),
      .first_window  ('0),
      .first_sec     ('0),
      .first_nsec    ('0),
      .window_ticks  ('0),
      .keepalive     ('0),
      .windows       ('0),
      .module_enable ('0),
      .pulse_seed    ('0),
      .pulse_rate    ('0),
      .burst_rate    ('0),
      .burst_every   ('0),
      .burst_ticks   ('0),
      .noise         ('0),
      .pulse_pin     (1'b0),
      .gmii_tx_ce    (tx_ce),
      .gmii_txd      (gmii_tx.data),
      .gmii_tx_en    (gmii_tx.valid),
      .gmii_tx_er    (gmii_tx.error),
      .gmii_rx_ce    (rx_ce),
      .gmii_rxd      (gmii_rx.data),
      .gmii_rx_dv    (gmii_rx.valid),
      .gmii_rx_er    (gmii_rx.error),
      .xgmii_rxd     ('0),
      .xgmii_rxc     ('0),
      .*
  );

  if (NUMBER < 1 || NUMBER > 250) begin : g_check
    $error("board_design: NUMBER must be 1 to 250");
  end

  logic unused;
  assign unused = &{
    1'b0,
    xgmii_txd,
    xgmii_txc,
    path,
    ptp_pps,
    ptp_locked,
    status_sent,
    status_retransmitted,
    status_early,
    status_delay,
    counters,
    ptp_now,
    ptp_offset,
    ptp_delay,
    ptp_rate
  };
endmodule
`default_nettype wire
