// SPDX-License-Identifier: Apache-2.0
//
// Constants of PTP over UDP and IPv4 (IEEE 1588-2008, annex D).
// A design uses some of them only.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package ptp_pkg;
  localparam logic [31:0] GROUP = 32'hE000_0181;  // 224.0.1.129
  localparam logic [15:0] PORT_EVENT = 16'd319;
  localparam logic [15:0] PORT_GENERAL = 16'd320;

  localparam logic [3:0] SYNC = 4'h0;
  localparam logic [3:0] DELAY_REQ = 4'h1;
  localparam logic [3:0] FOLLOW_UP = 4'h8;
  localparam logic [3:0] DELAY_RESP = 4'h9;
  localparam logic [3:0] ANNOUNCE = 4'hB;

  localparam logic [3:0] VERSION = 4'd2;
  localparam int EVENT_BYTES = 44;  // Sync, Delay_Req, Follow_Up
  localparam int IDENTITY_BYTES = 10;  // of a port
  localparam int RESPONSE_BYTES = 54;
  localparam int ANNOUNCE_BYTES = 64;
  localparam logic [15:0] FLAG_TWO_STEP = 16'h0200;

  // Roles.
  localparam logic [1:0] OFF = 2'd0;
  localparam logic [1:0] SLAVE = 2'd1;
  localparam logic [1:0] MASTER = 2'd2;

  localparam int SECOND = 1_000_000_000;  // nanoseconds

  // A time is {seconds 48, nanoseconds 32}.
  typedef logic [79:0] time_t;

  // A time that is `delay` nanoseconds, less than a second, earlier.
  function automatic [79:0] earlier(input [79:0] from, input signed [31:0] delay);
    reg signed [32:0] ns;
    reg [31:0] whole;
    begin
      ns = $signed({1'b0, from[31:0]}) - 33'(delay);
      whole = 32'(ns < 0 ? ns + 33'sd1_000_000_000 : ns >= 33'sd1_000_000_000 ? ns - 33'sd1_000_000_000 : ns);
      earlier = {from[79:32] + (ns < 0 ? '1 : ns >= 33'sd1_000_000_000 ? 48'd1 : 48'd0), whole};
    end
  endfunction

  // Of the clock and its servo.
  typedef struct packed {
    time_t now;
    logic pps;
    logic locked;
    logic signed [31:0] offset;  // ns
    logic signed [31:0] path_delay;  // ns
    logic signed [31:0] rate;  // 2^-32 ns a clock
  } status_t;
  localparam int STATUS_BITS = 80 + 1 + 1 + 3 * 32;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
