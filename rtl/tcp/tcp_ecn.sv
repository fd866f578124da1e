// SPDX-License-Identifier: Apache-2.0
//
// Explicit congestion notification: the effect of marks of switches on a stream (RFC 3168 6.1; no state).
//
//                      +---------+
//   ecn --------------->|         |====> ecn_flags, takes_marks (of the segment that goes next)
//   flags, found =====>| tcp_ecn |====> ecn_sent (flags.ecn after it)
//   segment, meaning =>|         |====> ecn_heard (flags.ecn after the segment)
//   reaches_recover -->|         |----> echoed, reduces (the congestion window)
//                      +---------+
//
// The first two SYNs ask for ECN; a lost one may have been discarded because of that (6.1.1.1). Only new data may be
// marked: no other segment, no retransmission, no probe of a window (6.1.4 to 6.1.6). The window falls once for all marks
// of a round trip. It does not fall again before all data that was under way is confirmed, because only then the peer has
// seen the CWR.
`default_nettype none
module tcp_ecn (
    input logic ecn,  // it is to be asked for
    input tcp_pkg::flags_t flags,
    input tcp_pkg::look_t found,
    output logic [1:0] ecn_flags,
    output logic takes_marks,
    output tcp_pkg::ecn_t ecn_sent,
    input tcp_pkg::segment_t segment,
    input tcp_pkg::meaning_t meaning,
    input logic reaches_recover,
    output tcp_pkg::ecn_t ecn_heard,
    output logic echoed,
    output logic reduces
);
  logic asks, is_new, ece, cwr;
  tcp_pkg::ecn_t was;
  assign was = ecn ? flags.ecn : '0;
  assign asks = ecn && flags.backoff[3:1] == '0;
  assign is_new = found.kind == tcp_pkg::DATA && !found.is_behind && !flags.force_one;
  assign takes_marks = was.agreed && is_new;
  assign ecn_flags = found.kind == tcp_pkg::A_SYN ? {2{asks}} : {takes_marks && was.tells, was.echoes};
  always_comb begin
    ecn_sent = was;
    if (is_new) ecn_sent.tells = 1'b0;
  end

  assign {cwr, ece} = segment.flags[tcp_pkg::CWR:tcp_pkg::ECE];
  assign echoed = was.agreed && meaning.has_window && ece;
  assign reduces = echoed && !was.reduced && !flags.recovering && !flags.rewound;
  always_comb begin
    ecn_heard = was;
    if (reduces) {ecn_heard.reduced, ecn_heard.tells} = '1;
    else if (meaning.is_new && reaches_recover) ecn_heard.reduced = 1'b0;
    if (meaning.has_window)
      ecn_heard.echoes = was.agreed && (segment.marked || (was.echoes && !cwr));
    if (meaning.opens) begin
      ecn_heard = '0;
      ecn_heard.agreed = asks && ece && !cwr;
    end
  end

  logic unused;
  assign unused = &{1'b0, flags, found, segment, meaning};
endmodule
`default_nettype wire
