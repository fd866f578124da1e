// SPDX-License-Identifier: Apache-2.0
//
// Clocks of a board from its oscillator: the PLL of a Lattice ECP5 (FPGA-TN-02200).
//
//                +----------+
//   clk_pin ---->| ecp5_pll |----> tx_clk, user_clk
//                |          |----> rst (until the clocks are stable)
//                +----------+
//
// tx_clk has the frequency of clk_pin * FEEDBACK_DIV / INPUT_DIV; user_clk that of tx_clk * TX_DIV / USER_DIV. The
// oscillator of the PLL, tx_clk * TX_DIV, must be between 400 and 800 MHz.
`default_nettype none
module ecp5_pll #(
    parameter int INPUT_DIV = 1,
    parameter int FEEDBACK_DIV = 5,
    parameter int TX_DIV = 5,
    parameter int USER_DIV = 10
) (
    input  logic clk_pin,
    output logic rst,
    output logic user_clk,
    output logic tx_clk
);
  logic locked;
  assign rst = !locked;

  // The loop filter, as ecppll of Project Trellis computes it for an oscillator of 25 MHz behind INPUT_DIV.
  (* ICP_CURRENT = "12" *)
  (* LPF_RESISTOR = "8" *)
  (* MFG_ENABLE_FILTEROPAMP = "1" *)
  (* MFG_GMCREF_SEL = "2" *)
  EHXPLLL #(
      .CLKI_DIV    (INPUT_DIV),
      .CLKFB_DIV   (FEEDBACK_DIV),
      .FEEDBK_PATH ("CLKOP"),
      .CLKOP_ENABLE("ENABLED"),
      .CLKOP_DIV   (TX_DIV),
      .CLKOP_CPHASE(TX_DIV - 1),
      .CLKOS_ENABLE("ENABLED"),
      .CLKOS_DIV   (USER_DIV),
      .CLKOS_CPHASE(USER_DIV - 1)
  ) pll (
      .CLKI        (clk_pin),
      .CLKFB       (tx_clk),
      .CLKOP       (tx_clk),
      .CLKOS       (user_clk),
      .LOCK        (locked),
      .RST         (1'b0),
      .STDBY       (1'b0),
      .PHASESEL0   (1'b0),
      .PHASESEL1   (1'b0),
      .PHASEDIR    (1'b0),
      .PHASESTEP   (1'b0),
      .PHASELOADREG(1'b0),
      .PLLWAKESYNC (1'b0),
      .ENCLKOP     (1'b0),
      .ENCLKOS     (1'b0)
  );
endmodule
`default_nettype wire
