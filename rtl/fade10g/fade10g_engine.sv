// The FADE-10G protocol (design section 2), between the shell and the buffer of fade_core.
//
//                    +------------------------------------------------------+
//   m_cmd, s_rsp <==>| fade10g_cmd_bridge <-> fade10g_cmd_processor         |
//   (user_clk)       |                           |                          |
//   head, tail <====>| fade10g_desc_manager ---> fade10g_eth_tx             |====> tx (tx_clk)
//                    |     ^                     ^                          |
//   read_* <========>|     +---- FIFO <----------|------ fade10g_eth_rx     |<==== rx (rx_clk)
//                    +------------------------------------------------------+
//
// events, drop: see fade_pkg. queued, delay, pause: of congestion control. clear: RESET was done.
module fade10g_engine #(
    parameter int SLOT_BITS = 5,
    parameter int TICK_MIN  = 256,
    parameter int TICK_INIT = 65536,
    parameter int TICK_MAX  = 1048576
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
    input  logic                                                       last,
    input  logic                [                         SLOT_BITS:0] last_packet,
    input  logic                [          fade10g_pkg::WORD_BITS-1:0] last_words,
    input  logic                                                       writer_active,
    output logic                                                       read_enable,
    output logic                [SLOT_BITS+fade10g_pkg::WORD_BITS-1:0] read_address,
    input  logic                [                                63:0] read_data,
    // congestion control
    output logic                                                       queued,
    input  logic                [                                31:0] delay,
    input  logic                [                                31:0] pause,
    // receive side
    input  logic                                                       rx_clk,
    input  logic                                                       rx_rst,
    input  link_pkg::frame_t                                           rx,
    output logic                [                 fade_pkg::DROPS-1:0] drop
);
  assign first_slot = first_packet[SLOT_BITS:0];

  // ---- receive side --------------------------------------------------------------------------
  logic [fade10g_pkg::RECORD_BITS-1:0] rx_record, record;
  logic rx_record_valid, rx_record_ready, record_valid, record_ready;

  fade10g_eth_rx eth_rx (
      .clk             (rx_clk),
      .rst             (rx_rst),
      .mac_address     (mac_address),
      .s_axis_tdata    (rx.tdata),
      .s_axis_tkeep    (rx.tkeep),
      .s_axis_tvalid   (rx.tvalid),
      .s_axis_tlast    (rx.tlast),
      .s_axis_tuser    (rx.tuser),
      .record          (rx_record),
      .record_valid    (rx_record_valid),
      .record_ready    (rx_record_ready),
      .drop_destination(drop[fade_pkg::DROP_DESTINATION]),
      .drop_ethertype  (drop[fade_pkg::DROP_ETHERTYPE]),
      .drop_version    (drop[fade_pkg::DROP_VERSION]),
      .drop_code       (drop[fade_pkg::DROP_CODE]),
      .drop_short      (drop[fade_pkg::DROP_SHORT]),
      .drop_full       (drop[fade_pkg::DROP_FULL])
  );

  async_fifo #(
      .WIDTH(fade10g_pkg::RECORD_BITS),
      .DEPTH(2 ** SLOT_BITS)
  ) ack_command_fifo (
      .s_clk  (rx_clk),
      .s_rst  (rx_rst),
      .s_data (rx_record),
      .s_valid(rx_record_valid),
      .s_ready(rx_record_ready),
      .m_clk  (tx_clk),
      .m_rst  (tx_rst),
      .m_data (record),
      .m_valid(record_valid),
      .m_ready(record_ready)
  );

  // ---- commands ------------------------------------------------------------------------------
  logic [63:0] command, response_value;
  logic command_valid, command_ready, response_value_valid, cleared;

  fade10g_cmd_bridge cmd_bridge (
      .clk           (tx_clk),
      .rst           (tx_rst),
      .command       (command),
      .command_valid (command_valid),
      .command_ready (command_ready),
      .response      (response_value),
      .response_valid(response_value_valid),
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

  logic hold, ack_valid, ack_ready, finished, all_confirmed, sender_idle;
  logic [47:0] peer_address, identify_address;
  logic [95:0] response, identify;
  logic response_valid, response_lock, response_taken, identify_valid, identify_taken;
  logic event_wrong_source, event_busy, event_ack_ignored;
  assign finished = session && last && head != last_packet && all_confirmed;

  fade10g_cmd_processor #(
      .SLOT_BITS(SLOT_BITS)
  ) cmd_processor (
      .clk                (tx_clk),
      .rst                (tx_rst),
      .user_command       (command),
      .user_command_valid (command_valid),
      .user_command_ready (command_ready),
      .user_response      (response_value),
      .user_response_valid(response_value_valid),
      .*
  );

  // ---- packets -------------------------------------------------------------------------------
  logic next_valid, next_last, next_again, next_lock, next_take;
  logic [31:0] next_packet;
  logic [15:0] next_sequence;
  logic event_confirmed, event_early, event_protocol_error, event_stale;

  fade10g_desc_manager #(
      .SLOT_BITS(SLOT_BITS),
      .TICK_MIN (TICK_MIN),
      .TICK_INIT(TICK_INIT),
      .TICK_MAX (TICK_MAX)
  ) desc_manager (
      .clk         (tx_clk),
      .rst         (tx_rst),
      .ack_negative(record[63:48] == fade10g_pkg::NACK),
      .ack_sequence(record[47:32]),
      .ack_packet  (record[31:0]),
      .*
  );

  fade10g_eth_tx #(
      .SLOT_BITS(SLOT_BITS)
  ) eth_tx (
      .clk                (tx_clk),
      .rst                (tx_rst),
      .idle               (sender_idle),
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
endmodule
