// Congestion control: adapts the delay between data frames to the share of retransmissions.
//
//                 +------------+
//   sent, again ->|            |====> delay (clocks), as the frames tell it
//   session ----->| congestion |====> pause (clocks), to keep after a frame
//   queued ------>|            |
//   paper_rule -->|            |
//                 +------------+
//
// Over each period of data frames, r = retransmitted / sent. The delay stays within [FLOOR, CEILING].
// Two rules:
//   fair: over PERIOD frames; r > 1/8: the delay grows by about the time of a frame times r - 1/8; else
//     it shrinks by 1/32. Boards that share a link come to equal delays: growth leaves the difference
//     of two delays as it is, shrinking makes it smaller (Chiu and Jain 1989, with delays in the place
//     of rates). While frames wait in a queue on their way, up to 1/32 of a frame's time is added to
//     each pause at random: else, of two boards at the rate of the port, one can find the only free
//     place of a full queue every time, lose nothing, and the other all (Floyd and Jacobson 1991).
//     Once the delay is 1/16 of a frame's time it is up to 3/4 of it: less can leave a rhythm of 2 to 1, for
//     a board does not compete with itself. `seed` makes boards differ. A board that began while
//     others filled the queue takes the full queue for normal and does not see it: after periods 1,
//     2, 4 .. 32 and each 64th a pause is a quarter of a frame longer, which gives the free place to
//     another.
//   the paper's: over PAPER_PERIOD frames; r > 1/8: the delay grows by a quarter, and by 16 clocks so
//     that it can leave zero; r < 1/32: it shrinks by a quarter. The ratio of two delays never changes.
module congestion #(
    parameter int FRAME_CLOCKS = 1032,  // of a data frame on the wire
    parameter int PERIOD = 256,
    parameter int PAPER_PERIOD = 1024,
    parameter int FLOOR = 0,
    parameter int CEILING = 1 << 20
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [14:0] seed,
    input  logic        session,
    input  logic        paper_rule,
    input  logic        queued,
    input  logic        sent,
    input  logic        again,
    output logic [31:0] delay,
    output logic [31:0] pause
);
  localparam int BITS = $clog2(CEILING) + 2;
  localparam int LONGEST = PERIOD > PAPER_PERIOD ? PERIOD : PAPER_PERIOD;
  localparam int COUNT_BITS = $clog2(LONGEST + 1);
  // Powers of two: a frame's time for all frames of a period, not below a clock for each; 1/32 of it.
  localparam int GROWTH_SHIFT = FRAME_CLOCKS < PERIOD ? 0 : $clog2(FRAME_CLOCKS / PERIOD + 1) - 1;
  localparam int JITTER_BITS = $clog2(FRAME_CLOCKS / 32 + 1) - 1;
  localparam int FRAME_BITS = $clog2(FRAME_CLOCKS + 1) - 1;
  localparam logic [31:0] PROBE = FRAME_CLOCKS / 4;
  localparam logic [BITS-1:0] LEAST = BITS'(FLOOR);
  localparam logic [BITS-1:0] MOST = BITS'(CEILING);
  localparam logic [BITS-1:0] PAPER_STEP = BITS'(16);

  if (PERIOD < 32 || PAPER_PERIOD < 32 || FLOOR < 0 || FLOOR > CEILING) begin : g_check
    $error("congestion: expected periods >= 32 and 0 <= FLOOR <= CEILING");
  end
  if (FRAME_CLOCKS < 64 || FRAME_CLOCKS > CEILING) begin : g_check_frame
    $error("congestion: expected a frame of 64 to CEILING clocks");
  end

  logic [COUNT_BITS-1:0] frames, retransmitted, final_frame, high, low, excess;
  logic period_over, probing;
  logic [6:0] periods;  // the seventh bit stays
  logic [5:0] periods_less;
  logic [BITS-1:0] value, part, shrunk, grown;
  logic [15:0] random;

  assign excess = retransmitted - high;
  always_comb begin
    if (paper_rule) begin
      final_frame = COUNT_BITS'(PAPER_PERIOD - 1);
      high = COUNT_BITS'(PAPER_PERIOD / 8);
      low = COUNT_BITS'((PAPER_PERIOD + 31) / 32);
      part = value >> 2;
      grown = value + part + PAPER_STEP;
    end else begin
      final_frame = COUNT_BITS'(PERIOD - 1);
      high = COUNT_BITS'(PERIOD / 8);
      low = COUNT_BITS'(PERIOD / 8 + 1);
      part = value >> 5;
      grown = value + (BITS'(excess) << GROWTH_SHIFT);
    end
    // At least by one, so that it comes back to zero.
    shrunk = value - part - BITS'(value != '0 && part == '0);
  end
  assign delay = 32'(value);
  always_comb begin
    pause = delay;
    if (!paper_rule) begin
      if (value[BITS-1:FRAME_BITS-4] != '0)
        pause = delay + 32'(random[FRAME_BITS-1:0]) - 32'(random[FRAME_BITS-1:2]);
      else if (queued) pause = 32'(random[JITTER_BITS-1:0]);
      else if (probing) pause = PROBE;
    end
  end
  assign periods_less = periods[5:0] - 1'b1;

  always_ff @(posedge clk) begin
    period_over <= 1'b0;
    if (sent) begin
      probing <= 1'b0;
      frames  <= frames + 1'b1;
      if (again) retransmitted <= retransmitted + 1'b1;
      period_over <= frames == final_frame;
    end
    if (period_over) begin
      frames <= '0;
      retransmitted <= '0;
      periods <= {periods[6] | (&periods[5:0]), periods[5:0] + 1'b1};
      // A power of two, or a 64th.
      probing <= (periods[5:0] & periods_less) == '0 && (!periods[6] || periods[5:0] == '0);
      if (retransmitted > high) value <= grown > MOST ? MOST : grown;
      else if (retransmitted < low) value <= shrunk <= LEAST ? LEAST : shrunk;
    end
    if (rst || !session) begin
      frames <= '0;
      retransmitted <= '0;
      period_over <= 1'b0;
      probing <= 1'b0;
      periods <= 7'd1;
      value <= LEAST;
    end
    // x^16 + x^15 + x^13 + x^4 + 1 (Xilinx XAPP 052); never all ones.
    random <= {random[14:0], ~(random[15] ^ random[14] ^ random[12] ^ random[3])};
    if (rst) random <= {seed, 1'b0};
  end
endmodule
