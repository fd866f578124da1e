// SPDX-License-Identifier: Apache-2.0
//
// Constants of Ethernet, ARP and IPv4 that the cores of IP protocols share (RFC 826, 791, 768, 792, 1071).
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package net_pkg;
  localparam logic [15:0] ETHERTYPE_IPV4 = 16'h0800;
  localparam logic [15:0] ETHERTYPE_ARP = 16'h0806;
  localparam logic [47:0] BROADCAST = '1;
  localparam logic [23:0] MULTICAST = 24'h01005E;  // of IPv4 groups, then a zero bit (RFC 1112)

  localparam logic [47:0] ARP_SHAPE = 48'h0001_0800_0604;  // IPv4 over Ethernet
  localparam logic [15:0] ARP_REQUEST = 16'd1;
  localparam logic [15:0] ARP_REPLY = 16'd2;

  localparam logic [15:0] IP_VERSION = 16'h4500;  // four, no options; type of service 0
  localparam logic [15:0] IP_DO_NOT_FRAGMENT = 16'h4000;
  localparam logic [7:0] PROTOCOL_ICMP = 8'd1;
  localparam logic [7:0] PROTOCOL_TCP = 8'd6;
  localparam logic [7:0] PROTOCOL_UDP = 8'd17;
  localparam logic [7:0] TTL = 8'd64;
  localparam logic [7:0] ICMP_ECHO_REQUEST = 8'd8;

  localparam int ETHERNET_BYTES = 14;
  localparam int ARP_BYTES = 28;
  localparam int IP_BYTES = 20;  // without options
  localparam int UDP_BYTES = 8;

  localparam int SUM_LAG = 4;  // clocks, see ones_sum

  // IPv4 settings of a core.
  typedef struct packed {
    logic [31:0] address;
    logic [31:0] mask;
    logic [31:0] gateway;
    logic [31:0] peer;  // the computer that it sends to
  } ip_t;

  // Where a packet goes next: to its destination, or to the gateway of other networks.
  function automatic [31:0] next_hop(input [31:0] to, input [31:0] ip_address, input [31:0] mask,
                                     input [31:0] gateway);
    next_hop = ((to ^ ip_address) & mask) == '0 ? to : gateway;
  endfunction

  function automatic is_group(input [31:0] to);
    is_group = (to >> 28) == 32'hE;
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
