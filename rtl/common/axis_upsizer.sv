// SPDX-License-Identifier: Apache-2.0
//
// Converts an 8-bit AXI4-Stream to 64-bit words, first byte in the lowest lane.
//
//                +--------------+
//   s_* 8 bit ==>| axis_upsizer |==> m_* 64 bit (tdata, tkeep, tlast, tuser)
//                +--------------+
//
// No back-pressure: it is for the receive side of a MAC, which cannot wait.
`default_nettype none
module axis_upsizer (
    input  logic        clk,
    input  logic        rst,
    input  logic [ 7:0] s_axis_tdata,
    input  logic        s_axis_tvalid,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser
);
  logic [2:0] lane;

  always_ff @(posedge clk) begin
    m_axis_tvalid <= 1'b0;
    if (s_axis_tvalid) begin
      for (int i = 0; i < 8; i++) if (lane == 3'(i)) m_axis_tdata[i*8+:8] <= s_axis_tdata;
      m_axis_tkeep <= lane == 3'd0 ? 8'd1 : {m_axis_tkeep[6:0], 1'b1};
      m_axis_tlast <= s_axis_tlast;
      m_axis_tuser <= s_axis_tuser;
      m_axis_tvalid <= s_axis_tlast || lane == 3'd7;
      lane <= s_axis_tlast ? 3'd0 : lane + 3'd1;
    end
    if (rst) begin
      lane <= 3'd0;
      m_axis_tvalid <= 1'b0;
    end
  end
endmodule
`default_nettype wire
