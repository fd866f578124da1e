// SPDX-License-Identifier: Apache-2.0
//
// A sample of fadc_generator, and the state for the next one. Combinational.
//
//              +---------------------+
//   state ====>|                     |====> sample
//   rate =====>| fadc_generator_step |
//   noise ====>|                     |====> next
//              +---------------------+
`default_nettype none
module fadc_generator_step #(
    parameter logic [11:0] PEDESTAL = 12'd100
) (
    input  fadc_pkg::generator_t        state,
    input  logic                 [19:0] rate,
    input  logic                 [ 3:0] noise,
    output logic                 [11:0] sample,
    output fadc_pkg::generator_t        next
);
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
  logic free0, free1, begins;
  logic [12:0] height;
  logic [13:0] pulses;
  logic signed [5:0] dither;
  logic signed [10:0] scaled;
  logic signed [15:0] total;

  assign random = state.random;
  assign free0 = state.age0 == fadc_pkg::AGE_END;
  assign free1 = state.age1 == fadc_pkg::AGE_END;
  assign begins = random[31:12] < rate && (free0 || free1);
  assign height = (13'(random[11:6]) + 13'd1) * (13'(random[5:0]) + 13'd1);
  assign pulses = 14'(20'(state.amplitude0) * 20'(shape(
      state.age0
  )) >> 6) + 14'(20'(state.amplitude1) * 20'(shape(
      state.age1
  )) >> 6);
  assign dither = $signed(
      6'(random[2:0]) + 6'(random[5:3]) + 6'(random[8:6]) + 6'(random[11:9]) - 6'd14
  );
  assign scaled = 11'(dither) * $signed({7'd0, noise});
  assign total = $signed(16'(PEDESTAL) + 16'(pulses)) + 16'(scaled >>> 3);
  assign sample = total < 0 ? 12'd0 : total > 16'sd4095 ? 12'd4095 : total[11:0];

  always_comb begin
    next = state;
    next.random = xorshift32(random);
    if (!free0) next.age0 = state.age0 + 1'b1;
    if (!free1) next.age1 = state.age1 + 1'b1;
    if (begins && free0) begin
      next.amplitude0 = height;
      next.age0 = '0;
    end else if (begins) begin
      next.amplitude1 = height;
      next.age1 = '0;
    end
  end
endmodule
`default_nettype wire
