// SPDX-License-Identifier: Apache-2.0
//
// TCP engine of one stream: a client that opens the connection, sends, and closes it (transmit
// clock; RFC 9293, 5681, 6298, 6582, 7323).
//
//                 +------------+
//   enable ------>|            |====> send_* (the segment to send next)
//   segment_* ===>| tcp_engine |<---- send_take
//   head ========>|            |----> accept, running, tail_gray (socket buffer)
//   path -------->|            |----> forget_path, event_*
//                 +------------+
//
// Sequence numbers are chosen so that the number of a data byte is its place in the socket buffer:
// the buffer holds words, and word w of the stream has the numbers 8w .. 8w+7. A new connection
// begins with the first word that was not confirmed, so a connection that broke (RST) goes on in
// the next one without a gap. Each attempt uses another local port, so that old segments belong to
// nobody.
//
// A peer that answers the SYN with the number of another connection still holds one that this board has
// forgotten, as after its reset: it is told so by a RST, and asked again (RFC 9293 3.5.1 and 3.10.7.3).
//
// A peer that closes its direction asks for the end: no more data is taken (`accept` is low), what was taken is sent
// and confirmed, and the connection is closed: `running` is low. While `enable` stays, the next one is opened then. A
// receiver that was killed closes its direction, too, but answers what comes with RST: then the stream goes on.
//
// Recovery: three duplicate ACKs send the first segment again, partial ACKs the next hole (RFC 6582);
// a time-out goes back to the first unconfirmed word and doubles the time-out. There is no congestion
// window: the rate is bounded by the receiver's window and the buffer, as in the paper.
`default_nettype none
module tcp_engine #(
    parameter int BITS = 12,  // the socket buffer is 2^BITS words
    parameter int TIMEOUT_MIN = 200_000,  // microseconds
    parameter int TIMEOUT_INIT = 1_000_000,
    parameter int TIMEOUT_MAX = 8_000_000,
    parameter int RETRY = 1_000_000  // from a connection that broke to the next attempt
) (
    input logic clk,
    input logic rst,
    input logic tick,  // each microsecond
    input logic enable,
    input logic path,  // the address of the next hop is known
    output logic forget_path,
    input logic [31:0] first_sequence,  // of the first data byte, a multiple of twice the buffer
    input logic [12:0] mtu_words,  // the most words of a segment
    output logic [3:0] attempt,
    // socket buffer
    output logic accept,
    output logic running,
    input logic accepting,
    input logic [BITS:0] head,
    input logic push,  // data waits for the end of its block, or for a full segment
    input logic mark_valid,  // the end of a block, the first that was not sent
    input logic [BITS:0] mark,
    output logic mark_take,
    output logic [BITS:0] tail_gray,
    // segments from the peer
    input logic segment_valid,
    input logic [31:0] segment_sequence,
    input logic [31:0] segment_ack,
    input logic [7:0] segment_flags,
    input logic [15:0] segment_window,
    input logic [15:0] segment_length,
    input logic [15:0] segment_mss,
    input logic [3:0] segment_scale,
    // segment to send
    output logic send_valid,
    output logic [31:0] send_sequence,
    output logic [31:0] send_ack,
    output logic [7:0] send_flags,
    output logic [12:0] send_words,
    input logic send_take,
    // for the display, and one pulse each
    output logic connected,
    output logic active,
    output logic [23:0] timeout,
    output logic [29:0] window,
    output logic event_sent,
    output logic event_again,
    output logic event_fast,
    output logic event_timeout,
    output logic event_probe,
    output logic event_reset,
    output logic event_unacceptable
);
  typedef enum logic [2:0] {
    IDLE,
    SYN_SENT,
    OPEN,
    FIN_SENT,
    FIN_CONFIRMED,  // until the peer has closed, too
    BROKEN  // until the next attempt
  } state_t;

  state_t state;
  logic [31:0] una, nxt, newest, recover, peer_next, timed;
  logic [29:0] best_window;
  logic [12:0] limit, offered;
  logic [3:0] scale, backoff, quiet;
  logic [1:0] duplicates;
  logic recovering, rewound, resend, force_one, ack_due, peer_closed, fin_due, syn_due, rst_due;
  logic timing;
  logic [23:0] timer, round_trip;
  logic timer_runs;
  logic started;  // una holds the place in the stream

  // ---- what the segment means ----------------------------------------------------------------
  logic fin, syn, rst_flag, ack_flag, ack_new, ack_old, ack_ahead, in_order, carries, ack_of_syn;
  logic [29:0] told_window;
  assign {ack_flag, rst_flag, syn, fin} = {
    segment_flags[tcp_pkg::ACK],
    segment_flags[tcp_pkg::RST],
    segment_flags[tcp_pkg::SYN],
    segment_flags[tcp_pkg::FIN]
  };
  assign ack_new = $signed(segment_ack - una) > 0 && $signed(segment_ack - newest) <= 0;
  assign ack_ahead = $signed(segment_ack - newest) > 0;
  assign ack_old = $signed(segment_ack - una) < 0;
  assign in_order = segment_sequence == peer_next;
  assign carries = segment_length != '0 || fin;
  assign told_window = 30'({14'd0, segment_window} << scale);
  assign offered = 13'(segment_mss >> 3);
  assign ack_of_syn = ack_flag && segment_ack == una;

  // ---- what to send --------------------------------------------------------------------------
  logic [31:0] head_place, una_word, unsent, room, flight;
  logic [BITS:0] to_mark;
  logic [12:0] most, wanted, fitting;
  logic
      has_data,
      may_send,
      full_size,
      whole_rest,
      whole_block,
      in_block,
      partial,
      half_window,
      data_now,
      can_send_data;
  assign una_word = {una[31:3], 3'b000};
  // The head is at most a buffer's length after the first unconfirmed word.
  assign head_place = una_word + {29'((BITS + 1)'(head - una[BITS+3:3])), 3'b000};
  // A segment ends with its block, which then waits for nothing: Nagle is for plain streams.
  assign to_mark = mark - newest[BITS+3:3];
  assign mark_take = mark_valid && (to_mark == '0 || to_mark > {1'b1, BITS'(0)});
  assign in_block = mark_valid && !mark_take;
  assign partial = push && !in_block && (accept || accepting);
  assign unsent = (in_block ? {newest[31:3] + 29'(to_mark), 3'b000} : head_place) - nxt;
  assign flight = newest - una;
  assign room = una + 32'(window) - nxt;
  assign has_data = head_place != nxt;
  assign wanted = unsent > {16'd0, limit, 3'b000} ? limit : unsent[15:3];
  assign fitting = room[31] ? '0 : room[30:3] > 28'(wanted) ? wanted : room[15:3];
  assign full_size = fitting == limit;
  // Nagle: a small segment leaves when nothing is under way; silly window: when it is all there is,
  // or half of the largest window.
  assign whole_rest = fitting == wanted && fitting != '0 && flight == '0 && !partial;
  assign half_window = fitting != '0 && {fitting, 3'b000} >= 16'(best_window >> 1) && best_window >> 1 < 30'(limit) << 3;
  assign whole_block = fitting == wanted && fitting != '0 && in_block;
  assign may_send = full_size || whole_rest || whole_block || half_window || (rewound && fitting != '0);
  assign can_send_data = state == OPEN && has_data;
  assign data_now = can_send_data && (may_send || force_one);
  assign most = force_one && fitting == '0 ? 13'd1 : fitting;

  logic [31:0] again_left;
  logic [12:0] again_words;
  assign again_left  = newest - una_word;
  assign again_words = again_left > {16'd0, limit, 3'b000} ? limit : again_left[15:3];

  // The choice is kept until it is taken; meanwhile the state may change, but a segment stays true.
  typedef enum logic [2:0] {
    NOTHING,
    A_SYN,
    PURE_ACK,
    AGAIN,
    DATA,
    A_FIN,
    A_RST
  } kind_t;
  kind_t choice, kind;
  always_comb begin
    choice = NOTHING;
    if (!path) choice = NOTHING;
    else if (state == SYN_SENT) choice = rst_due ? A_RST : syn_due ? A_SYN : NOTHING;
    else if (ack_due) choice = PURE_ACK;
    else if (resend && again_words != '0) choice = AGAIN;
    else if (data_now) choice = DATA;
    else if (fin_due && state == FIN_SENT) choice = A_FIN;
  end

  logic settle;  // a clock after a change, so that the choice is of the new state
  always_ff @(posedge clk) begin
    settle <= send_take || segment_valid;
    if (!send_valid) begin
      if (choice != NOTHING && !segment_valid && !settle && !send_take) begin
        send_valid <= 1'b1;
        kind <= choice;
        send_ack <= peer_next;
        send_flags <= '0;
        send_flags[tcp_pkg::ACK] <= choice != A_SYN && choice != A_RST;
        send_flags[tcp_pkg::RST] <= choice == A_RST;
        send_flags[tcp_pkg::SYN] <= choice == A_SYN;
        send_flags[tcp_pkg::FIN] <= choice == A_FIN;
        send_flags[tcp_pkg::PSH] <= choice == DATA && unsent == {16'd0, fitting, 3'b000};
        send_words <= choice == DATA ? most : choice == AGAIN ? again_words : '0;
        case (choice)
          A_SYN:   send_sequence <= una - 32'd1;
          A_RST:   send_sequence <= peer_next;
          AGAIN:   send_sequence <= una_word;
          A_FIN:   send_sequence <= newest - 32'd1;
          default: send_sequence <= nxt;
        endcase
      end
    end else if (send_take) send_valid <= 1'b0;
    // What is on offer must be of this connection.
    if (rst || state == IDLE || state == BROKEN) send_valid <= 1'b0;
  end

  // ---- state ---------------------------------------------------------------------------------
  logic expired, take_new, sample_valid, lost, drained;
  logic [23:0] backed_off, computed;
  logic [31:0] sent_end;
  assign lost = segment_valid && rst_flag
      && (state == SYN_SENT ? ack_of_syn
          : (state == OPEN || state == FIN_SENT || state == FIN_CONFIRMED) && in_order);
  assign drained = head_place == una && flight == '0 && choice == NOTHING && !send_valid && !settle
      && !segment_valid && !expired;
  assign expired = timer_runs && timer == '0;
  assign sent_end = send_sequence + {16'd0, send_words, 3'b000};
  assign take_new = send_take && kind == DATA && $signed(sent_end - newest) > 0;
  always_comb begin
    backed_off = computed;
    if (backoff != '0) begin
      backed_off = 24'(TIMEOUT_MAX);
      if (({24'd0, computed} << backoff) < 48'(TIMEOUT_MAX))
        backed_off = 24'({24'd0, computed} << backoff);
    end
  end
  assign timeout = computed;

  tcp_rtt #(
      .MINIMUM(TIMEOUT_MIN),
      .INITIAL(TIMEOUT_INIT),
      .MAXIMUM(TIMEOUT_MAX)
  ) rtt (
      .clk    (clk),
      .clear  (rst || state == IDLE),
      .sample (round_trip),
      .valid  (sample_valid),
      .timeout(computed)
  );

  assign connected = state == OPEN;
  assign active = state != IDLE;
  always_ff @(posedge clk) begin
    running <= !rst && enable && started && (state == OPEN || state == BROKEN || state == SYN_SENT);
    accept <= !rst && enable && !peer_closed && started
        && (state == OPEN || state == BROKEN || state == SYN_SENT);
  end
  always_ff @(posedge clk) tail_gray <= una[BITS+3:3] ^ (una[BITS+3:3] >> 1);

  always_ff @(posedge clk) begin
    forget_path <= 1'b0;
    sample_valid <= 1'b0;
    event_sent <= send_take && (kind == DATA || kind == AGAIN);
    event_again <= send_take && (kind == AGAIN || (kind == DATA && !take_new));
    event_fast <= 1'b0;
    event_timeout <= 1'b0;
    event_probe <= 1'b0;
    event_reset <= 1'b0;
    event_unacceptable <= 1'b0;

    if (tick) begin
      if (timer != '0) timer <= timer - 24'd1;
      if (round_trip != '1) round_trip <= round_trip + 24'd1;
    end
    quiet <= accepting || accept ? '0 : quiet == '1 ? quiet : quiet + 4'd1;

    // -- sent
    if (send_take) begin
      case (kind)
        A_SYN:   syn_due <= 1'b0;
        A_FIN:   fin_due <= 1'b0;
        A_RST: begin
          rst_due <= 1'b0;
          // At once, but once: the next SYN is the timer's.
          if (backoff == '0) {syn_due, backoff[0]} <= 2'b11;
        end
        default: ;
      endcase
      if (send_ack == peer_next) ack_due <= 1'b0;
      if (kind == AGAIN) resend <= 1'b0;
      if (kind == DATA) begin
        // Unless it was rewound since, or confirmed.
        if (nxt == send_sequence) begin
          nxt <= sent_end;
          force_one <= 1'b0;
        end
        if (take_new) begin
          newest <= sent_end;
          if (!timing) begin
            timing <= 1'b1;
            timed <= sent_end;
            round_trip <= '0;
          end
        end
      end
      if (kind != PURE_ACK && !timer_runs) begin
        timer_runs <= 1'b1;
        timer <= backed_off;
      end
    end

    // -- the timer
    // For what is under way, and for data that the window holds back (persist).
    if (state == OPEN && !timer_runs && !send_valid && (flight != '0 || (has_data && !may_send && !force_one && !(partial && fitting == wanted)))) begin
      timer_runs <= 1'b1;
      timer <= backed_off;
    end
    if (expired) begin
      timer_runs <= 1'b0;
      if (backoff != '1) backoff <= backoff + 4'd1;
      forget_path <= backoff >= 4'd3 && backoff[0];
      timing <= 1'b0;
      case (state)
        SYN_SENT: syn_due <= 1'b1;
        OPEN: begin
          nxt <= una_word;
          force_one <= 1'b1;
          rewound <= flight != '0;
          recovering <= 1'b0;
          resend <= 1'b0;
          recover <= newest;
          duplicates <= '0;
          event_timeout <= flight != '0 && window != '0;
          event_probe <= flight == '0 || window == '0;
        end
        FIN_SENT: begin
          fin_due <= 1'b1;
        end
        FIN_CONFIRMED: state <= IDLE;
        default: ;
      endcase
    end

    // -- received
    if (segment_valid && state == SYN_SENT) begin
      if (!ack_of_syn) begin
        event_unacceptable <= 1'b1;
        if (ack_flag && !rst_flag) begin
          rst_due   <= 1'b1;
          peer_next <= segment_ack;  // the number of the RST
        end
      end else if (syn && !rst_flag) begin
        state <= OPEN;
        started <= 1'b1;
        rst_due <= 1'b0;
        peer_next <= segment_sequence + 32'd1;
        scale <= segment_scale;
        window <= 30'(segment_window);
        best_window <= 30'(segment_window);
        // Whole words.
        limit <= offered < mtu_words ? offered : mtu_words;
        ack_due <= 1'b1;
        timer_runs <= 1'b0;
        backoff <= '0;
      end
    end else if (segment_valid && (state == OPEN || state == FIN_SENT || state == FIN_CONFIRMED)) begin
      if (rst_flag) begin
        // RFC 5961 3.2: only the exact number.
        if (!in_order) event_unacceptable <= 1'b1;
      end else if (syn) begin
        ack_due <= 1'b1;
        event_unacceptable <= 1'b1;
      end else if (!ack_flag || ack_ahead) begin
        ack_due <= 1'b1;
        event_unacceptable <= 1'b1;
      end else begin
        if (carries) begin
          ack_due <= 1'b1;
          if (in_order) begin
            // The payload is not wanted; it is confirmed, so that the peer does not repeat it.
            peer_next   <= segment_sequence + 32'(segment_length) + 32'(fin);
            peer_closed <= peer_closed || fin;
            if (fin && state == FIN_CONFIRMED) begin
              timer_runs <= 1'b1;
              timer <= {computed[22:0], 1'b0};
            end
          end
        end
        if (!ack_old) begin
          window <= told_window;
          if (told_window > best_window) best_window <= told_window;
        end
        if (ack_new) begin
          una <= segment_ack;
          duplicates <= '0;
          if ($signed(segment_ack - nxt) > 0) nxt <= {segment_ack[31:3], 3'b000};
          timer_runs <= segment_ack != newest;
          timer <= computed;
          if (timing && $signed(segment_ack - timed) >= 0) begin
            timing <= 1'b0;
            sample_valid <= 1'b1;
            // Only now: a round trip over the time-out would never be measured (RFC 6298 section 5).
            backoff <= '0;
          end
          if ($signed(segment_ack - recover) >= 0) begin
            recovering <= 1'b0;
            rewound <= 1'b0;
          end else if (recovering) begin
            resend <= 1'b1;
          end
          if (state == FIN_SENT && segment_ack == newest) begin
            state <= FIN_CONFIRMED;
            timer_runs <= 1'b1;
            timer <= peer_closed || (fin && in_order) ? {computed[22:0], 1'b0} : 24'(TIMEOUT_MAX);
          end
        end else if (segment_ack == una && flight != '0 && !carries && told_window == window) begin
          duplicates <= duplicates == 2'd3 ? 2'd3 : duplicates + 2'd1;
          if (duplicates == 2'd2 && !recovering && !rewound) begin
            recovering <= 1'b1;
            recover <= newest;
            resend <= 1'b1;
            timing <= 1'b0;
            event_fast <= 1'b1;
          end
        end
      end
    end

    // -- open and close
    case (state)
      IDLE: begin
        {timer_runs, timing, ack_due, peer_closed, fin_due, rst_due, resend, force_one, rewound, recovering} <= '0;
        backoff <= '0;
        duplicates <= '0;
        scale <= '0;
        window <= '0;
        if (enable) begin
          state   <= SYN_SENT;
          syn_due <= 1'b1;
          if (!started) begin
            una <= first_sequence;
            nxt <= first_sequence;
            newest <= first_sequence;
            recover <= first_sequence;
          end else begin
            attempt <= attempt + 4'd1;
            una <= una_word;
            nxt <= una_word;
            newest <= una_word;
            recover <= una_word;
          end
        end
      end
      SYN_SENT: if (!enable && quiet == '1 && (!started || head_place == una)) state <= IDLE;
      OPEN:
      // All data was sent and confirmed, and no more will come.
      if (drained && !accept && quiet == '1) begin
        state <= FIN_SENT;
        fin_due <= 1'b1;
        newest <= una + 32'd1;
        nxt <= una + 32'd1;
      end
      BROKEN: begin
        if (tick && timer == '0) begin
          {timer_runs, timing, ack_due, peer_closed, fin_due, rst_due, resend, force_one, rewound, recovering} <= '0;
          state <= enable || head_place != una_word ? SYN_SENT : IDLE;
          syn_due <= 1'b1;
          attempt <= attempt + 4'd1;
          una <= una_word;
          nxt <= una_word;
          newest <= una_word;
          recover <= una_word;
        end
      end
      default:  ;
    endcase
    if (lost) begin
      state <= BROKEN;
      event_reset <= 1'b1;
      timer_runs <= 1'b0;
      timer <= 24'(RETRY);
      {ack_due, fin_due, resend, force_one, timing} <= '0;
      // The peer was content: all is confirmed but the end.
      if (state == FIN_SENT || state == FIN_CONFIRMED) state <= IDLE;
    end
    if (rst) begin
      state   <= IDLE;
      started <= 1'b0;
      attempt <= '0;
      timer   <= '0;
      quiet   <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, room[2:0]};
endmodule
`default_nettype wire
