// Bounded proof of the descriptor manager of FADE v1, as desc_manager_proof.sv; with sets of two packets, so that a
// solver can follow.
//
//   free inputs ==> neighbours ==> fade1_desc_manager ==> assertions
//
// Run by tests/rtl/test_formal.py. `watched` is any of the first packets: the solver picks it.
module fade1_desc_manager_proof #(
    parameter int PATIENCE = 30,
    parameter int READ_CLOCKS = 1  // of the bits of a block ACK, behind ack_bits
) (
    input logic       clk,
    input logic [1:0] watched,
    input logic       fill,
    input logic       ack,
    input logic [1:0] ack_of_packet,
    input logic [1:0] ack_of_stored,
    input logic       ack_of_block,
    input logic [1:0] rubbish,
    input logic       start,
    input logic       take,
    input logic       leave
);
  localparam int SLOT_BITS = fade1_pkg::SLOT_BITS;
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
  logic [15:0] next_set;
  logic [SLOT_BITS-1:0] next_slot;
  logic [31:0] next_packet;  // since the start
  assign next_packet = 32'({next_set, next_slot});
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

  // The command processor: an ACK stands still until it is done. The next one comes four clocks later or more, as on a full line.
  logic ack_valid = 1'b0;
  logic [1:0] ack_packet, ack_pause, ack_stored;
  logic ack_is_block, ack_bits, bits_here;
  logic [1:0] bits_asked = '0;  // one clock ago, two
  assign bits_here = bits_asked[READ_CLOCKS-1];
  always_ff @(posedge clk) bits_asked <= {bits_asked[0], ack_bits};
  always_ff @(posedge clk) begin
    if (ack_pause != 2'd0) ack_pause <= ack_pause - 2'd1;
    if (!ack_valid && ack_pause == 2'd0) begin
      ack_valid <= ack && !rst;
      ack_packet <= ack_of_packet;
      ack_stored <= ack_of_stored;
      ack_is_block <= ack_of_block;
    end
    if (ack_ready) begin
      ack_valid <= 1'b0;
      ack_pause <= 2'd3;
    end
    if (rst) ack_pause <= 2'd0;
  end

  logic event_confirmed, event_protocol_error, event_stale;

  fade1_desc_manager #(
      .WAIT_MIN (8),
      .WAIT_INIT(8),
      .WAIT_MAX (16),
      .UNIT_BITS(3)
  ) dut (
      .clk                 (clk),
      .rst                 (rst),
      .session             (1'b1),
      .first_set           (16'd0),
      .head                (head),
      .closed              (1'b0),
      .tail_gray           (tail_gray),
      .all_confirmed       (all_confirmed),
      .queued              (queued),
      .ack_valid           (ack_valid),
      .ack_ready           (ack_ready),
      .ack_set             (bits_here ? 16'(rubbish[1]) : 16'(ack_packet[1])),
      .ack_packet          (bits_here ? 6'(rubbish[0]) : 6'(ack_packet[0])),
      .ack_bits            (ack_bits),
      .ack_block           (bits_here ? ack_is_block : rubbish[0]),
      .ack_stored          (bits_here ? ack_stored : rubbish),
      .next_valid          (next_valid),
      .next_set            (next_set),
      .next_packet         (next_slot),
      .next_last           (next_last),
      .next_again          (next_again),
      .next_lock           (locked),
      .next_take           (next_take),
      .sending             (sending),
      .sending_slot        (sending_packet[SLOT_BITS-1:0]),
      .sending_done        (sending_done),
      .event_confirmed     (event_confirmed),
      .event_protocol_error(event_protocol_error),
      .event_stale         (event_stale)
  );

  // What has happened to each of the first packets; the proof is shorter than a turn of the numbers.
  logic [3:0] was_sent = '0, was_acked = '0;
  logic [2:0] confirmed = '0;  // as the manager counts
  logic [PTR_BITS-1:0] tail_before = '0;
  logic [2:0] left = '0;  // packets that left, stops at 7
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
      if (!next_again) fresh <= fresh + 1'b1;
      if (next_packet < 32'd4) was_sent[next_packet[1:0]] <= 1'b1;
    end
    // Only the packet before the one that is named can be in flight with it.
    if (ack_ready && ack_valid && was_sent[ack_packet])
      was_acked <= was_acked | (4'b1 << ack_packet)
          | (ack_stored[0] && ack_is_block && ack_packet != 2'd0 ? 4'b1 << (ack_packet - 2'd1) : 4'd0);
    if (event_confirmed && !rst) confirmed <= confirmed + 3'd1;
    // Something was never sent, and the sender has nothing.
    idle_clocks <= rst || fresh == head || next_valid || locked || next_take ? '0 : idle_clocks + 8'd1;
    acked_clocks <= rst || left >= 3'd4 || !was_acked[left[1:0]] || locked || sending ? '0 : acked_clocks == '1 ? '1 : acked_clocks + 4'd1;
  end

  always_comb begin
    if (!rst) begin
      // A packet leaves only when its ACK has come, and the tail moves one by one.
      a_confirmed : assert (left <= 3'(watched) || was_acked[watched]);
      // Each is confirmed once, by its own ACK or by the bit of another.
      if (!ack_valid && ack_pause != 2'd3)
        a_counted :
        assert (confirmed == 3'(was_acked[0]) + 3'(was_acked[1]) + 3'(was_acked[2]) + 3'(was_acked[3]));
      a_tail_steps : assert (tail == tail_before || tail == tail_before + 1'b1);
      // What goes out lies in the window; a fresh one was never sent, another was; none that is confirmed goes again.
      if (in_header) begin
        a_valid : assert (next_valid);
        a_in_window : assert (PTR_BITS'(next_packet) - tail < head - tail);
        a_again : assert (next_packet >= 32'd4 || was_sent[next_packet[1:0]] == next_again);
        a_unconfirmed : assert (next_packet >= 32'd4 || !was_acked[next_packet[1:0]]);
      end
      // The header does not change while it goes out.
      if (header_before) a_locked : assert (next_packet == packet_before);
      // Nothing waits for ever: what was not sent is offered, and the tail moves over what is confirmed.
      a_offered : assert (idle_clocks < 8'(PATIENCE));
      // Its place is not free before it has left.
      if (sending) a_read : assert (PTR_BITS'(sending_packet - tail) < PTR_BITS'(head - tail));
      a_tail_moves : assert (acked_clocks < 4'd15);
    end
  end

  logic unused;
  assign unused = &{1'b0, next_last, all_confirmed, queued, event_protocol_error, event_stale};
endmodule
