// SPDX-License-Identifier: Apache-2.0
//
// The layers below UDP: Ethernet, ARP, IP, ICMP echo (one clock).
//
//                 +-----------------------------------------------+
//   s_* ========> | udp_ethernet_rx -> udp_ip_rx -----------------|====> m_* (to the UDP layer)
//                 |      |                 +-> udp_icmp           |
//                 |   udp_arp - udp_neighbours     |              |
//   tx <========= | udp_ethernet_tx <- udp_ip_tx <-+--------------|<==== request, length, destination, data
//   tx_start ---> |                                               |----> start
//                 +-----------------------------------------------+
//
// Without ICMP, echoes count as "no protocol"; without ARP, its messages count as "no ethertype". The layers are connected
// by the data-pull contract (docs/protocol/udp.md). stream_*: destination of the stream; its address is resolved while it
// is active (see udp_neighbours). ptp_open: PTP's groups are received; ptp_layer2: and its frames (l2_*).
`default_nettype none
module udp_network #(
    parameter int WIDTH = 8,
    parameter int STREAMS = 1,
    parameter int ICMP = 1,
    parameter int ECHO_BITS = 11,
    parameter int ARP = 1,
    parameter int ARP_ENTRIES = 4,
    parameter int ARP_TIMEOUT = 60_000,
    parameter int ARP_RETRY = 100,
    parameter int PTP = 1
) (
    input logic clk,
    input logic rst,
    input logic tick_ms,
    input logic [47:0] mac_address,
    input net_pkg::ip_t ip,
    input logic [47:0] peer_mac,  // without ARP, everybody's
    input logic ptp_open,
    input logic ptp_layer2,
    input logic [STREAMS-1:0][31:0] stream_ip,
    input logic [STREAMS-1:0] stream_changed,
    input logic [STREAMS-1:0] stream_active,
    output logic [STREAMS-1:0] stream_path,
    // frames
    input logic [WIDTH-1:0] s_data,
    input logic [3:0] s_count,
    input logic s_valid,
    input logic s_end,
    input logic s_good,
    output link_pkg::frame_t tx,
    input logic tx_start,
    // packets from the wire
    output logic [WIDTH-1:0] m_data,
    output logic [3:0] m_count,
    output logic m_valid,
    output logic m_addresses,
    output logic m_end,
    output logic m_good,
    output logic m_claimed,
    output logic [31:0] m_source,
    // packets to the wire
    input logic request,
    input logic [13:0] length,
    input logic [31:0] destination,
    output logic start,
    input logic [WIDTH-1:0] data,
    // PTP over Ethernet
    output logic [WIDTH-1:0] m_l2_data,
    output logic [3:0] m_l2_count,
    output logic m_l2_valid,
    output logic m_l2_end,
    output logic m_l2_good,
    input logic l2_request,
    input logic [13:0] l2_length,
    input logic l2_to_peer,
    output logic l2_start,
    input logic [WIDTH-1:0] l2_data,
    output udp_pkg::network_events_t events
);
  logic arp_short, arp_protocol, arp_destination;
  assign events.drop_arp = arp_protocol || arp_short || arp_destination;

  // ---- Ethernet ------------------------------------------------------------------------------
  localparam int ETHERNET_PTP = 0, ETHERNET_ARP = 1, ETHERNET_IP = 2;
  localparam int FIRST = PTP != 0 ? ETHERNET_PTP : ETHERNET_ARP;
  logic [  WIDTH-1:0] tx_tdata;
  logic [WIDTH/8-1:0] tx_tkeep;
  logic tx_tvalid, tx_tlast;
  logic [2:0] ethernet_request, ethernet_start, ethernet_claims;
  logic [2:0][13:0] ethernet_length;
  logic [2:0][47:0] ethernet_to;
  logic [2:0][WIDTH-1:0] ethernet_data;
  logic [2:0][15:0] ethernet_type;
  logic [2-FIRST:0] starts;  // not with PTP=0
  assign ethernet_start = 3'(starts) << FIRST;
  assign ethernet_type  = {net_pkg::ETHERTYPE_IPV4, net_pkg::ETHERTYPE_ARP, ptp_pkg::ETHERTYPE};
  udp_ethernet_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(3 - FIRST)
  ) ethernet_tx (
      .clk          (clk),
      .rst          (rst),
      .mac_address  (mac_address),
      .s_request    (ethernet_request[2:FIRST]),
      .s_length     (ethernet_length[2:FIRST]),
      .s_destination(ethernet_to[2:FIRST]),
      .s_ethertype  (ethernet_type[2:FIRST]),
      .s_start      (starts),
      .s_data       (ethernet_data[2:FIRST]),
      .m_axis_tdata (tx_tdata),
      .m_axis_tkeep (tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tlast (tx_tlast),
      .m_axis_start (tx_start)
  );
  assign tx = {64'(tx_tdata), 8'(tx_tkeep), tx_tvalid, tx_tlast, 1'b0};

  logic [WIDTH-1:0] frame_data;
  logic [3:0] frame_count;
  logic frame_valid, frame_end, frame_good;
  logic [47:0] frame_source;
  logic [15:0] ethertype;
  udp_ethernet_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(3)
  ) ethernet_rx (
      .clk             (clk),
      .rst             (rst),
      .mac_address     (mac_address),
      .s_data          (s_data),
      .s_count         (s_count),
      .s_valid         (s_valid),
      .s_end           (s_end),
      .s_good          (s_good),
      .m_data          (frame_data),
      .m_count         (frame_count),
      .m_valid         (frame_valid),
      .m_end           (frame_end),
      .m_good          (frame_good),
      .source          (frame_source),
      .ethertype       (ethertype),
      .claims          (ethernet_claims),
      .any_group       (ethernet_claims[ETHERNET_PTP]),
      .drop_destination(events.drop_destination),
      .drop_protocol   (events.drop_ethertype),
      .drop_short      (events.drop_ethernet_short)
  );
  assign ethernet_claims[ETHERNET_ARP] = ARP != 0 && ethertype == net_pkg::ETHERTYPE_ARP;
  assign ethernet_claims[ETHERNET_IP]  = ethertype == net_pkg::ETHERTYPE_IPV4;
  assign ethernet_claims[ETHERNET_PTP] = ptp_layer2 && ethertype == ptp_pkg::ETHERTYPE;
  logic [2:0] claimed;
  always_ff @(posedge clk) claimed <= ethernet_claims;

  // ---- PTP -----------------------------------------------------------------------------------
  assign {m_l2_data, m_l2_count, m_l2_valid, m_l2_end} = {
    frame_data, frame_count, frame_valid, frame_end
  };
  assign m_l2_good = frame_good && claimed[ETHERNET_PTP];
  assign ethernet_request[ETHERNET_PTP] = l2_request;
  assign ethernet_length[ETHERNET_PTP] = l2_length;
  assign ethernet_to[ETHERNET_PTP] = l2_to_peer ? ptp_pkg::MAC_PEER : ptp_pkg::MAC;
  assign ethernet_data[ETHERNET_PTP] = l2_data;
  assign l2_start = ethernet_start[ETHERNET_PTP];

  // ---- ARP -----------------------------------------------------------------------------------
  logic lookup, lookup_done, known, in_use;
  logic [31:0] lookup_ip;
  logic [47:0] lookup_mac;
  if (ARP != 0) begin : g_arp
    logic learn, learn_new, learned, learned_nothing, ask, ask_taken;
    logic [ 3:0] learn_place;
    logic [ 7:0] learn_byte;
    logic [31:0] ask_ip;
    udp_arp #(
        .WIDTH(WIDTH)
    ) arp (
        .s_data          (frame_data),
        .s_count         (frame_count),
        .s_valid         (frame_valid),
        .s_end           (frame_end),
        .s_good          (frame_good && claimed[ETHERNET_ARP]),
        .ip_address      (ip.address),
        .drop_short      (arp_short),
        .drop_protocol   (arp_protocol),
        .drop_destination(arp_destination),
        .drop_full       (events.drop_arp_full),
        .request         (ethernet_request[ETHERNET_ARP]),
        .length          (ethernet_length[ETHERNET_ARP]),
        .destination     (ethernet_to[ETHERNET_ARP]),
        .start           (ethernet_start[ETHERNET_ARP]),
        .data            (ethernet_data[ETHERNET_ARP]),
        .*
    );
    udp_neighbours #(
        .STREAMS(STREAMS),
        .ENTRIES(ARP_ENTRIES),
        .TIMEOUT(ARP_TIMEOUT),
        .RETRY  (ARP_RETRY)
    ) neighbours (
        .ip_address(ip.address),
        .mask      (ip.mask),
        .gateway   (ip.gateway),
        .mac       (lookup_mac),
        .*
    );
  end else begin : g_fixed
    // Everybody is behind one address.
    assign {ethernet_request[ETHERNET_ARP], ethernet_length[ETHERNET_ARP], ethernet_to[ETHERNET_ARP]} = '0;
    assign {ethernet_data[ETHERNET_ARP], arp_short, arp_protocol, arp_destination, events.drop_arp_full} = '0;
    assign lookup_mac = net_pkg::is_group(
        lookup_ip
    ) ? {net_pkg::MULTICAST, 1'b0, lookup_ip[22:0]} : peer_mac;
    assign {known, stream_path} = '1;
    always_ff @(posedge clk) lookup_done <= lookup && !lookup_done;
  end

  // ---- IP ------------------------------------------------------------------------------------
  localparam int IP_ICMP = 0, IP_UDP = 1;
  logic [1:0] ip_request, ip_start, ip_claims;
  logic [1:0][13:0] ip_length;
  logic [1:0][31:0] ip_to;
  logic [1:0][WIDTH-1:0] ip_data;
  udp_ip_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) ip_tx (
      .clk            (clk),
      .rst            (rst),
      .ip_address     (ip.address),
      .s_request      (ip_request),
      .s_length       (ip_length),
      .s_destination  (ip_to),
      .s_protocol     ({net_pkg::PROTOCOL_UDP, net_pkg::PROTOCOL_ICMP}),
      .s_start        (ip_start),
      .s_data         (ip_data),
      .m_request      (ethernet_request[ETHERNET_IP]),
      .m_length       (ethernet_length[ETHERNET_IP]),
      .m_destination  (ethernet_to[ETHERNET_IP]),
      .m_start        (ethernet_start[ETHERNET_IP]),
      .m_data         (ethernet_data[ETHERNET_IP]),
      .lookup         (lookup),
      .lookup_ip      (lookup_ip),
      .in_use         (in_use),
      .lookup_done    (lookup_done),
      .known          (known),
      .mac            (lookup_mac),
      .drop_unresolved(events.unresolved)
  );

  logic [ 7:0] packet_protocol;
  logic [15:0] packet_length;
  udp_ip_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) ip_rx (
      .clk             (clk),
      .rst             (rst),
      .ip_address      (ip.address),
      .mask            (ip.mask),
      .groups          ({ptp_pkg::GROUP_PEER, ptp_pkg::GROUP}),
      .joined          (ptp_open),
      .s_data          (frame_data),
      .s_count         (frame_count),
      .s_valid         (frame_valid),
      .s_end           (frame_end),
      .s_good          (frame_good && claimed[ETHERNET_IP]),
      .m_data          (m_data),
      .m_count         (m_count),
      .m_valid         (m_valid),
      .m_addresses     (m_addresses),
      .m_end           (m_end),
      .m_good          (m_good),
      .source          (m_source),
      .protocol        (packet_protocol),
      .length          (packet_length),
      .claims          (ip_claims),
      .drop_short      (events.drop_ip_short),
      .drop_version    (events.drop_ip_version),
      .drop_checksum   (events.drop_ip_checksum),
      .drop_destination(events.drop_ip_destination),
      .drop_fragment   (events.drop_fragment),
      .drop_protocol   (events.drop_ip_protocol)
  );
  assign ip_claims[IP_ICMP] = ICMP != 0 && packet_protocol == net_pkg::PROTOCOL_ICMP;
  assign m_claimed = ip_claims[IP_UDP];
  assign ip_claims[IP_UDP] = packet_protocol == net_pkg::PROTOCOL_UDP;

  // ---- ICMP ----------------------------------------------------------------------------------
  if (ICMP != 0) begin : g_icmp
    udp_icmp #(
        .WIDTH    (WIDTH),
        .ECHO_BITS(ECHO_BITS)
    ) icmp (
        .clk          (clk),
        .rst          (rst),
        .s_data       (m_data),
        .s_count      (m_count),
        .s_valid      (m_valid),
        .s_end        (m_end),
        .s_good       (m_good),
        .s_source     (m_source),
        .s_length     (packet_length[13:0]),
        .s_claimed    (ip_claims[IP_ICMP]),
        .request      (ip_request[IP_ICMP]),
        .length       (ip_length[IP_ICMP]),
        .destination  (ip_to[IP_ICMP]),
        .start        (ip_start[IP_ICMP]),
        .data         (ip_data[IP_ICMP]),
        .drop_type    (events.drop_icmp_type),
        .drop_checksum(events.drop_icmp_checksum),
        .drop_full    (events.drop_icmp_full)
    );
  end else begin : g_no_icmp
    assign {ip_request[IP_ICMP], ip_length[IP_ICMP], ip_to[IP_ICMP], ip_data[IP_ICMP]} = '0;
    assign {events.drop_icmp_type, events.drop_icmp_checksum, events.drop_icmp_full}   = '0;
  end
  assign ip_request[IP_UDP] = request;
  assign ip_length[IP_UDP] = length;
  assign ip_to[IP_UDP] = destination;
  assign ip_data[IP_UDP] = data;
  assign start = ip_start[IP_UDP];

  logic unused;
  assign unused = &{1'b0, frame_source, packet_length, ip, peer_mac, tick_ms, stream_ip, stream_changed, stream_active, in_use, ethernet_request,
      ethernet_start, ethernet_length, ethernet_to, ethernet_data, ethernet_type};
endmodule
`default_nettype wire
