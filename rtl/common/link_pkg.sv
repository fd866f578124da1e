// SPDX-License-Identifier: Apache-2.0
//
// Types of the sides of every core: AXI4-Stream of words and of frames, command port, pins of the MACs.
// Signals in the other direction (tready, ready) are separate. A design uses only some of these types.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package link_pkg;
  // The user's stream, 64-bit words. Arrays of streams are vectors of WORDS_BITS: Yosys takes an index into an array
  // of structs for that of a bit.
  typedef struct packed {
    logic [63:0] tdata;
    logic tvalid;
    logic tlast;
  } words_t;
  localparam int WORDS_BITS = 64 + 1 + 1;

  // Frames without preamble and frame check sequence; byte 0 is in the low lane. A MAC of 8 bits uses the low lane only.
  typedef struct packed {
    logic [63:0] tdata;
    logic [7:0] tkeep;
    logic tvalid;
    logic tlast;
    logic tuser;  // bad
  } frame_t;

  // A user command, and the answer to it.
  typedef struct packed {
    logic [15:0] code;
    logic [15:0] csn;  // command sequence number
    logic [31:0] argument;
    logic valid;
  } command_t;
  typedef struct packed {
    logic [63:0] value;
    logic valid;
  } response_t;

  // The pins of a MAC, one direction (IEEE 802.3 clauses 35 and 46).
  typedef struct packed {
    logic [7:0] data;
    logic valid;
    logic error;
  } gmii_t;
  typedef struct packed {
    logic [63:0] data;
    logic [7:0]  control;
  } xgmii_t;

  // Pulses of a MAC's receive side, one for each frame that it found bad.
  typedef struct packed {
    logic bad_fcs;
    logic oversize;
    logic runt;
    logic error;
  } mac_stat_t;
  localparam int MAC_STATS = 4;

  // Index of the status word that every core has: which core it is, major, minor, patch, a byte each.
  localparam logic [5:0] STATUS_VERSION = 6'd31;

  // A word with its bytes in the order of the wire.
  function automatic [63:0] swap64(input [63:0] word);
    swap64 = {
      word[7:0],
      word[15:8],
      word[23:16],
      word[31:24],
      word[39:32],
      word[47:40],
      word[55:48],
      word[63:56]
    };
  endfunction

  localparam int TURNS = 16;
  // Round robin: the one of `wanted` that follows `last` (one bit, or none at first); none if none is wanted.
  function automatic [TURNS-1:0] turn(input [TURNS-1:0] wanted, input [TURNS-1:0] last);
    reg [TURNS-1:0] upper;
    reg [TURNS-1:0] picked;
    begin
      upper  = wanted & ~((last - 1'b1) | last);
      picked = upper != '0 ? upper : wanted;
      turn   = picked & (~picked + 1'b1);
    end
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
