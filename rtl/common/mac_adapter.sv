// Joins a core of 64-bit words to a MAC of 8 or 64 bits.
//
//                +-------------+
//   s_mac_* ====>|             |====> m_core_* (rx_clk; no back-pressure)
//   m_mac_* <====| mac_adapter |<==== s_core_* (tx_clk)
//                +-------------+
//         rx_clk, tx_clk
module mac_adapter #(
    parameter int WIDTH = 64
) (
    input  logic               rx_clk,
    input  logic               rx_rst,
    input  logic [  WIDTH-1:0] s_mac_tdata,
    input  logic [WIDTH/8-1:0] s_mac_tkeep,
    input  logic               s_mac_tvalid,
    input  logic               s_mac_tlast,
    input  logic               s_mac_tuser,
    output logic [       63:0] m_core_tdata,
    output logic [        7:0] m_core_tkeep,
    output logic               m_core_tvalid,
    output logic               m_core_tlast,
    output logic               m_core_tuser,
    input  logic               tx_clk,
    input  logic               tx_rst,
    input  logic [       63:0] s_core_tdata,
    input  logic [        7:0] s_core_tkeep,
    input  logic               s_core_tvalid,
    output logic               s_core_tready,
    input  logic               s_core_tlast,
    output logic [  WIDTH-1:0] m_mac_tdata,
    output logic [WIDTH/8-1:0] m_mac_tkeep,
    output logic               m_mac_tvalid,
    input  logic               m_mac_tready,
    output logic               m_mac_tlast,
    output logic               m_mac_tuser
);
  if (WIDTH == 8) begin : g_narrow
    axis_upsizer upsizer (
        .clk          (rx_clk),
        .rst          (rx_rst),
        .s_axis_tdata (s_mac_tdata),
        .s_axis_tvalid(s_mac_tvalid),
        .s_axis_tlast (s_mac_tlast),
        .s_axis_tuser (s_mac_tuser),
        .m_axis_tdata (m_core_tdata),
        .m_axis_tkeep (m_core_tkeep),
        .m_axis_tvalid(m_core_tvalid),
        .m_axis_tlast (m_core_tlast),
        .m_axis_tuser (m_core_tuser)
    );
    axis_downsizer downsizer (
        .clk          (tx_clk),
        .rst          (tx_rst),
        .s_axis_tdata (s_core_tdata),
        .s_axis_tkeep (s_core_tkeep),
        .s_axis_tvalid(s_core_tvalid),
        .s_axis_tready(s_core_tready),
        .s_axis_tlast (s_core_tlast),
        .s_axis_tuser (1'b0),
        .m_axis_tdata (m_mac_tdata),
        .m_axis_tvalid(m_mac_tvalid),
        .m_axis_tready(m_mac_tready),
        .m_axis_tlast (m_mac_tlast),
        .m_axis_tuser (m_mac_tuser)
    );
    assign m_mac_tkeep = 1'b1;
    logic unused;
    assign unused = s_mac_tkeep;
  end else if (WIDTH == 64) begin : g_wide
    assign {m_core_tdata, m_core_tkeep, m_core_tvalid} = {s_mac_tdata, s_mac_tkeep, s_mac_tvalid};
    assign {m_core_tlast, m_core_tuser} = {s_mac_tlast, s_mac_tuser};
    assign {m_mac_tdata, m_mac_tkeep, m_mac_tvalid} = {s_core_tdata, s_core_tkeep, s_core_tvalid};
    assign {m_mac_tlast, m_mac_tuser} = {s_core_tlast, 1'b0};
    assign s_core_tready = m_mac_tready;
    logic unused;
    assign unused = &{1'b0, rx_clk, rx_rst, tx_clk, tx_rst};
  end else begin : g_check
    $error("mac_adapter: WIDTH must be 8 or 64");
  end
endmodule
