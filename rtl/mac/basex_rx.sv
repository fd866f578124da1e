// SPDX-License-Identifier: Apache-2.0
//
// Receive side of 1000BASE-X: code groups to GMII (IEEE 802.3 clause 36.2.5.2, figures 36-7 and 36-9).
//
//             +----------+
//             |          |====> gmii_rx
//   code ====>| basex_rx |====> word, word_valid (a configuration)
//             |          |----> idle (a pulse an idle), synced, code_error
//             +----------+
//
// code: ten bits of the line in each clock, at any alignment: the side looks for commas while it is not in step. It is in
// step after three commas at even code groups without an error between them, and out of step after four errors that four
// good code groups each do not make up for. code_error: a code group in step is not valid.
`default_nettype none
module basex_rx (
    input  logic                   clk,
    input  logic                   rst,
    input  logic            [ 9:0] code,
    output link_pkg::gmii_t        gmii_rx,
    output logic            [15:0] word,
    output logic                   word_valid,
    output logic                   idle,
    output logic                   synced,
    output logic                   code_error
);
  localparam logic [6:0] COMMA = 7'b1111100;  // a to g, `a` in bit 0, and its complement

  // ---- alignment -----------------------------------------------------------------------------
  logic [9:0] code1, code2, group;
  logic [19:0] bits;
  logic [3:0] offset, found_at;
  logic found;
  assign bits = {code1, code2};
  always_comb begin
    found = 1'b0;
    found_at = '0;
    for (int i = 9; i >= 0; i--)
    if (bits[i+:7] == COMMA || bits[i+:7] == ~COMMA) begin
      found = 1'b1;
      found_at = 4'(i);
    end
  end
  always_ff @(posedge clk) begin
    {code1, code2} <= {code, code1};
    if (found && !synced) offset <= found_at;
    group <= bits[5'(found&&!synced?found_at : offset)+:10];
    if (rst) offset <= '0;
  end

  // ---- code groups ---------------------------------------------------------------------------
  code_8b10b_pkg::octet_t octet;
  logic [10:0] again_negative, again_positive;
  logic disparity, is_good, is_comma;
  assign is_comma = group[6:0] == COMMA || group[6:0] == ~COMMA;
  assign octet = code_8b10b_pkg::decode(group);
  assign again_negative = code_8b10b_pkg::encode(octet, 1'b0);
  assign again_positive = code_8b10b_pkg::encode(octet, 1'b1);
  code_8b10b_pkg::octet_t q;
  logic q_good, q_comma;
  assign is_good = group == (disparity ? again_positive[9:0] : again_negative[9:0]);
  always_ff @(posedge clk) begin
    q <= octet;
    q_good <= is_good;
    q_comma <= is_comma;
    if (is_good) disparity <= disparity ? again_positive[10] : again_negative[10];
    // Behind an error the disparity is that of the group, so that one error is one error.
    else if (group == again_negative[9:0]) disparity <= again_negative[10];
    else if (group == again_positive[9:0]) disparity <= again_positive[10];
    if (rst) {disparity, q_good, q_comma} <= '0;
  end

  // ---- synchronization -----------------------------------------------------------------------
  logic even;  // the next group is even
  logic [1:0] commas, errors, good;
  logic is_bad;
  assign is_bad = !q_good || (q_comma && !even);
  always_ff @(posedge clk) begin
    even <= !even;
    code_error <= synced && !q_good;
    if (!synced) begin
      if (q_comma && q_good && (commas == '0 || even)) begin
        even   <= 1'b0;
        commas <= commas + 2'd1;
        synced <= commas == 2'd2;
      end else if (is_bad) commas <= '0;
      {errors, good} <= '0;
    end else if (is_bad) begin
      good   <= '0;
      errors <= errors + 2'd1;
      if (errors == 2'd3) begin
        synced <= 1'b0;
        commas <= '0;
      end
    end else if (errors != '0) begin
      good <= good + 2'd1;
      if (good == 2'd3) errors <= errors - 2'd1;
    end
    if (rst) {even, commas, errors, good, synced, code_error} <= '0;
  end

  // ---- ordered sets --------------------------------------------------------------------------
  typedef enum logic [2:0] {
    SEEK,
    KIND,
    LOW,
    HIGH,
    DATA
  } state_t;
  state_t state;
  logic   is_data;
  assign is_data = q_good && !q.control;
  always_ff @(posedge clk) begin
    {word_valid, idle} <= '0;
    gmii_rx <= '0;
    case (state)
      KIND: begin
        state <= SEEK;
        if (is_data && (q.data == code_8b10b_pkg::D21_5 || q.data == code_8b10b_pkg::D2_2))
          state <= LOW;
        else idle <= is_data;
      end
      LOW: begin
        word[7:0] <= q.data;
        state <= is_data ? HIGH : SEEK;
      end
      HIGH: begin
        word[15:8] <= q.data;
        word_valid <= is_data;
        state <= SEEK;
      end
      DATA:
      if (is_data) gmii_rx <= {q.data, 1'b1, 1'b0};
      else if (q_good && q.data == code_8b10b_pkg::K_END) state <= SEEK;
      else begin
        // /V/, an error, or an end without /T/.
        gmii_rx <= {q.data, 1'b1, 1'b1};
        if (q_good && q.data != code_8b10b_pkg::K_ERROR) state <= q_comma ? KIND : SEEK;
      end
      default:
      if (q_good && q.control) begin
        if (q_comma) state <= KIND;
        if (q.data == code_8b10b_pkg::K_START) begin
          state   <= DATA;
          gmii_rx <= {mac_pkg::PREAMBLE, 1'b1, 1'b0};
        end
      end
    endcase
    if (rst || !synced) begin
      state <= SEEK;
      {word_valid, idle} <= '0;
      gmii_rx <= '0;
    end
  end
endmodule
`default_nettype wire
