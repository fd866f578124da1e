// SPDX-License-Identifier: Apache-2.0
//
// Constants of FADE-10G (docs/protocol/fade10g.md). tests/vectors/fade10g.json checks them against the
// host's.
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package fade10g_pkg;
  localparam logic [15:0] ETHERTYPE = 16'hFADE;
  localparam logic [15:0] VERSION = 16'h0100;
  localparam logic [31:0] CORE_VERSION = {8'h0A, 8'd0, 8'd2, 8'd0};  // see link_pkg::STATUS_VERSION
  localparam logic [7:0] FILLER = 8'hA5;
  localparam logic [15:0] TYPE_DATA = 16'hA5A5;
  localparam logic [15:0] TYPE_LAST = 16'hA5A6;
  localparam logic [15:0] TYPE_RESPONSE = 16'hA55A;

  localparam logic [15:0] CMD_START = 16'h0001;
  localparam logic [15:0] CMD_STOP = 16'h0002;
  localparam logic [15:0] ACK = 16'h0003;
  localparam logic [15:0] NACK = 16'h0004;
  localparam logic [15:0] CMD_RESET = 16'h0005;
  localparam logic [15:0] CMD_IDENTIFY = 16'h0006;
  localparam logic [15:0] CMD_RESET_BY = 16'h0007;
  localparam logic [15:0] CMD_USER_FIRST = 16'h0100;

  localparam logic [15:0] BLOCK_MARK = 16'hB10C;  // of a block ACK, behind its delay
  localparam logic [7:0] IDENTITY_BLOCK_ACKS = 8'd4;  // flag: it takes block ACKs
  localparam logic [7:0] IDENTITY_CSN = 8'd8;  // flag: it knows a last command
  localparam logic [7:0] IDENTITY_RESETS = 8'd16;  // flag: it counts RESETs, and answers CMD_RESET_BY

  localparam logic [7:0] IDENTITY_SAME_WORDS = 8'd64;  // flag: a packet that it sends again has the same words
  localparam logic [7:0] IDENTITY_CHECKSUM = 8'd32;  // flag: the last packet has a CRC, if START asks for it
  localparam logic [31:0] START_CHECKSUM = 32'd1;  // in the argument of START: that is asked for
  localparam logic [31:0] START_PERMIT = 32'd2;  // in it: obeyed only with the permit, which is above
  localparam int PERMIT_SHIFT = 2;  // of the permit, in the argument and in the answer
  localparam logic [15:0] CHECKSUM_MARK = 16'hC4EC;  // above the number of valid words: the CRC is above this

  // The third word of a frame from the computer.
  typedef struct packed {
    logic [15:0] code;
    logic [15:0] number;    // CSN of a command, sequence of an ACK
    logic [31:0] argument;  // of a command; packet of an ACK
  } fields_t;

  // The answer to a command.
  typedef struct packed {
    logic [15:0] code;
    logic [15:0] csn;
    logic [63:0] value;
  } answer_t;

  localparam int PACKET_WORDS = 1024;  // of 64 bits
  localparam int WORD_BITS = $clog2(PACKET_WORDS);

  // Of a data frame: preamble, header, data, frame check sequence, gap.
  localparam int DATA_WIRE_BYTES = 8 + 40 + 8 * PACKET_WORDS + 4 + 12;

  // Answer to START or STOP: done, or nothing done because a transmission still runs or ends, or without the permit.
  localparam logic [63:0] STATUS_DONE = 64'd0;
  localparam logic [63:0] STATUS_STOPPING = 64'd1;
  localparam logic [63:0] STATUS_RUNNING = 64'd2;
  localparam logic [63:0] STATUS_PERMIT = 64'd3;  // the permit is above it
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
