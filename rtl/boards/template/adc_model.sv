// SPDX-License-Identifier: Apache-2.0
//
// Stands for an ADC: four samples of 16 bits in one of RATE clocks, with a pulse in each 1,024 words. Your ADC takes its place.
//
//            +-----------+
//   clk ---->| adc_model |====> samples, valid
//            +-----------+
`default_nettype none
module adc_model #(
    parameter int RATE = 5
) (
    input  logic        clk,
    input  logic        rst,
    output logic [63:0] samples,
    output logic        valid
);
  localparam logic [15:0] PULSE = 16'd4000;

  logic [ 3:0] count;
  logic [ 9:0] number;
  logic [15:0] level;
  always_ff @(posedge clk) begin
    valid <= count == '0;
    count <= count == '0 ? 4'(RATE - 1) : count - 4'd1;
    if (count == '0) begin
      number <= number + 10'd1;
      level  <= number == '1 ? PULSE : level - (level >> 3);
      for (int i = 0; i < 4; i++) samples[16*i+:16] <= level + 16'(i);
    end
    if (rst) begin
      {count, number, level} <= '0;
      valid <= 1'b0;
    end
  end
endmodule
`default_nettype wire
