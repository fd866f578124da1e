// SPDX-License-Identifier: Apache-2.0
//
// The simulated board: a design, its MAC, and a pin for each setting.
//
//               +---------------------------------------+
//   settings ==>|  example_fade  |                      |
//               |  example_tcp   |  <==>  gmii_mac,     |====> gmii_tx*, or xgmii_tx*
//   status <====|  example_udp   |        or xgmii_mac  |<==== gmii_rx*, or xgmii_rx*
//               |  example_fadc  |                      |
//               +---------------------------------------+
//      user_clk                       tx_clk, rx_clk
//
// DESIGN: one of example_pkg; WIDTH: 8 with GMII (gmii_*_ce as in gmii_mac), 64 with XGMII; the pins of the other interface are idle. The other
// parameters belong to the designs that have them. With PTP there is a PTP port between the design and the MAC, and its
// time in the user clock of 125 MHz is given to the design; the UDP/IP stack has its own. The three clocks may be
// unrelated. Settings are stable while a design runs; `enable_pin` low closes connections, or ends the stream; a rising
// edge of `pulse_pin` makes a pulse in the detector of a crate. The ports of a design have the names of signals here, so a
// real board is this module with constants for its settings (rtl/boards/common/board_design.sv). SIMULATED: times of the
// protocols are shorter. CHECKSUM: see fade_core. TX_KHZ: of tx_clk.
`default_nettype none
module example_board #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int WIDTH = 64,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 32,
    parameter int CRATE = 0,
    parameter int STREAMS = 4,
    parameter int BITS = 17,
    parameter int LINKS = 1,
    parameter int BUFFER_BITS = 16,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int PTP = 0,
    parameter int SIMULATED = 1,
    parameter int CHECKSUM = SIMULATED,
    parameter int TX_KHZ = WIDTH == 8 ? 125_000 : 156_250
) (
    input logic        rst,
    input logic        enable_pin,
    input logic [47:0] mac_address,
    input logic        source_random,
    input logic [63:0] source_seed,
    input logic [31:0] source_limit,
    input logic [15:0] source_gap,
    input logic [15:0] source_block,
    input logic [31:0] first_packet,
    input logic [31:0] first_sequence,
    input logic        paper_rule,
    input logic [31:0] ip_address,
    input logic [31:0] ip_mask,
    input logic [31:0] ip_gateway,
    input logic [31:0] peer_ip,
    input logic [15:0] peer_port,
    input logic [15:0] local_port,
    input logic [13:0] mtu,
    input logic        push,
    input logic        ecn,
    input logic        sack,
    input logic [ 2:0] streams,
    input logic [13:0] payload,
    input logic        checksum,
    input logic        start,
    input logic [ 1:0] ptp_role,
    input logic [31:0] source_id,
    input logic [63:0] first_window,
    input logic [63:0] first_sec,
    input logic [31:0] first_nsec,
    input logic [17:0] window_ticks,
    input logic [23:0] keepalive,
    input logic [31:0] windows,
    input logic [15:0] module_enable,
    input logic [31:0] pulse_seed,
    input logic [19:0] pulse_rate,
    input logic [19:0] burst_rate,
    input logic [31:0] burst_every,
    input logic [31:0] burst_ticks,
    input logic [ 3:0] noise,
    input logic        pulse_pin,
    input logic [31:0] phy_status,

    input  logic              user_clk,
    input  logic              tx_clk,
    input  logic              gmii_tx_ce,
    output logic [ 7:0]       gmii_txd,
    output logic              gmii_tx_en,
    output logic              gmii_tx_er,
    output logic [63:0]       xgmii_txd,
    output logic [ 7:0]       xgmii_txc,
    output logic              running,
    output logic              path,
    output logic [31:0]       status_sent,
    output logic [31:0]       status_retransmitted,
    output logic [31:0]       status_early,
    output logic [31:0]       status_delay,
    output logic [28:0][31:0] counters,
    output logic [79:0]       ptp_now,
    output logic              ptp_pps,
    output logic              ptp_locked,
    output logic [31:0]       ptp_offset,
    output logic [31:0]       ptp_delay,
    output logic [31:0]       ptp_rate,
    input  logic              rx_clk,
    input  logic              gmii_rx_ce,
    input  logic [ 7:0]       gmii_rxd,
    input  logic              gmii_rx_dv,
    input  logic              gmii_rx_er,
    input  logic [63:0]       xgmii_rxd,
    input  logic [ 7:0]       xgmii_rxc
);
  // ---- pins ----------------------------------------------------------------------------------
  example_pkg::source_t source;
  example_pkg::crate_t  crate;
  example_pkg::settings_t settings_pins, settings;
  net_pkg::ip_t ip;
  logic enable;
  example_pkg::status_t status;
  assign source = {source_random, source_seed, source_limit, source_gap, source_block};
  assign crate = {
    source_id,
    first_window,
    first_sec,
    first_nsec,
    window_ticks,
    keepalive,
    windows,
    module_enable,
    pulse_seed,
    pulse_rate,
    burst_rate,
    burst_every,
    burst_ticks,
    noise
  };
  assign ip = {ip_address, ip_mask, ip_gateway, peer_ip};
  assign settings_pins = {
    mac_address,
    source,
    crate,
    first_packet,
    first_sequence,
    paper_rule,
    ip,
    peer_port,
    local_port,
    mtu,
    push,
    ecn,
    sack,
    streams,
    payload,
    checksum,
    start,
    ptp_role
  };
  // As from switches: nothing behind hangs on a pin. (A simulator would run all such logic at every edge of any clock.)
  cdc_register #(
      .WIDTH($bits(settings))
  ) switches (
      .clk (user_clk),
      .load(1'b1),
      .d   (settings_pins),
      .q   (settings)
  );
  always_ff @(posedge user_clk) enable <= enable_pin;
  assign {running, path} = {status.running, status.path};
  assign {status_sent, status_retransmitted} = {status.sent, status.retransmitted};
  assign {status_early, status_delay} = {status.early, status.delay};
  // A detector's pulse comes at any time.
  logic pulse;
  sync_bits pulse_in (
      .clk(user_clk),
      .d  (pulse_pin),
      .q  (pulse)
  );

  // ---- MAC -----------------------------------------------------------------------------------
  logic tx_rst, rx_rst, m_axis_tready, m_axis_start;
  link_pkg::frame_t m_axis, s_mac;
  link_pkg::mac_stat_t mac_stat;

  if (WIDTH == 8) begin : g_gmii
    link_pkg::gmii_t gmii_tx, gmii_rx;
    assign gmii_rx = {gmii_rxd, gmii_rx_dv, gmii_rx_er};
    assign {gmii_txd, gmii_tx_en, gmii_tx_er} = gmii_tx;
    assign {xgmii_txd, xgmii_txc} = '0;
    gmii_mac mac (
        .s_axis       (m_axis),
        .s_axis_tready(m_axis_tready),
        .s_axis_start (m_axis_start),
        .tx_ce        (gmii_tx_ce),
        .rx_ce        (gmii_rx_ce),
        .m_axis       (s_mac),
        .*
    );
    logic unused;
    assign unused = &{1'b0, xgmii_rxd, xgmii_rxc};
  end else begin : g_xgmii
    link_pkg::xgmii_t xgmii_tx, xgmii_rx;
    assign xgmii_rx = {xgmii_rxd, xgmii_rxc};
    assign {xgmii_txd, xgmii_txc} = xgmii_tx;
    assign {gmii_txd, gmii_tx_en, gmii_tx_er} = '0;
    logic paused;
    xgmii_mac mac (
        .s_axis       (m_axis),
        .s_axis_tready(m_axis_tready),
        .s_axis_start (m_axis_start),
        .paused       (paused),
        .m_axis       (s_mac),
        .*
    );
    logic unused;
    assign unused = &{1'b0, paused, gmii_tx_ce, gmii_rx_ce, gmii_rxd, gmii_rx_dv, gmii_rx_er};
  end

  // ---- PTP beside the data -------------------------------------------------------------------
  link_pkg::frame_t m_core;
  logic m_core_tready, m_core_start, time_locked;
  ptp_pkg::time_t   time_now;
  ptp_pkg::status_t clock;
  assign {ptp_now, ptp_pps, ptp_locked, ptp_offset, ptp_delay, ptp_rate} = clock;
  if (PTP != 0) begin : g_ptp
    localparam logic [37:0] PERIOD = 38'((64'd1_000_000 << 32) / 64'(TX_KHZ));
    localparam logic [37:0] SAMPLES_PERIOD = 38'd8 << 32;  // of two samples
    // 8192 Sync a second if simulated time is dear.
    localparam int SECOND = TX_KHZ * 1000;
    localparam int SYNC_CLOCKS = SIMULATED != 0 ? (SECOND + 4096) / 8192 : SECOND;
    localparam int SYNC_LOG = SIMULATED != 0 ? -13 : 0;
    ptp_pkg::events_t ptp_events;
    logic ptp_ready, ptp_error;
    logic [31:0] ptp_rdata;
    ptp_node #(
        .WIDTH      (WIDTH),
        .PERIOD     (PERIOD),
        .SYNC_CLOCKS(SYNC_CLOCKS),
        .SYNC_LOG   (SYNC_LOG)
    ) node (
        .mac_address  (mac_address),
        .role         (ptp_role),
        .tx_clk       (tx_clk),
        .tx_rst       (tx_rst),
        .s_axis       (m_core),
        .s_axis_tready(m_core_tready),
        .s_axis_start (m_core_start),
        .m_axis       (m_axis),
        .m_axis_tready(m_axis_tready),
        .m_axis_start (m_axis_start),
        .status       (clock),
        .events       (ptp_events),
        .reg_valid    (1'b0),
        .reg_write    (1'b0),
        .reg_index    ('0),
        .reg_wdata    ('0),
        .reg_ready    (ptp_ready),
        .reg_error    (ptp_error),
        .reg_rdata    (ptp_rdata),
        .rx_clk       (rx_clk),
        .rx_rst       (rx_rst),
        .s_mac        (s_mac)
    );
    logic user_rst;
    sync_reset user_reset (
        .clk    (user_clk),
        .rst_in (rst),
        .rst_out(user_rst)
    );
    ptp_follower #(
        .PERIOD       (SAMPLES_PERIOD),
        .SOURCE_PERIOD(PERIOD)
    ) follower (
        .s_clk   (tx_clk),
        .s_rst   (tx_rst),
        .s_time  (clock.now),
        .s_locked(clock.locked),
        .clk     (user_clk),
        .rst     (user_rst),
        .now     (time_now),
        .locked  (time_locked)
    );
    logic [ptp_pkg::EVENTS-1:0][31:0] ptp_counts;
    event_counters #(
        .EVENTS(ptp_pkg::EVENTS)
    ) ptp_counters (
        .clk  (tx_clk),
        .clear(tx_rst),
        .pulse(ptp_events),
        .count(ptp_counts)
    );
    assign counters = {ptp_counts, status.counters[(example_pkg::COUNTERS-ptp_pkg::EVENTS)*32-1:0]};
    logic unused;
    assign unused = &{1'b0, ptp_ready, ptp_error, ptp_rdata, status.clock};
  end else begin : g_no_ptp
    assign m_axis = m_core;
    assign {m_core_tready, m_core_start} = {m_axis_tready, m_axis_start};
    assign {time_now, time_locked} = '0;
    assign clock = status.clock;
    assign counters = status.counters;
  end

  logic unused_time;
  assign unused_time = &{1'b0, pulse, time_now, time_locked, phy_status};

  // ---- design --------------------------------------------------------------------------------
  case (DESIGN)
    example_pkg::FADE: begin : g_fade
      example_fade #(
          .WIDTH   (WIDTH),
          .PROTOCOL(PROTOCOL),
          .PACKETS (PACKETS),
          .CRATE   (CRATE),
          .MODULES (MODULES),
          .CHANNELS(CHANNELS),
          .PTP     (PTP),
          .CHECKSUM(CHECKSUM)
      ) example (
          .m_axis       (m_core),
          .m_axis_tready(m_core_tready),
          .m_axis_start (m_core_start),
          .*
      );
    end
    example_pkg::TCP: begin : g_tcp
      example_tcp #(
          .WIDTH  (WIDTH),
          .STREAMS(STREAMS),
          .BITS   (BITS),
          .SIMULATED(SIMULATED),
          .TX_KHZ(TX_KHZ)
      ) example (
          .m_axis       (m_core),
          .m_axis_tready(m_core_tready),
          .m_axis_start (m_core_start),
          .*
      );
    end
    example_pkg::UDP: begin : g_udp
      example_udp #(
          .WIDTH(WIDTH),
          .SIMULATED(SIMULATED),
          .TX_KHZ(TX_KHZ)
      ) example (
          .m_axis       (m_core),
          .m_axis_tready(m_core_tready),
          .m_axis_start (m_core_start),
          .*
      );
    end
    example_pkg::FADC: begin : g_fadc
      example_fadc #(
          .WIDTH      (WIDTH),
          .LINKS      (LINKS),
          .MODULES    (MODULES),
          .CHANNELS   (CHANNELS),
          .BUFFER_BITS(BUFFER_BITS),
          .BITS       (BITS),
          .PTP        (PTP),
          .SIMULATED  (SIMULATED),
          .TX_KHZ     (TX_KHZ)
      ) example (
          .m_axis       (m_core),
          .m_axis_tready(m_core_tready),
          .m_axis_start (m_core_start),
          .*
      );
    end
    default:
    begin : g_check
      $error("example_board: DESIGN must be 0 (FADE), 1 (TCP), 2 (UDP) or 3 (FADC)");
    end
  endcase
endmodule
`default_nettype wire
