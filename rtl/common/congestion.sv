// SPDX-License-Identifier: Apache-2.0
//
// Congestion control: adapts the delay between data frames to the share of retransmissions.
//
//                 +------------+
//   sent, again ->|            |====> delay (clocks), as the frames tell it
//   idle -------->|            |----> pausing: no data frame may start
//   session ----->| congestion |
//   queued ------>|            |
//   paper_rule -->|            |
//                 +------------+
//
// `sent`: the header of a frame was sent; its rest takes ten clocks or more. `idle`: no frame is being sent; then the pause
// after a data frame runs.
//
// Over each period of data frames, r = retransmitted / sent. The delay stays within [FLOOR, CEILING].
// Two rules:
//   fair: over PERIOD frames; r > 1/8: the delay grows by about the time of a frame times r - 1/8; else
//     it shrinks by 1/32. Boards that share a link reach equal delays: growth keeps the difference
//     of two delays, shrinking reduces it (Chiu and Jain 1989, for delays instead of rates). While
//     frames wait in a queue on their way, up to 1/32 of a frame's time is added to
//     each pause at random. Otherwise, of two boards at the rate of the port, one can find the only
//     free slot of a full queue every time, and the other loses everything (Floyd and Jacobson 1991).
//     When the delay is 1/16 of a frame's time, up to 3/4 of that time is added, because less can
//     leave a rhythm of 2 to 1 (docs/protocol/congestion.md). `seed` makes boards differ. A board that
//     began while others filled the queue regards the full queue as normal: therefore after periods 1,
//     2, 4 .. 32 and each 64th a pause is a quarter of a frame longer, which gives the free slot to
//     another board.
//   the paper's: over PAPER_PERIOD frames; r > 1/8: the delay grows by a quarter, and by 16 clocks so
//     that it can leave zero; r < 1/32: it shrinks by a quarter. The ratio of two delays never changes.
`default_nettype none
module congestion #(
    parameter int FRAME_CLOCKS = 1032,  // of a data frame on the wire
    parameter int PERIOD = 256,  // data frames between two decisions of the fair rule
    parameter int PAPER_PERIOD = 1024,  // data frames between two decisions of the paper's rule
    parameter int FLOOR = 0,
    parameter int CEILING = 1 << 20
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [14:0] seed,
    input  logic        session,
    input  logic        paper_rule,  // 1: the paper's rule; 0: the fair one
    input  logic        queued,
    input  logic        sent,
    input  logic        again,
    input  logic        idle,
    output logic [31:0] delay,
    output logic        pausing
);
  localparam int BITS = $clog2(CEILING) + 1;
  localparam int LONGEST = PERIOD > PAPER_PERIOD ? PERIOD : PAPER_PERIOD;
  localparam int COUNT_BITS = $clog2(LONGEST) + 1;  // with a sign
  // Powers of two: a frame's time for all frames of a period, not below a clock for each; 1/32 of it.
  localparam int GROWTH_SHIFT = FRAME_CLOCKS < PERIOD ? 0 : $clog2(FRAME_CLOCKS / PERIOD + 1) - 1;
  localparam int JITTER_BITS = $clog2(FRAME_CLOCKS / 32 + 1) - 1;
  localparam int FRAME_BITS = $clog2(FRAME_CLOCKS + 1) - 1;
  localparam logic [BITS-1:0] PROBE = BITS'(FRAME_CLOCKS / 4);
  localparam logic [BITS-1:0] LEAST = BITS'(FLOOR);
  localparam logic [BITS-1:0] MOST = BITS'(CEILING);
  localparam logic [BITS-1:0] PAPER_STEP = BITS'(16);
  // With the paper's rule the delay shrinks below a 32nd; from that to the eighth it stays.
  localparam logic [COUNT_BITS-1:0] PAPER_BAND = COUNT_BITS'(PAPER_PERIOD / 8 - (PAPER_PERIOD + 31) / 32);

  if (PERIOD < 32 || PAPER_PERIOD < 32 || FLOOR < 0 || FLOOR > CEILING) begin : g_check
    $error("congestion: expected periods >= 32 and 0 <= FLOOR <= CEILING");
  end
  if (FRAME_CLOCKS < 64 || FRAME_CLOCKS > CEILING) begin : g_check_frame
    $error("congestion: expected a frame of 64 to CEILING clocks");
  end

  // What is done in the clocks after a frame's header, one addition a clock.
  typedef enum logic [2:0] {
    REST,
    JUDGE,   // at the end of a period: up or down
    ADJUST,
    STEP,    // of the paper's growth
    CLAMP,
    LOAD,    // the pause, and what is added to it at random: a frame's time less a quarter of it
    ADD,
    REDUCE
  } state_t;

  (* fsm_encoding = "none" *) state_t state;
  logic [COUNT_BITS-2:0] frames_left, frames_first;
  logic [COUNT_BITS-1:0]
      excess, excess_first, excess_in_band;  // of retransmissions over an eighth; signed
  logic goes_up, goes_down, probing, spreads;
  logic [6:0] periods;  // the seventh bit stays
  logic [5:0] periods_less;
  logic [BITS-1:0] value, part, change, pause;
  logic is_least_step;
  logic [15:0] random;

  assign frames_first = paper_rule ? (COUNT_BITS - 1)'(PAPER_PERIOD - 1) : (COUNT_BITS - 1)'(PERIOD - 1);
  assign excess_first = -(paper_rule ? COUNT_BITS'(PAPER_PERIOD / 8) : COUNT_BITS'(PERIOD / 8));
  assign excess_in_band = excess + PAPER_BAND;
  assign part = paper_rule ? value >> 2 : value >> 5;
  assign periods_less = periods[5:0] - 1'b1;
  assign delay = 32'(value);

  // One adder for the delay, which takes a change away when it goes down; one for the pause, which counts down else.
  logic subtracts, reduces;
  logic [BITS-1:0] value_next, pause_change, pause_next;
  assign subtracts = state == ADJUST && goes_down;
  assign reduces   = state == REDUCE;
  always_comb begin
    change = part;
    if (state == STEP) change = PAPER_STEP;
    else if (goes_up && !paper_rule) change = BITS'(excess) << GROWTH_SHIFT;
    else if (goes_down && is_least_step) change = BITS'(1);
    pause_change = '1;
    if (state == ADD) pause_change = BITS'(random[FRAME_BITS-1:0]);
    else if (state == REDUCE)
      pause_change = {{(BITS - FRAME_BITS + 2) {1'b1}}, ~random[FRAME_BITS-1:2]};
  end
  assign value_next = value + (change ^ {BITS{subtracts}}) + BITS'(subtracts);
  assign pause_next = pause + pause_change + BITS'(reduces);

  always_ff @(posedge clk) begin
    pausing <= pause != '0;
    spreads <= value[BITS-1:FRAME_BITS-4] != '0 && !paper_rule;
    // So that it comes back to zero.
    is_least_step <= value != '0 && part == '0;
    if (state == ADD || state == REDUCE || (idle && pause != '0)) pause <= pause_next;

    case (state)
      REST:
      if (sent) begin
        probing <= 1'b0;
        excess <= excess + COUNT_BITS'(again);
        frames_left <= frames_left - 1'b1;
        state <= frames_left == '0 ? JUDGE : LOAD;
      end
      JUDGE: begin
        goes_up <= !excess[COUNT_BITS-1] && excess != '0;
        goes_down <= paper_rule ? excess_in_band[COUNT_BITS-1] : excess[COUNT_BITS-1] || excess == '0;
        periods <= {periods[6] | (&periods[5:0]), periods[5:0] + 1'b1};
        // A power of two, or a 64th.
        probing <= (periods[5:0] & periods_less) == '0 && (!periods[6] || periods[5:0] == '0);
        state <= ADJUST;
      end
      ADJUST: begin
        if (goes_up || goes_down) value <= value_next;
        frames_left <= frames_first;
        excess <= excess_first;
        state <= goes_up && paper_rule ? STEP : CLAMP;
      end
      STEP: begin
        value <= value_next;
        state <= CLAMP;
      end
      CLAMP: begin
        if (value > MOST) value <= MOST;
        else if (value <= LEAST) value <= LEAST;
        state <= LOAD;
      end
      LOAD: begin
        pause <= value;
        if (!paper_rule && !spreads) begin
          if (queued) pause <= BITS'(random[JITTER_BITS-1:0]);
          else if (probing) pause <= PROBE;
        end
        state <= spreads ? ADD : REST;
      end
      ADD: state <= REDUCE;
      default: state <= REST;
    endcase

    if (rst || !session) begin
      state <= REST;
      frames_left <= frames_first;
      excess <= excess_first;
      probing <= 1'b0;
      periods <= 7'd1;
      value <= LEAST;
      pause <= '0;
    end
    // x^16 + x^15 + x^13 + x^4 + 1 (Xilinx XAPP 052); never all ones. The two steps of a pause take the same number.
    if (state != ADD) random <= {random[14:0], ~(random[15] ^ random[14] ^ random[12] ^ random[3])};
    if (rst) random <= {seed, 1'b0};
  end
endmodule
`default_nettype wire
