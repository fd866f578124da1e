// Example board: a link core behind the GMII MAC, with the pattern source and the user commands.
//
//               +------------------------+
//   settings ==>| example_gmii     |====> gmii_tx
//               |                        |<==== gmii_rx
//               +------------------------+
//      user_clk              tx_clk, rx_clk
//
// The three clocks may be unrelated. source_*: settings of the source until a user command changes
// them; FADE v1 has none. `running` and status_* (tx_clk) are for a display.
module example_gmii #(
    parameter int PROTOCOL = 10,  // FADE-10G; 1: FADE v1
    parameter int PACKETS = 32,
    parameter int TICK_INIT = 131072,
    parameter int CRATE = 0  // the source is a crate of FADC modules
) (
    input  logic        rst,
    input  logic        user_clk,
    input  logic [47:0] mac_address,
    input  logic [31:0] first_packet,
    input  logic [15:0] first_sequence,
    input  logic        paper_rule,
    input  logic        source_random,
    input  logic [63:0] source_seed,
    input  logic [31:0] source_limit,
    input  logic [15:0] source_gap,
    output logic        running,
    output logic [31:0] status_sent,
    output logic [31:0] status_retransmitted,
    output logic [31:0] status_early,
    output logic [31:0] status_delay,
    input  logic        tx_clk,
    output logic [ 7:0] gmii_txd,
    output logic        gmii_tx_en,
    output logic        gmii_tx_er,
    input  logic        rx_clk,
    input  logic [ 7:0] gmii_rxd,
    input  logic        gmii_rx_dv,
    input  logic        gmii_rx_er
);
  logic tx_rst, rx_rst;
  logic [8-1:0] tx_tdata, rx_tdata;
  logic [8/8-1:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, tx_tuser, tx_start;
  logic rx_tvalid, rx_tlast, rx_tuser;
  logic [3:0] mac_stat;

  example_design #(
      .WIDTH    (8),
      .PROTOCOL (PROTOCOL),
      .PACKETS  (PACKETS),
      .TICK_INIT(TICK_INIT),
      .CRATE    (CRATE)
  ) example (
      .rst                 (rst),
      .user_clk            (user_clk),
      .mac_address         (mac_address),
      .first_packet        (first_packet),
      .first_sequence      (first_sequence),
      .paper_rule          (paper_rule),
      .source_random       (source_random),
      .source_seed         (source_seed),
      .source_limit        (source_limit),
      .source_gap          (source_gap),
      .running             (running),
      .tx_clk              (tx_clk),
      .tx_rst              (tx_rst),
      .m_axis_tdata        (tx_tdata),
      .m_axis_tkeep        (tx_tkeep),
      .m_axis_tvalid       (tx_tvalid),
      .m_axis_tready       (tx_tready),
      .m_axis_tlast        (tx_tlast),
      .m_axis_tuser        (tx_tuser),
      .status_sent         (status_sent),
      .status_retransmitted(status_retransmitted),
      .status_early        (status_early),
      .status_delay        (status_delay),
      .rx_clk              (rx_clk),
      .rx_rst              (rx_rst),
      .s_mac_tdata         (rx_tdata),
      .s_mac_tkeep         (rx_tkeep),
      .s_mac_tvalid        (rx_tvalid),
      .s_mac_tlast         (rx_tlast),
      .s_mac_tuser         (rx_tuser),
      .mac_stat            (mac_stat)
  );

  gmii_mac_tx mac_tx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .s_axis_tdata (tx_tdata),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast (tx_tlast),
      .s_axis_tuser (tx_tuser),
      .s_axis_start (tx_start),
      .gmii_txd     (gmii_txd),
      .gmii_tx_en   (gmii_tx_en),
      .gmii_tx_er   (gmii_tx_er)
  );

  gmii_mac_rx mac_rx (
      .clk          (rx_clk),
      .rst          (rx_rst),
      .gmii_rxd     (gmii_rxd),
      .gmii_rx_dv   (gmii_rx_dv),
      .gmii_rx_er   (gmii_rx_er),
      .m_axis_tdata (rx_tdata),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast (rx_tlast),
      .m_axis_tuser (rx_tuser),
      .stat_error   (mac_stat[0]),
      .stat_runt    (mac_stat[1]),
      .stat_oversize(mac_stat[2]),
      .stat_bad_fcs (mac_stat[3])
  );

  assign rx_tkeep = 1'b1;
  logic unused;
  assign unused = &{1'b0, tx_start, tx_tkeep};
endmodule
