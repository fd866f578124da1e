// xgmii_mac with a port for each signal, as models of buses connect.
module extra_xgmii_mac #(
    parameter bit PAUSE = 1
) (
    input  logic        tx_clk,
    input  logic        tx_rst,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output logic        paused,
    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc,
    input  logic        rx_clk,
    input  logic        rx_rst,
    input  logic [63:0] xgmii_rxd,
    input  logic [ 7:0] xgmii_rxc,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser
);
  link_pkg::frame_t s_axis, m_axis;
  link_pkg::xgmii_t xgmii_tx, xgmii_rx;
  link_pkg::mac_stat_t mac_stat;
  logic s_axis_start;
  assign s_axis = {s_axis_tdata, s_axis_tkeep, s_axis_tvalid, s_axis_tlast, s_axis_tuser};
  assign {m_axis_tdata, m_axis_tkeep, m_axis_tvalid, m_axis_tlast, m_axis_tuser} = m_axis;
  assign {xgmii_txd, xgmii_txc} = xgmii_tx;
  assign xgmii_rx = {xgmii_rxd, xgmii_rxc};

  xgmii_mac #(.PAUSE(PAUSE)) mac (.*);

  logic unused;
  assign unused = &{1'b0, mac_stat, s_axis_start};
endmodule
