// SPDX-License-Identifier: Apache-2.0
//
// Counts the events of the streams, in distributed RAM (transmit clock).
//
//               +--------------+
//   stream ====>|              |<==== index (stream, event)
//   events ====>| tcp_counters |====> value
//               |              |----> valid
//               +--------------+
//
// One addition a clock: `events` of a stream come when those before are counted, as the steps of tcp_engine give. Meanwhile
// `value` is not `valid`.
`default_nettype none
module tcp_counters #(
    parameter int STREAMS = 1,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input  logic                                       clk,
    input  logic                                       rst,
    input  logic [                    STREAM_BITS-1:0] stream,
    input  logic [                tcp_pkg::EVENTS-1:0] events,
    input  logic [STREAM_BITS+tcp_pkg::EVENT_BITS-1:0] index,
    output logic [                               31:0] value,
    output logic                                       valid
);
  localparam int EVENT_BITS = tcp_pkg::EVENT_BITS;
  localparam int ADDRESS_BITS = STREAM_BITS + EVENT_BITS;

  (* ram_style = "distributed" *)
  logic [31:0] counts[2**ADDRESS_BITS];
  logic [tcp_pkg::EVENTS-1:0] pending, first;
  logic [STREAM_BITS-1:0] owner;
  logic [EVENT_BITS-1:0] which;
  logic [ADDRESS_BITS-1:0] address;
  logic [ADDRESS_BITS:0] wiped;  // until the last bit is set
  logic wiping;
  assign wiping  = !wiped[ADDRESS_BITS];
  assign first   = pending & (~pending + 1'b1);
  assign valid   = !wiping && pending == '0;
  assign address = wiping ? wiped[ADDRESS_BITS-1:0] : pending != '0 ? {owner, which} : index;
  assign value   = counts[address];
  always_comb begin
    which = '0;
    for (int i = 0; i < tcp_pkg::EVENTS; i++) if (first[i]) which |= EVENT_BITS'(i);
  end

  always_ff @(posedge clk) begin
    if (!valid) counts[address] <= wiping ? '0 : value + 1'b1;
    wiped   <= wiped + (ADDRESS_BITS + 1)'(wiping);
    pending <= (pending & ~first) | events;
    if (events != '0) owner <= stream;
    if (rst) {wiped, pending} <= '0;
  end
endmodule
`default_nettype wire
