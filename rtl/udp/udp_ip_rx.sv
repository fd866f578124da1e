// SPDX-License-Identifier: Apache-2.0
//
// IPv4 layer, receive side: checks and removes the header, cuts the packet to its length (RFC 791).
//
//            +-----------+
//   s_* ====>| udp_ip_rx |====> m_* (payload), source, protocol, length
//   claims =>|           |----> drop_* (one pulse a dropped packet, by first reason)
//            +-----------+
//
// Accepted are whole packets without options to this board, to all, or to the groups that it has `joined`. The layers above
// claim a protocol.
`default_nettype none
module udp_ip_rx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input logic clk,
    input logic rst,
    input logic [31:0] ip_address,
    input logic [31:0] mask,
    input logic [1:0][31:0] groups,
    input logic joined,
    input logic [WIDTH-1:0] s_data,
    input logic [3:0] s_count,
    input logic s_valid,
    input logic s_end,
    input logic s_good,
    output logic [WIDTH-1:0] m_data,
    output logic [3:0] m_count,
    output logic m_valid,
    output logic m_addresses,  // before m_valid: m_data is of source and destination
    output logic m_end,
    output logic m_good,
    output logic [31:0] source,
    output logic [7:0] protocol,
    output logic [15:0] length,  // of the payload
    input logic [CLIENTS-1:0] claims,
    output logic drop_short,
    output logic drop_version,
    output logic drop_checksum,
    output logic drop_destination,
    output logic drop_fragment,
    output logic drop_protocol
);
  // ---- length --------------------------------------------------------------------------------
  logic [WIDTH-1:0] cut_data;
  logic [3:0] cut_count;
  logic cut_valid, cut_end, cut_good, whole;
  length_cut #(
      .WIDTH(WIDTH),
      .AT   (2)
  ) cut (
      .clk    (clk),
      .rst    (rst),
      .s_data (s_data),
      .s_count(s_count),
      .s_valid(s_valid),
      .s_end  (s_end),
      .s_good (s_good),
      .m_data (cut_data),
      .m_count(cut_count),
      .m_valid(cut_valid),
      .m_end  (cut_end),
      .m_good (cut_good),
      .whole  (whole)
  );

  // ---- header --------------------------------------------------------------------------------
  logic [net_pkg::IP_BYTES*8-1:0] header;
  logic complete, good;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::IP_BYTES)
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
      .m_end   (m_end),
      .m_good  (good)
  );
  logic [31:0] destination;
  logic [15:0] version, total_length, fragment;
  assign version = header[159:144];
  assign total_length = header[143:128];
  assign fragment = header[111:96];
  assign protocol = header[87:80];
  assign source = header[63:32];
  assign destination = header[31:0];
  assign length = total_length - 16'(net_pkg::IP_BYTES);

  // A frame is at least 46 bytes long, so these are settled before its end.
  localparam int BYTES = WIDTH / 8;
  localparam int HEADER_WORDS = (net_pkg::IP_BYTES + BYTES - 1) / BYTES;
  localparam int REST = net_pkg::IP_BYTES - (HEADER_WORDS - 1) * BYTES;  // bytes of the last one
  localparam int ADDRESSES = WIDTH == 8 ? 12 : HEADER_WORDS - 1;  // when they begin to pass
  logic [HEADER_WORDS:0] place;  // of the word, one bit
  localparam int LAG = WIDTH == 8 ? 2 : 1;
  logic addresses;
  logic sum_right, for_me, on_link;
  ones_sum #(
      .WIDTH(WIDTH)
  ) header_sum (
      .clk    (clk),
      .clear  (rst || m_end),
      .s_data (s_data),
      .s_count(place[HEADER_WORDS-1] ? 4'(REST) : 4'(BYTES)),
      .s_valid(s_valid && !place[HEADER_WORDS]),
      .right  (sum_right)
  );
  always_ff @(posedge clk) begin
    if (s_valid && !place[HEADER_WORDS]) place <= place << 1;
    addresses <= s_valid && place[HEADER_WORDS-1:ADDRESSES] != '0;
    if (rst || s_end) place <= (HEADER_WORDS + 1)'(1);
    on_link <= ((destination ^ ip_address) & mask) == '0;
    for_me <= destination == ip_address || (joined && (destination == groups[0] || destination == groups[1])) || destination == '1
        || (on_link && (destination | mask) == '1);
  end

  // As late as the data.
  logic [LAG-1:0] late;
  always_ff @(posedge clk) late <= LAG'({late, addresses});
  assign m_addresses = late[LAG-1];

  // ---- verdict -------------------------------------------------------------------------------
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
    else if (!whole) fault[0] = 1'b1;
    else if (claims == '0) fault[5] = 1'b1;
  end
  assign m_good = good && fault == '0;
  assign {drop_protocol, drop_fragment, drop_destination, drop_checksum, drop_version, drop_short} =
      m_end && good ? fault : '0;

  logic unused;
  assign unused = &{1'b0, header, version, fragment};
endmodule
`default_nettype wire
