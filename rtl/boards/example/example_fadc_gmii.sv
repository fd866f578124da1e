// Example board: FADC streaming over TCP behind the GMII MAC; see example_fadc.
//
//               +------------------------+
//   settings ==>| example_fadc_gmii |====> gmii_tx
//               |                        |<==== gmii_rx
//               +------------------------+
//      user_clk              tx_clk, rx_clk
//
// The three clocks may be unrelated.
module example_fadc_gmii #(
    parameter int LINKS = 1,
    parameter int BUFFER_BITS = 16,
    parameter int BITS = 17
) (
    input  logic              rst,
    input  logic              user_clk,
    input  logic [47:0]       mac_address,
    input  logic [31:0]       ip_address,
    input  logic [31:0]       ip_mask,
    input  logic [31:0]       ip_gateway,
    input  logic [31:0]       peer_ip,
    input  logic [15:0]       peer_port,
    input  logic [15:0]       local_port,
    input  logic [13:0]       mtu,
    input  logic [31:0]       first_sequence,
    input  logic              enable,
    input  logic              push,
    input  logic [31:0]       source_id,
    input  logic [63:0]       first_window,
    input  logic [63:0]       first_sec,
    input  logic [31:0]       first_nsec,
    input  logic [17:0]       window_ticks,
    input  logic [23:0]       keepalive,
    input  logic [31:0]       windows,
    input  logic [15:0]       module_enable,
    input  logic [31:0]       pulse_seed,
    input  logic [19:0]       pulse_rate,
    input  logic [19:0]       burst_rate,
    input  logic [31:0]       burst_every,
    input  logic [31:0]       burst_ticks,
    input  logic [ 3:0]       noise,
    output logic [23:0][31:0] counters,
    output logic              running,
    output logic [31:0]       status_sent,
    output logic [31:0]       status_retransmitted,
    output logic [31:0]       status_early,
    output logic [31:0]       status_delay,
    input  logic              tx_clk,
    output logic [ 7:0]       gmii_txd,
    output logic              gmii_tx_en,
    output logic              gmii_tx_er,
    input  logic              rx_clk,
    input  logic [ 7:0]       gmii_rxd,
    input  logic              gmii_rx_dv,
    input  logic              gmii_rx_er
);
  logic tx_rst, rx_rst;
  logic [8-1:0] tx_tdata, rx_tdata;
  logic [8/8-1:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, tx_tuser, tx_start;
  logic rx_tvalid, rx_tlast, rx_tuser;
  logic [3:0] mac_stat;

  example_fadc #(
      .WIDTH  (8),
      .LINKS(LINKS),
      .BUFFER_BITS(BUFFER_BITS),
      .BITS   (BITS)
  ) example (
      .rst                 (rst),
      .user_clk            (user_clk),
      .mac_address         (mac_address),
      .ip_address          (ip_address),
      .ip_mask             (ip_mask),
      .ip_gateway          (ip_gateway),
      .peer_ip             (peer_ip),
      .peer_port           (peer_port),
      .local_port          (local_port),
      .mtu                 (mtu),
      .first_sequence      (first_sequence),
      .enable              (enable),
      .push                (push),
      .source_id           (source_id),
      .first_window        (first_window),
      .first_sec           (first_sec),
      .first_nsec          (first_nsec),
      .window_ticks        (window_ticks),
      .keepalive           (keepalive),
      .windows             (windows),
      .module_enable       (module_enable),
      .pulse_seed          (pulse_seed),
      .pulse_rate          (pulse_rate),
      .burst_rate          (burst_rate),
      .burst_every         (burst_every),
      .burst_ticks         (burst_ticks),
      .noise               (noise),
      .counters            (counters),
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
