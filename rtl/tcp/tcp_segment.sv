// SPDX-License-Identifier: Apache-2.0
//
// What a segment from the peer means to its stream (transmit clock; RFC 9293 3.10.7, 5681 section 2, 5961).
//
//                     +-------------+
//   segment =========>|             |====> meaning
//   flags, una ... ==>| tcp_segment |====> confirms, told (words)
//   begins, judges -->|             |
//   beyond, at_end -->|             |
//                     +-------------+
//
// In three clocks, in which all other inputs stay: `begins` is the first, `judges` the third. In the second `beyond` and
// `at_end` tell whether `confirms` is more than what is under way, or all of it.
`default_nettype none
module tcp_segment #(
    parameter int BITS = 12  // a socket buffer is 2^BITS words
) (
    input  logic                       clk,
    input  logic                       begins,
    input  logic                       judges,
    input  tcp_pkg::segment_t          segment,
    input  logic              [  15:0] length,      // of its payload
    input  tcp_pkg::flags_t            flags,
    input  logic              [  28:0] una,
    input  logic                       under_way,   // something is
    input  logic              [  31:0] peer_next,
    input  logic              [  15:0] raw_window,  // as the segment before had it
    input  logic              [   3:0] scale,
    input  logic              [BITS:0] best,        // the largest window that there was
    input  logic                       beyond,
    input  logic                       at_end,
    output tcp_pkg::meaning_t          meaning,
    output logic              [BITS:0] confirms,    // words after una
    output logic              [BITS:0] told         // the window
);
  localparam int P = BITS + 1;
  localparam logic [P-1:0] BUFFER = {1'b1, BITS'(0)};

  logic [28:0] ack_place;
  logic [31:0] offset, shifting;
  logic [  2:0] odd;
  logic [  3:0] shift;
  logic [P+2:0] shifted;
  logic [P+5:0] shifting_on;
  logic shifted_over, fin, is_far, is_una, is_beyond, is_end, carries;
  assign confirms = ack_place[P-1:0];
  assign odd = segment.ack[2:0];  // a FIN was confirmed
  assign fin = segment.flags[tcp_pkg::FIN];
  assign carries = length != '0 || fin;
  // The window of a SYN is as it is (RFC 7323 2.2).
  assign shift = segment.flags[tcp_pkg::SYN] ? 4'd0 : scale;
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
    // Second.
    is_beyond <= beyond;
    is_end <= at_end;
    meaning.is_old <= ack_place[28];
    meaning.in_order <= offset == '0;
    meaning.in_window <= offset < 32'(tcp_pkg::RECEIVE_WINDOW);
    meaning.is_stranger <= !is_una || odd != '0;
    meaning.is_fin_acked <= flags.state == tcp_pkg::FIN_SENT && is_una && odd == 3'd1;
    meaning.is_duplicate <= is_una && odd == '0 && under_way && !carries && segment.window == raw_window;
    meaning.carries <= carries;
    told <= shifted_over || shifting_on[P+5:P+2] != '0 ? BUFFER : shifting_on[P+2:3];
    // Third.
    if (judges) begin
      meaning.is_new <= !is_far && !is_beyond && !is_una && !(is_end && odd != '0);
      meaning.is_ahead <= !ack_place[28] && (is_far || is_beyond
          || (is_end && odd > 3'(flags.state == tcp_pkg::FIN_SENT || flags.state == tcp_pkg::FIN_CONFIRMED)));
    end
    meaning.is_wider <= told > best;
  end

  logic unused;
  assign unused = &{
    1'b0, shifting_on[2:0], segment.source_port, segment.port, segment.mss, segment.scale, segment.flags[4:2], flags
  };
endmodule
`default_nettype wire
