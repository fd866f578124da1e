// SPDX-License-Identifier: Apache-2.0
//
// Protocol builder: makes frames in the frame memory, a ring (transmit clock).
//
//                  +-------------+
//   request_* ====>|             |====> fetch_* / fetched_* (memory port: data of segments)
//   arp_* ========>| tcp_builder |====> echo_read_* (memory of the echo request)
//   echo_* =======>|             |====> store_* (frame memory)
//                  |             |====> frame_* (the oldest frame that is ready)
//                  +-------------+
//
// In the memory, word 0 of a frame has the destination address in its lower 48 bits, word 1 our address and the type. Then
// the packet follows, so the IP and TCP headers and the data are whole words. The checksum of TCP is known when all data
// has passed; tcp_tx puts it into word 6.
//
// ARP is sent first, then echo replies, then segments. While one frame is sent, up to four next ones are made. The memory
// port may answer after any time, in order. A SYN carries one or two words of options instead of data. With "do not
// fragment" the identification has no meaning, and is zero (RFC 6864).
`default_nettype none
module tcp_builder #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,
    parameter int ECHO_BITS = 8,
    parameter int RING_BITS = 12,  // the ring holds 2^RING_BITS words
    parameter int MOST = 1128,  // words of the longest frame
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input logic clk,
    input logic rst,
    input logic [47:0] mac_address,
    input logic [31:0] ip_address,
    input logic [31:0] peer_ip,
    input logic [47:0] peer_mac,
    input logic [tcp_pkg::WORDS_BITS-1:0] mss,  // in words
    // ARP
    input logic ask_valid,
    input logic [31:0] ask_ip,
    output logic ask_take,
    input logic reply_valid,
    input logic [47:0] reply_mac,
    input logic [31:0] reply_ip,
    output logic reply_take,
    // echo reply; the memory (see tcp_rx) answers two clocks later
    input logic echo_valid,
    input logic [15:0] echo_bytes,  // of the packet
    output logic echo_take,
    output logic [ECHO_BITS-1:0] echo_read_address,
    input logic [63:0] echo_read_data,
    // the segment that a stream wants to send; request_near: it will be taken, in six clocks at most
    input logic request_valid,
    output logic request_near,
    output logic request_take,
    input logic [STREAM_BITS-1:0] request_stream,
    input logic [15:0] request_port,
    input logic [15:0] request_peer_port,
    input tcp_pkg::request_t request,
    // memory port
    output logic fetch_valid,
    input logic fetch_ready,
    output logic [STREAM_BITS+BITS-1:0] fetch_address,
    input logic fetched_valid,
    input logic [63:0] fetched_data,
    // frame memory
    output logic store_enable,
    output logic [RING_BITS-1:0] store_address,
    output logic [63:0] store_data,
    // the oldest frame that is ready
    output logic frame_valid,
    output tcp_pkg::made_t frame,
    input logic frame_take,
    input logic word_take  // one of the ring is free again
);
  localparam int WORDS_BITS = tcp_pkg::WORDS_BITS;
  localparam int ROOM = 2 ** RING_BITS - MOST - 4;

  if (ROOM < 0 || MOST >= 2 ** WORDS_BITS) begin : g_check
    $error("tcp_builder: the longest frame must fit the ring");
  end

  typedef enum logic [1:0] {
    FREE,
    HEAD,  // a word a clock
    DATA
  } state_t;
  typedef enum logic [1:0] {
    SEGMENT,
    ASK,
    REPLY,
    ECHO
  } kind_t;
  state_t state;
  kind_t kind;

  logic [STREAM_BITS-1:0] stream;
  logic [BITS-1:0] place;  // of the next word to fetch
  logic [WORDS_BITS-1:0] asked, stored;  // what is still to be fetched, to be stored
  logic [7:0] at;  // the word in the frame, a bit each; stays at the last
  // The same by the frame's kind.
  logic [6:0] segment;
  logic [5:0] ask, reply;
  logic [7:0] echo;
  logic is_syn, is_arp, none_left, one_left, heads, wanted, start, has_room, finish, makes;
  assign is_arp = kind == ASK || kind == REPLY;

  // ---- which frame is next -------------------------------------------------------------------
  logic [2:0] pending;  // frames that are made or wait
  logic [3:0] ip_step;
  logic [RING_BITS:0] used;
  assign wanted = reply_valid || ask_valid || echo_valid || request_valid;
  assign start = state == FREE && wanted && has_room && ip_step[3] && !pending[2];
  assign heads = kind == SEGMENT && state == HEAD;
  assign request_near = heads;
  assign request_take = heads && at[6];
  assign ask_take = ask[5];
  assign reply_take = reply[5];
  assign echo_take = finish && kind == ECHO;

  logic [1:0] raw_valid;
  logic raw_asked, twice;
  assign fetch_valid = kind == SEGMENT && asked != '0 && (state == DATA || (state == HEAD && at[6]));
  assign fetch_address = {stream, place};
  assign raw_asked = kind == ECHO && asked != '0 && state == DATA;
  always_comb begin
    finish = 1'b0;
    makes  = 1'b0;
    case (state)
      HEAD: begin
        makes  = 1'b1;
        finish = is_arp ? at[5] : at[6] && none_left;
      end
      DATA: begin
        makes  = kind == ECHO ? raw_valid[1] : is_syn || fetched_valid;
        finish = makes && one_left;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    has_room  <= used <= (RING_BITS + 1)'(ROOM);
    pending   <= pending + 3'(start) - 3'(frame_take);
    raw_valid <= {raw_valid[0], raw_asked};
    if (raw_asked) begin
      twice <= 1'b0;
      if (!twice) echo_read_address <= echo_read_address + 1'b1;
    end
    if (makes) at <= {at[7] || at[6], at[5:0], 1'b0};
    if (makes && state == DATA) stored <= stored - 1'b1;
    none_left <= stored == '0;
    one_left  <= stored == (makes && state == DATA ? WORDS_BITS'(2) : WORDS_BITS'(1));
    if ((fetch_valid && fetch_ready) || raw_asked) begin
      asked <= asked - 1'b1;
      place <= place + 1'b1;
    end
    case (state)
      FREE: begin
        at <= 8'd1;
        echo_read_address <= '0;
        twice <= 1'b1;
        stream <= request_stream;
        place <= request.sequence_number[BITS+2:3];
        is_syn <= request.flags[tcp_pkg::SYN];
        stored <= request.words;
        asked <= request.flags[tcp_pkg::SYN] ? '0 : request.words;
        kind <= SEGMENT;
        if (start) state <= HEAD;
        if (reply_valid) kind <= REPLY;
        else if (ask_valid) kind <= ASK;
        else if (echo_valid) begin
          kind   <= ECHO;
          // Two words, and what is begun.
          stored <= WORDS_BITS'((echo_bytes + 16'd23) >> 3);
          asked  <= WORDS_BITS'((echo_bytes + 16'd23) >> 3);
          if (start) state <= DATA;
        end
      end
      HEAD: if (at[6]) state <= DATA;
      default: ;
    endcase
    if (finish) state <= FREE;
    if (rst) begin
      state <= FREE;
      {pending, raw_valid} <= '0;
    end
  end

  // ---- the checksum of IP (RFC 1071) ---------------------------------------------------------
  // A 16-bit word a clock, the carry with the next. What is the same in all frames is summed up after the one before.
  localparam logic [15:0] IP_CONSTANT =
      net_pkg::IP_VERSION + 16'(tcp_pkg::IP_TCP_BYTES) + net_pkg::IP_DO_NOT_FRAGMENT + {net_pkg::TTL, net_pkg::PROTOCOL_TCP};
  logic [16:0] ip_sum;
  logic [17:0] ip_added;
  logic [15:0] ip_term, length, service;
  assign length  = 16'(tcp_pkg::IP_TCP_BYTES) + {2'd0, request.words, 3'b000};
  assign service = {14'd0, request.takes_marks ? tcp_pkg::ECT_0 : 2'b00};
  always_comb begin
    case (ip_step)
      4'd0: ip_term = {2'd0, request.words, 3'b000};  // the headers are in the constant
      4'd1: ip_term = service;
      4'd4: ip_term = ip_address[31:16];
      4'd5: ip_term = ip_address[15:0];
      4'd6: ip_term = peer_ip[31:16];
      4'd7: ip_term = peer_ip[15:0];
      default: ip_term = '0;
    endcase
  end
  // The lowest bit is the carry into the others.
  assign ip_added = {1'b0, ip_sum[15:0], 1'b1} + {1'b0, ip_term, ip_sum[16]};
  always_ff @(posedge clk) begin
    if (!ip_step[3]) begin
      ip_step <= ip_step + 4'd1;
      ip_sum  <= ip_added[17:1];
    end
    if (ip_step == 4'd3) ip_sum <= 17'(IP_CONSTANT);
    if (start) ip_step <= '0;
    if (rst) ip_step <= 4'd3;
  end

  // ---- words ---------------------------------------------------------------------------------
  // Each source of a word, and when it is one: by the frame's kind and the word's place.
  logic of_data, of_options, of_echo, freed;
  logic [63:0] made_word, raw, word;
  logic [31:0] raw_last;
  assign segment = at[6:0] & {7{kind == SEGMENT}};
  assign ask = at[5:0] & {6{kind == ASK}};
  assign reply = at[5:0] & {6{kind == REPLY}};
  assign echo = at & {8{kind == ECHO}};
  assign of_data = kind == SEGMENT && state == DATA && !is_syn;
  assign of_options = kind == SEGMENT && state == DATA && is_syn;
  assign of_echo = echo[7:5] != '0 || echo[3:2] != '0;
  assign raw = echo_read_data;
  // The echo reply (RFC 792) is the request with addresses exchanged, and type 8 becomes 0; the memory has the reply's checksum.
  logic second, third;
  assign second = segment[1] || echo[1] || ask[1] || reply[1];
  assign third  = ask[3] || reply[3];
  always_comb begin
    made_word = '0;
    made_word |= {64{of_data}} & link_pkg::swap64(fetched_data);
    made_word |= {64{of_echo}} & {raw[63:32], echo[3] ? ip_address : raw[31:0]};
    made_word |= {64{echo[0]}} & {16'd0, raw[63:16]};
    made_word |= {64{echo[4]}} & {raw_last, 16'd0, raw[15:0]};
    made_word |= {64{second || third}} & {mac_address, 16'd0};
    made_word |= {64{second}} & {48'd0, net_pkg::ETHERTYPE_IPV4};
    made_word |= {64{ask[1] || reply[1]}} & {48'd0, net_pkg::ETHERTYPE_ARP};
    made_word |= {64{segment[0]}} & {16'd0, peer_mac};
    made_word |= {64{reply[0] || reply[4]}} & {16'd0, reply_mac};
    made_word |= {64{ask[0]}} & {16'd0, net_pkg::BROADCAST};
    made_word |= {64{segment[2]}} & {net_pkg::IP_VERSION | service, length, 16'd0, net_pkg::IP_DO_NOT_FRAGMENT};
    made_word |= {64{segment[3]}} & {net_pkg::TTL, net_pkg::PROTOCOL_TCP, ~ip_sum[15:0], ip_address};
    made_word |= {64{segment[4]}} & {peer_ip, request_port, request_peer_port};
    made_word |= {64{segment[5]}} & {request.sequence_number, request.ack};
    made_word |= {64{segment[6]}} & {is_syn ? (request.words[1] ? 4'd9 : 4'd7) : 4'd5, 4'd0, request.flags, tcp_pkg::RECEIVE_WINDOW, 32'd0};
    // That selective acknowledgments are read (RFC 2018); maximum segment size, no operation, window scale 0 (RFC 7323: without it the peer may not scale).
    made_word |= {64{of_options && one_left}} & {16'h0204, 2'd0, mss, 3'b000, 32'h01030300};
    made_word |= {64{of_options && !one_left}} & 64'h0101040201010101;
    made_word |= {64{ask[2]}} & {net_pkg::ARP_SHAPE, net_pkg::ARP_REQUEST};
    made_word |= {64{reply[2]}} & {net_pkg::ARP_SHAPE, net_pkg::ARP_REPLY};
    made_word |= {64{third}} & {48'd0, ip_address[31:16]};
    made_word |= {64{ask[4] || reply[4]}} & {ip_address[15:0], 48'd0};
    made_word |= {64{ask[5]}} & {ask_ip, 32'd0};
    made_word |= {64{reply[5]}} & {reply_ip, 32'd0};
  end

  assign store_data = word;
  always_ff @(posedge clk) begin
    if (raw_valid[1]) raw_last <= raw[31:0];
    store_enable <= makes;
    word <= made_word;
    freed <= word_take;
    if (store_enable) store_address <= store_address + 1'b1;
    used <= used + (RING_BITS + 1)'(store_enable) - (RING_BITS + 1)'(freed);
    if (rst) begin
      {store_enable, store_address, used, freed} <= '0;
    end
  end

  // ---- the checksum of TCP -------------------------------------------------------------------
  // Of all from the addresses on, and the rest of the pseudo header: protocol and length.
  logic [16:0] upper, lower;
  logic [17:0] part;
  logic [28:0] sum;
  logic [16:0] folded;
  logic [ 1:0] first;  // of the word, of its halves
  logic [ 2:0] summed;  // and of their sum
  localparam logic [17:0] PSEUDO = 18'(net_pkg::PROTOCOL_TCP) + 18'(tcp_pkg::IP_TCP_BYTES - net_pkg::IP_BYTES);
  always_ff @(posedge clk) begin
    first  <= {first[0], makes && at[3]};
    summed <= {summed[1:0], makes && at[7:3] != '0};
    upper  <= 17'(word[63:48]) + 17'(word[47:32]);
    lower  <= 17'(word[31:16]) + 17'(word[15:0]);
    part   <= (first[1] ? PSEUDO : 18'(upper)) + 18'(lower);
    // When that of the frame before is folded, and before the first word has come here.
    if (heads && at[4]) sum <= 29'({request.words, 3'b000});
    else if (summed[2]) sum <= sum + 29'(part);
    folded <= 17'(sum[15:0]) + 17'(sum[28:16]);
  end

  // ---- frames that are ready -----------------------------------------------------------------
  tcp_pkg::made_t made;
  (* ram_style = "distributed" *)
  logic [tcp_pkg::MADE_BITS-1:0] made_frames[4];
  logic [WORDS_BITS-1:0] made_words;
  logic made_segment;
  logic [2:0] made_last;
  logic [1:0] made_head, made_tail;
  logic [2:0] made_count;
  logic [WORDS_BITS-1:0] count;  // of words of the frame that are made
  logic [4:0] ends;
  assign frame = made_frames[made_tail];
  assign frame_valid = made_count != '0;
  assign made = {made_words, made_segment, made_last, ~(folded[15:0] + 16'(folded[16]))};
  always_ff @(posedge clk) begin
    ends  <= {ends[3:0], finish};
    count <= state == FREE ? '0 : count + WORDS_BITS'(makes);
    if (finish) begin
      made_words <= count;
      made_segment <= kind == SEGMENT;
      made_last <= kind == ECHO ? echo_bytes[2:0] : '0;
    end
    // The sum of the last word.
    if (ends[4]) begin
      made_frames[made_head] <= made;
      made_head <= made_head + 1'b1;
    end
    if (frame_take) made_tail <= made_tail + 1'b1;
    made_count <= made_count + 3'(ends[4]) - 3'(frame_take);
    if (rst) {ends, made_head, made_tail, made_count} <= '0;
  end
  logic unused;
  assign unused = &{1'b0, ip_added[0]};
endmodule
`default_nettype wire
