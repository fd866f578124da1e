// SPDX-License-Identifier: Apache-2.0
//
// The window builder: joins the words of the modules, frame by frame, into the payload of a message.
//
//                   +--------------+
//   info_* ========>|              |====> m_data   (payload words)
//   inbox_*[] =====>| fadc_builder |----> m_valid
//   module_enable =>|              |<---- m_ready
//   keepalive =====>|              |====> window_* : with window_valid, a window is complete
//                   +--------------+
//
// Hits are taken from any module that has enough of them, each group behind a header with the slot.
// A frame is closed when each enabled module has sent its mark, or past its deadline; what comes
// later of it is thrown away and counted. Losses are told in the payload, see docs/fadc.md. Words of
// a window above MAX_WORDS are lost, too. An empty window is withheld, up to `keepalive` in a row.
`default_nettype none
module fadc_builder #(
    parameter int MODULES = 16,
    parameter int FIRST_MODULE = 0,
    parameter int MODULE_STEP = 1,
    parameter int MAX_WORDS = 65536
) (
    input logic clk,
    input logic rst,
    input logic [31:0] now,
    input logic [MODULES-1:0] module_enable,
    input logic [23:0] keepalive,

    input  logic                            info_valid,
    output logic                            info_ready,
    input  logic [fadc_pkg::FRAME_BITS-1:0] info_frame,
    input  logic                            info_first,
    input  logic                            info_last,
    input  logic [                    63:0] info_record,
    input  logic [                    63:0] info_sec,
    input  logic [                    31:0] info_nsec,
    input  logic [                    31:0] info_lost,
    input  logic [                    31:0] info_deadline,

    input  logic [MODULES-1:0]                           inbox_valid,
    output logic [MODULES-1:0]                           inbox_ready,
    input  logic [MODULES-1:0]                           inbox_mark,
    input  logic [MODULES-1:0][fadc_pkg::FRAME_BITS-1:0] inbox_frame,
    input  logic [MODULES-1:0][  fadc_pkg::HIT_BITS-1:0] inbox_hit,
    input  logic [MODULES-1:0][ fadc_pkg::LOST_BITS-1:0] inbox_lost,
    input  logic [MODULES-1:0]                           inbox_ripe,

    output logic [31:0] m_data,
    output logic        m_valid,
    input  logic        m_ready,

    output logic        window_valid,
    input  logic        window_ready,
    output logic        window_send,    // low: an empty window, withheld
    output logic [31:0] window_words,
    output logic [63:0] window_record,
    output logic [63:0] window_sec,
    output logic [31:0] window_nsec,

    output logic [31:0] hits,
    output logic [31:0] late,
    output logic [31:0] over,
    output logic [31:0] timeouts
);
  // Words that a window may need besides its hits: all flags of all slices.
  localparam int SPARE = fadc_pkg::WINDOW_SLICES * (2 * MODULES + 2) + 2;
  localparam int WORD_BITS = $clog2(MAX_WORDS) + 1;

  if (MAX_WORDS < 2 * SPARE) begin : g_check
    $error("fadc_builder: MAX_WORDS is too small for its modules");
  end
  if (MODULES < 1 || MODULES > 16) begin : g_check_modules
    $error("fadc_builder: MODULES must be 1 to 16");
  end

  typedef enum logic [2:0] {
    IDLE,   // waits for a frame
    MERGE,  // takes hits
    FLAGS,  // tells what is missing
    CLOSE   // hands the window over
  } state_e;
  state_e state;

  logic [MODULES-1:0] stale, hit, done, ripe, wanted, take, take_last, missing, flagged, flag;
  logic past, taking, same_slot, full, is_over;
  logic [WORD_BITS-1:0] words;
  logic [23:0] withheld;
  logic [3:0] flag_index;
  logic slot_known;
  logic [MODULES-1:0][fadc_pkg::LOST_BITS-1:0] lost_over;
  logic [MODULES-1:0] timed_out;
  logic windows_lost_told;

  logic [31:0] since;
  assign since = now - info_deadline;
  assign past  = !since[31];
  assign full  = words >= WORD_BITS'(MAX_WORDS - SPARE);

  for (genvar i = 0; i < MODULES; i++) begin : g_module
    logic signed [fadc_pkg::FRAME_BITS-1:0] ahead;
    assign ahead = $signed(inbox_frame[i] - info_frame);
    assign stale[i] = inbox_valid[i] && (!module_enable[i] || (info_valid && ahead < 0));
    assign hit[i] = inbox_valid[i] && !stale[i] && !inbox_mark[i] && ahead == 0;
    assign done[i] = !module_enable[i] || (inbox_valid[i] && !stale[i] && (inbox_mark[i] || ahead > 0));
  end

  // Stays with a module while it has hits, then the next one in turn.
  assign ripe = hit & (inbox_ripe | {MODULES{past}} | (take_last & {MODULES{slot_known}}));
  assign wanted = (ripe & take_last & {MODULES{slot_known}}) != '0 ? ripe & take_last : ripe;
  assign take = MODULES'(link_pkg::turn(link_pkg::TURNS'(wanted), link_pkg::TURNS'(take_last)));
  assign taking = state == MERGE && wanted != '0;
  assign same_slot = slot_known && take == take_last;
  assign is_over = taking && full;

  logic [3:0] take_index;
  logic [fadc_pkg::HIT_BITS-1:0] take_hit;
  always_comb begin
    take_index = '0;
    take_hit   = '0;
    for (int i = 0; i < MODULES; i++) begin
      if (take[i]) begin
        take_index = take_index | 4'(i);
        take_hit   = take_hit | inbox_hit[i];
      end
    end
  end

  function automatic [4:0] slot(input [3:0] index);
    slot = fadc_pkg::slot_of(5'(FIRST_MODULE) + 5'(MODULE_STEP) * 5'(index));
  endfunction

  // What is missing of a frame that is about to be closed.
  logic frame_done;
  assign frame_done = state == MERGE && wanted == '0 && hit == '0 && (&done || past);
  always_comb begin
    missing = '0;
    for (int i = 0; i < MODULES; i++)
    missing[i] = !done[i] || (module_enable[i] && (lost_over[i] != '0 ||
                 (inbox_valid[i] && inbox_mark[i] && inbox_frame[i] == info_frame && inbox_lost[i] != '0)));
  end
  assign flag = flagged & (~flagged + 1'b1);
  logic [fadc_pkg::LOST_BITS-1:0] flag_lost;
  logic flag_timeout;
  always_comb begin
    flag_index   = '0;
    flag_lost    = '0;
    flag_timeout = 1'b0;
    for (int i = 0; i < MODULES; i++) begin
      if (flag[i]) begin
        flag_index = flag_index | 4'(i);
        flag_timeout = flag_timeout | timed_out[i];
        flag_lost = flag_lost |
            fadc_pkg::add_lost(lost_over[i], timed_out[i] || !inbox_mark[i] ? '0 : inbox_lost[i]);
      end
    end
  end

  // The word that leaves now.
  logic tell_lost, tell_slice, tell;
  assign tell_lost = state == IDLE && info_valid && info_first && info_lost != '0 && !windows_lost_told;
  assign tell_slice = state == IDLE && info_valid && !info_first;
  assign tell = tell_lost || tell_slice;
  always_comb begin
    m_valid = 1'b0;
    m_data  = {1'b0, take_hit};
    if (tell) begin
      m_valid = 1'b1;
      m_data = tell_lost ? fadc_pkg::header_word(
        fadc_pkg::TYPE_WINDOWS_LOST,
        info_lost > 32'(fadc_pkg::LOST_MAX) ? fadc_pkg::LOST_MAX :
                                       info_lost[fadc_pkg::LOST_BITS-1:0],
        5'd0
      ) : fadc_pkg::header_word(
        fadc_pkg::TYPE_HITS, '0, 5'd0
      );
    end else if (taking && !full) begin
      m_valid = 1'b1;
      if (!same_slot) m_data = fadc_pkg::header_word(fadc_pkg::TYPE_HITS, '0, slot(take_index));
    end else if (state == FLAGS && flagged != '0) begin
      m_valid = 1'b1;
      m_data = fadc_pkg::header_word(flag_timeout ? fadc_pkg::TYPE_TIMEOUT : fadc_pkg::TYPE_LOST,
                                     flag_lost, slot(flag_index));
    end
  end

  logic word_out, hit_out;
  assign word_out = m_valid && m_ready;
  assign hit_out  = taking && (is_over || (word_out && same_slot));

  // Marks of the frame leave together when it is closed; stale words whenever they show.
  logic closing;
  assign closing = state == CLOSE && (!info_last || window_ready);
  always_comb begin
    inbox_ready = stale;
    for (int i = 0; i < MODULES; i++) begin
      if (hit_out && take[i]) inbox_ready[i] = 1'b1;
      if (closing && inbox_valid[i] && inbox_mark[i] && inbox_frame[i] == info_frame)
        inbox_ready[i] = 1'b1;
    end
  end

  assign info_ready = closing;
  assign window_valid = state == CLOSE && info_last;
  assign window_send = words != '0 || withheld == keepalive;
  assign window_words = 32'(words);
  assign window_record = info_record;
  assign window_sec = info_sec;
  assign window_nsec = info_nsec;

  logic [4:0] late_now;
  always_comb begin
    late_now = '0;
    for (int i = 0; i < MODULES; i++)
    late_now = late_now + 5'(stale[i] && !inbox_mark[i] && module_enable[i]);
  end

  always_ff @(posedge clk) begin
    if (word_out) words <= words + 1'b1;
    hits <= hits + 32'(hit_out && !is_over);
    over <= over + 32'(is_over);
    late <= late + 32'(late_now);
    if (taking && word_out) begin
      take_last  <= take;
      slot_known <= 1'b1;
    end
    for (int i = 0; i < MODULES; i++)
    if (is_over && take[i])
      lost_over[i] <= fadc_pkg::add_lost(lost_over[i], fadc_pkg::LOST_BITS'(1));

    case (state)
      IDLE:
      if (info_valid) begin
        if (word_out && tell_lost) windows_lost_told <= 1'b1;
        if (!tell_lost && (!tell_slice || word_out)) state <= MERGE;
        slot_known <= 1'b0;
        lost_over  <= '0;
        timed_out  <= '0;
      end
      MERGE:
      if (frame_done) begin
        timed_out <= ~done;
        flagged <= missing;
        timeouts <= timeouts + 32'(done != '1);
        state <= missing == '0 ? CLOSE : FLAGS;
      end
      FLAGS: begin
        if (word_out) flagged <= flagged & ~flag;
        if (flagged == '0) state <= CLOSE;
      end
      default:
      if (closing) begin
        state <= IDLE;
        windows_lost_told <= 1'b0;
        if (info_last) begin
          words <= '0;
          withheld <= window_send ? '0 : withheld + 1'b1;
        end
      end
    endcase

    if (rst) begin
      state <= IDLE;
      words <= '0;
      withheld <= '0;
      take_last <= MODULES'(1);
      slot_known <= 1'b0;
      windows_lost_told <= 1'b0;
      flagged <= '0;
      hits <= '0;
      over <= '0;
      late <= '0;
      timeouts <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, since};
endmodule
`default_nettype wire
