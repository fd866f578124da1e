// SPDX-License-Identifier: Apache-2.0
//
// A memory of block RAM for the port of the burst buffer. A board with external memory has its controller instead.
//
//             +-------------+
//   write_* =>| fadc_memory |====> data_valid, data (one clock after the read)
//   read_* ==>|             |
//             +-------------+
`default_nettype none
module fadc_memory #(
    parameter int BITS = 16
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            write_valid,
    output logic            write_ready,
    input  logic [BITS-1:0] write_address,
    input  logic [    63:0] write_data,
    input  logic            read_valid,
    output logic            read_ready,
    input  logic [BITS-1:0] read_address,
    output logic            data_valid,
    output logic [    63:0] data
);
  assign write_ready = 1'b1;
  assign read_ready  = 1'b1;

  packet_memory #(
      .ADDRESS_BITS(BITS)
  ) store (
      .write_clk    (clk),
      .write_enable (write_valid),
      .write_address(write_address),
      .write_data   (write_data),
      .read_clk     (clk),
      .read_enable  (read_valid),
      .read_address (read_address),
      .read_data    (data)
  );

  always_ff @(posedge clk) data_valid <= !rst && read_valid;
endmodule
`default_nettype wire
