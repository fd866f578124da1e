// SPDX-License-Identifier: Apache-2.0
//
// Adjustable clock: seconds and nanoseconds, with a rate and steps, and a pulse each second.
//
//             +-----------+
//   rate ====>|           |====> now
//   step_* ==>| ptp_clock |----> pps
//             +-----------+
//
// Each clock adds PERIOD and `rate`, both in units of 2^-32 ns. A step adds step_seconds and step_ns (less
// than a second in size) once, with their signs. pps is high for the first PPS_NS nanoseconds of a second.
`default_nettype none
module ptp_clock #(
    parameter logic [37:0] PERIOD = 38'd8 << 32,
    parameter int PPS_NS = 100_000_000
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic signed    [31:0] rate,
    input  logic                  step_valid,
    input  logic           [47:0] step_seconds,
    input  logic signed    [31:0] step_ns,
    output ptp_pkg::time_t        now,
    output logic                  pps
);
  localparam logic signed [32:0] SECOND = 33'(ptp_pkg::SECOND);
  logic [31:0] fraction;
  logic [37:0] increment;
  logic [47:0] seconds;
  logic signed [32:0] ns, ns_next;
  logic [32:0] fraction_next;

  assign increment = PERIOD + {{6{rate[31]}}, rate};
  assign fraction_next = {1'b0, fraction} + {1'b0, increment[31:0]};
  assign ns_next = ns + 33'(increment[37:32]) + 33'(fraction_next[32]) + (step_valid ? 33'(step_ns) : '0);
  assign now = {seconds, ns[31:0]};

  always_ff @(posedge clk) begin
    fraction <= fraction_next[31:0];
    seconds <= seconds + (step_valid ? step_seconds : '0);
    ns <= ns_next;
    if (ns_next < 0) begin
      ns <= ns_next + SECOND;
      seconds <= seconds + (step_valid ? step_seconds : '0) - 48'd1;
    end else if (ns_next >= SECOND) begin
      ns <= ns_next - SECOND;
      seconds <= seconds + (step_valid ? step_seconds : '0) + 48'd1;
    end
    pps <= ns < 33'(PPS_NS);
    if (rst) begin
      {seconds, ns, fraction} <= '0;
      pps <= 1'b0;
    end
  end
endmodule
`default_nettype wire
