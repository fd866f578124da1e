// SPDX-License-Identifier: Apache-2.0
//
// TCP engine: clients that open their connections, send, and close them (transmit clock; RFC 9293, 5681, 6298, 6582, 7323).
//
//                  +------------+
//   enable[] ----->|            |====> request_* (the segment to send next)
//   segment_* ====>| tcp_engine |<---- request_near, request_take
//   head[] =======>|            |----> accept[], running[], confirm[] (socket buffers)
//   path --------->|            |----> forget_path, events
//                  +------------+
//
// One engine serves all streams, one event at a time: a segment from the peer, a timer, or a check of a stream for the next
// segment to send. The state of the streams is in memories (tcp_context); an event reads and writes only that of its
// stream, and the next one begins when it has ended: docs/protocol/tcp_sender.md has the table of both.
//
// Sequence numbers are chosen so that the number of a data byte is its position in the socket buffer: the buffer holds
// words, and word w of the stream has the numbers 8w .. 8w+7. A new connection begins with the first word that was not
// confirmed, so after a broken connection (RST) the stream continues without a gap. Each attempt uses another local port,
// so that old segments belong to no connection. All positions except `una` are words after it.
//
// A peer that answers the SYN with the number of another connection still holds one that this board has forgotten, for
// example after a reset. The engine sends a RST, and the SYN again (RFC 9293 3.5.1 and 3.10.7.3).
//
// A peer that closes its direction asks for the end: no more words are accepted (`accept` is low), the accepted ones are
// sent and confirmed, and the connection is closed: `running` is low. While `enable` stays high, the next connection is
// opened then. A killed receiver closes its direction, too, but answers data with RST: then the stream continues.
//
// Recovery: three duplicate ACKs repeat the first segment, partial ACKs the next hole (RFC 6582); the first two duplicates
// send a new segment (RFC 3042). After two round trips without a new ACK the first segment is repeated again. A time-out
// goes back to the first unconfirmed word and doubles the time-out. With CONGESTION the congestion window (tcp_congestion)
// limits the data under way, otherwise only the window of the receiver.
`default_nettype none
module tcp_engine #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,  // a socket buffer is 2^BITS words
    parameter int CONGESTION = 1,
    parameter int SACK = 0,
    parameter int TIMEOUT_MIN = 200_000,  // microseconds
    parameter int TIMEOUT_INIT = 1_000_000,
    parameter int TIMEOUT_MAX = 8_000_000,
    parameter int RETRY = 1_000_000,  // from a connection that broke to the next attempt
    parameter int KEEPALIVE = 0,  // milliseconds, 0: none; see tcp_keepalive
    parameter int KEEPALIVE_INTERVAL = 75_000,
    parameter int KEEPALIVE_PROBES = 9,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input logic clk,
    input logic rst,
    input logic tick,  // each microsecond
    input logic [STREAMS-1:0] enable,
    input logic path,  // the address of the next hop is known
    output logic forget_path,
    input logic [31:0] first_sequence,  // of the first data byte, a multiple of twice the buffer
    input logic [tcp_pkg::WORDS_BITS-1:0] mtu_words,  // the most words of a segment
    input logic ecn,  // see tcp_ecn
    input logic sack,  // see tcp_sack
    // socket buffers
    output logic [STREAMS-1:0] accept,
    output logic [STREAMS-1:0] running,
    input logic [STREAMS-1:0] accepting,
    input logic [STREAMS-1:0][BITS:0] head,
    input logic [STREAMS-1:0] moved,  // the head
    input logic push,  // data waits for the end of its block, or for a full segment
    input logic [STREAMS-1:0] mark_valid,  // the end of a block, the first that was not sent
    input logic [STREAMS-1:0][BITS:0] mark,
    output logic [STREAMS-1:0] mark_take,
    output logic [STREAMS-1:0] confirm,
    output logic [BITS:0] confirmed,
    // segments from the peer
    input logic segment_valid,
    input logic [STREAM_BITS-1:0] segment_stream,
    input tcp_pkg::segment_t segment,
    input logic [15:0] segment_length,
    output logic segment_take,
    // segment to send
    output logic request_valid,
    output logic [STREAM_BITS-1:0] request_stream,
    output tcp_pkg::request_t request,  // a SYN has a word of options
    input logic request_near,  // it is taken in a few clocks
    input logic request_take,
    // for the display, and pulses
    output logic [STREAMS-1:0][3:0] attempt,
    output logic [STREAMS-1:0] connected,
    output logic [STREAMS-1:0] active,
    output logic [22:0] timeout,  // of stream 0, microseconds
    output logic [BITS:0] window,  // of stream 0, words
    output logic [STREAM_BITS-1:0] event_stream,
    output logic [tcp_pkg::EVENTS-1:0] events
);
  localparam int WORDS_BITS = tcp_pkg::WORDS_BITS;
  localparam int P = BITS + 1;  // bits of a place in the buffer, and of a distance there
  localparam logic [WORDS_BITS-1:0] LEAST = 8;  // words of a full segment, whatever the peer says

  logic [tcp_pkg::STEPS-1:0] step;
  // ---- state of the streams ------------------------------------------------------------------
  logic [STREAM_BITS-1:0] stream;  // of the event
  tcp_pkg::flags_t flags, flags_next;
  logic [28:0] una, number;  // una: number of the first word that was not confirmed
  logic [31:0] peer_next, peer_next_next;
  logic [P-1:0] nxt, nxt_next, sent, recover, timed, placed;  // nxt: the next word to send
  logic [P-1:0] told, told_next, best;  // window; the largest that there was
  logic [15:0] raw_window;  // as the last segment had it
  logic [WORDS_BITS-1:0] limit, limit_next;  // of a segment
  logic [3:0] scale;
  logic [23:0] timed_at, now;
  logic write_flags, write_una, write_peer_next, write_nxt, write_sent, write_recover, write_timed;
  logic write_timed_at, write_window, write_best, write_limit, una_due, pending;

  tcp_fields #(
      .STREAMS(STREAMS),
      .BITS   (BITS)
  ) fields (
      .write_una      (una_due),
      .una_next       (number),
      .raw_window_next(segment.window),
      .scale_next     (segment.scale),
      .*
  );

  // ---- time, congestion window ---------------------------------------------------------------
  logic slower, sets, stops, heard, probed, timer_runs, rtt_busy, congestion_busy;
  logic [22:0] wait_time;
  tcp_pkg::span_t span;
  logic [STREAMS-1:0] due, keepalive_due, keepalive_lost;
  tcp_pkg::rtt_op rtt, rtt_due;
  tcp_pkg::congestion_op congestion, congestion_due;
  logic [P-1:0] congestion_window, fitting, confirms;  // words to send; words of an ACK

  tcp_timeouts #(
      .STREAMS(STREAMS),
      .MINIMUM(TIMEOUT_MIN),
      .INITIAL(TIMEOUT_INIT),
      .MAXIMUM(TIMEOUT_MAX),
      .RETRY(RETRY),
      .KEEPALIVE(KEEPALIVE),
      .KEEPALIVE_INTERVAL(KEEPALIVE_INTERVAL),
      .KEEPALIVE_PROBES(KEEPALIVE_PROBES)
  ) timeouts (
      .set    (sets),
      .stop   (stops),
      .op     (rtt_due),
      .begun  (timed_at),
      .busy   (rtt_busy),
      .timeout(wait_time),
      .runs   (timer_runs),
      .*
  );
  always_ff @(posedge clk) begin
    rtt_due <= rst ? tcp_pkg::RTT_NOTHING : rtt;
    congestion_due <= rst ? tcp_pkg::CONGESTION_NOTHING : congestion;
  end
  if (CONGESTION != 0) begin : g_congestion
    tcp_congestion #(
        .STREAMS(STREAMS),
        .BITS   (BITS)
    ) congestion_control (
        .op    (congestion_due),
        .amount(confirms),
        .flight(sent),
        .busy  (congestion_busy),
        .window(congestion_window),
        .*
    );
  end else begin : g_no_congestion
    assign {congestion_busy, congestion_window} = {2'b01, BITS'(0)};
    logic unused;
    assign unused = &{1'b0, congestion_due};
  end
  if (STREAMS == 1) begin : g_display
    assign {timeout, window} = {wait_time, told};
  end else begin : g_display_of_one
    always_ff @(posedge clk) if (stream == '0 && !rtt_busy) {timeout, window} <= {wait_time, told};
  end

  tcp_pkg::changes_t of_look, of_segment, of_timer, changes;

  // ---- events --------------------------------------------------------------------------------
  tcp_pkg::look_t found;
  logic
      may_pick,
      is_timed,
      is_free,
      settled,
      applies_segment,
      applies_timer,
      again,
      recovers,
      under_way,
      shut,
      expired,
      repairs,
      strikes;
  assign recovers = flags.recovering || flags.rewound || flags.ecn.reduced;
  // No event begins before the last one's congestion window is there, or ends before its round trip is.
  always_ff @(posedge clk) begin
    may_pick <= !rst && !step[tcp_pkg::SEGMENT_APPLY] && !step[tcp_pkg::TIMER_APPLY]
        && congestion_due == tcp_pkg::CONGESTION_NOTHING && !congestion_busy;
    una_due <= !rst && write_una;
    is_timed <= !rst && rtt_due == tcp_pkg::RTT_NOTHING && !rtt_busy;
    is_free <= !rst && (!pending || request_take);
  end
  assign settled = is_timed && (!step[tcp_pkg::LOOK_APPLY] || is_free);
  assign again = !step[tcp_pkg::LOOK_APPLY] || found.kind != tcp_pkg::NOTHING || found.drained || found.connects || found.drops_mark || found.drops_hole;
  assign applies_segment = step[tcp_pkg::SEGMENT_APPLY] && is_timed;
  assign applies_timer = step[tcp_pkg::TIMER_APPLY] && is_timed;
  assign segment_take = applies_segment;
  tcp_schedule #(
      .STREAMS(STREAMS)
  ) schedule (
      .may_look(!pending || request_near),
      .*
  );

  // ---- a look --------------------------------------------------------------------------------
  logic ends, fresh, sends, applies_look, reaches_recover, reaches_timed;
  assign applies_look = step[tcp_pkg::LOOK_APPLY] && is_timed && is_free;
  logic hole_valid;
  logic [P-1:0] hole_place, hole_end;
  assign sends = found.kind == tcp_pkg::DATA || found.kind == tcp_pkg::AGAIN;
  tcp_look #(
      .BITS(BITS)
  ) look_at (
      .begins        (step[tcp_pkg::LOOK]),
      .enable        (enable[stream]),
      .accept        (accept[stream]),
      .accepting     (accepting[stream]),
      .head          (head[stream]),
      .mark_valid    (mark_valid[stream]),
      .mark          (mark[stream]),
      .keepalive_due (keepalive_due[stream]),
      .keepalive_lost(keepalive_lost[stream]),
      .una           (una[P-1:0]),
      .*
  );
  assign fresh  = found.connects && !flags.started;
  assign probed = applies_look && found.kind == tcp_pkg::KEEPALIVE;

  logic [1:0] ecn_flags;
  logic takes_marks, echoed, reduces;
  tcp_pkg::ecn_t ecn_sent, ecn_heard;
  tcp_request #(
      .STREAMS(STREAMS),
      .BITS   (BITS)
  ) to_send (
      .applies(applies_look),
      .is_open(flags.state == tcp_pkg::OPEN),
      .*
  );

  // ---- a segment -----------------------------------------------------------------------------
  tcp_pkg::meaning_t meaning;
  tcp_segment #(
      .BITS(BITS)
  ) reading (
      .begins   (step[tcp_pkg::SEGMENT]),
      .judges   (step[tcp_pkg::SEGMENT_JUDGE]),
      .length   (segment_length),
      .under_way(under_way),
      .beyond   (sent < confirms),
      .at_end   (sent == confirms),
      .told     (told_next),
      .*
  );
  tcp_ecn marks (.*);
  assign heard = segment_take && (meaning.has_window || meaning.opens);
  always_ff @(posedge clk) begin
    under_way <= sent != '0;
    shut <= told == '0;
    expired <= due[stream];  // it may have been set since it was chosen
    repairs <= due[stream] && flags.state == tcp_pkg::OPEN && flags.recovering && !flags.repaired;
    strikes <= due[stream] && flags.state == tcp_pkg::OPEN && (flags.recovering ? flags.repaired : sent != '0 || flags.persists);
  end

  if (SACK != 0) begin : g_sack
    tcp_sack #(
        .STREAMS(STREAMS),
        .BITS   (BITS)
    ) holes (
        .clears(changes.clears_holes),
        .adds  (changes.adds_hole),
        .moves (changes.moves_hole),
        .drops (changes.drops_hole),
        .*
    );
  end else begin : g_no_sack
    assign {hole_valid, hole_place, hole_end} = '0;
    logic unused;
    assign unused = &{1'b0, changes};
  end

  // ---- places and numbers --------------------------------------------------------------------
  tcp_places #(.BITS(BITS)) places (.*);

  // ---- what changes --------------------------------------------------------------------------
  tcp_on_look #(
      .STREAMS(STREAMS)
  ) on_look (
      .changes(of_look),
      .*
  );
  tcp_on_segment on_segment (
      .changes(of_segment),
      .*
  );
  tcp_on_timer on_timer (
      .changes(of_timer),
      .*
  );
  always_comb begin
    changes = (applies_look ? of_look : '0) | (applies_segment ? of_segment : '0) | (applies_timer ? of_timer : '0);
    flags_next = changes.flags;
    // The connection is opened again later.
    if (changes.fails) begin
      flags_next.state = tcp_pkg::BROKEN;
      flags_next.retry_due = 1'b0;
    end
    write_flags = step[tcp_pkg::WIPE] || applies_look || applies_segment || applies_timer;
  end
  // Writes of the steps before the last do not wait.
  assign write_recover = changes.recover || (step[tcp_pkg::SEGMENT_RECOVER] && meaning.is_new);
  assign write_timed = changes.timed || (step[tcp_pkg::SEGMENT_TIMED] && meaning.is_new);
  assign write_nxt = changes.nxt || (step[tcp_pkg::SEGMENT_NEXT] && meaning.is_new);
  assign {write_una, write_peer_next, write_sent, write_timed_at} = {
    changes.una, changes.peer_next, changes.sent, changes.timed_at
  };
  assign {write_window, write_best, write_limit} = {changes.window, changes.best, changes.limit};
  assign limit_next = segment.mss < LEAST ? LEAST : segment.mss < mtu_words ? segment.mss : mtu_words;
  assign sets = changes.sets || changes.fails;
  assign stops = changes.stops;
  assign span = changes.fails ? tcp_pkg::UNTIL_RETRY : changes.span;
  assign rtt = changes.rtt;
  assign congestion = changes.congestion;

  always_ff @(posedge clk) begin
    mark_take <= '0;
    mark_take[stream] <= applies_look && (found.drops_mark || (found.takes_mark && found.kind == tcp_pkg::DATA && ends));
    confirm <= '0;
    confirm[stream] <= una_due;
    confirmed <= number[P-1:0];
    event_stream <= stream;
    events <= changes.happens;
    forget_path <= changes.forgets;
    if (rst) begin
      mark_take <= '0;
      confirm <= '0;
      events <= '0;
      forget_path <= 1'b0;
    end
  end

  tcp_gate #(
      .STREAMS(STREAMS)
  ) gate (
      .write(write_flags),
      .flags(flags_next),
      .again(applies_look && found.connects && (flags.started || flags.state == tcp_pkg::BROKEN)),
      .*
  );
endmodule
`default_nettype wire
