// SPDX-License-Identifier: Apache-2.0
//
// Transmit half of the GMII MAC: preamble, padding, frame check sequence, exact 12-byte gap.
//
//                 +-------------+
//   s_axis_* ====>|             |====> gmii_txd, gmii_tx_en, gmii_tx_er
//   ce ---------->| gmii_mac_tx |
//                 +-------------+
//
// ce: the pins change in this clock; always at 1 Gb/s, once a byte below that.
// s_axis_start comes one clock with ce before the first word is read, for senders that make frames on the fly.
// tuser at tlast makes the frame check sequence wrong. A stream that stops inside a frame is ended
// with gmii_tx_er and the rest of it is discarded.
`default_nettype none
module gmii_mac_tx (
    input  logic       clk,
    input  logic       rst,
    input  logic       ce,
    input  logic [7:0] s_axis_tdata,
    input  logic       s_axis_tvalid,
    output logic       s_axis_tready,
    input  logic       s_axis_tlast,
    input  logic       s_axis_tuser,
    output logic       s_axis_start,
    output logic [7:0] gmii_txd,
    output logic       gmii_tx_en,
    output logic       gmii_tx_er
);
  typedef enum logic [2:0] {
    IDLE,
    PREAMBLE,
    DATA,
    PAD,
    FCS,
    GAP,
    DISCARD
  } state_t;

  localparam logic [5:0] LAST_PAD = 6'(mac_pkg::MIN_FRAME - 1);
  localparam logic [5:0] LAST_GAP = 6'(mac_pkg::GAP_BYTES - 1);

  state_t state;
  logic [5:0] count;  // bytes done in this state; of PAD and DATA together, up to LAST_PAD
  logic bad;
  assign s_axis_start  = ce && state == PREAMBLE && count == 6'd7;
  assign s_axis_tready = ce && (state == DATA || state == DISCARD);

  // ---- frame ---------------------------------------------------------------------------------
  logic [7:0] data;
  logic valid, error, is_summed, is_fcs;
  always_ff @(posedge clk) begin
    if (ce) begin
      data <= 8'h00;
      valid <= 1'b0;
      error <= 1'b0;
      is_summed <= 1'b0;
      is_fcs <= 1'b0;
      count <= count + 6'd1;
      case (state)
        IDLE: begin
          count <= 6'd0;
          if (s_axis_tvalid) state <= PREAMBLE;
        end
        PREAMBLE: begin
          valid <= 1'b1;
          data  <= count == 6'd7 ? mac_pkg::SFD : mac_pkg::PREAMBLE;
          bad   <= 1'b0;
          if (count == 6'd7) begin
            state <= DATA;
            count <= 6'd0;
          end
        end
        DATA: begin
          valid <= 1'b1;
          data <= s_axis_tdata;
          is_summed <= 1'b1;
          if (count == LAST_PAD) count <= LAST_PAD;
          if (!s_axis_tvalid) begin
            error <= 1'b1;
            state <= DISCARD;
          end else if (s_axis_tlast) begin
            bad   <= s_axis_tuser;
            state <= count == LAST_PAD ? FCS : PAD;
            if (count == LAST_PAD) count <= 6'd0;
          end
        end
        PAD: begin
          valid <= 1'b1;
          is_summed <= 1'b1;
          if (count == LAST_PAD) begin
            state <= FCS;
            count <= 6'd0;
          end
        end
        FCS: begin
          valid  <= 1'b1;
          is_fcs <= 1'b1;
          if (count == 6'd3) begin
            state <= GAP;
            count <= 6'd0;
          end
        end
        GAP:
        if (count == LAST_GAP) begin
          state <= s_axis_tvalid ? PREAMBLE : IDLE;
          count <= 6'd0;
        end
        default: begin  // DISCARD
          count <= 6'd0;
          if (s_axis_tvalid && s_axis_tlast) state <= GAP;
        end
      endcase
    end
    if (rst) begin
      state <= IDLE;
      count <= 6'd0;
    end
  end

  // ---- frame check sequence ------------------------------------------------------------------
  // A clock later, so that the logic before the MAC has a clock of its own.
  logic [31:0] crc, crc_next;
  crc32 #(
      .BYTES(1)
  ) crc_engine (
      .crc_in (crc),
      .data   (data),
      .crc_out(crc_next)
  );
  always_ff @(posedge clk) begin
    if (ce) begin
      gmii_txd <= is_fcs ? ~crc[7:0] ^ {8{bad}} : data;
      gmii_tx_en <= valid;
      gmii_tx_er <= error;
      crc <= is_summed ? crc_next : is_fcs ? crc >> 8 : '1;
    end
    if (rst) gmii_tx_en <= 1'b0;
  end
endmodule
`default_nettype wire
