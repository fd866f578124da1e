// SPDX-License-Identifier: Apache-2.0
//
// Changes of the state by a check of a stream (no state; RFC 9293 3.8, 3.10).
//
//                     +-------------+
//   flags, found ====>|             |====> changes
//   ecn_sent ========>| tcp_on_look |
//   under_way ------->|             |
//                     +-------------+
//
// `fresh`: the first connection of the stream begins; `timer_runs`: of the stream.
`default_nettype none
module tcp_on_look #(
    parameter int STREAMS = 1
) (
    input tcp_pkg::flags_t flags,
    input tcp_pkg::look_t found,
    input tcp_pkg::ecn_t ecn_sent,
    input logic sends,  // data
    input logic ends,  // with all that there is of it
    input logic fresh,
    input logic under_way,  // something is
    input logic timer_runs,
    output tcp_pkg::changes_t changes
);
  always_comb begin
    changes = '0;
    changes.flags = flags;
    changes.flags.ecn = ecn_sent;
    case (found.kind)
      tcp_pkg::A_SYN: changes.flags.syn_due = 1'b0;
      tcp_pkg::A_RST: begin
        changes.flags.rst_due = 1'b0;
        // At once, but once: the next SYN is the timer's.
        if (flags.backoff == '0) begin
          changes.flags.syn_due = 1'b1;
          changes.flags.backoff = 4'd1;
        end
      end
      tcp_pkg::NOTHING: ;
      default: changes.flags.ack_due = 1'b0;
    endcase
    if (found.kind == tcp_pkg::A_FIN) changes.flags.fin_due = 1'b0;
    if (found.kind == tcp_pkg::AGAIN) begin
      if (found.is_hole) changes.flags.mends = flags.mends - 4'd1;
      else changes.flags.resend = 1'b0;
    end
    changes.moves_hole = found.kind == tcp_pkg::AGAIN && found.is_hole && !ends;
    changes.drops_hole = found.drops_hole || (found.kind == tcp_pkg::AGAIN && found.is_hole && ends);
    changes.happens[tcp_pkg::EVENT_SENT] = sends;
    changes.happens[tcp_pkg::EVENT_PROBE] = found.kind == tcp_pkg::KEEPALIVE;
    changes.happens[tcp_pkg::EVENT_RETRANSMITTED] = found.kind == tcp_pkg::AGAIN || (found.kind == tcp_pkg::DATA && found.is_behind);
    if (found.kind == tcp_pkg::DATA) begin
      changes.nxt = 1'b1;
      changes.sent = !found.is_behind;
      {changes.flags.force_one, changes.flags.persists, changes.flags.pauses} = '0;
      if (!found.is_behind && !flags.timing) begin
        changes.flags.timing = 1'b1;
        {changes.timed, changes.timed_at} = '1;
      end
    end
    changes.sets = found.kind == tcp_pkg::A_FIN || (sends && !under_way)
          || ((sends || found.kind == tcp_pkg::A_SYN || found.kind == tcp_pkg::A_RST) && !timer_runs);
    if (flags.state == tcp_pkg::OPEN && found.kind == tcp_pkg::NOTHING) begin
      changes.flags.bounded = found.held;
      if (found.held) {changes.flags.halted, changes.flags.pauses} = {1'b1, STREAMS <= 4};
    end
    // For data that the window holds back.
    if (flags.state == tcp_pkg::OPEN && found.kind == tcp_pkg::NOTHING && found.waits && !under_way && !flags.force_one
          && !(flags.persists && timer_runs)) begin
      changes.flags.persists = 1'b1;
      changes.sets = 1'b1;
    end
    if (found.ceases) begin
      changes.flags.state = tcp_pkg::IDLE;
      changes.stops = 1'b1;
    end
    if (found.lost) begin
      changes.happens[tcp_pkg::EVENT_RESET] = 1'b1;
      changes.fails = 1'b1;
    end
    if (found.drained) begin
      changes.flags.state   = tcp_pkg::FIN_SENT;
      changes.flags.fin_due = 1'b1;
    end
    if (found.connects) begin
      changes.flags = '0;
      changes.flags.started = flags.started;
      if (found.wanted) begin
        changes.flags.state   = tcp_pkg::SYN_SENT;
        changes.flags.syn_due = 1'b1;
      end
      {changes.nxt, changes.sent} = '1;
      changes.una = fresh;
      changes.rtt = tcp_pkg::RTT_CLEAR;
    end
  end
  logic unused;
  assign unused = &{1'b0, flags, found};
endmodule
`default_nettype wire
