// Bounded proof of the descriptor manager: whatever the writer, the receiver and the sender do, no
// packet leaves the buffer without its ACK and none outside the window is offered.
//
//   free inputs ==> assumptions ==> fade10g_desc_manager ==> assertions
//
// Run by tests/rtl/test_formal.py with Yosys's own solver. `watched` is any packet: the solver picks it.
module desc_manager_proof #(
    parameter int SLOT_BITS = 1
) (
    input logic       clk,
    input logic [1:0] watched,
    input logic       fill,
    input logic       ack_valid,
    input logic       ack_negative,
    input logic [1:0] ack_sequence,
    input logic [1:0] ack_packet,
    input logic       start,
    input logic       take
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

  // The sender: locks what is on offer, takes it later.
  logic locked = 1'b0;
  logic next_valid, next_last, next_again, next_lock, next_take, ack_ready, all_confirmed, queued;
  logic [31:0] next_packet;
  logic [15:0] next_sequence;
  assign next_lock = locked || (start && next_valid && !rst);
  assign next_take = locked && take;
  always_ff @(posedge clk) locked <= next_lock && !next_take;

  logic event_confirmed, event_early, event_protocol_error, event_stale;

  fade10g_desc_manager #(
      .SLOT_BITS(SLOT_BITS),
      .TICK_MIN (2),
      .TICK_INIT(2),
      .TICK_MAX (4)
  ) dut (
      .clk                 (clk),
      .rst                 (rst),
      .session             (1'b1),
      .first_packet        (32'd0),
      .first_sequence      (16'd0),
      .head                (head),
      .last                (1'b0),
      .last_packet         ('0),
      .tail_gray           (tail_gray),
      .all_confirmed       (all_confirmed),
      .queued              (queued),
      .ack_valid           (ack_valid && !rst),
      .ack_ready           (ack_ready),
      .ack_negative        (ack_negative),
      .ack_sequence        (16'(ack_sequence)),
      .ack_packet          (32'(ack_packet)),
      .next_valid          (next_valid),
      .next_packet         (next_packet),
      .next_sequence       (next_sequence),
      .next_last           (next_last),
      .next_again          (next_again),
      .next_lock           (next_lock),
      .next_take           (next_take),
      .event_confirmed     (event_confirmed),
      .event_early         (event_early),
      .event_protocol_error(event_protocol_error),
      .event_stale         (event_stale)
  );

  // What has happened to each of the first packets; the proof is shorter than a turn of the numbers.
  logic [3:0] was_sent = '0, was_acked = '0;
  logic [PTR_BITS-1:0] tail_before = '0;
  logic [2:0] left = '0;  // packets that left, stops at 7
  logic locked_before = 1'b0;
  logic [31:0] packet_before = '0;
  logic [15:0] sequence_before = '0;
  logic [31:0] sent_frames = '0;
  always_ff @(posedge clk) begin
    tail_before <= tail;
    if (!rst && tail != tail_before && left != 3'd7) left <= left + 3'd1;
    locked_before   <= next_lock && !next_take;
    packet_before   <= next_packet;
    sequence_before <= next_sequence;
    if (next_take) begin
      sent_frames <= sent_frames + 32'd1;
      if (next_packet < 32'd4) was_sent[next_packet[1:0]] <= 1'b1;
    end
    if (ack_ready && ack_valid && !ack_negative && was_sent[ack_packet])
      was_acked[ack_packet] <= 1'b1;
  end

  always_comb begin
    if (!rst) begin
      // A packet leaves only when its ACK has come, and the tail moves one by one.
      a_confirmed : assert (left <= 3'(watched) || was_acked[watched]);
      a_tail_steps : assert (tail == tail_before || tail == tail_before + 1'b1);
      // What is on offer lies in the window; a fresh one was never sent, another was.
      if (next_valid) begin
        a_in_window : assert (PTR_BITS'(next_packet) - tail < head - tail);
        a_again : assert (next_packet >= 32'd4 || was_sent[next_packet[1:0]] == next_again);
      end
      // Sequence numbers count the frames.
      a_sequence : assert (next_sequence == sent_frames[15:0]);
      // The header does not change while it goes out.
      if (locked_before) begin
        a_locked :
        assert (next_valid && next_packet == packet_before && next_sequence == sequence_before);
      end
    end
  end

  logic unused;
  assign unused = &{1'b0, next_last, all_confirmed, queued, event_confirmed, event_early,
                    event_protocol_error, event_stale};
endmodule
