// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous first-word-fall-through FIFO with Gray-coded pointers (Cummings, SNUG 2002).
//
//                 +------------+
//   s_data ======>|            |======> m_data
//   s_valid ----->| async_fifo |------> m_valid
//   s_ready <-----|            |<------ m_ready
//                 +------------+
//       s_clk, s_rst          m_clk, m_rst
//
// DEPTH is a power of two, at least 4; the output register holds one more word. Both sides must be reset together. The
// memory is read without a clock, so that it fits distributed RAM.
`default_nettype none
module async_fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 16
) (
    input  logic             s_clk,
    input  logic             s_rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,
    input  logic             m_clk,
    input  logic             m_rst,
    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);
  localparam int AW = $clog2(DEPTH);

  if (DEPTH < 4 || DEPTH != 2 ** AW) begin : g_check
    $error("async_fifo: DEPTH must be a power of two and at least 4");
  end

  // crossings.sdc and crossings.xdc find it by its name.
  logic [WIDTH-1:0] cdc_memory[DEPTH];

  logic [AW:0] head, head_next, head_gray, head_gray_at_m;
  logic [AW:0] tail, tail_next, tail_gray, tail_gray_at_s;
  logic take;  // into the register at the output

  sync_bits #(
      .WIDTH(AW + 1)
  ) head_to_m (
      .clk(m_clk),
      .d  (head_gray),
      .q  (head_gray_at_m)
  );
  sync_bits #(
      .WIDTH(AW + 1)
  ) tail_to_s (
      .clk(s_clk),
      .d  (tail_gray),
      .q  (tail_gray_at_s)
  );

  // Full: the pointers differ in the wrap bit only, which in Gray code are the top two bits.
  assign s_ready = head_gray != {~tail_gray_at_s[AW:AW-1], tail_gray_at_s[AW-2:0]};
  assign take = tail_gray != head_gray_at_m && (!m_valid || m_ready);
  assign head_next = head + 1'b1;
  assign tail_next = tail + 1'b1;

  always_ff @(posedge s_clk) begin
    if (s_rst) begin
      head <= '0;
      head_gray <= '0;
    end else if (s_valid && s_ready) begin
      head <= head_next;
      head_gray <= head_next ^ (head_next >> 1);
    end
    if (s_valid && s_ready) cdc_memory[head[AW-1:0]] <= s_data;
  end

  always_ff @(posedge m_clk) begin
    if (m_rst) begin
      tail <= '0;
      tail_gray <= '0;
      m_valid <= 1'b0;
    end else begin
      if (m_ready) m_valid <= 1'b0;
      if (take) begin
        tail <= tail_next;
        tail_gray <= tail_next ^ (tail_next >> 1);
        m_valid <= 1'b1;
      end
    end
    if (take) m_data <= cdc_memory[tail[AW-1:0]];
  end
endmodule
`default_nettype wire
