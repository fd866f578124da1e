// SPDX-License-Identifier: Apache-2.0
//
// Measures the round trip of the frames of a FADE core (transmit clock).
//
//   start --------->+-----------------+
//   answered ------>|                 |====> round_trip (units)
//   covered ------->| fade_round_trip |----> queued, batched
//   abandoned ----->|                 |----> measuring, overdue
//   lost ---------->|                 |----> unit (one clock in 2^UNIT_BITS)
//                   +-----------------+
//
// One frame at a time is measured, from `start` to `answered`, or until it is `covered` by the answer to a later frame,
// which gives no exact time (batched: the last measurement ended so). `abandoned`: no measurement. The estimate follows
// growth at once and shrinks by a quarter of the difference. With COVERED_SHRINKS = 0 a covered frame does not shrink it,
// because others of its batch waited longer. It doubles when the frame or its answer is `lost`.
// overdue: the frame has taken more than twice the estimate, or as long as can be measured. queued: the last one that was
// answered took a quarter longer than the best, so frames wait somewhere on their way.
//
// Times are in units of 2^UNIT_BITS clocks; SHORTEST, INITIAL and LONGEST are in clocks. The arithmetic takes a step a clock.
`default_nettype none
module fade_round_trip #(
    parameter int UNIT_BITS = 4,
    parameter int SHORTEST = 256,
    parameter int INITIAL = 65536,  // until one is known
    parameter int LONGEST = 1048576,
    parameter bit COVERED_SHRINKS = 1'b1,
    parameter int BITS = $clog2(LONGEST / 2 ** UNIT_BITS)
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            start,
    input  logic            answered,
    input  logic            covered,
    input  logic            abandoned,
    input  logic            lost,
    output logic            unit,
    output logic            measuring,
    output logic            batched,
    output logic            overdue,
    output logic [BITS-1:0] round_trip,
    output logic            queued
);
  localparam logic [BITS-1:0] LEAST = BITS'(SHORTEST / 2 ** UNIT_BITS);
  localparam logic [BITS-1:0] MOST = BITS'((LONGEST - 1) / 2 ** UNIT_BITS);

  if (SHORTEST < 2 ** UNIT_BITS || INITIAL < SHORTEST || INITIAL > LONGEST) begin : g_check
    $error("fade_round_trip: expected 2^UNIT_BITS <= SHORTEST <= INITIAL <= LONGEST");
  end

  typedef enum logic [2:0] {
    IDLE,
    MEASURE,
    COMPARE,
    SHRINK,
    BLEND,
    EXCEED,
    JUDGE
  } step_t;

  step_t step;
  logic [UNIT_BITS-1:0] clocks;
  logic [BITS-1:0] sample, best;
  logic is_longer, is_best;

  assign measuring = step == MEASURE;

  always_ff @(posedge clk) begin
    clocks  <= clocks + 1'b1;
    unit    <= clocks == '1;
    overdue <= step == MEASURE && (sample == MOST || (sample >> 1) > round_trip);
    case (step)
      IDLE:
      if (start) begin
        sample <= LEAST;
        step   <= MEASURE;
      end
      MEASURE: begin
        if (unit && sample != MOST) sample <= sample + 1'b1;
        if (answered || covered) begin
          batched <= covered;
          step <= COMPARE;
        end else if (abandoned) step <= IDLE;
      end
      COMPARE: begin
        is_longer <= sample > round_trip;
        is_best <= !batched && sample < best;
        step <= SHRINK;
      end
      SHRINK: begin
        if (is_longer) round_trip <= sample;
        else if (COVERED_SHRINKS || !batched) round_trip <= round_trip - (round_trip >> 2);
        if (is_best) best <= sample;
        step <= BLEND;
      end
      BLEND: begin
        if (!is_longer && (COVERED_SHRINKS || !batched)) round_trip <= round_trip + (sample >> 2);
        step <= EXCEED;
      end
      EXCEED: begin
        sample <= sample - best;
        step   <= JUDGE;
      end
      default: begin
        if (!batched) queued <= sample > (best >> 2);
        step <= IDLE;
      end
    endcase
    if (lost) begin
      round_trip <= round_trip > (MOST >> 1) ? MOST : round_trip << 1;
      step <= IDLE;
    end
    if (rst) begin
      step <= IDLE;
      clocks <= '0;
      queued <= 1'b0;
      batched <= 1'b0;
      round_trip <= BITS'((INITIAL - 1) / 2 ** UNIT_BITS);
      best <= MOST;
    end
  end
endmodule
`default_nettype wire
