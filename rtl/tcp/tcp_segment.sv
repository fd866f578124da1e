// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a segment from the peer (transmit clock; RFC 9293 3.10.7, 5681 section 2, 5961).
//
//                     +-------------+
//   segment =========>|             |====> meaning
//   flags, una ... ==>| tcp_segment |====> confirms, told (words), peer_next_next
//   begins, judges -->|             |
//   beyond, at_end -->|             |
//                     +-------------+
//
// It takes four clocks, in which all other inputs are stable: `begins` is the first; in the third, `judges`, it is known
// whether data is confirmed. In the second `beyond` and `at_end` say whether `confirms` is more than the data under way, or
// all of it.
`default_nettype none
module tcp_segment #(
    parameter int BITS = 12  // a socket buffer is 2^BITS words
) (
    input  logic                       clk,
    input  logic                       begins,
    input  logic                       judges,
    input  tcp_pkg::segment_t          segment,
    input  logic              [  15:0] length,         // of its payload
    input  tcp_pkg::flags_t            flags,
    input  logic              [  28:0] una,
    input  logic                       under_way,      // something is
    input  logic              [  31:0] peer_next,
    input  logic              [  15:0] raw_window,     // as the segment before had it
    input  logic              [   3:0] scale,
    input  logic              [BITS:0] best,           // the largest window that there was
    input  logic                       beyond,
    input  logic                       at_end,
    output tcp_pkg::meaning_t          meaning,
    output logic              [BITS:0] confirms,       // words after una
    output logic              [BITS:0] told,           // the window
    output logic              [  31:0] peer_next_next
);
  localparam int P = BITS + 1;
  localparam logic [P-1:0] BUFFER = {1'b1, BITS'(0)};

  logic [28:0] ack_place;
  logic [31:0] offset, shifting;
  logic [  2:0] odd;
  logic [  3:0] shift;
  logic [P+2:0] shifted;
  logic [P+5:0] shifting_on;
  logic
      shifted_over, fin, syn, rst_flag, ack_flag, is_far, is_una, carries, is_open, is_asked, plain;
  logic is_old, is_beyond, is_end, is_ahead, in_order, in_window, is_own;
  assign confirms = ack_place[P-1:0];
  assign odd = segment.ack[2:0];  // a FIN was confirmed
  assign fin = segment.flags[tcp_pkg::FIN];
  assign syn = segment.flags[tcp_pkg::SYN];
  assign rst_flag = segment.flags[tcp_pkg::RST];
  assign ack_flag = segment.flags[tcp_pkg::ACK];
  assign carries = length != '0 || fin;
  // The window of a SYN is as it is (RFC 7323 2.2).
  assign shift = syn ? 4'd0 : scale;
  assign shifting = {16'd0, segment.window} << {shift[3:2], 2'b00};
  assign shifting_on = (P + 6)'(shifted) << shift[1:0];
  assign is_far = ack_place[28:P] != '0;
  assign is_una = ack_place == '0;

  always_ff @(posedge clk) begin
    // First.
    if (begins) ack_place <= segment.ack[31:3] - una;
    offset <= segment.sequence_number - peer_next;
    shifted <= (P + 3)'(shifting);
    shifted_over <= 32'(shifting >> (P + 2)) != '0;
    is_asked <= flags.state == tcp_pkg::SYN_SENT;
    is_open <= flags.state == tcp_pkg::OPEN || flags.state == tcp_pkg::FIN_SENT || flags.state == tcp_pkg::FIN_CONFIRMED;
    plain <= ack_flag && !syn && !rst_flag;
    // Second.
    is_old <= ack_place[28];
    is_beyond <= beyond;
    is_end <= at_end;
    is_own <= is_una && odd == '0;
    in_order <= offset == '0;
    in_window <= offset < 32'(tcp_pkg::RECEIVE_WINDOW);
    told <= shifted_over || shifting_on[P+5:P+2] != '0 ? BUFFER : shifting_on[P+2:3];
    meaning.is_fin_acked <= plain && flags.state == tcp_pkg::FIN_SENT && is_una && odd == 3'd1;
    meaning.is_duplicate <= plain && is_open && is_una && odd == '0 && under_way && !carries && segment.window == raw_window;
    // Third.
    if (judges) begin
      meaning.is_new <= plain && is_open && !is_far && !is_beyond && !is_una && !(is_end && odd != '0);
      is_ahead <= !is_old && (is_far || is_beyond
          || (is_end && odd > 3'(flags.state == tcp_pkg::FIN_SENT || flags.state == tcp_pkg::FIN_CONFIRMED)));
    end
    meaning.opens <= is_asked && is_own && ack_flag && syn && !rst_flag;
    meaning.refuses <= is_asked && !is_own && ack_flag && !rst_flag;
    // RFC 5961 3.2: only the exact number breaks; one in the window is answered.
    meaning.breaks <= rst_flag && ((is_asked && is_own && ack_flag) || (is_open && in_order));
    // Fourth.
    meaning.unacceptable <= (is_asked && !(is_own && ack_flag)) || (is_open && (rst_flag ? !in_order : !plain || is_ahead));
    meaning.answers <= is_open && (rst_flag ? in_window : !plain || is_ahead || carries);
    meaning.takes <= is_open && plain && !is_ahead && carries && in_order;
    meaning.closes <= is_open && plain && !is_ahead && fin && in_order;
    meaning.has_window <= is_open && plain && !is_ahead && !is_old;
    meaning.is_wider <= is_open && plain && !is_ahead && !is_old && told > best;
  end

  // A stranger's ACK is the number of the RST.
  logic [32:0] moved;
  logic [15:0] bytes;
  logic counts;  // SYN or FIN
  assign bytes = syn || meaning.refuses ? '0 : length;
  assign counts = (fin || syn) && !meaning.refuses;
  assign moved = {16'd0, bytes, counts} + {meaning.refuses ? segment.ack : segment.sequence_number, 1'b1};
  assign peer_next_next = moved[32:1];

  logic unused;
  assign unused = &{1'b0, moved[0], shifting_on[2:0], segment, flags};
endmodule
`default_nettype wire
