// SPDX-License-Identifier: Apache-2.0
//
// One channel: finds pulses in samples, with the time of their leading edge and their charge.
//
//                      +--------------+
//   sample, tick, ====>|              |====> hit_* (PULSE_TICKS after the leading edge)
//   frame, keep        | fadc_channel |----> pileup
//   pedestal, ========>|              |
//   threshold          +--------------+
//
// A pulse begins with a sample at or above pedestal + threshold behind one below. Its charge is the
// sum of PULSE_TICKS samples, from that one on, less the pedestal. Pulses that begin in this time
// add to it (pile-up); the next one can begin in the tick after. A hit belongs to the frame of its
// leading edge. Nothing comes of a pulse that begins while `keep` is low.
`default_nettype none
module fadc_channel (
    input  logic                                   clk,
    input  logic                                   rst,
    input  logic        [                    11:0] sample,
    input  logic        [                    13:0] tick,
    input  logic        [fadc_pkg::FRAME_BITS-1:0] frame,
    input  logic                                   keep,
    input  logic        [                    11:0] pedestal,
    input  logic        [                    11:0] threshold,
    output logic                                   hit_valid,
    output logic signed [                    16:0] hit_sum,
    output logic        [                    13:0] hit_tick,
    output logic        [fadc_pkg::FRAME_BITS-1:0] hit_frame,
    output logic                                   pileup
);
  localparam int LEFT_BITS = $clog2(fadc_pkg::PULSE_TICKS);

  logic signed [12:0] level;
  logic above, above_last, crossing, kept;
  logic [LEFT_BITS-1:0] left;

  assign level = $signed({1'b0, sample}) - $signed({1'b0, pedestal});
  assign above = level >= $signed({1'b0, threshold});
  assign crossing = above && !above_last;

  always_ff @(posedge clk) begin
    above_last <= above;
    hit_valid <= 1'b0;
    pileup <= 1'b0;
    if (left == '0) begin
      if (crossing) begin
        left <= LEFT_BITS'(fadc_pkg::PULSE_TICKS - 1);
        kept <= keep;
        hit_sum <= 17'(level);
        hit_tick <= tick;
        hit_frame <= frame;
      end
    end else begin
      left <= left - 1'b1;
      hit_sum <= hit_sum + 17'(level);
      hit_valid <= left == LEFT_BITS'(1) && kept;
      pileup <= crossing && kept;
    end
    if (rst) begin
      // What is above from the beginning has no leading edge.
      above_last <= 1'b1;
      hit_valid <= 1'b0;
      pileup <= 1'b0;
      left <= '0;
    end
  end
endmodule
`default_nettype wire
