// SPDX-License-Identifier: Apache-2.0
//
// Socket buffers in block RAM: the default behind the memory port of tcp_core.
//
//                 +------------+
//   write_* =====>|            |<==== fetch_*
//   (a stream     | tcp_memory |
//    each)        |            |====> fetched_* (two clocks later)
//                 +------------+
//      user_clk                  tx_clk
`default_nettype none
module tcp_memory #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                                  user_clk,
    input  logic [         STREAMS-1:0]           write_valid,
    output logic [         STREAMS-1:0]           write_ready,
    input  logic [         STREAMS-1:0][BITS-1:0] write_address,
    input  logic [         STREAMS-1:0][    63:0] write_data,
    input  logic                                  tx_clk,
    input  logic                                  tx_rst,
    input  logic                                  fetch_valid,
    output logic                                  fetch_ready,
    input  logic [STREAM_BITS+BITS-1:0]           fetch_address,
    output logic                                  fetched_valid,
    output logic [                63:0]           fetched_data
);
  logic [STREAMS-1:0][63:0] data;
  logic [STREAM_BITS-1:0] stream, read_stream, fetched_stream;
  logic read;
  assign stream = fetch_address[BITS+:STREAM_BITS];
  assign write_ready = '1;
  assign fetch_ready = 1'b1;
  assign fetched_data = data[fetched_stream];

  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    packet_memory #(
        .ADDRESS_BITS(BITS),
        .READ_CLOCKS (2)
    ) stream_memory (
        .write_clk    (user_clk),
        .write_enable (write_valid[i]),
        .write_address(write_address[i]),
        .write_data   (write_data[i]),
        .read_clk     (tx_clk),
        .read_enable  (fetch_valid && stream == STREAM_BITS'(i)),
        .read_address (fetch_address[BITS-1:0]),
        .read_data    (data[i])
    );
  end

  always_ff @(posedge tx_clk) begin
    {fetched_valid, read} <= {read, fetch_valid} & {2{!tx_rst}};
    {fetched_stream, read_stream} <= {read_stream, stream};
  end
endmodule
`default_nettype wire
