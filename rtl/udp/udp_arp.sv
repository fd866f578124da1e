// SPDX-License-Identifier: Apache-2.0
//
// ARP: answers requests for this board, sends requests, reports senders (RFC 826, 5227).
//
//             +---------+
//   s_* =====>|         |====> request, length, destination, start, data (to the Ethernet layer)
//   ask_* ===>| udp_arp |====> learn, learn_ip, learn_mac (to udp_neighbours)
//             |         |----> drop_* (one pulse a dropped frame)
//             +---------+
//
// A message is judged while it passes. The sender of one message is stored, until udp_neighbours has it and the reply is
// sent. A message that begins meanwhile is dropped (drop_full). An announcement of a sender in the cache updates it,
// whatever its target.
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
    input  logic [      3:0] learn_place,
    output logic [      7:0] learn_byte,
    input  logic             learned,
    input  logic             learned_nothing,
    input  logic             ask,
    input  logic [     31:0] ask_ip,
    output logic             ask_taken
);
  // ---- receive -------------------------------------------------------------------------------
  // What is wrong with the message, as far as it has come; its parts are at the places that ARP_BYTES of them have (RFC 826).
  logic [79:0] sender;  // MAC and IP address
  logic asks;
  logic
      complete,
      shape_wrong,
      other_target,
      has_address,
      is_request,
      refused,
      refuses,
      busy,
      begins,
      sent,
      is_reply;
  assign refuses = begins ? busy : refused;
  logic [7:0] operation;  // of the message that goes
  assign operation = is_reply ? net_pkg::ARP_REPLY[7:0] : net_pkg::ARP_REQUEST[7:0];
  if (WIDTH == 8) begin : g_bytes
    logic [ 4:0] at;
    logic [63:0] shape;
    assign shape  = {net_pkg::ARP_SHAPE, 16'd0};
    assign begins = at == '0;
    always_ff @(posedge clk) begin
      if (s_valid && at != 5'(net_pkg::ARP_BYTES)) at <= at + 1'b1;
      if (s_valid && begins) {shape_wrong, other_target, has_address} <= '0;
      if (s_valid && at == 5'd7) is_request <= s_data == net_pkg::ARP_REQUEST[7:0];
      if (s_valid && at[4:3] == '0 && !(at[2:0] == '1 ? is_operation(
              s_data
          ) : s_data == shape[(7-32'(at[2:0]))*8+:8]))
        shape_wrong <= 1'b1;
      if (s_valid && !refuses && at >= 5'd8 && at < 5'd18) sender <= {sender[71:0], s_data};
      if (s_valid && at >= 5'd14 && at < 5'd18 && s_data != '0) has_address <= 1'b1;
      if (s_valid && at[4:2] == 3'd6 && s_data != ip_address[(3-32'(at[1:0]))*8+:8])
        other_target <= 1'b1;
      if (asks) sender <= '1;
      complete <= at == 5'(net_pkg::ARP_BYTES) || (s_valid && at == 5'(net_pkg::ARP_BYTES - 1));
      if (rst || s_end) at <= '0;
    end

    // Places of the message that goes: shape and operation, own addresses, the other one's.
    // The bytes of both addresses are chosen a clock before.
    logic [4:0] index, ahead;
    logic [3:0] place;
    logic [7:0] own, other;
    logic [79:0] own_bytes;
    assign own_bytes = {mac_address, ip_address};
    assign sent = index == 5'(net_pkg::ARP_BYTES - 1);
    assign place = learn ? learn_place : ahead[3:0];
    assign learn_byte = sender[(11-32'(place))*8+:8];
    always_ff @(posedge clk) begin
      own <= own_bytes[(17-32'(ahead))*8+:8];
      other <= is_reply ? learn_byte : !place[3] ? 8'd0 : ask_ip[(3-32'(place[1:0]))*8+:8];
      data  <= index >= 5'd18 ? other : index >= 5'd8 ? own : index == 5'd7 ? operation : shape[(7-32'(index))*8+:8];
      if (start || index != '0) {index, ahead} <= {ahead, ahead + 1'b1};
      if (rst || sent) {index, ahead} <= {5'd0, 5'd1};
    end
    logic unused;
    assign unused = &{1'b0, s_count};
  end else begin : g_words
    localparam logic [3:0] REST = 4'(net_pkg::ARP_BYTES % 8);
    logic [ 4:0] at;  // one bit
    logic [63:0] word;
    byte_reverse #(
        .BYTES(8)
    ) reverse (
        .field   (s_data),
        .reversed(word)
    );
    assign begins = at[0];
    always_ff @(posedge clk) begin
      if (s_valid && !at[4]) at <= at << 1;
      if (s_valid && at[0]) begin
        shape_wrong <= word[63:8] != {net_pkg::ARP_SHAPE, 8'd0} || !is_operation(word[7:0]);
        is_request  <= word[7:0] == net_pkg::ARP_REQUEST[7:0];
      end
      if (s_valid && !refuses && at[1]) sender[79:16] <= word;
      if (s_valid && !refuses && at[2]) sender[15:0] <= word[63:48];
      if (s_valid && at[1]) has_address <= word[15:0] != '0;
      if (s_valid && at[2] && word[63:48] != '0) has_address <= 1'b1;
      if (s_valid && at[3]) other_target <= word[63:32] != ip_address;
      if (asks) sender <= '1;
      complete <= at[4] || (s_valid && at[3] && s_count >= REST);
      if (rst || s_end) at <= 5'd1;
    end

    assign learn_byte = sender[(11-32'(learn_place))*8+:8];
    pull_header #(
        .WIDTH       (WIDTH),
        .HEADER_BYTES(net_pkg::ARP_BYTES)
    ) message (
        .clk(clk),
        .rst(rst),
        .start(start),
        .header({
          net_pkg::ARP_SHAPE,
          8'd0,
          operation,
          mac_address,
          ip_address,
          is_reply ? sender : {48'd0, ask_ip}
        }),
        .client_start(sent),
        .client_data('0),
        .data(data)
    );
  end
  function automatic is_operation(input [7:0] value);
    is_operation = value == net_pkg::ARP_REQUEST[7:0] || value == net_pkg::ARP_REPLY[7:0];
  endfunction

  // ---- one message ---------------------------------------------------------------------------
  // Judged a clock after its end.
  logic judges, take, reply_due, replies, asking, sending;
  assign busy = learn || reply_due || asking;
  assign take = judges && complete && !shape_wrong && !refused;
  assign drop_short = judges && !complete;
  assign drop_protocol = judges && complete && shape_wrong;
  assign drop_full = judges && complete && !shape_wrong && refused;
  assign drop_destination = learned && learned_nothing;
  always_ff @(posedge clk) begin
    if (s_valid) refused <= refuses;
    if (asks) refused <= 1'b1;
    judges <= s_end && s_good;
    if (learned) learn <= 1'b0;
    if (sent && is_reply) reply_due <= 1'b0;
    if (take) begin
      learn <= 1'b1;
      // Who asks whether an address is free has none (RFC 5227).
      learn_new <= !other_target && has_address;
      reply_due <= !other_target && is_request;
    end
    if (rst) {judges, learn, reply_due} <= '0;
  end

  // ---- transmit ------------------------------------------------------------------------------
  // A reply goes out when its asker is in the cache. Who asks has the place of the other one's addresses: all ones are the address of all.
  assign replies = reply_due && !learn;
  assign asks = ask && !busy && !judges && !request && !sending;
  assign asking = (request || sending) && !is_reply;
  assign length = 14'(net_pkg::ARP_BYTES);
  assign destination = sender[79:32];
  assign ask_taken = sent && !is_reply;
  always_ff @(posedge clk) begin
    request <= !start && !sending && (request || replies || asks);
    if (start) sending <= 1'b1;
    if (sent) sending <= 1'b0;
    if (!request && !sending) is_reply <= replies;
    if (rst) {request, sending} <= '0;
  end
endmodule
`default_nettype wire
