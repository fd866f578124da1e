// SPDX-License-Identifier: Apache-2.0
//
// Samples of one channel as a detector would give: pulses at random times, noise, pile-up.
//
//                  +----------------+
//   restart, ----->|                |
//   seed =========>| fadc_generator |====> sample
//   rate, noise ==>|                |
//                  +----------------+
//
// A pulse begins with a probability of rate / 2^20 in each sample; it rises in two samples, decays
// in five, and has an amplitude of up to 4096 counts with many small ones. Two pulses may overlap,
// a third one waits for its luck. Noise: the sum of four uniform numbers, times noise / 8. The
// random numbers are Marsaglia's xorshift32 (2003; shifts 13, 17, 5), which begin at `seed` after
// `restart`; the first sample behind that is the pedestal.
`default_nettype none
module fadc_generator #(
    parameter logic [11:0] PEDESTAL = 12'd100
) (
    input  logic        clk,
    input  logic        restart,
    input  logic [31:0] seed,
    input  logic [19:0] rate,
    input  logic [ 3:0] noise,
    output logic [11:0] sample
);
  localparam logic [31:0] SEED_FOR_ZERO = 32'h9E3779B9;
  localparam int AGE_END = 7;

  // The shape in 64ths, by the age of the pulse in samples.
  function automatic [6:0] shape(input [2:0] age);
    case (age)
      3'd0: shape = 7'd24;
      3'd1: shape = 7'd64;
      3'd2: shape = 7'd46;
      3'd3: shape = 7'd24;
      3'd4: shape = 7'd11;
      3'd5: shape = 7'd4;
      3'd6: shape = 7'd1;
      default: shape = 7'd0;
    endcase
  endfunction

  function automatic [31:0] xorshift32(input [31:0] x);
    reg [31:0] a;
    reg [31:0] b;
    begin
      a = x ^ (x << 13);
      b = a ^ (a >> 17);
      xorshift32 = b ^ (b << 5);
    end
  endfunction

  logic [31:0] random;
  logic [1:0][12:0] amplitude;
  logic [1:0][2:0] age;
  logic [1:0] free;
  logic begins;
  logic [12:0] height;
  logic [13:0] pulses;
  logic signed [5:0] dither;
  logic signed [10:0] scaled;
  logic signed [15:0] total;

  assign free[0] = age[0] == 3'(AGE_END);
  assign free[1] = age[1] == 3'(AGE_END);
  assign begins = random[31:12] < rate && free != '0;
  assign height = (13'(random[11:6]) + 13'd1) * (13'(random[5:0]) + 13'd1);
  assign pulses = 14'(20'(amplitude[0]) * 20'(shape(
      age[0]
  )) >> 6) + 14'(20'(amplitude[1]) * 20'(shape(
      age[1]
  )) >> 6);
  assign dither = $signed(
      6'(random[2:0]) + 6'(random[5:3]) + 6'(random[8:6]) + 6'(random[11:9]) - 6'd14
  );
  assign scaled = 11'(dither) * $signed({7'd0, noise});
  assign total = $signed(16'(PEDESTAL) + 16'(pulses)) + 16'(scaled >>> 3);

  always_ff @(posedge clk) begin
    random <= xorshift32(random);
    if (begins && free[0]) begin
      amplitude[0] <= height;
      age[0] <= '0;
    end else if (!free[0]) age[0] <= age[0] + 1'b1;
    if (begins && !free[0] && free[1]) begin
      amplitude[1] <= height;
      age[1] <= '0;
    end else if (!free[1]) age[1] <= age[1] + 1'b1;
    sample <= total < 0 ? 12'd0 : total > 16'sd4095 ? 12'd4095 : total[11:0];
    if (restart) begin
      random <= seed == '0 ? SEED_FOR_ZERO : seed;
      amplitude <= '0;
      age <= {3'(AGE_END), 3'(AGE_END)};
      sample <= PEDESTAL;
    end
  end
endmodule
`default_nettype wire
