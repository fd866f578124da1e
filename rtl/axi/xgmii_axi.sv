// SPDX-License-Identifier: Apache-2.0
//
// xgmii_mac with AXI4-Stream on its side.
//
//                +-----------+
//   s_axis_* ===>| xgmii_axi |====> xgmii_tx*   (tx_clk)
//   m_axis_* <===|           |<==== xgmii_rx*   (rx_clk)
//                +-----------+
//
// As gmii_axi, with words of 64 bits. PAUSE, paused: see xgmii_mac.
`default_nettype none
module xgmii_axi #(
    parameter bit PAUSE = 1
) (
    input logic tx_clk,
    input logic tx_rst,
    input logic [63:0] s_axis_tdata,
    input logic [7:0] s_axis_tkeep,
    input logic s_axis_tvalid,
    output logic s_axis_tready,
    input logic s_axis_tlast,
    input logic s_axis_tuser,
    output logic s_axis_start,
    output logic paused,
    output logic [63:0] xgmii_txd,  // eight bytes to send
    output logic [7:0] xgmii_txc,  // which of them are control characters
    input logic rx_clk,
    input logic rx_rst,
    input logic [63:0] xgmii_rxd,  // eight received bytes
    input logic [7:0] xgmii_rxc,  // which of them are control characters
    output logic [63:0] m_axis_tdata,
    output logic [7:0] m_axis_tkeep,
    output logic m_axis_tvalid,
    output logic m_axis_tlast,
    output logic m_axis_tuser,
    output logic [link_pkg::MAC_STATS-1:0] mac_stat
);
  link_pkg::frame_t to_pins, from_pins;
  assign to_pins = {64'(s_axis_tdata), 8'(s_axis_tkeep), s_axis_tvalid, s_axis_tlast, s_axis_tuser};
  assign {m_axis_tdata, m_axis_tkeep} = {from_pins.tdata[63:0], from_pins.tkeep[7:0]};
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {
    from_pins.tvalid, from_pins.tlast, from_pins.tuser
  };
  link_pkg::xgmii_t xgmii_tx, xgmii_rx;
  assign {xgmii_txd, xgmii_txc} = xgmii_tx;
  assign xgmii_rx = {xgmii_rxd, xgmii_rxc};
  xgmii_mac #(
      .PAUSE(PAUSE)
  ) mac (
      .s_axis(to_pins),
      .m_axis(from_pins),
      .*
  );

  logic unused;
  assign unused = &{1'b0, from_pins};
endmodule
`default_nettype wire
