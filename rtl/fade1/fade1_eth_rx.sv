// SPDX-License-Identifier: Apache-2.0
//
// Ethernet receiver: checks a frame from the computer and passes its command or ACK on
// (receive clock, 64-bit words).
//
//                 +--------------+
//   s_axis_* ====>| fade1_eth_rx |====> record_* (word 0: source, type 16; word 1: set 16, packet 6;
//                 |              |         word 3, of a block ACK (record_block): bits of packets that are stored)
//                 |              |----> drop_* (one pulse a dropped frame, by first reason)
//                 +--------------+
//
// The words of a record are written while the frame comes, and committed at the end of a good frame. Frames that the MAC
// marked bad were counted there. The source is stored with its lower 32 bits first, then its upper 16, as in the words of
// the frame. IDENTIFY is that of FADE-10G, also from broadcast; drop_version: another frame of FADE-10G.
`default_nettype none
module fade1_eth_rx (
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
  fade_pkg::addresses_t addresses;
  fade_pkg::source_t source;
  fade_pkg::record_t first;
  fade1_pkg::fields_t fields;
  assign word = link_pkg::swap64(s_axis_tdata);
  assign addresses = word;
  assign source = word;
  assign fields = word;

  logic [2:0] index;  // of the word in the frame, stops at 4
  logic ethertype_good, type_here, fields_here, is_ack, is_block, is_fade10g, known, ended;
  logic for_me, broadcast, is_identify;
  logic [15:0] source_begin, kind;
  assign kind = source.kind;

  // The word of the bits is written twice: until the bits have come there are none.
  assign record_write = s_axis_tvalid && !index[2];
  assign record_word = &index[1:0] ? 2'd3 : index[1:0] - 2'd1;
  assign record_block = is_block && &index[1:0] && s_axis_tkeep[7];
  assign first = {source.source_end, source_begin, kind};
  assign record = index == 3'd1 ? first : word;

  always_ff @(posedge clk) begin
    ended <= 1'b0;
    if (s_axis_tvalid) begin
      index <= s_axis_tlast ? 3'd0 : index[2] ? 3'd4 : index + 3'd1;
      case (index)
        3'd0: begin
          for_me <= addresses.destination == mac_address;
          broadcast <= &addresses.destination;
          source_begin <= addresses.source_begin;
          ethertype_good <= 1'b0;
          type_here <= 1'b0;
          fields_here <= 1'b0;
        end
        3'd1: begin
          ethertype_good <= source.ethertype == fade1_pkg::ETHERTYPE && s_axis_tkeep[5];
          is_ack <= kind == fade1_pkg::TYPE_ACK;
          is_identify <= 1'b0;
          is_fade10g <= kind == fade1_pkg::TYPE_FADE10G;
          known <= kind == fade1_pkg::TYPE_ACK || kind == fade1_pkg::TYPE_START || kind == fade1_pkg::TYPE_STOP
              || kind == fade1_pkg::TYPE_RESET;
          type_here <= s_axis_tkeep[7];
        end
        3'd2: begin
          fields_here <= s_axis_tkeep[3];
          is_identify <= is_fade10g && fields.set == fade1_pkg::CMD_IDENTIFY && s_axis_tkeep[1];
          is_block <= fields.mark == fade1_pkg::BLOCK_MARK && s_axis_tkeep[5];
        end
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
    if (!for_me && !(broadcast && is_identify)) fault = 6'b000001;
    else if (!ethertype_good) fault = 6'b000010;
    else if (!type_here) fault = 6'b010000;
    else if (is_fade10g && !is_identify) fault = 6'b000100;
    else if (!known && !is_identify) fault = 6'b001000;
    else if (is_ack && !fields_here) fault = 6'b010000;
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
