// An ADC of 1 GB/s before FADE-10G at 10 Gb/s, for tests: adc_words and fade_core with their MAC.
//
//                 +------------------------------------------------------+
//                 | counter => async_fifo => adc_words => fade_core =>   |====> xgmii_tx*
//   length ------>|                                        xgmii_mac     |<==== xgmii_rx*
//                 +------------------------------------------------------+
//                   adc_clk               user_clk            tx_clk, rx_clk
module extra_adc #(
    parameter int PACKETS = 32
) (
    input logic rst,
    input logic [15:0] length,
    input logic adc_clk,
    input logic user_clk,
    output logic running,
    output logic overflow,
    output logic [31:0] windows,
    output logic [31:0] lost,
    input logic tx_clk,
    output logic [63:0] xgmii_txd,
    output logic [7:0] xgmii_txc,
    input logic rx_clk,
    input logic [63:0] xgmii_rxd,
    input logic [7:0] xgmii_rxc
);
  logic adc_rst, user_rst, tx_rst, rx_rst, adc_ready, sample_valid, sample_ready;
  logic [63:0] count, samples;
  sync_reset adc_reset (
      .clk    (adc_clk),
      .rst_in (rst),
      .rst_out(adc_rst)
  );
  always_ff @(posedge adc_clk) count <= adc_rst ? '0 : count + 64'd1;
  always_ff @(posedge adc_clk) overflow <= !adc_rst && (overflow || !adc_ready);
  async_fifo #(
      .WIDTH(64)
  ) from_adc (
      .s_clk  (adc_clk),
      .s_rst  (adc_rst),
      .s_data (count),
      .s_valid(1'b1),
      .s_ready(adc_ready),
      .m_clk  (user_clk),
      .m_rst  (user_rst),
      .m_data (samples),
      .m_valid(sample_valid),
      .m_ready(sample_ready)
  );
  link_pkg::words_t words;
  logic words_tready;
  adc_words cutter (
      .clk          (user_clk),
      .rst          (user_rst),
      .continuous   (1'b1),
      .threshold    ('0),
      .s_axis_tdata (samples),
      .s_axis_tvalid(sample_valid),
      .s_axis_tready(sample_ready),
      .m_axis_tdata (words.tdata),
      .m_axis_tvalid(words.tvalid),
      .m_axis_tready(words_tready),
      .m_axis_tlast (words.tlast),
      .*
  );

  logic
      cmd_ready,
      rsp_ready,
      user_clear,
      status_accepted,
      status_valid,
      m_axis_tready,
      m_axis_start,
      paused;
  link_pkg::command_t cmd;
  logic [31:0] status_value;
  link_pkg::frame_t m_axis, s_mac;
  link_pkg::mac_stat_t mac_stat;
  link_pkg::xgmii_t xgmii_tx;
  fade_pkg::status_t status;
  logic [fade_pkg::DROPS*16-1:0] status_drops;
  fade_core #(
      .WIDTH  (64),
      .PACKETS(PACKETS)
  ) core (
      .mac_address   (48'h02FADE000001),
      .first_packet  ('0),
      .first_sequence('0),
      .paper_rule    (1'b0),
      .s_axis        (words),
      .s_axis_tready (words_tready),
      .m_cmd         (cmd),
      .m_cmd_ready   (1'b1),
      .s_rsp         ('0),
      .s_rsp_ready   (rsp_ready),
      .user_running  (running),
      .status_index  ('0),
      .status_request(1'b0),
      .*
  );
  xgmii_mac mac (
      .s_axis       (m_axis),
      .s_axis_tready(m_axis_tready),
      .s_axis_start (m_axis_start),
      .m_axis       (s_mac),
      .xgmii_rx     ({xgmii_rxd, xgmii_rxc}),
      .*
  );
  assign {xgmii_txd, xgmii_txc} = xgmii_tx;

  logic unused;
  assign unused = &{1'b0, rsp_ready, user_clear, status_accepted, status_valid, status_value, m_axis_start, paused, cmd, status, status_drops};
endmodule
