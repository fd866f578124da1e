// SPDX-License-Identifier: Apache-2.0
//
// Servo of a PTP slave: steps the clock when it is far off, else steers its rate (proportional, integral).
//
//              +-----------+
//   offset_* =>|           |====> step_* (to the clock)
//   interval =>| ptp_servo |====> rate
//              +-----------+
//
// offset_far: the offset does not fit; the difference of seconds and nanoseconds is stepped. A proportional
// gain of 1/2 and an integral one of 1/16 an interval are critically damped; `interval` is the logarithm of the
// seconds between offsets, as Sync messages tell it, and 2^CLOCKS_LOG the clocks of a second, nearly.
`default_nettype none
module ptp_servo #(
    parameter int CLOCKS_LOG = 27
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               offset_valid,
    input  logic               offset_far,
    input  logic signed [31:0] offset,        // nanoseconds that the clock is ahead
    input  logic        [47:0] far_seconds,
    input  logic signed [31:0] far_ns,
    input  logic signed [ 7:0] interval,
    output logic               step_valid,
    output logic        [47:0] step_seconds,
    output logic signed [31:0] step_ns,
    output logic signed [31:0] rate,
    output logic               locked
);
  localparam logic signed [31:0] STEP = 32'sd1_000_000;  // ns: beyond, the clock is stepped
  localparam logic signed [31:0] LOCKED = 32'sd1_000;
  localparam logic signed [31:0] RATE_MAX = 32'sd1 <<< 26;  // of 2^-32 ns a clock
  localparam logic signed [47:0] SUM_MAX = 48'(RATE_MAX);

  // To undo an offset of 1 ns in an interval, a clock must change by 2^shift / 2^32 ns.
  logic signed [8:0] shift_wanted;
  logic [4:0] shift;
  logic signed [47:0] gain, integral, integral_next;
  logic started;
  assign shift_wanted = 9'(32 - CLOCKS_LOG) - 9'(interval);
  assign shift = shift_wanted < 0 ? '0 : shift_wanted > 9'sd20 ? 5'd20 : shift_wanted[4:0];

  function automatic signed [47:0] clamp(input signed [47:0] value);
    clamp = value > SUM_MAX ? SUM_MAX : value < -SUM_MAX ? -SUM_MAX : value;
  endfunction

  assign gain = 48'(offset) <<< shift;
  assign integral_next = clamp(integral - (gain >>> 4));

  always_ff @(posedge clk) begin
    step_valid <= 1'b0;
    if (offset_valid) begin
      if (!started || offset_far || offset > STEP || offset < -STEP) begin
        started <= 1'b1;
        step_valid <= 1'b1;
        step_seconds <= -far_seconds;
        step_ns <= -far_ns;
        locked <= 1'b0;
      end else begin
        integral <= integral_next;
        rate <= 32'(clamp(integral_next - (gain >>> 1)));
        locked <= offset < LOCKED && offset > -LOCKED;
      end
    end
    if (rst) begin
      {started, locked, step_valid} <= '0;
      integral <= '0;
      rate <= '0;
    end
  end
endmodule
`default_nettype wire
