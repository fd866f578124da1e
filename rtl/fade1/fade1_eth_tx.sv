// Ethernet sender: forms data frames (transmit clock, 64-bit words).
//
//                   +--------------+
//   next_* ========>| fade1_eth_tx |====> m_axis_* (frames without frame check sequence)
//   delay, pause ==>|              |====> memory_read_*
//                   +--------------+
//
// A frame is 3 words of header and 128 of data. The header is taken from the inputs while it goes
// out: next_lock holds them still, next_take tells that they were used. Of the last packet, words
// from last_words on are filler: FADE v1 cannot tell how many are valid. While `hold` is high no
// frame starts. The frames tell `delay`; `pause` is kept after each.
module fade1_eth_tx (
    input logic clk,
    input logic rst,
    input logic [47:0] mac_address,
    input logic [47:0] peer_address,
    input logic [31:0] delay,
    input logic [31:0] pause,
    input logic hold,
    output logic idle,
    // packet to send
    input logic next_valid,
    input logic [15:0] next_set,
    input logic [fade1_pkg::SLOT_BITS-1:0] next_packet,
    input logic next_last,
    output logic next_lock,
    output logic next_take,
    input logic [fade1_pkg::WORD_BITS-1:0] last_words,
    // packet memory
    output logic memory_read_enable,
    output logic [fade1_pkg::ADDRESS_BITS-1:0] memory_read_address,
    input logic [63:0] memory_read_data,
    // MAC
    output logic [63:0] m_axis_tdata,
    output logic [7:0] m_axis_tkeep,
    output logic m_axis_tvalid,
    input logic m_axis_tready,
    output logic m_axis_tlast
);
  localparam int COUNT_BITS = fade1_pkg::WORD_BITS + 1;
  localparam logic [COUNT_BITS-1:0] HEADER_WORDS = COUNT_BITS'(3);
  localparam logic [COUNT_BITS-1:0] FINAL_WORD = COUNT_BITS'(3 + fade1_pkg::PACKET_WORDS - 1);
  localparam logic [63:0] FILLER_WORD = {8{fade1_pkg::FILLER}};

  logic sending, last, advance, start, in_header;
  logic [COUNT_BITS-1:0] word;  // on offer to the MAC
  logic [fade1_pkg::SLOT_BITS-1:0] slot;
  logic [31:0] wait_count;

  assign start = !sending && !hold && next_valid && wait_count == '0;
  assign in_header = sending && word < HEADER_WORDS;
  assign advance = m_axis_tvalid && m_axis_tready;
  assign next_lock = start || in_header;
  assign next_take = in_header && advance && word == HEADER_WORDS - 1'b1;
  assign idle = !sending;

  // Memory answers one clock later, so the address is that of the word after the one on offer.
  logic [fade1_pkg::WORD_BITS-1:0] data_index;
  assign data_index = fade1_pkg::WORD_BITS'(word - HEADER_WORDS);
  assign memory_read_enable = advance;
  assign memory_read_address = {in_header ? next_packet : slot, data_index + 1'b1};

  // Header, first byte on the wire in the upper bits of each word.
  logic [15:0] packet_field;
  logic [63:0] header_word;
  assign packet_field = {6'(next_packet), fade1_pkg::RETRY_FADELINK};
  always_comb begin
    case (word[1:0])
      2'd0: header_word = {peer_address, mac_address[47:32]};
      2'd1: header_word = {mac_address[31:0], fade1_pkg::ETHERTYPE, fade1_pkg::TYPE_DATA};
      default: header_word = {next_set, packet_field, delay};
    endcase
  end

  always_comb begin
    m_axis_tdata = memory_read_data;
    if (in_header) m_axis_tdata = link_pkg::swap64(header_word);
    else if (last && data_index >= last_words) m_axis_tdata = FILLER_WORD;
  end
  assign m_axis_tvalid = sending;
  assign m_axis_tlast  = word == FINAL_WORD;
  assign m_axis_tkeep  = '1;

  always_ff @(posedge clk) begin
    if (!sending) begin
      if (wait_count != '0) wait_count <= wait_count - 32'd1;
      word <= '0;
      last <= next_last;
      sending <= start;
    end else if (advance) begin
      word <= word + 1'b1;
      if (next_take) slot <= next_packet;
      if (m_axis_tlast) begin
        sending <= 1'b0;
        wait_count <= pause;
      end
    end
    if (rst) begin
      sending <= 1'b0;
      wait_count <= '0;
    end
  end
endmodule
