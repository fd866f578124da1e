// SPDX-License-Identifier: Apache-2.0
//
// udp_core with AXI4-Stream and AXI4-Lite on its sides.
//
//                  +-----------------------------------------+
//   s_axis_* =====>| udp_core           or with any MAC:     |====> m_axis_* (frames to the MAC)
//   (a stream each)|                    pull_to_axis         |<---- m_axis_start
//   s_axil_* <====>| udp_csr: registers                      |<==== s_mac_*  (frames from the MAC)
//                  | axil_master: user's registers           |<===> m_axil_*
//                  | datagrams that come                     |====> m_udp_*
//                  +-----------------------------------------+
//        user_clk                                tx_clk, rx_clk
//
// Names and handshakes are those of the AMBA specifications; resets are active high. s_axis: the streams, that of stream i
// in bits 64 i to 64 i + 63. s_axil: docs/registers.md. m_axil: slow control reads and writes the user's register n at the
// address 4 n, up to 2^14 of them. m_udp: with RECEIVE, see udp_receive; it has no tready. m_axis, s_mac, mac_stat: as in
// fade_axi.
//
// PULL = 0: m_axis is an AXI4-Stream for any MAC, out of a memory for one frame, and m_axis_start is ignored. PULL = 1: the
// MAC is one of ours, whose s_axis_start is m_axis_start, and there is no memory; m_axis_tready is ignored. PTP needs this, as a
// message is stamped when it leaves.
`default_nettype none
module udp_axi #(
    parameter int WIDTH = 8,
    parameter int STREAMS = 1,
    parameter int RECEIVE = 0,
    parameter int PAYLOAD_MAX = 8972,
    parameter int PULL = 0,  // 0: for any MAC; 1: for one of ours
    parameter int PTP = PULL,  // 1: with PTP, which needs PULL
    parameter int ECHO_BYTES = 2048,
    parameter int ARP = 1,
    parameter int TICK_CLOCKS = WIDTH == 8 ? 125_000 : 156_250
) (
    input logic rst,
    input logic user_clk,
    output logic user_rst,
    output logic [STREAMS-1:0] user_running,
    input logic [STREAMS*64-1:0] s_axis_tdata,
    input logic [STREAMS-1:0] s_axis_tvalid,
    output logic [STREAMS-1:0] s_axis_tready,
    input logic [STREAMS-1:0] s_axis_tlast,
    input logic [11:0] s_axil_awaddr,
    input logic [2:0] s_axil_awprot,
    input logic s_axil_awvalid,
    output logic s_axil_awready,
    input logic [31:0] s_axil_wdata,
    input logic [3:0] s_axil_wstrb,
    input logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input logic s_axil_bready,
    input logic [11:0] s_axil_araddr,
    input logic [2:0] s_axil_arprot,
    input logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input logic s_axil_rready,
    input logic tx_clk,
    output logic tx_rst,
    output logic [WIDTH-1:0] m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic m_axis_tvalid,
    input logic m_axis_tready,
    output logic m_axis_tlast,
    output logic m_axis_tuser,
    input logic m_axis_start,  // with PULL: s_axis_start of the MAC
    output logic [16-1:0] m_axil_awaddr,
    output logic [2:0] m_axil_awprot,
    output logic m_axil_awvalid,
    input logic m_axil_awready,
    output logic [31:0] m_axil_wdata,
    output logic [3:0] m_axil_wstrb,
    output logic m_axil_wvalid,
    input logic m_axil_wready,
    input logic [1:0] m_axil_bresp,
    input logic m_axil_bvalid,
    output logic m_axil_bready,
    output logic [16-1:0] m_axil_araddr,
    output logic [2:0] m_axil_arprot,
    output logic m_axil_arvalid,
    input logic m_axil_arready,
    input logic [31:0] m_axil_rdata,
    input logic [1:0] m_axil_rresp,
    input logic m_axil_rvalid,
    output logic m_axil_rready,
    output logic [WIDTH-1:0] m_udp_tdata,
    output logic [WIDTH/8-1:0] m_udp_tkeep,
    output logic m_udp_tvalid,
    output logic m_udp_tlast,
    output logic m_udp_tuser,
    output logic [2:0] m_udp_stream,
    output logic [31:0] m_udp_ip,
    output logic [15:0] m_udp_port,
    output logic [79:0] ptp_now,  // time of PTP: {seconds 48, nanoseconds 32}
    output logic ptp_pps,  // a pulse each second of it
    input logic rx_clk,
    output logic rx_rst,
    input logic [WIDTH-1:0] s_mac_tdata,
    input logic [WIDTH/8-1:0] s_mac_tkeep,
    input logic s_mac_tvalid,
    input logic s_mac_tlast,
    input logic s_mac_tuser,
    input logic [link_pkg::MAC_STATS-1:0] mac_stat
);
  localparam int HEADERS = 14 + 20 + 8;

  if (PTP != 0 && PULL == 0) begin : g_check
    $error("udp_axi: PTP needs PULL = 1 and the start of the MAC");
  end

  // ---- registers -----------------------------------------------------------------------------
  logic status_request, status_accepted, status_valid;
  logic [ 5:0] status_index;
  logic [31:0] status_value;
  logic csr_rst, core_rst, is_idle;
  sync_reset csr_reset (
      .clk    (user_clk),
      .rst_in (rst),
      .rst_out(csr_rst)
  );
  udp_csr_pkg::udp__in_t  csr_in;
  udp_csr_pkg::udp__out_t csr;
  udp_csr registers (
      .clk     (user_clk),
      .rst     (csr_rst),
      .hwif_in (csr_in),
      .hwif_out(csr),
      .*
  );
  always_ff @(posedge user_clk) {core_rst, is_idle} <= {2{csr_rst || !csr.control.enable.value}};
  ptp_pkg::status_t status_time;
  logic [STREAMS-1:0] status_path, status_active, status_enabled, path, active, enabled;
  logic [3*STREAMS:0] shown;
  always_ff @(posedge tx_clk)
    shown <= {
      status_time.locked, status_path, status_active, status_enabled
    };
  assign {ptp_now, ptp_pps} = {status_time.now, status_time.pps};
  sync_bits #(
      .WIDTH(1 + 3 * STREAMS)
  ) sync (
      .clk(user_clk),
      .d  (shown),
      .q  ({csr_in.status.ptp_locked.next, path, active, enabled})
  );
  // What stands still while the core works.
  logic [47:0] mac_address, peer_mac;
  net_pkg::ip_t ip;
  logic [15:0] first_local_port, first_peer_port;
  logic [13:0] payload;
  logic checksum;
  logic [1:0] ptp_role;
  logic [STREAMS-1:0] start;
  cdc_register #(
      .WIDTH(48 + 128 + 48 + 32 + 14 + 3 + STREAMS)
  ) settings (
      .clk(user_clk),
      .load(is_idle),
      .d({
        csr.mac_high.value.value,
        csr.mac_low.value.value,
        csr.address.value.value,
        csr.mask.value.value,
        csr.gateway.value.value,
        csr.peer.value.value,
        csr.peer_mac_high.value.value,
        csr.peer_mac_low.value.value,
        csr.ports.local_port.value,
        csr.ports.peer_port.value,
        csr.payload.value.value,
        csr.control.checksum.value,
        csr.control.ptp_role.value,
        csr.control.start.value[STREAMS-1:0]
      }),
      .q({
        mac_address,
        ip,
        peer_mac,
        first_local_port,
        first_peer_port,
        payload,
        checksum,
        ptp_role,
        start
      })
  );
  assign csr_in.version.value.next = udp_pkg::CORE_VERSION;
  assign csr_in.status.path.next = 8'(path);
  assign csr_in.status.active.next = 8'(active);
  assign csr_in.status.enabled.next = 8'(enabled);
  status_window #(
      .INDEX_BITS(6)
  ) window (
      .clk    (user_clk),
      .rst    (csr_rst),
      .enable (!core_rst),
      .request(csr.counters.req && !csr.counters.req_is_wr),
      .address(csr.counters.addr[7:2]),
      .ack    (csr_in.counters.rd_ack),
      .data   (csr_in.counters.rd_data),
      .*
  );
  // A write does nothing.
  logic write_ack;
  always_ff @(posedge user_clk) write_ack <= !csr_rst && csr.counters.req && csr.counters.req_is_wr;
  assign csr_in.counters.wr_ack = write_ack;

  // ---- user's registers ----------------------------------------------------------------------
  logic reg_valid, reg_write, reg_ready, reg_error, outside, bus_ready, bus_error;
  logic [31:0] reg_address, reg_wdata, bus_rdata;
  assign outside   = reg_address[31:14] != '0;
  assign reg_ready = bus_ready || outside;
  assign reg_error = bus_error || outside;
  axil_master #(
      .ADDRESS_BITS(16)
  ) bus (
      .clk        (tx_clk),
      .rst        (tx_rst),
      .bus_valid  (reg_valid && !outside),
      .bus_write  (reg_write),
      .bus_address(reg_address[13:0]),
      .bus_wdata  (reg_wdata),
      .*
  );

  // ---- frames ----------------------------------------------------------------------------------
  link_pkg::frame_t to_mac, from_mac;
  assign {m_axis_tdata, m_axis_tkeep} = {to_mac.tdata[WIDTH-1:0], to_mac.tkeep[WIDTH/8-1:0]};
  assign {m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {to_mac.tvalid, to_mac.tlast, to_mac.tuser};
  assign from_mac = {64'(s_mac_tdata), 8'(s_mac_tkeep), s_mac_tvalid, s_mac_tlast, s_mac_tuser};
  link_pkg::frame_t pulled;
  logic start_pull;
  if (PULL != 0) begin : g_pull
    assign to_mac = pulled;
    assign start_pull = m_axis_start;
    logic unused_ready;
    assign unused_ready = m_axis_tready;
  end else begin : g_stream_out
    // The longest frame: a datagram, or the answer to an echo request.
    pull_to_axis #(
        .WIDTH      (WIDTH),
        .FRAME_BYTES(HEADERS + (PAYLOAD_MAX > ECHO_BYTES ? PAYLOAD_MAX : ECHO_BYTES))
    ) pull (
        .clk          (tx_clk),
        .rst          (tx_rst),
        .s_pull       (pulled),
        .s_start      (start_pull),
        .m_axis       (to_mac),
        .m_axis_tready(m_axis_tready)
    );
    logic unused_start;
    assign unused_start = m_axis_start;
  end

  // ---- streams -------------------------------------------------------------------------------
  logic [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] words;
  logic [STREAMS-1:0][15:0] peer_port, local_port;
  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    assign words[i] = {s_axis_tdata[i*64+:64], s_axis_tvalid[i], s_axis_tlast[i]};
    assign peer_port[i] = first_peer_port + 16'(i);
    assign local_port[i] = first_local_port + 16'(i);
  end

  // ---- core ----------------------------------------------------------------------------------
  link_pkg::frame_t udp;
  assign {m_udp_tdata, m_udp_tkeep} = {udp.tdata[WIDTH-1:0], udp.tkeep[WIDTH/8-1:0]};
  assign {m_udp_tvalid, m_udp_tlast, m_udp_tuser} = {udp.tvalid, udp.tlast, udp.tuser};
  udp_pkg::events_t events;
  logic [link_pkg::MAC_STATS*16-1:0] status_mac;
  udp_core #(
      .WIDTH      (WIDTH),
      .STREAMS    (STREAMS),
      .RECEIVE    (RECEIVE),
      .PAYLOAD_MAX(PAYLOAD_MAX),
      .PTP        (PTP),
      .ECHO_BYTES (ECHO_BYTES),
      .ARP        (ARP),
      .TICK_CLOCKS(TICK_CLOCKS),
      .STATUS     (1)
  ) core (
      .rst         (core_rst),
      .enable      (1'b1),
      .s_axis      (words),
      .m_udp       (udp),
      .reg_rdata   (bus_rdata),
      .m_axis      (pulled),
      .m_axis_start(start_pull),
      .s_mac       (from_mac),
      .*
  );

  logic unused;
  assign unused = &{1'b0, csr, status_time, events, status_mac, to_mac, udp};
endmodule
`default_nettype wire
