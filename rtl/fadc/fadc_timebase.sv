// SPDX-License-Identifier: Apache-2.0
//
// Divides time into windows, and windows into frames of at most SLICE_TICKS.
//
//                  +---------------+
//   start, enable >|               |====> tick[], frame[], keep[] (to the modules, one a sample)
//   start_* ======>| fadc_timebase |====> complete, now
//   window_ticks =>|               |====> m_* : the frames in order, each when it begins
//                  |               |<---- m_ready, as it is closed
//                  +---------------+
//
// `start` begins a run at window number start_record and time start_sec, start_nsec; window_ticks must be stable for four
// clocks before. The first tick is sample 0 of the next clock. tick, frame and keep come two clocks after their samples.
// Frames are numbered from 0 on. complete: the hits of all earlier frames have left the channels. A window that begins while
// the builder is far behind is lost as a whole; so are the one in which `enable` falls, and those after `limit` windows
// (0: no limit): `keep` is low. m_lost counts windows that were lost before this one, up to LOST_MAX.
//
// `adjust` leaves one tick out (-1) or repeats one (1). It is used in a clock in which `adjusts` is high, with `adjusted`,
// never directly before the end of a frame, and is 0 in the next one. With `follow` windows have FOLLOW_TICKS_MIN ticks or
// more. begins: a window begins. m_deadline: value of `now` (in ticks) at the end of the frame plus `timeout` ticks, or some
// clocks later.
//
// Events pass stages of one clock: 0 counts ticks; 1 decides about a window that begins; 2 are the outputs to the modules;
// then number and time of the window are computed, and the builder gets it in stage 5.
`default_nettype none
module fadc_timebase #(
    parameter int SAMPLES = 2
) (
    input  logic                                                             clk,
    input  logic                                                             rst,
    input  logic                                                             start,
    input  logic                                                             enable,
    input  logic        [                    63:0]                           start_record,
    input  logic        [                    63:0]                           start_sec,
    input  logic        [                    31:0]                           start_nsec,
    input  logic        [                    17:0]                           window_ticks,
    input  logic        [                    31:0]                           timeout,
    input  logic        [                    31:0]                           limit,
    input  logic                                                             follow,
    input  logic signed [                     1:0]                           adjust,
    output logic                                                             adjusts,
    output logic signed [                     1:0]                           adjusted,
    output logic                                                             begins,
    output logic                                                             running,
    output logic        [             SAMPLES-1:0][                    13:0] tick,
    output logic        [             SAMPLES-1:0][fadc_pkg::FRAME_BITS-1:0] frame,
    output logic        [             SAMPLES-1:0]                           keep,
    output logic        [fadc_pkg::FRAME_BITS-1:0]                           complete,
    output logic        [                    31:0]                           now,
    output logic                                                             m_valid,
    input  logic                                                             m_ready,
    output logic                                                             m_first,
    output logic                                                             m_last,
    output logic        [                    63:0]                           m_record,
    output logic        [                    63:0]                           m_sec,
    output logic        [                    31:0]                           m_nsec,
    output logic        [ fadc_pkg::LOST_BITS-1:0]                           m_lost,
    output logic        [                    31:0]                           m_deadline,
    output logic        [                    31:0]                           windows_lost,
    output logic                                                             bad_window
);
  localparam logic [31:0] SECOND = 32'd1_000_000_000;
  localparam int INFO_BITS = 2 + 64 + 64 + 32 + fadc_pkg::LOST_BITS + 32;
  localparam int LAG_BITS = $clog2(fadc_pkg::FRAMES) + 1;
  // A window lasts four clocks or more.
  localparam int TICKS_MIN = 4 * SAMPLES > fadc_pkg::WINDOW_TICKS_MIN ? 4 * SAMPLES : fadc_pkg::WINDOW_TICKS_MIN;
  localparam int LEFT_BITS = $clog2(fadc_pkg::SLICE_TICKS) + 1;
  localparam int SLICE_BITS = $clog2(fadc_pkg::WINDOW_SLICES);
  typedef logic [LEFT_BITS-1:0] left_t;
  typedef logic [SLICE_BITS-1:0] slice_t;
  typedef logic [fadc_pkg::FRAME_BITS-1:0] frame_t;
  localparam left_t SLICE = left_t'(fadc_pkg::SLICE_TICKS);
  localparam left_t STEP = left_t'(SAMPLES);
  // Places of a clock's samples, and behind the last one; NOWHERE is behind all.
  typedef logic [2:0] place_t;
  localparam place_t NOWHERE = '1;

  if (SAMPLES != 1 && SAMPLES != 2 && SAMPLES != 4) begin : g_check
    $error("fadc_timebase: SAMPLES must be 1, 2 or 4");
  end

  // ---- settings --------------------------------------------------------------------------------
  slice_t slices;  // last slice of a window
  left_t last_ticks;  // in that slice
  logic [16:0] before_last;
  logic [31:0] nsec_step, nsec_step_wrapped, slice_time, last_time;
  assign before_last = 17'(window_ticks - 1'b1);
  always_ff @(posedge clk) begin
    bad_window <= window_ticks < (follow ? 18'(fadc_pkg::FOLLOW_TICKS_MIN) : 18'(TICKS_MIN)) || window_ticks > 18'(fadc_pkg::WINDOW_TICKS_MAX);
    slices <= before_last[LEFT_BITS-1+:SLICE_BITS];
    last_ticks <= {1'b0, before_last[LEFT_BITS-2:0]} + 1'b1;
    nsec_step <= 32'(fadc_pkg::TICK_NS) * 32'(window_ticks);
    nsec_step_wrapped <= nsec_step - SECOND;
    slice_time <= 32'(SLICE) + timeout;
    last_time <= 32'(last_ticks) + timeout;
  end

  // ---- stage 0: ticks --------------------------------------------------------------------------
  function automatic slice_t after(input slice_t slice, input slice_t final_slice);
    after = slice == final_slice ? '0 : slice + 1'b1;
  endfunction

  left_t left, next_ticks;  // of the frame from this clock's first sample on; of the next frame
  logic next_short;  // it is shorter than a clock
  slice_t slice, next_slice, later_slice, second_slice;
  left_t later_ticks, second_ticks;
  logic [13:0] first_tick;
  logic go, ends, next_ends;  // this frame and the next one end in this clock
  logic [3:0] both;
  assign go = start && !bad_window;
  assign ends = running && left[LEFT_BITS-1:3] == '0 && left[2:0] <= 3'(SAMPLES);
  // The last slice of a window may be shorter than a clock.
  assign both = {1'b0, left[2:0]} + {1'b0, next_ticks[2:0]};
  assign next_ends = ends && next_short && both <= 4'(SAMPLES);

  left_t slice_left, window_left, short_left;
  assign later_slice = after(next_slice, slices);
  assign later_ticks = later_slice == slices ? last_ticks : SLICE;
  assign slice_left  = left - (STEP - left_t'(adjusted));
  assign window_left = left + next_ticks - STEP;
  assign short_left  = SLICE - STEP + left_t'(both);

  always_ff @(posedge clk) begin
    second_slice <= after('0, slices);
    second_ticks <= second_slice == slices ? last_ticks : SLICE;
    now <= now + 32'(SAMPLES);
    if (go) begin
      running <= 1'b1;
      left <= slices == '0 ? last_ticks : SLICE;
      slice <= '0;
      next_slice <= second_slice;
      next_ticks <= second_ticks;
      next_short <= 1'b0;
      first_tick <= '0;
    end else if (running) begin
      left <= next_ends ? short_left : ends ? window_left : slice_left;
      first_tick <= next_ends ? 14'(SAMPLES) - 14'(both) : ends ? 14'(SAMPLES) - 14'(left[2:0]) : first_tick + 14'(STEP - left_t'(adjusted));
      next_short <= next_ticks < STEP && !ends;
      if (ends) begin
        slice <= next_ends ? '0 : next_slice;
        next_slice <= next_ends ? second_slice : later_slice;
        next_ticks <= next_ends ? second_ticks : later_ticks;
      end
    end
    if (rst) begin
      now <= '0;
      running <= 1'b0;
    end
  end

  logic may_adjust;
  assign may_adjust = running && left[LEFT_BITS-1:4] != '0 && adjust != '0 && !adjusts;
  always_ff @(posedge clk) begin
    adjusts  <= may_adjust;
    adjusted <= may_adjust ? adjust : '0;
    if (rst || go) {adjusts, adjusted} <= '0;
  end

  // ---- stage 1: what begins --------------------------------------------------------------------
  logic running1, go1, begins1, slice1;  // a run, a window, a slice that is not the window's first
  logic last1;  // that slice is the window's last
  place_t end1, next_end1, begin1;
  logic [ 1:0] ends1;
  logic [13:0] tick1;
  always_ff @(posedge clk) begin
    running1 <= running;
    go1 <= go;
    begins1 <= go || next_ends || (ends && slice == slices);
    slice1 <= ends && slice != slices;
    last1 <= next_slice == slices;
    end1 <= ends ? left[2:0] : NOWHERE;
    next_end1 <= next_ends ? both[2:0] : NOWHERE;
    begin1 <= go ? NOWHERE : next_ends ? both[2:0] : left[2:0];
    ends1 <= {1'b0, ends} + {1'b0, next_ends};
    tick1 <= first_tick;
    if (rst) {running1, go1, begins1, slice1, ends1} <= '0;
  end

  logic fits, at_limit, counts, open, opened;
  frame_t number;  // of the frame of the first sample
  logic [31:0] windows;
  logic [fadc_pkg::LOST_BITS-1:0] lost;
  logic [LAG_BITS-1:0] used;
  assign counts = enable && (go1 || !at_limit);
  assign open   = counts && fits;

  assign begins = begins1;

  // ---- stage 2: to the modules -----------------------------------------------------------------
  logic go2, begins2, open2, slice2, last2;
  logic [fadc_pkg::LOST_BITS-1:0] lost2;
  logic [31:0] slice_deadline, window_deadline;
  always_ff @(posedge clk) begin
    for (int i = 0; i < SAMPLES; i++) begin
      if (place_t'(i) >= next_end1) tick[i] <= 14'(place_t'(i) - next_end1);
      else if (place_t'(i) >= end1) tick[i] <= 14'(place_t'(i) - end1);
      else tick[i] <= tick1 + 14'(i);
      frame[i] <= number + frame_t'(opened && place_t'(i) >= end1) + frame_t'(opened && place_t'(i) >= next_end1);
      keep[i] <= running1 && (begins1 && place_t'(i) >= begin1 ? open : opened);
    end
    if (opened) number <= number + frame_t'(ends1);
    if (begins1) begin
      opened <= open;
      if (go1) windows <= 32'd1;
      else if (counts) windows <= windows + 1'b1;
      if (open) lost <= '0;
      else if (counts && !go1) begin
        lost <= fadc_pkg::add_lost(lost, fadc_pkg::LOST_BITS'(1));
        windows_lost <= windows_lost + 1'b1;
      end
    end
    at_limit <= limit != '0 && windows == limit;
    fits <= used <= LAG_BITS'(fadc_pkg::FRAMES - fadc_pkg::WINDOW_SLICES - 2);

    {go2, begins2, open2} <= {go1, begins1, begins1 && open};
    slice2 <= slice1 && opened;
    last2 <= last1;
    lost2 <= go1 ? '0 : lost;
    slice_deadline <= now + (last1 ? last_time : slice_time);
    window_deadline <= now + (slices == '0 ? last_time : slice_time);
    if (rst) begin
      number <= '0;
      opened <= 1'b0;
      keep <= '0;
      frame <= '0;
      lost <= '0;
      windows <= '0;
      windows_lost <= '0;
      {go2, begins2, open2, slice2} <= '0;
    end
  end

  // The hit of a pulse that begins before this clock's first sample is on its way so many clocks more.
  localparam int LATENCY = (fadc_pkg::PULSE_TICKS - 2) / SAMPLES + 4;
  logic [LATENCY-1:0][fadc_pkg::FRAME_BITS-1:0] frames;
  assign complete = frames[LATENCY-1];
  always_ff @(posedge clk) begin
    frames <= {frames[LATENCY-2:0], frame[0]};
    if (rst) frames <= '0;
  end

  // ---- stages 3 to 5: to the builder -----------------------------------------------------------
  // A slice is told in stage 2, before the next window's number and time take the place of its own.
  logic [63:0] record, sec;
  logic [31:0] nsec, nsec_next, told_deadline;
  logic [fadc_pkg::LOST_BITS-1:0] window_lost;
  logic [32:0] nsec_wrapped;
  logic carry, open3, open4, open5, ready;
  assign nsec_next = nsec + nsec_step;
  assign nsec_wrapped = {1'b0, nsec} + {nsec_step_wrapped[31], nsec_step_wrapped};
  always_ff @(posedge clk) begin
    carry <= 1'b0;
    if (begins2) begin
      record <= go2 ? start_record : record + 1'b1;
      nsec <= go2 ? start_nsec : nsec_wrapped[32] ? nsec_next : nsec_wrapped[31:0];
      carry <= !go2 && !nsec_wrapped[32];
      window_lost <= lost2;
      told_deadline <= window_deadline;
    end
    if (go2) sec <= start_sec;
    else if (carry) sec <= sec + 1'b1;
    {open3, open4, open5} <= {open2, open3, open4};
    if (rst) {carry, open3, open4, open5} <= '0;
  end

  stream_fifo #(
      .WIDTH(INFO_BITS),
      .DEPTH(fadc_pkg::FRAMES)
  ) info (
      .clk(clk),
      .rst(rst),
      .s_data({
        !slice2,
        slice2 ? last2 : slices == '0,
        record,
        sec,
        nsec,
        window_lost,
        slice2 ? slice_deadline : told_deadline
      }),
      .s_valid(slice2 || open5),
      .s_ready(ready),
      .used(used),
      .m_data({m_first, m_last, m_record, m_sec, m_nsec, m_lost, m_deadline}),
      .m_valid(m_valid),
      .m_ready(m_ready)
  );

  logic unused;
  assign unused = &{1'b0, ready};
endmodule
`default_nettype wire
