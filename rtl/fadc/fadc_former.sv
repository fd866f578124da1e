// SPDX-License-Identifier: Apache-2.0
//
// The message former: puts a header before the payload of each window.
//
//               +-------------+
//   window_* ==>|             |====> m_axis_* (64 bit; tlast ends a message)
//   s_data ====>| fadc_former |
//   source_id =>|             |
//               +-------------+
//
// The message is little-endian: the first 32-bit word is the lower half. An odd payload is filled
// up with a zero word, which counts in total_length only.
`default_nettype none
module fadc_former (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] source_id,
    input  logic        window_valid,
    output logic        window_ready,
    input  logic [31:0] window_words,
    input  logic [63:0] window_record,
    input  logic [63:0] window_sec,
    input  logic [31:0] window_nsec,
    input  logic [63:0] s_data,
    input  logic        s_valid,
    output logic        s_ready,
    output logic [63:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic [31:0] messages
);
  localparam int HEADER_WORDS = fadc_pkg::HEADER_BYTES / 8;

  logic [2:0] place;  // in the header; HEADER_WORDS: in the payload
  logic in_payload, ends;
  logic [30:0] pairs, sent;
  logic [31:0] payload_length, total_length;

  assign pairs = window_words[31:1] + 31'(window_words[0]);
  assign payload_length = {window_words[29:0], 2'b00};
  assign total_length = {pairs[28:0], 3'b000} + 32'(fadc_pkg::HEADER_BYTES);
  assign in_payload = place == 3'(HEADER_WORDS);
  assign ends = in_payload ? sent + 1'b1 == pairs : place == 3'(HEADER_WORDS - 1) && pairs == '0;
  assign m_axis_tvalid = in_payload ? s_valid : window_valid;
  assign m_axis_tlast = ends;
  assign s_ready = in_payload && m_axis_tready;
  assign window_ready = m_axis_tvalid && m_axis_tready && ends;

  always_comb begin
    case (place)
      3'd0: m_axis_tdata = {total_length, source_id};
      3'd1: m_axis_tdata = {32'd0, payload_length};
      3'd2: m_axis_tdata = {fadc_pkg::FORMAT_VERSION, fadc_pkg::MAGIC};
      3'd3: m_axis_tdata = window_record;
      3'd4: m_axis_tdata = window_sec;
      3'd5: m_axis_tdata = {32'd0, window_nsec};
      default: m_axis_tdata = s_data;
    endcase
  end

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) begin
      if (ends) begin
        place <= '0;
        sent <= '0;
        messages <= messages + 1'b1;
      end else if (in_payload) sent <= sent + 1'b1;
      else place <= place + 1'b1;
    end
    if (rst) begin
      place <= '0;
      sent <= '0;
      messages <= '0;
    end
  end
endmodule
`default_nettype wire
