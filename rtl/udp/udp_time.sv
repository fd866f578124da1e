// SPDX-License-Identifier: Apache-2.0
//
// The stack's time: its clock, the times of the frames, and PTP over UDP (one clock).
//
//                   +------------------------------------+
//   s_frame_* ----->| time of a frame --+                |----> status.now, status.pps
//   s_packet_end -->|                   v                |
//   s_* (UDP) =====>| udp_ptp --- step, rate --> clock   |
//   request... <====|                                    |
//                   +------------------------------------+
//
// PERIOD is that of the clock in 2^-32 ns. s_frame_*: words of the frame as they leave the crossing; s_packet_end: the
// IP layer's end of the same frame. set_valid sets the seconds.
`default_nettype none
module udp_time #(
    parameter int WIDTH = 8,
    parameter logic [37:0] PERIOD = 38'd8 << 32
) (
    input logic clk,
    input logic rst,
    input logic [47:0] mac_address,
    input logic [1:0] role,
    input logic [31:0] sync_clocks,
    input logic [7:0] sync_log,
    input logic set_valid,
    input logic [31:0] set_seconds,
    output ptp_pkg::status_t status,
    input logic s_frame_valid,
    input logic s_frame_end,
    input logic s_packet_end,
    // datagrams from the wire
    input logic [WIDTH-1:0] s_data,
    input logic [3:0] s_count,
    input logic s_valid,
    input logic s_end,
    input logic s_good,
    input logic s_claimed,
    input logic [15:0] s_length,
    // datagrams to the wire
    output logic request,
    output logic [13:0] length,
    output logic [15:0] port,
    input logic start,
    output logic [WIDTH-1:0] data,
    // one pulse each
    output logic event_offset,
    output logic drop_malformed,
    output logic drop_ignored
);
  // From the first byte behind the start delimiter on the wire to the first word here (half a clock of it is
  // the crossing's phase), and from the start of PTP's data back to that byte. Both in clocks, times ten; they
  // are fixed, because no layer waits.
  localparam int PERIOD_PS = int'(PERIOD >> 22);  // nearly
  localparam int RX_LAG = 95 * PERIOD_PS / 10_240;
  localparam int TX_LEAD = (WIDTH == 8 ? 370 : -70) * PERIOD_PS / 10_240;
  logic in_frame, step_valid, servo_step;
  logic [47:0] step_seconds, servo_seconds;
  logic signed [31:0] step_ns, servo_ns;
  ptp_pkg::time_t first_word, frame_time, packet_time;
  always_ff @(posedge clk) begin
    if (s_frame_valid) in_frame <= !s_frame_end;
    else if (s_frame_end) in_frame <= 1'b0;
    // A frame's time goes up with it.
    if (s_frame_valid && !in_frame) first_word <= status.now;
    if (s_frame_end) frame_time <= first_word;
    if (s_packet_end) packet_time <= ptp_pkg::earlier(frame_time, RX_LAG);
    if (rst) in_frame <= 1'b0;
  end
  ptp_clock #(
      .PERIOD(PERIOD)
  ) clock (
      .clk         (clk),
      .rst         (rst),
      .rate        (status.rate),
      .step_valid  (step_valid),
      .step_seconds(step_seconds),
      .step_ns     (step_ns),
      .now         (status.now),
      .pps         (status.pps)
  );
  assign step_valid = servo_step || set_valid;
  assign step_seconds = servo_step ? servo_seconds : {16'd0, set_seconds} - status.now[79:32];
  assign step_ns = servo_step ? servo_ns : '0;
  udp_ptp #(
      .WIDTH  (WIDTH),
      .TX_LEAD(TX_LEAD)
  ) ptp (
      .clk           (clk),
      .rst           (rst),
      .role          (role),
      .sync_clocks   (sync_clocks),
      .sync_log      (sync_log),
      .mac_address   (mac_address),
      .now           (status.now),
      .s_data        (s_data),
      .s_count       (s_count),
      .s_valid       (s_valid),
      .s_end         (s_end),
      .s_good        (s_good),
      .s_claimed     (s_claimed),
      .s_length      (s_length),
      .s_time        (packet_time),
      .drop_malformed(drop_malformed),
      .drop_ignored  (drop_ignored),
      .request       (request),
      .length        (length),
      .port          (port),
      .start         (start),
      .data          (data),
      .step_valid    (servo_step),
      .step_seconds  (servo_seconds),
      .step_ns       (servo_ns),
      .rate          (status.rate),
      .locked        (status.locked),
      .offset        (status.offset),
      .path_delay    (status.path_delay),
      .event_offset  (event_offset)
  );
endmodule
`default_nettype wire
