// SPDX-License-Identifier: Apache-2.0
//
// One FADC module: its channels, and the words that it sends to the window builder.
//
//                      +-------------+
//   samples[][] =====> |             |----> m_valid   (nothing holds it up)
//   tick[], frame[], =>| fadc_module |====> m_mark, m_frame, m_hit, m_lost
//   keep[], complete   |             |
//   config_* =========>|             |====> pileup : how many in this clock
//                      +-------------+
//
// samples: SAMPLES of each channel per clock, the first at index 0; see fadc_channel and fadc_timebase. The output is the
// hits of a frame, then its mark; no hit of this frame follows. m_hit is a hit word without bit 31 (see fadc_pkg), its
// charge multiplied by the gain of the channel (2.14 bits, 16384 is 1), rounded and limited to 0..8191. m_lost of a mark:
// hits that found their queue full. Configuration: item 0 pedestal, 1 threshold, 2 gain of a channel, written with
// config_valid. In each clock a hit is read from one of the channels, from the same one at most every third clock.
`default_nettype none
module fadc_module #(
    parameter int SAMPLES = 2,
    parameter int CHANNELS = 16,
    parameter logic [11:0] PEDESTAL = 12'd100,
    parameter logic [11:0] THRESHOLD = 12'd30
) (
    input  logic                                                            clk,
    input  logic                                                            rst,
    input  logic [             SAMPLES-1:0][            CHANNELS-1:0][11:0] samples,
    input  logic [             SAMPLES-1:0][                    13:0]       tick,
    input  logic [             SAMPLES-1:0][fadc_pkg::FRAME_BITS-1:0]       frame,
    input  logic [             SAMPLES-1:0]                                 keep,
    input  logic [fadc_pkg::FRAME_BITS-1:0]                                 complete,
    input  logic                                                            config_valid,
    input  logic [                     3:0]                                 config_channel,
    input  logic [                     1:0]                                 config_item,
    input  logic [                    15:0]                                 config_value,
    output logic                                                            m_valid,
    output logic                                                            m_mark,
    output logic [fadc_pkg::FRAME_BITS-1:0]                                 m_frame,
    output logic [  fadc_pkg::HIT_BITS-1:0]                                 m_hit,
    output logic [ fadc_pkg::LOST_BITS-1:0]                                 m_lost,
    output logic [                     5:0]                                 pileup
);
  localparam logic [15:0] GAIN_ONE = 16'd16384;

  if (CHANNELS < 1 || CHANNELS > 16) begin : g_check
    $error("fadc_module: CHANNELS must be 1 to 16");
  end

  logic [CHANNELS-1:0] head_valid, wanted, take;
  logic [CHANNELS-1:0][1:0] pileups;
  logic [CHANNELS-1:0][16:0] head_sum;
  logic [CHANNELS-1:0][13:0] head_tick;
  logic [CHANNELS-1:0][fadc_pkg::FRAME_BITS-1:0] head_frame;
  logic [CHANNELS-1:0][fadc_pkg::LOST_BITS-1:0] head_lost;
  logic [CHANNELS-1:0][15:0] gain;
  logic [fadc_pkg::FRAME_BITS-1:0] now, now_next;  // the frame whose hits go out
  logic mark;

  for (genvar i = 0; i < CHANNELS; i++) begin : g_channel
    logic [11:0] pedestal, threshold;
    logic [12:0] limit;
    logic [SAMPLES*12-1:0] mine;
    for (genvar j = 0; j < SAMPLES; j++) begin : g_sample
      assign mine[j*12+:12] = samples[j][i];
    end
    logic hit_valid;
    logic signed [16:0] hit_sum;
    logic [13:0] hit_tick;
    logic [fadc_pkg::FRAME_BITS-1:0] hit_frame;

    always_ff @(posedge clk) begin
      limit <= {1'b0, pedestal} + {1'b0, threshold};
      if (rst) begin
        pedestal  <= PEDESTAL;
        threshold <= THRESHOLD;
        gain[i]   <= GAIN_ONE;
      end else if (config_valid && config_channel == 4'(i)) begin
        if (config_item == 2'd0) pedestal <= config_value[11:0];
        if (config_item == 2'd1) threshold <= config_value[11:0];
        if (config_item == 2'd2) gain[i] <= config_value;
      end
    end
    fadc_channel #(
        .SAMPLES(SAMPLES)
    ) channel (
        .clk      (clk),
        .rst      (rst),
        .samples  (mine),
        .tick     (tick),
        .frame    (frame),
        .keep     (keep),
        .pedestal (pedestal),
        .limit    (limit),
        .hit_valid(hit_valid),
        .hit_sum  (hit_sum),
        .hit_tick (hit_tick),
        .hit_frame(hit_frame),
        .pileup   (pileups[i])
    );
    fadc_hit_queue queue (
        .clk    (clk),
        .rst    (rst),
        .s_valid(hit_valid),
        .s_sum  (hit_sum),
        .s_tick (hit_tick),
        .s_frame(hit_frame),
        .m_valid(head_valid[i]),
        .m_ready(take[i]),
        .m_sum  (head_sum[i]),
        .m_tick (head_tick[i]),
        .m_frame(head_frame[i]),
        .m_lost (head_lost[i])
    );
    // Of the frame that is next in the coming clock. A hit that leaves is still there in this clock.
    always_ff @(posedge clk)
      wanted[i] <= !rst && head_valid[i] && !take[i] && head_frame[i] == (mark ? now_next : now);
  end

  // In turn, so that under load no channel loses more than another: the first one behind the last that was taken, or the
  // first of all.
  logic [CHANNELS-1:0] found, behind, first, first_behind, picked, behind_last;
  assign found = wanted & ~take;
  assign behind = found & behind_last;
  assign first = found & (~found + 1'b1);
  assign first_behind = behind & (~behind + 1'b1);
  assign picked = behind != '0 ? first_behind : first;

  // The mark goes when no hit of the frame can be on its way: neither here, where `wanted` does not yet show what stands
  // behind a hit that was taken, nor in the channels.
  logic took;
  assign mark = found == '0 && take == '0 && !took && now != complete;
  assign now_next = now + 1'b1;

  always_ff @(posedge clk) begin
    take <= picked;
    took <= take != '0;
    if (behind != '0) behind_last <= behind ^ (~behind + 1'b1);
    else if (found != '0) behind_last <= found ^ (~found + 1'b1);
    if (mark) now <= now_next;
    if (rst) begin
      take <= '0;
      took <= 1'b0;
      behind_last <= '0;
      now <= '0;
    end
  end

  // Stage 1: what was taken.
  logic valid1, mark1;
  logic [fadc_pkg::FRAME_BITS-1:0] frame1;
  logic [16:0] sum1;
  logic [13:0] tick1;
  logic [3:0] channel1;
  logic [15:0] gain1;
  logic [fadc_pkg::LOST_BITS-1:0] lost1;
  // Stage 2: times gain.
  logic valid2, mark2;
  logic [fadc_pkg::FRAME_BITS-1:0] frame2;
  logic [30:0] product2;
  logic [13:0] tick2;
  logic [3:0] channel2;
  logic [fadc_pkg::LOST_BITS-1:0] lost2;

  logic [16:0] sum;
  logic [13:0] sum_tick;
  logic [3:0] channel;
  logic [15:0] sum_gain;
  logic [fadc_pkg::LOST_BITS-1:0] lost;
  always_comb begin
    {sum, sum_tick, channel, sum_gain, lost} = '0;
    for (int i = 0; i < CHANNELS; i++) begin
      if (take[i]) begin
        sum = sum | head_sum[i];
        sum_tick = sum_tick | head_tick[i];
        channel = channel | 4'(i);
        sum_gain = sum_gain | gain[i];
        lost = lost | head_lost[i];
      end
    end
  end

  logic [17:0] charge;
  assign charge = {1'b0, product2[30:14]} + 18'(product2[13]);

  always_ff @(posedge clk) begin
    valid1   <= take != '0 || mark;
    mark1    <= mark;
    frame1   <= now;
    sum1     <= sum;
    tick1    <= sum_tick;
    channel1 <= channel;
    gain1    <= sum_gain;
    lost1    <= lost;

    valid2   <= valid1;
    mark2    <= mark1;
    frame2   <= frame1;
    product2 <= sum1[16] ? '0 : 31'(sum1[14:0]) * 31'(gain1);
    tick2    <= tick1;
    channel2 <= channel1;
    lost2    <= lost1;

    m_valid  <= valid2 && (mark2 || lost2 == '0);
    m_mark   <= mark2;
    m_frame  <= frame2;
    m_hit    <= {tick2, channel2, charge > 18'd8191 ? 13'd8191 : charge[12:0]};
    if (valid2) m_lost <= (m_valid && m_mark) ? lost2 : fadc_pkg::add_lost(m_lost, lost2);
    else if (m_valid && m_mark) m_lost <= '0;

    if (rst) begin
      valid1  <= 1'b0;
      valid2  <= 1'b0;
      m_valid <= 1'b0;
      m_mark  <= 1'b0;
      m_lost  <= '0;
    end
  end

  logic [5:0] pileup_sum;
  always_comb begin
    pileup_sum = '0;
    for (int i = 0; i < CHANNELS; i++) pileup_sum = pileup_sum + 6'(pileups[i]);
  end
  always_ff @(posedge clk) pileup <= pileup_sum;

  logic unused;
  assign unused = &{1'b0, sum1[15], product2[12:0]};
endmodule
`default_nettype wire
