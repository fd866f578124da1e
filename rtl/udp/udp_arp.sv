// SPDX-License-Identifier: Apache-2.0
//
// ARP: answers requests for this board, asks for others, remembers who is where (RFC 826).
//
//                +---------+
//   s_* ========>|         |====> request, length, destination, start, data (to the Ethernet layer)
//   lookup_ip ==>| udp_arp |====> known (for each of two who ask, at once), mac
//   resolve ---->|         |----> drop_* (one pulse a dropped frame)
//                +---------+
//
// The cache has ENTRIES addresses, each for TIMEOUT milliseconds after it was last heard of; the one that
// was written longest ago makes room. One address is asked for at a time, once in RETRY milliseconds; `resolve`
// is a pulse and goes before resolve_also, a level.
`default_nettype none
module udp_arp #(
    parameter int WIDTH   = 8,
    parameter int ENTRIES = 4,
    parameter int TIMEOUT = 60_000,
    parameter int RETRY   = 100
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   tick_ms,
    input  logic [     47:0]       mac_address,
    input  logic [     31:0]       ip_address,
    // from the Ethernet layer
    input  logic [WIDTH-1:0]       s_data,
    input  logic [      3:0]       s_count,
    input  logic                   s_valid,
    input  logic                   s_end,
    input  logic                   s_good,
    output logic                   drop_short,
    output logic                   drop_protocol,
    output logic                   drop_destination,
    output logic                   drop_full,         // the reply before was not out
    // to the Ethernet layer
    output logic                   request,
    output logic [     13:0]       length,
    output logic [     47:0]       destination,
    input  logic                   start,
    output logic [WIDTH-1:0]       data,
    // cache
    input  logic [      1:0][31:0] lookup_ip,
    output logic [      1:0]       known,
    output logic [     47:0]       mac,               // of lookup_ip[0]
    input  logic                   resolve,           // lookup_ip[0] is wanted
    input  logic                   resolve_also       // lookup_ip[1] is wanted
);
  localparam int AGE_BITS = $clog2(TIMEOUT + 1);
  localparam int RETRY_BITS = $clog2(RETRY + 1);
  localparam int ENTRY_BITS = $clog2(ENTRIES);

  if (ENTRIES < 2 || ENTRIES != 2 ** ENTRY_BITS) begin : g_check
    $error("udp_arp: ENTRIES must be a power of two and at least 2");
  end

  // ---- receive -------------------------------------------------------------------------------
  logic [net_pkg::ARP_BYTES*8-1:0] header;
  logic complete, ended, good, shape_right, is_for_me;
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
  assign shape_right = shape == net_pkg::ARP_SHAPE
      && (operation == net_pkg::ARP_REQUEST || operation == net_pkg::ARP_REPLY);
  assign is_for_me = target_ip == ip_address;
  assign drop_short = ended && good && !complete;
  assign drop_protocol = ended && good && complete && !shape_right;

  // ---- cache ---------------------------------------------------------------------------------
  logic [ENTRIES-1:0] valid, hits;
  logic [ENTRIES-1:0][31:0] ips;
  logic [ENTRIES-1:0][47:0] macs;
  logic [ENTRIES-1:0][AGE_BITS-1:0] ages;
  logic [ENTRY_BITS-1:0] next;
  logic learn, insert;
  for (genvar i = 0; i < ENTRIES; i++) begin : g_hits
    assign hits[i] = valid[i] && ips[i] == sender_ip;
  end
  assign learn = ended && good && complete && shape_right;
  assign insert = learn && hits == '0 && is_for_me && sender_ip != '0;
  // An announcement (RFC 5227) of somebody in the cache is heard, too.
  assign drop_destination = ended && good && complete && shape_right && !is_for_me && hits == '0;

  always_ff @(posedge clk) begin
    for (int i = 0; i < ENTRIES; i++) begin
      if (tick_ms && valid[i]) ages[i] <= ages[i] - 1'b1;
      if (ages[i] == '0) valid[i] <= 1'b0;
      if ((learn && hits[i]) || (insert && next == ENTRY_BITS'(i))) begin
        valid[i] <= 1'b1;
        ages[i]  <= AGE_BITS'(TIMEOUT);
        macs[i]  <= sender_mac;
        ips[i]   <= sender_ip;
      end
    end
    if (insert) next <= next + 1'b1;
    if (rst) begin
      valid <= '0;
      next  <= '0;
    end
  end
  always_comb begin
    known = '0;
    mac   = '0;
    for (int port = 0; port < 2; port++) begin
      for (int i = 0; i < ENTRIES; i++) begin
        if (valid[i] && ips[i] == lookup_ip[port]) begin
          known[port] = 1'b1;
          if (port == 0) mac = macs[i];
        end
      end
    end
  end

  // ---- transmit ------------------------------------------------------------------------------
  logic reply_due, ask_due, wish, is_reply;
  logic [47:0] reply_mac;
  logic [31:0] reply_ip, ask_ip, wish_ip;
  logic [RETRY_BITS-1:0] pause;
  assign drop_full = learn && is_for_me && operation == net_pkg::ARP_REQUEST && reply_due;
  assign request = reply_due || ask_due;
  assign length = 14'(net_pkg::ARP_BYTES);
  assign is_reply = reply_due;
  assign destination = is_reply ? reply_mac : net_pkg::BROADCAST;

  always_ff @(posedge clk) begin
    if (start && is_reply) reply_due <= 1'b0;
    if (start && !is_reply) ask_due <= 1'b0;
    if (learn && is_for_me && operation == net_pkg::ARP_REQUEST && !reply_due) begin
      reply_due <= 1'b1;
      {reply_mac, reply_ip} <= {sender_mac, sender_ip};
    end
    if (tick_ms && pause != '0) pause <= pause - 1'b1;
    if (!ask_due && pause == '0 && (wish || resolve_also)) begin
      ask_due <= 1'b1;
      ask_ip  <= wish ? wish_ip : lookup_ip[1];
      pause   <= RETRY_BITS'(RETRY);
      wish    <= 1'b0;
    end
    if (resolve) begin
      wish <= 1'b1;
      wish_ip <= lookup_ip[0];
    end
    if (rst) begin
      {reply_due, ask_due, wish} <= '0;
      pause <= '0;
    end
  end

  logic none;
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
        is_reply ? reply_mac : 48'd0,
        is_reply ? reply_ip : ask_ip
      }),
      .client_start(none),
      .client_data('0),
      .data(data)
  );

  logic unused;
  assign unused = &{1'b0, none, behind, behind_count, behind_valid, target_mac};
endmodule
`default_nettype wire
