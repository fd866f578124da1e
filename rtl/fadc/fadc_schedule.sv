// SPDX-License-Identifier: Apache-2.0
//
// Aligns the windows of a crate to a time, for example of PTP: window n lasts from n to n + 1 times its length.
//
//                  +---------------+
//   arm ---------->|               |----> start; start_record, start_sec, start_nsec (to the time bases)
//   time_now =====>| fadc_schedule |====> adjust
//   time_locked -->|               |
//   window_ticks =>|               |<---- adjusts, adjusted, begins (of a time base)
//                  |               |----> off
//                  +---------------+
//
// After `arm` the run begins with a window as soon as the time is locked. So crates with a common time have the same number
// and time of each window, independent of their start. time_now is the time of sample 0 of the same clock. `adjust`: a tick
// is left out (-1) or repeated (1), because samples and time have different oscillators, see fadc_timebase; so ticks and
// windows stay within a tick of their time. off: a pulse for each window that is OFF_NS or more away. After the time was
// set to another value this is true for all windows until the next start.
`default_nettype none
module fadc_schedule #(
    parameter int SAMPLES = 2
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  arm,
    input  ptp_pkg::time_t        time_now,
    input  logic                  time_locked,
    input  logic           [17:0] window_ticks,
    output logic                  start,
    output logic           [63:0] start_record,
    output logic           [63:0] start_sec,
    output logic           [31:0] start_nsec,
    output logic signed    [ 1:0] adjust,
    input  logic                  adjusts,
    input  logic signed    [ 1:0] adjusted,
    input  logic                  begins,
    output logic                  off
);
  localparam int CLOCK_NS = SAMPLES * fadc_pkg::TICK_NS;
  localparam int OFF_NS = 16;
  localparam int MARGIN_NS = 16384;  // more than the calculation takes
  localparam int LEAD_CLOCKS = 4;  // from a comparison to sample 0
  localparam int REST_CLOCKS = 7;  // between two adjustments

  logic same_second, second_before, second_over, near, over;  // of the time and the begin
  logic signed [32:0] difference, ahead;

  // ---- the next window -----------------------------------------------------------------------
  // The time in ns is seconds times 10^9 and nanoseconds; its quotient by the window's length comes in from the right.
  typedef enum logic [2:0] {
    IDLE,
    MULTIPLY,
    ADD,
    DIVIDE,
    PLACE,
    WRAP,
    WAIT
  } state_t;
  state_t state;
  logic armed, go;
  logic [ 6:0] count;
  logic [63:0] number;
  logic [47:0] seconds, seconds_left;
  logic [31:0] ns;
  logic [19:0] window_ns, rest;
  logic [20:0] rest_next, rest_less;
  assign rest_next = {rest, number[63]};
  assign rest_less = rest_next - {1'b0, window_ns};
  assign {start_record, start_sec, start_nsec} = {number, 64'(seconds), ns};

  always_ff @(posedge clk) begin
    count <= count - 1'b1;
    if (arm) armed <= 1'b1;
    case (state)
      // The time bases read the last begin for some clocks.
      IDLE:
      if (armed && time_locked) begin
        seconds <= time_now[79:32];
        seconds_left <= time_now[79:32];
        ns <= time_now[31:0] + 32'(MARGIN_NS);
        window_ns <= {window_ticks, 2'b00};
        number <= '0;
        rest <= '0;
        count <= 7'd47;
        state <= MULTIPLY;
      end
      MULTIPLY: begin
        number <= (number << 1) + (seconds_left[47] ? 64'(ptp_pkg::SECOND) : 64'd0);
        seconds_left <= seconds_left << 1;
        if (count == '0) state <= ADD;
      end
      ADD: begin
        number <= number + 64'(ns);
        count  <= 7'd63;
        state  <= DIVIDE;
      end
      DIVIDE: begin
        rest   <= rest_less[20] ? rest_next[19:0] : rest_less[19:0];
        number <= {number[62:0], !rest_less[20]};
        if (count == '0) state <= PLACE;
      end
      PLACE: begin
        ns <= ns - 32'(rest) + 32'(window_ns);
        number <= number + 1'b1;
        state <= WRAP;
      end
      WRAP: begin
        if (ns[31]) begin
          ns <= ns + 32'(ptp_pkg::SECOND);
          seconds <= seconds - 1'b1;
        end else if (ns >= 32'(ptp_pkg::SECOND)) begin
          ns <= ns - 32'(ptp_pkg::SECOND);
          seconds <= seconds + 1'b1;
        end
        count <= 7'd4;
        state <= WAIT;
      end
      default: begin  // WAIT
        if (count == '0) count <= '0;
        if (!time_locked || (count == '0 && over)) state <= IDLE;
        else if (go) begin
          armed <= 1'b0;
          state <= IDLE;
        end
      end
    endcase
    if (rst) begin
      state <= IDLE;
      armed <= 1'b0;
    end
  end

  // ---- when it comes -------------------------------------------------------------------------
  assign go = state == WAIT && count == '0 && near && ahead <= 33'(LEAD_CLOCKS * CLOCK_NS) + 33'(CLOCK_NS / 2);
  always_ff @(posedge clk) begin
    same_second <= time_now[79:32] == seconds;
    second_before <= time_now[79:32] + 1'b1 == seconds;
    second_over <= time_now[79:32] > seconds;
    difference <= $signed({1'b0, ns}) - $signed({1'b0, time_now[31:0]});
    near <= same_second || second_before;
    over <= second_over;
    ahead <= difference + (second_before ? 33'(ptp_pkg::SECOND) : 33'd0);
    start <= go && !rst;
  end

  // ---- deviation -----------------------------------------------------------------------------
  // Of the time from that of the samples, if a tick were what it should be; `passed_late` is of three clocks before.
  ptp_pkg::time_t last;
  logic signed [32:0] passed_raw, passed;
  logic [5:0] passed_late;
  logic same_as_last, next_to_last, wrapped, jumped, lost, following;
  logic signed [11:0] deviation;
  logic [2:0] rest_clocks;
  assign passed_raw = $signed({1'b0, time_now[31:0]}) - $signed({1'b0, last[31:0]});
  always_ff @(posedge clk) begin
    last <= time_now;
    same_as_last <= time_now[79:32] == last[79:32];
    next_to_last <= time_now[79:32] == last[79:32] + 1'b1;
    wrapped <= passed_raw[32];
    passed <= passed_raw[32] ? passed_raw + 33'(ptp_pkg::SECOND) : passed_raw;
    jumped <= passed[32:6] != '0 || !(wrapped ? next_to_last : same_as_last);
    passed_late <= passed[5:0];
    if (start) begin
      deviation <= 12'(33'((LEAD_CLOCKS - 1) * CLOCK_NS) - ahead);  // of a clock later
      following <= 1'b1;
      lost <= 1'b0;
    end else begin
      deviation <= deviation + 12'($signed(
          {1'b0, passed_late}
      )) - 12'(CLOCK_NS) + (adjusts ? 12'(adjusted) <<< 2 : 12'sd0);
      if (jumped || deviation > 12'sd1023 || deviation < -12'sd1023) lost <= 1'b1;
    end
    // An adjustment shows in the deviation two clocks later.
    if (adjusts) rest_clocks <= 3'(REST_CLOCKS);
    else if (rest_clocks != '0) rest_clocks <= rest_clocks - 1'b1;
    if (!following || lost || adjusts || rest_clocks != '0) adjust <= '0;
    else adjust <= deviation > 12'sd2 ? -2'sd1 : deviation < -12'sd2 ? 2'sd1 : 2'sd0;
    off <= following && begins && (lost || deviation >= 12'(OFF_NS) || deviation <= -12'(OFF_NS));
    if (rst) {following, lost, off, rest_clocks} <= '0;
  end
endmodule
`default_nettype wire
