// SPDX-License-Identifier: Apache-2.0
//
// Changes of the state by a segment from the peer (no state; RFC 9293 3.10.7, 5681, 6582, 6298).
//
//                       +----------------+
//   flags, meaning ====>|                |====> changes
//   ecn_heard =========>| tcp_on_segment |
//   reaches_* --------->|                |
//   echoed, reduces --->|                |
//                       +----------------+
//
// The positions of confirmed data were moved before, except `sent`.
`default_nettype none
module tcp_on_segment (
    input tcp_pkg::flags_t flags,
    input tcp_pkg::meaning_t meaning,
    input logic sack,
    input tcp_pkg::segment_t segment,
    input logic hole_valid,  // see tcp_sack
    input logic reaches_recover,
    input logic reaches_timed,
    input tcp_pkg::ecn_t ecn_heard,  // see tcp_ecn
    input logic echoed,
    input logic reduces,
    output tcp_pkg::changes_t changes
);
  logic [3:0] mended;
  assign mended = flags.mends + 4'(flags.mends != '1);
  always_comb begin
    changes = '0;
    changes.flags = flags;
    changes.flags.ecn = ecn_heard;
    changes.happens[tcp_pkg::EVENT_UNACCEPTABLE] = meaning.unacceptable;
    if (meaning.answers) changes.flags.ack_due = 1'b1;
    // The payload is not wanted; it is confirmed, so that the peer does not repeat it. After a RST its own number.
    changes.peer_next = meaning.takes || meaning.refuses || meaning.opens;
    changes.window = meaning.has_window || meaning.opens;
    changes.best = meaning.is_wider || meaning.opens;
    if (meaning.closes) changes.flags.peer_closed = 1'b1;
    if (meaning.refuses) changes.flags.rst_due = 1'b1;
    if (meaning.opens) begin
      changes.flags.state = tcp_pkg::OPEN;
      changes.flags.started = 1'b1;
      changes.flags.rst_due = 1'b0;
      changes.flags.ack_due = 1'b1;
      changes.flags.backoff = '0;
      changes.flags.selective = sack && segment.sack_allowed;
      changes.limit = 1'b1;
      changes.stops = 1'b1;
      changes.congestion = flags.backoff != '0 ? tcp_pkg::CONGESTION_OPENED_LATE : tcp_pkg::CONGESTION_OPENED;
    end
    if (meaning.is_new) begin
      changes.una = 1'b1;
      changes.sent = 1'b1;
      changes.flags.duplicates = '0;
      changes.flags.persists = 1'b0;
      // With nothing under way it tells when the stream has rested.
      changes.sets = 1'b1;
      if (flags.recovering) changes.congestion = tcp_pkg::CONGESTION_PARTIAL;
      else if (flags.bounded && !echoed) changes.congestion = tcp_pkg::CONGESTION_ACKED;
      if (flags.timing && reaches_timed) begin
        {changes.flags.timing, changes.flags.halted} = '0;
        changes.flags.bounded = flags.halted;
        changes.rtt = tcp_pkg::RTT_SAMPLE;
        // Only now: a round trip over the time-out would never be measured (RFC 6298 section 5).
        changes.flags.backoff = '0;
      end
      if (reaches_recover) begin
        {changes.flags.recovering, changes.flags.rewound, changes.flags.resend, changes.flags.mends} = '0;
        if (flags.recovering) changes.congestion = tcp_pkg::CONGESTION_MENDED;
      end else if (flags.recovering) begin
        if (flags.selective) changes.flags.mends = mended;
        else changes.flags.resend = 1'b1;
        changes.flags.repaired = 1'b0;
        changes.span = tcp_pkg::TWO_ROUNDS;
      end
    end
    if (reduces) {changes.recover, changes.congestion} = {1'b1, tcp_pkg::CONGESTION_MARKED};
    // Every other duplicate mends a hole, if there is one; the others, or all, let new data go.
    if (meaning.is_duplicate && flags.recovering) begin
      if (flags.selective) changes.flags.turn = !flags.turn;
      if (flags.selective && hole_valid && flags.turn) changes.flags.mends = mended;
      else changes.congestion = tcp_pkg::CONGESTION_ANOTHER;
    end
    if (meaning.is_duplicate && !flags.recovering && !flags.rewound) begin
      changes.flags.duplicates = flags.duplicates + 2'd1;
      if (flags.duplicates == 2'd2) begin
        changes.flags.duplicates = '0;
        {changes.flags.recovering, changes.flags.ecn.tells} = '1;
        if (flags.selective && hole_valid) changes.flags.mends = mended;
        else changes.flags.resend = 1'b1;
        {changes.flags.timing, changes.flags.repaired} = '0;
        changes.recover = 1'b1;
        changes.sets = 1'b1;
        changes.span = tcp_pkg::TWO_ROUNDS;
        changes.happens[tcp_pkg::EVENT_FAST] = 1'b1;
        changes.congestion = flags.ecn.reduced ? tcp_pkg::CONGESTION_LOST_TOO : tcp_pkg::CONGESTION_LOST;
      end
    end
    changes.clears_holes = flags.selective && meaning.is_duplicate && !flags.recovering && !flags.rewound && flags.duplicates == '0;
    changes.adds_hole = flags.selective && segment.has_block && !flags.rewound && (meaning.is_duplicate || (meaning.is_new && flags.recovering));
    if (meaning.is_fin_acked) changes.flags.state = tcp_pkg::FIN_CONFIRMED;
    if (meaning.is_fin_acked || (flags.state == tcp_pkg::FIN_CONFIRMED && meaning.closes)) begin
      changes.sets = 1'b1;
      changes.span = flags.peer_closed || meaning.closes ? tcp_pkg::TWICE : tcp_pkg::LONGEST;
    end
    if (meaning.breaks) begin
      changes.happens[tcp_pkg::EVENT_RESET] = 1'b1;
      // In the end the peer was content: all is confirmed but the FIN.
      if (flags.state == tcp_pkg::FIN_SENT || flags.state == tcp_pkg::FIN_CONFIRMED)
        changes.flags.state = tcp_pkg::IDLE;
      else changes.fails = 1'b1;
      changes.stops = 1'b1;
    end
  end
  logic unused;
  assign unused = &{1'b0, flags, meaning, segment};
endmodule
`default_nettype wire
