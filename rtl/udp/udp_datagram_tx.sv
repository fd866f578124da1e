// SPDX-License-Identifier: Apache-2.0
//
// UDP layer, transmit side: joins the ports, makes the header and, where asked for, the checksum (RFC 768).
//
//   control  s_*[0] ==>+-----------------+
//   stream   s_*[1] ==>| udp_datagram_tx |====> m_request, m_length, m_destination, m_start, m_data (IP)
//   ...                +-----------------+
//
// s_sum is the sum of the 16-bit words of the client's data: the checksum stands before the data, so
// who wants one (s_checksum) knows it before.
`default_nettype none
module udp_datagram_tx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
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
  typedef enum logic [2:0] {
    IDLE,
    ADD,
    SUM,
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

  logic [15:0] port, destination_port, length, data_sum, checksum, folded;
  logic with_checksum;
  logic [31:0] sum;
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
  assign m_request = state == READY;
  assign m_length = length[13:0];
  assign folded = ~net_pkg::fold(sum);

  always_ff @(posedge clk) begin
    case (state)
      IDLE:
      if (offer) begin
        {m_destination, port, destination_port, with_checksum, data_sum} <= chosen;
        length <= 16'(chosen_length) + 16'(net_pkg::UDP_BYTES);
        state <= ADD;
      end
      ADD: begin
        // The pseudo header holds the length, too.
        sum <= 32'(ip_address[31:16]) + 32'(ip_address[15:0]) + 32'(m_destination[31:16]) + 32'(m_destination[15:0])
            + 32'(net_pkg::PROTOCOL_UDP) + 32'(length) + 32'(length) + 32'(port) + 32'(destination_port) + 32'(data_sum);
        state <= SUM;
      end
      SUM: begin
        checksum <= !with_checksum ? '0 : folded == '0 ? '1 : folded;
        state <= READY;
      end
      READY:   if (m_start) state <= client_start ? IDLE : PASS;
      default: if (client_start) state <= IDLE;
    endcase
    if (rst) state <= IDLE;
  end
endmodule
`default_nettype wire
