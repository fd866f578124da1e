// SPDX-License-Identifier: Apache-2.0
//
// The data path of one link: modules, window builder, burst buffer and message former.
//
//                   +-----------+
//   start, enable =>|           |====> m_axis_* : messages, to a link core
//   samples =======>| fadc_link |
//   settings ======>|           |====> memory port
//   config_* ======>|           |====> counters
//                   +-----------+
//
// Module i of the link is module FIRST_MODULE + i * MODULE_STEP of the crate. Everything is in one clock, which is also
// that of the user side of the link core. It has SAMPLES samples of each channel, 1, 2 or 4: samples[module] has the
// samples of all channels at the first time, then those at the next. idle: no data is in the link. counters: hits, pile-up,
// hits lost (in the modules), late, over (the window was full), modules timed out, windows lost, messages, most words in
// the buffer.
`default_nettype none
module fadc_link #(
    parameter int SAMPLES = 2,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int FIRST_MODULE = 0,
    parameter int MODULE_STEP = 1,
    parameter int BITS = 16,
    parameter int WINDOWS = 512,
    parameter int INBOX = 512
) (
    input logic clk,
    input logic rst,

    input logic                                               start,
    input logic                                               enable,
    input logic        [       31:0]                          source_id,
    input logic        [       63:0]                          start_record,
    input logic        [       63:0]                          start_sec,
    input logic        [       31:0]                          start_nsec,
    input logic        [       17:0]                          window_ticks,
    input logic        [       31:0]                          timeout,
    input logic        [       23:0]                          keepalive,
    input logic        [       31:0]                          limit,
    input logic                                               follow,
    input logic signed [        1:0]                          adjust,
    input logic        [MODULES-1:0]                          module_enable,
    input logic        [MODULES-1:0][SAMPLES*CHANNELS*12-1:0] samples,

    input logic [MODULES-1:0] config_valid,
    input logic [        3:0] config_channel,
    input logic [        1:0] config_item,
    input logic [       15:0] config_value,

    output logic [63:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,

    output logic            memory_write_valid,
    input  logic            memory_write_ready,
    output logic [BITS-1:0] memory_write_address,
    output logic [    63:0] memory_write_data,
    output logic            memory_read_valid,
    input  logic            memory_read_ready,
    output logic [BITS-1:0] memory_read_address,
    input  logic            memory_data_valid,
    input  logic [    63:0] memory_data,

    output logic                    begins,
    output logic                    adjusts,
    output logic signed [1:0]       adjusted,
    output logic                    bad_window,
    output logic                    running,
    output logic                    idle,
    output logic        [8:0][31:0] counters
);
  localparam int META_BITS = 64 + 64 + 32;

  logic info_valid, info_ready, info_first, info_last;
  logic [SAMPLES-1:0] keep;
  logic [SAMPLES-1:0][13:0] tick;
  logic [SAMPLES-1:0][fadc_pkg::FRAME_BITS-1:0] frame;
  logic [fadc_pkg::FRAME_BITS-1:0] complete;
  logic [31:0] now, info_nsec, info_deadline;
  logic [fadc_pkg::LOST_BITS-1:0] info_lost;
  logic [63:0] info_record, info_sec;

  fadc_timebase #(
      .SAMPLES(SAMPLES)
  ) timebase (
      .clk         (clk),
      .rst         (rst),
      .start       (start),
      .enable      (enable),
      .start_record(start_record),
      .start_sec   (start_sec),
      .start_nsec  (start_nsec),
      .window_ticks(window_ticks),
      .timeout     (timeout),
      .limit       (limit),
      .follow      (follow),
      .adjust      (adjust),
      .adjusts     (adjusts),
      .begins      (begins),
      .adjusted    (adjusted),
      .running     (running),
      .tick        (tick),
      .frame       (frame),
      .keep        (keep),
      .complete    (complete),
      .now         (now),
      .m_valid     (info_valid),
      .m_ready     (info_ready),
      .m_first     (info_first),
      .m_last      (info_last),
      .m_record    (info_record),
      .m_sec       (info_sec),
      .m_nsec      (info_nsec),
      .m_lost      (info_lost),
      .m_deadline  (info_deadline),
      .windows_lost(counters[6]),
      .bad_window  (bad_window)
  );

  logic [MODULES-1:0] inbox_valid, inbox_ready, inbox_mark, inbox_ripe, module_lost;
  logic [MODULES-1:0][fadc_pkg::FRAME_BITS-1:0] inbox_frame;
  logic [MODULES-1:0][fadc_pkg::HIT_BITS-1:0] inbox_hit;
  logic [MODULES-1:0][fadc_pkg::LOST_BITS-1:0] inbox_lost;
  logic [MODULES-1:0][5:0] module_pileup;

  for (genvar i = 0; i < MODULES; i++) begin : g_module
    logic valid, mark;
    logic [fadc_pkg::FRAME_BITS-1:0] hit_frame;
    logic [  fadc_pkg::HIT_BITS-1:0] hit;
    logic [ fadc_pkg::LOST_BITS-1:0] lost;

    fadc_module #(
        .SAMPLES (SAMPLES),
        .CHANNELS(CHANNELS)
    ) fadc (
        .clk           (clk),
        .rst           (rst),
        .samples       (samples[i]),
        .tick          (tick),
        .frame         (frame),
        .keep          (keep),
        .complete      (complete),
        .config_valid  (config_valid[i]),
        .config_channel(config_channel),
        .config_item   (config_item),
        .config_value  (config_value),
        .m_valid       (valid),
        .m_mark        (mark),
        .m_frame       (hit_frame),
        .m_hit         (hit),
        .m_lost        (lost),
        .pileup        (module_pileup[i])
    );
    fadc_inbox #(
        .DEPTH(INBOX)
    ) inbox (
        .clk    (clk),
        .rst    (rst),
        .s_valid(valid),
        .s_mark (mark),
        .s_frame(hit_frame),
        .s_hit  (hit),
        .s_lost (lost),
        .m_valid(inbox_valid[i]),
        .m_ready(inbox_ready[i]),
        .m_mark (inbox_mark[i]),
        .m_frame(inbox_frame[i]),
        .m_hit  (inbox_hit[i]),
        .m_lost (inbox_lost[i]),
        .ripe   (inbox_ripe[i]),
        .lost   (module_lost[i])
    );
  end

  logic payload_valid, payload_ready, end_valid, end_ready, end_send;
  logic [31:0] payload, end_words, end_nsec;
  logic [63:0] end_record, end_sec;

  fadc_builder #(
      .MODULES     (MODULES),
      .FIRST_MODULE(FIRST_MODULE),
      .MODULE_STEP (MODULE_STEP),
      .MAX_WORDS   (2 ** BITS)
  ) builder (
      .clk          (clk),
      .rst          (rst),
      .now          (now),
      .module_enable(module_enable),
      .keepalive    (keepalive),
      .info_valid   (info_valid),
      .info_ready   (info_ready),
      .info_first   (info_first),
      .info_last    (info_last),
      .info_record  (info_record),
      .info_sec     (info_sec),
      .info_nsec    (info_nsec),
      .info_lost    (info_lost),
      .info_deadline(info_deadline),
      .inbox_valid  (inbox_valid),
      .inbox_ready  (inbox_ready),
      .inbox_mark   (inbox_mark),
      .inbox_frame  (inbox_frame),
      .inbox_hit    (inbox_hit),
      .inbox_lost   (inbox_lost),
      .inbox_ripe   (inbox_ripe),
      .m_data       (payload),
      .m_valid      (payload_valid),
      .m_ready      (payload_ready),
      .window_valid (end_valid),
      .window_ready (end_ready),
      .window_send  (end_send),
      .window_words (end_words),
      .window_record(end_record),
      .window_sec   (end_sec),
      .window_nsec  (end_nsec),
      .hits         (counters[0]),
      .late         (counters[3]),
      .over         (counters[4]),
      .timeouts     (counters[5])
  );

  logic window_valid, window_ready, data_valid, data_ready, former_busy;
  logic [31:0] window_words, window_nsec;
  logic [63:0] window_record, window_sec, data;
  logic [BITS:0] used, most_used;

  fadc_burst_buffer #(
      .BITS     (BITS),
      .WINDOWS  (WINDOWS),
      .META_BITS(META_BITS)
  ) buffer (
      .clk                 (clk),
      .rst                 (rst),
      .s_data              (payload),
      .s_valid             (payload_valid),
      .s_ready             (payload_ready),
      .end_valid           (end_valid),
      .end_ready           (end_ready),
      .end_send            (end_send),
      .end_words           (end_words),
      .end_meta            ({end_record, end_sec, end_nsec}),
      .window_valid        (window_valid),
      .window_ready        (window_ready),
      .window_words        (window_words),
      .window_meta         ({window_record, window_sec, window_nsec}),
      .m_data              (data),
      .m_valid             (data_valid),
      .m_ready             (data_ready),
      .memory_write_valid  (memory_write_valid),
      .memory_write_ready  (memory_write_ready),
      .memory_write_address(memory_write_address),
      .memory_write_data   (memory_write_data),
      .memory_read_valid   (memory_read_valid),
      .memory_read_ready   (memory_read_ready),
      .memory_read_address (memory_read_address),
      .memory_data_valid   (memory_data_valid),
      .memory_data         (memory_data),
      .used                (used),
      .most_used           (most_used)
  );
  assign counters[8] = 32'(most_used);

  fadc_former former (
      .clk          (clk),
      .rst          (rst),
      .source_id    (source_id),
      .window_valid (window_valid),
      .window_ready (window_ready),
      .window_words (window_words),
      .window_record(window_record),
      .window_sec   (window_sec),
      .window_nsec  (window_nsec),
      .s_data       (data),
      .s_valid      (data_valid),
      .s_ready      (data_ready),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tlast (m_axis_tlast),
      .busy         (former_busy),
      .messages     (counters[7])
  );

  logic [31:0] pileups, losses;
  logic [9:0] pileup_sum, pileup_now;
  logic [4:0] lost_sum, lost_now;
  always_comb begin
    pileup_sum = '0;
    lost_sum   = '0;
    for (int i = 0; i < MODULES; i++) begin
      pileup_sum = pileup_sum + 10'(module_pileup[i]);
      lost_sum   = lost_sum + 5'(module_lost[i]);
    end
  end
  always_ff @(posedge clk) begin
    pileup_now <= pileup_sum;
    lost_now   <= lost_sum;
    if (rst) {pileups, losses} <= '0;
    else begin
      pileups <= pileups + 32'(pileup_now);
      losses  <= losses + 32'(lost_now);
    end
  end
  assign counters[1] = pileups;
  assign counters[2] = losses;

  // A window is in none of these places for a few clocks between two of them.
  logic [3:0] quiet;
  always_ff @(posedge clk) begin
    if (rst || keep != '0 || info_valid || used != '0 || window_valid || former_busy) quiet <= '0;
    else if (!idle) quiet <= quiet + 1'b1;
  end
  assign idle = quiet == '1;
endmodule
`default_nettype wire
