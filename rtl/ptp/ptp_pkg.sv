// SPDX-License-Identifier: Apache-2.0
//
// Constants of PTP over UDP and IPv4 and Ethernet (IEEE 1588-2008, annexes D and F).
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package ptp_pkg;
  localparam logic [31:0] GROUP = 32'hE000_0181;  // 224.0.1.129
  localparam logic [31:0] GROUP_PEER = 32'hE000_006B;  // 224.0.0.107
  localparam logic [15:0] PORT_EVENT = 16'd319;
  localparam logic [15:0] PORT_GENERAL = 16'd320;
  localparam logic [15:0] ETHERTYPE = 16'h88F7;
  localparam logic [47:0] MAC = 48'h011B_1900_0000;
  localparam logic [47:0] MAC_PEER = 48'h0180_C200_000E;

  localparam int SECOND = 1_000_000_000;  // nanoseconds

  // A time is {seconds 48, nanoseconds 32}.
  typedef logic [79:0] time_t;

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

  // Of a port, one pulse each.
  localparam int EVENTS = 4;
  typedef struct packed {
    logic drop_full;
    logic drop_ignored;
    logic drop_malformed;
    logic offsets;  // the offset was measured
  } events_t;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
