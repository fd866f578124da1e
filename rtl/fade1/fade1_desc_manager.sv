// SPDX-License-Identifier: Apache-2.0
//
// Descriptor manager: stores the state of each packet in the buffer and chooses the next one to send
// (transmit clock; docs/protocol/fade1.md).
//
//               +--------------------+
//   ack_* =====>|                    |====> next_* (the packet to send)
//   head ======>| fade1_desc_manager |<---- next_lock, next_take
//   closed ---->|                    |====> tail_gray
//   session --->|                    |----> all_confirmed, queued, event_*
//               +--------------------+
//
// The buffer has as many slots as a set has packets: the slot of a packet is its number in its set. When the first packets of a
// set are confirmed, packets of the next set use their slots; so packets of at most two consecutive sets are in flight. Set and
// slot together are the number of the packet, which is not stored: it is the number of the tail plus the distance to it.
//
// The window is [tail, head); [tail, fresh) has been sent at least once. A descriptor is read in one clock and judged and
// written in another: that of a packet that an ACK names, of the tail, or of the next slot of the cyclic
// walk. The walk finds packets whose confirmation is overdue, by a little more than the measured
// round trip, and offers them before fresh ones, so that a lost packet does not stop the window. While a packet is locked
// nothing moves: a descriptor that was read and not judged is read again afterwards, because next_take may have changed it.
//
// A packet that is confirmed while it is sent again stays in the buffer until its frame has left: the tail waits there. So the
// words of a frame never change.
`default_nettype none
module fade1_desc_manager #(
    parameter int WAIT_MIN = 256,  // clocks
    parameter int WAIT_INIT = 65536,  // clocks, until the round trip is known
    parameter int WAIT_MAX = 1048576,  // clocks
    parameter int UNIT_BITS = 6  // times are kept in units of 2^UNIT_BITS clocks
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic                              session,
    input  logic [                      15:0] first_set,
    // packets finished by the writer
    input  logic [    fade1_pkg::SLOT_BITS:0] head,
    input  logic                              closed,
    output logic [    fade1_pkg::SLOT_BITS:0] tail_gray,
    output logic                              all_confirmed,
    output logic                              queued,
    // from the receiver: stands still until ack_ready; while ack_bits is high ack_stored takes the place of the others: bit i
    // tells that the packet 1 + i before the one that the ACK names is stored, too, if ack_block is high
    input  logic                              ack_valid,
    output logic                              ack_ready,
    input  logic [                      15:0] ack_set,
    input  logic [                       5:0] ack_packet,
    output logic                              ack_bits,
    input  logic [fade1_pkg::SET_PACKETS-1:0] ack_stored,
    input  logic                              ack_block,
    // to the sender: stable while next_lock is high, its number from the third clock on; next_take tells that its header is
    // out
    output logic                              next_valid,
    output logic [                      15:0] next_set,
    output logic [  fade1_pkg::SLOT_BITS-1:0] next_packet,
    output logic                              next_last,
    output logic                              next_again,
    input  logic                              next_lock,
    input  logic                              next_take,
    // from then on its data is read, until sending_done
    input  logic                              sending,
    input  logic [  fade1_pkg::SLOT_BITS-1:0] sending_slot,
    input  logic                              sending_done,
    // one pulse each
    output logic                              event_confirmed,
    output logic                              event_protocol_error,
    output logic                              event_stale
);
  localparam int SLOT_BITS = fade1_pkg::SLOT_BITS;
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam int NUMBER_BITS = 16 + SLOT_BITS;
  localparam int TIME_BITS = $clog2(WAIT_MAX / 2 ** UNIT_BITS);
  // Times of sending run over four times the longest wait.
  localparam int STAMP_BITS = TIME_BITS + 2;

  typedef logic [PTR_BITS-1:0] ptr_t;
  typedef logic [STAMP_BITS-1:0] stamp_t;

  // Bit 3: for an ACK; bit 2 too: for the packets before the one that it names.
  typedef enum logic [3:0] {
    IDLE = 4'b0000,
    TAIL_READ = 4'b0001,  // the tail moves over what is confirmed
    TAIL_JUDGE = 4'b0010,
    WALK_READ = 4'b0100,
    WALK_COMPARE = 4'b0101,
    WALK_JUDGE = 4'b0110,
    ACK_READ = 4'b1000,
    ACK_JUDGE = 4'b1001,
    BLOCK_READ = 4'b1100,
    BLOCK_JUDGE = 4'b1101
  } state_t;

  (* fsm_encoding = "none" *) state_t state;

  // ---- window --------------------------------------------------------------------------------
  logic [NUMBER_BITS-1:0] tail;
  ptr_t tail_ptr, fresh, in_flight, walk, next_ptr;
  logic has_fresh, tail_may_move, walk_inside, stall, took;
  logic tail_is_read;  // stands before anything can move
  assign tail_ptr = tail[SLOT_BITS:0];
  assign stall = next_lock || next_take || took;

  always_ff @(posedge clk) begin
    took <= next_take;
    tail_is_read <= sending && sending_slot == tail_ptr[SLOT_BITS-1:0];
    in_flight <= fresh - tail_ptr;
    has_fresh <= fresh != head;
    walk_inside <= ptr_t'(walk - tail_ptr) < in_flight;
    tail_gray <= tail_ptr ^ (tail_ptr >> 1);
    all_confirmed <= tail_ptr == head && !next_valid;
  end

  // ---- descriptors ---------------------------------------------------------------------------
  // Marks and times of sending are apart: a time is written when its packet is sent.
  logic [1:0] marks[2**SLOT_BITS];
  stamp_t stamps[2**SLOT_BITS];
  stamp_t now, age;
  ptr_t at;
  logic confirmed, overdue;
  logic [1:0] mark_written;
  logic write_mark, is_late;
  logic [TIME_BITS-1:0] round_trip;

  always_ff @(posedge clk) begin
    {confirmed, overdue} <= marks[at[SLOT_BITS-1:0]];
    age <= now - stamps[at[SLOT_BITS-1:0]];
    // The round trip and a quarter of it. Kept in the mark, because the time since a packet was sent may wrap.
    is_late <= overdue || age > stamp_t'(round_trip) + (stamp_t'(round_trip) >> 2);
    if (write_mark) marks[next_take?next_ptr[SLOT_BITS-1:0] : at[SLOT_BITS-1:0]] <= mark_written;
    if (next_take) stamps[next_ptr[SLOT_BITS-1:0]] <= now;
  end

  // ---- where an acknowledged packet lies -----------------------------------------------------
  // One adder: the distance of the packet that an ACK names, or the number of the locked packet, whose lower bits its
  // pointer has.
  logic [NUMBER_BITS-1:0] number;
  logic next_wraps, ack_numbered, ack_in_window, ack_behind_tail, ack_old;
  always_ff @(posedge clk) begin
    next_wraps <= next_ptr < tail_ptr;
    if (stall)
      number <= {tail[NUMBER_BITS-1:PTR_BITS] + (NUMBER_BITS - PTR_BITS)'(next_wraps), next_ptr};
    else number <= {ack_set, ack_packet[SLOT_BITS-1:0]} - tail;
    ack_numbered <= ack_packet[5:SLOT_BITS] == '0;
    ack_in_window <= number[NUMBER_BITS-1:PTR_BITS] == '0 && number[PTR_BITS-1:0] < in_flight && ack_numbered;
  end
  assign ack_behind_tail = number[PTR_BITS-1:0] != '0;
  assign ack_old = number[NUMBER_BITS-1] && ack_numbered;

  // ---- what is judged ------------------------------------------------------------------------
  // The packets before the one that an ACK names are looked at from the tail on, if it is a block ACK.
  logic judge_ack, ack_counts, judge_bit, last_bit, stored, confirms, is_overdue;
  logic [SLOT_BITS-1:0] left;  // packets before it that are to be looked at
  assign ack_bits   = state[3];
  assign judge_ack  = state == ACK_JUDGE && !stall;
  assign judge_bit  = state == BLOCK_JUDGE && !stall;
  assign last_bit   = left == SLOT_BITS'(1) || !ack_block;
  assign ack_counts = judge_ack && ack_in_window;
  assign confirms   = judge_bit && stored;
  assign is_overdue = state == WALK_JUDGE && !stall && !confirmed && is_late;
  assign ack_ready  = (judge_ack && !(ack_in_window && ack_behind_tail)) || (judge_bit && last_bit);

  assign write_mark = next_take || ack_counts || confirms || is_overdue;
  always_comb begin
    mark_written = '0;
    if (!next_take) mark_written = {ack_counts || confirms, overdue || is_overdue};
  end

  always_ff @(posedge clk) begin
    stored <= ack_block && ack_stored[left-1'b1];
    event_confirmed <= (ack_counts || confirms) && !confirmed;
    event_protocol_error <= judge_ack && !ack_in_window && !ack_old;
    event_stale <= judge_ack && (ack_in_window ? confirmed : ack_old);

    if (next_take) begin
      next_valid <= 1'b0;
      if (!next_again) fresh <= fresh + 1'b1;
    end

    if ((ack_counts || confirms) && next_again && next_ptr == at) next_valid <= 1'b0;

    // An ACK that was judged is not judged again: its bits are looked at from here on.
    if (stall) state <= state[3] && state[2] ? BLOCK_READ : IDLE;
    else begin
      case (state)
        IDLE: begin
          at <= tail_ptr;
          if (tail_may_move) state <= TAIL_READ;
          else if (ack_valid) begin
            at <= {ack_set[0], ack_packet[SLOT_BITS-1:0]};
            state <= ACK_READ;
          end else if (!next_valid && has_fresh) begin
            next_valid <= 1'b1;
            next_again <= 1'b0;
            next_ptr   <= fresh;
          end else if (in_flight != '0 && !(next_valid && next_again)) begin
            if (walk_inside) at <= walk;
            state <= WALK_READ;
          end
        end
        TAIL_READ: state <= TAIL_JUDGE;
        TAIL_JUDGE: begin
          if (tail_ptr != fresh && confirmed && !tail_is_read) tail <= tail + 1'b1;
          else tail_may_move <= 1'b0;
          state <= IDLE;
        end
        ACK_READ: state <= ACK_JUDGE;
        ACK_JUDGE: begin
          state <= IDLE;
          if (ack_in_window) begin
            tail_may_move <= 1'b1;
            if (!ack_behind_tail) begin
              if (!tail_is_read) tail <= tail + 1'b1;
            end else begin
              at <= tail_ptr;
              left <= number[SLOT_BITS-1:0];
              state <= BLOCK_READ;
            end
          end
        end
        BLOCK_READ: state <= BLOCK_JUDGE;
        BLOCK_JUDGE: begin
          at <= at + 1'b1;
          left <= left - 1'b1;
          state <= last_bit ? IDLE : BLOCK_READ;
        end
        WALK_READ: state <= WALK_COMPARE;
        WALK_COMPARE: state <= WALK_JUDGE;
        default: begin
          walk <= ptr_t'(at + 1'b1) == fresh ? tail_ptr : at + 1'b1;
          // It goes on while a fresh packet is on offer, and takes its place.
          if (is_overdue) begin
            next_valid <= 1'b1;
            next_again <= 1'b1;
            next_ptr   <= at;
          end
          state <= IDLE;
        end
      endcase
    end

    if (sending_done) tail_may_move <= 1'b1;

    if (rst || !session) begin
      state <= IDLE;
      at <= '0;  // a register with a reset stays in front of the memory that it addresses
      tail <= {first_set, SLOT_BITS'(0)};
      fresh <= {first_set[0], SLOT_BITS'(0)};
      walk <= {first_set[0], SLOT_BITS'(0)};
      next_valid <= 1'b0;
      next_again <= 1'b0;
      tail_may_move <= 1'b0;
    end
  end

  assign {next_set, next_packet} = number;
  assign next_last = closed && ptr_t'(next_ptr + 1'b1) == head;

  // ---- time ----------------------------------------------------------------------------------
  // A packet that was sent twice measures nothing (Karn): its ACK may answer the first. One of them was lost, but when two in
  // a row measure nothing the estimate may be too short.
  // Behind a block ACK that covered the sample the next one would always be the oldest of its batch. So it starts at an eighth
  // of the packets only: then it is the newest now and then, whose answer did not wait for others.
  logic unit, measuring, suspect, sent_again, sampled, is_sample, sample_overdue, batched;
  logic [SLOT_BITS-1:0] sample_slot;
  assign sampled    = next_take && !next_again && (!batched || 3'(next_ptr) == '0);
  assign is_sample  = at[SLOT_BITS-1:0] == sample_slot;
  assign sent_again = measuring && next_take && next_ptr[SLOT_BITS-1:0] == sample_slot;

  fade_round_trip #(
      .UNIT_BITS(UNIT_BITS),
      .SHORTEST(WAIT_MIN),
      .INITIAL(WAIT_INIT),
      .LONGEST(WAIT_MAX),
      .COVERED_SHRINKS(1'b0)
  ) time_of_frames (
      .clk       (clk),
      .rst       (rst || !session),
      .start     (sampled),
      .answered  (ack_counts && is_sample),
      .covered   (confirms && is_sample),
      .batched   (batched),
      .abandoned (sent_again),
      .lost      (sent_again && suspect),
      .unit      (unit),
      .measuring (measuring),
      .overdue   (sample_overdue),
      .round_trip(round_trip),
      .queued    (queued)
  );

  always_ff @(posedge clk) begin
    if (unit) now <= now + 1'b1;
    if (sampled && !measuring) sample_slot <= next_ptr[SLOT_BITS-1:0];
    if (sent_again) suspect <= !suspect;
    else if (measuring && (ack_counts || confirms) && is_sample) suspect <= 1'b0;
    if (rst || !session) begin
      now <= '0;
      suspect <= 1'b0;
    end
  end

  logic unused;
  assign unused = sample_overdue;
endmodule
`default_nettype wire
