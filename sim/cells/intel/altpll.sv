// SPDX-License-Identifier: Apache-2.0
//
// Model of the PLL of an Intel Cyclone IV, for a simulator without delays: the program around the board makes its clocks,
// and drives clocks and is_locked in the model's place.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
module altpll #(
    parameter string intended_device_family = "",
    parameter string lpm_type = "altpll",
    parameter string operation_mode = "NORMAL",
    parameter string compensate_clock = "CLK0",
    parameter int inclk0_input_frequency = 0,
    parameter int clk0_multiply_by = 1,
    parameter int clk0_divide_by = 1,
    parameter int clk0_duty_cycle = 50,
    parameter string clk0_phase_shift = "0",
    parameter int clk1_multiply_by = 1,
    parameter int clk1_divide_by = 1,
    parameter int clk1_duty_cycle = 50,
    parameter string clk1_phase_shift = "0"
) (
    input  logic [1:0] inclk,
    output logic [4:0] clk,
    output logic       locked
);
  logic [4:0] clocks;
  logic is_locked;
  assign {clk, locked} = {clocks, is_locked};
endmodule
/* verilator lint_on UNDRIVEN */
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
