// SPDX-License-Identifier: Apache-2.0
//
// The design of the template: an ADC, its windows, FADE-10G at 1 Gb/s, and registers of one's own behind user commands.
//
//                    +---------------------------------------------+
//                    | adc_model => async_fifo => adc_words ==>    |
//   phy_status =====>| template_csr <== axil_master, command_bus <== fade_core, gmii_mac |====> gmii_tx
//   running <--------| status_window <==                           |<==== gmii_rx
//                    +---------------------------------------------+
//                              user_clk                  tx_clk, rx_clk
//
// Registers: template.rdl, of which tools/registers.py makes template_csr and registers.toml. The MAC address is
// 02:fa:de:00:00:NUMBER. SIMULATED: times of the protocol are shorter. tx_ce, rx_ce: as in gmii_mac.
`default_nettype none
module template_design #(
    parameter int PACKETS = 16,
    parameter int NUMBER = 1,
    parameter int SIMULATED = 0
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
  localparam logic [31:0] IDENTITY = 32'h544D504C;  // "TMPL"
  localparam logic [47:0] MAC_ADDRESS = 48'h02FADE000000 + 48'(NUMBER);

  if (NUMBER < 1 || NUMBER > 250) begin : g_check
    $error("template_design: NUMBER must be 1 to 250");
  end

  // ---- ADC -----------------------------------------------------------------------------------
  // Its words are in the clock of the ADC; here that is tx_clk.
  logic user_rst, tx_rst, adc_valid, adc_ready, sample_valid, sample_ready;
  logic [63:0] adc_samples, samples;
  adc_model adc (
      .clk    (tx_clk),
      .rst    (tx_rst),
      .samples(adc_samples),
      .valid  (adc_valid)
  );
  async_fifo #(
      .WIDTH(64)
  ) from_adc (
      .s_clk  (tx_clk),
      .s_rst  (tx_rst),
      .s_data (adc_samples),
      .s_valid(adc_valid),
      .s_ready(adc_ready),
      .m_clk  (user_clk),
      .m_rst  (user_rst),
      .m_data (samples),
      .m_valid(sample_valid),
      .m_ready(sample_ready)
  );
  template_csr_pkg::template__in_t csr_in;
  template_csr_pkg::template__out_t csr;
  link_pkg::words_t words;
  logic words_tready;
  adc_words cutter (
      .clk          (user_clk),
      .rst          (user_rst),
      .running      (running),
      .continuous   (csr.mode.continuous.value),
      .threshold    (csr.threshold.value.value),
      .length       (csr.length.value.value),
      .s_axis_tdata (samples),
      .s_axis_tvalid(sample_valid),
      .s_axis_tready(sample_ready),
      .windows      (csr_in.windows.value.next),
      .lost         (csr_in.lost_windows.value.next),
      .m_axis_tdata (words.tdata),
      .m_axis_tvalid(words.tvalid),
      .m_axis_tready(words_tready),
      .m_axis_tlast (words.tlast)
  );

  // ---- registers -----------------------------------------------------------------------------
  link_pkg::command_t  cmd;
  link_pkg::response_t rsp;
  logic cmd_ready, rsp_ready, user_clear, bus_valid, bus_write, bus_ready, bus_error;
  logic [7:0] bus_address;
  logic [31:0] bus_wdata, bus_rdata;
  command_bus commands (
      .clk           (user_clk),
      .rst           (user_rst),
      .clear         (user_clear),
      .s_cmd_code    (cmd.code),
      .s_cmd_argument(cmd.argument),
      .s_cmd_valid   (cmd.valid),
      .s_cmd_ready   (cmd_ready),
      .m_rsp_value   (rsp.value),
      .m_rsp_valid   (rsp.valid),
      .m_rsp_ready   (rsp_ready),
      .*
  );
  logic [9:0] awaddr, araddr;
  logic [31:0] wdata, rdata;
  logic [3:0] wstrb;
  logic [2:0] awprot, arprot;
  logic [1:0] bresp, rresp;
  logic awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  axil_master #(
      .ADDRESS_BITS(10)
  ) master (
      .clk           (user_clk),
      .rst           (user_rst),
      .m_axil_awaddr (awaddr),
      .m_axil_awprot (awprot),
      .m_axil_awvalid(awvalid),
      .m_axil_awready(awready),
      .m_axil_wdata  (wdata),
      .m_axil_wstrb  (wstrb),
      .m_axil_wvalid (wvalid),
      .m_axil_wready (wready),
      .m_axil_bresp  (bresp),
      .m_axil_bvalid (bvalid),
      .m_axil_bready (bready),
      .m_axil_araddr (araddr),
      .m_axil_arprot (arprot),
      .m_axil_arvalid(arvalid),
      .m_axil_arready(arready),
      .m_axil_rdata  (rdata),
      .m_axil_rresp  (rresp),
      .m_axil_rvalid (rvalid),
      .m_axil_rready (rready),
      .*
  );
  template_csr registers (
      .clk           (user_clk),
      .rst           (user_rst),
      .s_axil_awaddr ({2'b00, awaddr}),
      .s_axil_awprot (awprot),
      .s_axil_awvalid(awvalid),
      .s_axil_awready(awready),
      .s_axil_wdata  (wdata),
      .s_axil_wstrb  (wstrb),
      .s_axil_wvalid (wvalid),
      .s_axil_wready (wready),
      .s_axil_bresp  (bresp),
      .s_axil_bvalid (bvalid),
      .s_axil_bready (bready),
      .s_axil_araddr ({2'b00, araddr}),
      .s_axil_arprot (arprot),
      .s_axil_arvalid(arvalid),
      .s_axil_arready(arready),
      .s_axil_rdata  (rdata),
      .s_axil_rresp  (rresp),
      .s_axil_rvalid (rvalid),
      .s_axil_rready (rready),
      .hwif_in       (csr_in),
      .hwif_out      (csr)
  );
  assign csr_in.identity.value.next = IDENTITY;
  assign csr_in.version.value.next  = fade10g_pkg::CORE_VERSION;
  cdc_steady #(
      .WIDTH(32)
  ) sync_phy (
      .clk(user_clk),
      .rst(user_rst),
      .d  (phy_status),
      .q  (csr_in.phy.value.next)
  );

  // Counters of the core.
  logic status_request, status_accepted, status_valid, write_ack;
  logic [ 5:0] status_index;
  logic [31:0] status_value;
  status_window #(
      .INDEX_BITS(6)
  ) window (
      .clk    (user_clk),
      .rst    (user_rst),
      .enable (1'b1),
      .request(csr.counters.req && !csr.counters.req_is_wr),
      .address(csr.counters.addr[7:2]),
      .ack    (csr_in.counters.rd_ack),
      .data   (csr_in.counters.rd_data),
      .*
  );
  always_ff @(posedge user_clk) write_ack <= csr.counters.req && csr.counters.req_is_wr;
  assign csr_in.counters.wr_ack = write_ack;

  // ---- core and MAC --------------------------------------------------------------------------
  logic rx_rst, m_axis_tready, m_axis_start;
  link_pkg::frame_t m_axis, s_mac;
  link_pkg::mac_stat_t mac_stat;
  fade_pkg::status_t core_status;
  logic [fade_pkg::DROPS*16-1:0] status_drops;
  logic [31:0] status_sent, status_retransmitted, status_early, status_delay;
  assign {status_sent, status_retransmitted} = {core_status.sent, core_status.retransmitted};
  assign {status_early, status_delay} = {core_status.early, core_status.delay};
  fade_core #(
      .WIDTH    (8),
      .PACKETS  (PACKETS),
      .TICK_INIT(SIMULATED != 0 ? 65536 : 131072),
      .STATUS   (1)
  ) core (
      .mac_address   (MAC_ADDRESS),
      .first_packet  ('0),
      .first_sequence('0),
      .paper_rule    (1'b0),
      .s_axis        (words),
      .s_axis_tready (words_tready),
      .m_cmd         (cmd),
      .m_cmd_ready   (cmd_ready),
      .s_rsp         (rsp),
      .s_rsp_ready   (rsp_ready),
      .user_running  (running),
      .status        (core_status),
      .*
  );
  gmii_mac mac (
      .s_axis       (m_axis),
      .s_axis_tready(m_axis_tready),
      .s_axis_start (m_axis_start),
      .m_axis       (s_mac),
      .*
  );

  logic unused;
  assign unused = &{1'b0, adc_ready, csr, cmd.csn, status_drops, m_axis_start, core_status, status_sent, status_retransmitted, status_early, status_delay};
endmodule
`default_nettype wire
