// SPDX-License-Identifier: Apache-2.0
//
// The message former: puts a header before the payload of each window.
//
//               +-------------+
//   window_* ==>|             |====> m_axis_* (64 bit; tlast ends a message)
//   s_data ====>| fadc_former |
//   source_id =>|             |----> busy
//               +-------------+
//
// The message is little-endian: the first 32-bit word is the lower half. An odd payload is padded with a zero word, which
// counts only in total_length. busy: a message is being sent.
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
    output logic        busy,
    output logic [31:0] messages
);
  localparam int HEADER_WORDS = fadc_pkg::HEADER_BYTES / 8;
  localparam logic [2:0] HEADER_LAST = 3'(HEADER_WORDS - 1);

  typedef enum logic [1:0] {
    IDLE,
    HEADER,
    PAYLOAD
  } state_t;
  state_t state;
  logic [2:0] place;  // in the header
  logic [31:0] left;  // payload words
  logic [31:0] total;
  logic empty, last_pair, advance, take, ends;

  assign advance = !m_axis_tvalid || m_axis_tready;
  assign s_ready = state == PAYLOAD && advance;
  assign ends = advance && (state == HEADER ? place == HEADER_LAST && empty : state == PAYLOAD && s_valid && last_pair);
  assign window_ready = advance && state == HEADER && place == HEADER_LAST;
  assign take = window_valid && (state == IDLE || (state == PAYLOAD && ends));
  assign busy = state != IDLE || m_axis_tvalid;

  always_ff @(posedge clk) begin
    if (advance) begin
      m_axis_tvalid <= state == HEADER || (state == PAYLOAD && s_valid);
      m_axis_tlast  <= ends;
      case (place)
        3'd0: m_axis_tdata <= {total, source_id};
        3'd1: m_axis_tdata <= {32'd0, window_words[29:0], 2'b00};
        3'd2: m_axis_tdata <= {fadc_pkg::FORMAT_VERSION, fadc_pkg::MAGIC};
        3'd3: m_axis_tdata <= window_record;
        3'd4: m_axis_tdata <= window_sec;
        3'd5: m_axis_tdata <= {32'd0, window_nsec};
        default: m_axis_tdata <= s_data;
      endcase
      if (state == HEADER) place <= place + 1'b1;
      if (window_ready) state <= PAYLOAD;
      if (s_ready && s_valid) begin
        left <= left - 32'd2;
        last_pair <= left <= 32'd4;
      end
    end
    if (state == HEADER) begin
      empty <= left == '0;
      last_pair <= left <= 32'd2;
    end
    if (ends) begin
      state <= IDLE;
      messages <= messages + 1'b1;
    end
    if (take) begin
      state <= HEADER;
      place <= '0;
      left  <= window_words;
      total <= {29'((window_words + 32'd1 + 32'(2 * HEADER_WORDS)) >> 1), 3'd0};
    end
    if (rst) begin
      state <= IDLE;
      m_axis_tvalid <= 1'b0;
      messages <= '0;
    end
  end
endmodule
`default_nettype wire
