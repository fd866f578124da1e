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
// Hits are read from any module that has enough of them, each group after a header with the slot. A frame is closed when
// each enabled module has sent its mark, or at its deadline; later hits of it are discarded and counted. Losses are
// reported in the payload, see docs/fadc.md. Words of a window above MAX_WORDS are lost, too. Up to `keepalive` empty
// windows in a row are withheld. Frames are numbered from 0 on. An empty frame takes three clocks.
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

    input  logic                           info_valid,
    output logic                           info_ready,
    input  logic                           info_first,
    input  logic                           info_last,
    input  logic [                   63:0] info_record,
    input  logic [                   63:0] info_sec,
    input  logic [                   31:0] info_nsec,
    input  logic [fadc_pkg::LOST_BITS-1:0] info_lost,
    input  logic [                   31:0] info_deadline,

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
  // Words that a window may need besides its hits: all flags of all slices, and what comes until `full` is seen.
  localparam int SPARE = fadc_pkg::WINDOW_SLICES * (2 * MODULES + 2) + 4;
  localparam int WORD_BITS = $clog2(MAX_WORDS) + 1;

  if (MAX_WORDS < 2 * SPARE) begin : g_check
    $error("fadc_builder: MAX_WORDS is too small for its modules");
  end
  if (MODULES < 1 || MODULES > 16) begin : g_check_modules
    $error("fadc_builder: MODULES must be 1 to 16");
  end

  typedef enum logic [2:0] {
    IDLE,   // waits for a frame; the lanes judge their words anew
    TELL,   // tells that windows were lost before this one, or that a slice begins
    MERGE,  // takes hits
    FLAGS,  // tells what is missing
    CLOSE   // hands the window over
  } state_t;
  state_t state;
  logic [fadc_pkg::FRAME_BITS-1:0] frame;

  // ---- lanes -----------------------------------------------------------------------------------
  logic [MODULES-1:0] is_hit, is_mark, is_done, is_stale, is_late, take;
  logic [MODULES-1:0][ fadc_pkg::HIT_BITS-1:0] lane_hit;
  logic [MODULES-1:0][fadc_pkg::LOST_BITS-1:0] lane_lost;
  for (genvar i = 0; i < MODULES; i++) begin : g_lane
    fadc_lane lane (
        .clk     (clk),
        .rst     (rst),
        .enable  (module_enable[i]),
        .hold    (state == CLOSE),
        .frame   (frame),
        .s_valid (inbox_valid[i]),
        .s_ready (inbox_ready[i]),
        .s_mark  (inbox_mark[i]),
        .s_frame (inbox_frame[i]),
        .s_hit   (inbox_hit[i]),
        .s_lost  (inbox_lost[i]),
        .take    (take[i]),
        .is_hit  (is_hit[i]),
        .is_mark (is_mark[i]),
        .is_done (is_done[i]),
        .is_stale(is_stale[i]),
        .is_late (is_late[i]),
        .hit     (lane_hit[i]),
        .lost    (lane_lost[i])
    );
  end

  // ---- whose hits ------------------------------------------------------------------------------
  // Stays with a module while it has hits, then the next one in turn that has enough of them.
  logic [MODULES-1:0] wanted, chosen, next, last, done;
  logic past, take_hit, change, full, ready;
  logic [31:0] since;
  assign since = now - info_deadline;
  assign done = is_done | ~module_enable;

  assign wanted = is_hit & (inbox_ripe | {MODULES{past}}) & ~chosen;
  assign ready = !m_valid || m_ready;
  assign take_hit = state == MERGE && (chosen & is_hit) != '0 && (ready || full);
  assign change = state == MERGE && (chosen & is_hit) == '0 && next != '0 && (ready || full);
  always_ff @(posedge clk) begin
    past <= info_valid && !since[31];
    next <= MODULES'(link_pkg::turn(link_pkg::TURNS'(wanted), link_pkg::TURNS'(last)));
    if (change) begin
      chosen <= next;
      last   <= next;
      next   <= '0;
    end
    if (rst || state == CLOSE) {chosen, next} <= '0;
    if (rst) last <= '0;
  end

  logic [fadc_pkg::HIT_BITS-1:0] chosen_hit;
  logic [4:0] next_slot;
  always_comb begin
    chosen_hit = '0;
    next_slot  = '0;
    for (int i = 0; i < MODULES; i++) begin
      if (chosen[i]) chosen_hit = chosen_hit | lane_hit[i];
      if (next[i]) next_slot = next_slot | slot(4'(i));
    end
  end

  function automatic [4:0] slot(input [3:0] index);
    slot = fadc_pkg::slot_of(5'(FIRST_MODULE) + 5'(MODULE_STEP) * 5'(index));
  endfunction

  // ---- what is missing of a frame that is about to be closed -----------------------------------
  logic frame_done, flag_known, flag_timeout;
  logic [MODULES-1:0] missing, flagged, flag, timed_out, over_some, lane_lost_some;
  logic [MODULES-1:0][fadc_pkg::LOST_BITS-1:0] lost_over;
  logic [fadc_pkg::LOST_BITS-1:0] flag_over, flag_lane, flag_lost;
  logic [4:0] flag_slot;
  assign frame_done = state == MERGE && (&done || (past && is_hit == '0));
  always_comb begin
    {flag_over, flag_lane, flag_slot} = '0;
    for (int i = 0; i < MODULES; i++) begin
      over_some[i] = lost_over[i] != '0;
      lane_lost_some[i] = is_mark[i] && lane_lost[i] != '0;
      if (flag[i]) begin
        flag_over = flag_over | lost_over[i];
        if (is_mark[i]) flag_lane = flag_lane | lane_lost[i];
        flag_slot = flag_slot | slot(4'(i));
      end
    end
  end
  assign missing = ~done | (module_enable & (over_some | lane_lost_some));

  // ---- words -----------------------------------------------------------------------------------
  logic tell, tell_flag, word_out, closing, is_last;  // is_last: the frame is its window's last
  logic [31:0] word;
  assign tell = state == TELL;
  assign tell_flag = state == FLAGS && flag_known;
  assign word_out = ready && (tell || tell_flag || ((take_hit || change) && !full));
  always_comb begin
    word = {1'b0, chosen_hit};
    if (change) word = fadc_pkg::header_word(fadc_pkg::TYPE_HITS, '0, next_slot);
    if (tell)
      word = info_first ? fadc_pkg::header_word(
        fadc_pkg::TYPE_WINDOWS_LOST, info_lost, 5'd0
      ) : fadc_pkg::header_word(
        fadc_pkg::TYPE_HITS, '0, 5'd0
      );
    if (tell_flag)
      word = fadc_pkg::header_word(
        flag_timeout ? fadc_pkg::TYPE_TIMEOUT : fadc_pkg::TYPE_LOST, flag_lost, flag_slot
      );
  end

  // Marks of the frame leave together when it is closed.
  assign closing = state == CLOSE && (!is_last || (window_valid && window_ready));
  assign take = take_hit ? chosen : closing ? is_mark : '0;

  logic [WORD_BITS-1:0] words;
  logic [23:0] withheld;
  logic some, due;
  assign info_ready = closing;
  assign window_valid = state == CLOSE && is_last && !m_valid;
  assign window_send = some || due;
  assign window_words = 32'(words);
  assign window_record = info_record;
  assign window_sec = info_sec;
  assign window_nsec = info_nsec;

  always_ff @(posedge clk) begin
    if (ready) m_valid <= word_out;
    if (ready) m_data <= word;
    if (word_out) begin
      words <= words + 1'b1;
      some  <= 1'b1;
    end
    full <= words >= WORD_BITS'(MAX_WORDS - SPARE);
    due  <= withheld == keepalive;
    for (int i = 0; i < MODULES; i++)
    if (take_hit && full && chosen[i])
      lost_over[i] <= fadc_pkg::add_lost(lost_over[i], fadc_pkg::LOST_BITS'(1));

    if (state == IDLE) is_last <= info_last;
    flag_known <= 1'b0;
    case (state)
      IDLE: begin
        if (info_valid) state <= !info_first || info_lost != '0 ? TELL : MERGE;
        lost_over <= '0;
      end
      TELL: if (ready) state <= MERGE;
      MERGE:
      if (frame_done) begin
        timed_out <= ~done;
        flagged <= missing;
        flag <= '0;
        state <= missing == '0 ? CLOSE : FLAGS;
      end
      FLAGS: begin
        flag_timeout <= (flag & timed_out) != '0;
        flag_lost <= fadc_pkg::add_lost(flag_over, flag_lane);
        flag_known <= flag != '0 && !(tell_flag && ready);
        if (flag == '0) begin
          flag <= flagged & (~flagged + 1'b1);
          if (flagged == '0) state <= CLOSE;
        end else if (tell_flag && ready) begin
          flagged <= flagged & ~flag;
          flag <= '0;
        end
      end
      default:
      if (closing) begin
        state <= IDLE;
        frame <= frame + 1'b1;
        if (is_last) begin
          words <= '0;
          some <= 1'b0;
          withheld <= window_send ? '0 : withheld + 1'b1;
        end
      end
    endcase

    if (rst) begin
      state <= IDLE;
      frame <= '0;
      m_valid <= 1'b0;
      words <= '0;
      some <= 1'b0;
      withheld <= '0;
      flag_known <= 1'b0;
    end
  end

  // ---- counters --------------------------------------------------------------------------------
  logic hit_out, hit_over, frame_out;
  logic [4:0] late_now, late_sum;
  always_comb begin
    late_sum = '0;
    for (int i = 0; i < MODULES; i++) late_sum = late_sum + 5'(is_late[i]);
  end
  always_ff @(posedge clk) begin
    hit_out <= take_hit && !full;
    hit_over <= take_hit && full;
    frame_out <= frame_done && done != '1;
    late_now <= late_sum;
    hits <= hits + 32'(hit_out);
    over <= over + 32'(hit_over);
    timeouts <= timeouts + 32'(frame_out);
    late <= late + 32'(late_now);
    if (rst) begin
      {hit_out, hit_over, frame_out, late_now} <= '0;
      {hits, over, timeouts, late} <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, since, is_stale};
endmodule
`default_nettype wire
