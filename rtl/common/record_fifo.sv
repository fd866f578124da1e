// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous FIFO of records in block RAM: the writer may abandon a record, the reader reads its words in any order.
//
//               +-------------+
//   s_data ====>|             |======> m_data (READ_CLOCKS after m_word)
//   s_write --->|             |<------ m_word
//   s_word ---->| record_fifo |
//   s_commit -->|             |------> m_valid
//   s_ready <---|             |<------ m_ready
//               +-------------+
//      s_clk, s_rst        m_clk, m_rst
//
// A record has 2^WORD_BITS words. s_write stores one of them; s_commit completes the record, and needs s_ready; before that it can
// be overwritten. m_valid: a record can be read; m_ready: it was read. DEPTH is a power of two, at least 4; one record less
// fits, because the record that is being written has a slot. s_ready is valid one clock after a commit.
// Both sides must be reset together.
`default_nettype none
module record_fifo #(
    parameter int WIDTH = 64,
    parameter int DEPTH = 32,
    parameter int WORD_BITS = 1,
    parameter int READ_CLOCKS = 1
) (
    input  logic                 s_clk,
    input  logic                 s_rst,
    input  logic                 s_write,
    input  logic [WORD_BITS-1:0] s_word,
    input  logic [    WIDTH-1:0] s_data,
    input  logic                 s_commit,
    output logic                 s_ready,
    input  logic                 m_clk,
    input  logic                 m_rst,
    input  logic [WORD_BITS-1:0] m_word,
    output logic [    WIDTH-1:0] m_data,
    output logic                 m_valid,
    input  logic                 m_ready
);
  localparam int AW = $clog2(DEPTH);

  if (DEPTH < 4 || DEPTH != 2 ** AW) begin : g_check
    $error("record_fifo: DEPTH must be a power of two and at least 4");
  end

  logic [AW:0] head, head_next, head_gray, next_gray, head_gray_at_m;
  logic [AW:0] tail, tail_next, tail_gray, tail_gray_at_s;

  packet_memory #(
      .ADDRESS_BITS(AW + WORD_BITS),
      .WIDTH       (WIDTH),
      .READ_CLOCKS (READ_CLOCKS)
  ) records (
      .write_clk    (s_clk),
      .write_enable (s_write),
      .write_address({head[AW-1:0], s_word}),
      .write_data   (s_data),
      .read_clk     (m_clk),
      .read_enable  (1'b1),
      .read_address ({tail[AW-1:0], m_word}),
      .read_data    (m_data)
  );

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

  assign head_next = head + 1'b1;
  assign next_gray = head_next ^ (head_next >> 1);
  assign tail_next = tail + 1'b1;

  // Registered too where the memory is; after m_ready it is low for a clock then.
  if (READ_CLOCKS == 2) begin : g_register
    always_ff @(posedge m_clk) m_valid <= tail_gray != head_gray_at_m && !m_ready;
  end else begin : g_no_register
    assign m_valid = tail_gray != head_gray_at_m;
  end

  always_ff @(posedge s_clk) begin
    // With one more it would be full: the pointers differ in the wrap bit only, in Gray code the top two bits.
    s_ready <= next_gray != {~tail_gray_at_s[AW:AW-1], tail_gray_at_s[AW-2:0]};
    if (s_commit) begin
      head <= head_next;
      head_gray <= next_gray;
    end
    if (s_rst) begin
      head <= '0;
      head_gray <= '0;
    end
  end

  always_ff @(posedge m_clk) begin
    if (m_ready) begin
      tail <= tail_next;
      tail_gray <= tail_next ^ (tail_next >> 1);
    end
    if (m_rst) begin
      tail <= '0;
      tail_gray <= '0;
    end
  end
endmodule
`default_nettype wire
