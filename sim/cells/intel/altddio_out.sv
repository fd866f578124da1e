// SPDX-License-Identifier: Apache-2.0
//
// Model of the output DDR registers of an Intel Cyclone IV (UG-01060): datain_h while outclock is high, datain_l while it is low.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
module altddio_out #(
    parameter string intended_device_family = "",
    parameter string lpm_type = "altddio_out",
    parameter int width = 1
) (
    input  logic             outclock,
    input  logic [width-1:0] datain_h,
    input  logic [width-1:0] datain_l,
    output logic [width-1:0] dataout
);
  logic [width-1:0] first, second;
  always_ff @(posedge outclock) {first, second} <= {datain_h, datain_l};
  assign dataout = outclock ? first : second;
endmodule
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
