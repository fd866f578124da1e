// SPDX-License-Identifier: Apache-2.0
//
// Datagrams to the ports of the streams, for the user.
//
//            +-------------+
//   s_* ====>| udp_receive |====> m_axis, m_stream, m_ip, m_port
//   (UDP)    |             |
//            +-------------+
//
// A datagram is a frame of AXI4-Stream without tready: its words, the first byte lowest. The last word waits for the
// verdict: tuser with tlast marks a bad datagram. m_stream, m_ip and m_port (of the sender) are valid with tlast. A
// datagram without data is one word with tkeep 0.
`default_nettype none
module udp_receive #(
    parameter int WIDTH   = 8,
    parameter int STREAMS = 1
) (
    input  logic                           clk,
    input  logic                           rst,
    input  logic             [  WIDTH-1:0] s_data,
    input  logic             [        3:0] s_count,
    input  logic                           s_valid,
    input  logic                           s_end,
    input  logic                           s_good,
    input  logic             [STREAMS-1:0] s_claims,       // by the streams
    input  logic             [       31:0] s_source,
    input  logic             [       15:0] s_source_port,
    output link_pkg::frame_t               m_axis,
    output logic             [        2:0] m_stream,
    output logic             [       31:0] m_ip,
    output logic             [       15:0] m_port
);
  logic [WIDTH-1:0] held;
  logic [3:0] held_count;
  logic holds;
  always_ff @(posedge clk) begin
    m_axis <= '0;
    m_axis.tdata[WIDTH-1:0] <= held;
    for (int i = 0; i < WIDTH / 8; i++) m_axis.tkeep[i] <= held_count > 4'(i);
    if (s_valid && s_claims != '0) begin
      {held, held_count, holds} <= {s_data, s_count, 1'b1};
      m_axis.tvalid <= holds;
    end
    if (s_end) begin
      m_axis.tvalid  <= holds || (s_good && s_claims != '0);
      m_axis.tlast   <= 1'b1;
      m_axis.tuser   <= !s_good;
      {m_ip, m_port} <= {s_source, s_source_port};
      for (int i = 0; i < STREAMS; i++) if (s_claims[i]) m_stream <= 3'(i);
    end
    if (rst || s_end) {held_count, holds} <= '0;
    if (rst) m_axis.tvalid <= 1'b0;
  end
endmodule
`default_nettype wire
