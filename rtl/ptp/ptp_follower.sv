// SPDX-License-Identifier: Apache-2.0
//
// The time of PTP in another clock domain: a clock that follows the clock of a port.
//
//                 +--------------+
//   s_time ======>|              |====> now
//   s_locked ---->| ptp_follower |----> locked
//                 +--------------+
//        s_clk                clk
//
// Every 2^INTERVAL_LOG clocks both times are compared, and the rate of `now` is adjusted, proportional 1/4 and integral
// 1/64 of an interval. The comparison reaches s_clk with an uncertainty of one of its periods, of which the mean remains;
// with clocks of the same frequency this is a constant of up to half a period. A time that is more than FAR_NS away is set.
// locked: s_locked, and within NEAR_NS for SETTLED comparisons in a row.
`default_nettype none
module ptp_follower #(
    parameter logic [37:0] PERIOD = 38'd8 << 32,  // period of clk, 2^-32 ns
    parameter logic [37:0] SOURCE_PERIOD = 38'd8 << 32,  // period of s_clk, 2^-32 ns
    parameter int INTERVAL_LOG = 10  // clocks between two comparisons, as a power of two
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           s_clk,     // clock of the port
    input  logic           s_rst,     // reset of the port
    input  ptp_pkg::time_t s_time,    // time of the port
    input  logic           s_locked,  // the port follows its master
    output ptp_pkg::time_t now,       // the time in clk
    output logic           locked
);
  localparam int FAR_NS = 1024;
  localparam int NEAR_NS = 16;
  localparam int SETTLED = 16;
  localparam int RATE_LIMIT = 1 << 26;  // of the integral, 2^-32 ns a clock
  localparam int PERIOD_PS = int'(PERIOD >> 22);  // nearly: 1024 are a nanosecond
  localparam int SOURCE_PS = int'(SOURCE_PERIOD >> 22);
  // From the question to s_time, in the mean; from there until a new time runs.
  localparam int LAG_NS = (3 * SOURCE_PS / 2 + 512) / 1024;
  localparam int SET_NS = (SOURCE_PS + 21 * PERIOD_PS / 2 + 512) / 1024;
  // Shifts of an error in ns: to undo 1 ns in an interval, the rate must change by 2^(32 - INTERVAL_LOG).
  localparam int PROPORTIONAL = 32 - INTERVAL_LOG - 2;
  localparam int INTEGRAL = 32 - INTERVAL_LOG - 6;

  // ---- comparison ----------------------------------------------------------------------------
  logic [INTERVAL_LOG-1:0] count;
  logic asked, ask_ready, take, answer_ready, answered, was_locked;
  ptp_pkg::time_t mine, there;
  always_ff @(posedge clk) begin
    count <= count + 1'b1;
    asked <= count == '0;
    if (asked) mine <= now;
    if (rst) {count, asked} <= '0;
  end
  cdc_token question (
      .s_clk  (clk),
      .s_rst  (rst),
      .s_valid(count == '0),
      .s_ready(ask_ready),
      .m_clk  (s_clk),
      .m_rst  (s_rst),
      .m_valid(take),
      .m_ready(answer_ready)
  );
  cdc_handshake #(
      .WIDTH(81)
  ) answer (
      .s_clk  (s_clk),
      .s_rst  (s_rst),
      .s_data ({s_locked, s_time}),
      .s_valid(take),
      .s_ready(answer_ready),
      .m_clk  (clk),
      .m_rst  (rst),
      .m_data ({was_locked, there}),
      .m_valid(answered),
      .m_ready(1'b1)
  );

  // ---- error and rate ------------------------------------------------------------------------
  logic compared, same, later, earlier, judged, far;
  logic signed [32:0] difference, error;
  logic signed [31:0] proportional, integral, integral_next;
  ptp_pkg::time_t target;
  logic [47:0] seconds, seconds_mine;
  assign {seconds, seconds_mine} = {there[79:32], mine[79:32]};
  assign integral_next = integral + (32'(error) <<< INTEGRAL);
  assign far = !(same || later || earlier) || error >= 33'(FAR_NS) || error <= -33'(FAR_NS);

  logic [$clog2(SETTLED):0] settled;
  logic hold;
  logic [5:0] setting;  // one bit after another
  always_ff @(posedge clk) begin
    {compared, judged} <= {answered, compared};
    if (answered) begin
      same <= seconds == seconds_mine;
      later <= seconds == seconds_mine + 1'b1;
      earlier <= seconds + 1'b1 == seconds_mine;
      difference <= $signed({1'b0, there[31:0]}) - $signed({1'b0, mine[31:0]}) - 33'(LAG_NS);
      target <= {seconds, there[31:0] + 32'(SET_NS)};
      locked <= was_locked && settled[$bits(settled)-1];
    end
    if (compared)
      error <= difference + (later ? 33'(ptp_pkg::SECOND) : earlier ? -33'(ptp_pkg::SECOND) : 33'd0);
    setting <= {setting[4:0], 1'b0};
    if (setting[5]) hold <= 1'b0;
    if (judged && far) begin
      settled <= '0;
      locked <= 1'b0;
      hold <= 1'b1;
      setting <= 6'd1;
      {proportional, integral} <= '0;
    end else if (judged) begin
      proportional <= 32'(error) <<< PROPORTIONAL;
      if (integral_next < RATE_LIMIT && integral_next > -RATE_LIMIT) integral <= integral_next;
      if (error >= 33'(NEAR_NS) || error <= -33'(NEAR_NS)) settled <= '0;
      else if (!settled[$bits(settled)-1]) settled <= settled + 1'b1;
    end
    if (rst) begin
      {compared, judged, hold, setting, settled, locked} <= '0;
      {proportional, integral} <= '0;
    end
  end

  // ---- clock ---------------------------------------------------------------------------------
  logic signed [31:0] rate;
  logic [15:0] word;
  logic pps;
  always_ff @(posedge clk) rate <= proportional + integral;
  always_comb begin
    word = '0;
    for (int i = 0; i < 5; i++) if (setting[i]) word = word | target[i*16+:16];
  end
  ptp_clock #(
      .PERIOD(PERIOD)
  ) clock (
      .clk  (clk),
      .rst  (rst),
      .rate (rate),
      .hold (hold),
      .write(setting[4:0]),
      .wdata(word),
      .now  (now),
      .pps  (pps)
  );

  logic unused;
  assign unused = &{1'b0, ask_ready, pps};
endmodule
`default_nettype wire
