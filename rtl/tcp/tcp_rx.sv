// SPDX-License-Identifier: Apache-2.0
//
// Receive check and decode: ARP, ICMP echo and TCP frames for this board (receive clock).
//
//                     +--------+
//   s_axis ==========>|        |====> record_* (words of a good frame, to record_fifo)
//   mac_address, ip =>| tcp_rx |====> echo_write_* (the packet of an echo request)
//   echo_busy ------->|        |----> drop (one pulse a dropped frame, by first reason: tcp_pkg)
//                     +--------+
//
// Dropped: frames to other addresses, other protocols, fragments, IP options, wrong checksums of IP, ICMP and TCP, frames
// shorter than their IP length, and frames without room. Frames that the MAC marked bad were counted there.
//
// The words are shifted, so that everything after the destination address is aligned: word 0 has the source and the type, 1
// to 3 the IP header and the ports (or ARP), 4 and 5 the rest of the TCP header, 6 and on options and payload. Each word is
// checked and stored while it passes. At most six clocks after the last word a good record is committed, with the results
// of the checks (tcp_pkg::META_WORD). The words of the next frame must begin two clocks after the last one or later, which
// the gap between frames ensures.
//
// An echo request is written to a memory of 2^ECHO_BITS words while it comes, from the source address on, with the checksum
// of its reply. The record makes it available; until echo_busy falls the next ones are dropped (drop_full).
`default_nettype none
module tcp_rx #(
    parameter int MTU = 9000,
    parameter int ECHO_BITS = 8
) (
    input  logic                                        clk,
    input  logic                                        rst,
    input  logic             [                    47:0] mac_address,
    input  net_pkg::ip_t                                ip,
    input  link_pkg::frame_t                            s_axis,
    // the record
    output logic                                        record_write,
    output logic             [tcp_pkg::RECORD_BITS-1:0] record_word,
    output logic             [                    63:0] record_data,
    output logic                                        record_commit,
    input  logic                                        record_ready,
    // echo memory
    input  logic                                        echo_busy,
    output logic                                        echo_write_enable,
    output logic             [           ECHO_BITS-1:0] echo_write_address,
    output logic             [                    63:0] echo_write_data,
    // one pulse each
    output logic             [      tcp_pkg::DROPS-1:0] drop
);
  localparam int ECHO_ROOM = 8 * (2 ** ECHO_BITS - 1);
  localparam logic [15:0] ECHO_MOST = 16'(ECHO_ROOM < MTU ? ECHO_ROOM : MTU);  // of its packet, in bytes
  localparam logic [3:0] ARP_REST = 4'd4;  // bytes of ARP in word 4
  // What the pseudo header has besides the addresses and the length of the packet, in ones' complement.
  localparam logic [16:0] PSEUDO = 17'h0FFFF - (17'(net_pkg::IP_BYTES) - 17'(net_pkg::PROTOCOL_TCP));
  localparam logic [15:0] LEAST = 16'(net_pkg::IP_BYTES + 8);

  // ---- shifted words -------------------------------------------------------------------------
  logic [63:0] word, q;
  logic [15:0] held;
  logic [3:0] lanes, q_bytes;  // bytes of the frame in a last word
  logic q_valid, q_last, q_bad, first, flush, flush_bad;
  logic to_us, to_all;
  assign word = link_pkg::swap64(s_axis.tdata);
  always_comb begin
    lanes = '0;
    for (int i = 0; i < 8; i++) lanes += 4'(s_axis.tkeep[i]);
  end

  always_ff @(posedge clk) begin
    flush   <= 1'b0;
    q_valid <= flush;
    q_last  <= flush;
    q_bad   <= flush_bad;
    if (flush) q_bytes <= q_bytes - 4'd8;
    if (s_axis.tvalid) begin
      held <= word[15:0];
      first <= s_axis.tlast;
      q_valid <= !first;
      q_last <= s_axis.tlast && lanes <= 4'd6;
      q_bad <= s_axis.tuser;
      q_bytes <= lanes + 4'd2;
      flush <= s_axis.tlast && lanes > 4'd6 && !first;
      flush_bad <= s_axis.tuser;
      if (first) begin
        to_us  <= word[63:16] == mac_address;
        to_all <= word[63:16] == net_pkg::BROADCAST;
      end
    end
    q <= {held, word[63:16]};
    if (rst) begin
      first <= 1'b1;
      {flush, q_valid, q_last} <= '0;
    end
  end

  // ---- fields --------------------------------------------------------------------------------
  // One bit for each of words 0 to 5: which one q is.
  logic [ 5:0] at;
  logic [10:0] place;  // of the word
  logic [15:0] length;
  logic [12:0] remain;  // words of the packet that are not complete, that of q included
  logic [ 2:0] remain_bytes;
  logic [ 7:0] keep;
  logic [ 4:0] header;
  logic [ 3:0] offset;
  logic is_arp, is_ip, is_tcp, is_icmp, is_echo, is_reply, from_peer, marked, all_there;
  logic
      for_us,
      shape_fits,
      operation_fits,
      version_fits,
      fragment,
      address_fits,
      cut,
      too_short,
      too_long,
      offset_wrong;
  logic ended, shorten;
  logic [5:0] now;
  assign now = q_valid ? at : '0;

  always_ff @(posedge clk) begin
    ended   <= q_valid && q_last && !q_bad;
    shorten <= now[5];
    if (q_valid) begin
      at <= q_last ? 6'd1 : at << 1;
      place <= q_last ? '0 : place + {10'd0, place != '1};
      // What is left after this word, and which bytes of the next one belong to the packet; headers are there.
      remain <= remain - {12'd0, remain != '0};
      if (remain == '0) remain_bytes <= '0;
      if (at[1]) {remain, remain_bytes} <= {q[47:35] - 13'd1, q[34:32]};
      keep <= at[2:0] != '0 || remain[12:1] != '0 ? '1 : remain[0] ? 8'(16'hFF00 >> remain_bytes) : '0;
      cut <= remain[12:1] != '0 || {remain[0], remain_bytes} > q_bytes;
    end
    if (now[0]) begin
      for_us <= to_us || (to_all && q[15:0] == net_pkg::ETHERTYPE_ARP);
      is_arp <= q[15:0] == net_pkg::ETHERTYPE_ARP;
      is_ip <= q[15:0] == net_pkg::ETHERTYPE_IPV4;
      all_there <= 1'b0;
    end
    if (now[1]) begin
      shape_fits <= q[63:16] == net_pkg::ARP_SHAPE;
      operation_fits <= q[15:0] == net_pkg::ARP_REQUEST || q[15:0] == net_pkg::ARP_REPLY;
      is_reply <= q[15:0] == net_pkg::ARP_REPLY;
      version_fits <= q[63:56] == net_pkg::IP_VERSION[15:8];
      marked <= q[49:48] == tcp_pkg::CONGESTION_MARK;
      fragment <= q[13:0] != '0;  // more fragments, or not the first one
      too_short <= q[47:32] < LEAST;
      too_long <= q[47:32] > ECHO_MOST;
    end
    if (now[2]) begin
      is_tcp  <= q[55:48] == net_pkg::PROTOCOL_TCP;
      is_icmp <= q[55:48] == net_pkg::PROTOCOL_ICMP;
    end
    if (now[3]) is_echo <= is_icmp && q[31:16] == {net_pkg::ICMP_ECHO_REQUEST, 8'd0};
    if (now[3] || (now[4] && is_arp)) address_fits <= q[63:32] == ip.address;
    if (now[4] && (!q_last || q_bytes >= ARP_REST)) all_there <= 1'b1;
    if (now[5]) {offset, header} <= {q[63:60], 5'(q[63:60]) + 5'(net_pkg::IP_BYTES / 4)};
    offset_wrong <= offset < 4'd5;
    if (now[1]) length <= q[47:32];
    else if (shorten && is_tcp) length <= length - {9'd0, header, 2'b00};
    if (now[2]) from_peer <= q[31:0] == ip.peer;
    if (rst) begin
      at <= 6'd1;
      place <= '0;
      ended <= 1'b0;
    end
  end

  // ---- checksums (RFC 1071): of the IP header, and of what follows with the pseudo header ----
  logic [63:0] masked;
  logic [16:0] upper, upper_counted, lower;
  logic [17:0] ip_part, part;
  logic [19:0] ip_sum;
  logic [28:0] sum;
  logic [3:1] at_upper, at_part;
  logic upper_valid, part_valid, ip_good, folds;
  for (genvar i = 0; i < 8; i++) begin : g_mask
    assign masked[i*8+:8] = keep[i] ? q[i*8+:8] : 8'h00;
  end
  assign upper_counted = at_upper[2] ? (is_tcp ? PSEUDO : '0) : at_upper[3] && !is_tcp ? '0 : upper;
  always_ff @(posedge clk) begin
    upper <= 17'(masked[63:48]) + 17'(masked[47:32]);
    lower <= 17'(masked[31:16]) + 17'(masked[15:0]);
    {upper_valid, at_upper} <= {q_valid, at[3:1]};
    ip_part <= 18'(upper) + 18'(at_upper[3] ? 17'd0 : lower);
    part <= 18'(upper_counted) + 18'((at_upper[2] && !is_tcp) ? 17'd0 : lower);
    {part_valid, at_part} <= {upper_valid, at_upper};
    if (part_valid) begin
      if (at_part != '0) ip_sum <= 20'(ip_part) + (at_part[1] ? '0 : ip_sum);
      sum <= 29'(part) + (at_part[2] ? (is_tcp ? 29'(length) : '0) : sum);
    end
    // Its halves are all ones together; they are too small for the other zero, twice as much.
    ip_good <= ip_sum[15:0] == {12'hFFF, ~ip_sum[19:16]};
    folds   <= sum[15:0] == {3'b111, ~sum[28:16]};
    if (rst) {upper_valid, part_valid} <= '0;
  end

  // ---- verdict -------------------------------------------------------------------------------
  // The sum of a last word needs four clocks after `ended`; the reasons are found meanwhile.
  typedef logic [tcp_pkg::DROPS-1:0] reason_t;
  localparam reason_t NONE = '0;
  localparam reason_t DESTINATION = reason_t'(1) << tcp_pkg::DROP_DESTINATION;
  localparam reason_t PROTOCOL = reason_t'(1) << tcp_pkg::DROP_PROTOCOL;
  localparam reason_t FRAGMENT = reason_t'(1) << tcp_pkg::DROP_FRAGMENT;
  localparam reason_t CHECKSUM = reason_t'(1) << tcp_pkg::DROP_CHECKSUM;
  localparam reason_t SHORT = reason_t'(1) << tcp_pkg::DROP_SHORT;
  localparam reason_t FULL = reason_t'(1) << tcp_pkg::DROP_FULL;

  reason_t of_frame, of_packet, found;
  logic [3:0] step;
  logic [1:0] kind;
  logic sum_good, clean, no_room, decided, echo_open, summed;
  logic good;
  assign sum_good = folds || !summed;
  assign decided = step[2];
  assign good = decided && clean && sum_good && record_ready;

  always_ff @(posedge clk) begin
    step <= {step[2:0], ended};
    // Of Ethernet and ARP.
    if (!for_us) of_frame <= DESTINATION;
    else if (is_arp) begin
      if (!all_there) of_frame <= SHORT;
      else if (!shape_fits) of_frame <= PROTOCOL;
      else if (!address_fits) of_frame <= DESTINATION;
      else if (!operation_fits) of_frame <= PROTOCOL;
      else of_frame <= NONE;
    end else if (!is_ip) of_frame <= PROTOCOL;
    else if (!all_there) of_frame <= SHORT;
    else of_frame <= NONE;
    // Of IP and above.
    if (is_arp) of_packet <= NONE;
    else if (!version_fits) of_packet <= PROTOCOL;
    else if (!ip_good) of_packet <= CHECKSUM;
    else if (!address_fits) of_packet <= DESTINATION;
    else if (fragment) of_packet <= FRAGMENT;
    else if (!is_tcp && !is_echo) of_packet <= PROTOCOL;
    else if (cut || too_short) of_packet <= SHORT;
    else if (is_tcp && (offset_wrong || length[15])) of_packet <= SHORT;
    else of_packet <= NONE;
    if (step[1]) begin
      found <= of_frame != NONE ? of_frame : of_packet;
      clean <= of_frame == NONE && of_packet == NONE && !(!is_arp && is_echo && (!echo_open || too_long));
      summed <= !is_arp;
      no_room <= !is_arp && is_echo && (!echo_open || too_long);
      kind <= is_arp ? (is_reply ? tcp_pkg::RECORD_ARP_REPLY : tcp_pkg::RECORD_ARP_REQUEST)
                     : is_tcp ? tcp_pkg::RECORD_SEGMENT : tcp_pkg::RECORD_ECHO;
    end
    drop <= !decided ? NONE : found != NONE ? found : !sum_good ? CHECKSUM : no_room || !record_ready ? FULL : NONE;
    if (rst) step <= '0;
  end

  // ---- the record ----------------------------------------------------------------------------
  // The first two words of the next frame may come meanwhile, and are not needed.
  tcp_pkg::meta_t meta;
  assign meta = {kind, from_peer, marked, length};
  assign record_write = decided || (q_valid && place[10:tcp_pkg::RECORD_BITS] == '0);
  assign record_word = decided ? tcp_pkg::RECORD_BITS'(tcp_pkg::META_WORD) : place[tcp_pkg::RECORD_BITS-1:0];
  // Above it anything may stand.
  assign record_data = {q[63:tcp_pkg::META_BITS], decided ? meta : q[tcp_pkg::META_BITS-1:0]};
  assign record_commit = good;

  // ---- the echo memory -----------------------------------------------------------------------
  // Whether it is free is decided at the first word of a frame. The frame before may be an echo request on its way to the
  // verdict.
  logic echo_free, echo_waits;
  assign echo_free = !echo_busy && !echo_waits && !(is_icmp && {step, ended} != '0);
  // Of a packet and no more of its frame.
  assign echo_write_enable = q_valid && (at[0] ? echo_free : echo_open && (at[1] || keep[7]));
  assign echo_write_address = ECHO_BITS'(place);
  // Of the reply: type 8 becomes 0, so the checksum grows by 0x0800 (RFC 1624).
  logic [15:0] echo_sum;
  logic echo_carry;
  assign {echo_sum, echo_carry} = {q[15:0], 1'b1} + {16'h0800, q[15:11] == '1};
  assign echo_write_data = {q[63:16], at[3] ? echo_sum : q[15:0]};
  always_ff @(posedge clk) begin
    if (now[0]) echo_open <= echo_free;
    if (good && kind == tcp_pkg::RECORD_ECHO) echo_waits <= 1'b1;
    // The other clock domain holds it from here.
    if (echo_busy) echo_waits <= 1'b0;
    if (rst) echo_waits <= 1'b0;
  end

  logic unused;
  assign unused = &{1'b0, echo_carry, ip.mask, ip.gateway};
endmodule
`default_nettype wire
