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
  logic [63:0] data, next_data;
  logic [7:0] keep, next_keep;  // of the lanes that are left, this one in the lowest place
  logic [2:0] lane;
  logic is_last_word, next_is_last, next_user, next_valid, take;

  assign m_axis_tdata = data[lane*8+:8];
  assign m_axis_tvalid = keep[0];
  assign m_axis_tlast = is_last_word && !keep[1];
  // The word that comes next waits here, so that m_axis_tready does not reach what makes the words in the same clock.
  assign s_axis_tready = !next_valid;
  assign take = !keep[0] || (m_axis_tready && !keep[1]);

  always_ff @(posedge clk) begin
    if (m_axis_tready) begin
      keep <= keep >> 1;
      lane <= lane + 3'd1;
    end
    if (take) begin
      data <= next_data;
      keep <= next_keep & {8{next_valid}};
      lane <= 3'd0;
      is_last_word <= next_is_last;
      m_axis_tuser <= next_user;
      next_valid <= 1'b0;
    end
    if (s_axis_tready) begin
      next_data <= s_axis_tdata;
      next_keep <= s_axis_tkeep;
      next_is_last <= s_axis_tlast;
      next_user <= s_axis_tuser;
      next_valid <= s_axis_tvalid;
    end
    if (rst) begin
      keep <= '0;
      next_valid <= 1'b0;
    end
  end
endmodule
`default_nettype wire
