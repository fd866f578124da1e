// SPDX-License-Identifier: Apache-2.0
//
// Constants of the TCP sender (RFC 9293).
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package tcp_pkg;
  localparam logic [31:0] CORE_VERSION = {8'h10, 8'd0, 8'd1, 8'd0};  // see link_pkg::STATUS_VERSION

  localparam int IP_TCP_BYTES = 40;
  localparam logic [15:0] RECEIVE_WINDOW = 16'd4096;  // what comes is discarded

  // Flags of a segment.
  localparam int FIN = 0;
  localparam int SYN = 1;
  localparam int RST = 2;
  localparam int PSH = 3;
  localparam int ACK = 4;
  localparam int ECE = 6;  // RFC 3168
  localparam int CWR = 7;
  // The last two bits of the IP header's second byte (RFC 3168 5).
  localparam logic [1:0] ECT_0 = 2'b10;  // it may be marked
  localparam logic [1:0] CONGESTION_MARK = 2'b11;

  // The record of a good frame, on its way from the receive to the transmit clock: words of the frame from the source
  // address on (see tcp_rx), but for the first, which has what was found out.
  localparam int RECORD_BITS = 4;  // of a word's number
  localparam int META_WORD = 0;
  localparam int OPTIONS_WORD = 6;

  localparam logic [1:0] RECORD_ARP_REQUEST = 2'd0;
  localparam logic [1:0] RECORD_ARP_REPLY = 2'd1;
  localparam logic [1:0] RECORD_ECHO = 2'd2;
  localparam logic [1:0] RECORD_SEGMENT = 2'd3;

  typedef struct packed {
    logic [1:0] kind;
    logic from_peer;  // the source address is the peer's
    logic marked;  // by a switch on its way (RFC 3168)
    logic [15:0] length;  // of the payload; of an echo request: of the packet
  } meta_t;
  localparam int META_BITS = 2 + 1 + 1 + 16;

  localparam int WORDS_BITS = 11;  // of the words of a segment

  // The same, read.
  typedef struct packed {
    logic [15:0] source_port;
    logic [15:0] port;
    logic [31:0] sequence_number;
    logic [31:0] ack;
    logic [7:0] flags;
    logic [15:0] window;
    logic [WORDS_BITS-1:0] mss;  // of a SYN, in words
    logic [3:0] scale;
    logic marked;
    // RFC 2018: of a SYN; the first block of the option, in words
    logic sack_allowed;
    logic has_block;
    logic [28:0] left;
    logic [28:0] right;
  } segment_t;
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
  } neighbour_t;

  // A frame in the frame memory.
  typedef struct packed {
    logic [WORDS_BITS-1:0] words;  // less one
    logic is_segment;  // its checksum goes into word SUM_WORD
    logic [2:0] last_bytes;  // that count in its last word, modulo 8
    logic [15:0] checksum;
  } made_t;
  localparam int MADE_BITS = WORDS_BITS + 1 + 3 + 16;
  localparam int SUM_WORD = 6;

  // The segment to send next.
  typedef struct packed {
    logic [31:0] sequence_number;
    logic [31:0] ack;
    logic [7:0] flags;
    logic takes_marks;
    logic [WORDS_BITS-1:0] words;
  } request_t;

  // A stream's connection.
  typedef enum logic [2:0] {
    IDLE,
    SYN_SENT,
    OPEN,
    FIN_SENT,
    FIN_CONFIRMED,  // until the peer has closed, too
    BROKEN  // until the next attempt
  } state_t;
  // Explicit congestion notification (RFC 3168), see tcp_ecn.
  typedef struct packed {
    logic agreed;   // both ends use it
    logic reduced;  // the window, until more is confirmed than was under way
    logic tells;    // CWR is due, with the next new data
    logic echoes;   // a mark of the peer's data, until its CWR
  } ecn_t;
  typedef struct packed {
    state_t state;
    logic started;  // una holds the place in the stream
    logic ack_due;
    logic syn_due;
    logic rst_due;
    logic fin_due;
    logic retry_due;
    logic resend;  // the first segment
    logic recovering;  // RFC 6582
    logic repaired;  // its first segment went again for the second time
    logic rewound;  // by a time-out, until what was under way is confirmed
    logic force_one;  // a word goes whatever the window is
    logic timing;  // a round trip
    logic persists;  // the timer is for the window to open
    logic peer_closed;
    logic pauses;  // before the data that an ACK lets go; with many streams each is looked at too seldom
    logic halted;  // data, by the congestion window, in this round trip
    logic bounded;  // by it in this or the last one: only then it opens (RFC 7661)
    logic [1:0] duplicates;  // ACKs, but in a recovery
    logic [3:0] backoff;
    ecn_t ecn;
    logic selective;  // the peer tells what it misses (RFC 2018)
    logic [3:0] mends;  // segments of holes that are due
    logic turn;  // every other duplicate ACK of a recovery
  } flags_t;
  localparam int FLAGS_BITS = 3 + 17 + 2 + 4 + 4 + 6;

  // Steps of the engine's events: a bit each.
  localparam int WIPE = 0;
  localparam int PICK = 1;
  localparam int LOOK = 2;  // see tcp_look
  localparam int LOOK_SECOND = 3;
  localparam int LOOK_THIRD = 4;
  localparam int LOOK_FOURTH = 5;
  localparam int LOOK_APPLY = 6;
  localparam int SEGMENT = 7;  // see tcp_segment
  localparam int SEGMENT_SECOND = 8;
  localparam int SEGMENT_JUDGE = 9;
  localparam int SEGMENT_RECOVER = 10;  // each place after una, one after another
  localparam int SEGMENT_TIMED = 11;
  localparam int SEGMENT_NEXT = 12;
  localparam int SEGMENT_APPLY = 13;
  localparam int TIMER = 14;
  localparam int TIMER_APPLY = 15;
  localparam int STEPS = 16;

  // The result of a check of a stream: the segment to send next, and what else to do.
  typedef enum logic [2:0] {
    NOTHING,
    A_SYN,
    A_RST,
    PURE_ACK,
    AGAIN,
    DATA,
    A_FIN,
    KEEPALIVE  // an ACK with the number before una
  } kind_t;
  typedef struct packed {
    kind_t kind;
    logic is_behind;  // it was sent before
    logic held;  // data is there that only the congestion window holds back
    logic waits;  // for the window
    logic drops_mark;  // of a block that was sent
    logic takes_mark;  // of a block that ends here, if it is data
    logic drained;  // nothing more comes: the connection is to be closed
    logic connects;
    logic wanted;  // a connection, or there is data
    logic ceases;  // before the connection was there
    logic is_hole;  // what goes again, see tcp_sack
    logic drops_hole;  // there is no hole any more
    logic lost;  // the peer
  } look_t;

  // What a segment means to its stream.
  typedef struct packed {
    logic opens;  // the connection
    logic refuses;  // to a SYN: it belongs to another connection, whose end is informed by it
    logic breaks;  // the connection
    logic unacceptable;
    logic answers;  // an ACK is due
    logic takes;  // payload or FIN that the peer need not repeat
    logic closes;  // the peer's direction
    logic is_new;  // it confirms data
    logic is_duplicate;
    logic is_fin_acked;
    logic has_window;
    logic is_wider;  // the window is larger than any before
  } meaning_t;

  // What tcp_rtt and tcp_congestion are told.
  typedef enum logic [1:0] {
    RTT_NOTHING,
    RTT_CLEAR,
    RTT_DOUBLE,
    RTT_SAMPLE
  } rtt_op;
  typedef enum logic [2:0] {
    WAIT,  // the retransmission time-out
    TWICE,
    TWO_ROUNDS,  // round trips
    LONGEST,
    UNTIL_RETRY
  } span_t;
  typedef enum logic [3:0] {
    CONGESTION_NOTHING,
    CONGESTION_OPENED,
    CONGESTION_OPENED_LATE,  // a SYN was lost
    CONGESTION_ACKED,
    CONGESTION_LOST,  // the third duplicate ACK
    CONGESTION_LOST_TOO,  // the same, after a mark of the same round trip
    CONGESTION_MARKED,
    CONGESTION_ANOTHER,  // a further one
    CONGESTION_PARTIAL,  // an ACK of a part of what was under way when the loss was seen
    CONGESTION_MENDED,  // of all of it
    CONGESTION_TIMED_OUT,
    CONGESTION_TIMED_OUT_AGAIN,
    CONGESTION_RESTED
  } congestion_op;

  // Events of a stream (tx_clk), a pulse each. Status word {stream, event} is the counter; the last event is none: there stand
  // the states of the streams and, of stream 1, the segments that belong to no stream.
  localparam int EVENT_SENT = 0;
  localparam int EVENT_RETRANSMITTED = 1;
  localparam int EVENT_FAST = 2;  // retransmissions
  localparam int EVENT_TIMEOUT = 3;
  localparam int EVENT_PROBE = 4;
  localparam int EVENT_RESET = 5;
  localparam int EVENT_UNACCEPTABLE = 6;
  localparam int EVENTS = 7;
  localparam int EVENT_BITS = 3;

  // What an event changes; a field of a stream that is named is written.
  typedef struct packed {
    flags_t flags;
    logic una;
    logic peer_next;
    logic nxt;
    logic sent;
    logic recover;
    logic timed;
    logic timed_at;
    logic window;
    logic best;
    logic limit;
    // the timer
    logic sets;
    logic stops;
    span_t span;
    rtt_op rtt;
    congestion_op congestion;
    logic fails;  // the connection
    logic forgets;  // the address of the next hop
    // see tcp_sack
    logic clears_holes;
    logic adds_hole;
    logic moves_hole;
    logic drops_hole;
    logic [EVENTS-1:0] happens;
  } changes_t;

  localparam int STATES_INDEX = 7;
  localparam int PORT_INDEX = 15;
  localparam int INDEX_BITS = 8;

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
