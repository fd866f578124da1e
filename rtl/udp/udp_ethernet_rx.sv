// SPDX-License-Identifier: Apache-2.0
//
// Ethernet layer, receive side: removes the header, checks the destination.
//
//            +-----------------+
//   s_* ====>| udp_ethernet_rx |====> m_* (payload), ethertype, source
//   claims =>|                 |----> drop_* (one pulse a dropped frame)
//            +-----------------+
//
// Accepted are frames to this board, to all, to an IPv4 multicast group, or with any_group to any group. The layers above
// claim an ethertype. Frames that the MAC marked bad were counted there.
`default_nettype none
module udp_ethernet_rx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [       47:0] mac_address,
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
    output logic [       47:0] source,
    output logic [       15:0] ethertype,
    input  logic [CLIENTS-1:0] claims,
    input  logic               any_group,
    output logic               drop_destination,
    output logic               drop_protocol,
    output logic               drop_short
);
  logic [net_pkg::ETHERNET_BYTES*8-1:0] header;
  logic [47:0] destination;
  logic complete, good, for_me, is_claimed;

  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::ETHERNET_BYTES)
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
      .m_count (m_count),
      .m_valid (m_valid),
      .m_end   (m_end),
      .m_good  (good)
  );
  assign {destination, source, ethertype} = header;
  // The header is there before the frame's end comes out.
  always_ff @(posedge clk) begin
    is_claimed <= claims != '0;
    for_me <= destination == mac_address || destination == net_pkg::BROADCAST || destination[47:24] == net_pkg::MULTICAST
      || (destination[40] && any_group);
  end
  assign m_good = good && complete && for_me && is_claimed;
  assign drop_short = m_end && good && !complete;
  assign drop_destination = m_end && good && complete && !for_me;
  assign drop_protocol = m_end && good && complete && for_me && !is_claimed;
endmodule
`default_nettype wire
