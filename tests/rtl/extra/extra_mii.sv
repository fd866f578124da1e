// A GMII MAC and mii.
module extra_mii (
    input  logic       tx_clk,
    input  logic       tx_rst,
    input  logic [7:0] s_axis_tdata,
    input  logic       s_axis_tvalid,
    output logic       s_axis_tready,
    input  logic       s_axis_tlast,
    input  logic       s_axis_tuser,
    output logic [3:0] mii_txd,
    output logic       mii_tx_en,
    output logic       mii_tx_er,
    input  logic       rx_clk,
    input  logic       rx_rst,
    input  logic [3:0] mii_rxd,
    input  logic       mii_rx_dv,
    input  logic       mii_rx_er,
    output logic [7:0] m_axis_tdata,
    output logic       m_axis_tvalid,
    output logic       m_axis_tlast,
    output logic       m_axis_tuser,
    output logic       stat_error,
    output logic       stat_runt,
    output logic       stat_oversize,
    output logic       stat_bad_fcs
);
  link_pkg::frame_t s_axis, m_axis;
  link_pkg::gmii_t gmii_tx, gmii_rx;
  logic s_axis_start, tx_ce, rx_ce;
  assign s_axis = {56'd0, s_axis_tdata, 8'd1, s_axis_tvalid, s_axis_tlast, s_axis_tuser};
  assign m_axis_tdata = m_axis.tdata[7:0];
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {m_axis.tvalid, m_axis.tlast, m_axis.tuser};
  gmii_mac mac (
      .mac_stat({stat_bad_fcs, stat_oversize, stat_runt, stat_error}),
      .*
  );
  mii mii (.*);

  logic unused;
  assign unused = &{1'b0, s_axis_start, m_axis};
endmodule
