// SPDX-License-Identifier: Apache-2.0
//
// Counts events of several pages (for example streams) in distributed RAM; the counters wrap at 2^32.
//
//               +----------------+
//   page ======>|                |<==== index ({page, event})
//   events ====>| counter_memory |====> value
//               |                |----> valid
//               +----------------+
//
// Each clock it adds one, for the lowest event that waits, in four steps: choice, number, count, sum. So an event may occur again
// after as many clocks as there are events (at least four), and events of another page when the earlier ones are chosen.
// `value` is `valid` in clocks in which nothing is counted.
`default_nettype none
module counter_memory #(
    parameter int EVENTS = 8,
    parameter int PAGES = 1,
    parameter int PAGE_BITS = PAGES > 1 ? $clog2(PAGES) : 1,
    parameter int EVENT_BITS = $clog2(EVENTS),
    parameter int INDEX_BITS = EVENT_BITS + (PAGES > 1 ? PAGE_BITS : 0)
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [ PAGE_BITS-1:0] page,
    input  logic [    EVENTS-1:0] events,
    input  logic [INDEX_BITS-1:0] index,
    output logic [          31:0] value,
    output logic                  valid
);
  (* ram_style = "distributed" *)
  logic [31:0] counts[2**INDEX_BITS];
  logic [EVENTS-1:0] pending, first, chosen;
  logic [PAGE_BITS-1:0] owner, chosen_page;
  logic [EVENT_BITS-1:0] which;
  logic [INDEX_BITS-1:0] place, address, read_address;
  logic place_valid, counts_event, is_read;
  logic [INDEX_BITS:0] wiped;  // until the last bit is set
  logic wiping;
  assign wiping = !wiped[INDEX_BITS];
  assign first  = pending & (~pending + 1'b1);
  always_comb begin
    which = '0;
    for (int i = 0; i < EVENTS; i++) if (chosen[i]) which |= EVENT_BITS'(i);
  end
  assign address = place_valid ? place : index;
  assign valid   = is_read && read_address == index;

  always_ff @(posedge clk) begin
    pending <= (pending & ~first) | events;
    if (events != '0) owner <= page;
    {chosen, chosen_page} <= {first, owner};
    {place, place_valid} <= {INDEX_BITS'({chosen_page, which}), chosen != '0};
    value <= counts[address];
    {read_address, counts_event} <= {address, place_valid};
    is_read <= !place_valid && !wiping;
    // Wiping counts on from -1.
    if (wiping) {read_address, value, counts_event} <= {wiped[INDEX_BITS-1:0], 33'h1_FFFF_FFFF};
    if (counts_event) counts[read_address] <= value + 1'b1;
    wiped <= wiped + (INDEX_BITS + 1)'(wiping);
    if (rst) {wiped, pending, chosen, place_valid, counts_event, is_read} <= '0;
  end
endmodule
`default_nettype wire
