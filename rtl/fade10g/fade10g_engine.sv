// SPDX-License-Identifier: Apache-2.0
//
// The FADE-10G protocol (docs/protocol/fade10g.md), between the shell and the buffer of fade_core.
//
//                    +------------------------------------------------------+
//   m_cmd, s_rsp <==>| fade10g_cmd_bridge <-> fade10g_cmd_processor         |
//   (user_clk)       |                           |                          |
//   head, tail <====>| fade10g_desc_manager ---> fade10g_eth_tx             |====> tx (tx_clk)
//                    |     ^                     ^                          |
//   read_* <========>|     +---- FIFO <----------|------ fade10g_eth_rx     |<==== rx (rx_clk)
//                    +------------------------------------------------------+
//
// events, drop: see fade_pkg. queued, idle, delay, pausing: for congestion control. clear: RESET was executed.
`default_nettype none
module fade10g_engine #(
    parameter int READ_CLOCKS = 1,  // see record_fifo
    parameter int SLOT_BITS = 5,
    parameter int TICK_MIN = 256,
    parameter int TICK_INIT = 65536,
    parameter int TICK_MAX = 1048576,
    parameter int CHECKSUM = 0  // see fade_core
) (
    input  logic                [                                47:0] mac_address,
    input  logic                [                                31:0] first_packet,
    input  logic                [                                15:0] first_sequence,
    // user side
    input  logic                                                       user_clk,
    input  logic                                                       user_rst,
    output link_pkg::command_t                                         m_cmd,
    input  logic                                                       m_cmd_ready,
    input  link_pkg::response_t                                        s_rsp,
    output logic                                                       s_rsp_ready,
    output logic                                                       user_clear,
    // transmit side
    input  logic                                                       tx_clk,
    input  logic                                                       tx_rst,
    output link_pkg::frame_t                                           tx,
    input  logic                                                       tx_tready,
    output logic                [                fade_pkg::EVENTS-1:0] events,
    output logic                                                       clear,
    // buffer
    output logic                                                       session,
    output logic                                                       stop,
    output logic                [                         SLOT_BITS:0] first_slot,
    output logic                [                         SLOT_BITS:0] tail_gray,
    input  logic                [                         SLOT_BITS:0] head,
    input  logic                                                       closed,
    input  logic                [          fade10g_pkg::WORD_BITS-1:0] last_words,
    input  logic                [                                31:0] words_crc,
    input  logic                                                       writer_active,
    output logic                                                       read_enable,
    output logic                [SLOT_BITS+fade10g_pkg::WORD_BITS-1:0] read_address,
    input  logic                [                                63:0] read_data,
    // congestion control
    output logic                                                       queued,
    input  logic                [                                31:0] delay,
    output logic                                                       idle,
    input  logic                                                       pausing,
    // receive side
    input  logic                                                       rx_clk,
    input  logic                                                       rx_rst,
    input  link_pkg::frame_t                                           rx,
    output logic                [                 fade_pkg::DROPS-1:0] drop
);
  assign first_slot = first_packet[SLOT_BITS:0];

  // ---- receive side --------------------------------------------------------------------------
  logic rx_write, rx_block, rx_commit, rx_ready, record_block, record_valid, record_ready;
  logic [1:0] rx_word, record_word;
  logic [63:0] rx_record, record;

  fade10g_eth_rx eth_rx (
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

  // The sender's frame under way can hold it up for as long as 98 of the shortest frames take.
  record_fifo #(
      .WIDTH      (65),
      .DEPTH      (128),
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
  logic [31:0] command_head, command_argument;
  logic [63:0] user_response;
  logic command_load, command_send, command_ready, user_response_valid, user_response_done, cleared;

  fade10g_cmd_bridge cmd_bridge (
      .clk           (tx_clk),
      .rst           (tx_rst),
      .command_load  (command_load),
      .command_new   (record),
      .command       ({command_head, command_argument}),
      .command_send  (command_send),
      .command_ready (command_ready),
      .response      (user_response),
      .response_valid(user_response_valid),
      .response_done (user_response_done),
      .clear         (clear),
      .cleared       (cleared),
      .user_clk      (user_clk),
      .user_rst      (user_rst),
      .user_clear    (user_clear),
      .m_cmd_code    (m_cmd.code),
      .m_cmd_sequence(m_cmd.csn),
      .m_cmd_argument(m_cmd.argument),
      .m_cmd_valid   (m_cmd.valid),
      .m_cmd_ready   (m_cmd_ready),
      .s_rsp_value   (s_rsp.value),
      .s_rsp_valid   (s_rsp.valid),
      .s_rsp_ready   (s_rsp_ready)
  );

  logic hold, ack_valid, ack_ready, ack_negative, ack_bits, finished, all_confirmed;
  logic [47:0] peer_address, identify_address;
  logic [95:0] response, identify;
  logic
      response_valid, response_lock, response_taken, identify_valid, identify_word, identify_taken;
  logic event_wrong_source, event_busy, event_ack_ignored, with_checksum;
  assign finished = session && closed && all_confirmed;

  fade10g_cmd_processor #(
      .SLOT_BITS  (SLOT_BITS),
      .READ_CLOCKS(READ_CLOCKS),
      .CHECKSUM   (CHECKSUM)
  ) cmd_processor (
      .clk        (tx_clk),
      .rst        (tx_rst),
      .sender_idle(idle),
      .*
  );

  // ---- packets -------------------------------------------------------------------------------
  logic next_valid, next_last, next_again, next_lock, next_take, sending, sending_done;
  logic [31:0] next_packet;
  logic [SLOT_BITS-1:0] next_slot, sending_slot;
  logic [15:0] next_sequence;
  logic event_confirmed, event_early, event_protocol_error, event_stale;

  fade10g_pkg::fields_t ack;
  assign ack = record;
  fade10g_desc_manager #(
      .SLOT_BITS(SLOT_BITS),
      .TICK_MIN (TICK_MIN),
      .TICK_INIT(TICK_INIT),
      .TICK_MAX (TICK_MAX)
  ) desc_manager (
      .clk         (tx_clk),
      .rst         (tx_rst),
      .ack_sequence(ack.number),
      .ack_packet  (ack.argument),
      .ack_stored  (record),
      .ack_block   (record_block),
      .*
  );

  fade10g_eth_tx #(
      .SLOT_BITS(SLOT_BITS)
  ) eth_tx (
      .clk                (tx_clk),
      .rst                (tx_rst),
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
    event_busy,
    event_wrong_source,
    event_stale || event_ack_ignored,
    event_protocol_error,
    event_early,
    event_confirmed,
    next_take && next_again,
    next_take
  };

  logic unused;
  assign unused = &{1'b0, ack};
endmodule
`default_nettype wire
