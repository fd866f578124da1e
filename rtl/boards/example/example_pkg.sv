// SPDX-License-Identifier: Apache-2.0
//
// Settings and state of the example boards. A design uses only some of them. Structures of other packages are vectors here,
// because Yosys does not find such types inside a package.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package example_pkg;
  // What is behind the MAC.
  localparam int FADE = 0;
  localparam int TCP = 1;
  localparam int UDP = 2;
  localparam int FADC = 3;

  // Of pattern_source.
  typedef struct packed {
    logic random;
    logic [63:0] seed;
    logic [31:0] limit;  // words, 0: endless
    logic [15:0] gap;  // idle clocks after each word
    logic [15:0] block;  // words, 0: none
  } source_t;

  // Of example_crate.
  typedef struct packed {
    logic [31:0] source_id;
    logic [63:0] first_window;
    logic [63:0] first_sec;
    logic [31:0] first_nsec;
    logic [17:0] window_ticks;
    logic [23:0] keepalive;
    logic [31:0] windows;
    logic [15:0] module_enable;
    logic [31:0] pulse_seed;
    logic [19:0] pulse_rate;
    logic [19:0] burst_rate;
    logic [31:0] burst_every;
    logic [31:0] burst_ticks;
    logic [3:0]  noise;
  } crate_t;

  typedef struct packed {
    logic [47:0] mac_address;
    source_t source;
    crate_t crate;
    // FADE
    logic [31:0] first_packet;
    logic [31:0] first_sequence;  // of frames (its lower 16 bits), or of TCP
    logic paper_rule;
    // IP protocols
    logic [127:0] ip;  // net_pkg::ip_t
    logic [15:0] peer_port;
    logic [15:0] local_port;
    // TCP
    logic [13:0] mtu;
    logic push;
    logic ecn;
    logic sack;
    logic [2:0] streams;
    // UDP
    logic [13:0] payload;
    logic checksum;
    logic start;
    logic [1:0] ptp_role;  // with PTP beside the data, too
  } settings_t;

  localparam int COUNTERS = 29;
  // For a display (tx_clk); what a design does not have is zero.
  typedef struct packed {
    logic running;
    logic path;
    logic [31:0] sent;
    logic [31:0] retransmitted;
    logic [31:0] early;
    logic [31:0] delay;
    logic [177:0] clock;  // ptp_pkg::status_t
    logic [COUNTERS*32-1:0] counters;
  } status_t;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
