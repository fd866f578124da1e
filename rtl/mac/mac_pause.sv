// SPDX-License-Identifier: Apache-2.0
//
// Obeys PAUSE frames (IEEE 802.3 annex 31B): stops the transmit side for the requested time.
//
//                  +-----------+
//   pause    <-----|           |
//   (tx_clk)       | mac_pause |<==== s_axis_* (rx_clk)
//                  +-----------+
//
// s_axis_* are the frames of the receive half, in 64-bit words; the core gets them too, and drops PAUSE frames. A
// PAUSE frame must be good and addressed to 01-80-C2-00-00-01. Its time runs from now on, zero ends the pause; a quantum is 512
// bits, eight clocks. The current frame is completed, so `pause` may rise at any time.
`default_nettype none
module mac_pause (
    input  logic        tx_clk,
    input  logic        tx_rst,
    output logic        pause,
    input  logic        rx_clk,
    input  logic        rx_rst,
    input  logic [63:0] s_axis_tdata,
    input  logic        s_axis_tvalid,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser
);
  localparam logic [63:0] CONTROL = link_pkg::swap64({mac_pkg::CONTROL_ADDRESS, 16'd0});
  localparam logic [63:0] OPCODE = link_pkg::swap64(
      {32'd0, mac_pkg::ETHERTYPE_CONTROL, mac_pkg::OPCODE_PAUSE}
  );
  localparam int QUANTUM_BITS = 3;  // clocks, as a power of two

  // ---- receive clock ---------------------------------------------------------------------------
  logic [1:0] index;  // of the word, stops at 3
  logic fits, due;
  logic [15:0] quanta;
  always_ff @(posedge rx_clk) begin
    due <= 1'b0;
    if (s_axis_tvalid) begin
      if (index != 2'd3) index <= index + 2'd1;
      case (index)
        2'd0: fits <= s_axis_tdata[47:0] == CONTROL[47:0];
        2'd1: if (s_axis_tdata[63:32] != OPCODE[63:32]) fits <= 1'b0;
        2'd2: quanta <= {s_axis_tdata[7:0], s_axis_tdata[15:8]};
        default: ;
      endcase
      if (s_axis_tlast) begin
        index <= 2'd0;
        due   <= index == 2'd3 && fits && !s_axis_tuser;
      end
    end
    if (rx_rst) begin
      index <= 2'd0;
      due   <= 1'b0;
    end
  end

  // The shortest frame lasts longer than the crossing, so it is always ready.
  logic taken, unused;
  logic [15:0] asked;
  cdc_handshake #(
      .WIDTH(16)
  ) crossing (
      .s_clk  (rx_clk),
      .s_rst  (rx_rst),
      .s_data (quanta),
      .s_valid(due),
      .s_ready(unused),
      .m_clk  (tx_clk),
      .m_rst  (tx_rst),
      .m_data (asked),
      .m_valid(taken),
      .m_ready(1'b1)
  );

  // ---- transmit clock --------------------------------------------------------------------------
  logic [15+QUANTUM_BITS:0] left;  // clocks
  always_ff @(posedge tx_clk) begin
    pause <= left != '0;
    if (taken) left <= {asked, QUANTUM_BITS'(0)};
    else if (left != '0) left <= left - 1'b1;
    if (tx_rst) begin
      left  <= '0;
      pause <= 1'b0;
    end
  end
endmodule
`default_nettype wire
