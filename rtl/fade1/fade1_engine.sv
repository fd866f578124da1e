// SPDX-License-Identifier: Apache-2.0
//
// The FADE v1 protocol (docs/protocol/fade1.md), between the shell and the buffer of fade_core: sets of 32 packets.
//
//                    +------------------------------------------------------+
//                    |                   fade1_cmd_processor                |
//                    |                           |                          |
//   head, tail <====>| fade1_desc_manager -----> fade1_eth_tx               |====> tx (tx_clk)
//                    |     ^                     ^                          |
//   read_* <========>|     +---- FIFO <----------|------ fade1_eth_rx       |<==== rx (rx_clk)
//                    +------------------------------------------------------+
//
// The ports are those of fade10g_engine.
`default_nettype none
module fade1_engine #(
    parameter int READ_CLOCKS = 1,  // see record_fifo
    parameter int TICK_MIN = 256,
    parameter int TICK_INIT = 32768,
    parameter int TICK_MAX = 1048576,
    parameter int SLOT_BITS = fade1_pkg::SLOT_BITS,
    parameter int CHECKSUM = 0  // see fade_core
) (
    input  logic                [                       47:0] mac_address,
    input  logic                [                       31:0] first_packet,
    input  logic                [                       15:0] first_sequence,
    // user side
    input  logic                                              user_clk,
    input  logic                                              user_rst,
    output link_pkg::command_t                                m_cmd,
    input  logic                                              m_cmd_ready,
    input  link_pkg::response_t                               s_rsp,
    output logic                                              s_rsp_ready,
    output logic                                              user_clear,
    // transmit side
    input  logic                                              tx_clk,
    input  logic                                              tx_rst,
    output link_pkg::frame_t                                  tx,
    input  logic                                              tx_tready,
    output logic                [       fade_pkg::EVENTS-1:0] events,
    output logic                                              clear,
    // buffer
    output logic                                              session,
    output logic                                              stop,
    output logic                [                SLOT_BITS:0] first_slot,
    output logic                [                SLOT_BITS:0] tail_gray,
    input  logic                [                SLOT_BITS:0] head,
    input  logic                                              closed,
    input  logic                [   fade1_pkg::WORD_BITS-1:0] last_words,
    input  logic                [                       31:0] words_crc,
    input  logic                                              writer_active,
    output logic                                              read_enable,
    output logic                [fade1_pkg::ADDRESS_BITS-1:0] read_address,
    input  logic                [                       63:0] read_data,
    // congestion control
    output logic                                              queued,
    input  logic                [                       31:0] delay,
    output logic                                              idle,
    input  logic                                              pausing,
    // receive side
    input  logic                                              rx_clk,
    input  logic                                              rx_rst,
    input  link_pkg::frame_t                                  rx,
    output logic                [        fade_pkg::DROPS-1:0] drop
);
  // A transmission begins with a set.
  assign first_slot = {first_packet[0], SLOT_BITS'(0)};

  // ---- receive side --------------------------------------------------------------------------
  logic rx_write, rx_block, rx_commit, rx_ready, record_block, record_valid, record_ready;
  logic [1:0] rx_word, record_word;
  logic [63:0] rx_record, record;

  fade1_eth_rx eth_rx (
      .clk             (rx_clk),
      .rst             (rx_rst),
      .mac_address     (mac_address),
      .s_axis_tdata    (rx.tdata),
      .s_axis_tkeep    (rx.tkeep),
      .s_axis_tvalid   (rx.tvalid),
      .s_axis_tlast    (rx.tlast),
      .s_axis_tuser    (rx.tuser),
      .record_write    (rx_write),
      .record_word     (rx_word),
      .record          (rx_record),
      .record_block    (rx_block),
      .record_commit   (rx_commit),
      .record_ready    (rx_ready),
      .drop_destination(drop[fade_pkg::DROP_DESTINATION]),
      .drop_ethertype  (drop[fade_pkg::DROP_ETHERTYPE]),
      .drop_version    (drop[fade_pkg::DROP_VERSION]),
      .drop_code       (drop[fade_pkg::DROP_CODE]),
      .drop_short      (drop[fade_pkg::DROP_SHORT]),
      .drop_full       (drop[fade_pkg::DROP_FULL])
  );

  record_fifo #(
      .WIDTH      (65),
      .DEPTH      (2 * fade1_pkg::SET_PACKETS),
      .WORD_BITS  (2),
      .READ_CLOCKS(READ_CLOCKS)
  ) ack_command_fifo (
      .s_clk   (rx_clk),
      .s_rst   (rx_rst),
      .s_write (rx_write),
      .s_word  (rx_word),
      .s_data  ({rx_block, rx_record}),
      .s_commit(rx_commit),
      .s_ready (rx_ready),
      .m_clk   (tx_clk),
      .m_rst   (tx_rst),
      .m_word  (record_word),
      .m_data  ({record_block, record}),
      .m_valid (record_valid),
      .m_ready (record_ready)
  );

  // ---- commands ------------------------------------------------------------------------------
  // None of the user's.
  assign m_cmd = '0;
  assign {s_rsp_ready, user_clear} = 2'b10;

  logic next_valid, next_last, next_again, next_lock, next_take, sending, sending_done;
  logic hold, ack_valid, ack_ready, ack_bits, finished, all_confirmed, answer, answer_take;
  logic [47:0] peer_address;
  fade1_pkg::state_t answer_state;
  fade_pkg::resets_t answer_resets;
  logic [29:0] answer_permit;
  logic event_wrong_source, event_ack_ignored;
  assign finished = session && closed && all_confirmed;

  fade1_cmd_processor #(
      .READ_CLOCKS(READ_CLOCKS)
  ) cmd_processor (
      .clk        (tx_clk),
      .rst        (tx_rst),
      .reset_done (clear),
      .sender_idle(idle),
      .sent       (next_take && !next_again),
      .*
  );

  // ---- packets -------------------------------------------------------------------------------
  logic [15:0] next_set;
  logic [SLOT_BITS-1:0] next_packet, sending_slot;
  logic event_confirmed, event_protocol_error, event_stale;

  fade1_pkg::fields_t ack;
  assign ack = record;
  fade1_desc_manager #(
      .WAIT_MIN (TICK_MIN),
      .WAIT_INIT(TICK_INIT),
      .WAIT_MAX (TICK_MAX)
  ) desc_manager (
      .clk       (tx_clk),
      .rst       (tx_rst),
      .first_set (first_packet[15:0]),
      .closed    (closed && last_words != '0),          // a last packet without a word is not sent
      .ack_set   (ack.set),
      .ack_packet(ack.packet),
      .ack_stored(record[fade1_pkg::SET_PACKETS-1:0]),
      .ack_block (record_block),
      .*
  );

  fade1_eth_tx #(
      .CHECKSUM(CHECKSUM)
  ) eth_tx (
      .clk                (tx_clk),
      .rst                (tx_rst),
      .delay              (delay[29:0]),
      .memory_read_enable (read_enable),
      .memory_read_address(read_address),
      .memory_read_data   (read_data),
      .m_axis_tdata       (tx.tdata),
      .m_axis_tkeep       (tx.tkeep),
      .m_axis_tvalid      (tx.tvalid),
      .m_axis_tready      (tx_tready),
      .m_axis_tlast       (tx.tlast),
      .*
  );
  assign tx.tuser = 1'b0;

  assign events = {
    1'b0,
    event_wrong_source,
    event_stale || event_ack_ignored,
    event_protocol_error,
    1'b0,
    event_confirmed,
    next_take && next_again,
    next_take
  };

  logic unused;
  assign unused = &{1'b0, ack, delay[31:30], m_cmd_ready, s_rsp, first_packet, first_sequence, user_clk, user_rst};
endmodule
`default_nettype wire
