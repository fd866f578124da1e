// SPDX-License-Identifier: Apache-2.0
//
// Sum of the 16-bit words of a message, for its checksum (RFC 1071).
//
//              +----------+
//   s_* ======>| ones_sum |====> sum (a clock after the last word)
//   clear ---->|          |
//              +----------+
//
// The message begins with the upper byte of a word, in the lowest lane.
`default_nettype none
module ones_sum #(
    parameter int WIDTH = 8
) (
    input  logic             clk,
    input  logic             clear,
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    output logic [     31:0] sum
);
  logic [31:0] part;
  if (WIDTH == 8) begin : g_bytes
    logic odd;
    assign part = s_count == '0 ? '0 : odd ? 32'(s_data) : {16'd0, s_data, 8'd0};
    always_ff @(posedge clk) begin
      if (clear) odd <= 1'b0;
      else if (s_valid && s_count != '0) odd <= !odd;
    end
  end else begin : g_words
    always_comb begin
      part = '0;
      for (int i = 0; i < WIDTH / 8; i++) begin
        if (4'(i) < s_count)
          part += i % 2 == 0 ? {16'd0, s_data[i*8+:8], 8'd0} : 32'(s_data[i*8+:8]);
      end
    end
  end
  always_ff @(posedge clk) begin
    if (clear) sum <= '0;
    else if (s_valid) sum <= sum + part;
  end
endmodule
`default_nettype wire
