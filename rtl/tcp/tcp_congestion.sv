// SPDX-License-Identifier: Apache-2.0
//
// Congestion window of each stream: slow start, congestion avoidance, fast recovery (RFC 5681, 6582, 6928).
//
//                 +----------------+
//   stream ======>|                |====> window (words, of the stream)
//   op =========> | tcp_congestion |----> busy
//   amount ======>|                |
//   flight ======>|                |
//   limit =======>|                |
//   slower ------>|                |
//                 +----------------+
//
// All amounts are in words of 64 bits. `amount` is what an ACK confirmed, `flight` what is under way after it, `limit` a
// full segment. An operation takes up to 21 clocks, in which all other inputs are stable. The window is at most the buffer.
//
// In slow start an ACK opens the window by what it confirmed, two segments at most (RFC 3465, for receivers that confirm
// many at once); in congestion avoidance by one segment for each confirmed window. Slow start also ends when the round trip
// was longer than the earlier ones by four times their variation, because then a queue fills (after RFC 9406).
`default_nettype none
module tcp_congestion #(
    parameter int STREAMS = 1,
    parameter int BITS = 12,  // the socket buffer is 2^BITS words
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input logic clk,
    input logic rst,
    input logic [STREAM_BITS-1:0] stream,
    input tcp_pkg::congestion_op op,
    input logic [BITS:0] amount,
    input logic [BITS:0] flight,
    input logic [tcp_pkg::WORDS_BITS-1:0] limit,
    input logic slower,  // the last round trip
    output logic busy,
    output logic [BITS:0] window
);
  localparam int WIDTH = BITS + 1;
  localparam int SUM = (WIDTH < tcp_pkg::WORDS_BITS + 1 ? tcp_pkg::WORDS_BITS + 1 : WIDTH) + 2;  // with a sign
  // The initial window is ten segments where they are 14600 bytes at most, else two (within the bound of RFC 6928).
  localparam int INITIAL = 14600 / 8;
  localparam logic [WIDTH-1:0] MOST = {1'b1, BITS'(0)};
  // Words from which on slow start ends when the round trip grows.
  localparam int FEW = 2048;

  typedef enum logic [3:0] {
    REST,
    OPEN,
    REST_BASE,  // is it more than the initial window, and how much
    REST_BOUND,
    COMPARE,  // slow start or congestion avoidance
    COUNT,
    JUDGE,
    HALVE,
    HALVE_BOUND,
    DEFLATE,
    MEND,
    MEND_BOUND,
    SET,  // to a full segment, to what is under way, or to the threshold
    SET_BASE,  // to eight segments, or the initial window if that is less
    ADD_TWO,
    ADD_ONE
  } state_t;
  // Four bits, which one look-up table decodes.
  (* fsm_encoding = "none" *)
  state_t state, next;
  assign busy = state != REST;

  logic [WIDTH-1:0] threshold, window_next;
  logic [SUM-1:0] credit, credit_next, x, x_next, y, y_next, sum, one, two;
  logic [SUM:0] raw_sum;
  tcp_pkg::congestion_op kind;
  logic [WIDTH-1:0] base;
  logic
      slow,
      taken,
      summed,
      writes,
      to_flight,
      to_flight_next,
      to_threshold,
      to_threshold_next,
      is_short,
      is_lost,
      is_large,
      subtract,
      subtract_next,
      is_less,
      write_window,
      write_threshold,
      write_credit;
  logic [WIDTH-1:0] threshold_next;
  assign one = SUM'(limit);
  assign two = SUM'(limit) << 1;
  assign is_lost = kind == tcp_pkg::CONGESTION_LOST || kind == tcp_pkg::CONGESTION_LOST_TOO;
  always_comb begin
    base = is_short ? WIDTH'(limit) << 3 : WIDTH'(limit) << 1;
    if (BITS < 11 && 14'(limit) << 3 > 14'(MOST)) base = MOST;
  end

  // One adder. Of the four clocks of a state the first chooses its operands, the second takes them, the third keeps the sign of
  // the sum (a comparison is a difference), the fourth writes. The lowest bit is the carry into the others.
  typedef enum logic [2:0] {
    NONE,
    WINDOW,
    THRESHOLD,
    CREDIT,
    FLIGHT
  } first_t;
  typedef enum logic [2:0] {
    NOTHING,
    OF_WINDOW,
    OF_THRESHOLD,
    AMOUNT,
    ONE,
    TWO,
    BASE
  } second_t;
  first_t first, first_next;
  second_t second, second_next;
  always_comb begin
    first_next = WINDOW;
    second_next = ONE;
    subtract_next = 1'b0;
    case (state)
      OPEN:
      {first_next, second_next} = {NONE, kind == tcp_pkg::CONGESTION_OPENED_LATE ? ONE : BASE};
      REST_BASE: {second_next, subtract_next} = {BASE, 1'b1};
      REST_BOUND:
      {first_next, second_next, subtract_next} = {CREDIT, is_short ? TWO : NOTHING, 1'b1};
      SET_BASE: {first_next, second_next} = {NONE, BASE};
      COMPARE, MEND_BOUND: {second_next, subtract_next} = {OF_THRESHOLD, 1'b1};
      COUNT: {first_next, second_next} = {slow ? WINDOW : CREDIT, slow && is_large ? TWO : AMOUNT};
      JUDGE: {first_next, second_next, subtract_next} = {CREDIT, OF_WINDOW, 1'b1};
      HALVE_BOUND: {first_next, second_next, subtract_next} = {THRESHOLD, TWO, 1'b1};
      DEFLATE: {second_next, subtract_next} = {AMOUNT, 1'b1};
      MEND: {first_next, subtract_next} = {FLIGHT, 1'b1};
      SET:
      if (to_flight) {first_next, second_next} = {FLIGHT, NOTHING};
      else if (to_threshold) {first_next, second_next} = {THRESHOLD, NOTHING};
      else first_next = NONE;
      ADD_TWO: second_next = TWO;
      default: ;
    endcase
    case (first)
      WINDOW: x_next = SUM'(window);
      THRESHOLD: x_next = SUM'(threshold);
      CREDIT: x_next = credit;
      FLIGHT: x_next = SUM'(flight);
      default: x_next = '0;
    endcase
    case (second)
      OF_WINDOW: y_next = SUM'(window);
      OF_THRESHOLD: y_next = SUM'(threshold);
      AMOUNT: y_next = SUM'(amount);
      ONE: y_next = one;
      TWO: y_next = two;
      BASE: y_next = SUM'(base);
      default: y_next = '0;
    endcase
  end
  assign raw_sum = {x, 1'b1} + {y ^ {SUM{subtract}}, subtract};
  assign sum = raw_sum[SUM:1];

  assign window_next = is_less ? '0 : sum[SUM-2:BITS] != '0 ? MOST : sum[WIDTH-1:0];
  always_comb begin
    next = REST;
    threshold_next = flight >> 1;
    credit_next = sum;
    {write_window, write_threshold, write_credit} = '0;
    {to_flight_next, to_threshold_next} = {to_flight, to_threshold};
    case (state)
      REST: begin
        {to_flight_next, to_threshold_next} = '0;
        case (op)
          tcp_pkg::CONGESTION_OPENED, tcp_pkg::CONGESTION_OPENED_LATE: next = OPEN;
          tcp_pkg::CONGESTION_RESTED: next = REST_BASE;
          // The most there is stays.
          tcp_pkg::CONGESTION_ACKED: next = window[BITS] ? REST : COMPARE;
          tcp_pkg::CONGESTION_ANOTHER: next = ADD_ONE;
          tcp_pkg::CONGESTION_LOST, tcp_pkg::CONGESTION_MARKED, tcp_pkg::CONGESTION_TIMED_OUT:
          next = HALVE;
          tcp_pkg::CONGESTION_LOST_TOO: {next, to_threshold_next} = {SET, 1'b1};
          tcp_pkg::CONGESTION_TIMED_OUT_AGAIN: next = HALVE_BOUND;
          tcp_pkg::CONGESTION_PARTIAL: next = DEFLATE;
          tcp_pkg::CONGESTION_MENDED: next = MEND;
          default: ;
        endcase
      end
      OPEN: begin
        {write_window, write_threshold, write_credit} = '1;
        threshold_next = MOST;
        credit_next = '0;
        if (kind == tcp_pkg::CONGESTION_OPENED && is_short) next = ADD_TWO;
      end
      REST_BASE: begin
        write_credit = 1'b1;
        if (is_less) credit_next = '0;
        else next = REST_BOUND;
      end
      REST_BOUND: begin
        write_credit = 1'b1;
        credit_next  = '0;
        if (!is_less) next = SET_BASE;
      end
      SET_BASE: begin
        write_window = 1'b1;
        if (is_short) next = ADD_TWO;
      end
      COMPARE: next = COUNT;
      COUNT: begin
        write_window = slow;
        write_credit = !slow;
        write_threshold = slow && slower && 28'(window) >= 28'(FEW);
        threshold_next = window;
        next = slow ? REST : JUDGE;
      end
      JUDGE:   next = is_less ? REST : ADD_ONE;
      HALVE: begin
        write_threshold = 1'b1;
        next = HALVE_BOUND;
      end
      HALVE_BOUND: begin
        write_threshold = is_less;
        threshold_next = WIDTH'(two);
        to_threshold_next = kind == tcp_pkg::CONGESTION_LOST || kind == tcp_pkg::CONGESTION_MARKED;
        next = SET;
      end
      DEFLATE: begin
        write_window = 1'b1;
        next = ADD_ONE;
      end
      MEND: begin
        to_flight_next = !is_less;
        next = SET;
      end
      SET: begin
        write_window = 1'b1;
        if (is_lost) next = ADD_TWO;
        if (kind == tcp_pkg::CONGESTION_MENDED && !to_threshold) next = ADD_ONE;
      end
      MEND_BOUND: begin
        {to_flight_next, to_threshold_next} = 2'b01;
        if (!is_less) next = SET;
      end
      ADD_TWO: begin
        write_window = 1'b1;
        if (is_lost) next = ADD_ONE;
      end
      ADD_ONE: begin
        write_window = 1'b1;
        write_credit = 1'b1;
        credit_next  = '0;
        if (kind == tcp_pkg::CONGESTION_MENDED) next = MEND_BOUND;
      end
      default: ;
    endcase
  end

  tcp_context #(
      .WIDTH  (WIDTH),
      .STREAMS(STREAMS)
  ) window_context (
      .clk   (clk),
      .stream(stream),
      .write (write_window && writes),
      .d     (window_next),
      .q     (window)
  );
  tcp_context #(
      .WIDTH  (WIDTH),
      .STREAMS(STREAMS)
  ) threshold_context (
      .clk   (clk),
      .stream(stream),
      .write (write_threshold && writes),
      .d     (threshold_next),
      .q     (threshold)
  );
  tcp_context #(
      .WIDTH  (SUM),
      .STREAMS(STREAMS)
  ) credit_context (
      .clk   (clk),
      .stream(stream),
      .write (write_credit && writes),
      .d     (credit_next),
      .q     (credit)
  );

  always_ff @(posedge clk) begin
    {first, second, subtract} <= {first_next, second_next, subtract_next};
    {x, y} <= {x_next, y_next};
    is_less <= sum[SUM-1];
    {writes, summed, taken} <= {summed, taken, state != REST && !taken && !summed && !writes};
    is_large <= SUM'(amount) > two;
    // Of short segments ten.
    is_short <= limit <= tcp_pkg::WORDS_BITS'(INITIAL / 10);
    if (state == REST) kind <= op;
    if (state == REST || writes) begin
      state <= next;
      if (state == COMPARE) slow <= is_less;
      {to_flight, to_threshold} <= {to_flight_next, to_threshold_next};
    end
    if (rst) begin
      state <= REST;
      {taken, summed, writes} <= '0;
    end
  end
  logic unused;
  assign unused = raw_sum[0];
endmodule
`default_nettype wire
