// SPDX-License-Identifier: Apache-2.0
//
// Changes of the state by a timer (no state; RFC 6298 section 5, 6582, 9293 3.8.6.1).
//
//                       +--------------+
//   flags ============> |              |====> changes
//   expired ----------->| tcp_on_timer |
//   repairs, strikes -->|              |
//                       +--------------+
//
// `repairs`: in a recovery the first segment is repeated; `strikes`: data is repeated from the first word on, or a window
// is probed.
`default_nettype none
module tcp_on_timer (
    input tcp_pkg::flags_t flags,
    input logic expired,  // nothing has set it since
    input logic repairs,
    input logic strikes,
    input logic under_way,  // something is
    input logic shut,  // the window
    output tcp_pkg::changes_t changes
);
  always_comb begin
    changes = '0;
    changes.flags = flags;
    if (repairs) begin
      {changes.flags.resend, changes.flags.repaired, changes.sets} = '1;
    end else if (expired) begin
      changes.stops = 1'b1;
      if (strikes || (flags.state != tcp_pkg::BROKEN && flags.state != tcp_pkg::OPEN)) begin
        if (flags.backoff != '1) changes.flags.backoff = flags.backoff + 4'd1;
        changes.forgets = flags.backoff >= 4'd3 && flags.backoff[0];
        changes.rtt = tcp_pkg::RTT_DOUBLE;
      end
      case (flags.state)
        tcp_pkg::SYN_SENT: changes.flags.syn_due = 1'b1;
        tcp_pkg::OPEN: if (!strikes) changes.congestion = tcp_pkg::CONGESTION_RESTED;
        tcp_pkg::FIN_SENT: changes.flags.fin_due = 1'b1;
        tcp_pkg::FIN_CONFIRMED: changes.flags.state = tcp_pkg::IDLE;
        tcp_pkg::BROKEN: changes.flags.retry_due = 1'b1;
        default: ;
      endcase
    end
    if (strikes) begin
      {changes.nxt, changes.recover} = '1;
      changes.flags.force_one = 1'b1;
      {changes.flags.recovering, changes.flags.resend, changes.flags.mends, changes.flags.timing, changes.flags.persists} = '0;
      changes.flags.rewound = under_way;
      {changes.flags.ecn.reduced, changes.flags.ecn.tells} = {
        1'b0, flags.ecn.tells || (under_way && !shut)
      };
      changes.flags.duplicates = '0;
      changes.happens[tcp_pkg::EVENT_TIMEOUT] = under_way && !shut;
      changes.happens[tcp_pkg::EVENT_PROBE] = !under_way || shut;
      if (under_way && !shut)
        changes.congestion = flags.rewound ? tcp_pkg::CONGESTION_TIMED_OUT_AGAIN : tcp_pkg::CONGESTION_TIMED_OUT;
    end
  end
  logic unused;
  assign unused = &{1'b0, flags};
endmodule
`default_nettype wire
