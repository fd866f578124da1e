// Spreads 64-bit AXI4-Stream words over an 8-bit stream, lowest lane first.
//
//                 +----------------+
//   s_* 64 bit ==>| axis_downsizer |==> m_* 8 bit (tdata, tlast, tuser)
//                 +----------------+
//
// The word is not stored: s_axis_tready rises with its last byte. tkeep must be contiguous from
// lane 0.
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
  logic [2:0] lane;
  logic last_lane;

  assign last_lane = lane == 3'd7 || !s_axis_tkeep[lane+3'd1];
  assign m_axis_tdata = s_axis_tdata[lane*8+:8];
  assign m_axis_tvalid = s_axis_tvalid;
  assign m_axis_tlast = s_axis_tlast && last_lane;
  assign m_axis_tuser = s_axis_tuser;
  assign s_axis_tready = m_axis_tready && last_lane;

  always_ff @(posedge clk) begin
    if (rst) lane <= 3'd0;
    else if (m_axis_tvalid && m_axis_tready) lane <= last_lane ? 3'd0 : lane + 3'd1;
  end

  logic unused;
  assign unused = s_axis_tkeep[0];
endmodule
