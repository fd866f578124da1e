// Constants of the TCP sender and its network layers (RFC 826, 791, 792, 9293, 7323).
// A design uses some of them only.
/* verilator lint_off UNUSEDPARAM */
package tcp_pkg;
  localparam logic [15:0] ETHERTYPE_IPV4 = 16'h0800;
  localparam logic [15:0] ETHERTYPE_ARP = 16'h0806;
  localparam logic [47:0] BROADCAST = '1;

  localparam logic [47:0] ARP_SHAPE = 48'h0001_0800_0604;  // IPv4 over Ethernet
  localparam logic [15:0] ARP_REQUEST = 16'd1;
  localparam logic [15:0] ARP_REPLY = 16'd2;

  localparam logic [15:0] IP_VERSION = 16'h4500;  // four, no options; type of service 0
  localparam logic [7:0] PROTOCOL_ICMP = 8'd1;
  localparam logic [7:0] PROTOCOL_TCP = 8'd6;
  localparam logic [7:0] TTL = 8'd64;

  localparam int HEADER_BYTES = 54;  // Ethernet, IPv4 and TCP without options
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

  // The 16-bit one's complement sum of a 32-bit sum of 16-bit words (RFC 1071).
  function automatic [15:0] fold(input [31:0] sum);
    reg [16:0] once;
    begin
      once = {1'b0, sum[31:16]} + {1'b0, sum[15:0]};
      fold = once[15:0] + {15'd0, once[16]};
    end
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
