// SPDX-License-Identifier: Apache-2.0
//
// ARP for one peer or gateway: sends requests until one is answered, stores the address, forgets it on request (RFC 826).
//
//                +---------+
//   wanted ----->|         |----> known, address (of the next hop)
//   forget ----->| tcp_arp |----> request_valid / request_take
//   learn_* ====>|         |
//                +---------+
//
// Every ARP frame from the next hop updates the address. learn_ip and learn_mac are stable for one clock after learn_valid.
`default_nettype none
module tcp_arp #(
    parameter int RETRY = 1_000_000  // microseconds between requests
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        tick,           // each microsecond
    input  logic        wanted,
    input  logic        forget,
    input  logic [31:0] next_hop,
    input  logic        learn_valid,
    input  logic [31:0] learn_ip,
    input  logic [47:0] learn_mac,
    output logic        known,
    output logic [31:0] hop,            // that is asked for
    output logic [47:0] address,
    output logic        request_valid,
    input  logic        request_take
);
  localparam int BITS = $clog2(RETRY + 1);
  logic [BITS-1:0] timer;
  logic learns, is_hop, moved;

  always_ff @(posedge clk) begin
    if (tick && timer != '0) timer <= timer - 1'b1;
    if (wanted && !known && timer == '0) begin
      request_valid <= 1'b1;
      timer <= BITS'(RETRY);
    end
    if (request_take || known) request_valid <= 1'b0;
    hop <= next_hop;
    learns <= learn_valid;
    is_hop <= learn_ip == hop;
    moved <= hop != next_hop;
    if (forget || moved) known <= 1'b0;
    if (learns && is_hop && !moved) begin
      known   <= 1'b1;
      address <= learn_mac;
      timer   <= '0;
    end
    if (rst) begin
      known <= 1'b0;
      learns <= 1'b0;
      request_valid <= 1'b0;
      timer <= '0;
    end
  end
endmodule
`default_nettype wire
