// SPDX-License-Identifier: Apache-2.0
//
// Carries received frames from the MAC's clock to the clock of the stack, as words with a byte count.
//
//                  +----------------+
//   s_axis_* =====>| frame_crossing |====> m_* (data, count, end, good)
//                  +----------------+
//         rx_clk                     tx_clk
//
// The FIFO is empty between frames, so the first word of a frame arrives a fixed time after the MAC gave it, within one
// clock: timestamps are taken here. A frame that finds the FIFO full (clocks too different) ends bad. After the end of a
// frame there is one idle clock.
`default_nettype none
module frame_crossing #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 32
) (
    input  logic               tx_clk,
    input  logic               tx_rst,
    output logic [  WIDTH-1:0] m_data,
    output logic [        3:0] m_count,
    output logic               m_valid,
    output logic               m_end,
    output logic               m_good,
    input  logic               rx_clk,
    input  logic               rx_rst,
    input  logic [  WIDTH-1:0] s_axis_tdata,
    input  logic [WIDTH/8-1:0] s_axis_tkeep,
    input  logic               s_axis_tvalid,
    input  logic               s_axis_tlast,
    input  logic               s_axis_tuser
);
  logic [3:0] count;
  logic ready, valid, is_last, is_bad, lost, owed, rest;

  always_comb begin
    count = '0;
    for (int i = 0; i < WIDTH / 8; i++) count += 4'(s_axis_tkeep[i]);
  end

  // The end of a frame that lost a word is owed until there is room.
  always_ff @(posedge rx_clk) begin
    if (s_axis_tvalid && !ready) lost <= !s_axis_tlast;
    if (s_axis_tvalid && !ready && s_axis_tlast) owed <= 1'b1;
    if (s_axis_tvalid && ready && s_axis_tlast) lost <= 1'b0;
    if (owed && ready) owed <= 1'b0;
    if (rx_rst) {lost, owed} <= '0;
  end

  async_fifo #(
      .WIDTH(WIDTH + 6),
      .DEPTH(DEPTH)
  ) fifo (
      .s_clk  (rx_clk),
      .s_rst  (rx_rst),
      .s_data ({s_axis_tdata, count, s_axis_tlast || owed, s_axis_tuser || lost || owed}),
      .s_valid(s_axis_tvalid || owed),
      .s_ready(ready),
      .m_clk  (tx_clk),
      .m_rst  (tx_rst),
      .m_data ({m_data, m_count, is_last, is_bad}),
      .m_valid(valid),
      .m_ready(!rest)
  );
  assign m_valid = valid && !rest;
  assign m_end   = m_valid && is_last;
  assign m_good  = !is_bad;

  always_ff @(posedge tx_clk) rest <= m_end && !tx_rst;
endmodule
`default_nettype wire
