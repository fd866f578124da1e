// SPDX-License-Identifier: Apache-2.0
//
// The next word of one module for the window builder, and its relation to the current frame.
//
//                 +-----------+
//   s_* ========>|           |====> is_hit, is_mark, is_done, is_stale (registered)
//   s_valid ---->| fadc_lane |====> hit, lost
//   s_ready <----|           |<---- take
//                 +-----------+
//                      frame, hold
//
// The word stays until `take`; stale words, of a closed frame, are removed. hold: `frame` changes, so no word comes in.
// is_done: no more hits of the frame will come: there is its mark, or a word of a later frame. A module that is not enabled
// is done, and all its words are stale.
`default_nettype none
module fadc_lane (
    input  logic                            clk,
    input  logic                            rst,
    input  logic                            enable,
    input  logic                            hold,
    input  logic [fadc_pkg::FRAME_BITS-1:0] frame,
    input  logic                            s_valid,
    output logic                            s_ready,
    input  logic                            s_mark,
    input  logic [fadc_pkg::FRAME_BITS-1:0] s_frame,
    input  logic [  fadc_pkg::HIT_BITS-1:0] s_hit,
    input  logic [ fadc_pkg::LOST_BITS-1:0] s_lost,
    input  logic                            take,
    output logic                            is_hit,
    output logic                            is_mark,
    output logic                            is_done,
    output logic                            is_stale,
    output logic                            is_late,
    output logic [  fadc_pkg::HIT_BITS-1:0] hit,
    output logic [ fadc_pkg::LOST_BITS-1:0] lost
);
  // What a word is, as the outputs in their order: its frame less the one that is built tells.
  localparam int KINDS = 5;
  function automatic [KINDS-1:0] judge(input enabled, input is_a_mark,
                                       input [fadc_pkg::FRAME_BITS-1:0] ahead);
    reg stale, now;
    begin
      stale = !enabled || ahead[fadc_pkg::FRAME_BITS-1];
      now = enabled && ahead == '0;
      judge = {
        now && !is_a_mark,
        now && is_a_mark,
        !stale && (is_a_mark || ahead != '0),
        stale,
        enabled && stale && !is_a_mark
      };
    end
  endfunction

  logic full, mark, load, stays;
  logic [fadc_pkg::FRAME_BITS-1:0] word_frame;
  logic [KINDS-1:0] kind, kind_in, kind_again;

  assign {is_hit, is_mark, is_done, is_stale, is_late} = kind;
  assign s_ready = !hold && (!full || take || is_stale);
  assign load = s_ready && s_valid;
  assign stays = full && !take && !is_stale;
  // Judged when it comes in, and again as long as it stays, for the frame changes.
  assign kind_in = judge(enable, s_mark, s_frame - frame);
  assign kind_again = judge(enable, mark, word_frame - frame);

  always_ff @(posedge clk) begin
    full <= load || stays;
    kind <= load ? kind_in : stays ? kind_again : '0;
    if (load) {mark, word_frame, hit, lost} <= {s_mark, s_frame, s_hit, s_lost};
    if (rst) begin
      full <= 1'b0;
      kind <= '0;
    end
  end
endmodule
`default_nettype wire
