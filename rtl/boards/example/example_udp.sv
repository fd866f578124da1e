// SPDX-License-Identifier: Apache-2.0
//
// Example design of the UDP/IP stack: the stream of a pattern source, and registers.
//
//                +-----------------------------+
//   settings ===>| pattern_source =>           |====> m_axis (to the MAC)
//                |                  udp_core   |<---- m_axis_start
//   status <=====| registers <====>            |<==== s_mac (from the MAC)
//                +-----------------------------+
//         user_clk                tx_clk, rx_clk
//
// A run ends after `source.limit` words (0: no limit) or when slow control disables the stream; the next one begins when it
// is enabled again.
//
// Registers: 0 scratch, 1 accumulator (a write adds, a read returns the sum), 2 words of a run, 3 idle clocks after each
// word, 4 words of a block (0: no blocks), 5 the PHY and its link (mac_pkg::phy_t, read only). SIMULATED: because simulated
// time is slow, a millisecond of the core is 10 us, and a PTP master sends 1024 Sync a second.
//
// status.counters: of the core, then the frames that the MAC dropped.
`default_nettype none
module example_udp #(
    parameter int WIDTH = 8,
    parameter int SIMULATED = 1,
    parameter int TX_KHZ = 125_000
) (
    input  logic                          rst,
    input  example_pkg::settings_t        settings,
    input  logic                   [31:0] phy_status,
    input  logic                          enable,
    input  logic                          user_clk,
    input  logic                          tx_clk,
    output logic                          tx_rst,
    output link_pkg::frame_t              m_axis,
    input  logic                          m_axis_tready,
    input  logic                          m_axis_start,
    output example_pkg::status_t          status,
    input  logic                          rx_clk,
    output logic                          rx_rst,
    input  link_pkg::frame_t              s_mac,
    input  link_pkg::mac_stat_t           mac_stat
);
  logic user_rst;

  // ---- registers -----------------------------------------------------------------------------
  logic reg_valid, reg_write;
  logic [31:0] reg_address, reg_wdata;
  logic [4:0][31:0] registers;
  // A clock later: the core's next access takes longer to come.
  logic [4:0] written;
  logic [31:0] value;
  always_ff @(posedge tx_clk) begin
    value <= reg_wdata;
    for (int i = 0; i < 5; i++) begin
      written[i] <= reg_valid && reg_write && reg_address == 32'(i);
      if (written[i]) registers[i] <= i == 1 ? registers[i] + value : value;
    end
    if (tx_rst)
      registers <= {
        16'd0, settings.source.block, 16'd0, settings.source.gap, settings.source.limit, 64'd0
      };
  end

  // ---- source --------------------------------------------------------------------------------
  // The settings stand still while the stream runs.
  link_pkg::words_t words;
  logic words_tready, user_running, done, done_tx, enabled, user_enabled;
  logic [31:0] taken;
  pattern_source source (
      .clk          (user_clk),
      .rst          (user_rst),
      .running      (user_running),
      .random       (settings.source.random),
      .seed         (settings.source.seed),
      .gap          (registers[3][15:0]),
      .limit        (registers[2]),
      .block        (registers[4][15:0]),
      .m_axis_tdata (words.tdata),
      .m_axis_tvalid(words.tvalid),
      .m_axis_tready(words_tready),
      .m_axis_tlast (words.tlast)
  );
  sync_bits sync_enabled (
      .clk(user_clk),
      .d  (enabled),
      .q  (user_enabled)
  );
  sync_bits sync_done (
      .clk(tx_clk),
      .d  (done),
      .q  (done_tx)
  );
  always_ff @(posedge user_clk) begin
    if (words.tvalid && words_tready) taken <= taken + 32'd1;
    if (registers[2] != '0 && taken == registers[2]) done <= 1'b1;
    if (user_rst || !user_enabled) begin
      taken <= '0;
      done  <= 1'b0;
    end
  end

  // ---- core ----------------------------------------------------------------------------------
  logic status_path, status_active, status_accepted, status_valid;
  logic [31:0] status_value, udp_ip;
  logic [15:0] udp_port;
  logic [2:0] udp_stream;
  link_pkg::frame_t udp;
  ptp_pkg::status_t status_time;
  udp_pkg::events_t events;
  logic [udp_pkg::COUNTERS-1:0][31:0] counts;
  logic [link_pkg::MAC_STATS*16-1:0] status_mac;
  udp_core #(
      .WIDTH      (WIDTH),
      .ECHO_BYTES (16384),
      .TICK_CLOCKS(SIMULATED != 0 ? TX_KHZ / 100 : TX_KHZ),
      .PERIOD     (38'((64'd1_000_000 << 32) / 64'(TX_KHZ))),
      .SYNC_CLOCKS(SIMULATED != 0 ? (TX_KHZ * 125 + 64) / 128 : TX_KHZ * 1000),
      .SYNC_LOG   (SIMULATED != 0 ? -10 : 0),
      .STATUS     (1)
  ) core (
      .enable(enable && !done_tx),
      .mac_address(settings.mac_address),
      .ip(settings.ip),
      .peer_mac('0),
      .peer_port(settings.peer_port),
      .local_port(settings.local_port),
      .payload(settings.payload),
      .checksum(settings.checksum),
      .start(settings.start),
      .ptp_role(settings.ptp_role),
      .s_axis(words),
      .s_axis_tready(words_tready),
      .m_udp(udp),
      .m_udp_stream(udp_stream),
      .m_udp_ip(udp_ip),
      .m_udp_port(udp_port),
      .status_index('0),
      .status_request(1'b0),
      .status_enabled(enabled),
      .reg_ready(1'b1),
      .reg_error(reg_address > 32'd5 || (reg_write && reg_address == 32'd5)),
      .reg_rdata     (reg_address > 32'd5 ? '0 : reg_address == 32'd5 ? phy_status : registers[reg_address[2:0]]),
      .*
  );

  event_counters #(
      .EVENTS(udp_pkg::COUNTERS)
  ) counters (
      .clk  (tx_clk),
      .clear(tx_rst),
      .pulse(events),
      .count(counts)
  );
  logic [31:0] mac_dropped;
  always_comb begin
    mac_dropped = '0;
    for (int i = 0; i < link_pkg::MAC_STATS; i++) mac_dropped += 32'(status_mac[i*16+:16]);
  end
  localparam logic [(example_pkg::COUNTERS-udp_pkg::COUNTERS-1)*32-1:0] UNUSED = '0;
  assign status = {
    status_active, status_path, counts[0], 96'd0, status_time, UNUSED, mac_dropped, counts
  };

  logic unused;
  assign unused = &{1'b0, settings, m_axis_tready, status_accepted, status_valid, status_value, udp, udp_stream, udp_ip, udp_port};
endmodule
`default_nettype wire
