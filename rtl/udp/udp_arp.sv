// SPDX-License-Identifier: Apache-2.0
//
// ARP: answers requests for this board, asks for others, tells who was heard of (RFC 826, 5227).
//
//             +---------+
//   s_* =====>|         |====> request, length, destination, start, data (to the Ethernet layer)
//   ask_* ===>| udp_arp |====> learn, learn_ip, learn_mac (to udp_neighbours)
//             |         |----> drop_* (one pulse a dropped frame)
//             +---------+
//
// Of one message at a time the sender is kept, until udp_neighbours has it and the reply is out. A message that comes meanwhile is
// dropped (drop_full). An announcement of somebody in the cache is heard, whoever it is for.
`default_nettype none
module udp_arp #(
    parameter int WIDTH = 8
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [     47:0] mac_address,
    input  logic [     31:0] ip_address,
    // from the Ethernet layer
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    input  logic             s_end,
    input  logic             s_good,
    output logic             drop_short,
    output logic             drop_protocol,
    output logic             drop_destination,
    output logic             drop_full,
    // to the Ethernet layer
    output logic             request,
    output logic [     13:0] length,
    output logic [     47:0] destination,
    input  logic             start,
    output logic [WIDTH-1:0] data,
    // neighbours
    output logic             learn,
    output logic             learn_new,
    output logic [     31:0] learn_ip,
    output logic [     47:0] learn_mac,
    input  logic             learned,
    input  logic             learned_nothing,
    input  logic             ask,
    input  logic [     31:0] ask_ip,
    output logic             ask_taken
);
  // ---- receive -------------------------------------------------------------------------------
  logic [net_pkg::ARP_BYTES*8-1:0] header;
  logic complete, ended, good, shape_right, is_for_me, is_request, take;
  logic [47:0] shape, sender_mac, target_mac;
  logic [15:0] operation;
  logic [31:0] sender_ip, target_ip;
  logic [WIDTH-1:0] behind;
  logic [3:0] behind_count;
  logic behind_valid;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::ARP_BYTES)
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
      .m_data  (behind),
      .m_count (behind_count),
      .m_valid (behind_valid),
      .m_end   (ended),
      .m_good  (good)
  );
  assign {shape, operation, sender_mac, sender_ip, target_mac, target_ip} = header;

  // ---- one message ---------------------------------------------------------------------------
  // Judged a clock after its end.
  logic judges, whole, reply_due, sending, sent, is_reply, busy;
  assign busy = learn || reply_due;
  assign take = judges && whole && shape_right && !busy;
  assign drop_short = judges && !whole;
  assign drop_protocol = judges && whole && !shape_right;
  assign drop_full = judges && whole && shape_right && busy;
  assign drop_destination = learned && learned_nothing;
  always_ff @(posedge clk) begin
    judges <= ended && good;
    whole <= complete;
    shape_right <= shape == net_pkg::ARP_SHAPE && (operation == net_pkg::ARP_REQUEST || operation == net_pkg::ARP_REPLY);
    is_for_me <= target_ip == ip_address;
    is_request <= operation == net_pkg::ARP_REQUEST;
    if (learned) learn <= 1'b0;
    if (sent && is_reply) reply_due <= 1'b0;
    if (take) begin
      learn <= 1'b1;
      // Who asks whether an address is free has none (RFC 5227).
      learn_new <= is_for_me && sender_ip != '0;
      {learn_mac, learn_ip} <= {sender_mac, sender_ip};
      reply_due <= is_for_me && is_request;
    end
    if (rst) {judges, learn, reply_due} <= '0;
  end

  // ---- transmit ------------------------------------------------------------------------------
  // The choice stands from the request to the message's end.
  assign length = 14'(net_pkg::ARP_BYTES);
  assign destination = is_reply ? learn_mac : net_pkg::BROADCAST;
  assign ask_taken = sent && !is_reply;
  always_ff @(posedge clk) begin
    request <= !start && !sending && (reply_due || ask);
    if (start) sending <= 1'b1;
    if (sent) sending <= 1'b0;
    if (!request && !sending) is_reply <= reply_due;
    if (rst) {request, sending} <= '0;
  end
  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::ARP_BYTES)
  ) message (
      .clk(clk),
      .rst(rst),
      .start(start),
      .header({
        net_pkg::ARP_SHAPE,
        is_reply ? net_pkg::ARP_REPLY : net_pkg::ARP_REQUEST,
        mac_address,
        ip_address,
        is_reply ? learn_mac : 48'd0,
        is_reply ? learn_ip : ask_ip
      }),
      .client_start(sent),
      .client_data('0),
      .data(data)
  );

  logic unused;
  assign unused = &{1'b0, behind, behind_count, behind_valid, target_mac};
endmodule
`default_nettype wire
