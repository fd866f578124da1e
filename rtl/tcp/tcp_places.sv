// SPDX-License-Identifier: Apache-2.0
//
// Moves the positions and numbers of a stream in the steps of an event (transmit clock; two results are its only state).
//
//                     +------------+
//   step, found =====>|            |====> placed, nxt_next
//   nxt, sent ... ===>| tcp_places |====> number
//   confirms ========>|            |----> reaches_recover, reaches_timed
//   fitting =========>|            |
//                     +------------+
//
// One adder serves all positions: the confirmed amount is subtracted from each, one step after another; the words to send
// are added to the next position. A confirmed position becomes una itself. Another adder gives the number of the data to
// send, or the new una, one clock after the last step.
`default_nettype none
module tcp_places #(
    parameter int BITS = 12  // a socket buffer is 2^BITS words
) (
    input logic clk,
    input logic [tcp_pkg::STEPS-1:0] step,
    input tcp_pkg::look_t found,
    input tcp_pkg::flags_t flags,
    input logic recovers,  // see tcp_schedule
    input logic fresh,  // the first connection begins
    input logic [31:0] first_sequence,  // its number, a multiple of twice the buffer
    input logic [BITS:0] fitting,
    input logic [BITS:0] confirms,
    input logic [28:0] una,
    input logic [31:0] peer_next,
    input logic [BITS:0] nxt,
    input logic [BITS:0] sent,
    input logic [BITS:0] recover,
    input logic [BITS:0] timed,
    input logic [BITS:0] hole_place,
    output logic [BITS:0] placed,
    output logic [BITS:0] nxt_next,
    output logic reaches_recover,
    output logic reaches_timed,
    output logic [28:0] number
);
  localparam int P = BITS + 1;

  logic [P-1:0] place, change;
  logic [P+1:0] sum;
  logic [  P:0] moved_place;  // with a sign
  logic subtracts, reaches, looks, above;
  assign looks = step[tcp_pkg::LOOK_APPLY];
  assign subtracts = !looks && !step[tcp_pkg::TIMER_APPLY];
  assign change = looks ? fitting : subtracts ? ~confirms : '0;
  // What the next step needs.
  always_ff @(posedge clk) begin
    place <= sent;
    // A window that fell for a mark may fall again above `recover`.
    above <= step[tcp_pkg::SEGMENT_JUDGE] && !flags.recovering && !flags.rewound;
    if (step[tcp_pkg::SEGMENT_JUDGE]) place <= recovers ? recover : timed;
    if (step[tcp_pkg::SEGMENT_RECOVER]) place <= timed;
    if (step[tcp_pkg::SEGMENT_TIMED] || step[tcp_pkg::LOOK_FOURTH] || looks) place <= nxt;
  end
  // The lowest bit is the carry into the others.
  assign sum = {1'b0, place, 1'b1} + {subtracts, change, subtracts};
  assign moved_place = sum[P+1:1];
  assign reaches = {place, above} <= {confirms, 1'b0};
  assign placed = moved_place[P] || (looks && found.connects) ? '0 : moved_place[P-1:0];
  // A time-out goes back to una.
  assign nxt_next = step[tcp_pkg::TIMER_APPLY] ? '0 : placed;
  always_ff @(posedge clk) begin
    if (step[tcp_pkg::SEGMENT_RECOVER]) reaches_recover <= reaches;
    if (step[tcp_pkg::SEGMENT_TIMED]) reaches_timed <= reaches;
  end

  logic [28:0] ahead, ahead_next, base;
  always_comb begin
    ahead_next = '0;
    if (!looks) ahead_next[P-1:0] = confirms;
    else begin
      if (found.kind == tcp_pkg::DATA || found.kind == tcp_pkg::PURE_ACK) ahead_next[P-1:0] = nxt;
      if (found.kind == tcp_pkg::AGAIN && found.is_hole) ahead_next[P-1:0] = hole_place;
      if (fresh) ahead_next[28:P] = first_sequence[31:P+3];
      if (found.kind == tcp_pkg::A_SYN || found.kind == tcp_pkg::KEEPALIVE) ahead_next = '1;
    end
  end
  always_ff @(posedge clk) begin
    ahead <= ahead_next;
    // The number of a RST is the peer's.
    base  <= looks && found.kind == tcp_pkg::A_RST ? peer_next[31:3] : looks && fresh ? '0 : una;
  end
  assign number = ahead + base;

  logic unused;
  assign unused = &{1'b0, first_sequence[P+2:0], found, flags, sum[0], step, peer_next[2:0]};
endmodule
`default_nettype wire
