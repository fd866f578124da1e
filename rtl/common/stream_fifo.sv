// SPDX-License-Identifier: Apache-2.0
//
// First-word-fall-through FIFO with one clock and its memory in block RAM.
//
//                 +-------------+
//   s_data ======>|             |======> m_data
//   s_valid ----->| stream_fifo |------> m_valid
//   s_ready <-----|             |<------ m_ready
//   used    <=====|             |
//                 +-------------+
//
// DEPTH is a power of two. The latency is two clocks, then one word comes out in each clock.
`default_nettype none
module stream_fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 512
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [        WIDTH-1:0] s_data,
    input  logic                     s_valid,
    output logic                     s_ready,
    output logic [$clog2(DEPTH)+0:0] used,
    output logic [        WIDTH-1:0] m_data,
    output logic                     m_valid,
    input  logic                     m_ready
);
  localparam int AW = $clog2(DEPTH);

  if (DEPTH < 4 || DEPTH != 2 ** AW) begin : g_check
    $error("stream_fifo: DEPTH must be a power of two and at least 4");
  end

  logic [WIDTH-1:0] memory[DEPTH];
  logic [AW:0] head, tail;
  logic push, pop, fetch;

  // What is at the output counts as used, so that its place is not written before it has gone.
  assign s_ready = !used[AW];
  assign push = s_valid && s_ready;
  assign pop = m_valid && m_ready;
  assign fetch = head != tail && (!m_valid || m_ready);

  always_ff @(posedge clk) begin
    if (push) memory[head[AW-1:0]] <= s_data;
    if (fetch) m_data <= memory[tail[AW-1:0]];
    if (rst) begin
      head <= '0;
      tail <= '0;
      used <= '0;
      m_valid <= 1'b0;
    end else begin
      if (push) head <= head + 1'b1;
      if (fetch) tail <= tail + 1'b1;
      if (fetch || m_ready) m_valid <= fetch;
      if (push != pop) used <= push ? used + 1'b1 : used - 1'b1;
    end
  end
endmodule
`default_nettype wire
