// SPDX-License-Identifier: Apache-2.0
//
// IPv4 layer, transmit side: joins the layers above, finds the next hop, makes the header (RFC 791).
//
//   ICMP  s_*[0] ==>+-----------+
//   UDP   s_*[1] ==>| udp_ip_tx |====> m_request, length, destination, start, data (Ethernet)
//   ...             |           |====> lookup_ip / known, mac, resolve (ARP)
//                   +-----------+
//
// A packet whose next hop ARP does not know is started without a frame: its data goes nowhere, it is
// counted, and the hop is asked for. So nobody waits for a station that is not there; who must not
// lose packets looks at ARP before (udp_stream).
`default_nettype none
module udp_ip_tx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input  logic                          clk,
    input  logic                          rst,
    input  logic [       31:0]            ip_address,
    input  logic [       31:0]            mask,
    input  logic [       31:0]            gateway,
    input  logic [CLIENTS-1:0]            s_request,
    input  logic [CLIENTS-1:0][     13:0] s_length,
    input  logic [CLIENTS-1:0][     31:0] s_destination,
    input  logic [CLIENTS-1:0][      7:0] s_protocol,
    output logic [CLIENTS-1:0]            s_start,
    input  logic [CLIENTS-1:0][WIDTH-1:0] s_data,
    output logic                          m_request,
    output logic [       13:0]            m_length,
    output logic [       47:0]            m_destination,
    input  logic                          m_start,
    output logic [  WIDTH-1:0]            m_data,
    output logic [       31:0]            lookup_ip,
    input  logic                          known,
    input  logic [       47:0]            mac,
    output logic                          resolve,
    output logic                          drop_unresolved
);
  typedef enum logic [2:0] {
    IDLE,
    ROUTE,
    LOOK,
    SUM,
    READY,
    PASS,
    DISCARD
  } state_t;
  state_t state;

  logic [CLIENTS-1:0][39:0] meta;
  for (genvar i = 0; i < CLIENTS; i++) begin : g_meta
    assign meta[i] = {s_destination[i], s_protocol[i]};
  end
  logic offer, accept, start, client_start;
  logic [39:0] chosen;
  logic [13:0] chosen_length;
  logic [WIDTH-1:0] client_data;
  pull_arbiter #(
      .WIDTH    (WIDTH),
      .CLIENTS  (CLIENTS),
      .META_BITS(40)
  ) arbiter (
      .clk      (clk),
      .rst      (rst),
      .s_request(s_request),
      .s_meta   (meta),
      .s_length (s_length),
      .s_start  (s_start),
      .s_data   (s_data),
      .m_request(offer),
      .m_meta   (chosen),
      .m_length (chosen_length),
      .m_accept (accept),
      .m_start  (client_start),
      .m_data   (client_data)
  );

  logic [31:0] destination, sum;
  logic [15:0] length, identification, checksum;
  logic [7:0] protocol;
  logic direct, is_group, is_broadcast;
  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::IP_BYTES)
  ) header_first (
      .clk(clk),
      .rst(rst),
      .start(start),
      .header({
        net_pkg::IP_VERSION,
        length,
        identification,
        net_pkg::IP_DO_NOT_FRAGMENT,
        net_pkg::TTL,
        protocol,
        checksum,
        ip_address,
        destination
      }),
      .client_start(client_start),
      .client_data(client_data),
      .data(m_data)
  );

  assign accept = state == IDLE && offer;
  assign start = m_start || (state == LOOK && !direct && !known);
  assign resolve = state == LOOK && !direct && !known;
  assign drop_unresolved = resolve;
  assign m_request = state == READY;
  assign m_length = length[13:0];
  assign is_group = net_pkg::is_group(destination);
  assign is_broadcast = net_pkg::is_broadcast(destination, ip_address, mask);
  assign direct = is_group || is_broadcast;

  always_ff @(posedge clk) begin
    case (state)
      IDLE:
      if (offer) begin
        {destination, protocol} <= chosen;
        length <= 16'(chosen_length) + 16'(net_pkg::IP_BYTES);
        state <= ROUTE;
      end
      ROUTE: begin
        lookup_ip <= net_pkg::next_hop(destination, ip_address, mask, gateway);
        state <= LOOK;
        sum <= 32'(net_pkg::IP_VERSION) + 32'(length) + 32'(identification) + 32'(net_pkg::IP_DO_NOT_FRAGMENT)
            + 32'({net_pkg::TTL, protocol}) + 32'(ip_address[31:16]) + 32'(ip_address[15:0]);
      end
      LOOK: begin
        m_destination <= is_broadcast ? net_pkg::BROADCAST : is_group ? {net_pkg::MULTICAST, 1'b0, destination[22:0]} : mac;
        sum <= sum + 32'(destination[31:16]) + 32'(destination[15:0]);
        state <= direct || known ? SUM : DISCARD;
      end
      SUM: begin
        checksum <= ~net_pkg::fold(sum);
        state <= READY;
      end
      READY: if (m_start) state <= PASS;
      default:
      if (client_start) begin
        state <= IDLE;
        identification <= identification + 16'd1;
      end
    endcase
    if (rst) begin
      state <= IDLE;
      identification <= '0;
    end
  end
endmodule
`default_nettype wire
