// SPDX-License-Identifier: Apache-2.0
//
// The counters of a FADE core, for both protocols, in the order of their indices.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package fade_pkg;
  // Status of the transmit side (tx_clk); as words, `sent` is word 0.
  typedef struct packed {
    logic [31:0] error;
    logic [31:0] stopping;
    logic [31:0] running;
    logic [31:0] busy;
    logic [31:0] wrong_source;
    logic [31:0] stale_acks;
    logic [31:0] delay;
    logic [31:0] protocol_errors;
    logic [31:0] early;
    logic [31:0] acknowledged;
    logic [31:0] retransmitted;
    logic [31:0] sent;
  } status_t;
  localparam int STATUS_WORDS = 12;

  // The first two words of a frame, with the first byte on the wire in the upper bits.
  typedef struct packed {
    logic [47:0] destination;
    logic [15:0] source_begin;
  } addresses_t;
  typedef struct packed {
    logic [31:0] source_end;
    logic [15:0] ethertype;
    logic [15:0] kind;  // the version of FADE-10G, the type of FADE v1
  } source_t;

  // A receiver's record of a frame has two words: this one, and the third word of the frame.
  typedef struct packed {
    logic [31:0] source_end;
    logic [15:0] source_begin;
    logic [15:0] kind;
  } record_t;

  // RESETs that were obeyed since the first START of this number, and the computer that sent the last one: zero if there was none.
  typedef struct packed {
    logic [7:0]  count;    // 255: or more
    logic [47:0] address;
  } resets_t;

  // Events that an engine tells (tx_clk), a pulse each; the counters of those up to LONG_EVENTS have 32 bits.
  localparam int EVENT_SENT = 0;
  localparam int EVENT_RETRANSMITTED = 1;
  localparam int EVENT_ACKNOWLEDGED = 2;
  localparam int EVENT_EARLY = 3;
  localparam int EVENT_PROTOCOL_ERROR = 4;
  localparam int LONG_EVENTS = 4;
  localparam int EVENT_STALE_ACK = 5;
  localparam int EVENT_WRONG_SOURCE = 6;
  localparam int EVENT_BUSY = 7;
  localparam int EVENTS = 8;

  // Frames that an engine drops (rx_clk), by first reason.
  localparam int DROP_DESTINATION = 0;
  localparam int DROP_ETHERTYPE = 1;
  localparam int DROP_VERSION = 2;
  localparam int DROP_CODE = 3;
  localparam int DROP_SHORT = 4;
  localparam int DROP_FULL = 5;
  localparam int DROPS = 6;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
