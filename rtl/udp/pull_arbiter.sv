// SPDX-License-Identifier: Apache-2.0
//
// Arbiter and multiplexer between a layer and the layers above it (docs/protocol/udp.md).
//
//   client 0  request, meta, length ==>+--------------+====> m_request, m_meta, m_length
//             start <------------------|              |<---- m_accept, m_start
//             data ===================>| pull_arbiter |====> m_data
//   client 1  ... ====================>|              |
//                                      +--------------+
//
// The lowest client that requested one clock earlier is offered; from client FAIR on clients take turns. Without a request
// the last one stays. The lower layer accepts it (m_accept) and, at the same time or later, starts it (m_start); m_meta and
// m_length belong to it until then, m_data from the next clock on. A client keeps its request, its meta data and its length
// stable from the request to its start.
`default_nettype none
module pull_arbiter #(
    parameter int WIDTH = 8,
    parameter int CLIENTS = 2,
    parameter int FAIR = CLIENTS - 1,
    parameter int META_BITS = 64
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [  CLIENTS-1:0]                s_request,
    input  logic [  CLIENTS-1:0][META_BITS-1:0] s_meta,
    input  logic [  CLIENTS-1:0][         13:0] s_length,
    output logic [  CLIENTS-1:0]                s_start,
    input  logic [  CLIENTS-1:0][    WIDTH-1:0] s_data,
    output logic                                m_request,
    output logic [META_BITS-1:0]                m_meta,
    output logic [         13:0]                m_length,
    input  logic                                m_accept,
    input  logic                                m_start,
    output logic [    WIDTH-1:0]                m_data
);
  localparam int BITS = CLIENTS > 1 ? $clog2(CLIENTS) : 1;
  localparam logic [(1<<BITS)-1:0] IS_FAIR = '1 << FAIR;
  localparam bit TURNS = CLIENTS - FAIR > 1;
  logic [BITS-1:0] pick, chosen, sending;  // chosen is on offer, then taken
  logic waiting;
  logic [CLIENTS-1:0] later;  // those of the fair ones that come behind the one that was taken last

  always_comb begin
    pick = '0;
    for (int i = CLIENTS - 1; i >= 0; i--) if (s_request[i]) pick = BITS'(i);
    for (int i = CLIENTS - 1; i >= FAIR; i--)
    if (TURNS && s_request[i] && later[i] && IS_FAIR[pick]) pick = BITS'(i);
    s_start = '0;
    s_start[chosen] = m_start;
  end
  assign m_request = s_request[chosen] && !waiting;
  assign m_meta = s_meta[chosen];
  assign m_length = s_length[chosen];
  assign m_data = s_data[sending];

  always_ff @(posedge clk) begin
    if (s_request != '0 && (m_start || !(waiting || m_accept))) chosen <= pick;
    for (int i = 0; i < CLIENTS; i++)
    if (TURNS && m_accept && IS_FAIR[chosen]) later[i] <= i > 32'(chosen);
    if (m_accept && !m_start) waiting <= 1'b1;
    if (m_start) begin
      waiting <= 1'b0;
      sending <= chosen;
    end
    if (rst) begin
      waiting <= 1'b0;
      chosen  <= BITS'(CLIENTS - 1);
      sending <= '0;
      later   <= '0;
    end
  end
endmodule
`default_nettype wire
