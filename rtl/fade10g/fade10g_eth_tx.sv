// SPDX-License-Identifier: Apache-2.0
//
// Ethernet sender: forms data and command response frames (transmit clock, 64-bit words).
//
//                   +----------------+
//   next_* ========>|                |====> m_axis_* (frames without frame check sequence)
//   response_* ====>| fade10g_eth_tx |
//   identify_* ====>|                |====> memory_read_*
//                   +----------------+
//
// A data frame has 5 header words and 1024 data words, a response frame 60 bytes. The header is read from the inputs while
// it is sent: next_lock keeps them stable from the clock before the first word, next_take and response_taken say that they
// were used, response_lock that they must not change. From next_take to sending_done the data of sending_slot is read. A
// response is sent in the next data frame, or in its own frame when no data frame may start. While `hold` is high no frame
// starts, while `pausing` is high no data frame. The frames carry `delay`. identify_word: the address of IDENTIFY was used,
// `identify` is needed in two clocks. The last word of the last packet is last_words, with_checksum words_crc above it.
`default_nettype none
module fade10g_eth_tx #(
    parameter int SLOT_BITS = 5
) (
    input  logic                                        clk,
    input  logic                                        rst,
    input  logic [                                47:0] mac_address,
    input  logic [                                47:0] peer_address,
    input  logic [                                31:0] delay,
    input  logic                                        pausing,
    input  logic                                        hold,
    output logic                                        idle,
    // packet to send
    input  logic                                        next_valid,
    input  logic [                                31:0] next_packet,
    input  logic [                       SLOT_BITS-1:0] next_slot,
    input  logic [                                15:0] next_sequence,
    input  logic                                        next_last,
    output logic                                        next_lock,
    output logic                                        next_take,
    output logic                                        sending,
    output logic [                       SLOT_BITS-1:0] sending_slot,
    output logic                                        sending_done,
    input  logic [          fade10g_pkg::WORD_BITS-1:0] last_words,
    input  logic                                        with_checksum,
    input  logic [                                31:0] words_crc,
    // command response, and answer to IDENTIFY: fade10g_pkg::answer_t
    input  logic                                        response_valid,
    input  logic [                                95:0] response,
    output logic                                        response_lock,
    output logic                                        response_taken,
    input  logic                                        identify_valid,
    output logic                                        identify_word,
    input  logic [                                47:0] identify_address,
    input  logic [                                95:0] identify,
    output logic                                        identify_taken,
    // packet memory
    output logic                                        memory_read_enable,
    output logic [SLOT_BITS+fade10g_pkg::WORD_BITS-1:0] memory_read_address,
    input  logic [                                63:0] memory_read_data,
    // MAC
    output logic [                                63:0] m_axis_tdata,
    output logic [                                 7:0] m_axis_tkeep,
    output logic                                        m_axis_tvalid,
    input  logic                                        m_axis_tready,
    output logic                                        m_axis_tlast
);
  localparam logic [63:0] FILLER_WORD = {8{fade10g_pkg::FILLER}};
  localparam logic [2:0] HEADER_LAST = 3'd4;
  localparam logic [2:0] SHORT_LAST = 3'd7;

  // Bit 1: nothing may change.
  typedef enum logic [1:0] {
    IDLE   = 2'b00,
    BODY   = 2'b01,  // data, or the rest of a short frame
    LOCK   = 2'b10,
    HEADER = 2'b11
  } state_t;
  typedef enum logic [1:0] {
    PACKET,
    RESPONSE,
    IDENTIFY
  } kind_t;

  (* fsm_encoding = "none" *) state_t state;
  kind_t kind;
  logic [2:0] word;  // of the header or a short frame, on offer to the MAC
  logic [fade10g_pkg::WORD_BITS-1:0] index;  // of the data word after the one on offer
  logic last, with_response, advance, header_done;
  // Registered, for the word on offer: the header's last one, data, the frame's last one, filler of the last packet.
  logic in_last_header, in_data, in_last, in_filler;
  logic index_is_last;

  assign advance = m_axis_tvalid && m_axis_tready;
  assign header_done = in_last_header && advance;
  assign next_lock = state[1];
  assign response_lock = next_lock;
  assign idle = state == IDLE;
  assign sending = state == BODY && kind == PACKET;
  assign identify_word = state == HEADER && word != 3'd0;

  // Memory answers one clock later, so the address is that of the word after the one on offer.
  assign memory_read_enable = advance;
  assign memory_read_address = {sending_slot, index};

  // Header, first byte on the wire in the upper bits of each word.
  logic [15:0] source_begin;
  logic [31:0] source_end;
  fade10g_pkg::answer_t answer;
  assign {source_begin, source_end} = mac_address;
  logic [63:0] header;
  always_comb begin
    answer = kind == IDENTIFY ? identify : response;
    if (kind == PACKET && !with_response) answer = '0;
    header = FILLER_WORD;
    case (word)
      3'd0: header = {kind == IDENTIFY ? identify_address : peer_address, source_begin};
      3'd1: header = {source_end, fade10g_pkg::ETHERTYPE, fade10g_pkg::VERSION};
      3'd2:
      if (kind == PACKET)
        header = {
          last ? fade10g_pkg::TYPE_LAST : fade10g_pkg::TYPE_DATA, next_sequence, next_packet
        };
      else header = {fade10g_pkg::TYPE_RESPONSE, {2{fade10g_pkg::FILLER}}, answer.code, answer.csn};
      3'd3: header = kind == PACKET ? {delay, answer.code, answer.csn} : answer.value;
      3'd4: if (kind == PACKET) header = answer.value;
      default: ;
    endcase
  end

  logic [47:0] checksum;
  assign checksum = with_checksum ? {words_crc, fade10g_pkg::CHECKSUM_MARK} : '0;
  always_comb begin
    m_axis_tdata = memory_read_data;
    if (!in_data) m_axis_tdata = link_pkg::swap64(header);
    else if (last && in_last) m_axis_tdata = {checksum, 16'(last_words)};
    else if (in_filler) m_axis_tdata = FILLER_WORD;
  end

  assign m_axis_tlast = in_last;
  assign m_axis_tkeep = in_last && !in_data ? 8'h0F : 8'hFF;

  always_ff @(posedge clk) begin
    next_take <= header_done && kind == PACKET;
    response_taken <= header_done && (kind == RESPONSE || (kind == PACKET && with_response));
    identify_taken <= header_done && kind == IDENTIFY;
    sending_done <= in_last && advance;

    case (state)
      IDLE:
      if (!hold && (identify_valid || response_valid || (next_valid && !pausing))) state <= LOCK;
      LOCK: begin
        sending_slot <= next_slot;
        last <= next_last;
        with_response <= response_valid;
        state <= HEADER;
        m_axis_tvalid <= 1'b1;
        if (identify_valid) kind <= IDENTIFY;
        else if (next_valid && !pausing) kind <= PACKET;
        else if (response_valid) kind <= RESPONSE;
        else begin
          state <= IDLE;
          m_axis_tvalid <= 1'b0;
        end
      end
      HEADER: if (header_done) state <= BODY;
      default:
      if (in_last && advance) begin
        state <= IDLE;
        m_axis_tvalid <= 1'b0;
      end
    endcase

    if (advance) begin
      word <= word + 1'b1;
      in_last_header <= word == HEADER_LAST - 1'b1 && !in_data;
      in_last <= kind == PACKET ? index_is_last : word == SHORT_LAST - 1'b1;
      if (in_last_header || in_data) begin
        in_data <= kind == PACKET;
        in_filler <= in_filler || (last && index == last_words);
        index <= index + 1'b1;
        index_is_last <= index == '1 - 1'b1;
      end
    end
    if (state == LOCK) begin
      word <= '0;
      index <= '0;
      index_is_last <= 1'b0;
      in_last_header <= 1'b0;
      in_data <= 1'b0;
      in_last <= 1'b0;
      in_filler <= 1'b0;
    end
    if (rst) begin
      state <= IDLE;
      m_axis_tvalid <= 1'b0;
    end
  end
endmodule
`default_nettype wire
