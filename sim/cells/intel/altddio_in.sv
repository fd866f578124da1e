// SPDX-License-Identifier: Apache-2.0
//
// Model of the input DDR registers of an Intel Cyclone IV (UG-01060): behind a rising edge, dataout_h is the data of that edge and
// dataout_l that of the falling edge before it.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
module altddio_in #(
    parameter string intended_device_family = "",
    parameter string lpm_type = "altddio_in",
    parameter int width = 1
) (
    input  logic             inclock,
    input  logic [width-1:0] datain,
    output logic [width-1:0] dataout_h,
    output logic [width-1:0] dataout_l
);
  logic [width-1:0] fall;
  always_ff @(negedge inclock) fall <= datain;
  always_ff @(posedge inclock) {dataout_h, dataout_l} <= {datain, fall};
endmodule
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
