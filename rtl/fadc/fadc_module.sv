// SPDX-License-Identifier: Apache-2.0
//
// One FADC module: its channels, and the words that it sends to the window builder.
//
//                      +-------------+
//   samples, tick, ===>|             |----> m_valid   (nothing holds it up)
//   frame, keep        | fadc_module |====> m_mark, m_frame, m_hit, m_lost
//   config_* =========>|             |----> pileup[]
//                      +-------------+
//
// The hits of a frame, then its mark: no hit of this frame comes after it. m_hit is a hit word
// without bit 31 (see fadc_pkg), its charge multiplied by the channel's gain (2.14 bits, 16384 is
// 1), rounded and limited to 0..8191. m_lost of a mark: hits that found their queue full.
// Configuration: item 0 pedestal, 1 threshold, 2 gain of a channel, taken with config_valid.
`default_nettype none
module fadc_module #(
    parameter int CHANNELS = 16,
    parameter logic [11:0] PEDESTAL = 12'd100,
    parameter logic [11:0] THRESHOLD = 12'd30
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [            CHANNELS-1:0][11:0] samples,
    input  logic [                    13:0]       tick,
    input  logic [fadc_pkg::FRAME_BITS-1:0]       frame,
    input  logic                                  keep,
    input  logic                                  config_valid,
    input  logic [                     3:0]       config_channel,
    input  logic [                     1:0]       config_item,
    input  logic [                    15:0]       config_value,
    output logic                                  m_valid,
    output logic                                  m_mark,
    output logic [fadc_pkg::FRAME_BITS-1:0]       m_frame,
    output logic [  fadc_pkg::HIT_BITS-1:0]       m_hit,
    output logic [ fadc_pkg::LOST_BITS-1:0]       m_lost,
    output logic [            CHANNELS-1:0]       pileup
);
  localparam logic [15:0] GAIN_ONE = 16'd16384;
  // Until a hit of a sample's frame has come to its queue.
  localparam int LATENCY = fadc_pkg::PULSE_TICKS + 2;

  if (CHANNELS < 1 || CHANNELS > 16) begin : g_check
    $error("fadc_module: CHANNELS must be 1 to 16");
  end

  logic [CHANNELS-1:0] head_valid, wanted, take;
  logic [CHANNELS-1:0][16:0] head_sum;
  logic [CHANNELS-1:0][13:0] head_tick;
  logic [CHANNELS-1:0][fadc_pkg::FRAME_BITS-1:0] head_frame;
  logic [CHANNELS-1:0][fadc_pkg::LOST_BITS-1:0] head_lost;
  logic [CHANNELS-1:0][15:0] gain;
  logic [fadc_pkg::FRAME_BITS-1:0] now;

  for (genvar i = 0; i < CHANNELS; i++) begin : g_channel
    logic [11:0] pedestal, threshold;
    logic hit_valid;
    logic signed [16:0] hit_sum;
    logic [13:0] hit_tick;
    logic [fadc_pkg::FRAME_BITS-1:0] hit_frame;

    always_ff @(posedge clk) begin
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
    fadc_channel channel (
        .clk      (clk),
        .rst      (rst),
        .sample   (samples[i]),
        .tick     (tick),
        .frame    (frame),
        .keep     (keep),
        .pedestal (pedestal),
        .threshold(threshold),
        .hit_valid(hit_valid),
        .hit_sum  (hit_sum),
        .hit_tick (hit_tick),
        .hit_frame(hit_frame),
        .pileup   (pileup[i])
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
    assign wanted[i] = head_valid[i] && head_frame[i] == now;
  end

  // In turn, so that under load no channel loses more than another.
  logic [CHANNELS-1:0] last;
  assign take = CHANNELS'(link_pkg::turn(link_pkg::TURNS'(wanted), link_pkg::TURNS'(last)));

  // The frame of LATENCY clocks ago: all hits of frames before it have come.
  logic [LATENCY-1:0][fadc_pkg::FRAME_BITS-1:0] frames;
  logic [fadc_pkg::FRAME_BITS-1:0] complete;
  assign complete = frames[LATENCY-1];

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
    frames   <= {frames[LATENCY-2:0], frame};

    valid1   <= wanted != '0;
    mark1    <= 1'b0;
    frame1   <= now;
    sum1     <= sum;
    tick1    <= sum_tick;
    channel1 <= channel;
    gain1    <= sum_gain;
    lost1    <= lost;
    if (wanted != '0) last <= take;
    else if (now != complete) begin
      valid1 <= 1'b1;
      mark1 <= 1'b1;
      now <= now + 1'b1;
    end

    valid2 <= valid1;
    mark2 <= mark1;
    frame2 <= frame1;
    product2 <= sum1[16] ? '0 : 31'(sum1[14:0]) * 31'(gain1);
    tick2 <= tick1;
    channel2 <= channel1;
    lost2 <= lost1;

    m_valid <= valid2 && (mark2 || lost2 == '0);
    m_mark <= mark2;
    m_frame <= frame2;
    m_hit <= {tick2, channel2, charge > 18'd8191 ? 13'd8191 : charge[12:0]};
    if (valid2) m_lost <= (m_valid && m_mark) ? lost2 : fadc_pkg::add_lost(m_lost, lost2);
    else if (m_valid && m_mark) m_lost <= '0;

    if (rst) begin
      frames <= '0;
      now <= '0;
      last <= CHANNELS'(1);
      valid1 <= 1'b0;
      valid2 <= 1'b0;
      m_valid <= 1'b0;
      m_mark <= 1'b0;
      m_lost <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, sum1[15], product2[12:0]};
endmodule
`default_nettype wire
