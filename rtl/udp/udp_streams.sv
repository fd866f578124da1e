// SPDX-License-Identifier: Apache-2.0
//
// The streams, each with its buffer and its settings (see udp_stream); they share the UDP layer.
//
//                    +-------------+
//   s_axis[0] ======>|             |====> request, length, sum, start, data (to the UDP layer)
//   s_axis[1] ======>| udp_streams |<==== stream_enable, stream_payload, path
//   ...              |             |
//                    +-------------+
//          user_clk                tx_clk
//
// Without SEND there are no streams.
`default_nettype none
module udp_streams #(
    parameter int WIDTH = 8,
    parameter int STREAMS = 1,
    parameter int SEND = 1,
    parameter int PAYLOAD_MAX = 8972,
    parameter int SLOTS = 2
) (
    input logic user_clk,
    input logic user_rst,
    input logic [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] s_axis,
    output logic [STREAMS-1:0] s_axis_tready,
    output logic [STREAMS-1:0] user_running,
    input logic tx_clk,
    input logic tx_rst,
    input logic tick_ms,
    input logic enable,
    input logic [STREAMS-1:0] stream_enable,
    input logic [STREAMS-1:0] path,
    input logic [STREAMS-1:0][13:0] stream_payload,
    output logic [STREAMS-1:0] stream_active,
    output logic [STREAMS-1:0] request,
    output logic [STREAMS-1:0][13:0] length,
    output logic [STREAMS-1:0][15:0] sum,
    input logic [STREAMS-1:0] start,
    output logic [STREAMS-1:0][WIDTH-1:0] data,
    output logic event_sent,
    output logic [STREAMS-1:0][7:0] run,
    output logic [STREAMS-1:0][31:0] last_count
);
  logic [STREAMS-1:0] sent;
  assign event_sent = sent != '0;
  if (SEND != 0) begin : g_send
    for (genvar i = 0; i < STREAMS; i++) begin : g_stream
      link_pkg::words_t words;
      assign words = s_axis[i];
      udp_stream #(
          .WIDTH      (WIDTH),
          .PAYLOAD_MAX(PAYLOAD_MAX),
          .SLOTS      (SLOTS)
      ) stream (
          .user_clk     (user_clk),
          .user_rst     (user_rst),
          .s_axis_tdata (words.tdata),
          .s_axis_tvalid(words.tvalid),
          .s_axis_tready(s_axis_tready[i]),
          .s_axis_tlast (words.tlast),
          .running      (user_running[i]),
          .tx_clk       (tx_clk),
          .tx_rst       (tx_rst),
          .tick_ms      (tick_ms),
          .enable       (stream_enable[i] && enable),
          .path         (path[i]),
          .payload      (stream_payload[i]),
          .active       (stream_active[i]),
          .request      (request[i]),
          .length       (length[i]),
          .sum          (sum[i]),
          .start        (start[i]),
          .data         (data[i]),
          .event_sent   (sent[i]),
          .run          (run[i]),
          .last_count   (last_count[i])
      );
    end
  end else begin : g_no_send
    assign {s_axis_tready, user_running, stream_active, sent, run, last_count} = '0;
    assign {request, length, sum, data} = '0;
    logic unused;
    assign unused = &{
      1'b0, user_clk, user_rst, s_axis, tx_clk, tx_rst, tick_ms, enable, stream_enable, path, stream_payload, start
    };
  end
endmodule
`default_nettype wire
