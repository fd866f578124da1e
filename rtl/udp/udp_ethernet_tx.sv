// SPDX-License-Identifier: Apache-2.0
//
// Ethernet layer, transmit side: joins the layers above, sends the header before their data.
//
//   ARP  s_*[0] ==>+-----------------+
//   IP   s_*[1] ==>| udp_ethernet_tx |====> m_axis_* (to the MAC)
//   ...            |                 |<---- m_axis_start
//                  +-----------------+
//
// While there is a request, m_axis_start comes from the MAC one clock before it reads the first word: the preamble hides
// the latency of the layers. Then the MAC reads a word in each clock, so tready is not needed.
`default_nettype none
module udp_ethernet_tx #(
    parameter int WIDTH   = 8,
    parameter int CLIENTS = 2
) (
    input  logic                          clk,
    input  logic                          rst,
    input  logic [       47:0]            mac_address,
    input  logic [CLIENTS-1:0]            s_request,
    input  logic [CLIENTS-1:0][     13:0] s_length,
    input  logic [CLIENTS-1:0][     47:0] s_destination,
    input  logic [CLIENTS-1:0][     15:0] s_ethertype,
    output logic [CLIENTS-1:0]            s_start,
    input  logic [CLIENTS-1:0][WIDTH-1:0] s_data,
    output logic [  WIDTH-1:0]            m_axis_tdata,
    output logic [WIDTH/8-1:0]            m_axis_tkeep,
    output logic                          m_axis_tvalid,
    output logic                          m_axis_tlast,
    input  logic                          m_axis_start
);
  localparam int BYTES = WIDTH / 8;

  logic [CLIENTS-1:0][63:0] meta;
  for (genvar i = 0; i < CLIENTS; i++) begin : g_meta
    assign meta[i] = {s_destination[i], s_ethertype[i]};
  end

  logic request, busy, client_start;
  logic [63:0] chosen;
  logic [13:0] length;
  logic [WIDTH-1:0] client_data;

  pull_arbiter #(
      .WIDTH    (WIDTH),
      .CLIENTS  (CLIENTS),
      .META_BITS(64)
  ) arbiter (
      .clk      (clk),
      .rst      (rst),
      .s_request(s_request),
      .s_meta   (meta),
      .s_length (s_length),
      .s_start  (s_start),
      .s_data   (s_data),
      .m_request(request),
      .m_meta   (chosen),
      .m_length (length),
      .m_accept (m_axis_start),
      .m_start  (client_start),
      .m_data   (client_data)
  );

  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(net_pkg::ETHERNET_BYTES)
  ) header_first (
      .clk         (clk),
      .rst         (rst),
      .start       (m_axis_start),
      .header      ({chosen[63:16], mac_address, chosen[15:0]}),
      .client_start(client_start),
      .client_data (client_data),
      .data        (m_axis_tdata)
  );

  // Words of the frame behind the one that is at the MAC.
  localparam int LANE_BITS = $clog2(BYTES);
  logic [14-LANE_BITS:0] left;
  logic [13:0] total;
  logic [BYTES-1:0] last_keep;
  assign total = length + 14'(net_pkg::ETHERNET_BYTES - 1);  // less one
  assign m_axis_tvalid = busy || request;
  always_ff @(posedge clk) begin
    m_axis_tlast <= left == (15 - LANE_BITS)'(1);
    m_axis_tkeep <= left == (15 - LANE_BITS)'(1) ? last_keep : '1;
    if (left != '0) left <= left - 1'b1;
    else busy <= 1'b0;
    if (m_axis_start) begin
      busy <= 1'b1;
      left <= (15 - LANE_BITS)'(total >> LANE_BITS);
      for (int i = 0; i < BYTES; i++) last_keep[i] <= (total & 14'(BYTES - 1)) >= 14'(i);
    end
    if (rst) {busy, left, m_axis_tlast} <= '0;
  end
endmodule
`default_nettype wire
