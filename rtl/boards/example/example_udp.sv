// Example design of the UDP/IP stack: the stream of a pattern source, and registers, without a MAC.
//
//                    +-------------+
//   settings =======>| example_udp |====> m_axis_* (to the MAC)
//   mac_stat =======>|             |<==== s_mac_* (from the MAC)
//                    +-------------+
//         user_clk                tx_clk, rx_clk
//
// A run ends after `source_limit` words (0: never) or when the slow control disables the stream; the next
// one begins when it is enabled again.
//
// Registers: 0 scratch, 1 accumulator (a write adds, a read answers the sum), 2 words of a run, 3 idle clocks after
// each word, 4 words of a block (0: none).
// A millisecond of the core is a hundredth of one, and a PTP master sends 1024 Sync a second: simulated time is dear.
//
// counters: of the core, then the frames that the MAC dropped.
module example_udp #(
    parameter int WIDTH = 8,
    parameter int COUNTERS = 24
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
    input  logic [       13:0]       payload,
    input  logic                     checksum,
    input  logic                     start,
    input  logic                     enable,
    input  logic [        1:0]       ptp_role,
    input  logic                     source_random,
    input  logic [       63:0]       source_seed,
    input  logic [       31:0]       source_limit,
    input  logic [       15:0]       source_gap,
    input  logic [       15:0]       source_block,
    output logic                     running,
    output logic                     path,
    output logic [       79:0]       ptp_now,
    output logic                     ptp_pps,
    output logic                     ptp_locked,
    output logic [       31:0]       ptp_offset,
    output logic [       31:0]       ptp_delay,
    output logic [       31:0]       ptp_rate,
    output logic [ COUNTERS:0][31:0] counters,
    input  logic                     tx_clk,
    output logic                     tx_rst,
    output logic [  WIDTH-1:0]       m_axis_tdata,
    output logic [WIDTH/8-1:0]       m_axis_tkeep,
    output logic                     m_axis_tvalid,
    output logic                     m_axis_tlast,
    output logic                     m_axis_tuser,
    input  logic                     m_axis_start,
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
  sync_reset user_reset (
      .clk    (user_clk),
      .rst_in (rst),
      .rst_out(user_rst)
  );
  sync_reset tx_reset (
      .clk    (tx_clk),
      .rst_in (rst),
      .rst_out(tx_rst)
  );
  sync_reset rx_reset (
      .clk    (rx_clk),
      .rst_in (rst),
      .rst_out(rx_rst)
  );

  // ---- registers -----------------------------------------------------------------------------
  logic reg_valid, reg_write;
  logic [31:0] reg_address, reg_wdata;
  logic [4:0][31:0] registers;
  always_ff @(posedge tx_clk) begin
    if (reg_valid && reg_write) begin
      case (reg_address)
        32'd0:   registers[0] <= reg_wdata;
        32'd1:   registers[1] <= registers[1] + reg_wdata;
        32'd2:   registers[2] <= reg_wdata;
        32'd3:   registers[3] <= reg_wdata;
        32'd4:   registers[4] <= reg_wdata;
        default: ;
      endcase
    end
    if (tx_rst) registers <= {16'd0, source_block, 16'd0, source_gap, source_limit, 64'd0};
  end

  // ---- source --------------------------------------------------------------------------------
  // The settings stand still while the stream runs.
  logic [63:0] tdata;
  logic tvalid, tready, tlast, user_running, done, done_tx, enabled, user_enabled;
  logic [31:0] taken;
  pattern_source source (
      .clk          (user_clk),
      .rst          (user_rst),
      .running      (user_running),
      .random       (source_random),
      .seed         (source_seed),
      .gap          (registers[3][15:0]),
      .limit        (registers[2]),
      .block        (registers[4][15:0]),
      .m_axis_tdata (tdata),
      .m_axis_tvalid(tvalid),
      .m_axis_tready(tready),
      .m_axis_tlast (tlast)
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
    if (tvalid && tready) taken <= taken + 32'd1;
    if (registers[2] != '0 && taken == registers[2]) done <= 1'b1;
    if (user_rst || !user_enabled) begin
      taken <= '0;
      done  <= 1'b0;
    end
  end

  // ---- core ----------------------------------------------------------------------------------
  udp_core #(
      .WIDTH   (WIDTH),
      .ECHO_BYTES(16384),
      .TICK_CLOCKS(WIDTH == 8 ? 1250 : 1562),
      .SYNC_CLOCKS(WIDTH == 8 ? 122_070 : 152_588),
      .SYNC_LOG(-10),
      .COUNTERS(COUNTERS)
  ) core (
      .user_clk      (user_clk),
      .user_rst      (user_rst),
      .s_axis_tdata  (tdata),
      .s_axis_tvalid (tvalid),
      .s_axis_tready (tready),
      .s_axis_tlast  (tlast),
      .user_running  (user_running),
      .mac_address   (mac_address),
      .ip_address    (ip_address),
      .ip_mask       (ip_mask),
      .ip_gateway    (ip_gateway),
      .peer_ip       (peer_ip),
      .peer_port     (peer_port),
      .local_port    (local_port),
      .payload       (payload),
      .checksum      (checksum),
      .start         (start),
      .enable        (enable && !done_tx),
      .ptp_role      (ptp_role),
      .reg_valid     (reg_valid),
      .reg_write     (reg_write),
      .reg_address   (reg_address),
      .reg_wdata     (reg_wdata),
      .reg_ready     (1'b1),
      .reg_error     (reg_address > 32'd4),
      .reg_rdata     (reg_address > 32'd4 ? '0 : registers[reg_address[2:0]]),
      .tx_clk        (tx_clk),
      .tx_rst        (tx_rst),
      .m_axis_tdata  (m_axis_tdata),
      .m_axis_tkeep  (m_axis_tkeep),
      .m_axis_tvalid (m_axis_tvalid),
      .m_axis_tlast  (m_axis_tlast),
      .m_axis_tuser  (m_axis_tuser),
      .m_axis_start  (m_axis_start),
      .status_path   (path),
      .status_active (running),
      .status_enabled(enabled),
      .ptp_now       (ptp_now),
      .ptp_pps       (ptp_pps),
      .ptp_locked    (ptp_locked),
      .ptp_offset    (ptp_offset),
      .ptp_delay     (ptp_delay),
      .ptp_rate      (ptp_rate),
      .counters      (counters[COUNTERS-1:0]),
      .rx_clk        (rx_clk),
      .rx_rst        (rx_rst),
      .s_mac_tdata   (s_mac_tdata),
      .s_mac_tkeep   (s_mac_tkeep),
      .s_mac_tvalid  (s_mac_tvalid),
      .s_mac_tlast   (s_mac_tlast),
      .s_mac_tuser   (s_mac_tuser)
  );

  logic [3:0][15:0] mac_count;
  event_counters #(
      .EVENTS(4),
      .WIDTH (16)
  ) mac_stat_counters (
      .clk  (rx_clk),
      .clear(rx_rst),
      .pulse(mac_stat),
      .count(mac_count)
  );
  assign counters[COUNTERS] = 32'(mac_count[0]) + 32'(mac_count[1]) + 32'(mac_count[2]) + 32'(mac_count[3]);
endmodule
