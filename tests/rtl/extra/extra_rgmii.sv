// A GMII MAC and rgmii behind models of DDR registers. A PHY without in-band status leaves zeros between frames: `idle`
// is there instead.
module extra_rgmii (
    input  logic       in_band,
    input  logic [1:0] speed,
    input  logic [3:0] idle,
    input  logic       tx_clk,
    input  logic       tx_rst,
    input  logic [7:0] s_axis_tdata,
    input  logic       s_axis_tvalid,
    output logic       s_axis_tready,
    input  logic       s_axis_tlast,
    input  logic       s_axis_tuser,
    output logic [3:0] link,
    output logic [3:0] rgmii_txd,
    output logic       rgmii_tx_ctl,
    output logic       rgmii_txc,
    input  logic       phy_txc,        // rgmii_txc, later
    input  logic       rx_clk,
    input  logic       rx_rst,
    input  logic [3:0] rgmii_rxd,
    input  logic       rgmii_rx_ctl,
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

  logic [7:0] txd;
  logic [1:0] tx_ctl, txc, rx_ctl;
  logic [7:0] rxd;
  rgmii rgmii (
      .link        (link),
      .rgmii_txd   (txd),
      .rgmii_tx_ctl(tx_ctl),
      .rgmii_txc   (txc),
      .rgmii_rxd   (rxd),
      .rgmii_rx_ctl(rx_ctl),
      .*
  );

  logic [11:0] out;
  always_ff @(posedge tx_clk) out <= {txc, tx_ctl, txd};
  assign rgmii_txd = tx_clk ? out[3:0] : out[7:4];
  assign rgmii_tx_ctl = tx_clk ? out[8] : out[9];
  assign rgmii_txc = tx_clk ? out[10] : out[11];

  logic [4:0] in, rise, fall;
  assign in = {rgmii_rx_ctl, rgmii_rx_ctl ? rgmii_rxd : idle};
  always_ff @(posedge rx_clk) rise <= in;
  always_ff @(negedge rx_clk) fall <= in;
  always_ff @(posedge rx_clk) {rx_ctl, rxd} <= {fall[4], rise[4], fall[3:0], rise[3:0]};

  logic unused;
  assign unused = &{1'b0, s_axis_start, m_axis, phy_txc};
endmodule
