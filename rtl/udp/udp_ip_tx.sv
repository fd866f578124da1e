// SPDX-License-Identifier: Apache-2.0
//
// IPv4 layer, transmit side: joins the layers above, finds the next hop, makes the header (RFC 791).
//
//   ICMP  s_*[0] ==>+-----------+
//   UDP   s_*[1] ==>| udp_ip_tx |====> m_request, length, destination, start, data (Ethernet)
//   ...             |           |====> lookup_ip / known, mac (udp_neighbours)
//                   +-----------+
//
// A packet with an unknown next hop is started without a frame: its data is discarded and counted, and the address is
// requested. So the layers do not wait for an absent station; a client that must not lose packets checks the path before
// (udp_stream). Packets may not be fragmented, so their identification may be any number (RFC 6864): it is 0. One adder
// computes the checksum, 16 bits per clock, during the search for the next hop.
`default_nettype none
module udp_ip_tx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input  logic                          clk,
    input  logic                          rst,
    input  logic [       31:0]            ip_address,
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
    output logic                          lookup,
    output logic [       31:0]            lookup_ip,
    output logic                          in_use,          // mac
    input  logic                          lookup_done,
    input  logic                          known,
    input  logic [       47:0]            mac,
    output logic                          drop_unresolved
);
  typedef enum logic [1:0] {
    IDLE,
    LOOK,
    READY,
    PASS
  } state_t;
  state_t state;

  logic [CLIENTS-1:0][39:0] meta;
  for (genvar i = 0; i < CLIENTS; i++) begin : g_meta
    assign meta[i] = {s_destination[i], s_protocol[i]};
  end
  logic offer, accept, start, client_start, is_found;
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

  logic [31:0] destination;
  logic [15:0] length;
  logic [ 7:0] protocol;
  localparam int SUM_DONE = 7;
  logic [SUM_DONE:0] summed;  // how far the checksum is, one bit
  logic [15:0] term, sum;
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
        16'd0,  // identification
        net_pkg::IP_DO_NOT_FRAGMENT,
        net_pkg::TTL,
        protocol,
        ~sum,
        ip_address,
        destination
      }),
      .client_start(client_start),
      .client_data(client_data),
      .data(m_data)
  );

  assign accept = state == IDLE && offer;
  assign start = m_start || drop_unresolved;
  assign drop_unresolved = state == LOOK && lookup_done && !known;
  assign lookup = state == LOOK;
  assign lookup_ip = destination;
  assign in_use = state != IDLE;
  assign is_found = state == LOOK && lookup_done && known;
  assign m_request = (state == READY || is_found) && summed[SUM_DONE];
  assign m_length = length[13:0];
  assign m_destination = mac;
  always_ff @(posedge clk) begin
    case (state)
      IDLE:
      if (offer) begin
        {destination, protocol} <= chosen;
        length <= 16'(chosen_length) + 16'(net_pkg::IP_BYTES);
        state <= LOOK;
      end
      LOOK:    if (lookup_done) state <= known && !m_start ? READY : PASS;
      READY:   if (m_start) state <= PASS;
      default: ;
    endcase
    if (client_start || rst) state <= IDLE;
  end

  // ---- checksum (RFC 1071) -------------------------------------------------------------------
  // What the next packet has anyway is summed before it comes.
  localparam logic [15:0] CONSTANT = net_pkg::IP_VERSION + net_pkg::IP_DO_NOT_FRAGMENT + {net_pkg::TTL, 8'd0};
  logic adds, anew;
  always_comb begin
    term = '0;
    if (summed[0]) term |= ip_address[31:16];
    if (summed[1]) term |= ip_address[15:0];
    if (summed[2]) term |= length;
    if (summed[3]) term |= {8'd0, protocol};
    if (summed[4]) term |= destination[31:16];
    if (summed[5]) term |= destination[15:0];
  end
  assign adds = !summed[SUM_DONE] && !(summed[2] && state == IDLE);
  assign anew = rst || client_start;
  ones_add checksum_sum (
      .clk (clk),
      .load(anew),
      .seed(CONSTANT),
      .add (adds),
      .term(term),
      .sum (sum)
  );
  always_ff @(posedge clk) begin
    if (adds) summed <= summed << 1;
    if (anew) summed <= (SUM_DONE + 1)'(1);
  end
endmodule
`default_nettype wire
