// UDP/IP stack (design section 5): a stream of words and a slow control over UDP, ARP, ICMP echo.
//
//                   +--------------------------------------------------------------+
//   s_axis_* ======>| stream --+                                                   |
//                   |          +-> UDP --+                                         |
//   reg_* <========>| control -+         +-> IP --+                                |
//                   |            ICMP ---+        +-> Ethernet ======================>| m_axis_* (to the MAC)
//                   |                      ARP ---+        <- m_axis_start            |
//                   |  (the same layers back)  <===== Ethernet <== crossing <=========| s_mac_* (from the MAC)
//                   +--------------------------------------------------------------+
//      user_clk                          tx_clk                            rx_clk
//
// One module a layer, joined by the data-pull contract (docs/protocol/udp.md): no layer stores a frame.
// WIDTH is the MAC's datapath: 8 for GMII, 64 for XGMII. All but the stream's user side is in tx_clk.
// TICK_CLOCKS is a millisecond of it.
//
// peer_ip, peer_port, payload and checksum are the stream's settings at reset, `start` whether it is enabled; the
// slow control changes them (udp_pkg). status_enabled is the register; enable low ends the stream whatever it says.
// counters: since reset, in the order of udp_pkg's counter registers.
module udp_core #(
    parameter int WIDTH = 8,
    parameter int PAYLOAD_MAX = 8972,
    parameter int SLOTS = WIDTH == 8 ? 2 : 4,
    parameter int ECHO_BYTES = 2048,
    parameter int ARP_ENTRIES = 4,
    parameter int ARP_TIMEOUT = 60_000,
    parameter int ARP_RETRY = 100,
    parameter int TICK_CLOCKS = WIDTH == 8 ? 125_000 : 156_250,
    parameter logic [37:0] PERIOD = WIDTH == 8 ? 38'd8 << 32 : 38'd27_487_790_694,  // of tx_clk, 2^-32 ns
    parameter int SYNC_CLOCKS = WIDTH == 8 ? 125_000_000 : 156_250_000,
    parameter int SYNC_LOG = 0,
    parameter int COUNTERS = 24
) (
    // user side
    input  logic                                user_clk,
    input  logic                                user_rst,
    input  logic           [        63:0]       s_axis_tdata,
    input  logic                                s_axis_tvalid,
    output logic                                s_axis_tready,
    input  logic                                s_axis_tlast,
    output logic                                user_running,
    // settings
    input  logic           [        47:0]       mac_address,
    input  logic           [        31:0]       ip_address,
    input  logic           [        31:0]       ip_mask,
    input  logic           [        31:0]       ip_gateway,
    input  logic           [        31:0]       peer_ip,
    input  logic           [        15:0]       peer_port,
    input  logic           [        15:0]       local_port,
    input  logic           [        13:0]       payload,
    input  logic                                checksum,
    input  logic                                start,
    input  logic                                enable,
    input  logic           [         1:0]       ptp_role,
    // the user's registers (tx_clk)
    output logic                                reg_valid,
    output logic                                reg_write,
    output logic           [        31:0]       reg_address,
    output logic           [        31:0]       reg_wdata,
    input  logic                                reg_ready,
    input  logic                                reg_error,
    input  logic           [        31:0]       reg_rdata,
    // frames to the MAC
    input  logic                                tx_clk,
    input  logic                                tx_rst,
    output logic           [   WIDTH-1:0]       m_axis_tdata,
    output logic           [ WIDTH/8-1:0]       m_axis_tkeep,
    output logic                                m_axis_tvalid,
    output logic                                m_axis_tlast,
    output logic                                m_axis_tuser,
    input  logic                                m_axis_start,
    output logic                                status_path,
    output logic                                status_active,
    output logic                                status_enabled,
    output ptp_pkg::time_t                      ptp_now,
    output logic                                ptp_pps,
    output logic                                ptp_locked,
    output logic signed    [        31:0]       ptp_offset,
    output logic signed    [        31:0]       ptp_delay,
    output logic signed    [        31:0]       ptp_rate,
    output logic           [COUNTERS-1:0][31:0] counters,
    // frames from the MAC
    input  logic                                rx_clk,
    input  logic                                rx_rst,
    input  logic           [   WIDTH-1:0]       s_mac_tdata,
    input  logic           [ WIDTH/8-1:0]       s_mac_tkeep,
    input  logic                                s_mac_tvalid,
    input  logic                                s_mac_tlast,
    input  logic                                s_mac_tuser
);
  localparam int ECHO_BITS = $clog2(ECHO_BYTES / (WIDTH / 8));

  if (WIDTH != 8 && WIDTH != 64) begin : g_check_width
    $error("udp_core: WIDTH must be 8 or 64");
  end

  logic tick_ms;
  logic [$clog2(TICK_CLOCKS)-1:0] clocks;
  always_ff @(posedge tx_clk) begin
    tick_ms <= clocks == '0;
    clocks  <= clocks == '0 ? $bits(clocks)'(TICK_CLOCKS - 1) : clocks - 1'b1;
    if (tx_rst) clocks <= '0;
  end

  // One pulse each, in the order of the counters.
  logic stream_sent, unresolved;
  logic ethernet_destination, ethernet_protocol, ethernet_short;
  logic arp_short, arp_protocol, arp_destination, arp_full;
  logic ip_short, ip_version, ip_checksum, ip_destination, ip_fragment, ip_protocol;
  logic icmp_type, icmp_checksum, icmp_full;
  logic udp_short, udp_checksum, udp_port;
  logic control_short, control_full;
  logic ptp_found, ptp_malformed, ptp_ignored;
  event_counters #(
      .EVENTS(COUNTERS),
      .WIDTH (32)
  ) event_counters (
      .clk(tx_clk),
      .clear(tx_rst),
      .pulse({
        ptp_ignored,
        ptp_malformed,
        ptp_found,
        control_full,
        control_short,
        udp_port,
        udp_checksum,
        udp_short,
        icmp_full,
        icmp_checksum,
        icmp_type,
        ip_protocol,
        ip_fragment,
        ip_destination,
        ip_checksum,
        ip_version,
        ip_short,
        arp_full,
        arp_protocol || arp_short || arp_destination,
        ethernet_short,
        ethernet_protocol,
        ethernet_destination,
        unresolved,
        stream_sent
      }),
      .count(counters)
  );

  // ---- Ethernet ------------------------------------------------------------------------------
  localparam int ETHERNET_ARP = 0, ETHERNET_IP = 1;
  logic [1:0] ethernet_request, ethernet_start, ethernet_claims;
  logic [1:0][13:0] ethernet_length;
  logic [1:0][47:0] ethernet_to;
  logic [1:0][WIDTH-1:0] ethernet_data;
  udp_ethernet_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) ethernet_tx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .my_mac       (mac_address),
      .s_request    (ethernet_request),
      .s_length     (ethernet_length),
      .s_destination(ethernet_to),
      .s_ethertype  ({net_pkg::ETHERTYPE_IPV4, net_pkg::ETHERTYPE_ARP}),
      .s_start      (ethernet_start),
      .s_data       (ethernet_data),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tlast (m_axis_tlast),
      .m_axis_start (m_axis_start)
  );
  assign m_axis_tuser = 1'b0;

  logic [WIDTH-1:0] raw_data, frame_data;
  logic [3:0] raw_count, frame_count;
  logic raw_valid, raw_end, raw_good, frame_valid, frame_end, frame_good;
  logic [47:0] frame_source;
  logic [15:0] ethertype;
  frame_crossing #(
      .WIDTH(WIDTH)
  ) crossing (
      .rx_clk       (rx_clk),
      .rx_rst       (rx_rst),
      .s_axis_tdata (s_mac_tdata),
      .s_axis_tkeep (s_mac_tkeep),
      .s_axis_tvalid(s_mac_tvalid),
      .s_axis_tlast (s_mac_tlast),
      .s_axis_tuser (s_mac_tuser),
      .clk          (tx_clk),
      .rst          (tx_rst),
      .m_data       (raw_data),
      .m_count      (raw_count),
      .m_valid      (raw_valid),
      .m_end        (raw_end),
      .m_good       (raw_good)
  );
  udp_ethernet_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) ethernet_rx (
      .clk             (tx_clk),
      .rst             (tx_rst),
      .my_mac          (mac_address),
      .s_data          (raw_data),
      .s_count         (raw_count),
      .s_valid         (raw_valid),
      .s_end           (raw_end),
      .s_good          (raw_good),
      .m_data          (frame_data),
      .m_count         (frame_count),
      .m_valid         (frame_valid),
      .m_end           (frame_end),
      .m_good          (frame_good),
      .source          (frame_source),
      .ethertype       (ethertype),
      .claims          (ethernet_claims),
      .drop_destination(ethernet_destination),
      .drop_protocol   (ethernet_protocol),
      .drop_short      (ethernet_short)
  );
  assign ethernet_claims[ETHERNET_ARP] = ethertype == net_pkg::ETHERTYPE_ARP;
  assign ethernet_claims[ETHERNET_IP]  = ethertype == net_pkg::ETHERTYPE_IPV4;

  // ---- ARP -----------------------------------------------------------------------------------
  logic [31:0] hop, stream_hop, stream_ip;
  logic [ 1:0] known;
  logic [47:0] hop_mac;
  logic resolve, stream_active, stream_direct;
  assign stream_hop = net_pkg::next_hop(stream_ip, ip_address, ip_mask, ip_gateway);
  assign stream_direct = net_pkg::is_group(
      stream_ip
  ) || net_pkg::is_broadcast(
      stream_ip, ip_address, ip_mask
  );
  assign status_path = known[1] || stream_direct;
  udp_arp #(
      .WIDTH  (WIDTH),
      .ENTRIES(ARP_ENTRIES),
      .TIMEOUT(ARP_TIMEOUT),
      .RETRY  (ARP_RETRY)
  ) arp (
      .clk             (tx_clk),
      .rst             (tx_rst),
      .tick_ms         (tick_ms),
      .my_mac          (mac_address),
      .my_ip           (ip_address),
      .s_data          (frame_data),
      .s_count         (frame_count),
      .s_valid         (frame_valid),
      .s_end           (frame_end),
      .s_good          (frame_good && ethernet_claims[ETHERNET_ARP]),
      .drop_short      (arp_short),
      .drop_protocol   (arp_protocol),
      .drop_destination(arp_destination),
      .drop_full       (arp_full),
      .request         (ethernet_request[ETHERNET_ARP]),
      .length          (ethernet_length[ETHERNET_ARP]),
      .destination     (ethernet_to[ETHERNET_ARP]),
      .start           (ethernet_start[ETHERNET_ARP]),
      .data            (ethernet_data[ETHERNET_ARP]),
      .lookup_ip       ({stream_hop, hop}),
      .known           (known),
      .mac             (hop_mac),
      .resolve         (resolve),
      .resolve_also    (stream_active && !status_path)
  );

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
      .clk            (tx_clk),
      .rst            (tx_rst),
      .my_ip          (ip_address),
      .mask           (ip_mask),
      .gateway        (ip_gateway),
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
      .lookup_ip      (hop),
      .known          (known[0]),
      .mac            (hop_mac),
      .resolve        (resolve),
      .drop_unresolved(unresolved)
  );

  logic [WIDTH-1:0] packet_data;
  logic [3:0] packet_count;
  logic packet_valid, packet_end, packet_good;
  logic [31:0] packet_source, packet_destination;
  logic [ 7:0] packet_protocol;
  logic [15:0] packet_length;
  udp_ip_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) ip_rx (
      .clk             (tx_clk),
      .rst             (tx_rst),
      .my_ip           (ip_address),
      .mask            (ip_mask),
      .group           (role == ptp_pkg::OFF ? '0 : ptp_pkg::GROUP),
      .s_data          (frame_data),
      .s_count         (frame_count),
      .s_valid         (frame_valid),
      .s_end           (frame_end),
      .s_good          (frame_good && ethernet_claims[ETHERNET_IP]),
      .m_data          (packet_data),
      .m_count         (packet_count),
      .m_valid         (packet_valid),
      .m_end           (packet_end),
      .m_good          (packet_good),
      .source          (packet_source),
      .destination     (packet_destination),
      .protocol        (packet_protocol),
      .length          (packet_length),
      .claims          (ip_claims),
      .drop_short      (ip_short),
      .drop_version    (ip_version),
      .drop_checksum   (ip_checksum),
      .drop_destination(ip_destination),
      .drop_fragment   (ip_fragment),
      .drop_protocol   (ip_protocol)
  );
  assign ip_claims[IP_ICMP] = packet_protocol == net_pkg::PROTOCOL_ICMP;
  assign ip_claims[IP_UDP]  = packet_protocol == net_pkg::PROTOCOL_UDP;

  // ---- ICMP ----------------------------------------------------------------------------------
  udp_icmp #(
      .WIDTH    (WIDTH),
      .ECHO_BITS(ECHO_BITS)
  ) icmp (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .s_data       (packet_data),
      .s_count      (packet_count),
      .s_valid      (packet_valid),
      .s_end        (packet_end),
      .s_good       (packet_good),
      .s_source     (packet_source),
      .s_length     (packet_length[13:0]),
      .s_claimed    (ip_claims[IP_ICMP]),
      .request      (ip_request[IP_ICMP]),
      .length       (ip_length[IP_ICMP]),
      .destination  (ip_to[IP_ICMP]),
      .start        (ip_start[IP_ICMP]),
      .data         (ip_data[IP_ICMP]),
      .drop_type    (icmp_type),
      .drop_checksum(icmp_checksum),
      .drop_full    (icmp_full)
  );

  // ---- UDP -----------------------------------------------------------------------------------
  localparam int UDP_PTP = 0, UDP_CONTROL = 1, UDP_STREAM = 2;
  logic [2:0] port_request, port_start;
  logic [2:0][13:0] port_length;
  logic [2:0][31:0] port_to;
  logic [2:0][15:0] port_to_port, port_sum;
  logic [2:0][WIDTH-1:0] port_data;
  logic control_claim, ptp_claim, with_checksum;
  logic [15:0] ptp_port;
  logic [ 1:0] role;
  logic [31:0] sync_clocks;
  logic [ 7:0] sync_log;
  udp_datagram_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(3)
  ) datagram_tx (
      .clk               (tx_clk),
      .rst               (tx_rst),
      .my_ip             (ip_address),
      .s_request         (port_request),
      .s_length          (port_length),
      .s_destination     (port_to),
      .s_port            ({local_port, udp_pkg::CONTROL_PORT, ptp_port}),
      .s_destination_port(port_to_port),
      .s_checksum        ({with_checksum, 2'b10}),
      .s_sum             (port_sum),
      .s_start           (port_start),
      .s_data            (port_data),
      .m_request         (ip_request[IP_UDP]),
      .m_length          (ip_length[IP_UDP]),
      .m_destination     (ip_to[IP_UDP]),
      .m_start           (ip_start[IP_UDP]),
      .m_data            (ip_data[IP_UDP])
  );

  logic [WIDTH-1:0] datagram_data;
  logic [3:0] datagram_count;
  logic datagram_valid, datagram_end, datagram_good;
  logic [31:0] datagram_source;
  logic [15:0] datagram_source_port, datagram_port, datagram_length;
  udp_datagram_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) datagram_rx (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .s_data       (packet_data),
      .s_count      (packet_count),
      .s_valid      (packet_valid),
      .s_end        (packet_end),
      .s_good       (packet_good),
      .s_source     (packet_source),
      .s_destination(packet_destination),
      .s_length     (packet_length),
      .s_claimed    (ip_claims[IP_UDP]),
      .m_data       (datagram_data),
      .m_count      (datagram_count),
      .m_valid      (datagram_valid),
      .m_end        (datagram_end),
      .m_good       (datagram_good),
      .source       (datagram_source),
      .source_port  (datagram_source_port),
      .port         (datagram_port),
      .length       (datagram_length),
      .claims       ({control_claim, ptp_claim}),
      .drop_short   (udp_short),
      .drop_checksum(udp_checksum),
      .drop_port    (udp_port)
  );
  assign control_claim = datagram_port == udp_pkg::CONTROL_PORT;
  assign ptp_claim = role != ptp_pkg::OFF
      && (datagram_port == ptp_pkg::PORT_EVENT || datagram_port == ptp_pkg::PORT_GENERAL);

  // ---- PTP -----------------------------------------------------------------------------------
  // From the first byte behind the start delimiter on the wire to the first word here (half a clock of it is
  // the crossing's phase), and from the start of PTP's data back to that byte. Both in clocks, times ten; they
  // are fixed, because no layer waits.
  localparam int PERIOD_PS = int'(PERIOD >> 22);  // nearly
  localparam int RX_LAG = (WIDTH == 8 ? 95 : 65) * PERIOD_PS / 10_240;
  localparam int TX_LEAD = (WIDTH == 8 ? 370 : -20) * PERIOD_PS / 10_240;
  logic in_frame, step_valid, servo_step, set_time;
  logic [47:0] step_seconds, servo_seconds;
  logic signed [31:0] step_ns, servo_ns;
  ptp_pkg::time_t first_word, frame_time, packet_time;
  always_ff @(posedge tx_clk) begin
    if (raw_valid) in_frame <= !raw_end;
    else if (raw_end) in_frame <= 1'b0;
    // A frame's time goes up with it.
    if (raw_valid && !in_frame) first_word <= ptp_now;
    if (raw_end) frame_time <= first_word;
    if (packet_end) packet_time <= ptp_pkg::earlier(frame_time, RX_LAG);
    if (tx_rst) in_frame <= 1'b0;
  end
  ptp_clock #(
      .PERIOD(PERIOD)
  ) clock (
      .clk         (tx_clk),
      .rst         (tx_rst),
      .rate        (ptp_rate),
      .step_valid  (step_valid),
      .step_seconds(step_seconds),
      .step_ns     (step_ns),
      .now         (ptp_now),
      .pps         (ptp_pps)
  );
  assign step_valid = servo_step || set_time;
  assign step_seconds = servo_step ? servo_seconds : {16'd0, reg_wdata} - ptp_now[79:32];
  assign step_ns = servo_step ? servo_ns : '0;
  udp_ptp #(
      .WIDTH  (WIDTH),
      .TX_LEAD(TX_LEAD)
  ) ptp (
      .clk           (tx_clk),
      .rst           (tx_rst),
      .role          (role),
      .sync_clocks   (sync_clocks),
      .sync_log      (sync_log),
      .my_mac        (mac_address),
      .now           (ptp_now),
      .s_data        (datagram_data),
      .s_count       (datagram_count),
      .s_valid       (datagram_valid),
      .s_end         (datagram_end),
      .s_good        (datagram_good),
      .s_claimed     (ptp_claim),
      .s_length      (datagram_length),
      .s_time        (packet_time),
      .drop_malformed(ptp_malformed),
      .drop_ignored  (ptp_ignored),
      .request       (port_request[UDP_PTP]),
      .length        (port_length[UDP_PTP]),
      .port          (ptp_port),
      .start         (port_start[UDP_PTP]),
      .data          (port_data[UDP_PTP]),
      .step_valid    (servo_step),
      .step_seconds  (servo_seconds),
      .step_ns       (servo_ns),
      .rate          (ptp_rate),
      .locked        (ptp_locked),
      .offset        (ptp_offset),
      .path_delay    (ptp_delay),
      .event_offset  (ptp_found)
  );
  assign port_to[UDP_PTP] = ptp_pkg::GROUP;
  assign port_to_port[UDP_PTP] = ptp_port;
  assign port_sum[UDP_PTP] = '0;

  logic control_ready, control_error, control_valid, own;
  logic [31:0] control_rdata, own_rdata;
  logic own_error;
  udp_control #(
      .WIDTH(WIDTH)
  ) control (
      .clk             (tx_clk),
      .rst             (tx_rst),
      .s_data          (datagram_data),
      .s_count         (datagram_count),
      .s_valid         (datagram_valid),
      .s_end           (datagram_end),
      .s_good          (datagram_good),
      .s_claimed       (control_claim),
      .s_source        (datagram_source),
      .s_source_port   (datagram_source_port),
      .drop_short      (control_short),
      .drop_full       (control_full),
      .request         (port_request[UDP_CONTROL]),
      .length          (port_length[UDP_CONTROL]),
      .destination     (port_to[UDP_CONTROL]),
      .destination_port(port_to_port[UDP_CONTROL]),
      .sum             (port_sum[UDP_CONTROL]),
      .start           (port_start[UDP_CONTROL]),
      .data            (port_data[UDP_CONTROL]),
      .reg_valid       (control_valid),
      .reg_write       (reg_write),
      .reg_address     (reg_address),
      .reg_wdata       (reg_wdata),
      .reg_ready       (control_ready),
      .reg_error       (control_error),
      .reg_rdata       (control_rdata)
  );
  assign own = reg_address[31];
  assign reg_valid = control_valid && !own;
  assign control_ready = own || reg_ready;
  assign control_error = own ? own_error : reg_error;
  assign control_rdata = own ? own_rdata : reg_rdata;

  // ---- stream --------------------------------------------------------------------------------
  logic stream_enable;
  logic [15:0] stream_port;
  logic [13:0] stream_payload;
  logic [7:0] run;
  logic [31:0] last_count;
  udp_stream #(
      .WIDTH      (WIDTH),
      .PAYLOAD_MAX(PAYLOAD_MAX),
      .SLOTS      (SLOTS)
  ) stream (
      .user_clk     (user_clk),
      .user_rst     (user_rst),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .s_axis_tlast (s_axis_tlast),
      .running      (user_running),
      .clk          (tx_clk),
      .rst          (tx_rst),
      .tick_ms      (tick_ms),
      .enable       (stream_enable && enable),
      .path         (status_path),
      .payload      (stream_payload),
      .active       (stream_active),
      .request      (port_request[UDP_STREAM]),
      .length       (port_length[UDP_STREAM]),
      .sum          (port_sum[UDP_STREAM]),
      .start        (port_start[UDP_STREAM]),
      .data         (port_data[UDP_STREAM]),
      .event_sent   (stream_sent),
      .run          (run),
      .last_count   (last_count)
  );
  assign port_to[UDP_STREAM] = stream_ip;
  assign port_to_port[UDP_STREAM] = stream_port;
  assign status_active = stream_active || (stream_enable && enable);
  assign status_enabled = stream_enable;

  // ---- own registers -------------------------------------------------------------------------
  localparam int COUNTER_BITS = $clog2(COUNTERS);
  logic is_counter, payload_right, still;
  logic [7:0] counter_index;
  assign counter_index = reg_address[7:0];
  assign is_counter = reg_address[31:8] == udp_pkg::REGISTER_COUNTERS[31:8] && counter_index < 8'(COUNTERS);
  assign payload_right = reg_wdata >= 32'd16 && reg_wdata <= 32'(PAYLOAD_MAX) && reg_wdata[1:0] == '0;
  // Where the stream goes, and how, is changed while it stands.
  assign still = !(stream_enable && enable) && !stream_active;
  always_comb begin
    own_error = 1'b0;
    own_rdata = '0;
    case (reg_address)
      udp_pkg::REGISTER_IDENTITY: {own_error, own_rdata} = {reg_write, udp_pkg::IDENTITY};
      udp_pkg::REGISTER_ENABLE: own_rdata = 32'(stream_enable);
      udp_pkg::REGISTER_PEER_IP: {own_error, own_rdata} = {reg_write && !still, stream_ip};
      udp_pkg::REGISTER_PEER_PORT:
      {own_error, own_rdata} = {reg_write && !still, 16'd0, stream_port};
      udp_pkg::REGISTER_PAYLOAD:
      {own_error, own_rdata} = {reg_write && !(still && payload_right), 18'd0, stream_payload};
      udp_pkg::REGISTER_RUN: {own_error, own_rdata} = {reg_write, 24'd0, run};
      udp_pkg::REGISTER_LAST: {own_error, own_rdata} = {reg_write, last_count};
      udp_pkg::REGISTER_PTP_ROLE:
      {own_error, own_rdata} = {reg_write && reg_wdata > 32'd2, 30'd0, role};
      udp_pkg::REGISTER_PTP_LOCKED: {own_error, own_rdata} = {reg_write, 31'd0, ptp_locked};
      udp_pkg::REGISTER_PTP_OFFSET: {own_error, own_rdata} = {reg_write, ptp_offset};
      udp_pkg::REGISTER_PTP_DELAY: {own_error, own_rdata} = {reg_write, ptp_delay};
      udp_pkg::REGISTER_PTP_RATE: {own_error, own_rdata} = {reg_write, ptp_rate};
      udp_pkg::REGISTER_PTP_CLOCKS:
      {own_error, own_rdata} = {reg_write && reg_wdata < 32'd1000, sync_clocks};
      udp_pkg::REGISTER_PTP_LOG: own_rdata = {{24{sync_log[7]}}, sync_log};
      udp_pkg::REGISTER_PTP_SECONDS: own_rdata = ptp_now[63:32];
      udp_pkg::REGISTER_PTP_NS: {own_error, own_rdata} = {reg_write, read_ns};
      udp_pkg::REGISTER_CHECKSUM: own_rdata = 32'(with_checksum);
      default: begin
        own_error = reg_write || !is_counter;
        own_rdata = is_counter ? counters[counter_index[COUNTER_BITS-1:0]] : '0;
      end
    endcase
  end
  logic [31:0] read_ns;  // of the moment in which the seconds were read
  assign set_time = control_valid && reg_write && reg_address == udp_pkg::REGISTER_PTP_SECONDS;
  always_ff @(posedge tx_clk) begin
    if (control_valid && reg_address == udp_pkg::REGISTER_PTP_SECONDS) read_ns <= ptp_now[31:0];
    if (control_valid && own && reg_write && !own_error) begin
      case (reg_address)
        udp_pkg::REGISTER_ENABLE: stream_enable <= reg_wdata[0];
        udp_pkg::REGISTER_PEER_IP: stream_ip <= reg_wdata;
        udp_pkg::REGISTER_PEER_PORT: stream_port <= reg_wdata[15:0];
        udp_pkg::REGISTER_PAYLOAD: stream_payload <= reg_wdata[13:0];
        udp_pkg::REGISTER_PTP_ROLE: role <= reg_wdata[1:0];
        udp_pkg::REGISTER_PTP_CLOCKS: sync_clocks <= reg_wdata;
        udp_pkg::REGISTER_PTP_LOG: sync_log <= reg_wdata[7:0];
        udp_pkg::REGISTER_CHECKSUM: with_checksum <= reg_wdata[0];
        default: ;
      endcase
    end
    if (tx_rst) begin
      role <= ptp_role;
      sync_clocks <= 32'(SYNC_CLOCKS);
      sync_log <= 8'(SYNC_LOG);
      {stream_enable, stream_ip, stream_port, with_checksum} <= {
        start, peer_ip, peer_port, checksum
      };
      stream_payload <= payload > 14'(PAYLOAD_MAX) ? 14'(PAYLOAD_MAX) : payload;
    end
  end

  logic unused;
  assign unused = &{1'b0, frame_source};
endmodule
