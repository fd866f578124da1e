// SPDX-License-Identifier: Apache-2.0
//
// Cuts a packet to the length in its header; the rest is padding.
//
//            +------------+
//   s_* ====>| length_cut |====> m_* (a clock later)
//            |            |----> whole
//            +------------+
//
// The length (16 bits, includes the header) is at byte AT of the header, in its first word. The length and the bytes before
// it are passed on. `whole`, from the clock after m_end to that of the next packet: the packet had as many bytes as its
// length, and at least the bytes up to the length field. m_data passes with and without m_valid.
`default_nettype none
module length_cut #(
    parameter int WIDTH = 8,
    parameter int AT = 2
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    input  logic             s_end,
    input  logic             s_good,
    output logic [WIDTH-1:0] m_data,
    output logic [      3:0] m_count,
    output logic             m_valid,
    output logic             m_end,
    output logic             m_good,
    output logic             whole
);
  localparam int BYTES = WIDTH / 8;
  localparam int FIRST = WIDTH == 8 ? AT + 2 : BYTES;  // bytes before it counts
  logic [3:0] count;
  logic all_there;
  always_ff @(posedge clk) begin
    {m_data, m_count, m_end, m_good} <= {s_data, count, s_end, s_good};
    m_valid <= s_valid && count != '0;
    if (m_end) whole <= all_there;
    if (rst) {m_valid, m_end} <= '0;
  end

  if (WIDTH == 8) begin : g_bytes
    localparam int INDEX_BITS = $clog2(FIRST + 1);
    logic [INDEX_BITS-1:0] index;
    logic [15:0] left;  // and FIRST more
    logic counts;
    assign counts = index == INDEX_BITS'(FIRST);
    assign count = {3'd0, !counts || left > 16'(FIRST)};
    assign all_there = left == 16'(FIRST);
    always_ff @(posedge clk) begin
      if (s_valid && !counts) index <= index + 1'b1;
      if (s_valid && index == INDEX_BITS'(AT)) left[15:8] <= s_data;
      else if (s_valid && index == INDEX_BITS'(AT + 1)) left[7:0] <= s_data;
      else if (s_valid && counts && count[0]) left <= left - 16'd1;
      if (rst || s_end) index <= '0;
      if (s_end && !(counts || (s_valid && index == INDEX_BITS'(AT + 1)))) left <= '0;
    end
    logic unused;
    assign unused = &{1'b0, s_count};
  end else begin : g_words
    // What of a word is inside is known a clock before it comes.
    logic first, rests, over;
    logic [15:0] left, told;
    logic negative;
    assign told = {s_data[AT*8+:8], s_data[AT*8+8+:8]};
    assign count = first || over ? s_count : s_count < {1'b0, left[2:0]} ? s_count : {1'b0, left[2:0]};
    assign all_there = left == '0 && !rests && !negative;
    always_ff @(posedge clk) begin
      if (s_valid) begin
        first <= 1'b0;
        over  <= (first ? told : left) >= 16'(2 * BYTES);
        if (first) begin
          left <= told < 16'(BYTES) ? '0 : told - 16'(BYTES);
          negative <= told < 16'(BYTES);
          rests <= s_count != 4'(BYTES);
        end else begin
          left  <= over ? left - 16'(BYTES) : '0;
          rests <= over ? s_count != 4'(BYTES) : s_count < {1'b0, left[2:0]};
        end
      end
      if (rst || s_end) first <= 1'b1;
    end
  end
endmodule
`default_nettype wire
