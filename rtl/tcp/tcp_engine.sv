// SPDX-License-Identifier: Apache-2.0
//
// TCP engine: clients that open their connections, send, and close them (transmit clock; RFC 9293, 5681, 6298, 6582, 7323).
//
//                  +------------+
//   enable[] ----->|            |====> request_* (the segment to send next)
//   segment_* ====>| tcp_engine |<---- request_take
//   head[] =======>|            |----> accept[], running[], confirm[] (socket buffers)
//   path --------->|            |----> forget_path, events
//                  +------------+
//
// One engine serves all streams, one event at a time: a segment that came, a timer that ran out, or a look at a stream for
// what is to be sent next. The state of the streams is in memories (tcp_context); an event reads and writes those of its
// stream only, and the next one begins when it has ended: docs/protocol/tcp_sender.md has the table of both.
//
// Sequence numbers are chosen so that the number of a data byte is its place in the socket buffer: the buffer holds words,
// and word w of the stream has the numbers 8w .. 8w+7. A new connection begins with the first word that was not confirmed,
// so a connection that broke (RST) goes on in the next one without a gap. Each attempt uses another local port, so that old
// segments belong to nobody. All places but `una` are words after it.
//
// A peer that answers the SYN with the number of another connection still holds one that this board has
// forgotten, as after its reset: it is told so by a RST, and asked again (RFC 9293 3.5.1 and 3.10.7.3).
//
// A peer that closes its direction asks for the end: no more data is taken (`accept` is low), what was taken is sent
// and confirmed, and the connection is closed: `running` is low. While `enable` stays, the next one is opened then. A
// receiver that was killed closes its direction, too, but answers what comes with RST: then the stream goes on.
//
// Recovery: three duplicate ACKs send the first segment again, partial ACKs the next hole (RFC 6582), the first two a
// segment that was not sent yet (RFC 3042); a time-out goes back to the first unconfirmed word and doubles the time-out.
// With CONGESTION the congestion window bounds what is under way (tcp_congestion), else the receiver's window alone.
`default_nettype none
module tcp_engine #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,  // a socket buffer is 2^BITS words
    parameter int CONGESTION = 1,
    parameter int TIMEOUT_MIN = 200_000,  // microseconds
    parameter int TIMEOUT_INIT = 1_000_000,
    parameter int TIMEOUT_MAX = 8_000_000,
    parameter int RETRY = 1_000_000,  // from a connection that broke to the next attempt
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
  localparam logic [P-1:0] BUFFER = {1'b1, BITS'(0)};

  typedef enum logic [2:0] {
    IDLE,
    SYN_SENT,
    OPEN,
    FIN_SENT,
    FIN_CONFIRMED,  // until the peer has closed, too
    BROKEN  // until the next attempt
  } state_t;
  typedef struct packed {
    state_t state;
    logic started;  // una holds the place in the stream
    logic ack_due;
    logic syn_due;
    logic rst_due;
    logic fin_due;
    logic retry_due;
    logic resend;  // the first segment
    logic recovering;  // RFC 6582
    logic rewound;  // by a time-out, until what was under way is confirmed
    logic force_one;  // a word goes whatever the window is
    logic timing;  // a round trip
    logic persists;  // the timer is for the window to open
    logic peer_closed;
    logic bounded;  // by the congestion window: only then it opens (RFC 7661)
    logic [1:0] duplicates;
    logic [3:0] backoff;
  } flags_t;
  localparam int FLAGS_BITS = 3 + 14 + 2 + 4;

  typedef enum logic [4:0] {
    WIPE,
    PICK,
    LOOK_SPACE,
    LOOK_BOUND,
    LOOK_ROOM,
    LOOK_COMPARE,
    LOOK_FIT,
    LOOK_DECIDE,
    SEGMENT_PLACE,
    SEGMENT_RANGE,
    SEGMENT_JUDGE,
    SEGMENT_RECOVER,  // each place after una, one after another
    SEGMENT_TIMED,
    SEGMENT_NEXT,
    SEGMENT_APPLY,
    TIMER_APPLY,
    SETTLE
  } step_t;
  step_t step;

  // ---- state of the streams ------------------------------------------------------------------
  logic [STREAM_BITS-1:0] stream;  // of the event
  flags_t flags, flags_next;
  logic [28:0] una, una_next;  // number of the first word that was not confirmed
  logic [31:0] peer_next, peer_next_next;
  logic [P-1:0] nxt, nxt_next, sent, sent_next;  // the next word to send; what was sent
  logic [P-1:0] recover, recover_next, timed, timed_next;
  logic [P-1:0] told, told_next, best;  // window; the largest that there was
  logic [15:0] raw_window;  // as the last segment had it
  logic [WORDS_BITS-1:0] limit, limit_next;  // of a segment
  logic [3:0] scale;
  logic [23:0] timed_at, now;
  logic write_flags, write_una, write_peer_next, write_nxt, write_sent, write_recover, write_timed;
  logic write_timed_at, write_window, write_best, write_limit;

  tcp_context #(
      .WIDTH  (FLAGS_BITS),
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
      .WIDTH  (P),
      .STREAMS(STREAMS)
  ) nxt_context (
      .write(write_nxt),
      .d    (nxt_next),
      .q    (nxt),
      .*
  );
  tcp_context #(
      .WIDTH  (P),
      .STREAMS(STREAMS)
  ) sent_context (
      .write(write_sent),
      .d    (sent_next),
      .q    (sent),
      .*
  );
  tcp_context #(
      .WIDTH  (P),
      .STREAMS(STREAMS)
  ) recover_context (
      .write(write_recover),
      .d    (recover_next),
      .q    (recover),
      .*
  );
  tcp_context #(
      .WIDTH  (P),
      .STREAMS(STREAMS)
  ) timed_context (
      .write(write_timed),
      .d    (timed_next),
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
      .WIDTH  (P + 16),
      .STREAMS(STREAMS)
  ) window_context (
      .write(write_window),
      .d    ({told_next, segment.window}),
      .q    ({told, raw_window}),
      .*
  );
  tcp_context #(
      .WIDTH  (P),
      .STREAMS(STREAMS)
  ) best_context (
      .write(write_best),
      .d    (told_next),
      .q    (best),
      .*
  );
  tcp_context #(
      .WIDTH  (WORDS_BITS + 4),
      .STREAMS(STREAMS)
  ) limit_context (
      .write(write_limit),
      .d    ({limit_next, step == SEGMENT_APPLY ? segment.scale : 4'd0}),
      .q    ({limit, scale}),
      .*
  );

  // ---- timer, time-out, congestion window ----------------------------------------------------
  logic timer_set, timer_stop, sets, stops, timer_runs, rtt_busy, congestion_busy, is_settled;
  logic [22:0] interval, wait_time;
  typedef enum logic [1:0] {
    WAIT,  // the retransmission time-out
    TWICE,
    LONGEST,
    UNTIL_RETRY
  } span_t;
  span_t span, timer_span;
  logic [STREAMS-1:0] due;
  tcp_pkg::rtt_op rtt;
  tcp_pkg::congestion_op congestion;
  logic [P-1:0] congestion_window;

  tcp_timer #(
      .STREAMS(STREAMS)
  ) timer (
      .set (timer_set),
      .stop(timer_stop),
      .runs(timer_runs),
      .*
  );
  // A clock later, in which `stream` stays.
  always_ff @(posedge clk) begin
    {timer_set, timer_stop} <= rst ? '0 : {sets, stops};
    timer_span <= span;
  end
  always_comb begin
    case (timer_span)
      TWICE: interval = {wait_time[21:0], 1'b0};
      LONGEST: interval = 23'(TIMEOUT_MAX);
      UNTIL_RETRY: interval = 23'(RETRY);
      default: interval = wait_time;
    endcase
  end

  tcp_rtt #(
      .STREAMS(STREAMS),
      .MINIMUM(TIMEOUT_MIN),
      .INITIAL(TIMEOUT_INIT),
      .MAXIMUM(TIMEOUT_MAX)
  ) round_trip (
      .op   (rtt),
      .begun(timed_at),
      .busy (rtt_busy),
      .timeout(wait_time),
      .*
  );
  logic [P-1:0] confirms;  // words that an ACK confirms
  if (CONGESTION != 0) begin : g_congestion
    tcp_congestion #(
        .STREAMS(STREAMS),
        .BITS   (BITS)
    ) congestion_control (
        .op    (congestion),
        .amount(confirms),
        .flight(sent),
        .busy  (congestion_busy),
        .window(congestion_window),
        .*
    );
  end else begin : g_no_congestion
    assign congestion_busy   = 1'b0;
    assign congestion_window = BUFFER;
    logic unused;
    assign unused = &{1'b0, congestion};
  end
  assign is_settled = !rtt_busy && !congestion_busy;
  if (STREAMS == 1) begin : g_display
    assign {timeout, window} = {wait_time, told};
  end else begin : g_display_of_one
    always_ff @(posedge clk) if (stream == '0) {timeout, window} <= {wait_time, told};
  end

  // ---- which event is next -------------------------------------------------------------------
  logic [STREAMS-1:0] look, chosen, last;  // streams to look at
  logic [STREAM_BITS-1:0] chosen_index, due_index, tour;
  logic may_look, looks_first;  // a look after each segment
  assign chosen   = STREAMS'(link_pkg::turn(link_pkg::TURNS'(look), link_pkg::TURNS'(last)));
  assign may_look = look != '0 && !request_valid;
  always_comb begin
    chosen_index = '0;
    for (int i = 0; i < STREAMS; i++) if (chosen[i]) chosen_index |= STREAM_BITS'(i);
    due_index = '0;
    for (int i = 0; i < STREAMS; i++) if (due[i]) due_index = STREAM_BITS'(i);
  end

  // ---- a look: what can be sent --------------------------------------------------------------
  logic [P-1:0] from_head, from_mark, unsent, fitting;
  logic [P:0] space, room;
  logic marked, still, is_again, is_behind, by_window, more;
  logic unsent_over, room_over, room_short, room_none, is_silly, is_stale, whole, full;
  logic [1:0] extra;  // segments beyond the congestion window (RFC 3042)
  assign extra = flags.recovering || flags.rewound ? 2'd0 : flags.duplicates;

  always_ff @(posedge clk) begin
    // LOOK_SPACE. What the user's side changes is taken once.
    if (step == LOOK_SPACE) begin
      from_head <= head[stream] - una[P-1:0];
      from_mark <= mark[stream] - una[P-1:0];
      marked <= mark_valid[stream];
      still <= !accept[stream] && !accepting[stream];
    end
    space <= (P + 1)'(congestion_window) + (extra[1] ? (P + 1)'(limit) << 1 : extra[0] ? (P + 1)'(limit) : '0);
    is_behind <= nxt != sent;
    is_again <= flags.resend;
    // LOOK_BOUND
    by_window <= (P + 1)'(told) <= space;
    // LOOK_ROOM
    unsent <= (is_again || is_behind ? sent : marked ? from_mark : from_head) - (is_again ? '0 : nxt);
    room <= (by_window ? (P + 1)'(told) : space) - (P + 1)'(nxt);
    more <= from_head != nxt;
    // LOOK_COMPARE
    unsent_over <= unsent >= P'(limit);
    room_over <= is_again || (!room[P] && room[P-1:0] >= P'(limit));
    room_short <= !is_again && (room[P] || room[P-1:0] < unsent);
    room_none <= !is_again && (room[P] || room == '0);
    // Silly window (RFC 9293 3.8.6.2.1): less than an eighth of the largest.
    is_silly <= room[P-1:0] < best >> 3;
    is_stale <= unsent == '0 || (unsent[P-1] && unsent[P-2:0] != '0);
    // LOOK_FIT
    whole <= unsent_over ? room_over : !room_short;
    full <= unsent_over && room_over;
    fitting <= room_none ? P'(flags.force_one) : unsent_over && room_over ? P'(limit) : unsent_over || room_short ? room[P-1:0] : unsent;
  end

  // LOOK_DECIDE
  typedef enum logic [2:0] {
    NOTHING,
    A_SYN,
    A_RST,
    PURE_ACK,
    AGAIN,
    DATA,
    A_FIN
  } kind_t;
  kind_t kind;
  logic in_block, partial, under_way, may_send, data_now, ends, connects, drained, waits;
  logic [P-1:0] sent_end;
  logic [ 28:0] number;
  assign under_way = sent != '0;
  assign in_block = marked && !is_behind;
  assign partial = push && !in_block && !still;
  // A segment ends with its block, which then waits for nothing: Nagle is for plain streams. What goes again waits for
  // nothing either. What the window does not hold goes in part, but not in small ones.
  assign may_send = full || (whole && (in_block || flags.rewound || (!under_way && !partial)))
      || (!whole && by_window && !room_none && (!is_silly || flags.rewound));
  assign data_now = more && (may_send || flags.force_one);
  always_comb begin
    kind = NOTHING;
    if (path) begin
      case (flags.state)
        SYN_SENT: kind = flags.rst_due ? A_RST : flags.syn_due ? A_SYN : NOTHING;
        OPEN:
        if (flags.ack_due) kind = PURE_ACK;
        else if (flags.resend) kind = AGAIN;
        else if (data_now && !(in_block && is_stale)) kind = DATA;
        FIN_SENT: kind = flags.ack_due ? PURE_ACK : flags.fin_due ? A_FIN : NOTHING;
        FIN_CONFIRMED: if (flags.ack_due) kind = PURE_ACK;
        default: ;
      endcase
    end
  end
  assign ends = unsent == fitting;
  assign sent_end = nxt + fitting;
  assign waits = more && !may_send && !(partial && whole);
  assign connects = (flags.state == IDLE && enable[stream]) || (flags.state == BROKEN && flags.retry_due);
  assign drained = flags.state == OPEN && from_head == '0 && !under_way && still && kind == NOTHING;

  always_ff @(posedge clk) begin
    if (request_take) request_valid <= 1'b0;
    if (step == LOOK_DECIDE) begin
      request_valid <= kind != NOTHING;
      request_stream <= stream;
      request.sequence_number <= kind == A_RST ? peer_next
          : {number, kind == A_SYN ? 3'd7 : kind == PURE_ACK && flags.state != OPEN ? 3'd1 : 3'd0};
      request.ack <= peer_next;
      request.words <= kind == DATA || kind == AGAIN ? fitting[WORDS_BITS-1:0] : WORDS_BITS'(kind == A_SYN);
      request.flags[tcp_pkg::FIN] <= kind == A_FIN;
      request.flags[tcp_pkg::SYN] <= kind == A_SYN;
      request.flags[tcp_pkg::RST] <= kind == A_RST;
      request.flags[tcp_pkg::PSH] <= kind == DATA && ends;
      request.flags[tcp_pkg::ACK] <= kind != A_SYN && kind != A_RST;
    end
    if (rst) request_valid <= 1'b0;
  end

  // ---- what a segment means ------------------------------------------------------------------
  logic fin, syn, rst_flag, ack_flag, carries, in_order, in_window, is_synced;
  logic [28:0] ack_place;
  logic [31:0] offset;
  logic [ 2:0] odd;
  logic is_old, is_far, is_beyond, is_end, is_una, is_new, is_ahead, is_duplicate, is_fin_acked;
  logic reaches, reaches_recover, reaches_timed, is_wider, advances;
  logic [P-1:0] place;
  logic [P:0] moved_place;  // seen from what is confirmed
  logic [P+2:0] shifted;
  logic shifted_over;
  logic [31:0] shifting;
  logic [P+5:0] shifting_on;
  assign {ack_flag, rst_flag, syn, fin} = {
    segment.flags[tcp_pkg::ACK],
    segment.flags[tcp_pkg::RST],
    segment.flags[tcp_pkg::SYN],
    segment.flags[tcp_pkg::FIN]
  };
  assign carries = segment_length != '0 || fin;
  assign confirms = ack_place[P-1:0];
  assign odd = segment.ack[2:0];
  assign is_synced = flags.state == OPEN || flags.state == FIN_SENT || flags.state == FIN_CONFIRMED;
  assign shifting = {16'd0, segment.window} << {scale[3:2], 2'b00};
  assign shifting_on = (P + 6)'(shifted) << scale[1:0];

  assign advances = is_new && ack_flag && !syn && !rst_flag && is_synced;

  // One subtractor for all places.
  always_comb begin
    case (step)
      SEGMENT_RECOVER: place = recover;
      SEGMENT_TIMED: place = timed;
      SEGMENT_NEXT: place = nxt;
      default: place = sent;
    endcase
  end
  assign moved_place = (P + 1)'(place) - (P + 1)'(confirms);
  assign reaches = moved_place[P] || moved_place == '0;

  always_ff @(posedge clk) begin
    // SEGMENT_PLACE
    if (step == SEGMENT_PLACE) ack_place <= segment.ack[31:3] - una;
    offset <= segment.sequence_number - peer_next;
    shifted <= (P + 3)'(shifting);
    shifted_over <= 32'(shifting >> (P + 2)) != '0;
    // SEGMENT_RANGE
    is_old <= ack_place[28];
    is_far <= ack_place[28:P] != '0;
    is_beyond <= moved_place[P];
    is_end <= moved_place == '0;
    is_una <= ack_place == '0;
    in_order <= offset == '0;
    in_window <= offset < 32'(tcp_pkg::RECEIVE_WINDOW);
    told_next <= shifted_over || shifting_on[P+5:P+2] != '0 ? BUFFER : shifting_on[P+2:3];
    // SEGMENT_JUDGE
    if (step == SEGMENT_JUDGE) begin
      is_new <= !is_far && !is_beyond && !is_una && !(is_end && odd != '0);
      is_ahead <= !is_old && (is_far || is_beyond || (is_end && odd > 3'(flags.state == FIN_SENT || flags.state == FIN_CONFIRMED)));
    end
    is_fin_acked <= flags.state == FIN_SENT && is_una && odd == 3'd1;
    is_duplicate <= is_una && odd == '0 && under_way && !carries && segment.window == raw_window;
    is_wider <= told_next > best;
    // SEGMENT_RECOVER, SEGMENT_TIMED
    if (step == SEGMENT_RECOVER) reaches_recover <= reaches;
    if (step == SEGMENT_TIMED) reaches_timed <= reaches;
  end

  // ---- what changes --------------------------------------------------------------------------
  logic lost, refuses;
  logic [28:0] ahead;  // of una
  assign ahead = step == SEGMENT_APPLY ? 29'(confirms) : kind == A_SYN ? '1
      : kind == DATA || kind == PURE_ACK ? 29'(nxt) : '0;
  assign number = una + ahead;

  logic [tcp_pkg::EVENTS-1:0] happens;

  always_comb begin
    flags_next = flags;
    write_flags = 1'b0;
    {write_una, write_peer_next, write_nxt, write_sent, write_recover, write_timed} = '0;
    {write_timed_at, write_window, write_best, write_limit} = '0;
    una_next = number;
    peer_next_next = segment.sequence_number + 32'(syn ? 16'd0 : segment_length) + 32'(fin || syn);
    nxt_next = '0;
    sent_next = '0;
    recover_next = sent;
    timed_next = sent_end;
    limit_next = segment.mss < LEAST ? LEAST : segment.mss < mtu_words ? segment.mss : mtu_words;
    {sets, stops} = '0;
    span = WAIT;
    rtt = tcp_pkg::RTT_NOTHING;
    congestion = tcp_pkg::CONGESTION_NOTHING;
    happens = '0;
    forget_path = 1'b0;
    {lost, refuses} = '0;

    case (step)
      WIPE: begin
        flags_next  = '0;
        write_flags = 1'b1;
      end

      LOOK_DECIDE: begin
        write_flags = 1'b1;
        case (kind)
          A_SYN:   flags_next.syn_due = 1'b0;
          A_RST: begin
            flags_next.rst_due = 1'b0;
            // At once, but once: the next SYN is the timer's.
            if (flags.backoff == '0) begin
              flags_next.syn_due = 1'b1;
              flags_next.backoff = 4'd1;
            end
          end
          NOTHING: ;
          default: flags_next.ack_due = 1'b0;
        endcase
        if (kind == A_FIN) flags_next.fin_due = 1'b0;
        if (kind == AGAIN) flags_next.resend = 1'b0;
        if (kind == AGAIN || kind == DATA) happens[tcp_pkg::EVENT_SENT] = 1'b1;
        if (kind == AGAIN || (kind == DATA && is_behind))
          happens[tcp_pkg::EVENT_RETRANSMITTED] = 1'b1;
        nxt_next  = sent_end;
        sent_next = sent_end;
        if (kind == DATA) begin
          write_nxt = 1'b1;
          write_sent = !is_behind;
          {flags_next.force_one, flags_next.persists} = '0;
          if (!is_behind && !flags.timing) begin
            flags_next.timing = 1'b1;
            {write_timed, write_timed_at} = '1;
          end
        end
        if (kind == A_FIN || ((kind == DATA || kind == AGAIN) && (!under_way || !timer_runs)) || ((kind == A_SYN || kind == A_RST) && !timer_runs))
          sets = 1'b1;
        if (flags.state == OPEN && kind == NOTHING) flags_next.bounded = more && !by_window;
        // For data that the window holds back.
        if (flags.state == OPEN && kind == NOTHING && waits && !under_way && !flags.force_one && !(flags.persists && timer_runs)) begin
          flags_next.persists = 1'b1;
          sets = 1'b1;
        end
        if (flags.state == SYN_SENT && !enable[stream] && still && (!flags.started || from_head == '0)) begin
          flags_next.state = IDLE;
          stops = 1'b1;
        end
        // All data was sent and confirmed, and no more will come.
        if (drained) begin
          flags_next.state   = FIN_SENT;
          flags_next.fin_due = 1'b1;
        end
        if (connects) begin
          flags_next = '0;
          flags_next.started = flags.started;
          if (flags.state == IDLE || enable[stream] || from_head != '0) begin
            flags_next.state   = SYN_SENT;
            flags_next.syn_due = 1'b1;
          end
          {write_nxt, write_sent, write_limit} = '1;
          {nxt_next, sent_next} = '0;
          if (!flags.started) begin
            write_una = 1'b1;
            una_next  = first_sequence[31:3];
          end
          rtt = tcp_pkg::RTT_CLEAR;
        end
      end

      SEGMENT_RECOVER: begin
        write_recover = advances;
        recover_next  = moved_place[P] ? '0 : moved_place[P-1:0];
      end
      SEGMENT_TIMED: begin
        write_timed = advances;
        timed_next  = moved_place[P-1:0];
      end
      SEGMENT_NEXT: begin
        write_nxt = advances;
        nxt_next  = moved_place[P] ? '0 : moved_place[P-1:0];
      end

      SEGMENT_APPLY:
      if (flags.state == SYN_SENT) begin
        write_flags = 1'b1;
        if (!ack_flag || !is_una || odd != '0) begin
          happens[tcp_pkg::EVENT_UNACCEPTABLE] = 1'b1;
          if (ack_flag && !rst_flag) begin
            refuses = 1'b1;
            flags_next.rst_due = 1'b1;
          end
        end else if (rst_flag) lost = 1'b1;
        else if (syn) begin
          flags_next.state = OPEN;
          flags_next.started = 1'b1;
          flags_next.rst_due = 1'b0;
          flags_next.ack_due = 1'b1;
          flags_next.backoff = '0;
          {write_peer_next, write_limit, write_window, write_best} = '1;
          stops = 1'b1;
          congestion = flags.backoff != '0 ? tcp_pkg::CONGESTION_OPENED_LATE : tcp_pkg::CONGESTION_OPENED;
        end
        // The number of the RST.
        if (refuses) begin
          write_peer_next = 1'b1;
          peer_next_next  = segment.ack;
        end
      end else if (is_synced) begin
        write_flags = 1'b1;
        if (rst_flag) begin
          // RFC 5961 3.2: only the exact number; one in the window is answered.
          lost = in_order;
          flags_next.ack_due = flags.ack_due || in_window;
          happens[tcp_pkg::EVENT_UNACCEPTABLE] = !in_order;
        end else if (syn || !ack_flag || is_ahead) begin
          flags_next.ack_due = 1'b1;
          happens[tcp_pkg::EVENT_UNACCEPTABLE] = 1'b1;
        end else begin
          if (carries) begin
            flags_next.ack_due = 1'b1;
            // The payload is not wanted; it is confirmed, so that the peer does not repeat it.
            write_peer_next = in_order;
            if (in_order && fin) flags_next.peer_closed = 1'b1;
          end
          write_window = !is_old;
          write_best   = !is_old && is_wider;
          if (is_new) begin
            write_una = 1'b1;
            write_sent = 1'b1;
            sent_next = moved_place[P-1:0];
            flags_next.duplicates = '0;
            flags_next.persists = 1'b0;
            // With nothing under way it tells when the stream has rested.
            sets = 1'b1;
            if (flags.recovering) congestion = tcp_pkg::CONGESTION_PARTIAL;
            else if (flags.bounded) congestion = tcp_pkg::CONGESTION_ACKED;
            if (flags.timing && reaches_timed) begin
              flags_next.timing = 1'b0;
              rtt = tcp_pkg::RTT_SAMPLE;
              // Only now: a round trip over the time-out would never be measured (RFC 6298 section 5).
              flags_next.backoff = '0;
            end
            if (reaches_recover) begin
              {flags_next.recovering, flags_next.rewound, flags_next.resend} = '0;
              if (flags.recovering) congestion = tcp_pkg::CONGESTION_MENDED;
            end else if (flags.recovering) flags_next.resend = 1'b1;
          end else if (is_duplicate) begin
            if (flags.duplicates != 2'd3) flags_next.duplicates = flags.duplicates + 2'd1;
            if (flags.recovering) congestion = tcp_pkg::CONGESTION_ANOTHER;
            else if (flags.duplicates == 2'd2 && !flags.rewound) begin
              {flags_next.recovering, flags_next.resend} = '1;
              flags_next.timing = 1'b0;
              write_recover = 1'b1;
              happens[tcp_pkg::EVENT_FAST] = 1'b1;
              congestion = tcp_pkg::CONGESTION_LOST;
            end
          end
          if (is_fin_acked) flags_next.state = FIN_CONFIRMED;
          if (is_fin_acked || (flags.state == FIN_CONFIRMED && fin && in_order)) begin
            sets = 1'b1;
            span = flags_next.peer_closed ? TWICE : LONGEST;
          end
        end
      end

      TIMER_APPLY:
      // It may have been set since.
      if (due[stream]) begin
        write_flags = 1'b1;
        stops = 1'b1;
        if (flags.state != BROKEN && (flags.state != OPEN || under_way || flags.persists)) begin
          if (flags.backoff != '1) flags_next.backoff = flags.backoff + 4'd1;
          forget_path = flags.backoff >= 4'd3 && flags.backoff[0];
          rtt = tcp_pkg::RTT_DOUBLE;
        end
        case (flags.state)
          SYN_SENT: flags_next.syn_due = 1'b1;
          OPEN:
          if (under_way || flags.persists) begin
            write_nxt = 1'b1;
            write_recover = 1'b1;
            flags_next.force_one = 1'b1;
            {flags_next.recovering, flags_next.resend, flags_next.timing, flags_next.persists} = '0;
            flags_next.rewound = under_way;
            flags_next.duplicates = '0;
            happens[tcp_pkg::EVENT_TIMEOUT] = under_way && told != '0;
            happens[tcp_pkg::EVENT_PROBE] = !under_way || told == '0;
            if (under_way && told != '0)
              congestion = flags.rewound ? tcp_pkg::CONGESTION_TIMED_OUT_AGAIN : tcp_pkg::CONGESTION_TIMED_OUT;
          end else congestion = tcp_pkg::CONGESTION_RESTED;
          FIN_SENT: flags_next.fin_due = 1'b1;
          FIN_CONFIRMED: flags_next.state = IDLE;
          BROKEN: flags_next.retry_due = 1'b1;
          default: ;
        endcase
      end

      default: ;
    endcase

    if (lost) begin
      // In the end the peer was content: all is confirmed but the FIN.
      flags_next.state = flags.state == FIN_SENT || flags.state == FIN_CONFIRMED ? IDLE : BROKEN;
      flags_next.retry_due = 1'b0;
      happens[tcp_pkg::EVENT_RESET] = 1'b1;
      sets = flags_next.state == BROKEN;
      stops = 1'b1;
      span = UNTIL_RETRY;
    end
  end

  always_ff @(posedge clk) begin
    mark_take <= '0;
    if (step == LOOK_DECIDE && in_block && (is_stale || (kind == DATA && ends)))
      mark_take[stream] <= 1'b1;
    confirm <= '0;
    confirm[stream] <= write_una;
    confirmed <= una_next[P-1:0];
    event_stream <= stream;
    events <= happens;
    if (step == LOOK_DECIDE && connects && (flags.started || flags.state == BROKEN))
      attempt[stream] <= attempt[stream] + 4'd1;
    if (write_flags) begin
      connected[stream] <= flags_next.state == OPEN;
      active[stream] <= flags_next.state != IDLE;
    end
    if (rst) begin
      mark_take <= '0;
      confirm <= '0;
      events <= '0;
      attempt <= '0;
      connected <= '0;
      active <= '0;
    end
  end

  // No word is taken but for a connection. `accept` falls when the writer has followed it up.
  logic [STREAMS-1:0] may_run, may_accept;
  always_ff @(posedge clk) begin
    if (write_flags) begin
      may_run[stream] <= flags_next.started && (flags_next.state == OPEN || flags_next.state == BROKEN || flags_next.state == SYN_SENT);
      may_accept[stream] <= flags_next.started && !flags_next.peer_closed
          && (flags_next.state == OPEN || flags_next.state == BROKEN || flags_next.state == SYN_SENT);
    end
    running <= enable & may_run;
    accept  <= (enable & may_accept) | (accept & ~accepting);
    if (rst) begin
      may_run <= '0;
      may_accept <= '0;
      {running, accept} <= '0;
    end
  end

  // ---- steps ---------------------------------------------------------------------------------
  assign segment_take = step == SEGMENT_APPLY;
  always_ff @(posedge clk) begin
    look <= look | moved;
    case (step)
      WIPE: begin
        stream <= stream + 1'b1;
        if (stream == STREAM_BITS'(STREAMS - 1)) step <= PICK;
      end
      PICK:
      if (segment_valid && !(looks_first && may_look)) begin
        step   <= SEGMENT_PLACE;
        stream <= segment_stream;
      end else if (due != '0) begin
        step   <= TIMER_APPLY;
        stream <= due_index;
      end else if (may_look) begin
        step   <= LOOK_SPACE;
        stream <= chosen_index;
        last   <= chosen;
        look   <= (look & ~chosen) | moved;
      end
      LOOK_SPACE: step <= LOOK_BOUND;
      LOOK_BOUND: step <= LOOK_ROOM;
      LOOK_ROOM: step <= LOOK_COMPARE;
      LOOK_COMPARE: step <= LOOK_FIT;
      LOOK_FIT: step <= LOOK_DECIDE;
      LOOK_DECIDE: begin
        step <= PICK;
        if (kind != NOTHING || drained || connects || (in_block && is_stale)) look[stream] <= 1'b1;
      end
      SEGMENT_PLACE: step <= SEGMENT_RANGE;
      SEGMENT_RANGE: step <= SEGMENT_JUDGE;
      SEGMENT_JUDGE: step <= SEGMENT_RECOVER;
      SEGMENT_RECOVER: step <= SEGMENT_TIMED;
      SEGMENT_TIMED: step <= SEGMENT_NEXT;
      SEGMENT_NEXT: step <= SEGMENT_APPLY;
      SEGMENT_APPLY, TIMER_APPLY: begin
        step <= step == SEGMENT_APPLY && congestion == tcp_pkg::CONGESTION_NOTHING && rtt == tcp_pkg::RTT_NOTHING ? PICK : SETTLE;
        look[stream] <= 1'b1;
      end
      default: if (is_settled) step <= PICK;
    endcase
    if (step == LOOK_DECIDE || step == SEGMENT_APPLY) looks_first <= step == SEGMENT_APPLY;
    // What else changes (enable, path, accepting) is seen in time.
    if (tick) begin
      look[tour] <= 1'b1;
      tour <= tour == STREAM_BITS'(STREAMS - 1) ? '0 : tour + 1'b1;
    end
    if (rst) begin
      step <= WIPE;
      stream <= '0;
      look <= '0;
      {last, looks_first, tour} <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, first_sequence[2:0], segment.source_port, segment.port, shifting_on[2:0]};
endmodule
`default_nettype wire
