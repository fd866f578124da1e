// SPDX-License-Identifier: Apache-2.0
//
// Autonegotiation of 1000BASE-X, or of SGMII as its MAC (IEEE 802.3 clause 37.3, figure 37-6; receive clock).
//
//                      +-------------------+
//   synced, idle ----->|                   |====> mode, word (to basex_tx)
//   s_word* ==========>| basex_negotiation |====> link
//                      +-------------------+
//
// TIMER: clocks of the link timer, 10 ms, or 1.6 ms with SGMII. mode: see basex_tx. link: of 1000BASE-X at 1000 Mb/s in full duplex, if
// the partner has it; of SGMII what the PHY says. A change of the partner's ability, or no step, begins anew.
`default_nettype none
module basex_negotiation #(
    parameter int SGMII = 0,
    parameter int TIMER = SGMII != 0 ? 200_000 : 1_250_000
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  synced,
    input  logic                  idle,
    input  logic           [15:0] s_word,
    input  logic                  s_word_valid,
    output logic           [ 1:0] mode,
    output logic           [15:0] word,
    output mac_pkg::link_t        link
);
  localparam int TIMER_BITS = $clog2(TIMER + 1);
  localparam int ACKNOWLEDGE = 14;
  localparam int FULL_DUPLEX = 5;
  localparam logic [15:0] ABILITY = SGMII != 0 ? 16'h0001 : 16'h0020;
  localparam logic [15:0] MASK = ~(16'd1 << ACKNOWLEDGE);
  localparam logic [1:0] IDLE = 2'd0;
  localparam logic [1:0] CONFIGURATION = 2'd1;
  localparam logic [1:0] FRAMES = 2'd2;

  typedef enum logic [2:0] {
    BREAK,
    ABILITY_DETECT,
    ACKNOWLEDGE_DETECT,
    COMPLETE,
    IDLE_DETECT,
    UP
  } state_t;
  state_t state;
  logic [TIMER_BITS-1:0] timer;
  logic [15:0] last, ability;
  logic [1:0] same, idles;
  logic repeats, is_nothing, timed_out;
  // The third equal word in a row, but for the bit of the acknowledge.
  assign repeats = s_word_valid && same == 2'd2 && (s_word & MASK) == (last & MASK);
  assign is_nothing = repeats && s_word == '0;
  assign timed_out = timer == '0;

  state_t next;
  logic   changes;
  assign changes = repeats && (s_word & MASK) != ability;
  always_comb begin
    next = state;
    case (state)
      BREAK: if (timed_out) next = ABILITY_DETECT;
      ABILITY_DETECT: if (repeats && !is_nothing) next = ACKNOWLEDGE_DETECT;
      ACKNOWLEDGE_DETECT:
      if (changes) next = BREAK;
      else if (repeats && s_word[ACKNOWLEDGE] && last[ACKNOWLEDGE]) next = COMPLETE;
      COMPLETE:
      if (changes) next = BREAK;
      else if (timed_out) next = IDLE_DETECT;
      IDLE_DETECT:
      if (is_nothing) next = BREAK;
      else if (timed_out && idles == '1) next = UP;
      default: if (repeats) next = BREAK;
    endcase
  end

  always_ff @(posedge clk) begin
    if (!timed_out) timer <= timer - 1'b1;
    if (s_word_valid) begin
      last <= s_word;
      if ((s_word & MASK) != (last & MASK)) same <= 2'd1;
      else if (same != 2'd2) same <= same + 2'd1;
    end
    if (idle) same <= '0;
    if (s_word_valid) idles <= '0;
    else if (idle && idles != '1) idles <= idles + 2'd1;

    state <= next;
    // Each state has its own time.
    if (next != state) timer <= TIMER_BITS'(TIMER);
    if (state == ABILITY_DETECT && repeats) ability <= s_word & MASK;
    if (rst || !synced) begin
      state <= BREAK;
      timer <= TIMER_BITS'(TIMER);
      {same, idles} <= '0;
    end
  end

  always_ff @(posedge clk) begin
    mode <= state == IDLE_DETECT ? IDLE : state == UP ? FRAMES : CONFIGURATION;
    word <= state == BREAK ? '0 : ABILITY;
    if (state == ACKNOWLEDGE_DETECT || state == COMPLETE) word[ACKNOWLEDGE] <= 1'b1;
    link.up <= state == UP && (SGMII != 0 ? ability[15] : ability[FULL_DUPLEX]);
    link.speed <= SGMII != 0 ? ability[11:10] : mac_pkg::SPEED_1000;
    link.full_duplex <= SGMII != 0 ? ability[12] : ability[FULL_DUPLEX];
    if (rst) begin
      mode <= CONFIGURATION;
      word <= '0;
      link <= '0;
    end
  end
endmodule
`default_nettype wire
