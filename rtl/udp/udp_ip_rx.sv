// SPDX-License-Identifier: Apache-2.0
//
// IPv4 layer, receive side: checks the header, takes it off, cuts the packet to its length (RFC 791).
//
//            +-----------+
//   s_* ====>| udp_ip_rx |====> m_* (payload), source, destination, protocol, length
//   claims =>|           |----> drop_* (one pulse a dropped packet, by first reason)
//            +-----------+
//
// Good are whole packets without options to this board, to all, or to the group that it listens to.
// The layers above claim a protocol.
`default_nettype none
module udp_ip_rx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [       31:0] ip_address,
    input  logic [       31:0] mask,
    input  logic [       31:0] group,             // 0: none
    input  logic [  WIDTH-1:0] s_data,
    input  logic [        3:0] s_count,
    input  logic               s_valid,
    input  logic               s_end,
    input  logic               s_good,
    output logic [  WIDTH-1:0] m_data,
    output logic [        3:0] m_count,
    output logic               m_valid,
    output logic               m_end,
    output logic               m_good,
    output logic [       31:0] source,
    output logic [       31:0] destination,
    output logic [        7:0] protocol,
    output logic [       15:0] length,            // of the payload
    input  logic [CLIENTS-1:0] claims,
    output logic               drop_short,
    output logic               drop_version,
    output logic               drop_checksum,
    output logic               drop_destination,
    output logic               drop_fragment,
    output logic               drop_protocol
);
  logic [net_pkg::IP_BYTES*8-1:0] header;
  logic complete, good;
  logic [3:0] count;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::IP_BYTES)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (s_data),
      .s_count (s_count),
      .s_valid (s_valid),
      .s_end   (s_end),
      .s_good  (s_good),
      .header  (header),
      .complete(complete),
      .m_data  (m_data),
      .m_count (count),
      .m_valid (m_valid),
      .m_end   (m_end),
      .m_good  (good)
  );

  logic [15:0] version, total_length, fragment;
  assign version = header[159:144];
  assign total_length = header[143:128];
  assign fragment = header[111:96];
  assign protocol = header[87:80];
  assign source = header[63:32];
  assign destination = header[31:0];
  assign length = total_length - 16'(net_pkg::IP_BYTES);

  // The frame is at least 46 bytes long, so these are settled before its end.
  logic [31:0] sum;
  logic sum_right, for_me, length_right;
  always_comb begin
    sum = '0;
    for (int i = 0; i < net_pkg::IP_BYTES / 2; i++) sum += 32'(header[i*16+:16]);
  end
  always_ff @(posedge clk) begin
    sum_right <= net_pkg::fold(sum) == '1;
    length_right <= total_length >= 16'(net_pkg::IP_BYTES);
    for_me <= destination == ip_address || (destination == group && group != '0)
        || net_pkg::is_broadcast(
        destination, ip_address, mask
    );
  end

  logic [15:0] seen, seen_now;
  assign m_count  = seen >= length ? '0 : length - seen < 16'(count) ? 4'(length - seen) : count;
  assign seen_now = seen + (m_valid ? 16'(m_count) : '0);
  always_ff @(posedge clk) begin
    seen <= seen_now;
    if (rst || m_end) seen <= '0;
  end

  // By first reason.
  logic [5:0] fault;
  always_comb begin
    fault = '0;
    if (!complete) fault[0] = 1'b1;
    else if (version[15:8] != net_pkg::IP_VERSION[15:8]) fault[1] = 1'b1;
    else if (!sum_right) fault[2] = 1'b1;
    else if (!for_me) fault[3] = 1'b1;
    // More fragments, or not the first one.
    else if (fragment[13] || fragment[12:0] != '0) fault[4] = 1'b1;
    else if (!length_right || seen_now != length) fault[0] = 1'b1;
    else if (claims == '0) fault[5] = 1'b1;
  end
  assign m_good = good && fault == '0;
  assign {drop_protocol, drop_fragment, drop_destination, drop_checksum, drop_version, drop_short} =
      m_end && good ? fault : '0;

  logic unused;
  assign unused = &{1'b0, version[7:0], fragment[15:14]};
endmodule
`default_nettype wire
