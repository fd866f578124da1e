// Bounded proof of the descriptor manager of FADE v1, as desc_manager_proof.sv; with sets of two packets, so that a
// solver can follow.
//
//   free inputs ==> assumptions ==> fade1_desc_manager ==> assertions
module fade1_desc_manager_proof (
    input logic       clk,
    input logic [1:0] watched,
    input logic       fill,
    input logic       ack_valid,
    input logic [1:0] ack_packet,
    input logic       start,
    input logic       take
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

  // The sender: locks what is on offer, takes it later.
  logic locked = 1'b0;
  logic next_valid, next_last, next_again, next_lock, next_take, ack_ready, all_confirmed, queued;
  logic [15:0] next_set;
  logic [SLOT_BITS-1:0] next_slot;
  logic [31:0] next_packet;  // since the start
  assign next_packet = 32'({next_set, next_slot});
  assign next_lock   = locked || (start && next_valid && !rst);
  assign next_take   = locked && take;
  always_ff @(posedge clk) locked <= next_lock && !next_take;

  logic event_confirmed, event_protocol_error, event_stale;

  fade1_desc_manager #(
      .WAIT_MIN (2),
      .WAIT_INIT(2),
      .WAIT_MAX (4),
      .UNIT_BITS(0)
  ) dut (
      .clk                 (clk),
      .rst                 (rst),
      .session             (1'b1),
      .first_set           (16'd0),
      .head                (head),
      .last                (1'b0),
      .last_packet         ('0),
      .tail_gray           (tail_gray),
      .all_confirmed       (all_confirmed),
      .queued              (queued),
      .ack_valid           (ack_valid && !rst),
      .ack_ready           (ack_ready),
      .ack_set             (16'(ack_packet[1])),
      .ack_packet          (6'(ack_packet[0])),
      .next_valid          (next_valid),
      .next_set            (next_set),
      .next_packet         (next_slot),
      .next_last           (next_last),
      .next_again          (next_again),
      .next_lock           (next_lock),
      .next_take           (next_take),
      .event_confirmed     (event_confirmed),
      .event_protocol_error(event_protocol_error),
      .event_stale         (event_stale)
  );

  // What has happened to each of the first packets; the proof is shorter than a turn of the numbers.
  logic [3:0] was_sent = '0, was_acked = '0;
  logic [PTR_BITS-1:0] tail_before = '0;
  logic [2:0] left = '0;  // packets that left, stops at 7
  logic locked_before = 1'b0;
  logic [31:0] packet_before = '0;
  always_ff @(posedge clk) begin
    tail_before <= tail;
    if (!rst && tail != tail_before && left != 3'd7) left <= left + 3'd1;
    locked_before <= next_lock && !next_take;
    packet_before <= next_packet;
    if (next_take && next_packet < 32'd4) was_sent[next_packet[1:0]] <= 1'b1;
    if (ack_ready && ack_valid && was_sent[ack_packet]) was_acked[ack_packet] <= 1'b1;
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
      // The header does not change while it goes out.
      if (locked_before) a_locked : assert (next_valid && next_packet == packet_before);
    end
  end

  logic unused;
  assign unused = &{1'b0, next_last, all_confirmed, queued, event_confirmed, event_protocol_error,
                    event_stale};
endmodule
