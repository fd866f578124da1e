// SPDX-License-Identifier: Apache-2.0
//
// Receive half of the GMII MAC: finds the frame, strips and checks the frame check sequence.
//
//                       +-------------+
//   gmii_rxd, rx_dv, ==>| gmii_mac_rx |====> m_axis_* (tuser at tlast: bad frame)
//   gmii_rx_er, ce      |             |----> stat_* (one pulse a bad frame, by first reason)
//                       +-------------+
//
// ce: the pins have a new byte in this clock; always at 1 Gb/s, once a byte below that.
// A frame without a start delimiter has no bytes and is counted as an error.
`default_nettype none
module gmii_mac_rx (
    input  logic       clk,
    input  logic       rst,
    input  logic       ce,
    input  logic [7:0] gmii_rxd,
    input  logic       gmii_rx_dv,
    input  logic       gmii_rx_er,
    output logic [7:0] m_axis_tdata,
    output logic       m_axis_tvalid,
    output logic       m_axis_tlast,
    output logic       m_axis_tuser,
    output logic       stat_error,
    output logic       stat_runt,
    output logic       stat_oversize,
    output logic       stat_bad_fcs
);
  typedef enum logic [1:0] {
    IDLE,
    PREAMBLE,
    DATA,
    DISCARD
  } state_t;

  localparam logic [13:0] MIN_BYTES = 14'(mac_pkg::MIN_FRAME + mac_pkg::FCS_BYTES);
  localparam logic [13:0] MAX_BYTES = 14'(mac_pkg::MAX_FRAME);

  state_t state;
  logic [31:0] crc, crc_next;
  logic [39:0] tail;  // the last five bytes: the frame check sequence must not go out
  logic [13:0] count;  // bytes since the delimiter, stops above MAX_BYTES
  logic error, short_frame, long_frame, fcs_wrong;

  crc32 #(
      .BYTES(1)
  ) crc_engine (
      .crc_in (crc),
      .data   (gmii_rxd),
      .crc_out(crc_next)
  );

  assign short_frame = count < MIN_BYTES;
  assign long_frame  = count > MAX_BYTES;
  assign fcs_wrong   = crc != mac_pkg::CRC_RESIDUE;

  always_ff @(posedge clk) begin
    m_axis_tvalid <= 1'b0;
    m_axis_tlast  <= 1'b0;
    m_axis_tuser  <= 1'b0;
    if (ce) m_axis_tdata <= tail[39:32];
    stat_error <= 1'b0;
    stat_runt <= 1'b0;
    stat_oversize <= 1'b0;
    stat_bad_fcs <= 1'b0;
    if (ce) begin
      case (state)
        IDLE, PREAMBLE: begin
          crc   <= '1;
          count <= '0;
          error <= 1'b0;
          if (!gmii_rx_dv) begin
            stat_error <= state == PREAMBLE;
            state <= IDLE;
          end else if (gmii_rx_er) begin
            stat_error <= 1'b1;
            state <= DISCARD;
          end else if (gmii_rxd == mac_pkg::SFD) begin
            state <= DATA;
          end else if (gmii_rxd == mac_pkg::PREAMBLE) begin
            state <= PREAMBLE;
          end else begin
            stat_error <= 1'b1;
            state <= DISCARD;
          end
        end
        DATA:
        if (gmii_rx_dv) begin
          tail <= {tail[31:0], gmii_rxd};
          crc  <= crc_next;
          if (!long_frame) count <= count + 14'd1;
          if (gmii_rx_er) error <= 1'b1;
          // The byte that leaves is not the last one: that goes out when the frame has ended.
          m_axis_tvalid <= count > 14'd4 && !long_frame;
        end else begin
          state <= IDLE;
          m_axis_tvalid <= count > 14'd4;
          m_axis_tlast <= 1'b1;
          m_axis_tuser <= error || short_frame || long_frame || fcs_wrong;
          if (error) stat_error <= 1'b1;
          else if (short_frame) stat_runt <= 1'b1;
          else if (long_frame) stat_oversize <= 1'b1;
          else if (fcs_wrong) stat_bad_fcs <= 1'b1;
        end
        default: if (!gmii_rx_dv) state <= IDLE;
      endcase
    end
    if (rst) begin
      state <= IDLE;
      m_axis_tvalid <= 1'b0;
    end
  end
endmodule
`default_nettype wire
