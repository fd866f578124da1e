// SPDX-License-Identifier: Apache-2.0
//
// The user side of one stream: accepts the words, and reports them to the engine.
//
//              +--------------------------------------------+
//   s_axis ===>| tcp_writer --- head, ends of blocks ------>|====> head, moved, mark_* (to tcp_engine)
//   write_* <==|     ^                                      |
//              |     +------ tail, accept, running ---------|<==== confirmed, accept, running
//              +--------------------------------------------+
//        user_clk                                     tx_clk
//
// The socket buffer is behind write_*. While `accepting` is low the head does not move.
`default_nettype none
module tcp_stream #(
    parameter int BITS    = 12,
    parameter int BLOCKS  = 0,
    parameter int PACKETS = 0
) (
    // user side
    input  logic                        user_clk,
    input  logic                        user_rst,
    input  link_pkg::words_t            s_axis,
    output logic                        s_axis_tready,
    output logic                        user_running,
    output logic                        write_valid,
    input  logic                        write_ready,
    output logic             [BITS-1:0] write_address,
    output logic             [    63:0] write_data,
    input  logic                        push,
    // transmit side
    input  logic                        tx_clk,
    input  logic                        tx_rst,
    input  logic                        accept,
    input  logic                        running,
    output logic                        accepting,
    output logic             [  BITS:0] head,
    output logic                        moved,
    output logic                        mark_valid,
    output logic             [  BITS:0] mark,
    input  logic                        mark_take,
    input  logic                        confirm,
    input  logic             [  BITS:0] confirmed
);
  // What is taken last is in `head` when `accepting` falls: the clocks that the head takes here, and one for the crossing.
  localparam int BEFORE = 2;  // user_clk
  localparam int BEHIND = 4;  // tx_clk

  logic [BITS:0] head_gray, head_gray_tx, head_gray_later, head_binary;
  logic [BITS:0] mark_in, tail_newest, tail_here, tail;
  logic mark_in_valid, mark_in_ready, tail_due, tail_ready, tail_valid, moves;
  logic user_accepting, accepting_tx, running_here;
  logic [BEFORE-1:0] accepting_before;
  logic [BEHIND-1:0] accepting_behind;

  tcp_writer #(
      .BITS   (BITS),
      .PACKETS(PACKETS)
  ) writer (
      .clk          (user_clk),
      .rst          (user_rst),
      .s_axis_tdata (s_axis.tdata),
      .s_axis_tvalid(s_axis.tvalid),
      .s_axis_tlast (s_axis.tlast),
      .mark_valid   (mark_in_valid),
      .mark_ready   (mark_in_ready),
      .mark         (mark_in),
      .accepting    (user_accepting),
      .*
  );
  sync_bits sync_running (
      .clk(user_clk),
      .d  (running),
      .q  (running_here)
  );
  // No word of another run is taken into this one.
  assign user_running = running_here || user_accepting;
  always_ff @(posedge user_clk) begin
    accepting_before <= {accepting_before[BEFORE-2:0], user_accepting};
    if (tail_valid) tail <= tail_here;
    if (user_rst) tail <= '0;
  end

  sync_bits #(
      .WIDTH(BITS + 2)
  ) sync_writer (
      .clk(tx_clk),
      .d  ({accepting_before[BEFORE-1], head_gray}),
      .q  ({accepting_tx, head_gray_tx})
  );
  gray_to_binary #(
      .WIDTH(BITS + 1)
  ) to_binary (
      .gray  (head_gray_later),
      .binary(head_binary)
  );
  always_ff @(posedge tx_clk) begin
    // The end of a block must be seen before its last word.
    head_gray_later <= head_gray_tx;
    head <= head_binary;
    moves <= head_gray_tx != head_gray_later;
    moved <= moves;
    accepting_behind <= {accepting_behind[BEHIND-2:0], accepting_tx};
    if (confirm) tail_newest <= confirmed;
    tail_due <= confirm || (tail_due && !tail_ready);
    if (tx_rst) {tail_newest, tail_due} <= '0;
  end
  assign accepting = accepting_behind[BEHIND-1];

  // The tail moves by many words at once: no Gray code.
  cdc_handshake #(
      .WIDTH(BITS + 1)
  ) confirmed_crossing (
      .s_clk  (tx_clk),
      .s_rst  (tx_rst),
      .s_data (tail_newest),
      .s_valid(tail_due),
      .s_ready(tail_ready),
      .m_clk  (user_clk),
      .m_rst  (user_rst),
      .m_data (tail_here),
      .m_valid(tail_valid),
      .m_ready(1'b1)
  );

  if (BLOCKS != 0) begin : g_blocks
    async_fifo #(
        .WIDTH(BITS + 1),
        .DEPTH(BLOCKS)
    ) marks (
        .s_clk  (user_clk),
        .s_rst  (user_rst),
        .s_data (mark_in),
        .s_valid(mark_in_valid),
        .s_ready(mark_in_ready),
        .m_clk  (tx_clk),
        .m_rst  (tx_rst),
        .m_data (mark),
        .m_valid(mark_valid),
        .m_ready(mark_take)
    );
  end else begin : g_no_blocks
    assign {mark_in_ready, mark_valid, mark} = '0;
    logic unused;
    assign unused = &{1'b0, mark_in, mark_in_valid, mark_take};
  end
endmodule
`default_nettype wire
