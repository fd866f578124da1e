// SPDX-License-Identifier: Apache-2.0
//
// Stores what the peer of each stream misses, from its selective acknowledgments (transmit clock; RFC 2018).
//
//                    +----------+
//   segment, una ===>|          |====> hole_place, hole_end (words after una; of the oldest hole)
//   clears, adds --->| tcp_sack |----> hole_valid
//   moves, drops --->|          |<==== number, fitting (of the segment that goes again)
//                    +----------+
//
// A network without reordering loses in the order of sending, so a block above all earlier ones leaves a hole below it. The
// holes are a queue, the oldest first, with 31 at most; a hole that does not fit is repaired as without SACK. The first
// block of an option is enough: it contains the segment that the ACK answers. Segments may have any size.
//
// `clears` and `adds` at the last step of a segment: the queue restarts at una; its block counts. `moves` and `drops` at
// the last step of a look: the oldest hole now begins after the data to send (`number`, a clock later), or is repaired or
// confirmed. hole_place and hole_end are ready two clocks after the begin of a look.
`default_nettype none
module tcp_sack #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,  // a socket buffer is 2^BITS words
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input logic clk,
    input logic [STREAM_BITS-1:0] stream,
    input logic [tcp_pkg::STEPS-1:0] step,
    input tcp_pkg::flags_t flags,
    input logic [28:0] una,
    input logic [BITS:0] sent,
    input tcp_pkg::segment_t segment,
    input logic clears,
    input logic adds,
    input logic moves,
    input logic drops,
    input logic [28:0] number,
    input logic [BITS:0] fitting,
    output logic hole_valid,
    output logic [BITS:0] hole_place,
    output logic [BITS:0] hole_end
);
  localparam int P = BITS + 1;
  localparam int POINTER_BITS = 5;
  localparam int ADDRESS_BITS = POINTER_BITS + (STREAMS > 1 ? STREAM_BITS : 0);
  typedef logic [POINTER_BITS-1:0] pointer_t;
  typedef logic [ADDRESS_BITS-1:0] address_t;

  // ---- a block -------------------------------------------------------------------------------
  // Words after una; `covered` is where the blocks before end.
  logic [28:0] edge_place;
  logic [P-1:0] top, top_place, left, covered;
  logic fits, left_fits, begins_anew, from_una, leaves_hole, is_higher;
  assign top_place = top - una[P-1:0];
  assign begins_anew = top_place[P-1] || (!flags.recovering && flags.duplicates == '0);
  assign fits = edge_place[28:P] == '0 && edge_place[P-1:0] < sent;
  always_ff @(posedge clk) begin
    edge_place <= (step[tcp_pkg::SEGMENT] ? segment.left : segment.right) - una;
    if (step[tcp_pkg::SEGMENT_SECOND]) {left_fits, left} <= {fits, edge_place[P-1:0]};
    from_una <= begins_anew;
    covered  <= top_place;
    if (begins_anew) covered <= '0;
    leaves_hole <= left > covered;
    is_higher   <= edge_place[P-1:0] > covered;
  end

  // ---- the queue -----------------------------------------------------------------------------
  pointer_t head, tail, head_next, tail_next;
  logic is_full, counts, pushes, moves_due;
  logic [P-1:0] hole_start, hole_stop, start_place, rest;
  assign hole_valid = head != tail;
  assign is_full = head + pointer_t'(1) == tail;
  assign counts = adds && left_fits;
  assign pushes = counts && leaves_hole && (clears || !is_full);
  assign head_next = head + pointer_t'(pushes);
  assign tail_next = clears ? head : tail + pointer_t'(drops);
  assign rest = number[P-1:0] + fitting;

  tcp_context #(
      .WIDTH  (P),
      .STREAMS(STREAMS)
  ) top_context (
      .write(clears || (counts && is_higher)),
      .d    (counts && is_higher ? segment.right[P-1:0] : una[P-1:0]),
      .q    (top),
      .*
  );
  tcp_context #(
      .WIDTH  (2 * POINTER_BITS),
      .STREAMS(STREAMS)
  ) pointers (
      .write(clears || pushes || drops),
      .d    ({head_next, tail_next}),
      .q    ({head, tail}),
      .*
  );
  (* ram_style = "distributed" *)
  logic [P-1:0] starts[2**ADDRESS_BITS], stops[2**ADDRESS_BITS];
  assign hole_start  = starts[address_t'({stream, tail})];
  assign hole_stop   = stops[address_t'({stream, tail})];
  assign start_place = hole_start - una[P-1:0];
  always_ff @(posedge clk) begin
    moves_due <= moves;
    if (pushes) stops[address_t'({stream, head})] <= segment.left[P-1:0];
    if (pushes || moves_due)
      starts[address_t'({
        stream, pushes?head : tail
      })] <= moves_due ? rest : from_una ? una[P-1:0] : top;
    if (step[tcp_pkg::LOOK]) begin
      hole_end   <= hole_stop - una[P-1:0];
      hole_place <= start_place;
      // What was confirmed meanwhile is not a hole.
      if (start_place[P-1]) hole_place <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, flags, segment, step, number[28:P]};
endmodule
`default_nettype wire
