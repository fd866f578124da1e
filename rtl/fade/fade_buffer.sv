// SPDX-License-Identifier: Apache-2.0
//
// Packet buffer of a FADE core: from the user's stream to the sender, across the clocks.
//
//              +----------------------------------------------+
//   s_axis ===>| packet_writer -> packet_memory               |====> read_data
//              |       ^                  ^                   |<==== read_enable, read_address
//              |       +------ tail ------+------ head ------>|====> head, closed, last_words
//              | fade_checksum                                |====> words_crc
//              +----------------------------------------------+
//        user_clk                                    tx_clk
//
// M = 2^SLOT_BITS packets of 2^WORD_BITS words. `closed`: the packet before the head is the last one. last_words
// and words_crc come from the user clock and are stable when the head has moved over that packet. Unless SEND_EMPTY is set
// the head does not move over a last packet without words. words_crc is 0 unless CHECKSUM is set.
`default_nettype none
module fade_buffer #(
    parameter int SLOT_BITS = 5,
    parameter int WORD_BITS = 10,
    parameter bit SEND_EMPTY = 1'b1,
    parameter int READ_CLOCKS = 1,  // see packet_memory
    parameter int CHECKSUM = 0
) (
    // user side
    input  logic                                       user_clk,
    input  logic                                       user_rst,
    input  link_pkg::words_t                           s_axis,
    output logic                                       s_axis_tready,
    output logic                                       user_running,
    // transmit side
    input  logic                                       tx_clk,
    input  logic             [            SLOT_BITS:0] first_slot,
    input  logic                                       session,
    input  logic                                       stop,
    input  logic             [            SLOT_BITS:0] tail_gray,
    output logic             [            SLOT_BITS:0] head,
    output logic                                       closed,
    output logic             [          WORD_BITS-1:0] last_words,
    output logic             [                   31:0] words_crc,
    output logic                                       writer_active,
    input  logic                                       read_enable,
    input  logic             [SLOT_BITS+WORD_BITS-1:0] read_address,
    output logic             [                   63:0] read_data
);
  logic [SLOT_BITS:0] head_gray, head_gray_tx, head_tx;
  logic user_last, last, last_settled, head_is_odd, was_odd, write_enable;
  logic [1:0] last_before;
  logic [SLOT_BITS+WORD_BITS-1:0] write_address;
  logic [63:0] write_data;

  packet_writer #(
      .SLOT_BITS(SLOT_BITS),
      .WORD_BITS(WORD_BITS)
  ) packet_writer (
      .clk          (user_clk),
      .rst          (user_rst),
      .s_axis_tdata (s_axis.tdata),
      .s_axis_tvalid(s_axis.tvalid),
      .s_axis_tready(s_axis_tready),
      .active       (user_running),
      .write_enable (write_enable),
      .write_address(write_address),
      .write_data   (write_data),
      .first_packet (first_slot),
      .session      (session),
      .stop         (stop),
      .last_seen    (last_settled),
      .tail_gray    (tail_gray),
      .head_gray    (head_gray),
      .last         (user_last),
      .last_words   (last_words)
  );

  if (CHECKSUM != 0) begin : g_checksum
    fade_checksum checksum (
        .clk    (user_clk),
        .running(user_running),
        .accept (write_enable),
        .word   (write_data),
        .last   (user_last),
        .crc    (words_crc)
    );
  end else begin : g_no_checksum
    assign words_crc = '0;
  end

  packet_memory #(
      .ADDRESS_BITS(SLOT_BITS + WORD_BITS),
      .READ_CLOCKS (READ_CLOCKS)
  ) packet_memory (
      .write_clk(user_clk),
      .read_clk (tx_clk),
      .*
  );

  sync_bits #(
      .WIDTH(SLOT_BITS + 1)
  ) sync_head (
      .clk(tx_clk),
      .d  (head_gray),
      .q  (head_gray_tx)
  );
  gray_to_binary #(
      .WIDTH(SLOT_BITS + 1)
  ) head_binary (
      .gray  (head_gray_tx),
      .binary(head_tx)
  );
  sync_bits #(
      .WIDTH(2)
  ) sync_writer (
      .clk(tx_clk),
      .d  ({user_last, user_running}),
      .q  ({last, writer_active})
  );

  // Two clocks after `last` each step of the head that was made before it has come. The writer is told then, and makes one
  // step more: over the last packet.
  always_ff @(posedge tx_clk) begin
    {last_settled, last_before} <= {last_before, last};
    if (SEND_EMPTY || !last_settled || last_words != '0) head <= head_tx;
    head_is_odd <= head_tx[0];
    if (!last_settled) was_odd <= head_is_odd;
    closed <= last_settled && head_is_odd != was_odd;
  end

  // A plain stream: block ends do not reach the wire.
  logic unused;
  assign unused = s_axis.tlast;
endmodule
`default_nettype wire
