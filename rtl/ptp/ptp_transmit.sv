// SPDX-License-Identifier: Apache-2.0
//
// A PTP message to the wire, as the machine has written it.
//
//                 +--------------+
//   index, word =>|              |====> data (pull contract, docs/protocol/udp.md)
//   start ------->| ptp_transmit |
//                 +--------------+
//
// 64 words of 16 bits, the first byte is the most significant of word 0. They are written while nothing is sent: not from
// `start` until one clock after `busy`.
`default_nettype none
module ptp_transmit #(
    parameter int WIDTH = 8
) (
    input  logic             clk,
    input  logic             write,
    input  logic [      5:0] index,
    input  logic [     15:0] word,
    input  logic             start,
    output logic             busy,
    output logic [WIDTH-1:0] data
);
  localparam int BUS = WIDTH < 16 ? 16 : WIDTH;
  localparam int LANES = BUS / 16;
  localparam int LANE_BITS = $clog2(LANES);
  localparam int WORD_BITS = 6 - LANE_BITS;
  localparam int COUNT_BITS = WORD_BITS + (WIDTH == 8 ? 1 : 0);

  // `count` is zero until the start, and counts what is out.
  logic [COUNT_BITS-1:0] count;
  logic [BUS-1:0] read;
  for (genvar i = 0; i < LANES; i++) begin : g_lane
    (* ram_style = "distributed" *)
    logic [15:0] words[1<<WORD_BITS];
    always_ff @(posedge clk)
      if (write && 32'(index & 6'(LANES - 1)) == i)
        words[index[5-:WORD_BITS]] <= word;
    assign read[(LANES-1-i)*16+:16] = words[count[COUNT_BITS-1-:WORD_BITS]];
  end
  assign busy = count != '0;
  always_ff @(posedge clk) begin
    if (write) count <= '0;
    else if (start || count != '0) count <= count + 1'b1;
  end

  if (WIDTH == 8) begin : g_bytes
    always_ff @(posedge clk) data <= count[0] ? read[7:0] : read[15:8];
  end else begin : g_words
    logic [BUS-1:0] reversed;
    byte_reverse #(
        .BYTES(BUS / 8)
    ) reverse (
        .field   (read),
        .reversed(reversed)
    );
    always_ff @(posedge clk) data <= reversed;
  end
endmodule
`default_nettype wire
