// SPDX-License-Identifier: Apache-2.0
//
// Ethernet CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320), BYTES bytes at a time.
//
//                 +-------+
//   crc_in ======>| crc32 |======> crc_out
//   data ========>|       |
//                 +-------+
//
// Combinational. data[7:0] is the first byte on the wire. Start with all ones, send the complement; over data and frame
// check sequence the result is RESIDUE.
//
// The network is linear: crc_out is the CRC of the data with crc_in zero, exclusive or the CRC of zero data with crc_in.
// So both parts can be computed in different clocks. Leading zero bytes do not change a state of zero.
`default_nettype none
module crc32 #(
    parameter int BYTES = 8
) (
    input  logic [       31:0] crc_in,
    input  logic [BYTES*8-1:0] data,
    output logic [       31:0] crc_out
);
  localparam int BITS = BYTES * 8;
  localparam int WINDOW = BITS < 32 ? 32 : BITS;

  if (BYTES != 1 && BYTES != 8) begin : g_check
    $error("crc32: BYTES must be 1 or 8");
  end

  // Bits of the window that enter bit `row` of the CRC.
  function automatic [BITS-1:0] inputs_of(input [4:0] row);
    reg [31:0] column;
    integer i;
    begin
      column = mac_pkg::CRC_POLYNOMIAL;
      for (i = BITS - 1; i >= 0; i = i - 1) begin
        inputs_of[i] = column[row];
        column = column[0] ? (column >> 1) ^ mac_pkg::CRC_POLYNOMIAL : column >> 1;
      end
    end
  endfunction

  logic [WINDOW-1:0] mixed;
  logic [31:0] network;
  assign mixed = WINDOW'(data) ^ WINDOW'(crc_in);

  for (genvar row = 0; row < 32; row++) begin : g_row
    localparam logic [BITS-1:0] INPUTS = inputs_of(5'(row));
    assign network[row] = ^(mixed[BITS-1:0] & INPUTS);
  end

  if (BYTES == 1) begin : g_byte
    assign crc_out = network ^ (crc_in >> 8);
    logic unused;
    assign unused = &{1'b0, mixed[WINDOW-1:BITS]};
  end else begin : g_word
    assign crc_out = network;
  end
endmodule
`default_nettype wire
