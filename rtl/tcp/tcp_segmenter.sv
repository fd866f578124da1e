// SPDX-License-Identifier: Apache-2.0
//
// Protocol builder: fetches the words of segments from the socket buffer into the segment memory, a
// ring, and makes their checksums meanwhile (transmit clock).
//
//                  +---------------+
//   request_* ====>|               |====> fetch_* / fetched_* (memory port)
//                  | tcp_segmenter |====> store_* (segment memory)
//                  |               |====> segment_* (the oldest segment that is ready)
//                  +---------------+
//
// While one segment is sent, the next ones are fetched, up to four. The memory port may answer after
// any time, in order. A SYN carries one word of options instead of data.
`default_nettype none
module tcp_segmenter #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,
    parameter int WORD_BITS = 11,  // the ring holds 2^(WORD_BITS+1) words
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                        clk,
    input  logic                        rst,
    input  logic [                31:0] ip_address,
    input  logic [                31:0] peer_ip,
    input  logic [                15:0] mss,
    // the segment that a stream wants to send
    input  logic                        request_valid,
    output logic                        request_take,
    input  logic [     STREAM_BITS-1:0] request_stream,
    input  logic [                15:0] request_port,
    input  logic [                15:0] request_peer_port,
    input  logic [                31:0] request_sequence,
    input  logic [                31:0] request_ack,
    input  logic [                 7:0] request_flags,
    input  logic [                12:0] request_words,
    // memory port
    output logic                        fetch_valid,
    input  logic                        fetch_ready,
    output logic [STREAM_BITS+BITS-1:0] fetch_address,
    input  logic                        fetched_valid,
    input  logic [                63:0] fetched_data,
    // segment memory
    output logic                        store_enable,
    output logic [         WORD_BITS:0] store_address,
    output logic [                63:0] store_data,
    // a segment that is ready; the header's words 2 to 6, the first byte in the upper bits
    output logic                        segment_valid,
    input  logic                        segment_done,
    output logic [         WORD_BITS:0] segment_start,
    output logic [                12:0] segment_words,
    output logic [               319:0] segment_header
);
  localparam logic [15:0] RECEIVE_WINDOW = 16'd4096;  // what comes is thrown away

  typedef enum logic [1:0] {
    FREE,
    FETCH,
    SUM,
    WAIT
  } state_t;
  state_t state;

  localparam int READY_BITS = WORD_BITS + 1 + 13 + 320;
  logic [READY_BITS-1:0] ready_segments[4];
  logic [2:0] ready_head, ready_tail;
  logic [WORD_BITS:0] start;
  logic [WORD_BITS+1:0] used;
  logic has_room;
  logic [STREAM_BITS-1:0] stream;
  logic [15:0] port, peer_port, identification, length, ip_checksum, tcp_checksum;
  logic [31:0] sequence_number, ack;
  logic [7:0] flags;
  logic [12:0] words, asked, stored;
  logic [31:0] sum, ip_sum;
  logic [2:0] step;
  logic is_syn;
  logic [63:0] options, data;
  logic [17:0] part;

  assign is_syn = flags[tcp_pkg::SYN];
  // Maximum segment size, no operation, window scale 0 (RFC 7323: without it the peer may not scale).
  assign options = {16'h0204, mss, 32'h01030300};
  assign has_room = {1'b0, used} + (WORD_BITS + 3)'(request_words) < (WORD_BITS + 3)'(2 << WORD_BITS);
  assign request_take = state == FREE && request_valid && has_room;
  assign segment_valid = ready_head != ready_tail;
  assign {segment_start, segment_words, segment_header} = ready_segments[ready_tail[1:0]];
  assign fetch_valid = state == FETCH && !is_syn && asked != words;
  assign fetch_address = {stream, BITS'(sequence_number[31:3] + 29'(asked))};
  assign store_enable = (state == FETCH) && (is_syn || fetched_valid);
  assign store_address = start + (WORD_BITS + 1)'(stored);
  assign store_data = is_syn ? link_pkg::swap64(options) : fetched_data;
  assign data = link_pkg::swap64(store_data);
  assign part = 18'(data[63:48]) + 18'(data[47:32]) + 18'(data[31:16]) + 18'(data[15:0]);

  logic [15:0] offset_flags;
  assign offset_flags = {is_syn ? 4'd7 : 4'd5, 4'd0, flags};
  assign length = 16'(tcp_pkg::IP_TCP_BYTES) + {words, 3'b000};

  always_ff @(posedge clk) begin
    if (store_enable) begin
      stored <= stored + 13'd1;
      sum <= sum + 32'(part);
    end
    if (fetch_valid && fetch_ready) asked <= asked + 13'd1;
    case (state)
      FREE:
      if (request_take) begin
        state <= FETCH;
        stream <= request_stream;
        {port, peer_port} <= {request_port, request_peer_port};
        {sequence_number, ack} <= {request_sequence, request_ack};
        flags <= request_flags;
        words <= request_flags[tcp_pkg::SYN] ? 13'd1 : request_words;
        {asked, stored} <= '0;
        identification <= identification + 16'd1;
        ip_sum <= 32'(net_pkg::IP_VERSION) + 32'(net_pkg::IP_DO_NOT_FRAGMENT) + 32'({net_pkg::TTL, net_pkg::PROTOCOL_TCP})
            + 32'(ip_address[31:16]) + 32'(ip_address[15:0]) + 32'(peer_ip[31:16]) + 32'(peer_ip[15:0]);
        sum <= 32'(ip_address[31:16]) + 32'(ip_address[15:0]) + 32'(peer_ip[31:16]) + 32'(peer_ip[15:0])
            + 32'(net_pkg::PROTOCOL_TCP) + 32'(RECEIVE_WINDOW);
        step <= '0;
      end
      FETCH: if (stored == words || (store_enable && stored + 13'd1 == words)) state <= SUM;
      SUM: begin
        step <= step + 3'd1;
        case (step)
          3'd0: begin
            sum <= sum + 32'(port) + 32'(peer_port) + 32'(offset_flags) + 32'(length - 16'd20);
            ip_sum <= ip_sum + 32'(length) + 32'(identification);
          end
          3'd1:
          sum <= sum + 32'(sequence_number[31:16]) + 32'(sequence_number[15:0]) + 32'(ack[31:16]) + 32'(ack[15:0]);
          default: begin
            ip_checksum <= ~net_pkg::fold(ip_sum);
            tcp_checksum <= ~net_pkg::fold(sum);
            state <= WAIT;
          end
        endcase
      end
      default:
      if (ready_head - ready_tail != 3'd4) begin
        ready_head <= ready_head + 3'd1;
        ready_segments[ready_head[1:0]] <= {
          start,
          words,
          length,
          identification,
          net_pkg::IP_DO_NOT_FRAGMENT,
          net_pkg::TTL,
          net_pkg::PROTOCOL_TCP,
          ip_checksum,
          ip_address,
          peer_ip,
          port,
          peer_port,
          sequence_number,
          ack,
          offset_flags,
          RECEIVE_WINDOW,
          tcp_checksum,
          32'd0
        };
        start <= start + (WORD_BITS + 1)'(words);
        state <= FREE;
      end
    endcase
    used <= used + (store_enable ? (WORD_BITS + 2)'(1) : '0) - (segment_done ? (WORD_BITS + 2)'(segment_words) : '0);
    if (segment_done) ready_tail <= ready_tail + 3'd1;
    if (rst) begin
      state <= FREE;
      {ready_head, ready_tail, start, used} <= '0;
      identification <= '0;
    end
  end
endmodule
`default_nettype wire
