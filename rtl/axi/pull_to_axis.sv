// SPDX-License-Identifier: Apache-2.0
//
// Makes an AXI4-Stream of the frames of the UDP/IP stack, which are pulled (docs/protocol/udp.md; one clock).
//
//              +--------------+
//   s_pull ===>|              |
//   s_start <--| pull_to_axis |====> m_axis
//              +--------------+
//
// A pulled frame cannot wait, so it is started when there is room for the longest one: FRAME_BYTES. The words of a frame
// come out without a pause while m_axis_tready is high. As a MAC does, it starts a frame of 8 bits eight clocks after it was
// offered.
`default_nettype none
module pull_to_axis #(
    parameter int WIDTH = 8,
    parameter int FRAME_BYTES = 9014
) (
    input  logic             clk,
    input  logic             rst,
    input  link_pkg::frame_t s_pull,
    output logic             s_start,
    output link_pkg::frame_t m_axis,
    input  logic             m_axis_tready
);
  localparam int BYTES = WIDTH / 8;
  localparam int WORDS = (FRAME_BYTES + BYTES - 1) / BYTES;
  localparam int DEPTH = 2 ** $clog2(WORDS + 8);
  localparam int USED_BITS = $clog2(DEPTH) + 1;
  localparam logic [3:0] PREAMBLE_CLOCKS = WIDTH == 8 ? 4'd8 : 4'd0;

  logic reading, ready;
  logic [3:0] waited;
  logic [USED_BITS-1:0] used;
  assign s_start = !reading && s_pull.tvalid && waited == PREAMBLE_CLOCKS && used <= USED_BITS'(DEPTH - WORDS);
  always_ff @(posedge clk) begin
    if (!s_pull.tvalid || reading) waited <= '0;
    else if (waited != PREAMBLE_CLOCKS) waited <= waited + 4'd1;
    if (s_start) reading <= 1'b1;
    else if (s_pull.tlast) reading <= 1'b0;
    if (rst) reading <= 1'b0;
  end

  stream_fifo #(
      .WIDTH(WIDTH + BYTES + 1),
      .DEPTH(DEPTH)
  ) fifo (
      .clk    (clk),
      .rst    (rst),
      .s_data ({s_pull.tdata[WIDTH-1:0], s_pull.tkeep[BYTES-1:0], s_pull.tlast}),
      .s_valid(reading),
      .s_ready(ready),
      .used   (used),
      .m_data ({m_axis.tdata[WIDTH-1:0], m_axis.tkeep[BYTES-1:0], m_axis.tlast}),
      .m_valid(m_axis.tvalid),
      .m_ready(m_axis_tready)
  );
  assign m_axis.tuser = 1'b0;
  if (WIDTH == 8) begin : g_narrow
    assign {m_axis.tdata[63:8], m_axis.tkeep[7:1]} = '0;
  end

  logic unused;
  assign unused = &{1'b0, ready, s_pull};
endmodule
`default_nettype wire
