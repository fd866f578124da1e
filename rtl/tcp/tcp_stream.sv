// SPDX-License-Identifier: Apache-2.0
//
// One stream of the TCP sender: from the user's words to what its connection wants to send.
//
//              +-----------------------------------------------+
//   s_axis ===>| tcp_writer --- head, ends of blocks --> engine |====> send_* (to the segmenter)
//   write_* <==|     ^                                 |   ^    |<==== segment_* (what was received)
//              |     +------------- tail --------------+   |    |----> port, events, connected, active
//              +-----------------------------------------------+
//        user_clk                                     tx_clk
//
// The socket buffer is behind write_*. `port`: the local one; it changes with each attempt to connect.
`default_nettype none
module tcp_stream #(
    parameter int BITS = 12,
    parameter int BLOCKS = 0,
    parameter int TIMEOUT_MIN = 200_000,
    parameter int TIMEOUT_INIT = 1_000_000,
    parameter int TIMEOUT_MAX = 8_000_000,
    parameter int RETRY = 1_000_000
) (
    // user side
    input  logic                                   user_clk,
    input  logic                                   user_rst,
    input  link_pkg::words_t                       s_axis,
    output logic                                   s_axis_tready,
    output logic                                   user_running,
    output logic                                   write_valid,
    input  logic                                   write_ready,
    output logic             [           BITS-1:0] write_address,
    output logic             [               63:0] write_data,
    // settings
    input  logic                                   enable,
    input  logic             [               15:0] local_port,
    input  logic             [               12:0] mtu_words,
    input  logic                                   push,
    input  logic             [               31:0] first_sequence,
    // transmit side
    input  logic                                   tx_clk,
    input  logic                                   tx_rst,
    input  logic                                   tick,
    input  logic                                   path,
    output logic                                   forget_path,
    output logic             [               15:0] port,
    input  logic                                   segment_valid,
    input  logic             [               31:0] segment_sequence,
    input  logic             [               31:0] segment_ack,
    input  logic             [                7:0] segment_flags,
    input  logic             [               15:0] segment_window,
    input  logic             [               15:0] segment_length,
    input  logic             [               15:0] segment_mss,
    input  logic             [                3:0] segment_scale,
    output logic                                   send_valid,
    output logic             [               31:0] send_sequence,
    output logic             [               31:0] send_ack,
    output logic             [                7:0] send_flags,
    output logic             [               12:0] send_words,
    input  logic                                   send_take,
    output logic                                   connected,
    output logic                                   active,
    output logic             [               23:0] timeout,
    output logic             [               29:0] window,
    output logic             [tcp_pkg::EVENTS-1:0] events
);
  localparam bit WITH_BLOCKS = BLOCKS != 0;

  logic [BITS:0] head, head_gray, head_gray_tx, head_gray_later, tail_gray, mark_in, mark;
  logic mark_in_valid, mark_in_ready, mark_valid, mark_take, accept, accepting, running;
  logic user_accepting, running_here;
  logic [3:0] attempt;

  tcp_writer #(
      .BITS(BITS)
  ) writer (
      .clk          (user_clk),
      .rst          (user_rst),
      .s_axis_tdata (s_axis.tdata),
      .s_axis_tvalid(s_axis.tvalid),
      .s_axis_tlast (s_axis.tlast),
      .push         (push && WITH_BLOCKS),
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
  sync_bits #(
      .WIDTH(BITS + 2)
  ) sync_writer (
      .clk(tx_clk),
      .d  ({user_accepting, head_gray}),
      .q  ({accepting, head_gray_tx})
  );
  gray_to_binary #(
      .WIDTH(BITS + 1)
  ) head_binary (
      .gray  (WITH_BLOCKS ? head_gray_later : head_gray_tx),
      .binary(head)
  );
  // The end of a block must be seen before its last word.
  always_ff @(posedge tx_clk) head_gray_later <= head_gray_tx;
  if (WITH_BLOCKS) begin : g_blocks
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

  // Another port for each attempt, so that old segments belong to nobody.
  assign port = local_port + {8'd0, attempt, 4'd0};

  tcp_engine #(
      .BITS        (BITS),
      .TIMEOUT_MIN (TIMEOUT_MIN),
      .TIMEOUT_INIT(TIMEOUT_INIT),
      .TIMEOUT_MAX (TIMEOUT_MAX),
      .RETRY       (RETRY)
  ) engine (
      .clk               (tx_clk),
      .rst               (tx_rst),
      .first_sequence    (first_sequence << (BITS + 4)),
      .push              (push && WITH_BLOCKS),
      .event_sent        (events[tcp_pkg::EVENT_SENT]),
      .event_again       (events[tcp_pkg::EVENT_RETRANSMITTED]),
      .event_fast        (events[tcp_pkg::EVENT_FAST]),
      .event_timeout     (events[tcp_pkg::EVENT_TIMEOUT]),
      .event_probe       (events[tcp_pkg::EVENT_PROBE]),
      .event_reset       (events[tcp_pkg::EVENT_RESET]),
      .event_unacceptable(events[tcp_pkg::EVENT_UNACCEPTABLE]),
      .*
  );
endmodule
`default_nettype wire
