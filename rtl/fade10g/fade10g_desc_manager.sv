// Descriptor manager: knows the state of each packet in the buffer and says which goes next
// (transmit clock; paper section 3, figures 3 and 4).
//
//                 +----------------------+
//   ack_* =======>|                      |====> next_* (the packet to send)
//   head ========>| fade10g_desc_manager |<---- next_lock, next_take
//   last_* ======>|                      |====> tail_gray
//   session ----->|                      |----> all_confirmed, queued, event_*
//                 +----------------------+
//
// The window is [tail, head); [tail, fresh) has been sent at least once. The paper's flags follow
// from that: V is membership of [tail, head), S of [tail, fresh), F is last_packet. A descriptor
// stores the rest: C (confirmed), the last frame sequence, and two marks of the scheduler. The
// packet number is not stored: it is the tail's plus the distance to it.
//
// One descriptor is read and written a clock. In falling urgency:
//   - early: an ACK of a later frame proved the packet lost (or a NACK said so): sent at once;
//   - fresh: never sent;
//   - aged: the cyclic scan. A packet goes again only when its confirmation is overdue: it has
//     stayed unconfirmed for two ticks, and a tick is a little longer than the round trip, which is
//     measured from frames and their ACKs. A smaller tick would send packets again that are
//     merely under way.
module fade10g_desc_manager #(
    parameter int SLOT_BITS = 5,
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
    input  logic                 last,
    input  logic [SLOT_BITS : 0] last_packet,
    output logic [SLOT_BITS : 0] tail_gray,
    output logic                 all_confirmed,
    output logic                 queued,
    // from the receiver
    input  logic                 ack_valid,
    output logic                 ack_ready,
    input  logic                 ack_negative,
    input  logic [         15:0] ack_sequence,
    input  logic [         31:0] ack_packet,
    // to the sender: stable while next_lock is high; next_take tells that its header is out
    output logic                 next_valid,
    output logic [         31:0] next_packet,
    output logic [         15:0] next_sequence,
    output logic                 next_last,
    output logic                 next_again,
    input  logic                 next_lock,
    input  logic                 next_take,
    // one pulse each
    output logic                 event_confirmed,
    output logic                 event_early,
    output logic                 event_protocol_error,
    output logic                 event_stale
);
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam int TIMER_BITS = $clog2(TICK_MAX) + 2;

  if (TICK_MIN < 1 || TICK_INIT < TICK_MIN || TICK_INIT > TICK_MAX) begin : g_check
    $error("fade10g_desc_manager: expected 1 <= TICK_MIN <= TICK_INIT <= TICK_MAX");
  end

  typedef logic [PTR_BITS-1:0] ptr_t;

  typedef enum logic [2:0] {
    IDLE,
    SCAN_ACK,    // early retransmission: look at the packets before the confirmed one
    SCAN_TICK,   // mark what stays unconfirmed
    FIND_EARLY,
    FIND_AGED
  } state_t;

  // Descriptors
  localparam int DESCRIPTOR_BITS = 16 + 1 + 1 + 2;
  logic [DESCRIPTOR_BITS-1:0] descriptors[2**SLOT_BITS];
  logic [SLOT_BITS-1:0] read_slot, write_slot;
  logic [DESCRIPTOR_BITS-1:0] write_value;
  logic write_enable;
  logic [15:0] d_sequence;
  logic d_confirmed, d_early;
  logic [1:0] d_age;

  assign {d_sequence, d_confirmed, d_early, d_age} = descriptors[read_slot];
  always_ff @(posedge clk) if (write_enable) descriptors[write_slot] <= write_value;

  // State
  state_t state;
  logic [31:0] tail;
  ptr_t tail_ptr, fresh, walk, walk_end, cyclic, next_ptr;
  logic next_fresh;
  logic any_early, any_aged, tail_may_move, tick_due;
  logic [15:0] sequence_number;
  logic [15:0] scan_sequence;

  assign tail_ptr = tail[SLOT_BITS:0];

  // Where an acknowledged packet lies.
  logic [31:0] ack_distance;
  logic ack_in_window, ack_old, sequence_before_ack;
  logic [15:0] sequence_distance;
  ptr_t in_flight;
  assign in_flight = fresh - tail_ptr;
  assign ack_distance = ack_packet - tail;
  assign ack_in_window = ack_distance < 32'(in_flight);
  assign ack_old = ack_distance[31] && ack_distance[30:0] != '0;
  assign sequence_distance = (state == SCAN_ACK ? scan_sequence : ack_sequence) - d_sequence;
  assign sequence_before_ack = sequence_distance != '0 && !sequence_distance[15];

  // What happens in this clock.
  logic stall, do_tail, do_ack, do_tick, do_preempt, do_find;
  // The packet number on offer is relative to the tail, so nothing moves while it goes out.
  assign stall = next_lock || next_take;
  assign do_tail = state == IDLE && !stall && tail_may_move;
  assign do_ack = state == IDLE && !stall && !tail_may_move && ack_valid;
  assign do_tick = state == IDLE && !stall && !tail_may_move && !ack_valid && tick_due;
  assign do_find = state == IDLE && !stall && !tail_may_move && !ack_valid && !tick_due
      && (!next_valid || do_preempt);
  assign do_preempt = next_valid && !next_again && any_early;
  assign ack_ready = do_ack;

  logic confirms_next, tail_confirmed;
  assign confirms_next  = next_again && next_ptr == ptr_t'(ack_packet[SLOT_BITS:0]);
  assign tail_confirmed = tail_ptr != fresh && d_confirmed;

  logic scanning, again_early, ack_counts, nack_counts;
  assign scanning = !stall && walk != walk_end;
  assign again_early = !d_confirmed && !d_early && sequence_before_ack;
  assign ack_counts = do_ack && ack_in_window && !ack_negative;
  // A NACK names the frame that it answers, so an equal sequence counts too.
  assign nack_counts = do_ack && ack_in_window && ack_negative && !d_confirmed && !d_early
      && (sequence_before_ack || sequence_distance == '0);

  always_comb begin
    read_slot = walk[SLOT_BITS-1:0];
    if (state == IDLE)
      read_slot = tail_may_move ? tail_ptr[SLOT_BITS-1:0] : ack_packet[SLOT_BITS-1:0];
    write_slot   = read_slot;
    write_value  = {d_sequence, d_confirmed, d_early, d_age};
    write_enable = 1'b0;
    if (next_take) begin
      write_slot   = next_ptr[SLOT_BITS-1:0];
      write_value  = {sequence_number, 1'b0, 1'b0, 2'd0};
      write_enable = 1'b1;
    end else if (ack_counts) begin
      write_value  = {d_sequence, 1'b1, 1'b0, 2'd0};
      write_enable = 1'b1;
    end else if (nack_counts || (scanning && state == SCAN_ACK && again_early)) begin
      write_value  = {d_sequence, 1'b0, 1'b1, d_age};
      write_enable = 1'b1;
    end else if (scanning && state == SCAN_TICK && !d_confirmed) begin
      write_value  = {d_sequence, 1'b0, d_early, d_age == 2'd0 ? 2'd1 : 2'd2};
      write_enable = 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    event_confirmed <= ack_counts && !d_confirmed;
    event_early <= nack_counts || (scanning && state == SCAN_ACK && again_early);
    event_protocol_error <= do_ack && !ack_in_window && !ack_old;
    event_stale <= do_ack && !ack_in_window && ack_old;

    if (next_take) begin
      next_valid <= 1'b0;
      sequence_number <= sequence_number + 16'd1;
      if (next_fresh) fresh <= fresh + 1'b1;
    end

    if (do_tail) begin
      if (tail_confirmed) tail <= tail + 32'd1;
      else tail_may_move <= 1'b0;
    end

    if (ack_counts) begin
      tail_may_move <= 1'b1;
      scan_sequence <= ack_sequence;
      walk <= tail_ptr;
      walk_end <= ptr_t'(ack_packet[SLOT_BITS:0]);
      if (ack_distance != '0) state <= SCAN_ACK;
      if (confirms_next) next_valid <= 1'b0;
    end
    if (nack_counts) any_early <= 1'b1;

    if (do_tick) begin
      walk <= tail_ptr;
      walk_end <= fresh;
      state <= SCAN_TICK;
    end

    if (do_find) begin
      walk <= tail_ptr;
      walk_end <= fresh;
      if (any_early) begin
        next_valid <= 1'b0;
        state <= FIND_EARLY;
      end else if (fresh != head) begin
        next_valid <= 1'b1;
        next_ptr   <= fresh;
        next_fresh <= 1'b1;
        next_again <= 1'b0;
      end else if (any_aged && in_flight != '0) begin
        state <= FIND_AGED;
        walk <= cyclic - tail_ptr < in_flight ? cyclic : tail_ptr;
        // The walk ends where it began, one turn later: `any_aged` covers the first visit.
        walk_end <= cyclic - tail_ptr < in_flight ? cyclic : tail_ptr;
        any_aged <= 1'b0;
      end
    end

    if (!stall) begin
      case (state)
        SCAN_ACK: begin
          if (walk == walk_end) state <= IDLE;
          else begin
            walk <= walk + 1'b1;
            if (again_early) any_early <= 1'b1;
          end
        end
        SCAN_TICK: begin
          if (walk == walk_end) state <= IDLE;
          else begin
            walk <= walk + 1'b1;
            if (!d_confirmed && d_age != 2'd0) any_aged <= 1'b1;
          end
        end
        FIND_EARLY, FIND_AGED: begin
          if (state == FIND_EARLY && walk == walk_end) begin
            any_early <= 1'b0;
            state <= IDLE;
          end else if (!d_confirmed && (state == FIND_EARLY ? d_early : d_age == 2'd2)) begin
            next_valid <= 1'b1;
            next_ptr <= walk;
            next_fresh <= 1'b0;
            next_again <= 1'b1;
            state <= IDLE;
            if (state == FIND_AGED) begin
              cyclic   <= walk + 1'b1;
              any_aged <= 1'b1;
            end
          end else begin
            walk <= walk + 1'b1;
            if (state == FIND_AGED) begin
              if (walk + 1'b1 == fresh) walk <= tail_ptr;
              if ((walk + 1'b1 == fresh ? tail_ptr : walk + 1'b1) == walk_end) state <= IDLE;
            end
          end
        end
        default: ;
      endcase
    end

    if (rst || !session) begin
      state <= IDLE;
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

  assign next_packet   = tail + 32'(ptr_t'(next_ptr - tail_ptr));
  assign next_sequence = sequence_number;
  assign next_last     = last && next_ptr == last_packet;
  assign all_confirmed = tail_ptr == head && next_valid == 1'b0;

  always_ff @(posedge clk) tail_gray <= tail_ptr ^ (tail_ptr >> 1);

  // The round trip: the time from a frame to the ACK that quotes its sequence. The estimate follows
  // growth at once and shrinks by a quarter; it doubles when the frame or its ACK was lost.
  // `queued`: the last one took a quarter longer than the best: frames wait somewhere on their way.
  logic [TIMER_BITS-1:0] round_trip, least, timer, sample;
  logic [15:0] sample_sequence;
  logic sampling;
  localparam logic [TIMER_BITS-1:0] LONGEST = TIMER_BITS'(TICK_MAX);
  localparam logic [TIMER_BITS-1:0] SHORTEST = TIMER_BITS'(TICK_MIN);

  always_ff @(posedge clk) begin
    if (timer == '0) begin
      tick_due <= 1'b1;
      timer <= round_trip + (round_trip >> 2);
    end else timer <= timer - 1'b1;
    if (do_tick) tick_due <= 1'b0;

    if (sampling && sample < LONGEST) sample <= sample + 1'b1;
    if (next_take && !sampling) begin
      sampling <= 1'b1;
      sample <= SHORTEST;
      sample_sequence <= sequence_number;
    end else if (do_ack && sampling && ack_sequence == sample_sequence) begin
      sampling   <= 1'b0;
      round_trip <= sample > round_trip ? sample : round_trip - (round_trip >> 2) + (sample >> 2);
      if (sample < least) least <= sample;
      queued <= sample > least + (least >> 2);
    end else if (sampling && (sample == LONGEST || sample > {round_trip[TIMER_BITS-2:0], 1'b0})) begin
      sampling   <= 1'b0;
      round_trip <= sample;
    end

    if (rst || !session) begin
      tick_due <= 1'b0;
      timer <= TIMER_BITS'(TICK_INIT);
      round_trip <= TIMER_BITS'(TICK_INIT);
      least <= LONGEST;
      queued <= 1'b0;
      sampling <= 1'b0;
    end
  end
endmodule
