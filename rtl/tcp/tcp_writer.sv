// SPDX-License-Identifier: Apache-2.0
//
// Writes the user's words to the socket buffer of one stream (user clock).
//
//                  +------------+
//   s_axis_* =====>|            |====> write_* (memory port)
//   tail =========>| tcp_writer |====> head_gray
//   accept ------->|            |----> accepting
//   push --------->|            |====> mark_* (ends of blocks)
//                  +------------+
//
// head_gray counts the words that were written, `tail` those that were confirmed, modulo twice the buffer. tready falls
// when the buffer is full: data waits in the source. `accept` comes from the transmit clock; when `accepting` has followed
// it down, the head does not move. With PACKETS a packet (up to tlast) that has begun is accepted whole: `accepting` falls
// behind its last word. With `push`, a word with tlast is accepted together with a mark: the head after it.
`default_nettype none
module tcp_writer #(
    parameter int BITS = 12,  // the buffer is 2^BITS words
    parameter int PACKETS = 0
) (
    input  logic            clk,
    input  logic            rst,
    input  logic [    63:0] s_axis_tdata,
    input  logic            s_axis_tvalid,
    output logic            s_axis_tready,
    input  logic            s_axis_tlast,
    input  logic            push,
    output logic            mark_valid,
    input  logic            mark_ready,
    output logic [  BITS:0] mark,
    output logic            write_valid,
    input  logic            write_ready,
    output logic [BITS-1:0] write_address,
    output logic [    63:0] write_data,
    input  logic            accept,
    output logic            accepting,
    input  logic [  BITS:0] tail,
    output logic [  BITS:0] head_gray
);
  localparam logic [BITS:0] FULL = {1'b1, BITS'(0)};
  logic [BITS:0] head, used;

  logic may_accept, in_packet;
  sync_bits sync_accept (
      .clk(clk),
      .d  (accept),
      .q  (may_accept)
  );
  assign accepting = may_accept || in_packet;
  if (PACKETS != 0) begin : g_packets
    always_ff @(posedge clk) begin
      if (s_axis_tvalid && s_axis_tready) in_packet <= !s_axis_tlast;
      if (rst) in_packet <= 1'b0;
    end
  end else begin : g_no_packets
    assign in_packet = 1'b0;
  end

  // Words in the buffer, a clock ago: another one may have been taken since.
  logic may_take, marked, taken, room_for_two, room_for_one;
  assign used = head - tail;
  assign marked = push && s_axis_tlast;
  assign may_take = accepting && (room_for_two || (room_for_one && !taken)) && (mark_ready || !marked);
  assign s_axis_tready = may_take && write_ready;
  assign write_valid = s_axis_tvalid && may_take;
  assign mark_valid = s_axis_tvalid && s_axis_tready && marked;
  assign mark = head + 1'b1;
  assign write_address = head[BITS-1:0];
  assign write_data = s_axis_tdata;

  always_ff @(posedge clk) begin
    room_for_two <= used < FULL - 1'b1;
    room_for_one <= used == FULL - 1'b1;
    taken <= s_axis_tvalid && s_axis_tready;
    if (rst) {room_for_two, room_for_one} <= '0;
    if (rst) head <= '0;
    else if (s_axis_tvalid && s_axis_tready) head <= head + 1'b1;
    // A clock later than the word, so that it is in the memory when it is counted.
    head_gray <= head ^ (head >> 1);
    if (rst) head_gray <= '0;
  end
endmodule
`default_nettype wire
