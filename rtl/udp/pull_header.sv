// SPDX-License-Identifier: Apache-2.0
//
// Sends the header of one layer before the data of the layer above: the data-pull contract (docs/protocol/udp.md).
//
//                    +-------------+
//   start ---------->|             |----> client_start
//   header =========>| pull_header |<==== client_data
//                    |             |====> data
//                    +-------------+
//
// The first word is at `data` one clock after `start`, and one more in each clock after. client_start comes so that the
// first word of the client, one clock later, follows the header directly: the bytes of the client pass through one
// register. The first byte of the header is in its upper bits, that of a word in its lower bits. The header is not stored:
// it is stable from `start` to client_start.
`default_nettype none
module pull_header #(
    parameter int WIDTH = 8,
    parameter int HEADER_BYTES = 14
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic                      start,
    input  logic [HEADER_BYTES*8-1:0] header,
    output logic                      client_start,
    input  logic [         WIDTH-1:0] client_data,
    output logic [         WIDTH-1:0] data
);
  localparam int BYTES = WIDTH / 8;
  localparam int FULL = HEADER_BYTES / BYTES;
  localparam int REST = HEADER_BYTES % BYTES;
  localparam int LEFT_BITS = $clog2(FULL + 1);

  if (HEADER_BYTES < BYTES) begin : g_check
    $error("pull_header: HEADER_BYTES must be at least a word");
  end

  logic [HEADER_BYTES*8-1:0] lanes;
  logic [LEFT_BITS-1:0] index;  // of the header's word that goes next
  logic in_header, is_last;
  byte_reverse #(
      .BYTES(HEADER_BYTES)
  ) reverse (
      .field   (header),
      .reversed(lanes)
  );
  assign in_header = start || index != '0;
  assign client_start = is_last;

  logic [WIDTH-1:0] joined, word;
  logic [2**LEFT_BITS*WIDTH-1:0] words;
  assign words = (2 ** LEFT_BITS * WIDTH)'(lanes);
  assign word  = words[index*WIDTH+:WIDTH];
  if (FULL == 1) begin : g_one
    assign is_last = start;
  end else begin : g_several
    always_ff @(posedge clk)
      is_last <= in_header && !is_last && index == LEFT_BITS'(FULL - 2) && !rst;
  end
  if (REST == 0) begin : g_aligned
    assign joined = client_data;
  end else begin : g_shifted
    logic [REST*8-1:0] carry;
    assign joined = {client_data[WIDTH-REST*8-1:0], carry};
    always_ff @(posedge clk)
      carry <= is_last ? lanes[FULL*WIDTH+:REST*8] : client_data[WIDTH-1-:REST*8];
  end

  always_ff @(posedge clk) begin
    data  <= in_header ? word : joined;
    index <= in_header && !is_last ? index + 1'b1 : '0;
    if (rst) index <= '0;
  end
endmodule
`default_nettype wire
