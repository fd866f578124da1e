// SPDX-License-Identifier: Apache-2.0
//
// Model of the PLL of a Lattice ECP5, for a simulator without delays: the program around the board makes its clocks.
//
// It reads the dividers, and drives clkop, clkos and locked in the model's place.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
module EHXPLLL #(
    parameter int CLKI_DIV = 1,
    parameter int CLKFB_DIV = 1,
    parameter int CLKOP_DIV = 8,
    parameter int CLKOS_DIV = 8,
    parameter string CLKOP_ENABLE = "ENABLED",
    parameter string CLKOS_ENABLE = "DISABLED",
    parameter int CLKOP_CPHASE = 0,
    parameter int CLKOS_CPHASE = 0,
    parameter string FEEDBK_PATH = "CLKOP"
) (
    input  logic CLKI,
    input  logic CLKFB,
    input  logic PHASESEL1,
    input  logic PHASESEL0,
    input  logic PHASEDIR,
    input  logic PHASESTEP,
    input  logic PHASELOADREG,
    input  logic STDBY,
    input  logic PLLWAKESYNC,
    input  logic RST,
    input  logic ENCLKOP,
    input  logic ENCLKOS,
    output logic CLKOP,
    output logic CLKOS,
    output logic LOCK
);
  logic clkop, clkos, locked;
  assign {CLKOP, CLKOS, LOCK} = {clkop, clkos, locked};
endmodule
/* verilator lint_on UNDRIVEN */
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
