// basex_pcs and the PCS of LiteEth (liteeth_pcs, which the test makes) with their code groups crossed over, for tests.
//
//              +-----------+        +-------------+
//   gmii_* <==>| basex_pcs |<======>| liteeth_pcs |<==> sink_*, source_*
//              +-----------+  codes +-------------+
//                 tx_clk, rx_clk     peer_clk (its transmit clock is our rx_clk)
module extra_basex #(
    parameter int TIMER = 2000
) (
    input logic rst,
    input logic tx_clk,
    input logic [7:0] gmii_txd,
    input logic gmii_tx_en,
    input logic gmii_tx_er,
    output logic tx_ce,
    output logic up,
    output logic code_error,
    input logic [9:0] flip,
    input logic [3:0] shift,
    input logic sink_valid,
    input logic [7:0] sink_data,
    output logic sink_ready,
    output logic source_valid,
    output logic [7:0] source_data,
    output logic peer_up,
    input logic rx_clk,
    output logic [7:0] gmii_rxd,
    output logic gmii_rx_dv,
    output logic gmii_rx_er
);
  logic [9:0] tx_code, peer_code, peer_before;
  logic [19:0] peer_bits;
  logic rx_ce;
  link_pkg::gmii_t gmii_tx, gmii_rx;
  mac_pkg::link_t link;
  assign gmii_tx = {gmii_txd, gmii_tx_en, gmii_tx_er};
  assign {gmii_rxd, gmii_rx_dv, gmii_rx_er} = gmii_rx;
  assign up = link.up;
  // The line has no boundaries of code groups; and errors.
  always_ff @(posedge rx_clk) peer_before <= peer_code;
  assign peer_bits = {peer_code, peer_before};
  basex_pcs #(
      .TIMER(TIMER)
  ) pcs (
      .tx_rst (rst),
      .rx_rst (rst),
      .rx_code(peer_bits[shift+:10] ^ flip),
      .*
  );
  logic source_last;
  liteeth_pcs peer (
      .eth_tx_clk  (rx_clk),
      .eth_tx_rst  (rst),
      .eth_rx_clk  (tx_clk),
      .eth_rx_rst  (rst),
      .tbi_tx      (peer_code),
      .tbi_rx      (tx_code),
      .sink_valid  (sink_valid),
      .sink_ready  (sink_ready),
      .sink_data   (sink_data),
      .source_valid(source_valid),
      .source_data (source_data),
      .source_last (source_last),
      .link_up     (peer_up)
  );

  logic unused;
  assign unused = &{1'b0, rx_ce, link, source_last};
endmodule
