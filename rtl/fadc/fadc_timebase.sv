// SPDX-License-Identifier: Apache-2.0
//
// Cuts time into windows, and those into frames of at most SLICE_TICKS.
//
//                  +---------------+
//   start, enable >|               |----> tick, frame, keep, now (to the modules)
//   start_* ======>| fadc_timebase |====> m_* : the frames in order, each when it begins
//   window_ticks =>|               |<---- m_ready, as it is closed
//                  +---------------+
//
// `start` begins a run at window number start_record and time start_sec, start_nsec. A window that
// begins while the builder is far behind is lost as a whole, and so is the one in which `enable`
// falls or after `limit` windows (0: none): `keep` is low. m_lost counts windows lost before this
// one. m_deadline: value of `now` at the end of the frame and `timeout` ticks.
`default_nettype none
module fadc_timebase (
    input  logic                            clk,
    input  logic                            rst,
    input  logic                            start,
    input  logic                            enable,
    input  logic [                    63:0] start_record,
    input  logic [                    63:0] start_sec,
    input  logic [                    31:0] start_nsec,
    input  logic [                    17:0] window_ticks,
    input  logic [                    31:0] timeout,
    input  logic [                    31:0] limit,
    output logic                            running,
    output logic [                    13:0] tick,
    output logic [fadc_pkg::FRAME_BITS-1:0] frame,
    output logic                            keep,
    output logic [                    31:0] now,
    output logic                            m_valid,
    input  logic                            m_ready,
    output logic [fadc_pkg::FRAME_BITS-1:0] m_frame,
    output logic                            m_first,
    output logic                            m_last,
    output logic [                    63:0] m_record,
    output logic [                    63:0] m_sec,
    output logic [                    31:0] m_nsec,
    output logic [                    31:0] m_lost,
    output logic [                    31:0] m_deadline,
    output logic [                    31:0] windows_lost,
    output logic                            bad_window
);
  localparam logic [31:0] SECOND = 32'd1_000_000_000;
  localparam int INFO_BITS = fadc_pkg::FRAME_BITS + 2 + 64 + 64 + 32 + 32 + 32;
  localparam int LAG_BITS = $clog2(fadc_pkg::FRAMES) + 1;

  logic [17:0] left;  // ticks of the window from this one on
  logic [63:0] record, sec;
  logic [31:0] nsec, next_nsec, lost, windows;
  logic opened, slice_end, window_end, open_window, begins, go;
  logic [LAG_BITS-1:0] used;
  logic fits, push, push_first, ready;
  logic [17:0] push_left;
  logic [31:0] push_end;

  assign bad_window = window_ticks < 18'(fadc_pkg::WINDOW_TICKS_MIN) || window_ticks > 18'(fadc_pkg::WINDOW_TICKS_MAX);
  assign window_end = running && left == 18'd1;
  assign slice_end = running && (window_end || tick == 14'(fadc_pkg::SLICE_TICKS - 1));
  assign keep = running && opened;
  assign next_nsec = nsec + 32'(fadc_pkg::TICK_NS) * 32'(window_ticks);
  assign fits = used <= LAG_BITS'(fadc_pkg::FRAMES - fadc_pkg::WINDOW_SLICES);
  // The first tick of a window is the next clock's.
  assign begins = go || window_end;
  assign go = start && !bad_window;
  assign open_window = begins && enable && fits && (go || limit == '0 || windows != limit);

  // A frame is told to the builder in the clock before its first tick.
  assign push = open_window || (slice_end && !window_end && opened);
  assign push_first = open_window;
  assign push_left = open_window ? window_ticks : left - 1'b1;
  assign push_end = now + (push_left > 18'(fadc_pkg::SLICE_TICKS) ? 32'(fadc_pkg::SLICE_TICKS) : 32'(push_left)) + timeout;

  logic [fadc_pkg::FRAME_BITS-1:0] next_frame;
  logic [63:0] next_record, next_sec;
  assign next_frame = frame + fadc_pkg::FRAME_BITS'(slice_end && opened);
  assign next_record = go ? start_record : record + 64'(window_end);
  assign next_sec = go ? start_sec : sec + 64'(window_end && next_nsec >= SECOND);

  logic [31:0] new_nsec;
  assign new_nsec = go ? start_nsec : !window_end ? nsec : next_nsec >= SECOND ? next_nsec - SECOND : next_nsec;

  stream_fifo #(
      .WIDTH(INFO_BITS),
      .DEPTH(fadc_pkg::FRAMES)
  ) info (
      .clk(clk),
      .rst(rst),
      .s_data({
        next_frame,
        push_first,
        push_left <= 18'(fadc_pkg::SLICE_TICKS),
        next_record,
        next_sec,
        new_nsec,
        go ? 32'd0 : lost,
        push_end
      }),
      .s_valid(push),
      .s_ready(ready),
      .used(used),
      .m_data({m_frame, m_first, m_last, m_record, m_sec, m_nsec, m_lost, m_deadline}),
      .m_valid(m_valid),
      .m_ready(m_ready)
  );

  always_ff @(posedge clk) begin
    now <= now + 1'b1;
    frame <= next_frame;
    record <= next_record;
    sec <= next_sec;
    nsec <= new_nsec;
    if (go) running <= 1'b1;
    if (begins) begin
      left   <= window_ticks;
      tick   <= '0;
      opened <= open_window;
      if (go) windows <= 32'd1;
      else if (enable && windows != limit) windows <= windows + 1'b1;
      if (open_window) lost <= '0;
      else if (!go && enable && (limit == '0 || windows != limit)) begin
        lost <= lost + 1'b1;
        windows_lost <= windows_lost + 1'b1;
      end
    end else if (running) begin
      left <= left - 1'b1;
      tick <= tick + 1'b1;
    end
    if (rst) begin
      now <= '0;
      frame <= '0;
      running <= 1'b0;
      opened <= 1'b0;
      left <= '0;
      tick <= '0;
      lost <= '0;
      windows <= '0;
      windows_lost <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, ready};
endmodule
`default_nettype wire
