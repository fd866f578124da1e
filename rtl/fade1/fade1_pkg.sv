// SPDX-License-Identifier: Apache-2.0
//
// Constants of FADE v1 (docs/protocol/fade1.md). tests/vectors/fade1.json checks them against the host's.
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package fade1_pkg;
  localparam logic [31:0] CORE_VERSION = {8'h01, 8'd0, 8'd2, 8'd0};  // see link_pkg::STATUS_VERSION

  localparam logic [15:0] ETHERTYPE = 16'hFADE;
  localparam logic [7:0] FILLER = 8'hA5;
  localparam logic [15:0] TYPE_START = 16'h0001;
  localparam logic [15:0] TYPE_STOP = 16'h0002;
  localparam logic [15:0] TYPE_ACK = 16'h0003;
  localparam logic [15:0] TYPE_RESET = 16'h0005;
  localparam logic [15:0] TYPE_DATA = 16'hA5A5;
  localparam logic [15:0] TYPE_STATE = 16'hA55A;  // the answer to START, STOP and IDENTIFY
  localparam logic [15:0] TYPE_FADE10G = 16'h0100;  // in this place: the version of FADE-10G
  localparam logic [15:0] CMD_IDENTIFY = 16'h0006;  // behind it: its command that is answered here, too

  localparam logic [15:0] BLOCK_MARK = 16'hB10C;  // of a block ACK, behind its packet number

  // The third word of a frame from the computer.
  typedef struct packed {
    logic [15:0] set;
    logic [5:0]  packet;
    logic [9:0]  retry;
    logic [15:0] mark;
    logic [15:0] rest;
  } fields_t;

  // The same of START.
  typedef struct packed {
    logic [15:0] transmission;  // its number
    logic [15:0] mark;          // PERMIT_MARK: it is obeyed only with the permit
    logic [31:0] permit;
  } start_t;
  localparam logic [15:0] PERMIT_MARK = 16'h9E12;  // in the sixth word of a state frame, too: zero u16, permit u32 (0: there is none)

  // What the board reports on its current or last transmission.
  localparam logic [15:0] STATE_NONE = 16'd0;  // none since it was switched on
  localparam logic [15:0] STATE_RUNNING = 16'd1;
  localparam logic [15:0] STATE_STOPPING = 16'd2;
  localparam logic [15:0] STATE_ENDED = 16'd3;  // by STOP: every packet is confirmed
  localparam logic [15:0] STATE_RESET = 16'd4;  // by RESET

  // The third word of a state frame.
  typedef struct packed {
    logic [15:0] state;
    logic [15:0] transmission;  // the number that its START had
    logic [31:0] packets;       // sent at least once
  } state_t;
  localparam logic [7:0] STATE_RESETS = 8'd1;  // before the RESETs in the fourth word: they are counted
  localparam logic [15:0] CHECKSUM_MARK = 16'hC4EC;  // in the fifth word: valid words of the last packet u16, CRC of all words u32
  localparam int STATE_FRAME_LEN = 64;

  localparam int PACKET_WORDS = 128;  // of 64 bits
  localparam int WORD_BITS = $clog2(PACKET_WORDS);
  localparam int SET_PACKETS = 32;
  localparam int SLOT_BITS = $clog2(SET_PACKETS);
  localparam int ADDRESS_BITS = SLOT_BITS + WORD_BITS;  // of the packet memory
  localparam int RETRY_BITS = 10;  // below the packet number, unused by the protocol
  localparam logic [9:0] RETRY_FADELINK = 10'h2A5;  // what stands there: tells that this is a Fadelink board

  // The bits above the delay, of a Fadelink board: it takes block ACKs; a packet that it sends again has the same words.
  localparam logic TAKES_BLOCK_ACKS = 1'b1;
  localparam logic SAME_WORDS = 1'b1;

  // Of a data frame: preamble, header, data, frame check sequence, gap.
  localparam int DATA_WIRE_BYTES = 8 + 24 + 8 * PACKET_WORDS + 4 + 12;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
