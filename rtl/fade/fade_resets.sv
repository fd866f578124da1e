// SPDX-License-Identifier: Apache-2.0
//
// Counts the RESETs that a board has obeyed since the transmission of this number began first, and keeps who sent the last one
// (transmit clock).
//
//             +-------------+
//   begins -->|             |
//   obeyed -->| fade_resets |====> resets (count, address)
//   source ==>|             |
//             +-------------+
//
// A RESET comes from any computer and is not answered, so nothing else shows one that nobody should have sent. `begins`:
// START of a transmission whose number is not that of the last one, which clears both; `obeyed`: a RESET from `source`. One
// clock later `resets` has it. The count stays at its highest value. A START that is repeated behind a RESET has the number of the
// last transmission: it does not clear them, or the words that the board had taken would be gone without a trace.
`default_nettype none
module fade_resets (
    input  logic                     clk,
    input  logic                     rst,
    input  logic                     begins,
    input  logic                     obeyed,
    input  logic              [47:0] source,
    output fade_pkg::resets_t        resets
);
  always_ff @(posedge clk) begin
    if (obeyed) begin
      resets.count   <= &resets.count ? resets.count : resets.count + 8'd1;
      resets.address <= source;
    end
    if (rst || begins) resets <= '0;
  end
endmodule
`default_nettype wire
