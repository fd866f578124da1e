// SPDX-License-Identifier: Apache-2.0
//
// Samples of one channel, as a detector would give them: pulses at random times, noise, pile-up.
//
//                  +----------------+
//   restart, ----->|                |
//   seed =========>| fadc_generator |====> samples[]
//   rate[], noise =>|                |
//                  +----------------+
//
// SAMPLES samples per clock, the first at index 0. A pulse begins with a probability of rate / 2^20 in each sample; it
// rises in two samples, decays in five, and has an amplitude of up to 4096 counts; small amplitudes are more frequent. Two
// pulses may overlap; a third one is not started. Noise: the sum of four uniform numbers, times noise / 8. The random
// numbers are Marsaglia's xorshift32 (2003; shifts 13, 17, 5), which begin at `seed` after `restart`; the first sample
// after that is the pedestal. rate[i] decides about samples[i] of the next clock.
`default_nettype none
module fadc_generator #(
    parameter int SAMPLES = 2,
    parameter logic [11:0] PEDESTAL = 12'd100
) (
    input  logic                     clk,
    input  logic                     restart,
    input  logic [       31:0]       seed,
    input  logic [SAMPLES-1:0][19:0] rate,
    input  logic [        3:0]       noise,
    output logic [SAMPLES-1:0][11:0] samples
);
  localparam logic [31:0] SEED_FOR_ZERO = 32'h9E3779B9;
  localparam int BITS = fadc_pkg::GENERATOR_BITS;

  // Before each sample, and behind the last one.
  logic [SAMPLES:0][BITS-1:0] state;
  logic [SAMPLES-1:0][BITS-1:0] stepped;
  logic [SAMPLES-1:0][11:0] sample;
  fadc_pkg::generator_t fresh;
  assign fresh = {seed == '0 ? SEED_FOR_ZERO : seed, 26'd0, {2{fadc_pkg::AGE_END}}};

  for (genvar i = 0; i < SAMPLES; i++) begin : g_sample
    fadc_generator_step #(
        .PEDESTAL(PEDESTAL)
    ) step (
        .state (state[i]),
        .rate  (rate[i]),
        .noise (noise),
        .sample(sample[i]),
        .next  (stepped[i])
    );
    if (i == 0) begin : g_first
      assign state[1] = restart ? fresh : stepped[0];
    end else begin : g_other
      assign state[i+1] = stepped[i];
    end
  end

  always_ff @(posedge clk) begin
    state[0] <= state[SAMPLES];
    samples  <= sample;
    if (restart) samples[0] <= PEDESTAL;
  end
endmodule
`default_nettype wire
