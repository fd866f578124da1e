// SPDX-License-Identifier: Apache-2.0
//
// Reads the records of received frames, and their options where they count (transmit clock).
//
//               +------------+
//   record_* <=>|            |====> meta, segment, neighbour
//               | tcp_reader |----> valid
//               |            |<---- ready
//               +------------+
//
// The words of a record are read one after another: seven clocks; the memory answers two clocks after record_word. With
// `sack` it takes two more clocks if a segment has a block of selective acknowledgments at the usual place: first of the
// options, after two no-operation options. The options of a SYN (tcp_options) take one more clock per byte. `segment`
// counts if it is one, `neighbour` if the frame was ARP.
`default_nettype none
module tcp_reader (
    input  logic                                           clk,
    input  logic                                           rst,
    input  logic                                           sack,
    output logic                [tcp_pkg::RECORD_BITS-1:0] record_word,
    input  logic                [                    63:0] record_data,
    input  logic                                           record_valid,
    output logic                                           record_ready,
    output tcp_pkg::meta_t                                 meta,
    output tcp_pkg::segment_t                              segment,
    output tcp_pkg::neighbour_t                            neighbour,
    output logic                                           valid,
    input  logic                                           ready
);
  // Which word is asked for; what comes back is two behind.
  localparam logic [2:0] META = 3'd0;
  localparam logic [2:0] ADDRESS = 3'd1;
  localparam logic [2:0] PORTS = 3'd2;
  localparam logic [2:0] NUMBERS = 3'd3;
  localparam logic [2:0] WINDOW = 3'd4;
  localparam logic [2:0] BEHIND = 3'd2;
  // No operation, no operation, selective acknowledgment; the length of one block at least.
  localparam logic [23:0] BLOCK_OPTION = 24'h010105;
  localparam logic [7:0] BLOCK_LENGTH = 8'd10;

  typedef enum logic [1:0] {
    WORDS,
    OPTIONS,
    BLOCK,
    DONE
  } state_t;
  state_t state;

  logic [2:0] step;
  logic [95:0] body;  // ports and numbers, or hardware and protocol address of an ARP frame
  logic [7:0] flags;
  logic [15:0] window;
  logic [2:0] options_index;
  logic [28:0] left, right;
  logic [tcp_pkg::WORDS_BITS-1:0] mss;
  logic [3:0] scale;
  logic is_segment, is_syn, at_end, options_busy, sack_allowed, has_block;
  assign is_segment = meta.kind == tcp_pkg::RECORD_SEGMENT;
  assign at_end = state == WORDS && step == WINDOW + BEHIND;
  assign is_syn = is_segment && record_data[48+tcp_pkg::SYN];
  assign valid = state == DONE;
  assign record_ready = valid && ready;
  assign segment = {
    body, flags, window, mss, scale, meta.marked, sack_allowed, has_block, left, right
  };
  assign neighbour = {body[63:0], body[79:64]};

  always_comb begin
    case (step)
      META: record_word = tcp_pkg::RECORD_BITS'(tcp_pkg::META_WORD);
      ADDRESS: record_word = 4'd2;
      PORTS: record_word = 4'd3;
      NUMBERS: record_word = 4'd4;
      WINDOW: record_word = 4'd5;
      default: record_word = 4'(tcp_pkg::OPTIONS_WORD) + (at_end ? 4'd1 : {1'b0, options_index});
    endcase
  end

  tcp_options tcp_options (
      .s_length  ({4'(record_data[63:60] - 4'd5), 2'b00}),
      .s_valid   (at_end && is_syn),
      .word_index(options_index),
      .word_data (record_data),
      .busy      (options_busy),
      .mss       (mss),
      .scale     (scale),
      .*
  );

  always_ff @(posedge clk) begin
    case (state)
      WORDS: begin
        if (record_valid && !at_end) step <= step + 3'd1;
        if (step == META + BEHIND) meta <= record_data[tcp_pkg::META_BITS-1:0];
        if (step == ADDRESS + BEHIND || (step == NUMBERS + BEHIND && is_segment))
          body[63:0] <= record_data;
        if (step == PORTS + BEHIND)
          body[95:64] <= is_segment ? record_data[31:0] : {16'd0, record_data[63:48]};
        if (at_end) begin
          {flags, window} <= {record_data[55:48], record_data[47:32]};
          has_block <= 1'b0;
          state <= is_syn ? OPTIONS : sack && is_segment && record_data[63] ? BLOCK : DONE;
        end
      end
      OPTIONS: if (!options_busy) state <= DONE;
      BLOCK: begin
        step <= step + 3'd1;
        if (step[0]) begin
          right <= record_data[63:35];
          state <= DONE;
        end else begin
          left <= record_data[31:3];
          has_block <= record_data[63:40] == BLOCK_OPTION && record_data[39:32] >= BLOCK_LENGTH;
        end
      end
      default:
      if (ready) begin
        state <= WORDS;
        step  <= META;
      end
    endcase
    if (rst) begin
      state <= WORDS;
      step  <= META;
    end
  end
endmodule
`default_nettype wire
