// ptp_axi between a stream of frames and gmii_axi, for tests.
//
//                +---------------------+
//   s_axis_* ===>| ptp_axi => gmii_axi |====> gmii_tx*
//   s_axil_* <==>|         <=          |<==== gmii_rx*
//                +---------------------+
module extra_ptp_axi (
    input logic rst,
    input logic tx_clk,
    input logic [7:0] s_axis_tdata,
    input logic [0:0] s_axis_tkeep,
    input logic s_axis_tvalid,
    output logic s_axis_tready,
    input logic s_axis_tlast,
    input logic s_axis_tuser,
    input logic [11:0] s_axil_awaddr,
    input logic [2:0] s_axil_awprot,
    input logic s_axil_awvalid,
    output logic s_axil_awready,
    input logic [31:0] s_axil_wdata,
    input logic [3:0] s_axil_wstrb,
    input logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input logic s_axil_bready,
    input logic [11:0] s_axil_araddr,
    input logic [2:0] s_axil_arprot,
    input logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input logic s_axil_rready,
    output logic [7:0] gmii_txd,
    output logic gmii_tx_en,
    output logic gmii_tx_er,
    input logic rx_clk,
    input logic [7:0] gmii_rxd,
    input logic gmii_rx_dv,
    input logic gmii_rx_er
);
  logic [7:0] m_axis_tdata, mac_tdata;
  logic [0:0] m_axis_tkeep, mac_tkeep;
  logic m_axis_tvalid, m_axis_tready, m_axis_tlast, m_axis_tuser, m_axis_start;
  logic mac_tvalid, mac_tlast, mac_tuser;
  logic tx_rst, rx_rst, pps, locked;
  logic [79:0] now;
  logic [ 3:0] mac_stat;

  ptp_axi #(
      .WIDTH(8)
  ) ptp (
      .s_mac_tdata (mac_tdata),
      .s_mac_tkeep (mac_tkeep),
      .s_mac_tvalid(mac_tvalid),
      .s_mac_tlast (mac_tlast),
      .s_mac_tuser (mac_tuser),
      .*
  );
  sync_reset rx_reset (
      .clk    (rx_clk),
      .rst_in (rst),
      .rst_out(rx_rst)
  );
  gmii_axi mac (
      .tx_ce        (1'b1),
      .s_axis_tdata (m_axis_tdata),
      .s_axis_tkeep (m_axis_tkeep),
      .s_axis_tvalid(m_axis_tvalid),
      .s_axis_tready(m_axis_tready),
      .s_axis_tlast (m_axis_tlast),
      .s_axis_tuser (m_axis_tuser),
      .s_axis_start (m_axis_start),
      .rx_ce        (1'b1),
      .m_axis_tdata (mac_tdata),
      .m_axis_tkeep (mac_tkeep),
      .m_axis_tvalid(mac_tvalid),
      .m_axis_tlast (mac_tlast),
      .m_axis_tuser (mac_tuser),
      .*
  );

  logic unused;
  assign unused = &{1'b0, now, pps, locked, mac_stat};
endmodule
