// SPDX-License-Identifier: Apache-2.0
//
// Receive half of the 64-bit XGMII MAC: finds the frame in either start lane, strips and checks the frame check sequence
// (IEEE 802.3 clause 46).
//
//                           +--------------+
//   xgmii_rxd, xgmii_rxc ==>| xgmii_mac_rx |====> m_axis_* (tuser at tlast: bad frame)
//                           |              |----> stat_* (one pulse a bad frame, by first reason)
//                           +--------------+
//
// A frame with a broken preamble, or without any byte, gives no word and is counted.
//
// A word passes stages of one clock each: 0 pins; 1 lanes aligned, without the bytes after the end of the frame; 2 output
// of the CRC network; 3 CRC; 4 verdict. The output register follows stage 4, where the next word is known too: it shows
// whether the frame ends before its own check sequence.
`default_nettype none
module xgmii_mac_rx (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] xgmii_rxd,
    input  logic [ 7:0] xgmii_rxc,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic        stat_error,
    output logic        stat_runt,
    output logic        stat_oversize,
    output logic        stat_bad_fcs
);
  // The first and the second half of a word with start character and preamble, by lanes.
  localparam logic [35:0] START_LOW = {4'b0001, {3{mac_pkg::PREAMBLE}}, mac_pkg::XGMII_START};
  localparam logic [35:0] START_HIGH = {4'b0000, mac_pkg::SFD, {3{mac_pkg::PREAMBLE}}};
  // A frame has at least MIN_WORDS whole words, and is too long with more than MAX_REST bytes behind MAX_WORDS.
  localparam logic [10:0] MIN_WORDS = 11'((mac_pkg::MIN_FRAME + mac_pkg::FCS_BYTES) / 8);
  localparam logic [10:0] MAX_WORDS = 11'(mac_pkg::MAX_FRAME / 8);
  localparam logic [2:0] MAX_REST = 3'(mac_pkg::MAX_FRAME % 8);
  localparam logic [31:0] CRC_START = mac_pkg::crc_zeros('1, 8);

  // ---- stage 0: the pins -----------------------------------------------------------------------
  // A half word is its control bits and its bytes.
  logic [35:0] low, high, high_before;
  always_ff @(posedge clk) begin
    low <= {xgmii_rxc[3:0], xgmii_rxd[31:0]};
    high <= {xgmii_rxc[7:4], xgmii_rxd[63:32]};
    high_before <= high;
    if (rst) {low, high, high_before} <= '0;
  end

  // ---- stage 1: frames -------------------------------------------------------------------------
  typedef enum logic [1:0] {
    HUNT,
    PREAMBLE,  // its second half, of a frame that starts in lane 4
    FRAME
  } state_t;
  state_t state;
  logic lane4, start0, start4, good4, low_is_rest, ended, look;
  logic [63:0] aligned_d;
  logic [7:0] aligned_c, data_lanes;
  logic terminated;

  assign start0 = low[32] && low[7:0] == mac_pkg::XGMII_START;
  assign start4 = high[32] && high[7:0] == mac_pkg::XGMII_START;
  assign low_is_rest = low == START_HIGH;
  assign {aligned_c, aligned_d} = lane4 ? {low[35:32], high_before[35:32], low[31:0], high_before[31:0]}
      : {high[35:32], low[35:32], high[31:0], low[31:0]};

  // Lanes before the first control character, and whether that is the terminate.
  always_comb begin
    terminated = 1'b0;
    for (int i = 0; i < 8; i++) data_lanes[i] = (aligned_c & 8'((9'd2 << i) - 9'd1)) == '0;
    for (int i = 7; i >= 0; i--)
    if (aligned_c[i]) terminated = aligned_d[i*8+:8] == mac_pkg::XGMII_TERMINATE;
  end
  assign ended = aligned_c != '0;
  assign look  = state == HUNT || (state == FRAME && ended) || (state == PREAMBLE && !(good4 && low_is_rest));

  typedef struct packed {
    logic valid;
    logic last;  // the frame's end; the word may hold no byte
    logic [7:0] lanes;  // bytes of the frame, contiguous
    logic beyond;  // behind the longest frame
    logic broken;  // no word: a start without its preamble
    // at the frame's end
    logic terminated;
    logic short_frame;
    logic long_frame;
  } word_t;

  word_t word1, word2, word3, word4;
  logic [63:0] data1, data2, data3, data4;
  logic [10:0] count;  // whole words before this one, stops at MAX_WORDS + 1
  logic fresh, first;  // word1 is the frame's first
  logic enough, at_most, beyond;  // count has reached MIN_WORDS, MAX_WORDS, MAX_WORDS + 1

  always_ff @(posedge clk) begin
    fresh <= state != FRAME || ended;
    first <= fresh;
    good4 <= high == START_LOW;
    word1 <= '0;
    if (look) begin
      state <= HUNT;
      lane4 <= 1'b0;
      word1.broken <= state == PREAMBLE;
      if (start0) begin
        if (low == START_LOW && high == START_HIGH) state <= FRAME;
        else word1.broken <= 1'b1;
      end else if (start4) begin
        state <= PREAMBLE;
        lane4 <= 1'b1;
      end
    end else if (state == PREAMBLE) state <= FRAME;

    data1 <= aligned_d;
    for (int i = 0; i < 8; i++) if (!data_lanes[i]) data1[i*8+:8] <= '0;
    if (state == FRAME) begin
      word1.valid <= 1'b1;
      word1.last <= ended;
      word1.beyond <= beyond;
      word1.terminated <= terminated;
      word1.lanes <= data_lanes;
      word1.short_frame <= !enough;
      word1.long_frame <= beyond || (at_most && data_lanes[MAX_REST]);
      if (!beyond) count <= count + 11'd1;
      if (count == MIN_WORDS - 11'd1) enough <= 1'b1;
      if (count == MAX_WORDS - 11'd1) at_most <= 1'b1;
      if (at_most) beyond <= 1'b1;
    end
    if (state != FRAME || ended) begin
      count <= '0;
      {enough, at_most, beyond} <= '0;
    end
    if (rst) begin
      state <= HUNT;
      word1 <= '0;
    end
  end

  // ---- stages 2 and 3: the CRC -----------------------------------------------------------------
  // Zero at the end of a good frame: the sum takes the value off that a good frame of this length leaves, with the word's
  // lanes behind the frame as bytes of zero.
  logic [31:0] addend, network, sum, crc, crc_moved;
  always_comb begin
    addend = first ? CRC_START : '0;
    if (word1.last)
      for (int i = 0; i < 8; i++)
      if (word1.lanes == 8'((9'd1 << i) - 9'd1))
        addend ^= mac_pkg::crc_zeros(mac_pkg::CRC_RESIDUE, 8 - i);
  end
  crc32 data_network (
      .crc_in ('0),
      .data   (data1),
      .crc_out(network)
  );
  crc32 state_network (
      .crc_in (crc),
      .data   ('0),
      .crc_out(crc_moved)
  );
  always_ff @(posedge clk) begin
    {word2, word3, word4} <= {word1, word2, word3};
    {data2, data3, data4} <= {data1, data2, data3};
    if (!word2.valid) data3 <= '0;
    sum <= network ^ addend;
    crc <= word2.valid ? crc_moved ^ sum : '0;
    if (rst) {word2, word3, word4} <= '0;
  end

  // ---- stage 4: the verdict --------------------------------------------------------------------
  logic bad_fcs, bad, bad_fcs4, bad4;
  assign bad_fcs = crc != '0;
  assign bad = bad_fcs || !word3.terminated || word3.short_frame || word3.long_frame;
  always_ff @(posedge clk) {bad_fcs4, bad4} <= {bad_fcs, bad};

  // ---- output ----------------------------------------------------------------------------------
  logic closing;  // the word in stage 4 is the last of the frame; what follows is frame check sequence
  assign closing = word3.last && !word3.lanes[4];
  always_ff @(posedge clk) begin
    m_axis_tdata <= data4;
    m_axis_tvalid <= word4.valid && (word4.last ? word4.lanes[4] : !word4.beyond || closing);
    m_axis_tlast <= word4.last || closing;
    m_axis_tuser <= word4.last ? bad4 : closing && bad;
    m_axis_tkeep <= word4.last ? word4.lanes >> 4 : closing ? {word3.lanes[3:0], 4'hF} : '1;
    {stat_error, stat_runt, stat_oversize, stat_bad_fcs} <= '0;
    stat_error <= word4.broken;
    if (word4.last) begin
      if (!word4.terminated) stat_error <= 1'b1;
      else if (word4.short_frame) stat_runt <= 1'b1;
      else if (word4.long_frame) stat_oversize <= 1'b1;
      else stat_bad_fcs <= bad_fcs4;
    end
    if (rst) m_axis_tvalid <= 1'b0;
  end
endmodule
`default_nettype wire
