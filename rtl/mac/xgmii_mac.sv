// SPDX-License-Identifier: Apache-2.0
//
// XGMII MAC, both directions, between the frames of a core and the pins (IEEE 802.3 clause 46).
//
//               +-----------+
//   s_axis ====>| xgmii_mac |====> xgmii_tx   (tx_clk)
//   m_axis <====|           |<==== xgmii_rx   (rx_clk)
//               +-----------+
//
// s_axis_start: see xgmii_mac_tx. With PAUSE the link partner can stop the frames (see mac_pause).
`default_nettype none
module xgmii_mac #(
    parameter bit PAUSE = 1  // 1: the link partner can stop the frames (see mac_pause)
) (
    // transmit
    input  logic                tx_clk,
    input  logic                tx_rst,
    input  link_pkg::frame_t    s_axis,         // frames to send
    output logic                s_axis_tready,
    output logic                s_axis_start,
    output logic                paused,         // the link partner has stopped the frames
    output link_pkg::xgmii_t    xgmii_tx,       // to the pins
    // receive
    input  logic                rx_clk,
    input  logic                rx_rst,
    input  link_pkg::xgmii_t    xgmii_rx,       // from the pins
    output link_pkg::frame_t    m_axis,         // received frames, which cannot wait
    output link_pkg::mac_stat_t mac_stat        // a pulse for each bad frame, by its reason
);
  xgmii_mac_tx mac_tx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .s_axis_tdata (s_axis.tdata),
      .s_axis_tkeep (s_axis.tkeep),
      .s_axis_tvalid(s_axis.tvalid),
      .s_axis_tready(s_axis_tready),
      .s_axis_tlast (s_axis.tlast),
      .s_axis_tuser (s_axis.tuser),
      .s_axis_start (s_axis_start),
      .pause        (paused),
      .xgmii_txd    (xgmii_tx.data),
      .xgmii_txc    (xgmii_tx.control)
  );

  xgmii_mac_rx mac_rx (
      .clk          (rx_clk),
      .rst          (rx_rst),
      .xgmii_rxd    (xgmii_rx.data),
      .xgmii_rxc    (xgmii_rx.control),
      .m_axis_tdata (m_axis.tdata),
      .m_axis_tkeep (m_axis.tkeep),
      .m_axis_tvalid(m_axis.tvalid),
      .m_axis_tlast (m_axis.tlast),
      .m_axis_tuser (m_axis.tuser),
      .stat_error   (mac_stat.error),
      .stat_runt    (mac_stat.runt),
      .stat_oversize(mac_stat.oversize),
      .stat_bad_fcs (mac_stat.bad_fcs)
  );

  if (PAUSE) begin : g_pause
    mac_pause obey (
        .tx_clk       (tx_clk),
        .tx_rst       (tx_rst),
        .pause        (paused),
        .rx_clk       (rx_clk),
        .rx_rst       (rx_rst),
        .s_axis_tdata (m_axis.tdata),
        .s_axis_tvalid(m_axis.tvalid),
        .s_axis_tlast (m_axis.tlast),
        .s_axis_tuser (m_axis.tuser)
    );
  end else begin : g_no_pause
    assign paused = 1'b0;
  end
endmodule
`default_nettype wire
