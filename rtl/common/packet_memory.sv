// SPDX-License-Identifier: Apache-2.0
//
// Packet buffer memory: written by the source, read by the sender.
//
//                 +---------------+
//   write_* =====>| packet_memory |====> read_data (READ_CLOCKS after read_enable)
//                 |               |<==== read_enable, read_address
//                 +---------------+
//        write_clk            read_clk
//
// Address: the slot of a packet in the upper bits, its word in the lower ones. Block RAM is inferred. READ_CLOCKS = 2 adds
// an output register, without an enable, for devices with slow block RAM.
`default_nettype none
module packet_memory #(
    parameter int ADDRESS_BITS = 15,
    parameter int WIDTH = 64,
    parameter int READ_CLOCKS = 1
) (
    input  logic                    write_clk,
    input  logic                    write_enable,
    input  logic [ADDRESS_BITS-1:0] write_address,
    input  logic [       WIDTH-1:0] write_data,
    input  logic                    read_clk,
    input  logic                    read_enable,
    input  logic [ADDRESS_BITS-1:0] read_address,
    output logic [       WIDTH-1:0] read_data
);
  if (READ_CLOCKS != 1 && READ_CLOCKS != 2) begin : g_check
    $error("packet_memory: READ_CLOCKS must be 1 or 2");
  end

  (* ram_style = "block" *) logic [WIDTH-1:0] memory[2**ADDRESS_BITS];

  always_ff @(posedge write_clk) if (write_enable) memory[write_address] <= write_data;

  logic [WIDTH-1:0] word;
  always_ff @(posedge read_clk) if (read_enable) word <= memory[read_address];

  if (READ_CLOCKS == 2) begin : g_register
    always_ff @(posedge read_clk) read_data <= word;
  end else begin : g_no_register
    assign read_data = word;
  end
endmodule
`default_nettype wire
