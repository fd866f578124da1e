// SPDX-License-Identifier: Apache-2.0
//
// Counts one-clock pulses; wraps.
//
//              +---------------+
//   pulse ---->| event_counter |====> count
//   clear ---->|               |
//              +---------------+
`default_nettype none
module event_counter #(
    parameter int WIDTH = 32
) (
    input  logic             clk,
    input  logic             clear,
    input  logic             pulse,
    output logic [WIDTH-1:0] count
);
  always_ff @(posedge clk) begin
    if (clear) count <= '0;
    else if (pulse) count <= count + 1'b1;
  end
endmodule
`default_nettype wire
