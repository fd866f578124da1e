// FADE v1 link core (design section 3): sets of 32 packets of 1024 bytes, for 1 Gb/s.
//
//                    +------------------------------------------------+
//   s_axis_* =======>| packet writer -> packet memory -> Ethernet     |====> m_axis_* (to the MAC)
//                    |                     ^            sender        |
//                    |              descriptor manager    ^           |
//                    |                     ^     command processor    |
//                    |   acknowledgment and command FIFO <- Ethernet  |<==== s_mac_* (from the MAC)
//   status_* <=======|                                      receiver  |
//                    +------------------------------------------------+
//        user_clk                tx_clk                      rx_clk
//
// The ports are those of fade10g_core, so that a design changes its protocol by changing one
// instance. What FADE v1 does not have is silent: user commands never come, responses are taken and
// forgotten, there are no frame sequence numbers, no early retransmissions and no busy state.
//
// WIDTH is the MAC's datapath: 8 for GMII, 64 for XGMII. PACKETS is 32, a set. The three clocks are
// unrelated. first_packet: its lower 16 bits are the set that a transmission begins with, zero but
// in tests of the wrap.
//
// paper_rule: of congestion control (congestion.sv), set while no transmission runs.
//
// status_*: in tx_clk; status_drop_*: in rx_clk. Counters run since power-up; RESET clears the error
// flag and, as every START, the delay.
module fade1_core #(
    parameter int WIDTH = 8,
    parameter int PACKETS = 32,
    parameter int TICK_MIN = 256,
    parameter int TICK_INIT = 32768,
    parameter int TICK_MAX = 1048576,
    parameter int PERIOD = 256,
    parameter int PAPER_PERIOD = 10000,
    parameter int DELAY_FLOOR = 0,
    parameter int DELAY_CEILING = 1048576
) (
    // user side
    input  logic               user_clk,
    input  logic               user_rst,
    input  logic [       63:0] s_axis_tdata,
    input  logic               s_axis_tvalid,
    output logic               s_axis_tready,
    input  logic               s_axis_tlast,
    output logic [       15:0] m_cmd_code,
    output logic [       15:0] m_cmd_sequence,
    output logic [       31:0] m_cmd_argument,
    output logic               m_cmd_valid,
    input  logic               m_cmd_ready,
    input  logic [       63:0] s_rsp_value,
    input  logic               s_rsp_valid,
    output logic               s_rsp_ready,
    output logic               user_running,
    output logic               user_clear,
    // settings, still while a transmission runs
    input  logic [       47:0] mac_address,
    input  logic [       31:0] first_packet,
    input  logic [       15:0] first_sequence,
    input  logic               paper_rule,
    // frames to the MAC
    input  logic               tx_clk,
    input  logic               tx_rst,
    output logic [  WIDTH-1:0] m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic               m_axis_tvalid,
    input  logic               m_axis_tready,
    output logic               m_axis_tlast,
    output logic               m_axis_tuser,
    output logic               status_running,
    output logic               status_stopping,
    output logic               status_error,
    output logic [       31:0] status_sent,
    output logic [       31:0] status_retransmitted,
    output logic [       31:0] status_acknowledged,
    output logic [       31:0] status_early,
    output logic [       31:0] status_protocol_errors,
    output logic [       31:0] status_delay,
    output logic [       15:0] status_stale_acks,
    output logic [       15:0] status_wrong_source,
    output logic [       15:0] status_busy,
    // frames from the MAC
    input  logic               rx_clk,
    input  logic               rx_rst,
    input  logic [  WIDTH-1:0] s_mac_tdata,
    input  logic [WIDTH/8-1:0] s_mac_tkeep,
    input  logic               s_mac_tvalid,
    input  logic               s_mac_tlast,
    input  logic               s_mac_tuser,
    output logic [       15:0] status_drop_destination,
    output logic [       15:0] status_drop_ethertype,
    output logic [       15:0] status_drop_version,
    output logic [       15:0] status_drop_code,
    output logic [       15:0] status_drop_short,
    output logic [       15:0] status_drop_full
);
  localparam int SLOT_BITS = fade1_pkg::SLOT_BITS;
  localparam int ADDRESS_BITS = fade1_pkg::ADDRESS_BITS;

  if (PACKETS != fade1_pkg::SET_PACKETS) begin : g_check_packets
    $error("fade1_core: PACKETS must be 32, the packets of a set");
  end

  // ---- receive side --------------------------------------------------------------------------
  logic [63:0] rx_tdata, tx_tdata;
  logic [7:0] rx_tkeep, tx_tkeep;
  logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;

  mac_adapter #(
      .WIDTH(WIDTH)
  ) mac_adapter (
      .rx_clk       (rx_clk),
      .rx_rst       (rx_rst),
      .s_mac_tdata  (s_mac_tdata),
      .s_mac_tkeep  (s_mac_tkeep),
      .s_mac_tvalid (s_mac_tvalid),
      .s_mac_tlast  (s_mac_tlast),
      .s_mac_tuser  (s_mac_tuser),
      .m_core_tdata (rx_tdata),
      .m_core_tkeep (rx_tkeep),
      .m_core_tvalid(rx_tvalid),
      .m_core_tlast (rx_tlast),
      .m_core_tuser (rx_tuser),
      .tx_clk       (tx_clk),
      .tx_rst       (tx_rst),
      .s_core_tdata (tx_tdata),
      .s_core_tkeep (tx_tkeep),
      .s_core_tvalid(tx_tvalid),
      .s_core_tready(tx_tready),
      .s_core_tlast (tx_tlast),
      .m_mac_tdata  (m_axis_tdata),
      .m_mac_tkeep  (m_axis_tkeep),
      .m_mac_tvalid (m_axis_tvalid),
      .m_mac_tready (m_axis_tready),
      .m_mac_tlast  (m_axis_tlast),
      .m_mac_tuser  (m_axis_tuser)
  );

  logic [fade1_pkg::RECORD_BITS-1:0] rx_record, record;
  logic rx_record_valid, rx_record_ready, record_valid, record_ready;
  logic [5:0] drop;

  fade1_eth_rx eth_rx (
      .clk             (rx_clk),
      .rst             (rx_rst),
      .mac_address     (mac_address),
      .s_axis_tdata    (rx_tdata),
      .s_axis_tkeep    (rx_tkeep),
      .s_axis_tvalid   (rx_tvalid),
      .s_axis_tlast    (rx_tlast),
      .s_axis_tuser    (rx_tuser),
      .record          (rx_record),
      .record_valid    (rx_record_valid),
      .record_ready    (rx_record_ready),
      .drop_destination(drop[0]),
      .drop_ethertype  (drop[1]),
      .drop_version    (drop[2]),
      .drop_code       (drop[3]),
      .drop_short      (drop[4]),
      .drop_full       (drop[5])
  );

  logic [5:0][15:0] drop_count;
  event_counters #(
      .EVENTS(6),
      .WIDTH (16)
  ) drop_counters (
      .clk  (rx_clk),
      .clear(rx_rst),
      .pulse(drop),
      .count(drop_count)
  );
  assign status_drop_destination = drop_count[0];
  assign status_drop_ethertype = drop_count[1];
  assign status_drop_version = drop_count[2];
  assign status_drop_code = drop_count[3];
  assign status_drop_short = drop_count[4];
  assign status_drop_full = drop_count[5];

  async_fifo #(
      .WIDTH(fade1_pkg::RECORD_BITS),
      .DEPTH(PACKETS)
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

  // ---- user side -----------------------------------------------------------------------------
  logic session, stop, hold, reset_done;
  logic [SLOT_BITS:0] head, head_gray, head_gray_tx, head_used, tail_gray, last_packet;
  logic last, last_tx, writer_active_tx;
  logic [fade1_pkg::WORD_BITS-1:0] last_words;
  logic write_enable, read_enable;
  logic [ADDRESS_BITS-1:0] write_address, read_address;
  logic [63:0] write_data, read_data;

  packet_writer #(
      .SLOT_BITS(SLOT_BITS),
      .WORD_BITS(fade1_pkg::WORD_BITS)
  ) packet_writer (
      .clk          (user_clk),
      .rst          (user_rst),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .active       (user_running),
      .write_enable (write_enable),
      .write_address(write_address),
      .write_data   (write_data),
      .first_packet ({first_packet[0], SLOT_BITS'(0)}),
      .session      (session),
      .stop         (stop),
      .last_seen    (last_tx),
      .tail_gray    (tail_gray),
      .head_gray    (head_gray),
      .last         (last),
      .last_packet  (last_packet),
      .last_words   (last_words)
  );

  packet_memory #(
      .ADDRESS_BITS(ADDRESS_BITS)
  ) packet_memory (
      .write_clk    (user_clk),
      .write_enable (write_enable),
      .write_address(write_address),
      .write_data   (write_data),
      .read_clk     (tx_clk),
      .read_enable  (read_enable),
      .read_address (read_address),
      .read_data    (read_data)
  );

  assign {m_cmd_code, m_cmd_sequence, m_cmd_argument, m_cmd_valid} = '0;
  assign {s_rsp_ready, user_clear} = 2'b10;

  // ---- transmit side -------------------------------------------------------------------------
  logic ack_valid, ack_ready, finished, all_confirmed, queued, sender_idle;
  logic [31:0] pause;
  logic [47:0] peer_address;
  logic next_valid, next_last, next_again, next_lock, next_take;
  logic [15:0] next_set;
  logic [SLOT_BITS-1:0] next_packet;
  logic event_confirmed, event_protocol_error, event_stale, event_wrong_source, event_ack_ignored;

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
      .binary(head)
  );
  sync_bits #(
      .WIDTH(2)
  ) sync_writer (
      .clk(tx_clk),
      .d  ({last, user_running}),
      .q  ({last_tx, writer_active_tx})
  );

  // A last packet without a word is not sent.
  assign head_used = last_tx && last_words == '0 ? last_packet : head;
  assign finished  = session && last_tx && head != last_packet && all_confirmed;

  fade1_cmd_processor cmd_processor (
      .clk               (tx_clk),
      .rst               (tx_rst),
      .record            (record),
      .record_valid      (record_valid),
      .record_ready      (record_ready),
      .ack_valid         (ack_valid),
      .ack_ready         (ack_ready),
      .session           (session),
      .stop              (stop),
      .hold              (hold),
      .reset_done        (reset_done),
      .peer_address      (peer_address),
      .finished          (finished),
      .writer_active     (writer_active_tx),
      .sender_idle       (sender_idle),
      .event_wrong_source(event_wrong_source),
      .event_ack_ignored (event_ack_ignored)
  );

  fade1_desc_manager #(
      .WAIT_MIN (TICK_MIN),
      .WAIT_INIT(TICK_INIT),
      .WAIT_MAX (TICK_MAX)
  ) desc_manager (
      .clk                 (tx_clk),
      .rst                 (tx_rst),
      .session             (session),
      .first_set           (first_packet[15:0]),
      .head                (head_used),
      .last                (last_tx),
      .last_packet         (last_packet),
      .tail_gray           (tail_gray),
      .all_confirmed       (all_confirmed),
      .queued              (queued),
      .ack_valid           (ack_valid),
      .ack_ready           (ack_ready),
      .ack_set             (record[21:6]),
      .ack_packet          (record[5:0]),
      .next_valid          (next_valid),
      .next_set            (next_set),
      .next_packet         (next_packet),
      .next_last           (next_last),
      .next_again          (next_again),
      .next_lock           (next_lock),
      .next_take           (next_take),
      .event_confirmed     (event_confirmed),
      .event_protocol_error(event_protocol_error),
      .event_stale         (event_stale)
  );

  congestion #(
      .FRAME_CLOCKS(fade1_pkg::DATA_WIRE_BYTES * 8 / WIDTH),
      .PERIOD      (PERIOD),
      .PAPER_PERIOD(PAPER_PERIOD),
      .FLOOR       (DELAY_FLOOR),
      .CEILING     (DELAY_CEILING)
  ) congestion (
      .clk       (tx_clk),
      .rst       (tx_rst),
      .seed      (mac_address[14:0]),
      .session   (session),
      .paper_rule(paper_rule),
      .queued    (queued),
      .sent      (next_take),
      .again     (next_again),
      .delay     (status_delay),
      .pause     (pause)
  );

  fade1_eth_tx eth_tx (
      .clk                (tx_clk),
      .rst                (tx_rst),
      .mac_address        (mac_address),
      .peer_address       (peer_address),
      .delay              (status_delay),
      .pause              (pause),
      .hold               (hold),
      .idle               (sender_idle),
      .next_valid         (next_valid),
      .next_set           (next_set),
      .next_packet        (next_packet),
      .next_last          (next_last),
      .next_lock          (next_lock),
      .next_take          (next_take),
      .last_words         (last_words),
      .memory_read_enable (read_enable),
      .memory_read_address(read_address),
      .memory_read_data   (read_data),
      .m_axis_tdata       (tx_tdata),
      .m_axis_tkeep       (tx_tkeep),
      .m_axis_tvalid      (tx_tvalid),
      .m_axis_tready      (tx_tready),
      .m_axis_tlast       (tx_tlast)
  );

  // ---- status --------------------------------------------------------------------------------
  assign status_running = session;
  assign status_stopping = stop;
  assign status_early = '0;
  assign status_busy = '0;

  always_ff @(posedge tx_clk) begin
    if (tx_rst || reset_done) status_error <= 1'b0;
    else if (event_protocol_error) status_error <= 1'b1;
  end

  logic [3:0][31:0] count;
  logic [1:0][15:0] count_short;
  logic [3:0] count_pulse;
  logic [1:0] count_short_pulse;
  assign count_pulse = {event_protocol_error, event_confirmed, next_take && next_again, next_take};
  assign count_short_pulse = {event_wrong_source, event_stale || event_ack_ignored};
  event_counters #(
      .EVENTS(4),
      .WIDTH (32)
  ) counters (
      .clk  (tx_clk),
      .clear(tx_rst),
      .pulse(count_pulse),
      .count(count)
  );
  event_counters #(
      .EVENTS(2),
      .WIDTH (16)
  ) short_counters (
      .clk  (tx_clk),
      .clear(tx_rst),
      .pulse(count_short_pulse),
      .count(count_short)
  );
  assign status_sent = count[0];
  assign status_retransmitted = count[1];
  assign status_acknowledged = count[2];
  assign status_protocol_errors = count[3];
  assign status_stale_acks = count_short[0];
  assign status_wrong_source = count_short[1];

  // A plain stream: block ends do not reach the wire.
  logic unused;
  assign unused = &{
    1'b0, s_axis_tlast, m_cmd_ready, s_rsp_value, s_rsp_valid, first_packet, first_sequence
  };
endmodule
