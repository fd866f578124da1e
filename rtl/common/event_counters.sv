// SPDX-License-Identifier: Apache-2.0
//
// Counts the pulses of several events separately; see event_counter.
//
//             +----------------+
//   pulse[] ->| event_counters |====> count[] (they wrap)
//   clear --->|                |
//             +----------------+
`default_nettype none
module event_counters #(
    parameter int EVENTS = 4,
    parameter int WIDTH  = 32
) (
    input  logic                         clk,
    input  logic                         clear,
    input  logic [EVENTS-1:0]            pulse,
    output logic [EVENTS-1:0][WIDTH-1:0] count
);
  for (genvar i = 0; i < EVENTS; i++) begin : g_event
    event_counter #(
        .WIDTH(WIDTH)
    ) counter (
        .clk  (clk),
        .clear(clear),
        .pulse(pulse[i]),
        .count(count[i])
    );
  end
endmodule
`default_nettype wire
