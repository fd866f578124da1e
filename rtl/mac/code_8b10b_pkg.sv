// SPDX-License-Identifier: Apache-2.0
//
// The 8B/10B code of 1000BASE-X (IEEE 802.3 clause 36.2.4, tables 36-1 and 36-2).
//
// A code group has its bits in the order of the line, `a` in bit 0. Disparity: 1 is positive.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package code_8b10b_pkg;
  localparam logic [7:0] K28_5 = 8'hBC;
  localparam logic [7:0] K_START = 8'hFB;  // K27.7, /S/
  localparam logic [7:0] K_END = 8'hFD;  // K29.7, /T/
  localparam logic [7:0] K_EXTEND = 8'hF7;  // K23.7, /R/
  localparam logic [7:0] K_ERROR = 8'hFE;  // K30.7, /V/
  localparam logic [7:0] D5_6 = 8'hC5;
  localparam logic [7:0] D16_2 = 8'h50;
  localparam logic [7:0] D21_5 = 8'hB5;
  localparam logic [7:0] D2_2 = 8'h42;

  // A byte, and whether it is a special code group.
  typedef struct packed {
    logic control;
    logic [7:0] data;
  } octet_t;

  // The code group, and the disparity behind it.
  typedef struct packed {
    logic disparity;
    logic [9:0] code;
  } coded_t;

  // abcdei of five bits with negative disparity, `a` on the left.
  function automatic [5:0] six(input [4:0] x, input is_k28);
    case (x)
      5'd0: six = 6'b100111;
      5'd1: six = 6'b011101;
      5'd2: six = 6'b101101;
      5'd3: six = 6'b110001;
      5'd4: six = 6'b110101;
      5'd5: six = 6'b101001;
      5'd6: six = 6'b011001;
      5'd7: six = 6'b111000;
      5'd8: six = 6'b111001;
      5'd9: six = 6'b100101;
      5'd10: six = 6'b010101;
      5'd11: six = 6'b110100;
      5'd12: six = 6'b001101;
      5'd13: six = 6'b101100;
      5'd14: six = 6'b011100;
      5'd15: six = 6'b010111;
      5'd16: six = 6'b011011;
      5'd17: six = 6'b100011;
      5'd18: six = 6'b010011;
      5'd19: six = 6'b110010;
      5'd20: six = 6'b001011;
      5'd21: six = 6'b101010;
      5'd22: six = 6'b011010;
      5'd23: six = 6'b111010;
      5'd24: six = 6'b110011;
      5'd25: six = 6'b100110;
      5'd26: six = 6'b010110;
      5'd27: six = 6'b110110;
      5'd28: six = is_k28 ? 6'b001111 : 6'b001110;
      5'd29: six = 6'b101110;
      5'd30: six = 6'b011110;
      default: six = 6'b101011;
    endcase
  endfunction

  // fghj of three bits with negative disparity, `f` on the left.
  function automatic [3:0] four(input [2:0] y, input control, input alternative);
    case (y)
      3'd0: four = 4'b1011;
      3'd1: four = control ? 4'b0110 : 4'b1001;
      3'd2: four = control ? 4'b1010 : 4'b0101;
      3'd3: four = 4'b1100;
      3'd4: four = 4'b1101;
      3'd5: four = control ? 4'b0101 : 4'b1010;
      3'd6: four = control ? 4'b1001 : 4'b0110;
      default: four = alternative ? 4'b0111 : 4'b1110;
    endcase
  endfunction

  function automatic [10:0] encode(input [8:0] octet, input disparity);
    reg control, middle, alternative, unbalanced6, unbalanced4;
    reg [4:0] x;
    reg [2:0] y;
    reg [5:0] abcdei;
    reg [3:0] fghj;
    begin
      {control, y, x} = octet;
      abcdei = six(x, control && x == 5'd28);
      unbalanced6 = ^abcdei == 1'b0;
      middle = disparity ^ unbalanced6;
      if (disparity && (unbalanced6 || x == 5'd7)) abcdei = ~abcdei;
      alternative = control || (!middle && (x == 5'd17 || x == 5'd18 || x == 5'd20))
          || (middle && (x == 5'd11 || x == 5'd13 || x == 5'd14));
      fghj = four(y, control, alternative);
      unbalanced4 = ^fghj;
      if (middle && (unbalanced4 || control || y == 3'd3)) fghj = ~fghj;
      encode = {
        middle ^ unbalanced4,
        fghj[0],
        fghj[1],
        fghj[2],
        fghj[3],
        abcdei[0],
        abcdei[1],
        abcdei[2],
        abcdei[3],
        abcdei[4],
        abcdei[5]
      };
    end
  endfunction

  // The byte of a code group; `encode` says whether it is valid.
  function automatic [8:0] decode(input [9:0] code);
    reg [5:0] abcdei;
    reg [3:0] fghj;
    reg [4:0] x;
    reg [2:0] y;
    reg is_k28, control;
    begin
      abcdei = {code[0], code[1], code[2], code[3], code[4], code[5]};
      fghj = {code[6], code[7], code[8], code[9]};
      is_k28 = abcdei == 6'b001111 || abcdei == 6'b110000;
      x = 5'd28;
      for (int i = 0; i < 32; i++)
      if (!is_k28 && (six(5'(i), 1'b0) == abcdei || six(5'(i), 1'b0) == ~abcdei)) x = 5'(i);
      // Complements that are other code groups of six bits.
      for (int i = 0; i < 32; i++) if (!is_k28 && six(5'(i), 1'b0) == abcdei) x = 5'(i);
      if (abcdei == 6'b110000) fghj = ~fghj;
      case (fghj)
        4'b1011, 4'b0100: y = 3'd0;
        4'b1001: y = 3'd1;
        4'b0101: y = 3'd2;
        4'b1100, 4'b0011: y = 3'd3;
        4'b1101, 4'b0010: y = 3'd4;
        4'b1010: y = 3'd5;
        4'b0110: y = 3'd6;
        default: y = 3'd7;
      endcase
      control = is_k28 || ((x == 5'd23 || x == 5'd27 || x == 5'd29 || x == 5'd30) && (fghj == 4'b0111 || fghj == 4'b1000));
      decode = {control, y, x};
    end
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
