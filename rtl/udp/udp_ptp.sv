// SPDX-License-Identifier: Apache-2.0
//
// PTP over UDP: an ordinary clock, slave or master, two-step, delay request-response (IEEE 1588-2008).
//
//              +---------+
//   s_* ======>|         |====> request, length, port, start, data (to the UDP layer)
//   (UDP)      | udp_ptp |====> step_*, rate (ptp_clock)
//   now ======>|         |====> offset, path_delay, state
//              +---------+
//
// Who is master is a setting (role): there is no best master clock algorithm; a slave follows the first
// master that it hears, and another when that one is silent for TIMEOUT intervals of Sync.
//
// s_time: when the frame passed the MAC. Since layers pull, a frame that is started leaves a fixed time
// later: TX_LEAD is the time from the start of this module's data back to the frame's first byte on the wire.
`default_nettype none
module udp_ptp #(
    parameter int WIDTH = 8,
    parameter int ANNOUNCE_LOG = 1,  // 2^ANNOUNCE_LOG Sync for an Announce
    parameter int TIMEOUT = 8,
    parameter int TX_LEAD = 296,  // nanoseconds
    parameter int CLOCKS_LOG = 27
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic           [      1:0] role,
    input  logic           [     31:0] sync_clocks,     // between two Sync of a master
    input  logic signed    [      7:0] sync_log,        // its logarithm in seconds, as it is told
    input  logic           [     47:0] mac_address,
    input  ptp_pkg::time_t             now,
    // from the UDP layer
    input  logic           [WIDTH-1:0] s_data,
    input  logic           [      3:0] s_count,
    input  logic                       s_valid,
    input  logic                       s_end,
    input  logic                       s_good,
    input  logic                       s_claimed,       // it is for one of PTP's ports
    input  logic           [     15:0] s_length,
    input  ptp_pkg::time_t             s_time,
    output logic                       drop_malformed,
    output logic                       drop_ignored,
    // to the UDP layer
    output logic                       request,
    output logic           [     13:0] length,
    output logic           [     15:0] port,
    input  logic                       start,
    output logic           [WIDTH-1:0] data,
    // clock
    output logic                       step_valid,
    output logic           [     47:0] step_seconds,
    output logic signed    [     31:0] step_ns,
    output logic signed    [     31:0] rate,
    output logic                       locked,
    output logic signed    [     31:0] offset,          // from the master, ns
    output logic signed    [     31:0] path_delay,      // ns
    output logic                       event_offset     // an offset was found
);
  localparam logic signed [31:0] SECOND = 32'(ptp_pkg::SECOND);

  // ---- receive -------------------------------------------------------------------------------
  // What all messages have; then the identity that an answer is for.
  logic [ptp_pkg::EVENT_BYTES*8-1:0] message;
  logic complete, head_ended, head_good, ended, good, has_requesting;
  logic [WIDTH-1:0] body, behind;
  logic [3:0] body_count, behind_count;
  logic body_valid, behind_valid;
  logic [79:0] requesting;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(ptp_pkg::EVENT_BYTES)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (s_data),
      .s_count (s_count),
      .s_valid (s_valid),
      .s_end   (s_end),
      .s_good  (s_good && s_claimed),
      .header  (message),
      .complete(complete),
      .m_data  (body),
      .m_count (body_count),
      .m_valid (body_valid),
      .m_end   (head_ended),
      .m_good  (head_good)
  );
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(ptp_pkg::IDENTITY_BYTES)
  ) strip_requesting (
      .clk     (clk),
      .rst     (rst),
      .s_data  (body),
      .s_count (body_count),
      .s_valid (body_valid),
      .s_end   (head_ended),
      .s_good  (head_good),
      .header  (requesting),
      .complete(has_requesting),
      .m_data  (behind),
      .m_count (behind_count),
      .m_valid (behind_valid),
      .m_end   (ended),
      .m_good  (good)
  );

  logic [3:0] kind, version;
  logic [15:0] message_length, flags, message_sequence, size;
  logic [7:0] domain, log_interval;
  logic signed [31:0] correction;  // whole nanoseconds
  logic [79:0] source, stamp;
  ptp_pkg::time_t arrival;
  assign {kind, version} = {message[347:344], message[339:336]};
  assign {message_length, domain} = {message[335:320], message[319:312]};
  assign {flags, correction} = {message[303:288], message[271:240]};
  assign source = message[191:112];
  assign {message_sequence, log_interval} = {message[111:96], message[87:80]};
  assign stamp = message[79:0];

  logic malformed, whole;  // whole: the message had all that all messages have
  logic [79:0] identity;
  assign identity = {mac_address[47:24], 16'hFFFE, mac_address[23:0], 16'd1};
  always_comb begin
    malformed = !whole || version != ptp_pkg::VERSION || size < message_length || message_length < 16'(ptp_pkg::EVENT_BYTES);
    if (kind == ptp_pkg::DELAY_RESP && (!has_requesting || message_length < 16'(ptp_pkg::RESPONSE_BYTES)))
      malformed = 1'b1;
  end

  logic take, from_master, has_master, mine;
  logic is_announce, is_sync, is_follow, is_response, is_request, used;
  logic
      awaits_follow, awaits_response, request_due, response_due, follow_due, sync_due, announce_due;
  logic [15:0]
      sync_sequence, request_sequence, my_sync, my_announce, answer_sequence, follow_sequence;
  logic [79:0] master;
  assign take = ended && good && !malformed && domain == '0 && role != ptp_pkg::OFF;
  assign from_master = take && role == ptp_pkg::SLAVE && source == master && has_master;
  assign mine = requesting == identity;
  assign drop_malformed = ended && good && malformed;
  assign drop_ignored = ended && good && !malformed && !used;

  // What the message is to us.
  assign is_announce = take && role == ptp_pkg::SLAVE && kind == ptp_pkg::ANNOUNCE && (!has_master || source == master);
  assign is_sync = from_master && kind == ptp_pkg::SYNC;
  assign is_follow = from_master && kind == ptp_pkg::FOLLOW_UP && awaits_follow && message_sequence == sync_sequence;
  assign is_response = from_master && kind == ptp_pkg::DELAY_RESP && mine && awaits_response
      && message_sequence == request_sequence;
  assign is_request = take && role == ptp_pkg::MASTER && kind == ptp_pkg::DELAY_REQ && !response_due;
  assign used = is_announce || is_sync || is_follow || is_response || is_request;

  // ---- times ---------------------------------------------------------------------------------
  // Nanoseconds from b to a, without their seconds.
  function automatic signed [32:0] ns_between(input [31:0] a, input [31:0] b);
    ns_between = $signed({1'b0, a}) - $signed({1'b0, b});
  endfunction
  ptp_pkg::time_t left_at;
  assign left_at = ptp_pkg::earlier(now, TX_LEAD);
  logic [79:0] answer_to;
  ptp_pkg::time_t sync_arrival, request_left, sync_left, request_arrival;
  logic signed [31:0] sync_correction, follow_correction;
  logic signed [7:0] interval;
  logic [79:0] origin;

  // Master to slave, then the way back; a step between makes the pair worthless.
  logic [47:0] there_seconds, back_seconds;
  logic signed [32:0] there_ns, back_ns;
  logic there_valid, there_near, have_there, back_valid, back_near, has_delay, offset_valid;
  logic signed [31:0] there, back, mean;
  logic signed [39:0] delay_fine, mean_fine;  // in 1/256 ns
  assign mean_fine  = {mean, 8'd0};
  assign there_near = there_seconds == '0 || there_seconds == 48'd1 || there_seconds == '1;
  assign back_near  = back_seconds == '0 || back_seconds == 48'd1 || back_seconds == '1;
  function automatic signed [31:0] flat(input [47:0] seconds, input signed [32:0] ns);
    reg signed [33:0] sum;
    begin
      sum = 34'(ns) + (seconds == 48'd1 ? 34'(SECOND) : seconds == '1 ? -34'(SECOND) : 34'sd0);
      flat = sum > 34'sd2_000_000_000 ? 32'sd2_000_000_000 : sum < -34'sd2_000_000_000 ? -32'sd2_000_000_000 : sum[31:0];
    end
  endfunction
  assign path_delay = 32'((delay_fine + 40'sd128) >>> 8);
  assign mean = 32'((33'(there) + 33'(back)) >>> 1);

  logic sent;  // the message is out
  logic [31:0] timer;
  logic [1:0] evaluate;
  logic [1:0] settle;
  logic [7:0] silence;
  logic [3:0] kind_now;
  logic [ANNOUNCE_LOG:0] until_announce;

  always_ff @(posedge clk) begin
    there_valid  <= 1'b0;
    back_valid   <= 1'b0;
    offset_valid <= 1'b0;
    event_offset <= offset_valid;
    if (s_end) {arrival, size} <= {s_time, s_length};
    if (head_ended) whole <= complete;

    // -- received
    if (is_announce) begin
      has_master <= 1'b1;
      master <= source;
    end
    if (is_sync) begin
      sync_arrival <= arrival;
      sync_sequence <= message_sequence;
      sync_correction <= correction;
      interval <= log_interval;
      silence <= '0;
      awaits_follow <= (flags & ptp_pkg::FLAG_TWO_STEP) != '0;
      if ((flags & ptp_pkg::FLAG_TWO_STEP) == '0) begin
        origin <= stamp;
        follow_correction <= '0;
        there_valid <= 1'b1;
      end
    end
    if (is_follow) begin
      awaits_follow <= 1'b0;
      origin <= stamp;
      follow_correction <= correction;
      there_valid <= 1'b1;
    end
    if (is_response) begin
      awaits_response <= 1'b0;
      back_seconds <= stamp[79:32] - request_left[79:32];
      back_ns <= ns_between(stamp[31:0], request_left[31:0]) - 33'(correction);
      back_valid <= 1'b1;
    end
    if (is_request) begin
      response_due <= 1'b1;
      answer_to <= source;
      answer_sequence <= message_sequence;
      request_arrival <= arrival;
    end

    // -- evaluated
    if (there_valid) begin
      there_seconds <= sync_arrival[79:32] - origin[79:32];
      there_ns <= ns_between(
          sync_arrival[31:0], origin[31:0]
      ) - 33'(sync_correction) - 33'(follow_correction);
      have_there <= 1'b1;
      request_due <= 1'b1;
    end
    there <= flat(there_seconds, there_ns);
    back <= flat(back_seconds, back_ns);
    evaluate <= {evaluate[0], there_valid};
    if (evaluate[1]) begin
      offset <= there - path_delay;
      offset_valid <= 1'b1;
    end
    settle <= {settle[0], back_valid};
    if (settle[1] && have_there && there_near && back_near) begin
      // The delay is no faster than its noise: an eighth of the difference.
      delay_fine <= has_delay ? delay_fine + ((mean_fine - delay_fine) >>> 3) : mean_fine;
      has_delay  <= 1'b1;
    end
    if (step_valid) {have_there, awaits_response, has_delay} <= '0;

    // -- sent
    if (start && kind_now == ptp_pkg::SYNC) sync_left <= left_at;
    if (start && kind_now == ptp_pkg::DELAY_REQ) request_left <= left_at;
    if (sent) begin
      case (kind_now)
        ptp_pkg::SYNC: begin
          sync_due <= 1'b0;
          follow_due <= 1'b1;
          follow_sequence <= my_sync;
          my_sync <= my_sync + 16'd1;
        end
        ptp_pkg::FOLLOW_UP:  follow_due <= 1'b0;
        ptp_pkg::DELAY_RESP: response_due <= 1'b0;
        ptp_pkg::DELAY_REQ: begin
          request_due <= 1'b0;
          awaits_response <= 1'b1;
          request_sequence <= request_sequence + 16'd1;
        end
        default: begin
          announce_due <= 1'b0;
          my_announce  <= my_announce + 16'd1;
        end
      endcase
    end

    // -- time goes by
    timer <= timer == '0 ? sync_clocks - 32'd1 : timer - 1'b1;
    if (timer == '0) begin
      if (role == ptp_pkg::MASTER) begin
        sync_due <= 1'b1;
        until_announce <= until_announce == '0 ? (ANNOUNCE_LOG + 1)'((1 << ANNOUNCE_LOG) - 1) : until_announce - 1'b1;
        if (until_announce == '0) announce_due <= 1'b1;
      end
      if (silence == 8'(TIMEOUT)) has_master <= 1'b0;
      else if (!is_sync) silence <= silence + 8'd1;
    end
    if (is_announce && !has_master) silence <= '0;
    if (rst || role == ptp_pkg::OFF) begin
      {has_master, awaits_follow, awaits_response, request_due, response_due, follow_due, sync_due, announce_due} <= '0;
      {have_there, has_delay, there_valid, back_valid, offset_valid, event_offset, evaluate, settle} <= '0;
      {delay_fine, offset} <= '0;
      until_announce <= '0;
      timer <= '0;
      silence <= '0;
    end
    if (rst) {my_sync, my_announce, request_sequence} <= '0;
  end
  ptp_servo #(
      .CLOCKS_LOG(CLOCKS_LOG)
  ) servo (
      .clk         (clk),
      .rst         (rst || role != ptp_pkg::SLAVE),
      .offset_valid(offset_valid),
      .offset_far  (!there_near),
      .offset      (offset),
      .far_seconds (there_seconds),
      .far_ns      (there_ns[31:0]),
      .interval    (interval),
      .step_valid  (step_valid),
      .step_seconds(step_seconds),
      .step_ns     (step_ns),
      .rate        (rate),
      .locked      (locked)
  );
  // ---- transmit ------------------------------------------------------------------------------
  // The choice stands from the request to the message's end.
  logic chosen, started, was_sent, due;
  assign due = follow_due || response_due || sync_due || request_due || announce_due;
  assign request = chosen && !started;
  always_ff @(posedge clk) begin
    was_sent <= sent;  // the flags are a clock behind
    chosen   <= !rst && !sent && !was_sent && (chosen || due);
    started  <= !rst && !sent && (started || start);
    if (!chosen) begin
      kind_now <= follow_due ? ptp_pkg::FOLLOW_UP : response_due ? ptp_pkg::DELAY_RESP : sync_due ? ptp_pkg::SYNC
          : request_due ? ptp_pkg::DELAY_REQ : ptp_pkg::ANNOUNCE;
    end
  end

  logic [15:0] out_length, out_sequence;
  logic [7:0] control_field, out_log;
  logic [79:0] out_stamp;
  always_comb begin
    out_length = 16'(ptp_pkg::EVENT_BYTES);
    out_sequence = my_sync;
    out_stamp = '0;
    control_field = 8'd0;
    out_log = sync_log;
    case (kind_now)
      ptp_pkg::FOLLOW_UP: begin
        {out_sequence, out_stamp} = {follow_sequence, sync_left};
        control_field = 8'd2;
      end
      ptp_pkg::DELAY_RESP: begin
        out_length = 16'(ptp_pkg::RESPONSE_BYTES);
        {out_sequence, out_stamp} = {answer_sequence, request_arrival};
        control_field = 8'd3;
      end
      ptp_pkg::DELAY_REQ: begin
        out_sequence = request_sequence + 16'd1;
        control_field = 8'd1;
        out_log = 8'h7F;
      end
      ptp_pkg::ANNOUNCE: begin
        out_length = 16'(ptp_pkg::ANNOUNCE_BYTES);
        out_sequence = my_announce;
        control_field = 8'd5;
        out_log = sync_log + 8'(ANNOUNCE_LOG);
      end
      default: ;
    endcase
  end
  assign length = out_length[13:0];
  assign port = kind_now == ptp_pkg::SYNC || kind_now == ptp_pkg::DELAY_REQ ? ptp_pkg::PORT_EVENT : ptp_pkg::PORT_GENERAL;

  // Announce: no offset to UTC; priorities 128, class 248, accuracy and variance unknown; an oscillator of its own.
  localparam logic [7:0] PRIORITY = 8'd128;
  localparam logic [31:0] QUALITY = 32'hF8FE_FFFF;
  localparam logic [7:0] INTERNAL_OSCILLATOR = 8'hA0;
  logic [159:0] tail;
  assign tail = kind_now == ptp_pkg::ANNOUNCE
      ? {16'd0, 8'd0, PRIORITY, QUALITY, PRIORITY, identity[79:16], 16'd0, INTERNAL_OSCILLATOR}
      : {answer_to, 80'd0};

  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(ptp_pkg::ANNOUNCE_BYTES)
  ) out (
      .clk(clk),
      .rst(rst),
      .start(start),
      .header({
        4'd0,
        kind_now,
        4'd0,
        ptp_pkg::VERSION,
        out_length,
        16'd0,
        kind_now == ptp_pkg::SYNC ? ptp_pkg::FLAG_TWO_STEP : 16'd0,
        64'd0,
        32'd0,
        identity,
        out_sequence,
        control_field,
        out_log,
        out_stamp,
        tail
      }),
      .client_start(sent),
      .client_data('0),
      .data(data)
  );

  logic unused;
  assign unused = &{1'b0, behind, behind_count, behind_valid, message[343:340], message[351:348],
      message[311:304], message[287:272], message[239:192], message[95:88]};
endmodule
`default_nettype wire
