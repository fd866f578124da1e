// SPDX-License-Identifier: Apache-2.0
//
// Model of the fixed delay of a Lattice ECP5. A simulator without delays passes the signal on: the clocks that it sees are
// shifted instead.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module DELAYG #(
    parameter string DEL_MODE  = "USER_DEFINED",
    parameter int    DEL_VALUE = 0
) (
    input  logic A,
    output logic Z
);
  if (DEL_VALUE < 0 || DEL_VALUE > 127) begin : g_check
    $error("DELAYG: DEL_VALUE must be 0 to 127");
  end
  assign Z = A;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
