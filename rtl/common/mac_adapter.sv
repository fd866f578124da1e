// SPDX-License-Identifier: Apache-2.0
//
// Connects an engine with 64-bit words to a MAC of 8 or 64 bits.
//
//               +-------------+
//   s_mac  ====>|             |====> rx (rx_clk; no back-pressure)
//   m_axis <====| mac_adapter |<==== tx (tx_clk)
//               +-------------+
//         rx_clk, tx_clk
`default_nettype none
module mac_adapter #(
    parameter int WIDTH = 64
) (
    input  logic             tx_clk,
    input  logic             tx_rst,
    input  link_pkg::frame_t tx,
    output logic             tx_tready,
    output link_pkg::frame_t m_axis,
    input  logic             m_axis_tready,
    input  logic             rx_clk,
    input  logic             rx_rst,
    input  link_pkg::frame_t s_mac,
    output link_pkg::frame_t rx
);
  if (WIDTH != 8 && WIDTH != 64) begin : g_check
    $error("mac_adapter: WIDTH must be 8 or 64");
  end

  if (WIDTH == 8) begin : g_narrow
    logic [7:0] tdata;
    logic tvalid, tlast, tuser;
    axis_upsizer upsizer (
        .clk          (rx_clk),
        .rst          (rx_rst),
        .s_axis_tdata (s_mac.tdata[7:0]),
        .s_axis_tvalid(s_mac.tvalid),
        .s_axis_tlast (s_mac.tlast),
        .s_axis_tuser (s_mac.tuser),
        .m_axis_tdata (rx.tdata),
        .m_axis_tkeep (rx.tkeep),
        .m_axis_tvalid(rx.tvalid),
        .m_axis_tlast (rx.tlast),
        .m_axis_tuser (rx.tuser)
    );
    axis_downsizer downsizer (
        .clk          (tx_clk),
        .rst          (tx_rst),
        .s_axis_tdata (tx.tdata),
        .s_axis_tkeep (tx.tkeep),
        .s_axis_tvalid(tx.tvalid),
        .s_axis_tready(tx_tready),
        .s_axis_tlast (tx.tlast),
        .s_axis_tuser (tx.tuser),
        .m_axis_tdata (tdata),
        .m_axis_tvalid(tvalid),
        .m_axis_tready(m_axis_tready),
        .m_axis_tlast (tlast),
        .m_axis_tuser (tuser)
    );
    assign m_axis = {56'd0, tdata, 8'd1, tvalid, tlast, tuser};
    logic unused;
    assign unused = &{1'b0, s_mac};
  end else begin : g_wide
    assign rx = s_mac;
    assign m_axis = tx;
    assign tx_tready = m_axis_tready;
    logic unused;
    assign unused = &{1'b0, rx_clk, rx_rst, tx_clk, tx_rst};
  end
endmodule
`default_nettype wire
