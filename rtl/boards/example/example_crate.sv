// SPDX-License-Identifier: Apache-2.0
//
// A crate of FADC modules with generators of pulses as its detector, and its burst buffers.
//
//               +---------------+
//   start ----->|               |====> m_axis[] : messages, a stream for each link core
//   settings ==>| example_crate |
//   pulse ----->|               |====> counters, see fadc_link
//   time ======>|               |----> event_off
//               +---------------+
//
// Windows begin with `start`; there are `windows` of them (0: no limit). In the first burst_ticks of each burst_every ticks
// (0: never) the rate of pulses is burst_rate. A clock has SAMPLES ticks. When `pulse` rises all channels have a pulse, in
// the first sample of the next clock. With FOLLOW and `follow` windows follow the time (see fadc_core).
`default_nettype none
module example_crate #(
    parameter int SAMPLES = 2,
    parameter int LINKS = 1,
    parameter int MODULES = 16,
    parameter int CHANNELS = 16,
    parameter int BUFFER_BITS = 16,
    parameter int FOLLOW = 0
) (
    input  logic                                                      clk,
    input  logic                                                      rst,
    input  logic                                                      start,
    input  example_pkg::crate_t                                       settings,
    input  logic                                                      pulse,
    input  logic                                                      follow,
    input  ptp_pkg::time_t                                            time_now,
    input  logic                                                      time_locked,
    output logic                                                      event_off,
    output logic                [LINKS-1:0][link_pkg::WORDS_BITS-1:0] m_axis,
    input  logic                [LINKS-1:0]                           m_axis_tready,
    output logic                [LINKS-1:0]                           running,
    output logic                [LINKS-1:0]                           idle,
    output logic                [LINKS-1:0][                9*32-1:0] counters
);
  localparam logic [31:0] MODULE_TIMEOUT = 32'd1024;
  localparam logic [31:0] SEED_STEP = 32'h9E3779B9;

  // The tick, within bursts, of the sample before the next clock's first one: the rate there decides about that one.
  logic [31:0] burst_tick, burst_now;
  logic pulse_before;
  always_ff @(posedge clk) pulse_before <= pulse;
  logic [SAMPLES-1:0][19:0] rate;
  assign burst_now = start ? '1 : burst_tick;
  always_comb begin
    for (int i = 0; i < SAMPLES; i++) begin
      rate[i] = settings.pulse_rate;
      if (settings.burst_every != '0 && wrapped(
              burst_now + 32'(i), settings.burst_every
          ) < settings.burst_ticks)
        rate[i] = settings.burst_rate;
    end
    if (pulse && !pulse_before) rate[0] = '1;
  end
  always_ff @(posedge clk) burst_tick <= wrapped(burst_now + 32'(SAMPLES), settings.burst_every);

  function automatic [31:0] wrapped(input [31:0] tick, input [31:0] every);
    wrapped = tick >= every ? tick - every : tick;
  endfunction

  logic [MODULES-1:0][SAMPLES*CHANNELS*12-1:0] samples;
  for (genvar m = 0; m < MODULES; m++) begin : g_module
    for (genvar c = 0; c < CHANNELS; c++) begin : g_channel
      logic [SAMPLES*12-1:0] mine;
      fadc_generator #(
          .SAMPLES(SAMPLES)
      ) generator (
          .clk    (clk),
          .restart(start),
          .seed   (settings.pulse_seed ^ (SEED_STEP * 32'(m * 16 + c + 1))),
          .rate   (rate),
          .noise  (settings.noise),
          .samples(mine)
      );
      for (genvar i = 0; i < SAMPLES; i++) begin : g_sample
        assign samples[m][(i*CHANNELS+c)*12+:12] = mine[i*12+:12];
      end
    end
  end

  logic bad_window;
  logic [31:0] version;
  logic [LINKS-1:0] write_valid, write_ready, read_valid, read_ready, data_valid;
  logic [LINKS-1:0][BUFFER_BITS-1:0] write_address, read_address;
  logic [LINKS-1:0][63:0] write_data, data;
  fadc_core #(
      .SAMPLES (SAMPLES),
      .MODULES (MODULES),
      .CHANNELS(CHANNELS),
      .LINKS   (LINKS),
      .BITS    (BUFFER_BITS),
      .FOLLOW  (FOLLOW)
  ) crate (
      .clk(clk),
      .rst(rst),
      .start(start),
      .enable(1'b1),
      .source_id(settings.source_id),
      .start_record(settings.first_window),
      .start_sec(settings.first_sec),
      .start_nsec(settings.first_nsec),
      .window_ticks(settings.window_ticks),
      .timeout(MODULE_TIMEOUT),
      .keepalive(settings.keepalive),
      .limit(settings.windows),
      .module_enable(settings.module_enable[MODULES-1:0]),
      .samples(samples),
      .follow(follow),
      .time_now(time_now),
      .time_locked(time_locked),
      .event_off(event_off),
      .config_valid(1'b0),
      .config_all(1'b0),
      .config_module(4'd0),
      .config_channel(4'd0),
      .config_item(2'd0),
      .config_value(16'd0),
      .m_axis(m_axis),
      .m_axis_tready(m_axis_tready),
      .memory_write_valid(write_valid),
      .memory_write_ready(write_ready),
      .memory_write_address(write_address),
      .memory_write_data(write_data),
      .memory_read_valid(read_valid),
      .memory_read_ready(read_ready),
      .memory_read_address(read_address),
      .memory_data_valid(data_valid),
      .memory_data(data),
      .version(version),
      .bad_window(bad_window),
      .running(running),
      .idle(idle),
      .counters(counters)
  );
  for (genvar l = 0; l < LINKS; l++) begin : g_memory
    fadc_memory #(
        .BITS(BUFFER_BITS)
    ) memory (
        .clk(clk),
        .rst(rst),
        .write_valid(write_valid[l]),
        .write_ready(write_ready[l]),
        .write_address(write_address[l]),
        .write_data(write_data[l]),
        .read_valid(read_valid[l]),
        .read_ready(read_ready[l]),
        .read_address(read_address[l]),
        .data_valid(data_valid[l]),
        .data(data[l])
    );
  end

  logic unused;
  assign unused = &{1'b0, version, bad_window, settings};
endmodule
`default_nettype wire
