// SPDX-License-Identifier: Apache-2.0
//
// Running CRC of the words of a transmission (user clock).
//
//              +---------------+
//   accept --->|               |
//   word =====>| fade_checksum |====> crc (read in this clock or in another)
//   running -->|               |
//   last ----->|               |
//              +---------------+
//
// It is the CRC-32 of IEEE 802.3 (that of zlib, too) of the words in the order of the wire, least significant byte first.
// It begins anew while `running` is low. It is held when `last` has risen: no word comes from then on, and the last one can
// have come two clocks before. crc is stable from two clocks after that on, one clock before the head of packet_writer can
// move over the last packet, and keeps its value until the end of another transmission.
//
// The network is linear (see crc32), so a word's part is a stage of its own: each stage has one network.
`default_nettype none
module fade_checksum (
    input  logic        clk,
    input  logic        running,
    input  logic        accept,
    input  logic [63:0] word,
    input  logic        last,
    output logic [31:0] crc
);
  logic [63:0] taken;
  logic [31:0] state, state_moved, part, part_next;
  logic has_taken, has_part;
  logic [1:0] was_last;

  crc32 of_word (
      .crc_in ('0),
      .data   (taken),
      .crc_out(part_next)
  );
  crc32 of_state (
      .crc_in (state),
      .data   ('0),
      .crc_out(state_moved)
  );

  always_ff @(posedge clk) begin
    has_taken <= accept;
    taken <= word;
    has_part <= has_taken;
    part <= part_next;
    if (has_part) state <= state_moved ^ part;
    was_last <= {was_last[0], last};
    if (!running) begin
      state <= '1;
      {has_taken, has_part, was_last} <= '0;
    end
  end

  cdc_register #(
      .WIDTH(32)
  ) crc_of_all (
      .clk (clk),
      .load(was_last == 2'b01),
      .d   (~state),
      .q   (crc)
  );
endmodule
`default_nettype wire
