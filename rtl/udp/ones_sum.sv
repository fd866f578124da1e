// SPDX-License-Identifier: Apache-2.0
//
// Checks the sum of the 16-bit words of a message (RFC 1071): all ones, if its checksum is right.
//
//              +----------+
//   s_* ======>| ones_sum |----> right
//   clear ---->|          |
//              +----------+
//
// The message begins with the upper byte of a word, in the lowest lane. `right` is valid at most net_pkg::SUM_LAG clocks
// after the last word; `clear` comes then, or later.
`default_nettype none
module ones_sum #(
    parameter int WIDTH = 8
) (
    input  logic             clk,
    input  logic             clear,
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    output logic             right
);
  if (WIDTH == 8) begin : g_bytes
    // Each byte is added to the lower half, and both halves change places: so a carry counts 256.
    logic [15:0] sum;
    logic carry;
    always_ff @(posedge clk) begin
      if (s_valid && s_count[0])
        {carry, sum} <= {1'b0, sum[7:0], sum[15:8]} + {8'd0, carry, s_data};
      if (clear) {carry, sum} <= '0;
      right <= &{sum[15:9], sum[8] ^ carry, sum[7:0]};
    end
    logic unused;
    assign unused = &{1'b0, s_count};
  end else begin : g_words
    logic [WIDTH-1:0] halves;
    logic [16:0] pair_first, pair_second;
    logic [17:0] part;
    logic [31:0] sum;
    logic [16:0] folded;
    for (genvar i = 0; i < WIDTH / 8; i++) begin : g_byte
      assign halves[(i^1)*8+:8] = s_count > 4'(i) ? s_data[i*8+:8] : 8'd0;
    end
    always_ff @(posedge clk) begin
      pair_first  <= {1'b0, halves[15:0]} + {1'b0, halves[31:16]};
      pair_second <= {1'b0, halves[47:32]} + {1'b0, halves[63:48]};
      if (!s_valid) {pair_first, pair_second} <= '0;
      part <= {1'b0, pair_first} + {1'b0, pair_second};
      sum <= sum + 32'(part);
      folded <= {1'b0, sum[31:16]} + {1'b0, sum[15:0]};
      if (clear) sum <= '0;
    end
    assign right = folded == 17'h0FFFF || folded == 17'h1FFFE;
  end
endmodule
`default_nettype wire
