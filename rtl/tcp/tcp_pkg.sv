// SPDX-License-Identifier: Apache-2.0
//
// Constants of the TCP sender (RFC 9293).
// A design uses some of them only.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package tcp_pkg;
  localparam logic [31:0] CORE_VERSION = {8'h10, 8'd0, 8'd1, 8'd0};  // see link_pkg::STATUS_VERSION

  localparam int IP_TCP_BYTES = 40;

  // Flags of a segment.
  localparam int FIN = 0;
  localparam int SYN = 1;
  localparam int RST = 2;
  localparam int PSH = 3;
  localparam int ACK = 4;

  // Kinds of a record from the wire.
  localparam logic [1:0] RECORD_ARP_REQUEST = 2'd0;
  localparam logic [1:0] RECORD_ARP_REPLY = 2'd1;
  localparam logic [1:0] RECORD_ECHO = 2'd2;
  localparam logic [1:0] RECORD_SEGMENT = 2'd3;

  // Events of a stream (tx_clk), a pulse each; counters in this order.
  localparam int EVENT_SENT = 0;
  localparam int EVENT_RETRANSMITTED = 1;
  localparam int EVENT_FAST = 2;  // retransmissions
  localparam int EVENT_TIMEOUT = 3;
  localparam int EVENT_PROBE = 4;
  localparam int EVENT_RESET = 5;
  localparam int EVENT_UNACCEPTABLE = 6;
  localparam int EVENTS = 7;

  // Frames dropped (rx_clk), by first reason.
  localparam int DROP_DESTINATION = 0;
  localparam int DROP_PROTOCOL = 1;
  localparam int DROP_FRAGMENT = 2;
  localparam int DROP_CHECKSUM = 3;
  localparam int DROP_SHORT = 4;
  localparam int DROP_FULL = 5;
  localparam int DROPS = 6;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
