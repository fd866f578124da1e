// Descriptor manager: knows the state of each packet in the buffer and says which goes next
// (transmit clock; design section 3).
//
//               +--------------------+
//   ack_* =====>|                    |====> next_* (the packet to send)
//   head ======>| fade1_desc_manager |<---- next_lock, next_take
//   last_* ====>|                    |====> tail_gray
//   session --->|                    |----> all_confirmed, queued, event_*
//               +--------------------+
//
// The buffer holds one set's worth of packets: a packet's place is its number in its set, and its
// descriptor holds the number of the set. When the first packets of a set are confirmed, those of
// the next set take their places; so packets of at most two consecutive sets are in flight.
//
// The window is [tail, head); [tail, fresh) has been sent at least once. One descriptor is read and
// written a clock: of the packet that an ACK names, of the tail, or of the next place of the cyclic
// scan. The scan finds packets whose confirmation is overdue, by a little more than the measured
// round trip, and offers them before fresh ones: the window must not stand still for a lost packet.
module fade1_desc_manager #(
    parameter int WAIT_MIN = 256,  // clocks
    parameter int WAIT_INIT = 65536,  // clocks, until the round trip is known
    parameter int WAIT_MAX = 1048576,  // clocks
    parameter int UNIT_BITS = 6  // times of sending are kept in units of 2^UNIT_BITS clocks
) (
    input  logic                            clk,
    input  logic                            rst,
    input  logic                            session,
    input  logic [                    15:0] first_set,
    // packets finished by the writer
    input  logic [  fade1_pkg::SLOT_BITS:0] head,
    input  logic                            last,
    input  logic [  fade1_pkg::SLOT_BITS:0] last_packet,
    output logic [  fade1_pkg::SLOT_BITS:0] tail_gray,
    output logic                            all_confirmed,
    output logic                            queued,
    // from the receiver
    input  logic                            ack_valid,
    output logic                            ack_ready,
    input  logic [                    15:0] ack_set,
    input  logic [                     5:0] ack_packet,
    // to the sender: stable while next_lock is high; next_take tells that its header is out
    output logic                            next_valid,
    output logic [                    15:0] next_set,
    output logic [fade1_pkg::SLOT_BITS-1:0] next_packet,
    output logic                            next_last,
    output logic                            next_again,
    input  logic                            next_lock,
    input  logic                            next_take,
    // one pulse each
    output logic                            event_confirmed,
    output logic                            event_protocol_error,
    output logic                            event_stale
);
  localparam int SLOT_BITS = fade1_pkg::SLOT_BITS;
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam int NUMBER_BITS = 16 + SLOT_BITS;
  // Times of sending run over four times the longest wait.
  localparam int TIMER_BITS = $clog2(WAIT_MAX) + 2;
  localparam int STAMP_BITS = TIMER_BITS - UNIT_BITS;

  if (WAIT_MIN < 2 ** UNIT_BITS || WAIT_INIT < WAIT_MIN || WAIT_INIT > WAIT_MAX) begin : g_check
    $error("fade1_desc_manager: expected 2^UNIT_BITS <= WAIT_MIN <= WAIT_INIT <= WAIT_MAX");
  end

  typedef logic [PTR_BITS-1:0] ptr_t;
  typedef logic [STAMP_BITS-1:0] stamp_t;

  // Descriptors
  localparam int DESCRIPTOR_BITS = 16 + 1 + 1 + STAMP_BITS;
  logic [DESCRIPTOR_BITS-1:0] descriptors [2**SLOT_BITS];
  logic [DESCRIPTOR_BITS-1:0] write_value;
  logic [SLOT_BITS-1:0] slot, write_slot;
  logic write_enable;
  logic [15:0] d_set;
  logic d_confirmed, d_overdue;
  stamp_t d_sent;

  assign {d_set, d_confirmed, d_overdue, d_sent} = descriptors[slot];
  always_ff @(posedge clk) if (write_enable) descriptors[write_slot] <= write_value;

  // The number of the next fresh packet: set and place. The tail needs its place alone.
  logic [NUMBER_BITS-1:0] fresh;
  ptr_t tail, fresh_ptr, in_flight, walk, next_ptr;
  logic next_fresh, tail_may_move;
  assign fresh_ptr = fresh[SLOT_BITS:0];
  assign in_flight = fresh_ptr - tail;

  logic stall, do_tail, do_ack, do_walk;
  assign stall = next_lock || next_take;
  assign do_tail = !stall && tail_may_move;
  assign do_ack = !stall && !tail_may_move && ack_valid;
  assign do_walk = !stall && !tail_may_move && !ack_valid && in_flight != '0;
  assign ack_ready = do_ack;

  // What an ACK names: a packet under way, one not sent yet, or one of the past.
  logic [  SLOT_BITS-1:0] ack_ahead;
  logic [NUMBER_BITS-1:0] ack_beyond;
  logic ack_numbered, ack_hits, ack_not_sent;
  assign ack_numbered = ack_packet[5:SLOT_BITS] == '0;
  assign ack_ahead = ack_packet[SLOT_BITS-1:0] - tail[SLOT_BITS-1:0];
  assign ack_hits = ack_numbered && PTR_BITS'(ack_ahead) < in_flight && d_set == ack_set;
  assign ack_beyond = {ack_set, ack_packet[SLOT_BITS-1:0]} - fresh;
  assign ack_not_sent = !ack_numbered || !ack_beyond[NUMBER_BITS-1];

  // Time: a packet is overdue when it has waited for the round trip and a quarter of it.
  logic [TIMER_BITS-1:0] now, round_trip, least, sample;
  logic is_overdue;
  stamp_t age, patience;
  assign age = now[TIMER_BITS-1:UNIT_BITS] - d_sent;
  assign patience = stamp_t'((round_trip + (round_trip >> 2)) >> UNIT_BITS);
  assign is_overdue = !d_confirmed && (d_overdue || age > patience);

  always_comb begin
    slot = walk[SLOT_BITS-1:0];
    if (tail_may_move) slot = tail[SLOT_BITS-1:0];
    else if (ack_valid) slot = ack_packet[SLOT_BITS-1:0];
    write_slot   = slot;
    write_value  = {d_set, d_confirmed, d_overdue, d_sent};
    write_enable = 1'b0;
    if (next_take) begin
      write_slot   = next_ptr[SLOT_BITS-1:0];
      write_value  = {next_set, 1'b0, 1'b0, now[TIMER_BITS-1:UNIT_BITS]};
      write_enable = 1'b1;
    end else if (do_ack && ack_hits) begin
      write_value  = {d_set, 1'b1, d_overdue, d_sent};
      write_enable = 1'b1;
    end else if (do_walk && is_overdue) begin
      // Kept, because the time since it was sent may wrap before it is its turn.
      write_value  = {d_set, d_confirmed, 1'b1, d_sent};
      write_enable = 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    event_confirmed <= do_ack && ack_hits && !d_confirmed;
    event_protocol_error <= do_ack && !ack_hits && ack_not_sent;
    event_stale <= do_ack && (ack_hits ? d_confirmed : !ack_not_sent);

    if (do_ack && ack_hits) begin
      tail_may_move <= 1'b1;
      if (next_again && next_packet == ack_packet[SLOT_BITS-1:0]) next_valid <= 1'b0;
    end
    if (do_tail) begin
      if (in_flight != '0 && d_confirmed) tail <= tail + 1'b1;
      else tail_may_move <= 1'b0;
    end

    // The scan goes on while a fresh packet is on offer, and takes its place.
    if (do_walk) begin
      walk <= walk + 1'b1 == fresh_ptr || walk - tail >= in_flight ? tail : walk + 1'b1;
      if (is_overdue && walk - tail < in_flight && !(next_valid && next_again)) begin
        next_valid <= 1'b1;
        next_again <= 1'b1;
        next_fresh <= 1'b0;
        next_ptr   <= walk;
        next_set   <= d_set;
      end
    end
    if (!stall && !next_valid && fresh_ptr != head && !(do_walk && is_overdue)) begin
      next_valid <= 1'b1;
      next_again <= 1'b0;
      next_fresh <= 1'b1;
      next_ptr   <= fresh_ptr;
      next_set   <= fresh[NUMBER_BITS-1:SLOT_BITS];
    end
    if (next_take) begin
      next_valid <= 1'b0;
      if (next_fresh) fresh <= fresh + 1'b1;
    end

    if (rst || !session) begin
      tail <= {first_set[0], SLOT_BITS'(0)};
      walk <= {first_set[0], SLOT_BITS'(0)};
      fresh <= {first_set, SLOT_BITS'(0)};
      next_valid <= 1'b0;
      next_again <= 1'b0;
      tail_may_move <= 1'b0;
    end
  end

  assign next_packet   = next_ptr[SLOT_BITS-1:0];
  assign next_last     = last && next_ptr == last_packet;
  assign all_confirmed = tail == head && !next_valid;
  always_ff @(posedge clk) tail_gray <= tail ^ (tail >> 1);

  // The round trip: the time from a fresh packet to its ACK. The estimate follows growth at once and
  // shrinks by a quarter. A packet that was sent twice measures nothing (Karn): its ACK may answer the
  // first. One of them was lost, but when two in a row measure nothing the estimate may be too short
  // and doubles. `queued`: the last round trip took a quarter longer than the best, so frames wait
  // somewhere on their way.
  logic sampling, suspect;
  logic [SLOT_BITS-1:0] sample_slot;
  localparam logic [TIMER_BITS-1:0] LONGEST = TIMER_BITS'(WAIT_MAX);
  localparam logic [TIMER_BITS-1:0] SHORTEST = TIMER_BITS'(WAIT_MIN);

  always_ff @(posedge clk) begin
    now <= now + 1'b1;
    if (sampling && sample < LONGEST) sample <= sample + 1'b1;
    if (next_take && next_fresh && !sampling) begin
      sampling <= 1'b1;
      sample <= SHORTEST;
      sample_slot <= next_packet;
    end else if (sampling && next_take && next_packet == sample_slot) begin
      sampling <= 1'b0;
      suspect  <= !suspect;
      if (suspect) round_trip <= round_trip < LONGEST >> 1 ? round_trip << 1 : LONGEST;
    end else if (sampling && do_ack && ack_hits && ack_packet[SLOT_BITS-1:0] == sample_slot) begin
      sampling   <= 1'b0;
      suspect    <= 1'b0;
      round_trip <= sample > round_trip ? sample : round_trip - (round_trip >> 2) + (sample >> 2);
      if (sample < least) least <= sample;
      queued <= sample > least + (least >> 2);
    end
    if (rst || !session) begin
      round_trip <= TIMER_BITS'(WAIT_INIT);
      least      <= LONGEST;
      queued     <= 1'b0;
      sampling   <= 1'b0;
      suspect    <= 1'b0;
    end
    if (rst) now <= '0;
  end
endmodule
