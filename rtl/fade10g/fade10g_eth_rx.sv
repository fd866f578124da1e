// SPDX-License-Identifier: Apache-2.0
//
// Ethernet receiver: checks a frame from the computer and passes its command or ACK on
// (receive clock, 64-bit words).
//
//                 +----------------+
//   s_axis_* ====>| fade10g_eth_rx |====> record_* (word 0: source; word 1: code 16, sequence 16, argument 32;
//                 |                |                word 3: bits, if record_block)
//                 |                |----> drop_* (one pulse a dropped frame, by first reason)
//                 +----------------+
//
// The words of a record are written while the frame comes, and committed at the end of a good frame. Frames that the MAC
// marked bad were counted there. The source is stored with its lower 32 bits first, then its upper 16, as in the words of
// the frame. Broadcast is accepted only for IDENTIFY.
`default_nettype none
module fade10g_eth_rx (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] mac_address,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output logic        record_write,
    output logic [ 1:0] record_word,
    output logic [63:0] record,
    output logic        record_block,
    output logic        record_commit,
    input  logic        record_ready,
    output logic        drop_destination,
    output logic        drop_ethertype,
    output logic        drop_version,
    output logic        drop_code,
    output logic        drop_short,
    output logic        drop_full
);
  // Input words with the first byte on the wire in the upper bits.
  logic [63:0] word;
  logic [15:0] code;
  fade_pkg::addresses_t addresses;
  fade_pkg::source_t source;
  fade_pkg::record_t first;
  fade10g_pkg::fields_t fields;
  assign word = link_pkg::swap64(s_axis_tdata);
  assign addresses = word;
  assign source = word;
  assign fields = word;
  assign code = fields.code;

  logic [ 2:0] index;  // of the word in the frame: 4 in a block ACK alone, then 5
  logic [15:0] source_begin;
  logic for_me, broadcast, ethertype_good, version_good, delay_missing, is_identify, known_code;
  // The fields end with byte 24 of a command; the delay of an ACK ends with byte 28, the bits of a block ACK with byte 40.
  logic fields_here, is_block, ended;

  assign record_write = s_axis_tvalid && index != 3'd0 && index != 3'd5;
  assign first = {source.source_end, source_begin, source.kind};
  assign record_word = {index[2] || &index[1:0], index != 3'd1};
  assign record = index == 3'd1 ? first : word;
  // The word of the bits is written twice: until the bits have come there are none.
  assign record_block = index[2] && s_axis_tkeep[7];
  assign is_block = word[31:16] == fade10g_pkg::BLOCK_MARK && s_axis_tkeep[5];

  always_ff @(posedge clk) begin
    ended <= 1'b0;
    if (s_axis_tvalid) begin
      index <= s_axis_tlast ? 3'd0 : index[2] || (index == 3'd3 && !is_block) ? 3'd5 : index + 3'd1;
      case (index)
        3'd0: begin
          for_me <= addresses.destination == mac_address;
          broadcast <= &addresses.destination;
          source_begin <= addresses.source_begin;
          ethertype_good <= 1'b0;
          version_good <= 1'b0;
          fields_here <= 1'b0;
        end
        3'd1: begin
          ethertype_good <= source.ethertype == fade10g_pkg::ETHERTYPE && s_axis_tkeep[5];
          version_good   <= source.kind == fade10g_pkg::VERSION && s_axis_tkeep[7];
        end
        3'd2: begin
          delay_missing <= code == fade10g_pkg::ACK || code == fade10g_pkg::NACK;
          is_identify <= code == fade10g_pkg::CMD_IDENTIFY;
          known_code <= (code >= fade10g_pkg::CMD_START && code <= fade10g_pkg::CMD_RESET_BY)
              || code >= fade10g_pkg::CMD_USER_FIRST;
          fields_here <= s_axis_tkeep[7];
        end
        3'd3: if (s_axis_tkeep[3]) delay_missing <= 1'b0;
        default: ;
      endcase
      ended <= s_axis_tlast && !s_axis_tuser;
    end
    if (rst) begin
      index <= 3'd0;
      ended <= 1'b0;
    end
  end

  // One clock after the last word. A new frame needs more than one word, so nothing is overwritten.
  logic [5:0] fault;
  always_comb begin
    fault = 6'b000000;
    if (!for_me && !(broadcast && (!fields_here || is_identify))) fault = 6'b000001;
    else if (!ethertype_good) fault = 6'b000010;
    else if (!version_good) fault = 6'b000100;
    else if (!fields_here) fault = 6'b010000;
    else if (!known_code) fault = 6'b001000;
    else if (delay_missing) fault = 6'b010000;
    else if (!record_ready) fault = 6'b100000;
  end
  assign record_commit = ended && fault == 6'b000000;

  always_ff @(posedge clk) begin
    {drop_full, drop_short, drop_code, drop_version, drop_ethertype, drop_destination} <=
        ended ? fault : 6'b000000;
  end

  logic unused;
  assign unused = &{1'b0, fields, s_axis_tkeep};
endmodule
`default_nettype wire
