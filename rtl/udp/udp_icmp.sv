// SPDX-License-Identifier: Apache-2.0
//
// ICMP layer: answers echo requests with their payload (RFC 792).
//
//            +----------+
//   s_* ====>|          |====> request, length, destination, start, data (to the IP layer)
//   (IP)     | udp_icmp |----> drop_* (one pulse a dropped message)
//            +----------+
//
// One request at a time is stored, up to 2^ECHO_BITS words of the datapath; another one that comes meanwhile, or a longer
// one, is dropped (drop_full).
`default_nettype none
module udp_icmp #(
    parameter int WIDTH = 8,
    parameter int ECHO_BITS = 11
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    input  logic             s_end,
    input  logic             s_good,
    input  logic [     31:0] s_source,
    input  logic [     13:0] s_length,
    input  logic             s_claimed,      // it is ICMP
    output logic             request,
    output logic [     13:0] length,
    output logic [     31:0] destination,
    input  logic             start,
    output logic [WIDTH-1:0] data,
    output logic             drop_type,
    output logic             drop_checksum,
    output logic             drop_full
);

  logic [ECHO_BITS:0] write_index, index;
  logic [7:0] high, low, new_high, new_low;  // of the checksum
  logic [net_pkg::SUM_LAG-1:0] step;
  logic settled, sum_right, busy, right_type, too_long, ours, pending, first, opened, open;
  logic [13:0] told;  // its length
  logic [2:0] settle;  // the first words of the reply are not out
  logic [WIDTH-1:0] stored;

  ones_sum #(
      .WIDTH(WIDTH)
  ) message_sum (
      .clk    (clk),
      .clear  (rst || settled),
      .s_data (s_data),
      .s_count(s_count),
      .s_valid(s_valid),
      .right  (sum_right)
  );

  packet_memory #(
      .ADDRESS_BITS(ECHO_BITS),
      .WIDTH       (WIDTH),
      .READ_CLOCKS (2)
  ) request_memory (
      .write_clk    (clk),
      .write_enable (s_valid && open && !write_index[ECHO_BITS]),
      .write_address(write_index[ECHO_BITS-1:0]),
      .write_data   (s_data),
      .read_clk     (clk),
      .read_enable  (1'b1),
      .read_address (start ? ECHO_BITS'(1) : index[ECHO_BITS-1:0]),
      .read_data    (stored)
  );

  assign settled = step[net_pkg::SUM_LAG-1];
  assign busy = pending || step != '0 || settle != '0;
  // Whether a message can be kept is decided at its first word.
  assign open = first ? !busy : opened;
  assign request = pending;
  // Type 8 becomes 0: the checksum grows by 0x0800 (RFC 1624).
  always_ff @(posedge clk) begin
    new_high <= high + 8'd8 + 8'(low == '1 && high[7:3] == '1);
    new_low  <= low + 8'(high[7:3] == '1);
  end

  // The first words are not from the memory: type, code, checksum. The others are read two clocks before they go.
  if (WIDTH == 8) begin : g_bytes
    always_comb begin
      data = stored;
      case (index)
        (ECHO_BITS + 1)'(2): data = '0;
        (ECHO_BITS + 1)'(3): data = '0;
        (ECHO_BITS + 1)'(4): data = new_high;
        (ECHO_BITS + 1)'(5): data = new_low;
        default: ;
      endcase
    end
    assign told = 14'(write_index);
    always_ff @(posedge clk) begin
      if (s_valid && open) begin
        if (write_index == '0) right_type <= s_data == net_pkg::ICMP_ECHO_REQUEST;
        if (write_index == (ECHO_BITS + 1)'(1) && s_data != '0) right_type <= 1'b0;
        if (write_index < (ECHO_BITS + 1)'(4)) {high, low} <= {low, s_data};
      end
    end
    logic unused;
    assign unused = &{1'b0, s_length};
  end else begin : g_words
    logic [31:0] rest;  // of the first word
    always_comb begin
      data = stored;
      if (index == (ECHO_BITS + 1)'(2)) data = {rest, new_low, new_high, 16'h0000};
    end
    always_ff @(posedge clk) begin
      if (s_end && open) told <= s_length;
      if (s_valid && open && write_index == '0) begin
        {rest, low, high} <= s_data[63:16];
        right_type <= s_data[15:0] == {8'd0, net_pkg::ICMP_ECHO_REQUEST};
      end
    end
  end

  always_ff @(posedge clk) begin
    {drop_type, drop_checksum, drop_full} <= '0;
    step <= {step[net_pkg::SUM_LAG-2:0], s_end};
    first <= s_end || (first && !s_valid);
    if (s_valid && first) opened <= open;
    if (start) settle <= '1;
    else if (settle != '0) settle <= settle - 3'd1;
    if (s_valid && open && s_count != '0 && !write_index[ECHO_BITS])
      write_index <= write_index + 1'b1;
    if (s_valid && open && write_index[ECHO_BITS]) too_long <= 1'b1;
    if (s_end) begin
      ours <= s_good && s_claimed && open;
      drop_full <= s_good && s_claimed && !open;
      if (open) destination <= s_source;
    end
    // The sum is whole.
    if (settled) begin
      write_index <= '0;
      too_long <= 1'b0;
      if (ours) begin
        length <= told;
        if (!sum_right) drop_checksum <= 1'b1;
        else if (!right_type || told[13:3] == '0) drop_type <= 1'b1;
        else if (too_long) drop_full <= 1'b1;
        else pending <= 1'b1;
      end
    end
    index <= start ? (ECHO_BITS + 1)'(2) : index + 1'b1;
    if (start) pending <= 1'b0;
    if (rst) begin
      {step, pending, settle, too_long} <= '0;
      first <= 1'b1;
      write_index <= '0;
    end
  end
endmodule
`default_nettype wire
