// SPDX-License-Identifier: Apache-2.0
//
// Reads the options of a SYN: maximum segment size and window scale (RFC 9293 3.1, RFC 7323 2.2).
//
//               +-------------+
//   s_bytes ===>|             |====> mss, scale, has_scale
//   s_length ==>| tcp_options |----> m_valid (one pulse)
//   s_valid --->|             |----> busy
//               +-------------+
//
// A byte a clock. The first byte on the wire is in the upper bits. Unknown options are skipped; at
// one whose length is not possible reading ends. Without the option: MSS 536 (RFC 9293 3.7.1), no
// scale.
`default_nettype none
module tcp_options (
    input  logic         clk,
    input  logic         rst,
    input  logic [319:0] s_bytes,
    input  logic [  5:0] s_length,
    input  logic         s_valid,
    output logic         busy,
    output logic [ 15:0] mss,
    output logic [  3:0] scale,
    output logic         has_scale,
    output logic         m_valid
);
  localparam logic [7:0] END = 8'd0;
  localparam logic [7:0] NOP = 8'd1;
  localparam logic [7:0] MSS = 8'd2;
  localparam logic [7:0] SCALE = 8'd3;

  logic [319:0] bytes;
  logic [  5:0] left;
  logic [7:0] kind, length, skip;
  assign kind   = bytes[319:312];
  assign length = bytes[311:304];

  always_ff @(posedge clk) begin
    m_valid <= 1'b0;
    if (!busy) begin
      if (s_valid) begin
        busy <= 1'b1;
        bytes <= s_bytes;
        left <= s_length;
        skip <= '0;
        mss <= 16'd536;
        scale <= '0;
        has_scale <= 1'b0;
      end
    end else begin
      bytes <= bytes << 8;
      left  <= left - 6'd1;
      if (skip != '0) skip <= skip - 8'd1;
      else if (kind != NOP) begin
        skip <= length - 8'd1;
        if (kind == MSS && length == 8'd4) mss <= bytes[303:288];
        if (kind == SCALE && length == 8'd3) begin
          // RFC 7323 2.3: more than 14 means 14.
          scale <= bytes[303:296] > 8'd14 ? 4'd14 : bytes[299:296];
          has_scale <= 1'b1;
        end
      end
      if (left <= 6'd1 || (skip == '0 && (kind == END || (kind != NOP && length < 8'd2)))) begin
        busy <= 1'b0;
        m_valid <= 1'b1;
      end
    end
    if (rst) begin
      busy <= 1'b0;
      m_valid <= 1'b0;
    end
  end
endmodule
`default_nettype wire
