// Ethernet CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320), 1 to BYTES bytes at a time.
//
//                 +-------+
//   crc_in ======>|       |
//   data ========>| crc32 |======> crc_out
//   count =======>|       |
//                 +-------+
//
// Combinational. data[7:0] is the first byte on the wire; `count` of the bytes are used, 0 to BYTES. Start
// with all ones, send the complement; over data and frame check sequence the result is RESIDUE.
//
// One network serves every count: F is linear and leading zero bytes leave its zero state alone,
// so a short word is moved to the end of the window. State bytes that a count below 4 does not
// reach fall through.
module crc32 #(
    parameter int BYTES = 8
) (
    input  logic [               31:0] crc_in,
    input  logic [        BYTES*8-1:0] data,
    input  logic [$clog2(BYTES+1)-1:0] count,
    output logic [               31:0] crc_out
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
      column = 32'hEDB88320;
      for (i = BITS - 1; i >= 0; i = i - 1) begin
        inputs_of[i] = column[row];
        column = column[0] ? (column >> 1) ^ 32'hEDB88320 : column >> 1;
      end
    end
  endfunction

  logic [WINDOW-1:0] mixed;
  logic [  BITS-1:0] aligned;
  logic [31:0] network, fall_through;

  assign mixed = WINDOW'(data) ^ WINDOW'(crc_in);

  if (BYTES == 1) begin : g_byte
    assign aligned = mixed[BITS-1:0];
    assign fall_through = crc_in >> 8;
    logic unused;
    assign unused = &{1'b0, count, mixed[WINDOW-1:BITS]};
  end else begin : g_word
    logic [3:0] missing;
    assign missing = 4'd8 - count;
    assign aligned = mixed[BITS-1:0] << {missing, 3'b000};
    assign fall_through = count[$bits(count)-1:2] != '0 ? '0 : crc_in >> {count[1:0], 3'b000};
  end

  for (genvar row = 0; row < 32; row++) begin : g_row
    localparam logic [BITS-1:0] INPUTS = inputs_of(5'(row));
    assign network[row] = ^(aligned & INPUTS);
  end

  assign crc_out = network ^ fall_through;
endmodule
