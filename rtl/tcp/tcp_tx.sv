// SPDX-License-Identifier: Apache-2.0
//
// Packet assembler: sends segments, ARP frames and echo replies as 64-bit words (transmit clock).
//
//                  +--------+
//   segment_* ====>|        |====> m_axis_* (frames without frame check sequence)
//   arp_* ========>| tcp_tx |====> store_read_* (segment memory)
//   echo_* =======>|        |====> echo_read_*  (memory of the echo request)
//                  +--------+
//
// ARP goes first, then echo replies, then segments. Data follows a header of 54 bytes, so each word
// is split: two bytes in one word of the frame, six in the next. Short frames are filled up by the MAC.
`default_nettype none
module tcp_tx #(
    parameter int WORD_BITS = 11,
    parameter int ECHO_BITS = 8
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic [         47:0] mac_address,
    input  logic [         31:0] ip_address,
    input  logic [         47:0] peer_mac,
    // ARP: a reply to arp_mac, or the request for arp_ip
    input  logic                 arp_valid,
    input  logic                 arp_is_reply,
    input  logic [         47:0] arp_mac,
    input  logic [         31:0] arp_ip,
    output logic                 arp_take,
    // echo reply
    input  logic                 echo_valid,
    input  logic [         47:0] echo_mac,
    input  logic [         31:0] echo_ip,
    input  logic [         15:0] echo_bytes,          // of the frame
    output logic                 echo_take,
    output logic [ECHO_BITS-1:0] echo_read_address,
    output logic                 echo_read_enable,
    input  logic [         63:0] echo_read_data,
    // segments
    input  logic                 segment_valid,
    output logic                 segment_done,
    input  logic [  WORD_BITS:0] segment_start,
    input  logic [         12:0] segment_words,
    input  logic [        319:0] segment_header,
    output logic                 store_read_enable,
    output logic [  WORD_BITS:0] store_read_address,
    input  logic [         63:0] store_read_data,
    // MAC
    output logic [         63:0] m_axis_tdata,
    output logic [          7:0] m_axis_tkeep,
    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready,
    output logic                 m_axis_tlast
);
  typedef enum logic [1:0] {
    NOTHING,
    ARP,
    ECHO,
    SEGMENT
  } kind_t;

  kind_t kind;
  logic [12:0] index, final_index;  // of the word on offer, of the last one
  logic [7:0] final_keep;
  logic advance, over;
  logic [383:0] arp_words;
  logic [63:0] echo_word, echo_raw, segment_word, header_word;
  logic [47:0] carry;  // six bytes of the data word before
  logic [15:0] echo_checksum, echo_checksum_new;

  assign advance = m_axis_tvalid && m_axis_tready;
  assign m_axis_tvalid = kind != NOTHING;
  assign m_axis_tlast = index == final_index;
  assign m_axis_tkeep = m_axis_tlast ? final_keep : '1;
  assign over = advance && m_axis_tlast;
  assign arp_take = over && kind == ARP;
  assign echo_take = over && kind == ECHO;
  assign segment_done = over && kind == SEGMENT;

  // ---- ARP (RFC 826) -------------------------------------------------------------------------
  assign arp_words = {
    arp_is_reply ? arp_mac : net_pkg::BROADCAST,
    mac_address,
    net_pkg::ETHERTYPE_ARP,
    net_pkg::ARP_SHAPE,
    arp_is_reply ? net_pkg::ARP_REPLY : net_pkg::ARP_REQUEST,
    mac_address,
    ip_address,
    arp_is_reply ? arp_mac : 48'd0,
    arp_ip,
    48'd0
  };

  // ---- echo reply (RFC 792): the request with addresses exchanged ----------------------------
  assign echo_raw = link_pkg::swap64(echo_read_data);
  // Type 8 becomes 0: the checksum grows by 0x0800 (RFC 1624).
  assign echo_checksum = echo_raw[31:16];
  assign echo_checksum_new = echo_checksum + 16'h0800 + 16'(echo_checksum > 16'hF7FF);
  always_comb begin
    case (index)
      13'd0:   echo_word = {echo_mac, mac_address[47:32]};
      13'd1:   echo_word = {mac_address[31:0], echo_raw[31:0]};
      13'd3:   echo_word = {echo_raw[63:48], ip_address, echo_ip[31:16]};
      13'd4:   echo_word = {echo_ip[15:0], 16'd0, echo_checksum_new, echo_raw[15:0]};
      default: echo_word = echo_raw;
    endcase
  end
  // The memories answer a clock later, so the address is that of the word after the one on offer.
  assign echo_read_enable  = advance || kind == NOTHING;
  assign echo_read_address = kind == NOTHING ? '0 : ECHO_BITS'(index) + 1'b1;

  // ---- segment -------------------------------------------------------------------------------
  // Data word n is split over frame words n + 6 and n + 7.
  logic [63:0] data;
  assign data = link_pkg::swap64(store_read_data);
  assign store_read_enable = advance || kind == NOTHING;
  assign store_read_address = segment_start + (WORD_BITS + 1)'(index < 13'd5 ? 13'd0 : index - 13'd5);
  always_comb begin
    case (index[2:0])
      3'd0: header_word = {peer_mac, mac_address[47:32]};
      3'd1: header_word = {mac_address[31:0], net_pkg::ETHERTYPE_IPV4, net_pkg::IP_VERSION};
      3'd2: header_word = segment_header[319:256];
      3'd3: header_word = segment_header[255:192];
      3'd4: header_word = segment_header[191:128];
      3'd5: header_word = segment_header[127:64];
      default: header_word = {segment_header[63:16], data[63:48]};
    endcase
    segment_word = index > 13'd6 ? {carry, data[63:48]} : header_word;
  end

  logic [63:0] word;
  always_comb begin
    case (kind)
      ARP: word = arp_words[(5-32'(index[2:0]))*64+:64];
      ECHO: word = echo_word;
      default: word = segment_word;
    endcase
  end
  assign m_axis_tdata = link_pkg::swap64(word);

  always_ff @(posedge clk) begin
    if (kind == NOTHING || over) begin
      index <= '0;
      kind  <= NOTHING;
      // After a frame there is one idle clock, in which the memories read their first word; the gap
      // on the wire is longer.
      if (kind == NOTHING) begin
        if (arp_valid) begin
          kind <= ARP;
          final_index <= 13'd5;
          final_keep <= 8'h03;
        end else if (echo_valid) begin
          kind <= ECHO;
          final_index <= 13'((echo_bytes - 16'd1) >> 3);
          final_keep <= 8'hFF >> (3'd0 - echo_bytes[2:0]);
        end else if (segment_valid) begin
          kind <= SEGMENT;
          final_index <= segment_words == '0 ? 13'd6 : segment_words + 13'd6;
          final_keep <= 8'h3F;
        end
      end
    end else if (advance) begin
      index <= index + 13'd1;
      if (index >= 13'd6) carry <= data[47:0];
    end
    if (rst) kind <= NOTHING;
  end

  logic unused;
  assign unused = &{1'b0, segment_header[15:0]};
endmodule
`default_nettype wire
