// SPDX-License-Identifier: Apache-2.0
//
// GMII MAC, both directions, between the frames of a core and the pins (IEEE 802.3 clause 35).
//
//               +----------+
//   s_axis ====>| gmii_mac |====> gmii_tx   (tx_clk)
//   m_axis <====|          |<==== gmii_rx   (rx_clk)
//               +----------+
//
// tx_ce, rx_ce: a byte passes the pins in this clock (1 at 1 Gb/s). s_axis_start: see gmii_mac_tx.
`default_nettype none
module gmii_mac (
    // transmit
    input logic tx_clk,
    input logic tx_rst,
    input logic tx_ce,
    input link_pkg::frame_t s_axis,  // frames to send
    output logic s_axis_tready,
    output logic s_axis_start,
    output link_pkg::gmii_t gmii_tx,  // to the pins
    // receive
    input logic rx_clk,
    input logic rx_rst,
    input logic rx_ce,
    input link_pkg::gmii_t gmii_rx,  // from the pins
    output link_pkg::frame_t m_axis,  // received frames, which cannot wait
    output link_pkg::mac_stat_t mac_stat  // a pulse for each bad frame, by its reason
);
  gmii_mac_tx mac_tx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .ce           (tx_ce),
      .s_axis_tdata (s_axis.tdata[7:0]),
      .s_axis_tvalid(s_axis.tvalid),
      .s_axis_tready(s_axis_tready),
      .s_axis_tlast (s_axis.tlast),
      .s_axis_tuser (s_axis.tuser),
      .s_axis_start (s_axis_start),
      .gmii_txd     (gmii_tx.data),
      .gmii_tx_en   (gmii_tx.valid),
      .gmii_tx_er   (gmii_tx.error)
  );

  logic [7:0] tdata;
  logic tvalid, tlast, tuser;
  gmii_mac_rx mac_rx (
      .clk          (rx_clk),
      .rst          (rx_rst),
      .ce           (rx_ce),
      .gmii_rxd     (gmii_rx.data),
      .gmii_rx_dv   (gmii_rx.valid),
      .gmii_rx_er   (gmii_rx.error),
      .m_axis_tdata (tdata),
      .m_axis_tvalid(tvalid),
      .m_axis_tlast (tlast),
      .m_axis_tuser (tuser),
      .stat_error   (mac_stat.error),
      .stat_runt    (mac_stat.runt),
      .stat_oversize(mac_stat.oversize),
      .stat_bad_fcs (mac_stat.bad_fcs)
  );
  assign m_axis = {56'd0, tdata, 8'd1, tvalid, tlast, tuser};

  logic unused;
  assign unused = &{1'b0, s_axis.tdata, s_axis.tkeep};
endmodule
`default_nettype wire
