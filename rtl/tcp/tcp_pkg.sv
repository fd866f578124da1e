// Constants of the TCP sender (RFC 9293).
// A design uses some of them only.
/* verilator lint_off UNUSEDPARAM */
package tcp_pkg;
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
endpackage
/* verilator lint_on UNUSEDPARAM */
