// SPDX-License-Identifier: Apache-2.0
//
// Queue of the hits of one channel; it counts the hits for which there is no room.
//
//              +----------------+
//   s_* ======>|                |====> m_* (first word falls through)
//   s_valid -->| fadc_hit_queue |----> m_valid
//              |                |<---- m_ready
//              +----------------+
//
// The channel never waits. The last slot is not for hits: the first hit that finds no other slot sets it to `m_lost` = 1,
// and each further one adds 1 until the slot is read.
`default_nettype none
module fadc_hit_queue #(
    parameter int DEPTH = 4
) (
    input  logic                                   clk,
    input  logic                                   rst,
    input  logic                                   s_valid,
    input  logic signed [                    16:0] s_sum,
    input  logic        [                    13:0] s_tick,
    input  logic        [fadc_pkg::FRAME_BITS-1:0] s_frame,
    output logic                                   m_valid,
    input  logic                                   m_ready,
    output logic signed [                    16:0] m_sum,
    output logic        [                    13:0] m_tick,
    output logic        [fadc_pkg::FRAME_BITS-1:0] m_frame,
    output logic        [ fadc_pkg::LOST_BITS-1:0] m_lost
);
  localparam int AW = $clog2(DEPTH);
  localparam int WIDTH = fadc_pkg::FRAME_BITS + 14 + 17;

  if (DEPTH < 4 || DEPTH != 2 ** AW) begin : g_check
    $error("fadc_hit_queue: DEPTH must be a power of two and at least 4");
  end

  logic [WIDTH-1:0] memory[DEPTH];
  logic [AW:0] head, tail, used;
  logic [fadc_pkg::LOST_BITS-1:0] lost;
  logic accept, open_lost, push, mark;

  assign used = head - tail;
  assign mark = used == (AW + 1)'(1) && lost != '0;
  // No hit may stand behind the place of the lost ones.
  assign accept = (used < (AW + 1)'(DEPTH - 1) && lost == '0) || (mark && m_ready);
  assign open_lost = lost == '0 && !accept;
  assign push = s_valid && (accept || open_lost);
  assign m_valid = used != '0;
  assign {m_frame, m_tick, m_sum} = memory[tail[AW-1:0]];
  assign m_lost = mark ? lost : '0;

  always_ff @(posedge clk) begin
    if (push) memory[head[AW-1:0]] <= {s_frame, s_tick, s_sum};
    if (rst) begin
      head <= '0;
      tail <= '0;
      lost <= '0;
    end else begin
      if (push) head <= head + 1'b1;
      if (m_valid && m_ready) tail <= tail + 1'b1;
      if (s_valid && open_lost) lost <= fadc_pkg::LOST_BITS'(1);
      else if (mark && m_ready) lost <= '0;
      else if (s_valid && lost != '0 && lost != fadc_pkg::LOST_MAX) lost <= lost + 1'b1;
    end
  end
endmodule
`default_nettype wire
