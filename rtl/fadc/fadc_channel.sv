// SPDX-License-Identifier: Apache-2.0
//
// One channel: finds pulses in samples, with the time of their leading edge and their charge.
//
//                      +--------------+
//   samples[] ========>|              |====> hit_*
//   tick[], frame[], =>| fadc_channel |====> pileup : how many in this clock
//   keep[]             |              |
//   pedestal, limit ==>+--------------+
//
// SAMPLES samples come in each clock, the first at index 0; tick, frame and keep of each come two clocks later. A pulse begins
// with a sample at or above `limit` after a sample below it. Its charge is the sum of PULSE_TICKS samples, from that one on,
// minus the pedestal. Pulses that begin in this time add to it (pile-up); the next one can begin in the tick after. A hit
// belongs to the frame of its leading edge. A pulse that begins while `keep` is low is ignored.
//
// A pulse is longer than a clock, so in each clock at most one ends and one begins. Stages: 1 levels; 2 which samples belong
// to the current pulse and which to the next one; 3 their sums; then the sum of the pulse.
`default_nettype none
module fadc_channel #(
    parameter int SAMPLES = 2
) (
    input  logic                                                             clk,
    input  logic                                                             rst,
    input  logic        [             SAMPLES-1:0][                    11:0] samples,
    input  logic        [             SAMPLES-1:0][                    13:0] tick,
    input  logic        [             SAMPLES-1:0][fadc_pkg::FRAME_BITS-1:0] frame,
    input  logic        [             SAMPLES-1:0]                           keep,
    input  logic        [                    11:0]                           pedestal,
    input  logic        [                    12:0]                           limit,
    output logic                                                             hit_valid,
    output logic signed [                    16:0]                           hit_sum,
    output logic        [                    13:0]                           hit_tick,
    output logic        [fadc_pkg::FRAME_BITS-1:0]                           hit_frame,
    output logic        [                     1:0]                           pileup
);
  localparam int LEFT_BITS = $clog2(fadc_pkg::PULSE_TICKS);
  localparam int PLACE_BITS = SAMPLES > 1 ? $clog2(SAMPLES) : 1;
  localparam logic [LEFT_BITS-1:0] STEP = LEFT_BITS'(SAMPLES);

  // ---- stage 1 ---------------------------------------------------------------------------------
  logic [SAMPLES-1:0][12:0] level1;  // signed
  logic [SAMPLES-1:0] above1;
  logic above_last;
  always_ff @(posedge clk) begin
    for (int i = 0; i < SAMPLES; i++) begin
      level1[i] <= {1'b0, samples[i]} - {1'b0, pedestal};
      above1[i] <= {1'b0, samples[i]} >= limit;
    end
    above_last <= above1[SAMPLES-1];
    // What is above from the beginning has no leading edge.
    if (rst) {above_last, above1} <= '1;
  end

  // ---- stage 2 ---------------------------------------------------------------------------------
  logic [SAMPLES-1:0] earlier, crossing;  // whether the sample before is above; leading edges
  logic [SAMPLES-1:0] mine, next;  // samples of the pulse under way, and of the next one
  logic [LEFT_BITS-1:0] left;  // samples of the pulse under way, from this clock's first one on
  logic begins;
  logic [PLACE_BITS-1:0] place;
  logic [1:0] more, more_next;  // crossings inside either pulse
  assign earlier  = SAMPLES'({above1, above_last});
  assign crossing = above1 & ~earlier;
  always_comb begin
    begins = 1'b0;
    place = '0;
    {more, more_next} = '0;
    for (int i = 0; i < SAMPLES; i++) begin
      mine[i] = LEFT_BITS'(i) < left;
      if (mine[i]) more = more + 2'(crossing[i]);
      else if (begins) more_next = more_next + 2'(crossing[i]);
      else if (crossing[i]) begin
        begins = 1'b1;
        place  = PLACE_BITS'(i);
      end
      next[i] = begins;
    end
  end

  logic [SAMPLES-1:0][12:0] level2;
  logic [SAMPLES-1:0] mine2, next2;
  logic begins2, ends2;
  logic [PLACE_BITS-1:0] place2;
  logic [1:0] more2, more_next2;
  always_ff @(posedge clk) begin
    level2 <= level1;
    {mine2, next2} <= {mine, next};
    {more2, more_next2} <= {more, more_next};
    begins2 <= begins;
    place2 <= place;
    ends2 <= left != '0 && left <= STEP;
    if (begins) left <= LEFT_BITS'(fadc_pkg::PULSE_TICKS - SAMPLES) + LEFT_BITS'(place);
    else left <= left > STEP ? left - STEP : '0;
    if (rst) begin
      left <= '0;
      {begins2, ends2, more2, more_next2} <= '0;
    end
  end

  // ---- stage 3 ---------------------------------------------------------------------------------
  logic signed [16:0] part, part_next, part3, part_next3;
  logic begins3, ends3, keep3;
  logic [13:0] tick3;
  logic [fadc_pkg::FRAME_BITS-1:0] frame3;
  logic [1:0] more3, more_next3;
  always_comb begin
    part = '0;
    part_next = '0;
    for (int i = 0; i < SAMPLES; i++) begin
      if (mine2[i]) part = part + 17'($signed(level2[i]));
      if (next2[i]) part_next = part_next + 17'($signed(level2[i]));
    end
  end
  always_ff @(posedge clk) begin
    {part3, part_next3} <= {part, part_next};
    {begins3, ends3} <= {begins2, ends2};
    {tick3, frame3, keep3} <= {tick[place2], frame[place2], keep[place2]};
    {more3, more_next3} <= {more2, more_next2};
    if (rst) {begins3, ends3, more3, more_next3} <= '0;
  end

  // ---- the pulse under way ---------------------------------------------------------------------
  logic signed [16:0] sum;
  logic kept;
  assign hit_valid = ends3 && kept;
  assign hit_sum   = sum + part3;
  always_ff @(posedge clk) begin
    sum <= hit_sum;
    pileup <= (kept ? more3 : 2'd0) + (keep3 ? more_next3 : 2'd0);
    if (begins3) begin
      sum <= part_next3;
      {hit_tick, hit_frame, kept} <= {tick3, frame3, keep3};
    end
    if (rst) begin
      kept   <= 1'b0;
      pileup <= '0;
    end
  end
endmodule
`default_nettype wire
