// SPDX-License-Identifier: Apache-2.0
//
// Converts 64-bit AXI4-Stream words to an 8-bit stream, lowest lane first.
//
//                 +----------------+
//   s_* 64 bit ==>| axis_downsizer |==> m_* 8 bit (tdata, tlast, tuser)
//                 +----------------+
//
// Bytes follow each other without a gap if words do. tkeep must be contiguous from lane 0.
`default_nettype none
module axis_downsizer (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output logic [ 7:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser
);
  logic [63:0] data;
  logic [7:0] keep;  // of the lanes that are left, this one in the lowest place
  logic [2:0] lane;
  logic is_last_word;

  assign m_axis_tdata  = data[lane*8+:8];
  assign m_axis_tvalid = keep[0];
  assign m_axis_tlast  = is_last_word && !keep[1];
  assign s_axis_tready = !keep[0] || (m_axis_tready && !keep[1]);

  always_ff @(posedge clk) begin
    if (m_axis_tready) begin
      keep <= keep >> 1;
      lane <= lane + 3'd1;
    end
    if (s_axis_tready) begin
      data <= s_axis_tdata;
      keep <= s_axis_tkeep & {8{s_axis_tvalid}};
      lane <= 3'd0;
      is_last_word <= s_axis_tlast;
      m_axis_tuser <= s_axis_tuser;
    end
    if (rst) keep <= '0;
  end
endmodule
`default_nettype wire
