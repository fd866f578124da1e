// Transmit half of the 64-bit XGMII MAC: preamble, padding, frame check sequence, gap.
//
//                 +--------------+
//   s_axis_* ====>| xgmii_mac_tx |====> xgmii_txd, xgmii_txc
//                 +--------------+
//
// Frames start in lane 0, so the gap is 12 bytes or up to 7 more; it is exactly 12 where the frame
// is a multiple of 8 bytes long, as FADE-10G data frames are. tuser at tlast spoils the frame check
// sequence. A stream that runs dry inside a frame is ended with an error character and the rest
// of it is thrown away. s_axis_start comes a clock before the first word is taken, for who makes frames
// while they are sent. tkeep must be contiguous and, before tlast, full.
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
    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc
);
  typedef enum logic [2:0] {
    IDLE,
    DATA,
    PAD,
    END,
    GAP,
    DISCARD
  } state_t;

  // The shortest frame ends in word PAD_WORD with PAD_BYTES bytes.
  localparam logic [3:0] PAD_WORD = 4'(mac_pkg::MIN_FRAME / 8);
  localparam logic [3:0] PAD_BYTES = 4'(mac_pkg::MIN_FRAME % 8);

  localparam logic [63:0] IDLE_WORD = {8{mac_pkg::XGMII_IDLE}};
  localparam logic [63:0] START_WORD = {mac_pkg::SFD, {6{mac_pkg::PREAMBLE}}, mac_pkg::XGMII_START};

  // What the second stage does with its word.
  typedef enum logic [2:0] {
    OUT_IDLE,
    OUT_START,
    OUT_DATA,
    OUT_LAST,
    OUT_FCS,
    OUT_ERROR
  } out_t;

  state_t state;
  out_t out;
  logic [3:0] index;  // of the word in the frame, stops behind PAD_WORD

  // First stage: the word, cut or padded, and the CRC up to it.
  logic [63:0] word, word_next;
  logic [3:0] bytes, bytes_next, kept;
  logic [31:0] crc, crc_next;
  logic bad;

  function automatic [3:0] count_bytes(input [7:0] keep);
    integer i;
    begin
      count_bytes = 4'd0;
      for (i = 0; i < 8; i = i + 1) count_bytes = count_bytes + {3'd0, keep[i]};
    end
  endfunction

  assign s_axis_start  = state == IDLE && s_axis_tvalid;
  assign s_axis_tready = state == DATA || state == DISCARD;

  always_comb begin
    word_next = '0;
    kept = count_bytes(s_axis_tkeep);
    bytes_next = 4'd8;
    if (state == DATA) begin
      for (int i = 0; i < 8; i++) if (s_axis_tkeep[i]) word_next[i*8+:8] = s_axis_tdata[i*8+:8];
      if (s_axis_tlast && index > PAD_WORD) bytes_next = kept;
      if (s_axis_tlast && index == PAD_WORD) bytes_next = kept < PAD_BYTES ? PAD_BYTES : kept;
    end else if (index == PAD_WORD) bytes_next = PAD_BYTES;
  end

  crc32 #(
      .BYTES(8)
  ) crc_engine (
      .crc_in (crc),
      .data   (word_next),
      .count  (bytes_next),
      .crc_out(crc_next)
  );

  always_ff @(posedge clk) begin
    out   <= OUT_IDLE;
    word  <= word_next;
    bytes <= bytes_next;
    case (state)
      IDLE: begin
        index <= 4'd0;
        crc   <= '1;
        bad   <= 1'b0;
        if (s_axis_tvalid) begin
          out   <= OUT_START;
          state <= DATA;
        end
      end
      DATA: begin
        out <= OUT_DATA;
        crc <= crc_next;
        if (index <= PAD_WORD) index <= index + 4'd1;
        if (!s_axis_tvalid) begin
          out   <= OUT_ERROR;
          state <= DISCARD;
        end else if (s_axis_tlast) begin
          bad <= s_axis_tuser;
          if (index < PAD_WORD) state <= PAD;
          else begin
            out   <= OUT_LAST;
            state <= END;
          end
        end
      end
      PAD: begin
        out   <= OUT_DATA;
        crc   <= crc_next;
        index <= index + 4'd1;
        if (index == PAD_WORD) begin
          out   <= OUT_LAST;
          state <= END;
        end
      end
      END: begin  // two words lie between the last word and the next start: gap of 12 or more
        out   <= bytes + 4'd5 > 4'd8 ? OUT_FCS : OUT_IDLE;
        state <= GAP;
      end
      GAP: state <= IDLE;
      default: begin  // DISCARD
        if (s_axis_tvalid && s_axis_tlast) state <= GAP;
      end
    endcase
    if (rst) begin
      state <= IDLE;
      out   <= OUT_IDLE;
    end
  end

  // Second stage: data, then the frame check sequence and the terminate character behind it.
  logic [127:0] ending_data;
  logic [ 63:0] rest_data;
  logic [ 15:0] ending_control;
  logic [  7:0] rest_control;
  logic [ 31:0] fcs;
  logic [103:0] trailer;

  assign fcs = ~crc ^ {32{bad}};
  assign trailer = {{8{mac_pkg::XGMII_IDLE}}, mac_pkg::XGMII_TERMINATE, fcs};

  always_comb begin
    ending_data = {16{mac_pkg::XGMII_IDLE}};
    ending_control = '1;
    for (int i = 0; i < 16; i++) begin
      if (i < int'(bytes)) begin
        ending_data[i*8+:8] = word[(i%8)*8+:8];
        ending_control[i]   = 1'b0;
      end else if (i < int'(bytes) + 5) begin
        ending_data[i*8+:8] = trailer[(i-int'(bytes))*8+:8];
        ending_control[i]   = i == int'(bytes) + 4;
      end
    end
  end

  always_ff @(posedge clk) begin
    rest_data <= ending_data[127:64];
    rest_control <= ending_control[15:8];
    case (out)
      OUT_START: {xgmii_txc, xgmii_txd} <= {8'h01, START_WORD};
      OUT_DATA: {xgmii_txc, xgmii_txd} <= {8'h00, word};
      OUT_LAST: {xgmii_txc, xgmii_txd} <= {ending_control[7:0], ending_data[63:0]};
      OUT_FCS: {xgmii_txc, xgmii_txd} <= {rest_control, rest_data};
      OUT_ERROR:
      {xgmii_txc, xgmii_txd} <= {
        8'hFF, {6{mac_pkg::XGMII_IDLE}}, mac_pkg::XGMII_TERMINATE, mac_pkg::XGMII_ERROR
      };
      default: {xgmii_txc, xgmii_txd} <= {8'hFF, IDLE_WORD};
    endcase
    if (rst) {xgmii_txc, xgmii_txd} <= {8'hFF, IDLE_WORD};
  end
endmodule
