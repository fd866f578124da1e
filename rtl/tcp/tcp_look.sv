// SPDX-License-Identifier: Apache-2.0
//
// Decides what a stream sends next (transmit clock; RFC 9293 3.8, 5681, 3042).
//
//                     +----------+
//   head, mark ======>|          |====> found
//   flags, places ===>| tcp_look |====> fitting (words of the segment)
//   windows, limit ==>|          |
//   begins ---------->|          |
//                     +----------+
//
// At `begins` it samples what the user side changes; all other inputs are stable from there until `found` is ready, four
// clocks later. Positions are words after `una`, the first unconfirmed byte.
//
// With `pauses` data waits for a random time of some microseconds, in which one look in four sends it. Otherwise boards
// that share a port and answer each ACK at once would keep their slots in its queue, and always the same boards would lose.
//
// A segment ends with its block, which is then sent at once: the algorithm of Nagle is for plain streams. Retransmissions
// are sent at once, too. If the window is too small for a segment a part of it is sent, but no small parts (RFC 9293
// 3.8.6.2.1).
`default_nettype none
module tcp_look #(
    parameter int BITS = 12  // a socket buffer is 2^BITS words
) (
    input logic clk,
    input logic rst,
    input logic begins,
    input logic path,  // the address of the next hop is known
    input logic push,  // see tcp_engine
    // user's side of the stream
    input logic enable,
    input logic accept,
    input logic accepting,
    input logic [BITS:0] head,
    input logic mark_valid,
    input logic [BITS:0] mark,
    // see tcp_keepalive
    input logic keepalive_due,
    input logic keepalive_lost,
    // its state
    input tcp_pkg::flags_t flags,
    input logic [BITS:0] una,
    input logic [BITS:0] nxt,
    input logic [BITS:0] sent,
    input logic under_way,  // something is
    input logic [BITS:0] told,  // window
    input logic [BITS:0] best,  // the largest that there was
    input logic [BITS:0] congestion_window,
    // see tcp_sack
    input logic hole_valid,
    input logic [BITS:0] hole_place,
    input logic [BITS:0] hole_end,
    input logic [tcp_pkg::WORDS_BITS-1:0] limit,  // of a segment
    output tcp_pkg::look_t found,
    output logic ends,  // with all data that there is, or with its block
    output logic [BITS:0] fitting
);
  localparam int P = BITS + 1;

  logic marked, still, enabled, asks, is_lost, is_again, is_hole, is_behind, by_window, more, empty;
  logic unsent_over, room_over, room_short, room_none, is_silly, is_stale;
  logic in_block, partial, whole_goes, holds;
  logic [P-1:0] from_head, from_mark, unsent, room;
  logic [P:0] space, room_told, room_space, bound;

  // x^9 + x^5 + 1.
  logic [8:0] dice;
  always_ff @(posedge clk) dice <= rst ? '0 : {dice[7:0], dice[8] ~^ dice[4]};

  always_ff @(posedge clk) begin
    // First.
    if (begins) begin
      from_head <= head - una;
      from_mark <= mark - una;
      marked <= mark_valid;
      still <= !accept && !accepting;
      enabled <= enable;
      asks <= keepalive_due;
      is_lost <= keepalive_lost;
    end
    // A segment beyond the congestion window for each duplicate (RFC 3042).
    space <= (P + 1)'(congestion_window) + (flags.duplicates[1] ? (P + 1)'(limit) << 1 : flags.duplicates[0] ? (P + 1)'(limit) : '0);
    is_behind <= nxt != sent;
    is_hole <= flags.mends != '0 && hole_valid && !flags.resend;
    is_again <= flags.resend || (flags.mends != '0 && hole_valid);
    room_told <= (P + 1)'(told) - (P + 1)'(nxt);
    // Second.
    by_window <= (P + 1)'(told) <= space;
    room_space <= space - (P + 1)'(nxt);
    unsent <= (is_hole ? hole_end : is_again || is_behind ? sent : marked ? from_mark : from_head)
        - (is_hole ? hole_place : is_again ? '0 : nxt);
    more <= from_head != nxt;
    empty <= from_head == '0;
    // Third.
    unsent_over <= unsent >= P'(limit);
    is_stale <= unsent == '0 || (unsent[P-1] && unsent[P-2:0] != '0);
    room <= bound[P-1:0];
    room_over <= is_again || (!bound[P] && bound[P-1:0] >= P'(limit));
    room_short <= !is_again && (bound[P] || bound[P-1:0] < unsent);
    room_none <= !is_again && (bound[P] || bound == '0);
    // Less than an eighth of the largest window.
    is_silly <= bound[P-1:0] < best >> 3;
    whole_goes <= in_block || flags.rewound || (!under_way && !partial);
    holds <= flags.pauses && dice[1:0] != '0;
  end
  assign bound = by_window ? room_told : room_space;
  assign in_block = marked && !is_behind;
  assign partial = push && !in_block && !still;

  // Fourth.
  logic whole, full, may_send, data_now;
  tcp_pkg::kind_t kind;
  assign whole = unsent_over ? room_over : !room_short;
  assign full = unsent_over && room_over;
  assign may_send = full || (whole && whole_goes)
      || (!whole && by_window && !room_none && (!is_silly || flags.rewound));
  assign data_now = more && ((may_send && !holds) || flags.force_one);
  always_comb begin
    kind = tcp_pkg::NOTHING;
    if (path) begin
      case (flags.state)
        tcp_pkg::SYN_SENT:
        kind = flags.rst_due ? tcp_pkg::A_RST : flags.syn_due ? tcp_pkg::A_SYN : tcp_pkg::NOTHING;
        tcp_pkg::OPEN:
        if (flags.ack_due) kind = tcp_pkg::PURE_ACK;
        else if (is_again) kind = is_hole && is_stale ? tcp_pkg::NOTHING : tcp_pkg::AGAIN;
        else if (data_now && !(in_block && is_stale)) kind = tcp_pkg::DATA;
        else if (asks && !under_way && !flags.persists) kind = tcp_pkg::KEEPALIVE;
        tcp_pkg::FIN_SENT:
        kind = flags.ack_due ? tcp_pkg::PURE_ACK : flags.fin_due ? tcp_pkg::A_FIN : tcp_pkg::NOTHING;
        tcp_pkg::FIN_CONFIRMED: if (flags.ack_due) kind = tcp_pkg::PURE_ACK;
        default: ;
      endcase
    end
  end

  assign ends = unsent == fitting;
  always_ff @(posedge clk) begin
    fitting <= room_none ? P'(flags.force_one) : full ? P'(limit) : unsent_over || room_short ? room : unsent;
    found.kind <= kind;
    found.is_behind <= is_behind;
    found.held <= more && !by_window;
    found.waits <= more && !may_send && !(partial && whole);
    found.drops_mark <= in_block && is_stale;
    found.takes_mark <= in_block;
    found.is_hole <= is_hole;
    found.drops_hole <= is_hole && is_stale && flags.state == tcp_pkg::OPEN;
    found.drained <= flags.state == tcp_pkg::OPEN && empty && !under_way && still && kind == tcp_pkg::NOTHING;
    found.connects <= (flags.state == tcp_pkg::IDLE && enabled) || (flags.state == tcp_pkg::BROKEN && flags.retry_due);
    found.wanted <= flags.state == tcp_pkg::IDLE || enabled || !empty;
    found.ceases <= flags.state == tcp_pkg::SYN_SENT && !enabled && still && (!flags.started || empty);
    found.lost <= flags.state == tcp_pkg::OPEN && is_lost && !under_way && !flags.persists;
  end
  logic unused;
  assign unused = &{1'b0, flags};
endmodule
`default_nettype wire
