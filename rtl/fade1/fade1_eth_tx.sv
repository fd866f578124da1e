// SPDX-License-Identifier: Apache-2.0
//
// Ethernet sender: forms data frames and state frames (transmit clock, 64-bit words).
//
//                   +--------------+
//   next_* ========>|              |====> m_axis_* (frames without frame check sequence)
//   answer_* ======>| fade1_eth_tx |====> memory_read_*
//   delay =========>|              |
//                   +--------------+
//
// A frame has 3 header words and 128 data words. The header is read from the inputs while it is sent: next_lock keeps them
// stable from two clocks before the first word, next_take says that they were used. From then to sending_done the data of
// sending_slot is read. In the last packet, words from last_words on are filler: FADE v1 cannot transmit their number.
// While `hold` or `pausing` is high no frame starts, but for a state frame, which does not wait for `pausing`. Data frames
// carry `delay`, and announce what the board can do. A state frame has 6 words and 2 of filler; answer_take tells that they are out.
// The fifth is filler, too, but with CHECKSUM at the end of a transmission.
`default_nettype none
module fade1_eth_tx #(
    parameter int CHECKSUM = 0  // the buffer has a CRC of the words
) (
    input  logic                                            clk,
    input  logic                                            rst,
    input  logic              [                       47:0] mac_address,
    input  logic              [                       47:0] peer_address,
    input  logic              [                       29:0] delay,
    input  logic                                            pausing,
    input  logic                                            hold,
    output logic                                            idle,
    // packet to send
    input  logic                                            next_valid,
    input  logic              [                       15:0] next_set,
    input  logic              [   fade1_pkg::SLOT_BITS-1:0] next_packet,
    input  logic                                            next_last,
    output logic                                            next_lock,
    output logic                                            next_take,
    output logic                                            sending,
    output logic              [   fade1_pkg::SLOT_BITS-1:0] sending_slot,
    output logic                                            sending_done,
    input  logic              [   fade1_pkg::WORD_BITS-1:0] last_words,
    input  logic              [                       31:0] words_crc,
    // state to tell: stable while it is sent
    input  logic                                            answer,
    input  fade1_pkg::state_t                               answer_state,
    input  fade_pkg::resets_t                               answer_resets,
    input  logic              [                       29:0] answer_permit,
    output logic                                            answer_take,
    // packet memory
    output logic                                            memory_read_enable,
    output logic              [fade1_pkg::ADDRESS_BITS-1:0] memory_read_address,
    input  logic              [                       63:0] memory_read_data,
    // MAC
    output logic              [                       63:0] m_axis_tdata,
    output logic              [                        7:0] m_axis_tkeep,
    output logic                                            m_axis_tvalid,
    input  logic                                            m_axis_tready,
    output logic                                            m_axis_tlast
);
  localparam logic [63:0] FILLER_WORD = {8{fade1_pkg::FILLER}};
  // Index of the last word behind the header.
  localparam logic [fade1_pkg::WORD_BITS-1:0] DATA_END = '1;
  localparam logic [fade1_pkg::WORD_BITS-1:0] STATE_END = fade1_pkg::WORD_BITS'(fade1_pkg::STATE_FRAME_LEN / 8 - 4);

  typedef enum logic [2:0] {
    IDLE,
    LOCK,
    NUMBER,  // until the number of the packet is there
    HEADER,
    DATA
  } state_t;

  // What the word on offer to the MAC is.
  typedef enum logic [2:0] {
    ADDRESSES,
    SOURCE,
    FIELDS,
    RESETS,  // of a state frame
    CRC,
    PERMIT,
    PACKET,
    FILLING  // of the last packet or of a state frame, to its end
  } word_t;

  state_t state;
  word_t word;
  logic [fade1_pkg::WORD_BITS-1:0] index;  // of the data word after the one on offer
  logic last, advance, header_done, is_state;
  logic in_last, index_is_last;  // the word on offer is the frame's last one; the word after it is

  assign advance = m_axis_tvalid && m_axis_tready;
  assign header_done = word == (is_state ? PERMIT : FIELDS) && advance;
  assign next_lock = !is_state && (state == LOCK || state == NUMBER || state == HEADER);
  assign idle = state == IDLE;
  assign sending = state == DATA && !is_state;

  // Memory answers one clock later, so the address is that of the word after the one on offer.
  assign memory_read_enable = advance;
  assign memory_read_address = {sending_slot, index};

  // Header, first byte on the wire in the upper bits of each word.
  logic [15:0] packet_field, source_begin;
  logic [31:0] source_end;
  assign {source_begin, source_end} = mac_address;
  logic has_crc;
  assign has_crc = CHECKSUM != 0 && answer_state.state == fade1_pkg::STATE_ENDED;
  assign packet_field = {6'(next_packet), fade1_pkg::RETRY_FADELINK};
  always_comb begin
    case (word)
      ADDRESSES: m_axis_tdata = link_pkg::swap64({peer_address, source_begin});
      SOURCE:
      m_axis_tdata = link_pkg::swap64({source_end, fade1_pkg::ETHERTYPE,
                                       is_state ? fade1_pkg::TYPE_STATE : fade1_pkg::TYPE_DATA});
      FIELDS:
      m_axis_tdata = link_pkg::swap64(is_state ? answer_state : {next_set, packet_field, fade1_pkg::TAKES_BLOCK_ACKS, fade1_pkg::SAME_WORDS, delay}
          );
      RESETS: m_axis_tdata = link_pkg::swap64({fade1_pkg::STATE_RESETS, answer_resets});
      CRC:
      m_axis_tdata = has_crc ?
          link_pkg::swap64({fade1_pkg::CHECKSUM_MARK, 16'(last_words), words_crc}) : FILLER_WORD;
      PERMIT: m_axis_tdata = link_pkg::swap64({fade1_pkg::PERMIT_MARK, 18'd0, answer_permit});
      PACKET: m_axis_tdata = memory_read_data;
      default: m_axis_tdata = FILLER_WORD;
    endcase
  end
  assign m_axis_tlast = in_last;
  assign m_axis_tkeep = '1;

  always_ff @(posedge clk) begin
    next_take <= header_done && !is_state;
    answer_take <= header_done && is_state;
    sending_done <= in_last && advance;
    case (state)
      IDLE: begin
        is_state <= answer;
        if (!hold && (answer || (next_valid && !pausing))) state <= LOCK;
      end
      LOCK: begin
        last  <= next_last;
        state <= next_valid || is_state ? NUMBER : IDLE;
      end
      NUMBER: begin
        m_axis_tvalid <= 1'b1;
        state <= HEADER;
      end
      HEADER: if (header_done) state <= DATA;
      default:
      if (in_last && advance) begin
        state <= IDLE;
        m_axis_tvalid <= 1'b0;
      end
    endcase

    if (state == HEADER) sending_slot <= next_packet;
    if (advance) begin
      in_last <= index_is_last;
      case (word)
        ADDRESSES: word <= SOURCE;
        SOURCE: word <= FIELDS;
        FIELDS, PACKET: word <= is_state ? RESETS : last && index == last_words ? FILLING : PACKET;
        RESETS: word <= CRC;
        CRC: word <= PERMIT;
        PERMIT: word <= FILLING;
        default: ;
      endcase
      if (word != ADDRESSES && word != SOURCE) begin
        index <= index + 1'b1;
        index_is_last <= index == (is_state ? STATE_END : DATA_END) - 1'b1;
      end
    end
    if (state == LOCK) begin
      word <= ADDRESSES;
      index <= '0;
      index_is_last <= 1'b0;
      in_last <= 1'b0;
    end
    if (rst) begin
      state <= IDLE;
      {m_axis_tvalid, answer_take} <= '0;
    end
  end
endmodule
`default_nettype wire
