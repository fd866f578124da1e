// SPDX-License-Identifier: Apache-2.0
//
// UDP layer, receive side: checks datagrams, removes the header, cuts them to their length (RFC 768).
//
//            +-----------------+
//   s_* ====>| udp_datagram_rx |====> m_* (data), source, source_port, port
//   claims =>|                 |----> drop_* (one pulse a dropped datagram, by first reason)
//            +-----------------+
//
// The addresses of the pseudo header are added when they pass, the rest of it after the datagram; then comes m_end, some
// clocks after the last word. The ports claim their number until then.
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
    input  logic               s_addresses,    // s_data is of source and destination
    input  logic               s_end,
    input  logic               s_good,
    input  logic [       31:0] s_source,
    input  logic               s_claimed,      // it is UDP
    output logic [  WIDTH-1:0] m_data,
    output logic [        3:0] m_count,
    output logic               m_valid,
    output logic               m_end,
    output logic               m_good,
    output logic [       31:0] source,
    output logic [       15:0] source_port,
    output logic [       15:0] port,
    input  logic [CLIENTS-1:0] claims,
    output logic               drop_short,
    output logic               drop_checksum,
    output logic               drop_port
);
  // ---- length --------------------------------------------------------------------------------
  logic [WIDTH-1:0] cut_data;
  logic [3:0] cut_count;
  logic cut_valid, cut_end, cut_good, cut_addresses, whole;
  length_cut #(
      .WIDTH(WIDTH),
      .AT   (4)
  ) cut (
      .clk    (clk),
      .rst    (rst),
      .s_data (s_data),
      .s_count(s_count),
      .s_valid(s_valid),
      .s_end  (s_end),
      .s_good (s_good && s_claimed),
      .m_data (cut_data),
      .m_count(cut_count),
      .m_valid(cut_valid),
      .m_end  (cut_end),
      .m_good (cut_good),
      .whole  (whole)
  );

  // ---- header --------------------------------------------------------------------------------
  logic [net_pkg::UDP_BYTES*8-1:0] header;
  logic complete, ended, good;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::UDP_BYTES)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (cut_data),
      .s_count (cut_count),
      .s_valid (cut_valid),
      .s_end   (cut_end),
      .s_good  (cut_good),
      .header  (header),
      .complete(complete),
      .m_data  (m_data),
      .m_count (m_count),
      .m_valid (m_valid),
      .m_end   (ended),
      .m_good  (good)
  );
  logic [15:0] total_length, checksum;
  assign {source_port, port, total_length, checksum} = header;

  // ---- checksum ------------------------------------------------------------------------------
  // Behind the datagram the rest of its pseudo header; before that, of an odd number of bytes, a zero.
  localparam int BYTES = WIDTH / 8;
  localparam int LAST = 4 / BYTES == 0 ? 0 : 4 / BYTES - 1;
  logic [63:0] rest;
  logic [ 2:0] index;
  logic appends, sum_right;
  logic [net_pkg::SUM_LAG-1:0] lag;
  byte_reverse #(
      .BYTES(8)
  ) reverse (
      .field({8'd0, net_pkg::PROTOCOL_UDP, total_length, 32'd0}),
      .reversed(rest)
  );
  ones_sum #(
      .WIDTH(WIDTH)
  ) message_sum (
      .clk    (clk),
      .clear  (rst || m_end),
      .s_data (appends ? rest[index*WIDTH%64+:WIDTH] : cut_data),
      .s_count(appends || cut_addresses ? 4'(BYTES) : cut_count),
      .s_valid(appends || cut_addresses || cut_valid),
      .right  (sum_right)
  );
  logic was_good, was_complete;
  always_ff @(posedge clk) begin
    cut_addresses <= s_addresses;
    if (s_end) source <= s_source;
    if (cut_end) begin
      appends <= 1'b1;
      index   <= WIDTH == 8 && total_length[0] ? '1 : '0;
    end
    lag <= {lag[net_pkg::SUM_LAG-2:0], 1'b0};
    if (appends) begin
      index <= index + 1'b1;
      if (index == 3'(LAST)) {appends, lag[0]} <= 2'b01;
    end
    if (ended) {was_good, was_complete} <= {good, complete};
    if (rst) {appends, lag} <= '0;
  end

  // ---- verdict -------------------------------------------------------------------------------
  logic [2:0] fault;
  always_comb begin
    fault = '0;
    if (!was_complete || !whole) fault[0] = 1'b1;
    else if (!sum_right && checksum != '0) fault[1] = 1'b1;
    else if (claims == '0) fault[2] = 1'b1;
  end
  assign m_end = lag[net_pkg::SUM_LAG-1];
  assign m_good = was_good && fault == '0;
  assign {drop_port, drop_checksum, drop_short} = m_end && was_good ? fault : '0;
endmodule
`default_nettype wire
