// SPDX-License-Identifier: Apache-2.0
//
// One layer's header before the data of the layer above: the data-pull contract (docs/protocol/udp.md).
//
//                    +-------------+
//   start ---------->|             |----> client_start
//   header =========>| pull_header |<==== client_data
//                    |             |====> data
//                    +-------------+
//
// The first word is at `data` a clock after `start`, and one more in each clock after. client_start
// comes so that the client's first word, a clock later, falls in right behind the header: the client's
// bytes pass through one register. The header's first byte is in its upper bits, a word's in its
// lower ones.
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

  logic [HEADER_BYTES*8-1:0] lanes, rest;
  logic [LEFT_BITS-1:0] left;  // words of the header that are not out
  byte_reverse #(
      .BYTES(HEADER_BYTES)
  ) reverse (
      .field   (header),
      .reversed(lanes)
  );
  assign client_start = FULL == 1 ? start : left == LEFT_BITS'(1);

  logic [WIDTH-1:0] joined;
  if (REST == 0) begin : g_aligned
    assign joined = client_data;
  end else begin : g_shifted
    logic [REST*8-1:0] carry;
    assign joined = {client_data[WIDTH-REST*8-1:0], carry};
    always_ff @(posedge clk) begin
      if (start) carry <= lanes[FULL*WIDTH+:REST*8];
      else if (left == '0) carry <= client_data[WIDTH-1-:REST*8];
    end
  end

  always_ff @(posedge clk) begin
    if (start) begin
      data <= lanes[WIDTH-1:0];
      rest <= (HEADER_BYTES * 8)'({WIDTH'(0), lanes} >> WIDTH);
      left <= LEFT_BITS'(FULL - 1);
    end else if (left != '0) begin
      data <= rest[WIDTH-1:0];
      rest <= (HEADER_BYTES * 8)'({WIDTH'(0), rest} >> WIDTH);
      left <= left - 1'b1;
    end else begin
      data <= joined;
    end
    if (rst) left <= '0;
  end
endmodule
`default_nettype wire
