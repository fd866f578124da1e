// Proof of the TCP engine: no event uses what an earlier one has not yet finished, of whatever streams.
//
//   free inputs, free contents ==> tcp_engine (with this module inside) ==> assertions
//
// Run by tests/rtl/test_formal.py, which puts this module into tcp_engine. What is in the contexts, what a look finds, what a
// segment means and when a timer runs out is free in each clock: what is proved does not depend on it.
module tcp_engine_proof #(
    parameter int STREAM_BITS = 1
) (
    input logic clk,
    input logic rst,
    input logic [tcp_pkg::STEPS-1:0] step,
    input logic [STREAM_BITS-1:0] stream,
    input logic settled,
    input logic write_flags,
    input logic write_una,
    input logic una_due,
    input logic write_peer_next,
    input logic write_nxt,
    input logic write_sent,
    input logic write_recover,
    input logic write_timed,
    input logic write_timed_at,
    input logic write_window,
    input logic write_best,
    input logic write_limit,
    input logic sets,
    input logic stops,
    input tcp_pkg::rtt_op rtt,
    input tcp_pkg::rtt_op rtt_due,
    input logic rtt_busy,
    input tcp_pkg::congestion_op congestion,
    input tcp_pkg::congestion_op congestion_due,
    input logic congestion_busy,
    input tcp_pkg::changes_t changes,
    input logic pending,
    input logic request_take
);
  logic begins, in_event, applies, writes, changes_time, changes_window, changes_holes;
  assign begins = step[tcp_pkg::LOOK] || step[tcp_pkg::SEGMENT] || step[tcp_pkg::TIMER];
  assign in_event = step[tcp_pkg::STEPS-1:tcp_pkg::LOOK] != '0;
  assign applies = step[tcp_pkg::LOOK_APPLY] || step[tcp_pkg::SEGMENT_APPLY] || step[tcp_pkg::TIMER_APPLY];
  assign changes_time = rtt != tcp_pkg::RTT_NOTHING;
  assign changes_window = congestion != tcp_pkg::CONGESTION_NOTHING;
  assign changes_holes = changes.clears_holes || changes.adds_hole || changes.moves_hole || changes.drops_hole;
  assign writes = write_una || write_peer_next || write_nxt || write_sent || write_recover || write_timed || write_timed_at
      || write_window || write_best || write_limit || sets || stops || changes_time || changes_window;

  // What the event of the clock before was, and what the two units behind the events have not done yet.
  logic was_in_event, could_begin, was_settled, timer_set, hole_due, window_due, time_due;
  logic [STREAM_BITS-1:0] stream_before, window_stream;
  logic is_reset = 1'b0;
  always_ff @(posedge clk) begin
    is_reset <= is_reset || rst;
    was_in_event <= in_event;
    could_begin <= step[tcp_pkg::PICK];
    was_settled <= settled && applies;
    timer_set <= sets || stops;
    hole_due <= changes.moves_hole;
    stream_before <= stream;
    if (changes_window) {window_due, window_stream} <= {1'b1, stream};
    else if (congestion_due == tcp_pkg::CONGESTION_NOTHING && !congestion_busy) window_due <= 1'b0;
    if (changes_time) time_due <= 1'b1;
    else if (rtt_due == tcp_pkg::RTT_NOTHING && !rtt_busy) time_due <= 1'b0;
    if (rst)
      {was_in_event, could_begin, was_settled, timer_set, hole_due, window_due, time_due} <= '0;
  end

  always_comb begin
    if (is_reset && !rst) begin
      // One event at a time, of one stream, which changes only where the next one begins.
      a_one_step : assert ((step & (step - 1'b1)) == '0);
      a_after_another : assert (!begins || could_begin);
      a_one_stream : assert (!(in_event && was_in_event) || stream == stream_before);
      // What it changes it changes itself; what follows in the next clock is of its stream, and before the next event.
      a_writes : assert (!writes || in_event);
      a_flags : assert (!write_flags || in_event || step[tcp_pkg::WIPE]);
      a_at_its_end :
      assert (!(sets || stops || changes_time || changes_window || changes_holes || write_una) || (applies && settled));
      a_then_ends : assert (!was_settled || step[tcp_pkg::PICK]);
      a_number : assert (!una_due || (!in_event && stream == stream_before));
      a_timer : assert (!timer_set || (!in_event && stream == stream_before));
      a_hole : assert (!hole_due || (!in_event && stream == stream_before));
      // The congestion window of the event before is there, and what it is made of stayed.
      a_window : assert (!(window_due && in_event));
      a_window_stream : assert (!window_due || stream == window_stream);
      a_window_known :
      assert (window_due || (congestion_due == tcp_pkg::CONGESTION_NOTHING && !congestion_busy));
      a_window_taken : assert (congestion_due == tcp_pkg::CONGESTION_NOTHING || !congestion_busy);
      // The round trip goes on behind the next event, but that one does not end before it.
      a_time : assert (!(time_due && (sets || changes_time)));
      a_time_known : assert (time_due || (rtt_due == tcp_pkg::RTT_NOTHING && !rtt_busy));
      a_time_taken :
      assert (rtt_due == tcp_pkg::RTT_NOTHING || (!rtt_busy && stream == stream_before));
      a_interval : assert (!timer_set || !rtt_busy);
      // What waits for the builder is not overwritten.
      a_request : assert (!(step[tcp_pkg::LOOK_APPLY] && settled && pending));
    end
  end

  logic unused;
  assign unused = &{1'b0, request_take, changes};
endmodule
