// Example design of the TCP sender: streams of pattern sources, without a MAC.
//
//                    +-------------+
//   settings =======>| example_tcp |====> m_axis_* (to the MAC)
//   mac_stat =======>|             |<==== s_mac_* (from the MAC)
//                    +-------------+
//         user_clk                tx_clk, rx_clk
//
// Streams 0 to streams-1 open connections to peer_ip:peer_port. A stream whose source has given
// source_limit words (0: endless) is closed. Random sources: stream i begins with source_seed + i.
// counters: see example_tcp_link.
module example_tcp #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 4,
    parameter int BITS = 17,
    parameter int TIMEOUT_MIN = 500,
    parameter int TIMEOUT_INIT = 5_000,
    parameter int TIMEOUT_MAX = 100_000,
    parameter int RETRY = 2_000
) (
    input  logic                     rst,
    input  logic                     user_clk,
    input  logic [       47:0]       mac_address,
    input  logic [       31:0]       ip_address,
    input  logic [       31:0]       ip_mask,
    input  logic [       31:0]       ip_gateway,
    input  logic [       31:0]       peer_ip,
    input  logic [       15:0]       peer_port,
    input  logic [       15:0]       local_port,
    input  logic [       13:0]       mtu,
    input  logic [       31:0]       first_sequence,
    input  logic                     enable,
    input  logic [        2:0]       streams,
    input  logic                     source_random,
    input  logic [       63:0]       source_seed,
    input  logic [       31:0]       source_limit,
    input  logic [       15:0]       source_gap,
    input  logic [       15:0]       source_block,
    input  logic                     push,
    output logic                     running,
    output logic [       31:0]       status_sent,
    output logic [       31:0]       status_retransmitted,
    output logic [       31:0]       status_early,
    output logic [       31:0]       status_delay,
    output logic [       14:0][31:0] counters,
    input  logic                     tx_clk,
    output logic                     tx_rst,
    output logic [  WIDTH-1:0]       m_axis_tdata,
    output logic [WIDTH/8-1:0]       m_axis_tkeep,
    output logic                     m_axis_tvalid,
    input  logic                     m_axis_tready,
    output logic                     m_axis_tlast,
    output logic                     m_axis_tuser,
    input  logic                     rx_clk,
    output logic                     rx_rst,
    input  logic [  WIDTH-1:0]       s_mac_tdata,
    input  logic [WIDTH/8-1:0]       s_mac_tkeep,
    input  logic                     s_mac_tvalid,
    input  logic                     s_mac_tlast,
    input  logic                     s_mac_tuser,
    input  logic [        3:0]       mac_stat
);
  logic user_rst;
  logic [STREAMS-1:0][63:0] tdata;
  logic [STREAMS-1:0] tvalid, tready, tlast, user_running, done;

  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    logic [31:0] taken;
    pattern_source source (
        .clk          (user_clk),
        .rst          (user_rst),
        .running      (user_running[i]),
        .random       (source_random),
        .seed         (source_seed + 64'(i)),
        .gap          (source_gap),
        .limit        (source_limit),
        .block        (source_block),
        .m_axis_tdata (tdata[i]),
        .m_axis_tvalid(tvalid[i]),
        .m_axis_tready(tready[i]),
        .m_axis_tlast (tlast[i])
    );
    always_ff @(posedge user_clk) begin
      if (user_rst) taken <= '0;
      else if (tvalid[i] && tready[i]) taken <= taken + 32'd1;
      done[i] <= source_limit != '0 && taken == source_limit;
    end
  end

  example_tcp_link #(
      .WIDTH       (WIDTH),
      .STREAMS     (STREAMS),
      .BITS        (BITS),
      .TIMEOUT_MIN (TIMEOUT_MIN),
      .TIMEOUT_INIT(TIMEOUT_INIT),
      .TIMEOUT_MAX (TIMEOUT_MAX),
      .RETRY       (RETRY)
  ) link (
      .rst(rst),
      .user_clk(user_clk),
      .mac_address(mac_address),
      .ip_address(ip_address),
      .ip_mask(ip_mask),
      .ip_gateway(ip_gateway),
      .peer_ip(peer_ip),
      .peer_port(peer_port),
      .local_port(local_port),
      .mtu(mtu),
      .first_sequence(first_sequence),
      .enable(enable),
      .streams(streams),
      .push(push),
      .user_rst(user_rst),
      .s_axis_tdata(tdata),
      .s_axis_tvalid(tvalid),
      .s_axis_tready(tready),
      .s_axis_tlast(tlast),
      .user_running(user_running),
      .done(done),
      .running(running),
      .status_sent(status_sent),
      .status_retransmitted(status_retransmitted),
      .status_early(status_early),
      .status_delay(status_delay),
      .counters(counters),
      .tx_clk(tx_clk),
      .tx_rst(tx_rst),
      .m_axis_tdata(m_axis_tdata),
      .m_axis_tkeep(m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tlast(m_axis_tlast),
      .m_axis_tuser(m_axis_tuser),
      .rx_clk(rx_clk),
      .rx_rst(rx_rst),
      .s_mac_tdata(s_mac_tdata),
      .s_mac_tkeep(s_mac_tkeep),
      .s_mac_tvalid(s_mac_tvalid),
      .s_mac_tlast(s_mac_tlast),
      .s_mac_tuser(s_mac_tuser),
      .mac_stat(mac_stat)
  );
endmodule
