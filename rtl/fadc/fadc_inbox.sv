// SPDX-License-Identifier: Apache-2.0
//
// Queue of the words of one module for the window builder.
//
//                        +------------+
//   s_valid, s_mark, --->|            |----> m_valid, m_mark, m_ready <----
//   s_frame, s_hit, ====>| fadc_inbox |====> m_frame, m_hit, m_lost
//   s_lost               |            |----> ripe
//                        +------------+----> lost (pulse)
//
// The module never waits. There is always a slot for the mark of each open frame: a hit that would need it is lost,
// counted, and reported by m_lost of the mark of its frame. ripe: a mark or BATCH words wait, so reading them together
// needs few header words.
`default_nettype none
module fadc_inbox #(
    parameter int DEPTH = 512,
    parameter int BATCH = 16
) (
    input  logic                            clk,
    input  logic                            rst,
    input  logic                            s_valid,
    input  logic                            s_mark,
    input  logic [fadc_pkg::FRAME_BITS-1:0] s_frame,
    input  logic [  fadc_pkg::HIT_BITS-1:0] s_hit,
    input  logic [ fadc_pkg::LOST_BITS-1:0] s_lost,
    output logic                            m_valid,
    input  logic                            m_ready,
    output logic                            m_mark,
    output logic [fadc_pkg::FRAME_BITS-1:0] m_frame,
    output logic [  fadc_pkg::HIT_BITS-1:0] m_hit,
    output logic [ fadc_pkg::LOST_BITS-1:0] m_lost,
    output logic                            ripe,
    output logic                            lost
);
  localparam int AW = $clog2(DEPTH);

  if (DEPTH < 4 * fadc_pkg::FRAMES) begin : g_check
    $error("fadc_inbox: DEPTH must be at least four times the frames under way");
  end

  logic [AW:0] used;
  logic room, ready;
  logic [fadc_pkg::LOST_BITS-1:0] missing, total;
  logic [fadc_pkg::FRAME_BITS:0] marks;

  assign room   = used < (AW + 1)'(DEPTH - fadc_pkg::FRAMES);
  assign total  = fadc_pkg::add_lost(missing, s_lost);
  assign m_lost = m_hit[fadc_pkg::LOST_BITS-1:0];

  stream_fifo #(
      .WIDTH(1 + fadc_pkg::FRAME_BITS + fadc_pkg::HIT_BITS),
      .DEPTH(DEPTH)
  ) fifo (
      .clk    (clk),
      .rst    (rst),
      .s_data ({s_mark, s_frame, s_mark ? fadc_pkg::HIT_BITS'(total) : s_hit}),
      .s_valid(s_valid && (s_mark || room)),
      .s_ready(ready),
      .used   (used),
      .m_data ({m_mark, m_frame, m_hit}),
      .m_valid(m_valid),
      .m_ready(m_ready)
  );

  always_ff @(posedge clk) begin
    lost <= s_valid && !s_mark && !room;
    if (s_valid && s_mark) missing <= '0;
    else if (s_valid && !room && missing != fadc_pkg::LOST_MAX) missing <= missing + 1'b1;
    marks <= marks + (fadc_pkg::FRAME_BITS + 1)'(s_valid && s_mark) - (fadc_pkg::FRAME_BITS + 1)'(m_valid && m_ready && m_mark);
    ripe <= marks != '0 || used >= (AW + 1)'(BATCH);
    if (rst) begin
      missing <= '0;
      marks <= '0;
      ripe <= 1'b0;
      lost <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, ready};
endmodule
`default_nettype wire
