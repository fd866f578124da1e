// Bounded proof of the descriptor manager of FADE-10G: whatever the writer, the receiver and the sender do, no
// packet leaves the buffer without its ACK, none outside the window is sent, and what waits is offered in time.
//
//   free inputs ==> neighbours ==> fade10g_desc_manager ==> assertions
//
// Run by tests/rtl/test_formal.py. `watched` is any of the first packets: the solver picks it. With ONLY_OFFERED the time
// until an offer is all that is proved: ticks and ACKs take the manager from it, so it depends on how often they come.
module desc_manager_proof #(
    parameter int SLOT_BITS = 1,
    parameter int PATIENCE = 30,
    parameter int ONLY_OFFERED = 0,
    parameter int TICK = 8,  // clocks
    parameter int ACK_PAUSE = 3,  // clocks from one ACK's end to the next one
    parameter int READ_CLOCKS = 1  // from ack_bits to what it asks for
) (
    input logic       clk,
    input logic [1:0] watched,
    input logic       fill,
    input logic       ack,
    input logic       ack_is_negative,
    input logic [1:0] ack_of_sequence,
    input logic [1:0] ack_of_packet,
    input logic       ack_of_stored,
    input logic       ack_of_block,
    input logic [1:0] rubbish,
    input logic       start,
    input logic       take,
    input logic       leave
);
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam int SLOTS = 1 << SLOT_BITS;

  // Three clocks of reset: tail_gray is one behind, and tail_before another.
  logic [1:0] reset_left = 2'd3;
  logic rst;
  assign rst = reset_left != 2'd0;
  always_ff @(posedge clk) if (rst) reset_left <= reset_left - 2'd1;

  // The writer: one packet more when there is room.
  logic [PTR_BITS-1:0] head = '0;
  logic [PTR_BITS-1:0] tail_gray, tail;
  assign tail = tail_gray ^ (tail_gray >> 1);  // Gray code of two bits
  always_ff @(posedge clk) if (fill && !rst && head - tail != PTR_BITS'(SLOTS)) head <= head + 1'b1;

  // The sender: locks what is on offer, looks again, takes it later.
  logic locked = 1'b0, next_take = 1'b0;
  logic [1:0] lock_clocks = '0;  // stops at 3
  logic next_valid, next_last, next_again, ack_ready, all_confirmed, queued;
  logic [31:0] next_packet;
  logic [SLOT_BITS-1:0] next_slot;
  logic [15:0] next_sequence;
  logic frame_done;
  assign frame_done = locked && lock_clocks == 2'd3 && take;
  always_ff @(posedge clk) begin
    next_take <= frame_done;
    if (!locked) locked <= start && next_valid && !rst && !sending;
    else if (frame_done || (lock_clocks == 2'd0 && !next_valid)) locked <= 1'b0;
    lock_clocks <= !locked ? 2'd0 : lock_clocks == 2'd3 ? 2'd3 : lock_clocks + 2'd1;
  end

  // Then it reads the data, and locks another packet when it has done so.
  logic sending = 1'b0, sending_done = 1'b0;
  logic [PTR_BITS-1:0] sending_packet;
  always_ff @(posedge clk) begin
    sending_done <= sending && leave;
    if (frame_done) begin
      sending <= 1'b1;
      sending_packet <= PTR_BITS'(next_packet);
    end else if (leave) sending <= 1'b0;
  end

  // The command processor: an ACK stands still until it is done. The next one comes ACK_PAUSE clocks later or more.
  logic ack_valid = 1'b0;
  logic ack_negative, ack_stored, ack_is_block, ack_bits;
  logic [1:0] bits_asked = '0;  // one clock ago, two
  logic bits_here;
  logic [1:0] ack_sequence, ack_packet;
  logic [2:0] ack_pause;
  assign bits_here = bits_asked[READ_CLOCKS-1];
  always_ff @(posedge clk) bits_asked <= {bits_asked[0], ack_bits};
  always_ff @(posedge clk) begin
    if (ack_pause != 3'd0) ack_pause <= ack_pause - 3'd1;
    if (!ack_valid && ack_pause == 3'd0) begin
      ack_valid <= ack && !rst;
      ack_negative <= ack_is_negative;
      ack_sequence <= ack_of_sequence;
      ack_packet <= ack_of_packet;
      ack_stored <= ack_of_stored;
      ack_is_block <= ack_of_block;
    end
    if (ack_ready) begin
      ack_valid <= 1'b0;
      ack_pause <= 3'(ACK_PAUSE);
    end
    if (rst) ack_pause <= 3'd0;
  end

  logic event_confirmed, event_early, event_protocol_error, event_stale;

  fade10g_desc_manager #(
      .SLOT_BITS(SLOT_BITS),
      .UNIT_BITS(3),
      .TICK_MIN (TICK),
      .TICK_INIT(TICK),
      .TICK_MAX (2 * TICK)
  ) dut (
      .clk                 (clk),
      .rst                 (rst),
      .session             (1'b1),
      .first_packet        (32'd0),
      .first_sequence      (16'd0),
      .head                (head),
      .closed              (1'b0),
      .tail_gray           (tail_gray),
      .all_confirmed       (all_confirmed),
      .queued              (queued),
      .ack_valid           (ack_valid),
      .ack_ready           (ack_ready),
      .ack_negative        (ack_negative),
      .ack_sequence        (bits_here ? {14'd0, rubbish} : 16'(ack_sequence)),
      .ack_packet          (bits_here ? {30'd0, rubbish} : 32'(ack_packet)),
      .ack_bits            (ack_bits),
      .ack_block           (bits_here ? ack_is_block : rubbish[0]),
      .ack_stored          (bits_here ? {63'd0, ack_stored} : {62'd0, rubbish}),
      .next_valid          (next_valid),
      .next_packet         (next_packet),
      .next_slot           (next_slot),
      .next_sequence       (next_sequence),
      .next_last           (next_last),
      .next_again          (next_again),
      .next_lock           (locked),
      .next_take           (next_take),
      .sending             (sending),
      .sending_slot        (sending_packet[SLOT_BITS-1:0]),
      .sending_done        (sending_done),
      .event_confirmed     (event_confirmed),
      .event_early         (event_early),
      .event_protocol_error(event_protocol_error),
      .event_stale         (event_stale)
  );

  // What has happened to each of the first packets; the proof is shorter than a turn of the numbers.
  logic [3:0] was_sent = '0, was_acked = '0;
  logic [2:0] confirmed = '0;  // as the manager counts
  logic [PTR_BITS-1:0] tail_before = '0;
  logic [2:0] left = '0;  // packets that left, stops at 7
  logic [15:0] sent_frames = '0;
  logic [31:0] packet_before = '0;
  logic [PTR_BITS-1:0] fresh = '0;
  logic [7:0] idle_clocks = '0;
  logic [3:0] acked_clocks = '0;
  logic in_header, header_before = 1'b0;
  assign in_header = locked && lock_clocks >= 2'd2;
  always_ff @(posedge clk) begin
    tail_before <= tail;
    if (!rst && tail != tail_before && left != 3'd7) left <= left + 3'd1;
    header_before <= in_header && !frame_done;
    packet_before <= next_packet;
    if (frame_done) begin
      sent_frames <= sent_frames + 16'd1;
      if (!next_again) fresh <= fresh + 1'b1;
      if (next_packet < 32'd4) was_sent[next_packet[1:0]] <= 1'b1;
    end
    if (ack_ready && ack_valid && !ack_negative && was_sent[ack_packet])
      was_acked <= was_acked | (4'b1 << ack_packet)
          | (ack_stored && ack_is_block && ack_packet != 2'd0 ? 4'b1 << (ack_packet - 2'd1) : 4'd0);
    if (event_confirmed && !rst) confirmed <= confirmed + 3'd1;
    // Something was never sent, and the sender has nothing.
    idle_clocks <= rst || fresh == head || next_valid || locked || next_take ? '0 : idle_clocks + 8'd1;
    acked_clocks <= rst || left >= 3'd4 || !was_acked[left[1:0]] || locked || sending ? '0 : acked_clocks == '1 ? '1 : acked_clocks + 4'd1;
  end

  always_comb begin
    // Nothing waits for ever: what was not sent is offered, and the tail moves over what is confirmed.
    if (!rst) a_offered : assert (idle_clocks < 8'(PATIENCE));
    if (!rst && ONLY_OFFERED == 0) begin
      // A packet leaves only when its ACK has come, and the tail moves one by one.
      a_confirmed : assert (left <= 3'(watched) || was_acked[watched]);
      // Each is confirmed once, by its own ACK or by the bit of another.
      if (!ack_valid && ack_pause < 3'(ACK_PAUSE))
        a_counted :
        assert (confirmed == 3'(was_acked[0]) + 3'(was_acked[1]) + 3'(was_acked[2]) + 3'(was_acked[3]));
      a_tail_steps : assert (tail == tail_before || tail == tail_before + 1'b1);
      // What goes out lies in the window; a fresh one was never sent, another was; none that is confirmed goes again.
      if (in_header) begin
        a_valid : assert (next_valid);
        a_in_window : assert (PTR_BITS'(next_packet) - tail < head - tail);
        a_slot : assert (next_slot == next_packet[SLOT_BITS-1:0]);
        a_again : assert (next_packet >= 32'd4 || was_sent[next_packet[1:0]] == next_again);
        a_unconfirmed : assert (next_packet >= 32'd4 || !was_acked[next_packet[1:0]]);
        a_sequence : assert (next_sequence == sent_frames);
      end
      // The header does not change while it goes out.
      if (header_before) a_locked : assert (next_packet == packet_before);
      // Its place is not free before it has left.
      if (sending) a_read : assert (PTR_BITS'(sending_packet - tail) < PTR_BITS'(head - tail));
      a_tail_moves : assert (acked_clocks < 4'd15);
    end
  end

  logic unused;
  assign unused = &{1'b0, next_last, all_confirmed, queued, event_early, event_protocol_error,
                    event_stale};
endmodule
