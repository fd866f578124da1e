// SPDX-License-Identifier: Apache-2.0
//
// Adjustable clock: seconds and nanoseconds, with a rate, and a pulse each second.
//
//            +-----------+
//   rate ===>|           |====> now
//   hold --->| ptp_clock |----> pps
//   write ==>|           |
//            +-----------+
//
// Each clock adds PERIOD and `rate`, both in units of 2^-32 ns. The clock is set in words of 16 bits, and stops while
// `hold` is high: write[i] sets word i of now, 0 is the lowest. Nanoseconds of a second or more, below 2^32, are carried to
// the seconds. pps is high for the first PPS_NS nanoseconds of a second.
`default_nettype none
module ptp_clock #(
    parameter logic [37:0] PERIOD = 38'd8 << 32,
    parameter int PPS_NS = 100_000_000
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic signed    [31:0] rate,
    input  logic                  hold,
    input  logic           [ 4:0] write,
    input  logic           [15:0] wdata,
    output ptp_pkg::time_t        now,
    output logic                  pps
);
  logic [31:0] fraction, ns, ns_next, ns_wrapped;
  logic [37:0] increment;
  logic [47:0] seconds;
  logic [32:0] fraction_next;
  logic [6:0] whole;  // nanoseconds of this clock
  logic borrow;

  assign fraction_next = {1'b0, fraction} + {1'b0, increment[31:0]};
  assign ns_next = ns + 32'(whole);
  assign {borrow, ns_wrapped} = {1'b0, ns} + 33'(whole) - 33'(ptp_pkg::SECOND);
  assign now = {seconds, ns};

  always_ff @(posedge clk) begin
    increment <= PERIOD + {{6{rate[31]}}, rate};
    if (!hold) begin
      fraction <= fraction_next[31:0];
      whole <= 7'(increment[37:32]) + 7'(fraction_next[32]);
      ns <= borrow ? ns_next : ns_wrapped;
      if (!borrow) seconds <= seconds + 48'd1;
    end
    for (int i = 0; i < 2; i++) if (write[i]) ns[i*16+:16] <= wdata;
    for (int i = 0; i < 3; i++) if (write[i+2]) seconds[i*16+:16] <= wdata;
    pps <= ns < 32'(PPS_NS);
    if (rst) begin
      {seconds, ns, fraction, whole} <= '0;
      increment <= PERIOD;
      pps <= 1'b0;
    end
  end
endmodule
`default_nettype wire
