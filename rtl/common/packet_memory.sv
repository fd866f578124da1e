// Packet buffer memory: written by the source, read by the sender.
//
//                 +---------------+
//   write_* =====>| packet_memory |====> read_data (one clock after read_enable)
//                 |               |<==== read_enable, read_address
//                 +---------------+
//        write_clk            read_clk
//
// Address: a packet's place in the upper bits, its word in the lower ones. Block RAM is inferred.
module packet_memory #(
    parameter int ADDRESS_BITS = 15,
    parameter int WIDTH = 64
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
  logic [WIDTH-1:0] memory[2**ADDRESS_BITS];

  always_ff @(posedge write_clk) if (write_enable) memory[write_address] <= write_data;

  always_ff @(posedge read_clk) if (read_enable) read_data <= memory[read_address];
endmodule
