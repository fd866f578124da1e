// Receive half of the 64-bit XGMII MAC: finds the frame in either start lane, strips and checks
// the frame check sequence.
//
//                           +--------------+
//   xgmii_rxd, xgmii_rxc ==>| xgmii_mac_rx |====> m_axis_* (tuser at tlast: bad frame)
//                           |              |----> stat_* (one pulse a bad frame, by first reason)
//                           +--------------+
//
// A frame with a broken preamble, or too short to carry a byte, gives no word and is counted.
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
  localparam logic [55:0] PREAMBLE = {mac_pkg::SFD, {6{mac_pkg::PREAMBLE}}};
  localparam logic [13:0] MIN_BYTES = 14'(mac_pkg::MIN_FRAME + mac_pkg::FCS_BYTES);
  localparam logic [13:0] MAX_BYTES = 14'(mac_pkg::MAX_FRAME);

  logic in_frame;

  // The input moved so that frames begin in lane 0.
  logic [63:0] previous_d, aligned_d;
  logic [7:0] previous_c, aligned_c;
  logic lane4, start0, start4, preamble_good;

  assign start0 = previous_c[0] && previous_d[7:0] == mac_pkg::XGMII_START;
  assign start4 = previous_c[4] && previous_d[39:32] == mac_pkg::XGMII_START;

  logic use_lane4;
  assign use_lane4 = in_frame ? lane4 : start4 && !start0;
  assign aligned_d = use_lane4 ? {xgmii_rxd[31:0], previous_d[63:32]} : previous_d;
  assign aligned_c = use_lane4 ? {xgmii_rxc[3:0], previous_c[7:4]} : previous_c;
  assign preamble_good = aligned_c == 8'h01 && aligned_d[63:8] == PREAMBLE;

  // Data bytes before the first control character, and whether that is the terminate.
  logic [3:0] bytes;
  logic ended, terminated;
  always_comb begin
    bytes = 4'd8;
    terminated = 1'b0;
    for (int i = 7; i >= 0; i--) begin
      if (aligned_c[i]) begin
        bytes = 4'(i);
        terminated = aligned_d[i*8+:8] == mac_pkg::XGMII_TERMINATE;
      end
    end
  end
  assign ended = aligned_c != 8'h00;

  logic [31:0] crc, crc_next;
  crc32 #(
      .BYTES(8)
  ) crc_engine (
      .crc_in (crc),
      .data   (aligned_d),
      .count  (bytes),
      .crc_out(crc_next)
  );

  // A word waits until the next one shows whether its end is the frame check sequence.
  logic [63:0] held;
  logic held_valid, bad_frame;
  logic flush, flush_bad;  // the end of a frame goes out one cycle later
  logic [3:0] flush_bytes;
  logic [13:0] count, total;  // bytes of the frame, `count` without this word
  logic short_frame, long_frame, fcs_wrong;

  assign total = count + 14'(bytes);
  assign short_frame = total < MIN_BYTES;
  assign long_frame = total > MAX_BYTES;
  assign fcs_wrong = crc_next != mac_pkg::CRC_RESIDUE;
  assign bad_frame = !terminated || short_frame || long_frame || fcs_wrong;

  function automatic [7:0] keep_of(input [3:0] n);
    keep_of = 8'((9'd1 << n) - 9'd1);
  endfunction

  always_ff @(posedge clk) begin
    previous_d <= xgmii_rxd;
    previous_c <= xgmii_rxc;
    m_axis_tdata <= held;
    m_axis_tkeep <= '1;
    m_axis_tvalid <= 1'b0;
    m_axis_tlast <= 1'b0;
    m_axis_tuser <= 1'b0;
    stat_error <= 1'b0;
    stat_runt <= 1'b0;
    stat_oversize <= 1'b0;
    stat_bad_fcs <= 1'b0;
    flush <= 1'b0;
    if (!in_frame) begin
      crc <= '1;
      count <= '0;
      held_valid <= 1'b0;
      lane4 <= use_lane4;
      in_frame <= (start0 || start4) && preamble_good;
      stat_error <= (start0 || start4) && !preamble_good;
      if (flush) begin
        m_axis_tvalid <= 1'b1;
        m_axis_tlast  <= 1'b1;
        m_axis_tkeep  <= keep_of(flush_bytes);
        m_axis_tuser  <= flush_bad;
      end
    end else begin
      held <= aligned_d;
      crc  <= crc_next;
      if (!ended) begin
        held_valid <= 1'b1;
        m_axis_tvalid <= held_valid && !long_frame;
        if (count <= MAX_BYTES) count <= count + 14'd8;
      end else begin
        in_frame <= 1'b0;
        m_axis_tvalid <= held_valid;
        flush <= held_valid && bytes > 4'd4;
        flush_bytes <= bytes - 4'd4;
        flush_bad <= bad_frame;
        if (bytes <= 4'd4) begin
          m_axis_tlast <= 1'b1;
          m_axis_tkeep <= keep_of(bytes + 4'd4);
          m_axis_tuser <= bad_frame;
        end
        if (!terminated) stat_error <= 1'b1;
        else if (short_frame) stat_runt <= 1'b1;
        else if (long_frame) stat_oversize <= 1'b1;
        else if (fcs_wrong) stat_bad_fcs <= 1'b1;
      end
    end
    if (rst) begin
      in_frame <= 1'b0;
      flush <= 1'b0;
      m_axis_tvalid <= 1'b0;
      previous_c <= '1;
      previous_d <= '0;
    end
  end
endmodule
