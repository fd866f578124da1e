// Congestion control: adapts the delay between data frames to the share of retransmissions.
//
//                 +--------------------+
//   sent -------->|                    |
//   again ------->| fade10g_congestion |====> delay (clocks)
//   session ----->|                    |
//                 +--------------------+
//
// Over each period of 2^PERIOD_BITS data frames, r = retransmitted / sent. r > 2^-HIGH_SHIFT: the
// delay grows by a quarter, and by STEP so that it can leave zero; r < 2^-LOW_SHIFT: it shrinks by
// a quarter. It stays within [FLOOR, CEILING].
module fade10g_congestion #(
    parameter int PERIOD_BITS = 10,
    parameter int HIGH_SHIFT = 3,
    parameter int LOW_SHIFT = 5,
    parameter int STEP = 16,
    parameter int FLOOR = 0,
    parameter int CEILING = 1 << 20
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        session,
    input  logic        sent,
    input  logic        again,
    output logic [31:0] delay
);
  localparam int BITS = $clog2(CEILING) + 2;
  localparam logic [BITS-1:0] LEAST = BITS'(FLOOR);
  localparam logic [BITS-1:0] MOST = BITS'(CEILING);
  localparam logic [PERIOD_BITS:0] HIGH = (PERIOD_BITS + 1)'(1 << (PERIOD_BITS - HIGH_SHIFT));
  localparam logic [PERIOD_BITS:0] LOW = (PERIOD_BITS + 1)'(1 << (PERIOD_BITS - LOW_SHIFT));

  if (LOW_SHIFT < HIGH_SHIFT || PERIOD_BITS < LOW_SHIFT || FLOOR > CEILING) begin : g_check
    $error("fade10g_congestion: expected HIGH_SHIFT <= LOW_SHIFT <= PERIOD_BITS, FLOOR <= CEILING");
  end

  logic [PERIOD_BITS-1:0] frames;
  logic [PERIOD_BITS:0] retransmitted;
  logic period_over;
  logic [BITS-1:0] value, grown, shrunk;

  assign grown  = value + (value >> 2) + BITS'(STEP);
  assign shrunk = value - (value >> 2) - BITS'(value != '0 && value < BITS'(4));
  assign delay  = 32'(value);

  always_ff @(posedge clk) begin
    period_over <= 1'b0;
    if (sent) begin
      frames <= frames + 1'b1;
      period_over <= frames == '1;
      if (again) retransmitted <= retransmitted + 1'b1;
    end
    if (period_over) begin
      retransmitted <= '0;
      if (retransmitted > HIGH) value <= grown > MOST ? MOST : grown;
      else if (retransmitted < LOW) value <= shrunk <= LEAST ? LEAST : shrunk;
    end
    if (rst || !session) begin
      frames <= '0;
      retransmitted <= '0;
      period_over <= 1'b0;
      value <= LEAST;
    end
  end
endmodule
