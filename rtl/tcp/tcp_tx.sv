// SPDX-License-Identifier: Apache-2.0
//
// Packet assembler: sends the frames of the frame memory as 64-bit words (transmit clock).
//
//              +--------+
//   frame ====>|        |====> m_axis (frames without frame check sequence)
//   read_* <==>| tcp_tx |
//              +--------+
//
// The first word of a frame has the destination address in its lower six bytes; all others are whole words. So each word of
// m_axis has six bytes of one word of the memory, and two of the next. The MAC pads short frames.
//
// The memory answers READ_CLOCKS (1 or 2) after its address. With 2 there is an additional register, which waits with all
// others while the MAC waits.
`default_nettype none
module tcp_tx #(
    parameter int RING_BITS   = 12,
    parameter int READ_CLOCKS = 1
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic                             frame_valid,
    input  tcp_pkg::made_t                   frame,
    output logic                             frame_take,
    output logic                             word_take,
    output logic                             read_enable,
    output logic             [RING_BITS-1:0] read_address,
    input  logic             [         63:0] read_data,
    output link_pkg::frame_t                 m_axis,
    input  logic                             m_axis_tready
);
  localparam int WORDS_BITS = tcp_pkg::WORDS_BITS;

  // What goes with a word through the stages: whether a word of m_axis ends in it, which is the last, and whether the
  // checksum belongs here.
  localparam int STAGES = READ_CLOCKS + 1;
  logic [STAGES:0] valid, last, sum;
  logic [63:0] word, data;
  logic [47:0] carry;
  logic [WORDS_BITS-1:0] left;  // words after this one
  logic [2:0] index;  // of the word; stays at the last
  logic [15:0] checksum;
  logic [7:0] keep, last_keep;
  logic advance, busy, spills, spilled, over;

  // After each 512 long frames the line rests for 128 clocks. Where a board fills a port of its own rate, the queue of that
  // port stays as full as it is, and the frames of another board never find room; so its level moves.
  logic [8:0] count;  // of long frames; in the pause of clocks
  logic rests, is_long;
  always_ff @(posedge clk) begin
    is_long <= frame_take && frame.words[WORDS_BITS-1];
    if (rests || is_long) count <= count + 1'b1;
    if (is_long && count == '1) rests <= 1'b1;
    if (rests && count[7]) {rests, count} <= '0;
    if (rst) {rests, is_long, count} <= '0;
  end

  assign advance = !m_axis.tvalid || m_axis_tready;
  // Six bytes come from the word before: those of the last word fill one up, or need another. It goes together with the
  // next frame's first word, which is in no other.
  assign spills = frame.last_bytes > 3'd2 || frame.last_bytes == '0;
  assign keep = spills ? 8'h3F >> (3'd0 - frame.last_bytes) : frame.last_bytes == 3'd1 ? 8'h7F : 8'hFF;
  assign over = busy && left == '0;
  assign word_take = advance && busy;
  assign frame_take = advance && over;
  assign read_enable = advance;
  assign valid[0] = spilled || (busy && index != '0);
  assign last[0] = spilled || (over && !spills);
  assign sum[0] = busy && frame.is_segment && index == 3'(tcp_pkg::SUM_WORD);

  always_ff @(posedge clk) begin
    if (!busy) begin
      busy  <= frame_valid && !rests;
      left  <= frame.words;
      index <= '0;
    end else if (advance) begin
      left <= left - 1'b1;
      if (index != '1) index <= index + 3'd1;
      if (over) busy <= 1'b0;
    end
    if (advance) spilled <= over && spills;
    if (word_take) read_address <= read_address + 1'b1;
    if (rst) {busy, spilled, read_address} <= '0;
  end

  if (READ_CLOCKS == 2) begin : g_register
    always_ff @(posedge clk) if (advance) word <= read_data;
  end else begin : g_no_register
    assign word = read_data;
  end

  // The last words of a frame need its checksum and its end longer than the frame stays; the next one's come later.
  always_ff @(posedge clk) begin
    if (advance) begin
      valid[STAGES:1] <= valid[STAGES-1:0];
      last[STAGES:1]  <= last[STAGES-1:0];
      sum[STAGES:1]   <= sum[STAGES-1:0];
      if (sum[0]) checksum <= frame.checksum;
      if (over) last_keep <= keep;
      data  <= word;
      carry <= data[47:0];
      if (sum[STAGES]) carry[31:16] <= checksum;
    end
    if (rst) valid[STAGES:1] <= '0;
  end

  assign m_axis.tdata  = link_pkg::swap64({carry, data[63:48]});
  assign m_axis.tkeep  = m_axis.tlast ? last_keep : '1;
  assign m_axis.tvalid = valid[STAGES];
  assign m_axis.tlast  = last[STAGES];
  assign m_axis.tuser  = 1'b0;
endmodule
`default_nettype wire
