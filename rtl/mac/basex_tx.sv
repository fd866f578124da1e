// SPDX-License-Identifier: Apache-2.0
//
// Transmit side of 1000BASE-X: GMII to code groups (IEEE 802.3 clause 36.2.5.2, figures 36-5 and 36-6).
//
//               +----------+
//   gmii_tx ===>|          |
//   mode ======>| basex_tx |====> code
//   word ======>|          |
//               +----------+
//
// mode: 0 idle, 1 the configuration `word`, 2 frames. A frame's first byte of preamble becomes /S/; if it comes
// at an odd code group it is lost, and the second one becomes /S/. A frame that has begun when the mode changes to 2 is not sent.
`default_nettype none
module basex_tx (
    input  logic                   clk,
    input  logic                   rst,
    input  logic            [ 1:0] mode,
    input  logic            [15:0] word,
    input  link_pkg::gmii_t        gmii_tx,
    output logic            [ 9:0] code
);
  localparam logic [1:0] CONFIGURATION = 2'd1;
  localparam logic [1:0] FRAMES = 2'd2;

  typedef enum logic [2:0] {
    FIRST,  // of an ordered set, at even code groups
    IDLE,
    KIND,   // of a configuration
    LOW,
    HIGH,
    DATA,
    EXTEND
  } state_t;
  state_t state;
  logic odd, second_kind, valid1, valid2;
  logic disparity;
  code_8b10b_pkg::octet_t octet;
  logic starts;
  logic [15:0] sent;
  assign starts = mode == FRAMES && gmii_tx.valid && !valid2;

  always_comb begin
    octet = {1'b1, code_8b10b_pkg::K28_5};
    case (state)
      FIRST: if (starts) octet = {1'b1, code_8b10b_pkg::K_START};
      // The disparity behind an idle is negative.
      IDLE: octet = {1'b0, disparity ? code_8b10b_pkg::D16_2 : code_8b10b_pkg::D5_6};
      KIND: octet = {1'b0, second_kind ? code_8b10b_pkg::D2_2 : code_8b10b_pkg::D21_5};
      LOW: octet = {1'b0, sent[7:0]};
      HIGH: octet = {1'b0, sent[15:8]};
      DATA:
      if (!gmii_tx.valid) octet = {1'b1, code_8b10b_pkg::K_END};
      else octet = gmii_tx.error ? {1'b1, code_8b10b_pkg::K_ERROR} : {1'b0, gmii_tx.data};
      default: octet = {1'b1, code_8b10b_pkg::K_EXTEND};
    endcase
  end

  always_ff @(posedge clk) begin
    {disparity, code} <= code_8b10b_pkg::encode(octet, disparity);
    odd <= !odd;
    {valid2, valid1} <= {valid1, gmii_tx.valid};
    case (state)
      FIRST: state <= starts ? DATA : mode == CONFIGURATION ? KIND : IDLE;
      KIND: begin
        state <= LOW;
        sent <= word;
        second_kind <= !second_kind;
      end
      LOW: state <= HIGH;
      DATA: if (!gmii_tx.valid) state <= EXTEND;
      // /T/R/, and another /R/ so that the next ordered set is even.
      EXTEND: if (odd) state <= FIRST;
      default: state <= FIRST;
    endcase
    if (rst) begin
      state <= FIRST;
      {odd, disparity, second_kind} <= '0;
      {valid1, valid2} <= '1;
    end
  end
endmodule
`default_nettype wire
