// SPDX-License-Identifier: Apache-2.0
//
// The segment that a look found, until the builder accepts it (transmit clock).
//
//                     +-------------+
//   applies --------->|             |----> pending, request_valid
//   found, number ===>| tcp_request |====> request, request_stream
//   fitting, ends ===>|             |<---- request_take
//                     +-------------+
//
// At `applies` a look ends that found `found`; `number`, a clock later, is the number of its first word, `fitting` its
// words. `pending`: the builder has not accepted it.
`default_nettype none
module tcp_request #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input logic clk,
    input logic rst,
    input logic applies,
    input logic [STREAM_BITS-1:0] stream,
    input tcp_pkg::look_t found,
    input logic is_open,
    input logic [1:0] ecn_flags,  // CWR, ECE
    input logic takes_marks,
    input logic sack,  // a SYN has a second word of options
    input logic ends,  // with all data that there is, or with its block
    input logic [BITS:0] fitting,
    input logic [28:0] number,
    input logic [31:0] peer_next,
    output logic pending,
    output logic request_valid,
    output logic [STREAM_BITS-1:0] request_stream,
    output tcp_pkg::request_t request,
    input logic request_take
);
  logic applied;
  tcp_pkg::kind_t kind;
  assign kind = found.kind;
  always_ff @(posedge clk) begin
    applied <= applies;
    if (applied) request.sequence_number[31:3] <= number;
    if (request_take) pending <= 1'b0;
    if (applies) begin
      pending <= kind != tcp_pkg::NOTHING;
      request_stream <= stream;
      request.sequence_number[2:0] <= kind == tcp_pkg::A_RST ? peer_next[2:0]
          : kind == tcp_pkg::A_SYN || kind == tcp_pkg::KEEPALIVE ? 3'd7 : {2'd0, kind == tcp_pkg::PURE_ACK && !is_open};
      request.ack <= peer_next;
      request.words <= kind == tcp_pkg::DATA || kind == tcp_pkg::AGAIN ? fitting[tcp_pkg::WORDS_BITS-1:0]
          : kind == tcp_pkg::A_SYN ? tcp_pkg::WORDS_BITS'(1) + tcp_pkg::WORDS_BITS'(sack) : '0;
      request.flags[tcp_pkg::FIN] <= kind == tcp_pkg::A_FIN;
      request.flags[tcp_pkg::SYN] <= kind == tcp_pkg::A_SYN;
      request.flags[tcp_pkg::RST] <= kind == tcp_pkg::A_RST;
      request.flags[tcp_pkg::PSH] <= kind == tcp_pkg::DATA && ends;
      request.flags[5] <= 1'b0;
      request.flags[tcp_pkg::CWR:tcp_pkg::ECE] <= ecn_flags;
      request.takes_marks <= takes_marks;
      request.flags[tcp_pkg::ACK] <= kind != tcp_pkg::A_SYN && kind != tcp_pkg::A_RST;
    end
    if (rst) {applied, pending} <= '0;
  end
  assign request_valid = pending && !applied;
  logic unused;
  assign unused = &{1'b0, found, fitting};
endmodule
`default_nettype wire
