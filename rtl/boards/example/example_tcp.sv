// SPDX-License-Identifier: Apache-2.0
//
// Example design of the TCP sender: streams of pattern sources.
//
//                +--------------------------------------+
//   settings ===>| pattern_source[] => example_tcp_link |====> m_axis (to the MAC)
//   status <=====|                                      |<==== s_mac (from the MAC)
//                +--------------------------------------+
//         user_clk                tx_clk, rx_clk
//
// A stream is closed when its source has sent its limit of words (0: no limit). Random sources: stream i begins with seed +
// i. SIMULATED, counters: see example_tcp_link.
`default_nettype none
module example_tcp #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 4,
    parameter int BITS = 17,
    parameter int SIMULATED = 1,
    parameter int TX_KHZ = 125_000
) (
    input  logic                   rst,
    input  example_pkg::settings_t settings,
    input  logic                   enable,
    input  logic                   user_clk,
    input  logic                   tx_clk,
    output logic                   tx_rst,
    output link_pkg::frame_t       m_axis,
    input  logic                   m_axis_tready,
    input  logic                   m_axis_start,
    output example_pkg::status_t   status,
    input  logic                   rx_clk,
    output logic                   rx_rst,
    input  link_pkg::frame_t       s_mac,
    input  link_pkg::mac_stat_t    mac_stat
);
  logic user_rst;
  logic [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] s_axis;
  logic [STREAMS-1:0] s_axis_tready, user_running, done;

  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    link_pkg::words_t words;
    logic [31:0] taken;
    pattern_source source (
        .clk          (user_clk),
        .rst          (user_rst),
        .running      (user_running[i]),
        .random       (settings.source.random),
        .seed         (settings.source.seed + 64'(i)),
        .gap          (settings.source.gap),
        .limit        (settings.source.limit),
        .block        (settings.source.block),
        .m_axis_tdata (words.tdata),
        .m_axis_tvalid(words.tvalid),
        .m_axis_tready(s_axis_tready[i]),
        .m_axis_tlast (words.tlast)
    );
    assign s_axis[i] = words;
    always_ff @(posedge user_clk) begin
      if (user_rst) taken <= '0;
      else if (words.tvalid && s_axis_tready[i]) taken <= taken + 32'd1;
      done[i] <= settings.source.limit != '0 && taken == settings.source.limit;
    end
  end

  example_tcp_link #(
      .WIDTH  (WIDTH),
      .STREAMS(STREAMS),
      .BITS   (BITS),
      .SIMULATED(SIMULATED),
      .TX_KHZ(TX_KHZ)
  ) link (
      .streams(settings.streams),
      .*
  );

  logic unused;
  assign unused = m_axis_start;
endmodule
`default_nettype wire
