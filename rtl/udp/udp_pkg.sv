// SPDX-License-Identifier: Apache-2.0
//
// Constants of the UDP/IP stack's own datagrams: the stream and the slow control (docs/protocol/udp.md).
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package udp_pkg;
  localparam logic [31:0] CORE_VERSION = {8'h11, 8'd0, 8'd1, 8'd0};  // see link_pkg::STATUS_VERSION

  // Stream: counter 32, words 16, run 8, flags 8; then the words, then filler.
  localparam int STREAM_HEADER_BYTES = 8;
  localparam logic [7:0] FLAG_END = 8'h01;
  localparam logic [7:0] FILLER = 8'hA5;

  // Slow control: sequence 32, operation 8, status 8, zero 16, address 32, value 32.
  localparam int CONTROL_BYTES = 16;
  localparam logic [15:0] CONTROL_PORT = 16'd10001;
  localparam logic [7:0] CONTROL_READ = 8'h01;
  localparam logic [7:0] CONTROL_WRITE = 8'h02;
  localparam logic [7:0] CONTROL_REPLY = 8'h80;  // with the operation
  localparam logic [7:0] STATUS_DONE = 8'h00;
  localparam logic [7:0] STATUS_OPERATION = 8'h01;  // no such operation
  localparam logic [7:0] STATUS_ADDRESS = 8'h02;  // no such register, or not to be written

  // Registers of the core; the others are the user's. Those of the streams, from 1 to 7, are there once for each, its number in three
  // bits from REGISTER_STREAM_BIT up.
  localparam int REGISTER_STREAM_BIT = 9;
  localparam logic [31:0] REGISTER_IDENTITY = 32'h8000_0000;
  localparam logic [31:0] REGISTER_ENABLE = 32'h8000_0001;
  localparam logic [31:0] REGISTER_PEER_IP = 32'h8000_0002;
  localparam logic [31:0] REGISTER_PEER_PORT = 32'h8000_0003;
  localparam logic [31:0] REGISTER_PAYLOAD = 32'h8000_0004;
  localparam logic [31:0] REGISTER_CHECKSUM = 32'h8000_0005;
  localparam logic [31:0] REGISTER_RUN = 32'h8000_0006;  // number of this run
  localparam logic [31:0] REGISTER_LAST = 32'h8000_0007;  // datagrams of the run before
  // PTP's, from 0x10 to 0x2F, are words of its program (ptp_names.asm).
  localparam logic [31:0] REGISTER_PTP_ROLE = 32'h8000_0010;  // 0 off, 1 slave, 2 master, 3 the best clock's
  localparam logic [31:0] REGISTER_PTP_LOCKED = 32'h8000_0011;
  localparam logic [31:0] REGISTER_PTP_OFFSET = 32'h8000_0012;  // ns, signed
  localparam logic [31:0] REGISTER_PTP_DELAY = 32'h8000_0013;  // ns, signed
  localparam logic [31:0] REGISTER_PTP_RATE = 32'h8000_0014;  // 2^-32 ns a clock, signed
  localparam logic [31:0] REGISTER_PTP_SECONDS = 32'h8000_0015;  // a read keeps the nanoseconds
  localparam logic [31:0] REGISTER_PTP_NS = 32'h8000_0016;
  localparam logic [31:0] REGISTER_PTP_CLOCKS = 32'h8000_0017;  // between two Sync of a master
  localparam logic [31:0] REGISTER_PTP_LOG = 32'h8000_0018;  // logarithm of the seconds between them, as it is told
  localparam logic [31:0] REGISTER_PTP_STATE = 32'h8000_0019;  // portState
  localparam logic [31:0] REGISTER_PTP_DOMAIN = 32'h8000_001A;
  localparam logic [31:0] REGISTER_PTP_TRANSPORT = 32'h8000_001B;  // 0 UDP, 1 Ethernet
  localparam logic [31:0] REGISTER_PTP_MECHANISM = 32'h8000_001C;  // of the delay: 1 end to end, 2 peer to peer
  localparam logic [31:0] REGISTER_PTP_PRIORITIES = 32'h8000_001D;  // {priority1, priority2}, 8 bit each
  localparam logic [31:0] REGISTER_PTP_UTC = 32'h8000_001E;  // {source of time 8, flags 8, offset 16}
  localparam logic [31:0] REGISTER_PTP_QUALITY = 32'h8000_001F;  // {class 8, accuracy 8, variance 16}
  localparam logic [31:0] REGISTER_PTP_UTC_USED = 32'h8000_0020;  // the same of the master
  localparam logic [31:0] REGISTER_PTP_STEPS = 32'h8000_0021;  // from the grandmaster
  localparam logic [31:0] REGISTER_COUNTERS = 32'h8000_0100;
  localparam logic [31:0] IDENTITY = 32'hFADE_0D10;

  // What is counted, one pulse each: in the order of the counter registers, the first one last.
  localparam int COUNTERS = 25;
  typedef struct packed {
    logic drop_icmp_full;
    logic drop_icmp_checksum;
    logic drop_icmp_type;
    logic drop_ip_protocol;
    logic drop_fragment;
    logic drop_ip_destination;
    logic drop_ip_checksum;
    logic drop_ip_version;
    logic drop_ip_short;
    logic drop_arp_full;
    logic drop_arp;
    logic drop_ethernet_short;
    logic drop_ethertype;
    logic drop_destination;
    logic unresolved;
  } network_events_t;
  typedef struct packed {
    logic drop_ptp_full;
    logic drop_ptp_ignored;
    logic drop_ptp_malformed;
    logic ptp_offsets;
    logic drop_control_full;
    logic drop_control_short;
    logic drop_port;
    logic drop_udp_checksum;
    logic drop_udp_short;
    network_events_t network;
    logic datagrams;
  } events_t;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
