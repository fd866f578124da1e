// SPDX-License-Identifier: Apache-2.0
//
// Streaming readout of a crate of FADC modules over 1 to 4 links.
//
//                   +-----------+
//   start, enable =>|           |====> m_axis_*[] : messages, one stream for each link core
//   samples =======>| fadc_core |====> memory ports, one for each link
//   settings ======>|           |====> counters[], running, idle
//   config_* ======>|           |
//                   +-----------+
//
// Module m of the crate uses link m modulo LINKS, so each link carries whole modules, as source_id + link. config_module:
// 0..MODULES-1, or all with config_all. A clock has SAMPLES samples of each channel (see fadc_link), so it is 250 MHz, 125
// MHz or 62.5 MHz. `bad_window` is set while window_ticks is not in 8..131072 (32 ns..524288 ns), or, with 4 samples, in
// 16..131072; then nothing starts. See docs/fadc.md.
//
// With FOLLOW and `follow` windows follow time_now, a time in the domain of `clk`, for example from PTP (see
// fadc_schedule): after `start` the run begins when the time is locked. start_record, start_sec and start_nsec are not
// used, a window has 32 ticks or more, and event_off is a pulse for each window that is off its time.
`default_nettype none
module fadc_core #(
    parameter int SAMPLES = 2,  // samples of each channel in a clock: 1, 2 or 4
    parameter int MODULES = 16,  // modules of the crate, up to 16; a multiple of LINKS
    parameter int CHANNELS = 16,  // channels of a module, up to 16
    parameter int LINKS = 1,  // links, 1 to 4
    parameter int BITS = 16,  // the burst buffer of a link has 2^BITS words of 64 bits
    parameter int WINDOWS = 512,  // windows that the burst buffer of a link can store
    parameter int INBOX = 512,  // words in the queue of each module
    parameter int FOLLOW = 0  // 1: windows can follow a time
) (
    input logic clk,
    input logic rst,
    // a run
    input logic start,  // a pulse: a run begins with these settings
    input logic enable,  // 0: the run ends
    input logic [31:0] source_id,  // in the messages of link 0; link i adds i
    input logic [63:0] start_record,  // number of the first window
    input logic [63:0] start_sec,  // time of the first window: seconds
    input logic [31:0] start_nsec,  // time of the first window: nanoseconds
    input logic [17:0] window_ticks,  // length of a window in ticks of 4 ns
    input logic [31:0] timeout,  // clocks after the end of a window that a module is waited for
    input logic [23:0] keepalive,  // empty windows in a row that are withheld
    input logic [31:0] limit,  // windows of a run; 0: no limit
    input logic [MODULES-1:0] module_enable,  // modules that take part
    input logic [MODULES-1:0][SAMPLES*CHANNELS*12-1:0] samples,  // 12 bits each, see fadc_link
    input logic follow,  // with FOLLOW: windows follow time_now
    input ptp_pkg::time_t time_now,  // with FOLLOW: time of sample 0 of this clock
    input logic time_locked,  // with FOLLOW: time_now is valid
    output logic event_off,  // a pulse for each window that is 16 ns or more off its time
    // settings of a channel
    input logic config_valid,  // an item of a channel is written
    input logic config_all,  // to all modules
    input logic [3:0] config_module,
    input logic [3:0] config_channel,  // of the module
    input logic [1:0] config_item,  // 0 pedestal, 1 threshold, 2 gain
    input logic [15:0] config_value,  // in counts; gain: 2.14 bits
    // messages
    output logic [LINKS-1:0][link_pkg::WORDS_BITS-1:0] m_axis,  // a link_pkg::words_t of each link
    input logic [LINKS-1:0] m_axis_tready,
    // burst buffers
    output logic [LINKS-1:0] memory_write_valid,  // a word is to be written
    input logic [LINKS-1:0] memory_write_ready,  // the write is taken
    output logic [LINKS-1:0][BITS-1:0] memory_write_address,  // of the word
    output logic [LINKS-1:0][63:0] memory_write_data,  // the word
    output logic [LINKS-1:0] memory_read_valid,  // a word is to be read
    input logic [LINKS-1:0] memory_read_ready,  // the read is taken
    output logic [LINKS-1:0][BITS-1:0] memory_read_address,  // of the word
    input logic [LINKS-1:0] memory_data_valid,  // memory_data is valid; in the order of the reads
    input logic [LINKS-1:0][63:0] memory_data,  // the word that was read; earlier writes are in it
    // state
    output logic [31:0] version,  // see link_pkg::STATUS_VERSION
    output logic bad_window,  // window_ticks is not allowed: nothing starts
    output logic [LINKS-1:0] running,  // of each link: a run is under way
    output logic [LINKS-1:0] idle,  // of each link: no data is in it
    output logic [LINKS-1:0][9*32-1:0] counters  // 32 bits each, see fadc_link
);
  localparam int SHARE = MODULES / LINKS;

  if (LINKS < 1 || LINKS > 4 || MODULES < LINKS || MODULES > 16 || MODULES % LINKS != 0) begin : g_check
    $error("fadc_core: LINKS must be 1 to 4 and divide MODULES, which is at most 16");
  end

  assign version = fadc_pkg::CORE_VERSION;

  logic [LINKS-1:0] bad_windows;
  assign bad_window = bad_windows != '0;

  // The links' time bases are in step: the first one represents all.
  logic begin_now;
  logic [63:0] first_record, first_sec;
  logic [31:0] first_nsec;
  logic signed [1:0] adjust;
  logic [LINKS-1:0] adjusts, begins;
  logic [LINKS-1:0][1:0] adjusted;
  if (FOLLOW != 0) begin : g_follow
    logic begin_followed;
    logic [63:0] record, sec;
    logic [31:0] nsec;
    fadc_schedule #(
        .SAMPLES(SAMPLES)
    ) schedule (
        .clk         (clk),
        .rst         (rst),
        .arm         (start && follow),
        .time_now    (time_now),
        .time_locked (time_locked),
        .window_ticks(window_ticks),
        .start       (begin_followed),
        .start_record(record),
        .start_sec   (sec),
        .start_nsec  (nsec),
        .adjust      (adjust),
        .adjusts     (adjusts[0]),
        .adjusted    (adjusted[0]),
        .begins      (begins[0]),
        .off         (event_off)
    );
    assign begin_now = follow ? begin_followed : start;
    assign first_record = follow ? record : start_record;
    assign first_sec = follow ? sec : start_sec;
    assign first_nsec = follow ? nsec : start_nsec;
  end else begin : g_free
    assign {begin_now, first_record} = {start, start_record};
    assign {first_sec, first_nsec} = {start_sec, start_nsec};
    assign {adjust, event_off} = '0;
  end
  logic unused;
  assign unused = &{1'b0, follow, time_now, time_locked, adjusts, adjusted, begins};

  for (genvar l = 0; l < LINKS; l++) begin : g_link
    link_pkg::words_t words;
    assign m_axis[l] = words;
    logic [SHARE-1:0] enabled, configured;
    logic [SHARE*SAMPLES*CHANNELS*12-1:0] link_samples;
    for (genvar i = 0; i < SHARE; i++) begin : g_module
      assign enabled[i] = module_enable[l+i*LINKS];
      assign link_samples[i*SAMPLES*CHANNELS*12+:SAMPLES*CHANNELS*12] = samples[l+i*LINKS];
      assign configured[i] = config_valid && (config_all || config_module == 4'(l + i * LINKS));
    end
    fadc_link #(
        .SAMPLES     (SAMPLES),
        .MODULES     (SHARE),
        .CHANNELS    (CHANNELS),
        .FIRST_MODULE(l),
        .MODULE_STEP (LINKS),
        .BITS        (BITS),
        .WINDOWS     (WINDOWS),
        .INBOX       (INBOX)
    ) link (
        .clk                 (clk),
        .rst                 (rst),
        .start               (begin_now),
        .enable              (enable),
        .source_id           (source_id + 32'(l)),
        .start_record        (first_record),
        .start_sec           (first_sec),
        .start_nsec          (first_nsec),
        .window_ticks        (window_ticks),
        .timeout             (timeout),
        .keepalive           (keepalive),
        .limit               (limit),
        .follow              (FOLLOW != 0 && follow),
        .adjust              (adjust),
        .adjusts             (adjusts[l]),
        .begins              (begins[l]),
        .adjusted            (adjusted[l]),
        .module_enable       (enabled),
        .samples             (link_samples),
        .config_valid        (configured),
        .config_channel      (config_channel),
        .config_item         (config_item),
        .config_value        (config_value),
        .m_axis_tdata        (words.tdata),
        .m_axis_tvalid       (words.tvalid),
        .m_axis_tready       (m_axis_tready[l]),
        .m_axis_tlast        (words.tlast),
        .memory_write_valid  (memory_write_valid[l]),
        .memory_write_ready  (memory_write_ready[l]),
        .memory_write_address(memory_write_address[l]),
        .memory_write_data   (memory_write_data[l]),
        .memory_read_valid   (memory_read_valid[l]),
        .memory_read_ready   (memory_read_ready[l]),
        .memory_read_address (memory_read_address[l]),
        .memory_data_valid   (memory_data_valid[l]),
        .memory_data         (memory_data[l]),
        .bad_window          (bad_windows[l]),
        .running             (running[l]),
        .idle                (idle[l]),
        .counters            (counters[l])
    );
  end
endmodule
`default_nettype wire
