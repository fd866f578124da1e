// SPDX-License-Identifier: Apache-2.0
//
// A PTP port of an ordinary clock (IEEE 1588-2008): over UDP or Ethernet, end to end or peer to peer.
//
//                    +----------------------------------------------+
//   s_udp_*, s_l2_* =>| ptp_receive --+                ptp_transmit =|====> data; request_udp, request_l2, start_*
//                    |               +-- ptp_machine --+            |
//   reg_* <=========>|                        |                     |
//                    |                    ptp_clock                 |====> now, pps, status
//                    +----------------------------------------------+
//
// The program ptp.asm implements the port. Its registers are in udp_pkg. PERIOD is the period of the clock in 2^-32 ns.
// s_valid, s_end: of all frames; the first word of a frame leaves the crossing. LAYER2: over Ethernet from reset on.
// Because layers pull, a message leaves a fixed time after its start.
`default_nettype none
module ptp_port #(
    parameter int WIDTH = 8,
    parameter logic [37:0] PERIOD = 38'd8 << 32,
    parameter int SYNC_CLOCKS = 125_000_000,  // from one Sync to the next, as a master: clocks
    parameter int SYNC_LOG = 0,  // the same in messages: 2^SYNC_LOG seconds
    parameter int LAYER2 = 0
) (
    input  logic                         clk,
    input  logic                         rst,
    input  logic             [     47:0] mac_address,
    input  logic             [     31:0] ip_address,
    input  logic             [      1:0] role,            // at reset
    output ptp_pkg::status_t             status,
    output logic                         open,            // messages are received
    output logic                         layer2,          // over Ethernet
    // registers
    input  logic                         reg_valid,
    input  logic                         reg_write,
    input  logic             [      4:0] reg_index,
    input  logic             [     31:0] reg_wdata,
    output logic                         reg_ready,
    output logic                         reg_error,
    output logic             [     31:0] reg_rdata,
    // from the wire
    input  logic                         s_valid,
    input  logic                         s_end,
    input  logic             [WIDTH-1:0] s_udp_data,
    input  logic             [      3:0] s_udp_count,
    input  logic                         s_udp_valid,
    input  logic                         s_udp_end,
    input  logic                         s_udp_good,
    input  logic             [WIDTH-1:0] s_l2_data,
    input  logic             [      3:0] s_l2_count,
    input  logic                         s_l2_valid,
    input  logic                         s_l2_end,
    input  logic                         s_l2_good,
    // to the wire
    output logic                         request_udp,
    output logic                         request_l2,
    output logic             [     13:0] length,
    output logic                         event_port,
    output logic                         to_peer,
    input  logic                         start,
    output logic             [WIDTH-1:0] data,
    // one pulse each
    output logic                         event_offset,
    output logic                         drop_malformed,
    output logic                         drop_ignored,
    output logic                         drop_full
);
  // Clocks, times ten, from the first byte behind the start delimiter on the wire to a frame's first word (half a clock of it is the
  // crossing's phase), and from a message's start back to that byte.
  localparam int PERIOD_PS = int'(PERIOD >> 22);  // nearly
  localparam int RX_LAG = 95 * PERIOD_PS / 10_240;
  localparam int TX_LEAD = (WIDTH == 8 ? 360 : -70) * PERIOD_PS / 10_240;
  localparam int TX_LEAD_L2 = (WIDTH == 8 ? 100 : -80) * PERIOD_PS / 10_240;
  localparam int CLOCKS_LOG = 27;  // of a second, nearly
  localparam int HOLD_NS = ptp_program_pkg::HOLD_CLOCKS * PERIOD_PS / 1024;

  // ---- machine -------------------------------------------------------------------------------
  logic [9:0] address;
  logic write;
  logic [15:0] wdata, rdata, message_word, io_word;
  ptp_machine #(
      .PARAMETERS({
        32'(SYNC_CLOCKS),
        32'(SYNC_LOG),
        48'(HOLD_NS),
        48'(RX_LAG),
        48'(TX_LEAD),
        48'(TX_LEAD_L2),
        16'(CLOCKS_LOG),
        32'(LAYER2)
      })
  ) machine (
      .clk    (clk),
      .rst    (rst),
      .window (reg_index),
      .address(address),
      .write  (write),
      .wdata  (wdata),
      .rdata  (rdata)
  );
  logic io_write, from_io, from_io_late;
  logic [4:0] io_address;
  // What is written stands a clock more.
  logic message_write;
  logic [5:0] index;
  always_ff @(posedge clk) begin
    io_write <= write && address[9:7] == 3'b110;
    message_write <= write && address[9:7] == 3'b101;
    index <= address[5:0];
  end
  assign io_address = index[4:0];
  assign rdata = from_io_late ? io_word : message_word;

  // ---- messages ------------------------------------------------------------------------------
  logic pending, busy, in_frame;
  always_ff @(posedge clk) begin
    if (s_valid || s_end) in_frame <= !s_end;
    if (rst) in_frame <= 1'b0;
  end
  logic [7:0] message_length;
  logic [47:0] arrival, departure;
  ptp_receive #(
      .WIDTH(WIDTH)
  ) receive (
      .clk      (clk),
      .rst      (rst),
      .now      (status.now[47:0]),
      .s_begin  (s_valid && !in_frame),
      .s_data   (layer2 ? s_l2_data : s_udp_data),
      .s_count  (layer2 ? s_l2_count : s_udp_count),
      .s_valid  (layer2 ? s_l2_valid : s_udp_valid),
      .s_end    (layer2 ? s_l2_end : s_udp_end),
      .s_good   (layer2 ? s_l2_good : s_udp_good),
      .drop_full(drop_full),
      .pending  (pending),
      .next     (io_write && io_address == ptp_program_pkg::IO_NEXT),
      .index    (address[5:0]),
      .word     (message_word),
      .length   (message_length),
      .arrival  (arrival)
  );
  ptp_transmit #(
      .WIDTH(WIDTH)
  ) transmit (
      .clk  (clk),
      .write(message_write),
      .index(index),
      .word (wdata),
      .start(start),
      .busy (busy),
      .data (data)
  );
  logic requested;
  assign request_udp = requested && !layer2;
  assign request_l2  = requested && layer2;
  always_ff @(posedge clk) begin
    if (start) begin
      requested <= 1'b0;
      departure <= status.now[47:0];
    end
    if (io_write && io_address == ptp_program_pkg::IO_SEND) begin
      requested <= 1'b1;
      length <= 14'(wdata[7:0]);
      {to_peer, event_port} <= wdata[9:8];
    end
    if (rst) requested <= 1'b0;
  end

  // ---- clock ---------------------------------------------------------------------------------
  logic hold;
  logic [4:0] clock_write;
  for (genvar i = 0; i < 5; i++) begin : g_clock_write
    assign clock_write[i] = io_write && io_address == ptp_program_pkg::IO_NOW + 5'(4 - i);
  end
  ptp_clock #(
      .PERIOD(PERIOD)
  ) clock (
      .clk  (clk),
      .rst  (rst),
      .rate (status.rate),
      .hold (hold),
      .write(clock_write),
      .wdata(wdata),
      .now  (status.now),
      .pps  (status.pps)
  );

  // ---- words of the machine ------------------------------------------------------------------
  logic [19:0] clocks;
  logic [15:0] random;
  always_ff @(posedge clk) begin
    clocks <= clocks + 1'b1;
    random <= {random[14:0], random[15] ^ random[14] ^ random[12] ^ random[3]};
    if (rst) begin
      clocks <= '0;
      random <= mac_address[15:0] | 16'd1;
    end
  end

  always_ff @(posedge clk) begin
    from_io <= address[9:7] == 3'b110;
    from_io_late <= from_io;
    case (io_address)
      ptp_program_pkg::IO_STATUS:
      io_word <= {12'd0, requested || busy, pending, reg_write, reg_valid && !reg_ready};
      ptp_program_pkg::IO_TICKS: io_word <= clocks[19:4];
      ptp_program_pkg::IO_RANDOM: io_word <= random;
      ptp_program_pkg::IO_LENGTH: io_word <= 16'(message_length);
      ptp_program_pkg::IO_ARRIVAL: io_word <= arrival[47:32];
      ptp_program_pkg::IO_ARRIVAL + 5'd1: io_word <= arrival[31:16];
      ptp_program_pkg::IO_ARRIVAL + 5'd2: io_word <= arrival[15:0];
      ptp_program_pkg::IO_DEPARTURE: io_word <= departure[47:32];
      ptp_program_pkg::IO_DEPARTURE + 5'd1: io_word <= departure[31:16];
      ptp_program_pkg::IO_DEPARTURE + 5'd2: io_word <= departure[15:0];
      ptp_program_pkg::IO_REGISTER: io_word <= 16'(reg_index);
      ptp_program_pkg::IO_VALUE: io_word <= reg_wdata[31:16];
      ptp_program_pkg::IO_VALUE + 5'd1: io_word <= reg_wdata[15:0];
      ptp_program_pkg::IO_ROLE: io_word <= 16'(role);
      ptp_program_pkg::IO_IP: io_word <= ip_address[31:16];
      ptp_program_pkg::IO_IP + 5'd1: io_word <= ip_address[15:0];
      ptp_program_pkg::IO_NOW: io_word <= status.now[79:64];
      ptp_program_pkg::IO_NOW + 5'd1: io_word <= status.now[63:48];
      ptp_program_pkg::IO_NOW + 5'd2: io_word <= status.now[47:32];
      ptp_program_pkg::IO_NOW + 5'd3: io_word <= status.now[31:16];
      ptp_program_pkg::IO_NOW + 5'd4: io_word <= status.now[15:0];
      ptp_program_pkg::IO_IDENTITY: io_word <= mac_address[47:32];
      ptp_program_pkg::IO_IDENTITY + 5'd1: io_word <= {mac_address[31:24], 8'hFF};
      ptp_program_pkg::IO_IDENTITY + 5'd2: io_word <= {8'hFE, mac_address[23:16]};
      default: io_word <= mac_address[15:0];
    endcase
  end

  always_ff @(posedge clk) begin
    reg_ready <= 1'b0;
    {drop_ignored, drop_malformed, event_offset} <= '0;
    if (io_write) begin
      case (io_address)
        ptp_program_pkg::IO_DONE: {reg_ready, reg_error} <= {1'b1, wdata[0]};
        ptp_program_pkg::IO_ANSWER: reg_rdata[31:16] <= wdata;
        ptp_program_pkg::IO_ANSWER + 5'd1: reg_rdata[15:0] <= wdata;
        ptp_program_pkg::IO_RATE: status.rate[31:16] <= wdata;
        ptp_program_pkg::IO_RATE + 5'd1: status.rate[15:0] <= wdata;
        ptp_program_pkg::IO_HOLD: hold <= wdata[0];
        ptp_program_pkg::IO_EVENTS: {drop_ignored, drop_malformed, event_offset} <= wdata[2:0];
        ptp_program_pkg::IO_MODE: {status.locked, layer2, open} <= wdata[2:0];
        ptp_program_pkg::IO_OFFSET: status.offset[31:16] <= wdata;
        ptp_program_pkg::IO_OFFSET + 5'd1: status.offset[15:0] <= wdata;
        ptp_program_pkg::IO_DELAY: status.path_delay[31:16] <= wdata;
        ptp_program_pkg::IO_DELAY + 5'd1: status.path_delay[15:0] <= wdata;
        default: ;
      endcase
    end
    if (rst) begin
      {status.locked, layer2, open, hold, reg_ready}  <= '0;
      {status.rate, status.offset, status.path_delay} <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, address[6]};
endmodule
`default_nettype wire
