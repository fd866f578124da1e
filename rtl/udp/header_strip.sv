// SPDX-License-Identifier: Apache-2.0
//
// Removes the header of one layer from a frame and aligns the data after it.
//
//                  +--------------+
//   s_* ==========>| header_strip |====> header, complete
//   (data, end)    |              |====> m_* (data behind the header, end)
//                  +--------------+
//
// Data comes in words with `count` bytes from the lowest lane up; only the last word of a frame may be partial. `end` with
// `good` closes the frame: with its last word or later; the next one begins at least two clocks later. The first byte of
// the header is in its upper bits; it is stable until the next frame. Before m_valid, m_data belongs to the header, in the
// same lanes.
// `complete`, at m_end: the frame contained the whole header; otherwise ignore the header.
`default_nettype none
module header_strip #(
    parameter int WIDTH = 8,
    parameter int HEADER_BYTES = 14
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic [         WIDTH-1:0] s_data,
    input  logic [               3:0] s_count,
    input  logic                      s_valid,
    input  logic                      s_end,
    input  logic                      s_good,
    output logic [HEADER_BYTES*8-1:0] header,
    output logic                      complete,
    output logic [         WIDTH-1:0] m_data,
    output logic [               3:0] m_count,
    output logic                      m_valid,
    output logic                      m_end,
    output logic                      m_good
);
  localparam int BYTES = WIDTH / 8;
  localparam int FULL = HEADER_BYTES / BYTES;
  localparam int REST = HEADER_BYTES % BYTES;
  localparam int INDEX_BITS = $clog2(FULL + 2);

  logic [FULL*WIDTH-1:0] lanes;  // the header's whole words, the first one lowest when all are there
  logic [INDEX_BITS-1:0] index;  // of the word, stops behind the header
  logic ending, ending_good;  // the end has come; what is held goes out
  byte_reverse #(
      .BYTES(FULL * BYTES)
  ) reverse (
      .field   (lanes),
      .reversed(header[HEADER_BYTES*8-1-:FULL*WIDTH])
  );

  always_ff @(posedge clk) begin
    ending <= s_end;
    ending_good <= s_good;
    if (s_valid && 32'(index) < FULL) lanes <= (FULL * WIDTH)'({s_data, lanes} >> WIDTH);
    if (s_valid && 32'(index) < (REST == 0 ? FULL : FULL + 1)) index <= index + 1'b1;
    m_end  <= ending;
    m_good <= ending_good;
    if (ending) index <= '0;
    if (rst) begin
      index <= '0;
      {ending, m_end} <= '0;
    end
  end

  if (REST == 0) begin : g_aligned
    logic [WIDTH-1:0] data;
    logic [3:0] count;
    logic valid, whole;
    always_ff @(posedge clk) begin
      // As late as the end.
      data <= s_data;
      count <= s_count;
      valid <= s_valid && 32'(index) == FULL;
      {m_data, m_count, m_valid} <= {data, count, valid};
      if (s_valid && 32'(index) == FULL - 1) whole <= 32'(s_count) == BYTES;
      if (ending) whole <= 1'b0;
      complete <= whole;
      if (rst) {valid, m_valid, whole} <= '0;
    end
  end else begin : g_shifted
    localparam int HELD = BYTES - REST;
    logic [REST*8-1:0] tail;  // of the header
    byte_reverse #(
        .BYTES(REST)
    ) reverse_tail (
        .field   (tail),
        .reversed(header[REST*8-1:0])
    );
    logic [HELD*8-1:0] held;
    logic [3:0] held_count;
    logic whole;
    always_ff @(posedge clk) begin
      m_valid <= 1'b0;
      m_count <= 4'(BYTES);
      m_data  <= {s_data[REST*8-1:0], held};
      if (s_valid) held <= s_data[WIDTH-1-:HELD*8];
      if (s_valid && 32'(index) >= FULL) begin
        held_count <= s_count > 4'(REST) ? s_count - 4'(REST) : '0;
        if (32'(index) == FULL) begin
          tail  <= s_data[REST*8-1:0];
          whole <= s_count >= 4'(REST);
        end else begin
          m_valid <= 1'b1;
          m_count <= s_count < 4'(REST) ? 4'(HELD) + s_count : 4'(BYTES);
        end
      end
      if (ending) begin
        m_valid <= held_count != '0;
        m_count <= held_count;
        m_data <= WIDTH'(held);
        held_count <= '0;
        whole <= 1'b0;
      end
      complete <= whole;
      if (rst) begin
        m_valid <= 1'b0;
        held_count <= '0;
        whole <= 1'b0;
      end
    end
  end
endmodule
`default_nettype wire
