// SPDX-License-Identifier: Apache-2.0
//
// Reads the options of a SYN: maximum segment size, window scale, support of selective ACKs (RFC 9293 3.1, 7323 2.2, 2018).
//
//               +-------------+
//   s_length ==>|             |====> mss, scale, sack_allowed
//   s_valid --->| tcp_options |----> busy (from the next clock on, until they are read)
//   word <=====>|             |
//               +-------------+
//
// It reads one byte of word_data per clock, which comes two clocks after word_index; the first byte is in the upper bits.
// Unknown options are skipped; reading ends at an impossible length. Without the options: MSS 536 (RFC 9293 3.7.1), no
// scale.
`default_nettype none
module tcp_options (
    input  logic                           clk,
    input  logic                           rst,
    input  logic [                    5:0] s_length,
    input  logic                           s_valid,
    output logic [                    2:0] word_index,
    input  logic [                   63:0] word_data,
    output logic                           busy,
    output logic [tcp_pkg::WORDS_BITS-1:0] mss,          // in words
    output logic [                    3:0] scale,
    output logic                           sack_allowed
);
  localparam logic [7:0] END = 8'd0;
  localparam logic [7:0] NOP = 8'd1;
  localparam logic [7:0] MSS = 8'd2;
  localparam logic [7:0] SCALE = 8'd3;
  localparam logic [7:0] SACK_ALLOWED = 8'd4;
  localparam int MSS_DEFAULT = 536;
  localparam logic [3:0] SCALE_MOST = 4'd14;  // RFC 7323 2.3

  typedef enum logic [1:0] {
    KIND,
    LENGTH,
    VALUE
  } state_t;
  state_t state;

  logic [5:0] place;
  logic [6:0] left;  // bytes after this one; over the end it is negative
  logic [2:0] in_word, in_word_next;
  logic [2:0] reading;
  logic [7:0] octet, octet_last, rest;
  logic [15:0] value;
  logic is_mss, is_scale, is_allowed, value_ends, over;
  assign word_index = place[5:3];
  assign value = {octet_last, octet};
  assign over = left[6] || (state == KIND && octet == END) || (state == LENGTH && octet < 8'd2);

  always_ff @(posedge clk) begin
    {in_word, in_word_next} <= {in_word_next, place[2:0]};
    octet <= 8'(word_data >> {~in_word, 3'b000});
    place <= place + 6'd1;
    reading <= {reading[1:0], busy};
    if (!busy) begin
      place <= '0;
      {reading, value_ends} <= '0;
      left <= {1'b0, s_length};
      state <= KIND;
      busy <= s_valid;
    end else if (!reading[0]) begin
      left <= left - 7'd1;
      mss <= tcp_pkg::WORDS_BITS'(MSS_DEFAULT / 8);
      scale <= '0;
      sack_allowed <= 1'b0;
    end else if (reading[2]) begin
      left <= left - 7'd1;
      octet_last <= octet;
      rest <= rest - 8'd1;
      // Kind and length count, too.
      value_ends <= state == LENGTH ? octet == 8'd3 : state == VALUE && rest == 8'd4;
      case (state)
        KIND: begin
          is_mss <= octet == MSS;
          is_scale <= octet == SCALE;
          is_allowed <= octet == SACK_ALLOWED;
          if (octet != NOP) state <= LENGTH;
        end
        LENGTH: begin
          if (octet != 8'd4) is_mss <= 1'b0;
          if (octet != 8'd3) is_scale <= 1'b0;
          if (octet == 8'd2 && is_allowed) sack_allowed <= 1'b1;
          rest  <= octet;
          state <= octet == 8'd2 ? KIND : VALUE;
        end
        default: if (value_ends) state <= KIND;
      endcase
      if (value_ends && !left[6]) begin
        if (is_mss) mss <= value[15:14] != '0 ? '1 : value[13:3];
        if (is_scale) begin
          scale <= octet > 8'(SCALE_MOST) ? SCALE_MOST : octet[3:0];
        end
      end
      if (over) busy <= 1'b0;
    end
    if (rst) busy <= 1'b0;
  end

  logic unused;
  assign unused = &{1'b0, value[2:0]};
endmodule
`default_nettype wire
