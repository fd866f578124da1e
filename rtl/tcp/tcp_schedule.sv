// SPDX-License-Identifier: Apache-2.0
//
// Chooses the next event and its stream, and counts its steps (transmit clock).
//
//                   +--------------+
//   segment_* =====>|              |====> stream
//   due[] =========>| tcp_schedule |====> step (tcp_pkg)
//   moved[], tick =>|              |
//   looks ... ----->|              |
//                   +--------------+
//
// Segments have priority over timers, and timers over looks; but after a segment there is a look, if one may be. A stream is
// checked when its head has moved, after each of its events that asks for it (`again`), and in turn with the other
// streams each microsecond.
//
// `may_pick`: an event may begin. `recovers`: the stream has a position where its recovery ends, or above which its window
// may fall again (tcp_ecn). `settled`: the last step of an event may be made.
`default_nettype none
module tcp_schedule #(
    parameter int STREAMS = 1,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic                      tick,
    input  logic [       STREAMS-1:0] moved,
    input  logic                      segment_valid,
    input  logic [   STREAM_BITS-1:0] segment_stream,
    input  logic [       STREAMS-1:0] due,
    input  logic                      may_pick,
    input  logic                      may_look,
    input  logic                      again,
    input  logic                      recovers,
    input  logic                      settled,
    output logic [tcp_pkg::STEPS-1:0] step,
    output logic [   STREAM_BITS-1:0] stream
);
  logic [STREAMS-1:0] look, chosen, last;  // streams to look at
  logic [STREAM_BITS-1:0] chosen_index, due_index, tour;
  logic looks, looks_first, applies;
  assign applies = step[tcp_pkg::LOOK_APPLY] || step[tcp_pkg::SEGMENT_APPLY] || step[tcp_pkg::TIMER_APPLY];
  assign chosen = STREAMS'(link_pkg::turn(link_pkg::TURNS'(look), link_pkg::TURNS'(last)));
  assign looks = look != '0 && may_look;
  always_comb begin
    chosen_index = '0;
    for (int i = 0; i < STREAMS; i++) if (chosen[i]) chosen_index |= STREAM_BITS'(i);
    due_index = '0;
    for (int i = 0; i < STREAMS; i++) if (due[i]) due_index = STREAM_BITS'(i);
  end

  always_ff @(posedge clk) begin
    look <= look | moved;
    step <= '0;
    if (step[tcp_pkg::WIPE]) begin
      stream <= stream + 1'b1;
      if (stream == STREAM_BITS'(STREAMS - 1)) step[tcp_pkg::PICK] <= 1'b1;
      else step[tcp_pkg::WIPE] <= 1'b1;
    end
    if (step[tcp_pkg::PICK]) begin
      if (!may_pick) step[tcp_pkg::PICK] <= 1'b1;
      else if (segment_valid && !(looks_first && looks)) begin
        step[tcp_pkg::SEGMENT] <= 1'b1;
        stream <= segment_stream;
      end else if (due != '0) begin
        step[tcp_pkg::TIMER] <= 1'b1;
        stream <= due_index;
      end else if (looks) begin
        step[tcp_pkg::LOOK] <= 1'b1;
        stream <= chosen_index;
        last <= chosen;
        look <= (look & ~chosen) | moved;
      end else step[tcp_pkg::PICK] <= 1'b1;
    end
    step[tcp_pkg::LOOK_APPLY:tcp_pkg::LOOK_SECOND] <= step[tcp_pkg::LOOK_FOURTH:tcp_pkg::LOOK];
    step[tcp_pkg::SEGMENT_JUDGE:tcp_pkg::SEGMENT_SECOND] <= step[tcp_pkg::SEGMENT_SECOND:tcp_pkg::SEGMENT];
    step[tcp_pkg::SEGMENT_RECOVER] <= step[tcp_pkg::SEGMENT_JUDGE] && recovers;
    step[tcp_pkg::SEGMENT_TIMED] <= step[tcp_pkg::SEGMENT_RECOVER] || (step[tcp_pkg::SEGMENT_JUDGE] && !recovers);
    step[tcp_pkg::SEGMENT_APPLY:tcp_pkg::SEGMENT_NEXT] <= step[tcp_pkg::SEGMENT_NEXT:tcp_pkg::SEGMENT_TIMED];
    step[tcp_pkg::TIMER_APPLY] <= step[tcp_pkg::TIMER];
    if (applies) begin
      if (!settled) step <= step;
      else step[tcp_pkg::PICK] <= 1'b1;
      if (settled && again) look[stream] <= 1'b1;
      looks_first <= step[tcp_pkg::SEGMENT_APPLY];
    end
    if (tick) begin
      look[tour] <= 1'b1;
      tour <= tour == STREAM_BITS'(STREAMS - 1) ? '0 : tour + 1'b1;
    end
    if (rst) begin
      step <= '0;
      step[tcp_pkg::WIPE] <= 1'b1;
      stream <= '0;
      look <= '0;
      {last, looks_first, tour} <= '0;
    end
  end
endmodule
`default_nettype wire
