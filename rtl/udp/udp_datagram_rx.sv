// SPDX-License-Identifier: Apache-2.0
//
// UDP layer, receive side: checks datagrams, takes the header off, cuts them to their length (RFC 768).
//
//            +-----------------+
//   s_* ====>| udp_datagram_rx |====> m_* (data), source, source_port, port, length
//   claims =>|                 |----> drop_* (one pulse a dropped datagram, by first reason)
//            +-----------------+
//
// The ports claim their number while m_end may come, a few clocks after the last word.
`default_nettype none
module udp_datagram_rx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [  WIDTH-1:0] s_data,
    input  logic [        3:0] s_count,
    input  logic               s_valid,
    input  logic               s_end,
    input  logic               s_good,
    input  logic [       31:0] s_source,
    input  logic [       31:0] s_destination,
    input  logic [       15:0] s_length,
    input  logic               s_claimed,      // it is UDP
    output logic [  WIDTH-1:0] m_data,
    output logic [        3:0] m_count,
    output logic               m_valid,
    output logic               m_end,
    output logic               m_good,
    output logic [       31:0] source,
    output logic [       15:0] source_port,
    output logic [       15:0] port,
    output logic [       15:0] length,         // of the data
    input  logic [CLIENTS-1:0] claims,
    output logic               drop_short,
    output logic               drop_checksum,
    output logic               drop_port
);
  logic [net_pkg::UDP_BYTES*8-1:0] header;
  logic complete, ended, good;
  logic [3:0] count;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::UDP_BYTES)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (s_data),
      .s_count (s_count),
      .s_valid (s_valid),
      .s_end   (s_end),
      .s_good  (s_good && s_claimed),
      .header  (header),
      .complete(complete),
      .m_data  (m_data),
      .m_count (count),
      .m_valid (m_valid),
      .m_end   (ended),
      .m_good  (good)
  );

  logic [15:0] total_length, checksum, seen;
  logic [31:0] sum, whole_sum, destination;
  logic [15:0] ip_length;
  assign {source_port, port, total_length, checksum} = header;
  assign length = total_length - 16'(net_pkg::UDP_BYTES);
  assign m_count = seen >= length ? '0 : length - seen < 16'(count) ? 4'(length - seen) : count;

  logic [2:0] step;
  ones_sum #(
      .WIDTH(WIDTH)
  ) data_sum (
      .clk    (clk),
      .clear  (rst || step[1]),
      .s_data (m_data),
      .s_count(m_count),
      .s_valid(m_valid),
      .sum    (sum)
  );

  logic was_good, length_right, sum_right;
  logic [2:0] fault;
  always_ff @(posedge clk) begin
    if (s_end) {source, destination, ip_length} <= {s_source, s_destination, s_length};
    step <= {step[1:0], ended};
    if (m_valid) seen <= seen + 16'(m_count);
    if (ended) begin
      was_good <= good;
      length_right <= complete && total_length >= 16'(net_pkg::UDP_BYTES) && total_length <= ip_length;
    end
    if (step[0]) begin
      whole_sum <= sum + 32'(source[31:16]) + 32'(source[15:0]) + 32'(destination[31:16]) + 32'(destination[15:0])
          + 32'(net_pkg::PROTOCOL_UDP) + 32'(total_length) + 32'(total_length) + 32'(source_port) + 32'(port) + 32'(checksum);
      length_right <= length_right && seen == length;
    end
    if (step[1]) begin
      sum_right <= checksum == '0 || net_pkg::fold(whole_sum) == '1;
      seen <= '0;
    end
    if (rst) begin
      step <= '0;
      seen <= '0;
    end
  end
  always_comb begin
    fault = '0;
    if (!length_right) fault[0] = 1'b1;
    else if (!sum_right) fault[1] = 1'b1;
    else if (claims == '0) fault[2] = 1'b1;
  end
  assign m_end = step[2];
  assign m_good = was_good && fault == '0;
  assign {drop_port, drop_checksum, drop_short} = m_end && was_good ? fault : '0;
endmodule
`default_nettype wire
