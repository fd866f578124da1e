// SPDX-License-Identifier: Apache-2.0
//
// The state of the streams for tcp_engine (transmit clock).
//
//                +------------+
//   stream =====>|            |====> flags, una, nxt ... (of the stream, at once)
//   *_next =====>| tcp_fields |
//   write_* ---->|            |
//                +------------+
//
// Positions are words after una; `placed` is written to the selected ones.
`default_nettype none
module tcp_fields #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,  // a socket buffer is 2^BITS words
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                                      clk,
    input  logic            [        STREAM_BITS-1:0] stream,
    input  logic                                      write_flags,
    input  tcp_pkg::flags_t                           flags_next,
    output tcp_pkg::flags_t                           flags,
    // number of the first word that was not confirmed; the peer's next one
    input  logic                                      write_una,
    input  logic            [                   28:0] una_next,
    output logic            [                   28:0] una,
    input  logic                                      write_peer_next,
    input  logic            [                   31:0] peer_next_next,
    output logic            [                   31:0] peer_next,
    // the next word to send, what was sent, where a recovery ends, what is timed
    input  logic            [                 BITS:0] placed,
    input  logic                                      write_nxt,
    input  logic            [                 BITS:0] nxt_next,
    output logic            [                 BITS:0] nxt,
    input  logic                                      write_sent,
    output logic            [                 BITS:0] sent,
    input  logic                                      write_recover,
    output logic            [                 BITS:0] recover,
    input  logic                                      write_timed,
    output logic            [                 BITS:0] timed,
    input  logic                                      write_timed_at,
    input  logic            [                   23:0] now,
    output logic            [                   23:0] timed_at,
    // window, in words and as the last segment had it; the largest that there was
    input  logic                                      write_window,
    input  logic            [                 BITS:0] told_next,
    input  logic            [                   15:0] raw_window_next,
    output logic            [                 BITS:0] told,
    output logic            [                   15:0] raw_window,
    input  logic                                      write_best,
    output logic            [                 BITS:0] best,
    // words of a segment; scale of the window
    input  logic                                      write_limit,
    input  logic            [tcp_pkg::WORDS_BITS-1:0] limit_next,
    input  logic            [                    3:0] scale_next,
    output logic            [tcp_pkg::WORDS_BITS-1:0] limit,
    output logic            [                    3:0] scale
);
  tcp_context #(
      .WIDTH  (tcp_pkg::FLAGS_BITS),
      .STREAMS(STREAMS)
  ) flags_context (
      .write(write_flags),
      .d    (flags_next),
      .q    (flags),
      .*
  );
  tcp_context #(
      .WIDTH  (29),
      .STREAMS(STREAMS)
  ) una_context (
      .write(write_una),
      .d    (una_next),
      .q    (una),
      .*
  );
  tcp_context #(
      .WIDTH  (32),
      .STREAMS(STREAMS)
  ) peer_next_context (
      .write(write_peer_next),
      .d    (peer_next_next),
      .q    (peer_next),
      .*
  );
  tcp_context #(
      .WIDTH  (BITS + 1),
      .STREAMS(STREAMS)
  ) nxt_context (
      .write(write_nxt),
      .d    (nxt_next),
      .q    (nxt),
      .*
  );
  tcp_context #(
      .WIDTH  (BITS + 1),
      .STREAMS(STREAMS)
  ) sent_context (
      .write(write_sent),
      .d    (placed),
      .q    (sent),
      .*
  );
  tcp_context #(
      .WIDTH  (BITS + 1),
      .STREAMS(STREAMS)
  ) recover_context (
      .write(write_recover),
      .d    (placed),
      .q    (recover),
      .*
  );
  tcp_context #(
      .WIDTH  (BITS + 1),
      .STREAMS(STREAMS)
  ) timed_context (
      .write(write_timed),
      .d    (placed),
      .q    (timed),
      .*
  );
  tcp_context #(
      .WIDTH  (24),
      .STREAMS(STREAMS)
  ) timed_at_context (
      .write(write_timed_at),
      .d    (now),
      .q    (timed_at),
      .*
  );
  tcp_context #(
      .WIDTH  (BITS + 17),
      .STREAMS(STREAMS)
  ) window_context (
      .write(write_window),
      .d    ({told_next, raw_window_next}),
      .q    ({told, raw_window}),
      .*
  );
  tcp_context #(
      .WIDTH  (BITS + 1),
      .STREAMS(STREAMS)
  ) best_context (
      .write(write_best),
      .d    (told_next),
      .q    (best),
      .*
  );
  tcp_context #(
      .WIDTH  (tcp_pkg::WORDS_BITS + 4),
      .STREAMS(STREAMS)
  ) limit_context (
      .write(write_limit),
      .d    ({limit_next, scale_next}),
      .q    ({limit, scale}),
      .*
  );
endmodule
`default_nettype wire
