// SPDX-License-Identifier: Apache-2.0
//
// Transmit half of the 64-bit XGMII MAC: preamble, padding, frame check sequence, gap (IEEE 802.3 clause 46).
//
//                 +--------------+
//   s_axis_* ====>| xgmii_mac_tx |====> xgmii_txd, xgmii_txc
//   pause ------->|              |
//                 +--------------+
//
// Frames start in lane 0 or 4. A deficit idle count makes the gap 9 to 15 bytes, and 12 on average, at every length; it is
// exactly 12 if the length of the frame is a multiple of 4, as for FADE-10G data frames. tuser at tlast makes the frame
// check sequence wrong. A stream that stops inside a frame is ended with an error character and the rest of it is discarded.
// s_axis_start comes one clock before the first word is read, for senders that make frames on the fly. tkeep must be
// contiguous and, before tlast, full. While `pause` is high no frame starts.
//
// A word passes stages of one clock each: 0 input, cut or padded; 1 input of the CRC network; 2 its output; 3
// CRC. The last word waits for the CRC of the earlier words, which is ready when it is in stage 2. Then it is moved to the end of
// the window of the network (leading zero bytes do not count), so that one network serves every length. The frame check
// sequence is ready in stage 4; stage 5 rotates it to its lanes; stage 6 are the pins.
`default_nettype none
module xgmii_mac_tx (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output logic        s_axis_start,
    input  logic        pause,
    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc
);
  // The shortest frame ends in word PAD_WORD with the bytes of PAD_KEEP.
  localparam logic [3:0] PAD_WORD = 4'(mac_pkg::MIN_FRAME / 8);
  localparam logic [7:0] PAD_KEEP = 8'((1 << mac_pkg::MIN_FRAME % 8) - 1);
  localparam logic [63:0] START_WORD = {mac_pkg::SFD, {6{mac_pkg::PREAMBLE}}, mac_pkg::XGMII_START};
  localparam logic [31:0] CRC_START = mac_pkg::crc_zeros('1, 8);

  // ---- stage 0: the words of a frame -----------------------------------------------------------
  typedef enum logic [2:0] {
    IDLE,
    DATA,
    PAD,
    END,
    GAP,
    DISCARD
  } state_t;
  // What a word is.
  typedef enum logic [2:0] {
    NOTHING,
    START,
    BODY,
    LAST,
    ERROR
  } kind_t;
  typedef struct packed {
    kind_t kind;
    logic lane4;  // the frame starts in lane 4
    logic [7:0] keep;
    logic [63:0] data;
  } word_t;

  state_t state;
  word_t word0, word1, word2, word3, word4;
  logic [3:0] index;  // of the word in the frame, stops behind PAD_WORD
  logic bad, first;
  logic may_start4;  // the next frame may start half a word before the clock's end
  logic more_gap;

  // Bytes of a word, modulo 4.
  function automatic [1:0] length(input [7:0] bytes);
    length = {bytes[1] && !bytes[3] || bytes[5] && !bytes[7], ^bytes};
  endfunction

  assign s_axis_start = state == IDLE && s_axis_tvalid && !pause;

  // Bytes from the last word's first one to the earliest start, less 16, in halves of a word. The gap is 12 less what is
  // over a multiple of 4, or 4 more: whenever what was saved would come to 4 bytes.
  logic [1:0] deficit, deficit_next;
  logic carry;
  logic [2:0] halves;
  always_comb begin
    {carry, deficit_next} = {1'b0, deficit} + {1'b0, length(word0.keep)};
    halves = 3'(word0.keep[3]) + 3'(word0.keep[7]) + 3'(word0.lane4) + 3'(carry);
  end

  always_ff @(posedge clk) begin
    word0.kind <= NOTHING;
    word0.data <= s_axis_tdata;
    for (int i = 0; i < 8; i++) if (state == PAD || !s_axis_tkeep[i]) word0.data[i*8+:8] <= '0;
    word0.keep <= '1;
    first <= word0.kind == START;
    case (state)
      IDLE: begin
        index <= 4'd0;
        may_start4 <= 1'b0;
        word0.lane4 <= may_start4;
        if (s_axis_start) begin
          word0.kind <= START;
          s_axis_tready <= 1'b1;
          state <= DATA;
        end
      end
      DATA: begin
        word0.kind <= BODY;
        if (index <= PAD_WORD) index <= index + 4'd1;
        if (!s_axis_tvalid) begin
          word0.kind <= ERROR;
          state <= DISCARD;
        end else if (s_axis_tlast) begin
          bad <= s_axis_tuser;
          s_axis_tready <= 1'b0;
          if (index < PAD_WORD) state <= PAD;
          else begin
            word0.kind <= LAST;
            word0.keep <= index == PAD_WORD ? s_axis_tkeep | PAD_KEEP : s_axis_tkeep;
            state <= END;
          end
        end
      end
      PAD: begin
        word0.kind <= BODY;
        index <= index + 4'd1;
        if (index == PAD_WORD) begin
          word0.kind <= LAST;
          word0.keep <= PAD_KEEP;
          state <= END;
        end
      end
      END: begin
        deficit <= deficit_next;
        may_start4 <= halves[0];
        more_gap <= halves[2];
        state <= halves[2:1] == 2'd0 ? IDLE : GAP;
      end
      GAP: begin
        more_gap <= 1'b0;
        if (!more_gap) state <= IDLE;
      end
      default: begin  // DISCARD
        if (s_axis_tvalid && s_axis_tlast) begin
          s_axis_tready <= 1'b0;
          state <= END;
        end
      end
    endcase
    if (rst) begin
      state <= IDLE;
      word0.kind <= NOTHING;
      s_axis_tready <= 1'b0;
      may_start4 <= 1'b0;
      deficit <= '0;
    end
  end

  // ---- stages 1 to 4: the CRC ------------------------------------------------------------------
  logic [63:0] window, window_next;
  logic [31:0]
      addend,
      addend_next;  // beside the network: the state at the start, bytes of it that a short word passes
  logic [31:0] network, sum, crc, crc_moved;

  crc32 data_network (
      .crc_in ('0),
      .data   (window),
      .crc_out(network)
  );
  crc32 state_network (
      .crc_in (crc),
      .data   ('0),
      .crc_out(crc_moved)
  );

  logic [63:0] mixed;
  always_comb begin
    mixed = word2.data ^ {32'd0, crc};
    window_next = word0.data;
    addend_next = first ? CRC_START : '0;
    if (word2.kind == LAST) begin
      window_next = mixed << {!word2.keep[4], -length(word2.keep), 3'd0};
      addend_next = {31'd0, bad};
      if (!word2.keep[3]) addend_next ^= crc >> (word2.keep[2] ? 24 : word2.keep[1] ? 16 : 8);
    end
  end

  always_ff @(posedge clk) begin
    {word1, word2, word3, word4} <= {word0, word1, word2, word3};
    window <= window_next;
    addend <= addend_next;
    sum <= network ^ addend;
    crc <= word2.kind == START ? '0 : crc_moved ^ sum;
    if (word2.kind == START) word3.data <= START_WORD;
    if (word2.kind == ERROR) word3.data[7:0] <= mac_pkg::XGMII_ERROR;
    if (rst) {word1.kind, word2.kind, word3.kind, word4.kind} <= {4{NOTHING}};
  end

  // ---- stage 5: what stands in each lane -------------------------------------------------------
  typedef enum logic [1:0] {
    CHAR_IDLE,
    CHAR_TERMINATE,
    BYTE_FCS,
    BYTE_DATA
  } content_t;

  logic [12:0][1:0] content;  // of the word in stage 4, and of what stands behind it when it is the last one
  logic [4:0][1:0] rest;  // of the word behind the last one
  logic [3:0][1:0] content_high;  // upper half of the word before
  logic [7:0][1:0] laid;  // in the lanes
  logic [31:0] data_high, fcs;
  logic [63:0] placed;
  logic [ 1:0] lead;  // lane 0 and 4 hold a control character of the word

  // Lanes up to the last byte, to the end of the sequence, and with the terminate character.
  logic [12:0] with_data, with_fcs, with_end;
  assign with_data = 13'(word4.keep);
  assign with_fcs  = 13'({word4.keep, 4'hF});
  assign with_end  = {word4.keep, 5'h1F};
  always_comb begin
    content = {13{CHAR_IDLE}};
    case (word4.kind)
      START, BODY: content[7:0] = {8{BYTE_DATA}};
      ERROR: content[1:0] = {CHAR_TERMINATE, BYTE_DATA};
      LAST:
      for (int i = 0; i < 13; i++)
      content[i] = with_data[i] ? BYTE_DATA : with_fcs[i] ? BYTE_FCS : with_end[i] ? CHAR_TERMINATE : CHAR_IDLE;
      default: content[4:0] = rest;
    endcase
  end

  always_ff @(posedge clk) begin
    rest <= content[12:8];
    content_high <= content[7:4];
    data_high <= word4.data[63:32];
    laid <= word4.lane4 ? {content[3:0], content_high} : content[7:0];
    placed <= word4.lane4 ? {word4.data[31:0], data_high} : word4.data;
    lead <= '0;
    lead[word4.lane4] <= word4.kind == START || word4.kind == ERROR;
    // Byte i of the sequence stands in a lane that is the word's length and i more, modulo 4.
    if (word4.kind == LAST)
      for (int i = 0; i < 4; i++) fcs[i*8+:8] <= ~sum[8*2'(2'(i)-length(word4.keep))+:8];
    if (rst) begin
      laid <= {8{CHAR_IDLE}};
      rest <= {5{CHAR_IDLE}};
    end
  end

  // ---- stage 6: the pins -----------------------------------------------------------------------
  always_ff @(posedge clk) begin
    for (int i = 0; i < 8; i++) begin
      case (laid[i])
        BYTE_DATA: xgmii_txd[i*8+:8] <= placed[i*8+:8];
        BYTE_FCS: xgmii_txd[i*8+:8] <= fcs[(i%4)*8+:8];
        CHAR_TERMINATE: xgmii_txd[i*8+:8] <= mac_pkg::XGMII_TERMINATE;
        default: xgmii_txd[i*8+:8] <= mac_pkg::XGMII_IDLE;
      endcase
      xgmii_txc[i] <= laid[i] == CHAR_IDLE || laid[i] == CHAR_TERMINATE;
    end
    if (lead[0]) xgmii_txc[0] <= 1'b1;
    if (lead[1]) xgmii_txc[4] <= 1'b1;
  end
endmodule
`default_nettype wire
