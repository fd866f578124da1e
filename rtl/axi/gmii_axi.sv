// SPDX-License-Identifier: Apache-2.0
//
// gmii_mac with AXI4-Stream on its side.
//
//                +----------+
//   s_axis_* ===>| gmii_axi |====> gmii_tx*   (tx_clk)
//   m_axis_* <===|          |<==== gmii_rx*   (rx_clk)
//                +----------+
//
// Names and handshakes are those of the AMBA specifications; resets are active high. s_axis: frames without preamble and frame
// check sequence, a byte a word; a frame that stops before its end is sent as a bad one. s_axis_start: for cores that make
// frames on the fly. m_axis: tuser at the end of a bad frame; it has no tready, because frames cannot wait. mac_stat: pulses in
// rx_clk, see link_pkg::mac_stat_t.
`default_nettype none
module gmii_axi (
    input logic tx_clk,
    input logic tx_rst,
    input logic tx_ce,
    input logic [7:0] s_axis_tdata,
    input logic [0:0] s_axis_tkeep,
    input logic s_axis_tvalid,
    output logic s_axis_tready,
    input logic s_axis_tlast,
    input logic s_axis_tuser,
    output logic s_axis_start,
    output logic [7:0] gmii_txd,  // byte to send
    output logic gmii_tx_en,  // gmii_txd is valid
    output logic gmii_tx_er,  // gmii_txd is bad
    input logic rx_clk,
    input logic rx_rst,
    input logic rx_ce,
    input logic [7:0] gmii_rxd,  // received byte
    input logic gmii_rx_dv,  // gmii_rxd is valid
    input logic gmii_rx_er,  // gmii_rxd is bad
    output logic [7:0] m_axis_tdata,
    output logic [0:0] m_axis_tkeep,
    output logic m_axis_tvalid,
    output logic m_axis_tlast,
    output logic m_axis_tuser,
    output logic [link_pkg::MAC_STATS-1:0] mac_stat
);
  link_pkg::frame_t to_pins, from_pins;
  assign to_pins = {64'(s_axis_tdata), 8'(s_axis_tkeep), s_axis_tvalid, s_axis_tlast, s_axis_tuser};
  assign {m_axis_tdata, m_axis_tkeep} = {from_pins.tdata[7:0], from_pins.tkeep[0:0]};
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {
    from_pins.tvalid, from_pins.tlast, from_pins.tuser
  };
  link_pkg::gmii_t gmii_tx, gmii_rx;
  assign {gmii_txd, gmii_tx_en, gmii_tx_er} = gmii_tx;
  assign gmii_rx = {gmii_rxd, gmii_rx_dv, gmii_rx_er};
  gmii_mac mac (
      .s_axis(to_pins),
      .m_axis(from_pins),
      .*
  );

  logic unused;
  assign unused = &{1'b0, from_pins};
endmodule
`default_nettype wire
