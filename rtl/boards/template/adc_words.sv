// SPDX-License-Identifier: Apache-2.0
//
// Windows of an ADC's samples, each behind a header: an example of one's own data (docs/boards.md; user clock).
//
//                +-----------+
//   s_axis_* ===>|           |====> m_axis_* (to a link core)
//   running ---->| adc_words |
//   settings ===>|           |====> windows, lost
//                +-----------+
//
// s_axis: words of four samples of 16 bits, two's complement, the first one in the lowest bits, from an async_fifo behind the
// ADC. Every word is taken at once, but for a clock before each window: so the clock must be faster than the words by one in
// `length` + 1.
//
// A window begins with the first word that has a sample at `threshold` or above, or with `continuous` behind the window
// before, and has `length` words, 1 to DEPTH - 8. It begins only if the memory has room for all of it. Otherwise it is lost: it is
// counted, and its words are passed over. So what a link cannot carry is known window by window.
//
// Header: MAGIC, the lower half of `lost`, and the number of the window's first word since the run began, 32 bits. tlast
// ends a window. When `running` falls, what has not been taken is dropped.
`default_nettype none
module adc_words #(
    parameter int DEPTH = 2048,
    parameter logic [15:0] MAGIC = 16'hADC0
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        running,
    input  logic        continuous,
    input  logic [15:0] threshold,
    input  logic [15:0] length,
    input  logic [63:0] s_axis_tdata,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    output logic [31:0] windows,
    output logic [31:0] lost,
    output logic [63:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast
);
  localparam int USED_BITS = $clog2(DEPTH) + 1;
  localparam int UNDER_WAY = 4;  // words that `used` may not count yet

  typedef enum logic [1:0] {
    WAIT,
    SEND,
    PASS
  } state_t;
  state_t state;

  // ---- words that come -----------------------------------------------------------------------
  logic [63:0] word;
  logic word_valid, triggers, begins, take, was_running;
  logic [3:0] above;
  always_comb
    for (int i = 0; i < 4; i++) above[i] = $signed(s_axis_tdata[16*i+:16]) >= $signed(threshold);
  assign begins = state == WAIT && word_valid && triggers && running && was_running;
  assign take = word_valid && !begins;
  assign s_axis_tready = !word_valid || take;
  always_ff @(posedge clk) begin
    if (s_axis_tready) begin
      word <= s_axis_tdata;
      word_valid <= s_axis_tvalid;
      triggers <= above != '0 || continuous;
    end
    if (rst) word_valid <= 1'b0;
  end

  // ---- windows -------------------------------------------------------------------------------
  logic [15:0] left;
  logic [31:0] number;
  logic has_room, is_last;
  logic [USED_BITS-1:0] used;
  assign is_last = left == 16'd1;
  always_ff @(posedge clk) begin
    was_running <= running;
    has_room <= 32'(used) + 32'(length) + 32'(UNDER_WAY) <= 32'(DEPTH);
    if (take) number <= number + 32'd1;
    case (state)
      WAIT:
      if (begins) begin
        left  <= length;
        state <= has_room ? SEND : PASS;
        if (has_room) windows <= windows + 32'd1;
        else lost <= lost + 32'd1;
      end
      default:
      if (take) begin
        left <= left - 16'd1;
        if (is_last) state <= WAIT;
      end
    endcase
    if (!running || !was_running) begin
      state  <= WAIT;
      number <= '0;
    end
    if (rst || (running && !was_running)) {windows, lost} <= '0;
    if (rst) begin
      state <= WAIT;
      was_running <= 1'b0;
    end
  end

  // ---- memory --------------------------------------------------------------------------------
  logic push_header, push_word, ready;
  assign push_header = begins && has_room;
  assign push_word   = state == SEND && take;
  stream_fifo #(
      .WIDTH(65),
      .DEPTH(DEPTH)
  ) fifo (
      .clk    (clk),
      .rst    (rst || !was_running),
      .s_data (push_header ? {1'b0, MAGIC, lost[15:0], number} : {is_last, word}),
      .s_valid(push_header || push_word),
      .s_ready(ready),
      .used   (used),
      .m_data ({m_axis_tlast, m_axis_tdata}),
      .m_valid(m_axis_tvalid),
      .m_ready(m_axis_tready)
  );

  logic unused;
  assign unused = ready;
endmodule
`default_nettype wire
