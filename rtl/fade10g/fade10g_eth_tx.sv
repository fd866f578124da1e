// Ethernet sender: forms data and command response frames (transmit clock, 64-bit words).
//
//                   +----------------+
//   next_* ========>|                |====> m_axis_* (frames without frame check sequence)
//   response_* ====>| fade10g_eth_tx |
//   identify_* ====>|                |====> memory_read_*
//                   +----------------+
//
// A data frame is 5 words of header and 1024 of data; a response frame 60 bytes. The header is taken
// from the inputs while it goes out: next_lock holds them still, next_take and response_taken tell
// that they were used, response_lock that they must not change. A response rides in the data frame
// that starts next, or goes alone when no data frame may start now. While `hold` is high no frame
// starts. The frames tell `delay`; `pause` is kept after each data frame.
module fade10g_eth_tx #(
    parameter int SLOT_BITS = 5
) (
    input  logic                                        clk,
    input  logic                                        rst,
    input  logic [                                47:0] mac_address,
    input  logic [                                47:0] peer_address,
    input  logic [                                31:0] delay,
    input  logic [                                31:0] pause,
    input  logic                                        hold,
    output logic                                        idle,
    // packet to send
    input  logic                                        next_valid,
    input  logic [                                31:0] next_packet,
    input  logic [                                15:0] next_sequence,
    input  logic                                        next_last,
    output logic                                        next_lock,
    output logic                                        next_take,
    input  logic [          fade10g_pkg::WORD_BITS-1:0] last_words,
    // command response, and answer to IDENTIFY: code 16, CSN 16, value 64
    input  logic                                        response_valid,
    input  logic [                                95:0] response,
    output logic                                        response_lock,
    output logic                                        response_taken,
    input  logic                                        identify_valid,
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
  localparam logic [10:0] HEADER_WORDS = 11'd5;
  localparam logic [10:0] DATA_LAST_WORD = 11'(5 + fade10g_pkg::PACKET_WORDS - 1);
  localparam logic [10:0] SHORT_LAST_WORD = 11'd7;
  localparam logic [63:0] FILLER_WORD = {8{fade10g_pkg::FILLER}};

  typedef enum logic [1:0] {
    IDLE,
    DATA,
    RESPONSE,
    IDENTIFY
  } kind_t;

  kind_t kind;
  logic [10:0] word;  // on offer to the MAC
  logic [SLOT_BITS-1:0] slot;
  logic last, with_response, advance, start_data, in_header;
  logic [31:0] wait_count;

  assign start_data = kind == IDLE && !hold && next_valid && wait_count == '0 && !identify_valid;
  assign in_header = kind != IDLE && word < HEADER_WORDS;
  assign advance = m_axis_tvalid && m_axis_tready;
  assign next_lock = start_data || (kind == DATA && in_header);
  assign response_lock = in_header;
  assign next_take = kind == DATA && advance && word == HEADER_WORDS - 11'd1;
  assign response_taken = advance && word == HEADER_WORDS - 11'd1
      && (kind == RESPONSE || (kind == DATA && with_response));
  assign identify_taken = kind == IDENTIFY && advance && word == HEADER_WORDS - 11'd1;
  assign idle = kind == IDLE;

  // Memory answers one clock later, so the address is that of the word after the one on offer.
  logic [fade10g_pkg::WORD_BITS-1:0] data_index;
  assign data_index = fade10g_pkg::WORD_BITS'(word - HEADER_WORDS);
  assign memory_read_enable = advance;
  assign memory_read_address = {
    word < HEADER_WORDS ? next_packet[SLOT_BITS-1:0] : slot, data_index + 1'b1
  };

  // Header, first byte on the wire in the upper bits of each word.
  logic [95:0] answer;
  logic [47:0] destination;
  logic [63:0] header_word;
  assign answer = kind == IDENTIFY ? identify : kind == RESPONSE || with_response ? response : '0;
  assign destination = kind == IDENTIFY ? identify_address : peer_address;

  always_comb begin
    case (word[2:0])
      3'd0: header_word = {destination, mac_address[47:32]};
      3'd1: header_word = {mac_address[31:0], fade10g_pkg::ETHERTYPE, fade10g_pkg::VERSION};
      3'd2:
      if (kind == DATA)
        header_word = {
          last ? fade10g_pkg::TYPE_LAST : fade10g_pkg::TYPE_DATA, next_sequence, next_packet
        };
      else header_word = {fade10g_pkg::TYPE_RESPONSE, {2{fade10g_pkg::FILLER}}, answer[95:64]};
      3'd3: header_word = kind == DATA ? {delay, answer[95:64]} : answer[63:0];
      3'd4: header_word = kind == DATA ? answer[63:0] : FILLER_WORD;
      default: header_word = FILLER_WORD;
    endcase
  end

  always_comb begin
    m_axis_tdata = memory_read_data;
    if (kind != DATA || in_header) m_axis_tdata = link_pkg::swap64(header_word);
    else if (last && word == DATA_LAST_WORD) m_axis_tdata = 64'(last_words);
    else if (last && data_index >= last_words) m_axis_tdata = FILLER_WORD;
  end

  assign m_axis_tvalid = kind != IDLE;
  assign m_axis_tlast  = word == (kind == DATA ? DATA_LAST_WORD : SHORT_LAST_WORD);
  assign m_axis_tkeep  = kind != DATA && m_axis_tlast ? 8'h0F : 8'hFF;

  always_ff @(posedge clk) begin
    if (wait_count != '0 && kind == IDLE) wait_count <= wait_count - 32'd1;
    if (kind == IDLE) begin
      word <= '0;
      last <= next_last;
      with_response <= response_valid;
      if (hold) kind <= IDLE;
      else if (identify_valid) kind <= IDENTIFY;
      else if (start_data) kind <= DATA;
      else if (response_valid) kind <= RESPONSE;
    end else if (advance) begin
      word <= word + 11'd1;
      if (next_take) slot <= next_packet[SLOT_BITS-1:0];
      if (m_axis_tlast) kind <= IDLE;
      if (m_axis_tlast && kind == DATA) wait_count <= pause;
    end
    if (rst) begin
      kind <= IDLE;
      wait_count <= '0;
    end
  end
endmodule
