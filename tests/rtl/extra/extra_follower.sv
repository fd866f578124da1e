// A clock of PTP and one that follows it.
module extra_follower #(
    parameter int PERIOD_PS = 8000,
    parameter int SOURCE_PS = 8000,
    parameter int INTERVAL_LOG = 8
) (
    input  logic        s_clk,
    input  logic        s_rst,
    input  logic [31:0] s_rate,
    input  logic [ 4:0] s_write,
    input  logic [15:0] s_wdata,
    input  logic        s_locked,
    output logic [79:0] s_time,
    input  logic        clk,
    input  logic        rst,
    output logic [79:0] now,
    output logic        locked
);
  localparam logic [37:0] PERIOD = 38'((64'(PERIOD_PS) << 32) / 1000);
  localparam logic [37:0] SOURCE_PERIOD = 38'((64'(SOURCE_PS) << 32) / 1000);
  logic pps;
  ptp_clock #(
      .PERIOD(SOURCE_PERIOD)
  ) source (
      .clk  (s_clk),
      .rst  (s_rst),
      .rate (s_rate),
      .hold (s_write != '0),
      .write(s_write),
      .wdata(s_wdata),
      .now  (s_time),
      .pps  (pps)
  );
  ptp_follower #(
      .PERIOD(PERIOD),
      .SOURCE_PERIOD(SOURCE_PERIOD),
      .INTERVAL_LOG(INTERVAL_LOG)
  ) follower (
      .*
  );
endmodule
