// SPDX-License-Identifier: Apache-2.0
//
// Model of the clock manager of an AMD 7 Series FPGA (UG472), for a simulator without delays: the program around the
// board makes its clocks, and drives clkout0, clkout1 and is_locked in the model's place.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
module MMCME2_BASE #(
    parameter real CLKIN1_PERIOD = 0.0,
    parameter real CLKFBOUT_MULT_F = 5.0,
    parameter real CLKOUT0_DIVIDE_F = 1.0,
    parameter int CLKOUT1_DIVIDE = 1
) (
    input  logic CLKIN1,
    input  logic CLKFBIN,
    input  logic RST,
    input  logic PWRDWN,
    output logic CLKFBOUT,
    output logic CLKOUT0,
    output logic CLKOUT1,
    output logic LOCKED
);
  logic clkout0, clkout1, is_locked;
  assign CLKFBOUT = CLKIN1;
  assign {CLKOUT0, CLKOUT1, LOCKED} = {clkout0, clkout1, is_locked};
endmodule
/* verilator lint_on UNDRIVEN */
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
