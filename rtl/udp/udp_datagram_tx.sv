// SPDX-License-Identifier: Apache-2.0
//
// UDP layer, transmit side: joins the ports, makes the header and, if requested, the checksum (RFC 768).
//
//   control  s_*[0] ==>+-----------------+
//   stream   s_*[1] ==>| udp_datagram_tx |====> m_request, m_length, m_destination, m_start, m_data (IP)
//   ...                +-----------------+
//
// From client FAIR on clients take turns; earlier ones have priority. s_sum is the sum of the 16-bit words of the client's
// data. The checksum comes before the data, so a client with a checksum (s_checksum) must know the sum five clocks after
// the request. One adder computes the checksum, 16 bits per clock, while the IP layer finds the route.
`default_nettype none
module udp_datagram_tx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2,
    parameter int FAIR    = CLIENTS - 1
) (
    input  logic                          clk,
    input  logic                          rst,
    input  logic [       31:0]            ip_address,
    input  logic [CLIENTS-1:0]            s_request,
    input  logic [CLIENTS-1:0][     13:0] s_length,
    input  logic [CLIENTS-1:0][     31:0] s_destination,
    input  logic [CLIENTS-1:0][     15:0] s_port,              // of the source
    input  logic [CLIENTS-1:0][     15:0] s_destination_port,
    input  logic [CLIENTS-1:0]            s_checksum,
    input  logic [CLIENTS-1:0][     15:0] s_sum,
    output logic [CLIENTS-1:0]            s_start,
    input  logic [CLIENTS-1:0][WIDTH-1:0] s_data,
    output logic                          m_request,
    output logic [       13:0]            m_length,
    output logic [       31:0]            m_destination,
    input  logic                          m_start,
    output logic [  WIDTH-1:0]            m_data
);
  typedef enum logic [1:0] {
    IDLE,
    READY,
    PASS
  } state_t;
  state_t state;

  localparam int META_BITS = 32 + 16 + 16 + 1 + 16;
  logic [CLIENTS-1:0][META_BITS-1:0] meta;
  for (genvar i = 0; i < CLIENTS; i++) begin : g_meta
    assign meta[i] = {s_destination[i], s_port[i], s_destination_port[i], s_checksum[i], s_sum[i]};
  end
  logic offer, accept, client_start;
  logic [META_BITS-1:0] chosen;
  logic [13:0] chosen_length;
  logic [WIDTH-1:0] client_data;
  pull_arbiter #(
      .WIDTH    (WIDTH),
      .CLIENTS  (CLIENTS),
      .FAIR     (FAIR),
      .META_BITS(META_BITS)
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

  logic [15:0] port, destination_port, length, checksum;
  localparam int SUM_DONE = 9;
  logic [SUM_DONE:0] summed;  // how far the checksum is, one bit
  logic [15:0] term, sum;
  logic with_checksum;
  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::UDP_BYTES)
  ) header_first (
      .clk         (clk),
      .rst         (rst),
      .start       (m_start),
      .header      ({port, destination_port, length, checksum}),
      .client_start(client_start),
      .client_data (client_data),
      .data        (m_data)
  );

  assign accept = state == IDLE && offer;
  // The checksum is there a clock after the earliest start of the IP layer.
  assign m_request = state == READY && !summed[0] && !summed[1];
  assign m_length = length[13:0];
  always_ff @(posedge clk) begin
    case (state)
      IDLE:
      if (offer) begin
        {m_destination, port, destination_port, with_checksum} <= chosen[META_BITS-1:16];
        length <= 16'(chosen_length) + 16'(net_pkg::UDP_BYTES);
        state <= READY;
      end
      READY:   if (m_start) state <= PASS;
      default: ;
    endcase
    if (client_start) state <= IDLE;
    if (rst) state <= IDLE;
  end

  // ---- checksum (RFC 1071) -------------------------------------------------------------------
  // What the next datagram has anyway is summed before it comes. The length counts twice: for
  // the pseudo header, too.
  logic adds, anew;
  always_comb begin
    term = '0;
    if (summed[0]) term |= ip_address[31:16];
    if (summed[1]) term |= ip_address[15:0];
    if (summed[2]) term |= {length[14:0], length[15]};
    if (summed[3]) term |= port;
    if (summed[4]) term |= destination_port;
    if (summed[5]) term |= m_destination[31:16];
    if (summed[6]) term |= m_destination[15:0];
    if (summed[7]) term |= chosen[15:0];
  end
  assign checksum = !with_checksum ? '0 : sum == '1 ? '1 : ~sum;
  assign adds = !summed[SUM_DONE] && !(summed[2] && state == IDLE);
  assign anew = rst || client_start;
  ones_add checksum_sum (
      .clk (clk),
      .load(anew),
      .seed(16'(net_pkg::PROTOCOL_UDP)),
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
