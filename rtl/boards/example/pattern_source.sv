// SPDX-License-Identifier: Apache-2.0
//
// Example source: a counter or a seeded pseudo-random sequence of 64-bit words.
//
//                 +----------------+
//   running ----->|                |
//   random, ----->| pattern_source |====> m_axis_* (64 bit)
//   seed, gap, -->|                |
//   limit, block >+----------------+
//
// Each transmission begins anew: the counter at 0, or the generator (xorshift64, Marsaglia 2003, shifts 13, 7, 17) at
// `seed`, whose first output is the step after the seed; seed 0 means SEED_FOR_ZERO. `gap` idle clocks follow each word;
// after `limit` words the source stops (0: no limit). A block ends, with tlast, after each `block` words (0: only with the
// last word). The settings are sampled when `running` rises.
`default_nettype none
module pattern_source #(
    parameter logic [63:0] SEED_FOR_ZERO = 64'h9E3779B97F4A7C15
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        running,
    input  logic        random,
    input  logic [63:0] seed,
    input  logic [15:0] gap,
    input  logic [31:0] limit,
    input  logic [15:0] block,
    output logic [63:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast
);
  logic started, endless;
  logic [31:0] left;
  logic [15:0] block_left;
  logic [15:0] pause;
  logic [63:0] from, next;
  logic more, ends, block_ends;

  function automatic [63:0] xorshift64(input [63:0] x);
    reg [63:0] a;
    reg [63:0] b;
    begin
      a = x ^ (x << 13);
      b = a ^ (a >> 7);
      xorshift64 = b ^ (b << 17);
    end
  endfunction

  assign from = started ? m_axis_tdata : seed == '0 ? SEED_FOR_ZERO : seed;
  assign next = random ? xorshift64(from) : started ? m_axis_tdata + 64'd1 : 64'd0;
  // Whether a word follows the one that stands at the output, and whether a block ends with that word.
  assign more = endless || left != 32'd1;
  assign ends = !endless && left == 32'd2;
  assign block_ends = block != '0 && (block_left == 16'd1 ? block : block_left - 16'd1) == 16'd1;

  always_ff @(posedge clk) begin
    if (rst || !running) begin
      started <= 1'b0;
      m_axis_tvalid <= 1'b0;
    end else if (!started) begin
      started <= 1'b1;
      endless <= limit == '0;
      left <= limit;
      block_left <= block;
      pause <= '0;
      m_axis_tdata <= next;
      m_axis_tvalid <= 1'b1;
      m_axis_tlast <= limit == 32'd1 || block == 16'd1;
    end else if (pause != '0) begin
      pause <= pause - 16'd1;
      m_axis_tvalid <= pause == 16'd1;
    end else if (m_axis_tvalid && m_axis_tready) begin
      m_axis_tdata <= next;
      m_axis_tvalid <= more && gap == '0;
      m_axis_tlast <= ends || block_ends;
      left <= left - 32'd1;
      if (block != '0) block_left <= block_left == 16'd1 ? block : block_left - 16'd1;
      if (more) pause <= gap;
    end
  end
endmodule
`default_nettype wire
