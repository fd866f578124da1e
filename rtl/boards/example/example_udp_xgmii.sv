// Example board: the UDP/IP stack behind the XGMII MAC, with a pattern source and registers; see example_udp.
//
//               +--------------------+
//   settings ==>| example_udp_xgmii  |====> xgmii_tx
//               |                    |<==== xgmii_rx
//               +--------------------+
//      user_clk              tx_clk, rx_clk
//
// The three clocks may be unrelated.
module example_udp_xgmii (
    input  logic              rst,
    input  logic              user_clk,
    input  logic [47:0]       mac_address,
    input  logic [31:0]       ip_address,
    input  logic [31:0]       ip_mask,
    input  logic [31:0]       ip_gateway,
    input  logic [31:0]       peer_ip,
    input  logic [15:0]       peer_port,
    input  logic [15:0]       local_port,
    input  logic [13:0]       payload,
    input  logic              checksum,
    input  logic              start,
    input  logic              enable,
    input  logic [ 1:0]       ptp_role,
    input  logic              source_random,
    input  logic [63:0]       source_seed,
    input  logic [31:0]       source_limit,
    input  logic [15:0]       source_gap,
    input  logic [15:0]       source_block,
    output logic              running,
    output logic              path,
    output logic [79:0]       ptp_now,
    output logic              ptp_pps,
    output logic              ptp_locked,
    output logic [31:0]       ptp_offset,
    output logic [31:0]       ptp_delay,
    output logic [31:0]       ptp_rate,
    output logic [24:0][31:0] counters,
    input  logic              tx_clk,
    output logic [63:0]       xgmii_txd,
    output logic [ 7:0]       xgmii_txc,
    input  logic              rx_clk,
    input  logic [63:0]       xgmii_rxd,
    input  logic [ 7:0]       xgmii_rxc
);
  logic tx_rst, rx_rst;
  logic [64-1:0] tx_tdata, rx_tdata;
  logic [64/8-1:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, tx_tuser, tx_start;
  logic rx_tvalid, rx_tlast, rx_tuser;
  logic [3:0] mac_stat;

  example_udp #(
      .WIDTH(64)
  ) example (
      .rst(rst),
      .user_clk(user_clk),
      .mac_address(mac_address),
      .ip_address(ip_address),
      .ip_mask(ip_mask),
      .ip_gateway(ip_gateway),
      .peer_ip(peer_ip),
      .peer_port(peer_port),
      .local_port(local_port),
      .payload(payload),
      .checksum(checksum),
      .start(start),
      .enable(enable),
      .source_random(source_random),
      .source_seed(source_seed),
      .source_limit(source_limit),
      .source_gap(source_gap),
      .source_block(source_block),
      .running(running),
      .path(path),
      .ptp_role(ptp_role),
      .ptp_now(ptp_now),
      .ptp_pps(ptp_pps),
      .ptp_locked(ptp_locked),
      .ptp_offset(ptp_offset),
      .ptp_delay(ptp_delay),
      .ptp_rate(ptp_rate),
      .counters(counters),
      .tx_clk(tx_clk),
      .tx_rst(tx_rst),
      .m_axis_tdata(tx_tdata),
      .m_axis_tkeep(tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tlast(tx_tlast),
      .m_axis_tuser(tx_tuser),
      .m_axis_start(tx_start),
      .rx_clk(rx_clk),
      .rx_rst(rx_rst),
      .s_mac_tdata(rx_tdata),
      .s_mac_tkeep(rx_tkeep),
      .s_mac_tvalid(rx_tvalid),
      .s_mac_tlast(rx_tlast),
      .s_mac_tuser(rx_tuser),
      .mac_stat(mac_stat)
  );

  xgmii_mac_tx mac_tx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .s_axis_tdata (tx_tdata),
      .s_axis_tkeep (tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast (tx_tlast),
      .s_axis_tuser (tx_tuser),
      .s_axis_start (tx_start),
      .xgmii_txd    (xgmii_txd),
      .xgmii_txc    (xgmii_txc)
  );

  xgmii_mac_rx mac_rx (
      .clk          (rx_clk),
      .rst          (rx_rst),
      .xgmii_rxd    (xgmii_rxd),
      .xgmii_rxc    (xgmii_rxc),
      .m_axis_tdata (rx_tdata),
      .m_axis_tkeep (rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast (rx_tlast),
      .m_axis_tuser (rx_tuser),
      .stat_error   (mac_stat[0]),
      .stat_runt    (mac_stat[1]),
      .stat_oversize(mac_stat[2]),
      .stat_bad_fcs (mac_stat[3])
  );
  logic unused;
  assign unused = &{1'b0, tx_tready};
endmodule
