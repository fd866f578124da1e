// SPDX-License-Identifier: Apache-2.0
//
// Divides the user's stream into packets and writes them to the packet memory (user clock).
//
//                    +---------------+
//   s_axis_* =======>|               |====> write_* (packet memory)
//   session, stop -->| packet_writer |----> head_gray, active
//   tail_gray ======>|               |----> last, last_words
//   last_seen ------>|               |
//                    +---------------+
//
// head_gray counts the complete packets, tail_gray the confirmed ones; both run modulo 2M and hold
// the low bits of the packet number, so the slot of a packet is its number modulo M. All inputs except
// s_axis_* come from the transmit clock and are synchronized here.
//
// tready falls when the buffer is full: data waits in the source. On `stop` the packet that is being filled
// becomes the last. The head moves over it only after the transmit side has answered `last` with
// `last_seen`, so that the last packet never looks like a full one. last_words is stable while `last` is high.
`default_nettype none
module packet_writer #(
    parameter int SLOT_BITS = 5,
    parameter int WORD_BITS = 10  // a packet is 2^WORD_BITS words
) (
    input  logic                           clk,
    input  logic                           rst,
    // user side
    input  logic [                   63:0] s_axis_tdata,
    input  logic                           s_axis_tvalid,
    output logic                           s_axis_tready,
    output logic                           active,
    // packet memory
    output logic                           write_enable,
    output logic [SLOT_BITS+WORD_BITS-1:0] write_address,
    output logic [                   63:0] write_data,
    // transmit side
    input  logic [            SLOT_BITS:0] first_packet,
    input  logic                           session,
    input  logic                           stop,
    input  logic                           last_seen,
    input  logic [            SLOT_BITS:0] tail_gray,
    output logic [            SLOT_BITS:0] head_gray,
    output logic                           last,
    output logic [          WORD_BITS-1:0] last_words
);
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam logic [SLOT_BITS:0] SLOTS = PTR_BITS'(2 ** SLOT_BITS);
  localparam logic [WORD_BITS-1:0] BEFORE_LAST = '1 - 1'b1;

  logic session_here, stop_here, last_seen_here;
  logic [SLOT_BITS:0] head, head_next, tail, tail_gray_here;
  logic [WORD_BITS-1:0] word;
  logic in_last_word, accept, packet_done, close, closed;
  // The buffer is full, and would be with one packet more: registered, for tready is. nearly_full follows the pointers by a
  // clock, in which the tail can only make room.
  logic full, full_next, nearly_full;

  sync_bits #(
      .WIDTH(3)
  ) sync_levels (
      .clk(clk),
      .d  ({session, stop, last_seen}),
      .q  ({session_here, stop_here, last_seen_here})
  );
  sync_bits #(
      .WIDTH(PTR_BITS)
  ) sync_tail (
      .clk(clk),
      .d  (tail_gray),
      .q  (tail_gray_here)
  );
  gray_to_binary #(
      .WIDTH(PTR_BITS)
  ) tail_binary (
      .gray  (tail_gray_here),
      .binary(tail)
  );

  assign accept = s_axis_tvalid && s_axis_tready;
  assign packet_done = accept && in_last_word;
  assign head_next = head + 1'b1;
  assign full_next = packet_done ? nearly_full : (head ^ SLOTS) == tail;

  assign write_enable = accept;
  assign write_address = {head[SLOT_BITS-1:0], word};
  assign write_data = s_axis_tdata;

  // Nothing comes in any more when tready is low.
  assign close = active && stop_here && !s_axis_tready && !full && !last;
  cdc_register #(
      .WIDTH(WORD_BITS)
  ) words_of_last (
      .clk (clk),
      .load(close),
      .d   (word),
      .q   (last_words)
  );

  always_ff @(posedge clk) begin
    full <= full_next;
    nearly_full <= (head_next ^ SLOTS) == tail;
    s_axis_tready <= active && !stop_here && !last && !full_next;
    if (accept) begin
      word <= word + 1'b1;
      in_last_word <= word == BEFORE_LAST;
    end
    if (packet_done || (last && last_seen_here && !closed)) begin
      head <= head_next;
      head_gray <= head_next ^ (head_next >> 1);
    end
    active <= 1'b1;
    if (close) last <= 1'b1;
    if (last && last_seen_here) closed <= 1'b1;
    if (rst || !session_here) begin
      active <= 1'b0;
      s_axis_tready <= 1'b0;
      full <= 1'b0;
      nearly_full <= 1'b0;
      last <= 1'b0;
      closed <= 1'b0;
      word <= '0;
      in_last_word <= 1'b0;
      head <= first_packet;
      head_gray <= first_packet ^ (first_packet >> 1);
    end
  end
endmodule
`default_nettype wire
