// Example design of FADC streaming: generators of pulses, a crate, and the TCP sender, without a MAC.
//
//                +--------------+
//   settings ===>| example_fadc |====> m_axis_* (to the MAC)
//   mac_stat ===>|              |<==== s_mac_* (from the MAC)
//                +--------------+
//         user_clk                tx_clk, rx_clk
//
// user_clk is the clock of the samples. Each link is a TCP connection; time begins when all have
// been opened for the first time, and the connections are closed when `windows` windows (0: never)
// have been sent. Settings: see
// example_crate. counters: see example_tcp_link, then those of the links together, see fadc_link.
module example_fadc #(
    parameter int WIDTH = 64,
    parameter int LINKS = 1,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int BUFFER_BITS = 16,
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
    input  logic                     push,
    input  logic [       31:0]       source_id,
    input  logic [       63:0]       first_window,
    input  logic [       63:0]       first_sec,
    input  logic [       31:0]       first_nsec,
    input  logic [       17:0]       window_ticks,
    input  logic [       23:0]       keepalive,
    input  logic [       31:0]       windows,
    input  logic [       15:0]       module_enable,
    input  logic [       31:0]       pulse_seed,
    input  logic [       19:0]       pulse_rate,
    input  logic [       19:0]       burst_rate,
    input  logic [       31:0]       burst_every,
    input  logic [       31:0]       burst_ticks,
    input  logic [        3:0]       noise,
    output logic [       23:0][31:0] counters,
    output logic                     running,
    output logic [       31:0]       status_sent,
    output logic [       31:0]       status_retransmitted,
    output logic [       31:0]       status_early,
    output logic [       31:0]       status_delay,
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
  logic user_rst, start, started;
  logic [LINKS-1:0][63:0] tdata;
  logic [LINKS-1:0] tvalid, tready, tlast, user_running, done, link_running, idle;
  logic [14:0][31:0] link_counters;

  logic quiet;
  always_ff @(posedge user_clk) begin
    start <= !started && (&user_running);
    if (&user_running) started <= 1'b1;
    done <= (windows != '0 && quiet) ? idle & ~tvalid & link_running : '0;
    if (user_rst) begin
      start   <= 1'b0;
      started <= 1'b0;
    end
  end
  assign quiet = &idle;

  logic [LINKS-1:0][9*32-1:0] crate_counters;
  example_crate #(
      .LINKS      (LINKS),
      .MODULES    (MODULES),
      .CHANNELS   (CHANNELS),
      .BUFFER_BITS(BUFFER_BITS)
  ) crate (
      .clk          (user_clk),
      .rst          (user_rst),
      .m_axis_tdata (tdata),
      .m_axis_tvalid(tvalid),
      .m_axis_tready(tready),
      .m_axis_tlast (tlast),
      .running      (link_running),
      .counters     (crate_counters),
      .start        (start),
      .source_id    (source_id),
      .first_window (first_window),
      .first_sec    (first_sec),
      .first_nsec   (first_nsec),
      .window_ticks (window_ticks),
      .keepalive    (keepalive),
      .windows      (windows),
      .module_enable(module_enable),
      .pulse_seed   (pulse_seed),
      .pulse_rate   (pulse_rate),
      .burst_rate   (burst_rate),
      .burst_every  (burst_every),
      .burst_ticks  (burst_ticks),
      .noise        (noise),
      .idle         (idle)
  );

  example_tcp_link #(
      .WIDTH       (WIDTH),
      .STREAMS     (LINKS),
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
      .streams(3'(LINKS)),
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
      .counters(link_counters),
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

  assign counters[14:0] = link_counters;
  always_comb begin
    for (int i = 0; i < 9; i++) begin
      counters[15+i] = '0;
      for (int l = 0; l < LINKS; l++) counters[15+i] += crate_counters[l][i*32+:32];
    end
  end

endmodule
