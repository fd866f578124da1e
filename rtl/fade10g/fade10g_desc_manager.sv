// SPDX-License-Identifier: Apache-2.0
//
// Descriptor manager: stores the state of each packet in the buffer and chooses the next one to send
// (transmit clock; paper section 3, figures 3 and 4).
//
//                 +----------------------+
//   ack_* =======>|                      |====> next_* (the packet to send)
//   head ========>| fade10g_desc_manager |<---- next_lock, next_take
//   closed ------>|                      |====> tail_gray
//   session ----->|                      |----> all_confirmed, queued, event_*
//                 +----------------------+
//
// The window is [tail, head); [tail, fresh) has been sent at least once. The paper's flags follow
// from that: V is membership of [tail, head), S of [tail, fresh), F is the packet before a closed head. A descriptor
// stores the rest: C (confirmed), the last frame sequence, and two marks of the scheduler. The
// packet number is not stored: it is the number of the tail plus the distance to it.
//
// In this order are sent:
//   - early: an ACK of a later frame proved the packet lost (or a NACK said so): sent at once;
//   - fresh: never sent;
//   - aged: the cyclic scan. A packet is repeated only when its confirmation is overdue: it was
//     unconfirmed for two ticks, and a tick is a little longer than the round trip, which is
//     measured from frames and their ACKs. A smaller tick would repeat packets whose ACKs are
//     still on their way.
//
// A descriptor is read in one clock and judged and written in the next. A walk reads one in each clock, so it judges the
// previous one (`seen`). While a packet is locked nothing moves: a descriptor that was read and not judged is read again
// afterwards, because next_take may have changed it.
//
// A packet that is confirmed while it is sent again stays in the buffer until its frame has left: the tail waits there. So the
// words of a frame never change.
`default_nettype none
module fade10g_desc_manager #(
    parameter int SLOT_BITS = 5,
    parameter int UNIT_BITS = 6,  // times are kept in units of 2^UNIT_BITS clocks
    parameter int TICK_MIN = 256,  // clocks
    parameter int TICK_INIT = 65536,  // clocks, until the round trip is known
    parameter int TICK_MAX = 1048576  // clocks
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic                 session,
    input  logic [         31:0] first_packet,
    input  logic [         15:0] first_sequence,
    // packets finished by the writer
    input  logic [SLOT_BITS : 0] head,
    input  logic                 closed,
    output logic [SLOT_BITS : 0] tail_gray,
    output logic                 all_confirmed,
    output logic                 queued,
    // from the receiver: stands still until ack_ready; while ack_bits is high ack_stored takes the place of the others:
    // bit i tells that packet ack_packet - 1 - i is stored, too, if ack_block is high
    input  logic                 ack_valid,
    output logic                 ack_ready,
    input  logic                 ack_negative,
    input  logic [         15:0] ack_sequence,
    input  logic [         31:0] ack_packet,
    output logic                 ack_bits,
    input  logic [         63:0] ack_stored,
    input  logic                 ack_block,
    // to the sender: stable while next_lock is high, next_packet from its third clock on; next_take tells that its header
    // is out
    output logic                 next_valid,
    output logic [         31:0] next_packet,
    output logic [SLOT_BITS-1:0] next_slot,
    output logic [         15:0] next_sequence,
    output logic                 next_last,
    output logic                 next_again,
    input  logic                 next_lock,
    input  logic                 next_take,
    // from then on its data is read, until sending_done
    input  logic                 sending,
    input  logic [SLOT_BITS-1:0] sending_slot,
    input  logic                 sending_done,
    // one pulse each
    output logic                 event_confirmed,
    output logic                 event_early,
    output logic                 event_protocol_error,
    output logic                 event_stale
);
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam int TIME_BITS = $clog2(TICK_MAX / 2 ** UNIT_BITS);

  typedef logic [PTR_BITS-1:0] ptr_t;

  // Bit 2: a walk; bit 3: for an ACK.
  typedef enum logic [3:0] {
    IDLE = 4'b0000,
    TAIL_READ = 4'b0001,  // the tail moves over what is confirmed
    TAIL_JUDGE = 4'b0010,
    WALK_TICK = 4'b0100,  // mark what stays unconfirmed
    WALK_EARLY = 4'b0101,  // find an early one
    WALK_AGED = 4'b0110,
    ACK_READ = 4'b1000,
    ACK_JUDGE = 4'b1001,
    WALK_ACK = 4'b1100  // the packets before the confirmed one: stored too, or to be sent early
  } state_t;

  (* fsm_encoding = "none" *) state_t state;
  logic stall;

  // ---- window --------------------------------------------------------------------------------
  logic [31:0] tail;
  ptr_t tail_ptr, fresh, in_flight, next_ptr;
  logic has_fresh, any_early, any_aged, tail_may_move, tick_due, took;
  logic [15:0] sequence_number;
  assign tail_ptr = tail[SLOT_BITS:0];
  assign stall = next_lock || next_take || took;
  logic tail_is_read;  // stands before anything can move

  always_ff @(posedge clk) begin
    took <= next_take;
    tail_is_read <= sending && sending_slot == tail_ptr[SLOT_BITS-1:0];
    in_flight <= fresh - tail_ptr;
    has_fresh <= fresh != head;
    tail_gray <= tail_ptr ^ (tail_ptr >> 1);
    all_confirmed <= tail_ptr == head && !next_valid;
  end

  // ---- descriptors ---------------------------------------------------------------------------
  // Marks and sequences are apart: a sequence is written when its packet is sent. The marks: confirmed, early, and the ticks
  // without a confirmation, which stop at two.
  logic [3:0] marks[2**SLOT_BITS];
  logic [15:0] sequences[2**SLOT_BITS];
  ptr_t at, seen, walk_last;
  logic confirmed, early, stored;
  logic [1:0] age;
  logic [3:0] mark_written;
  logic write_mark, is_before, is_equal;
  logic [15:0] sequence_answered, ahead_of_it;
  ptr_t place;  // of its bit

  assign ahead_of_it = sequence_answered - sequences[at[SLOT_BITS-1:0]];
  assign place = walk_last - at;
  always_ff @(posedge clk) begin
    {confirmed, early, age} <= marks[at[SLOT_BITS-1:0]];
    seen <= at;
    is_before <= !ahead_of_it[15];
    is_equal <= sequence_answered == sequences[at[SLOT_BITS-1:0]];
    stored <= ack_block && ack_stored[6'(place[SLOT_BITS-1:0])];
    if (state == IDLE) sequence_answered <= ack_sequence;
    if (write_mark) marks[next_take?next_ptr[SLOT_BITS-1:0] : seen[SLOT_BITS-1:0]] <= mark_written;
    if (next_take) sequences[next_ptr[SLOT_BITS-1:0]] <= sequence_number;
  end

  // ---- where an acknowledged packet lies -----------------------------------------------------
  // One register: the distance of the packet that an ACK names, or the number of the locked packet, whose lower bits its
  // pointer has.
  logic [31:0] number;
  logic ack_in_window, next_wraps;
  always_ff @(posedge clk) begin
    next_wraps <= next_ptr < tail_ptr;
    if (stall) number <= {tail[31:PTR_BITS] + (32 - PTR_BITS)'(next_wraps), next_ptr};
    else number <= ack_packet - tail;
    ack_in_window <= number[31:PTR_BITS] == '0 && number[PTR_BITS-1:0] < in_flight;
  end

  // ---- walks ---------------------------------------------------------------------------------
  logic walking, seen_valid, is_walk, judge, drained, found, cyclic_inside;
  ptr_t cyclic;

  assign is_walk = state[2];
  assign ack_bits = state[3];
  assign judge = is_walk && seen_valid && !stall;
  assign drained = is_walk && !walking && !seen_valid && !stall;
  assign found = judge && !confirmed
      && ((state == WALK_EARLY && early) || (state == WALK_AGED && age == 2'd2));
  always_ff @(posedge clk)
    cyclic_inside <= cyclic != tail_ptr && ptr_t'(cyclic - tail_ptr) < in_flight;

  // ---- what is judged ------------------------------------------------------------------------
  logic ack_behind_tail, ack_old, judge_ack, ack_counts, nack_counts, confirms, becomes_early;
  logic is_confirmed, is_early;
  logic [1:0] older;
  assign ack_behind_tail = number[PTR_BITS-1:0] != '0;
  assign ack_old = number[31];
  assign judge_ack = state == ACK_JUDGE && !stall;
  assign ack_counts = judge_ack && ack_in_window && !ack_negative;
  assign nack_counts = judge_ack && ack_in_window && ack_negative && !confirmed && !early && is_early;
  assign confirms = judge && state == WALK_ACK && !confirmed && is_confirmed;
  assign becomes_early = judge && state == WALK_ACK && !is_confirmed && !early && is_early;
  assign ack_ready = (judge_ack && !(ack_counts && ack_behind_tail)) || (state == WALK_ACK && drained);

  // What a packet becomes is written back whether it changes or not, so that the memory does not wait for that. A NACK names
  // the frame that it answers, so an equal sequence counts too.
  assign is_confirmed = confirmed || (state == ACK_JUDGE && !ack_negative) || (state == WALK_ACK && stored);
  assign is_early = early || (state == ACK_JUDGE && is_before) || (state == WALK_ACK && is_before && !is_equal);
  assign older = state == WALK_TICK ? {age != 2'd0, age == 2'd0} : age;
  assign write_mark = next_take || judge || (judge_ack && ack_in_window);
  assign mark_written = next_take ? 4'b0000 : is_confirmed ? 4'b1000 : {1'b0, is_early, older};

  always_ff @(posedge clk) begin
    event_confirmed <= (ack_counts && !confirmed) || confirms;
    event_early <= nack_counts || becomes_early;
    event_protocol_error <= judge_ack && !ack_in_window && !ack_old;
    event_stale <= judge_ack && !ack_in_window && ack_old;

    if (next_take) begin
      next_valid <= 1'b0;
      sequence_number <= sequence_number + 16'd1;
      if (!next_again) fresh <= fresh + 1'b1;
    end

    if ((ack_counts || confirms) && next_again && next_ptr == seen) next_valid <= 1'b0;

    if (stall) begin
      // Begin again with what was not judged.
      seen_valid <= 1'b0;
      if (seen_valid) begin
        at <= seen;
        walking <= 1'b1;
      end
      if (!is_walk) state <= IDLE;
    end else begin
      seen_valid <= walking;
      if (walking) begin
        at <= at + 1'b1;
        walking <= at != walk_last;
      end

      case (state)
        IDLE: begin
          at <= tail_ptr;
          walk_last <= fresh - 1'b1;
          if (tail_may_move) state <= TAIL_READ;
          else if (ack_valid) begin
            at <= ack_packet[SLOT_BITS:0];
            state <= ACK_READ;
          end else if (tick_due) begin
            walking <= in_flight != '0;
            state   <= WALK_TICK;
          end else if (!next_valid || (!next_again && any_early)) begin
            // A fresh packet stays on offer until an early one is found.
            if (any_early) begin
              walking <= in_flight != '0;
              state   <= WALK_EARLY;
            end else if (has_fresh) begin
              next_valid <= 1'b1;
              next_ptr   <= fresh;
              next_again <= 1'b0;
            end else if (any_aged && in_flight != '0) begin
              // Around in the packets that were sent: from where the last walk ended, or from the tail.
              if (cyclic_inside) at <= cyclic;
              walking <= 1'b1;
              state   <= WALK_AGED;
            end
          end
        end
        TAIL_READ: state <= TAIL_JUDGE;
        TAIL_JUDGE: begin
          if (tail_ptr != fresh && confirmed && !tail_is_read) tail <= tail + 32'd1;
          else tail_may_move <= 1'b0;
          state <= IDLE;
        end
        ACK_READ:  state <= ACK_JUDGE;
        ACK_JUDGE: begin
          state <= IDLE;
          if (nack_counts) any_early <= 1'b1;
          if (ack_counts) begin
            tail_may_move <= 1'b1;
            if (!ack_behind_tail) begin
              if (!tail_is_read) tail <= tail + 32'd1;
            end else begin
              at <= tail_ptr;
              walk_last <= at - 1'b1;
              walking <= 1'b1;
              state <= WALK_ACK;
            end
          end
        end
        default: begin
          if (becomes_early) any_early <= 1'b1;
          if (judge && state == WALK_TICK && !confirmed && age != 2'd0) any_aged <= 1'b1;
          if (found) begin
            next_valid <= 1'b1;
            next_ptr <= seen;
            next_again <= 1'b1;
            walking <= 1'b0;
            seen_valid <= 1'b0;
            if (state == WALK_AGED) cyclic <= seen + 1'b1;
          end
          if (drained && state == WALK_EARLY) any_early <= 1'b0;
          if (drained && state == WALK_AGED) begin
            // None from there to the end; those before it are left, unless the walk began at the tail.
            cyclic   <= tail_ptr;
            any_aged <= cyclic_inside;
          end
          if (found || drained) state <= IDLE;
        end
      endcase
    end

    if (sending_done) tail_may_move <= 1'b1;

    if (rst || !session) begin
      state <= IDLE;
      at <= '0;  // a register with a reset stays in front of the memory that it addresses
      walking <= 1'b0;
      seen_valid <= 1'b0;
      tail <= first_packet;
      fresh <= first_packet[SLOT_BITS:0];
      cyclic <= first_packet[SLOT_BITS:0];
      next_valid <= 1'b0;
      next_again <= 1'b0;
      sequence_number <= first_sequence;
      any_early <= 1'b0;
      any_aged <= 1'b0;
      tail_may_move <= 1'b0;
    end
  end

  assign next_packet   = number;
  assign next_slot     = next_ptr[SLOT_BITS-1:0];
  assign next_sequence = sequence_number;
  assign next_last     = closed && ptr_t'(next_ptr + 1'b1) == head;

  // ---- time ----------------------------------------------------------------------------------
  // One packet is measured at a time, also one that a block ACK covers with others. Behind such an ACK the next sample would
  // always be the oldest of the next batch. So it starts at an eighth of the sequence numbers only: then it is the newest now
  // and then, whose answer did not wait for others.
  logic unit, measuring, batched, overdue, is_sample;
  logic [SLOT_BITS-1:0] sample;
  logic [TIME_BITS-1:0] round_trip;
  logic [  TIME_BITS:0] timer;
  assign is_sample = seen[SLOT_BITS-1:0] == sample;

  fade_round_trip #(
      .UNIT_BITS(UNIT_BITS),
      .SHORTEST (TICK_MIN),
      .INITIAL  (TICK_INIT),
      .LONGEST  (TICK_MAX)
  ) time_of_frames (
      .clk       (clk),
      .rst       (rst || !session),
      .start     (next_take && (!batched || sequence_number[2:0] == '0)),
      .answered  (ack_counts && is_sample),
      .covered   (confirms && is_sample),
      .abandoned (1'b0),
      .lost      (measuring && (overdue || (next_take && next_again && next_slot == sample))),
      .unit      (unit),
      .measuring (measuring),
      .batched   (batched),
      .overdue   (overdue),
      .round_trip(round_trip),
      .queued    (queued)
  );

  always_ff @(posedge clk) begin
    if (next_take && !measuring) sample <= next_slot;
    if (unit) timer <= timer - 1'b1;
    if (state == IDLE && !stall && !tail_may_move && !ack_valid) tick_due <= 1'b0;
    if (unit && timer == '0) begin
      tick_due <= 1'b1;
      timer <= (TIME_BITS + 1)'(round_trip) + ((TIME_BITS + 1)'(round_trip) >> 2);
    end
    if (rst || !session) begin
      tick_due <= 1'b0;
      timer <= (TIME_BITS + 1)'(TICK_INIT / 2 ** UNIT_BITS);
    end
  end

  logic unused;
  assign unused = &{1'b0, ahead_of_it, place, ack_stored};
endmodule
`default_nettype wire
