// SPDX-License-Identifier: Apache-2.0
//
// fadc_core with AXI4-Stream and AXI4-Lite on its sides, and its burst buffers in block RAM (one clock).
//
//                  +----------------------+
//   samples ======>| fadc_core            |====> m_axis_* (messages, a stream for each link)
//   s_axil_* <====>| fadc_csr: registers  |
//                  +----------------------+
//
// Names and handshakes are those of the AMBA specifications; resets are active high. samples: from the converters in
// each clock, as fadc_core has them, module 0 in the lowest bits. m_axis: words of 64 bits, that of link i in bits
// 64 i to 64 i + 63; tlast ends a message. s_axil: docs/registers.md. For another memory use fadc_core in place of
// this module.
`default_nettype none
module fadc_axi #(
    parameter int SAMPLES = 2,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int LINKS = 1,
    parameter int BITS = 12,
    parameter int WINDOWS = 512,
    parameter int INBOX = 512,
    parameter int FOLLOW = 0
) (
    input logic clk,
    input logic rst,
    input logic [MODULES*SAMPLES*CHANNELS*12-1:0] samples,
    input logic [79:0] time_now,
    input logic time_locked,
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
    output logic [LINKS*64-1:0] m_axis_tdata,
    output logic [LINKS-1:0] m_axis_tvalid,
    input logic [LINKS-1:0] m_axis_tready,
    output logic [LINKS-1:0] m_axis_tlast
);
  localparam int COUNTERS = 9;
  localparam int COUNTER_BITS = 4;

  // ---- registers -----------------------------------------------------------------------------
  fadc_csr_pkg::fadc__in_t  csr_in;
  fadc_csr_pkg::fadc__out_t csr;
  fadc_csr registers (
      .clk     (clk),
      .rst     (rst),
      .hwif_in (csr_in),
      .hwif_out(csr),
      .*
  );
  logic bad_window;
  logic [LINKS-1:0] running, idle;
  logic [LINKS-1:0][COUNTERS*32-1:0] counters;
  assign csr_in.version.value.next = fadc_pkg::CORE_VERSION;
  assign csr_in.status.running.next = 4'(running);
  assign csr_in.status.idle.next = 4'(idle);
  assign csr_in.status.bad_window.next = bad_window;

  // A counter is read a clock after its request.
  logic [1:0] link;
  logic [COUNTER_BITS-1:0] counter;
  logic [15:0][31:0] of_link;
  logic read_ack, write_ack;  // a write does nothing
  logic [31:0] read_value;
  assign {link, counter} = csr.counters.addr[7:2];
  assign of_link = 512'(counters[link[($clog2(LINKS)>0?$clog2(LINKS) : 1)-1:0]]);
  always_ff @(posedge clk) begin
    {read_ack, write_ack} <= {2{!rst && csr.counters.req}} & {!csr.counters.req_is_wr, csr.counters.req_is_wr};
    read_value <= 32'(link) < LINKS ? of_link[counter] : '0;
  end
  assign csr_in.counters = {read_ack, read_value, write_ack};

  // ---- buffers -------------------------------------------------------------------------------
  logic [LINKS-1:0] write_valid, write_ready, read_valid, read_ready, data_valid;
  logic [LINKS-1:0][BITS-1:0] write_address, read_address;
  logic [LINKS-1:0][63:0] write_data, data;
  logic [LINKS-1:0][link_pkg::WORDS_BITS-1:0] messages;
  for (genvar i = 0; i < LINKS; i++) begin : g_link
    assign {m_axis_tdata[i*64+:64], m_axis_tvalid[i], m_axis_tlast[i]} = messages[i];
    fadc_memory #(
        .BITS(BITS)
    ) buffer (
        .clk          (clk),
        .rst          (rst),
        .write_valid  (write_valid[i]),
        .write_ready  (write_ready[i]),
        .write_address(write_address[i]),
        .write_data   (write_data[i]),
        .read_valid   (read_valid[i]),
        .read_ready   (read_ready[i]),
        .read_address (read_address[i]),
        .data_valid   (data_valid[i]),
        .data         (data[i])
    );
  end

  // ---- core ----------------------------------------------------------------------------------
  logic event_off;
  logic [31:0] version;
  fadc_core #(
      .SAMPLES (SAMPLES),
      .MODULES (MODULES),
      .CHANNELS(CHANNELS),
      .LINKS   (LINKS),
      .BITS    (BITS),
      .WINDOWS (WINDOWS),
      .INBOX   (INBOX),
      .FOLLOW  (FOLLOW)
  ) core (
      .start               (csr.control.start.value),
      .enable              (csr.control.enable.value),
      .source_id           (csr.source_id.value.value),
      .start_record        ({csr.record_high.value.value, csr.record_low.value.value}),
      .start_sec           ({csr.seconds_high.value.value, csr.seconds_low.value.value}),
      .start_nsec          (csr.nanoseconds.value.value),
      .window_ticks        (csr.window_ticks.value.value),
      .timeout             (csr.timeout.value.value),
      .keepalive           (csr.keepalive.value.value),
      .limit               (csr.limit.value.value),
      .module_enable       (csr.modules.enable.value[MODULES-1:0]),
      .follow              (csr.control.follow.value),
      .config_valid        (csr.configuration.apply.value),
      .config_all          (csr.configuration.every.value),
      .config_module       (csr.configuration.which.value),
      .config_channel      (csr.configuration.channel.value),
      .config_item         (csr.configuration.item.value),
      .config_value        (csr.configuration.value.value),
      .m_axis              (messages),
      .memory_write_valid  (write_valid),
      .memory_write_ready  (write_ready),
      .memory_write_address(write_address),
      .memory_write_data   (write_data),
      .memory_read_valid   (read_valid),
      .memory_read_ready   (read_ready),
      .memory_read_address (read_address),
      .memory_data_valid   (data_valid),
      .memory_data         (data),
      .*
  );

  logic unused;
  assign unused = &{1'b0, csr, version, event_off};
endmodule
`default_nettype wire
