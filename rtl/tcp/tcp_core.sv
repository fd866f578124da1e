// SPDX-License-Identifier: Apache-2.0
//
// TCP sender core (docs/protocol/tcp_sender.md): up to 16 streams, one direction, which an unmodified TCP/IP
// stack receives.
//
//                    +------------------------------------------------------------+
//   s_axis =========>| writer ---------> socket buffer (memory port)              |
//   (a stream each)  |                         |                                  |
//                    |  engine (a stream) -> builder -> frame memory -> assembler |====> m_axis
//                    |     ^       ^           ^                                  |      (to the MAC)
//                    |     |      ARP ---------+------ echo memory                |
//                    |  reader <- records <- receive check --^                    |<==== s_mac
//   status_* <=======|                                                            |      (from the MAC)
//                    +------------------------------------------------------------+
//        user_clk                 tx_clk                       rx_clk
//
// The socket buffer of a stream has 2^BITS words of 64 bits behind the memory port. tcp_memory is block RAM; another
// memory may be slower, but must have written a word before it accepts the next, and must answer in order. MTU
// limits the segments (input mtu: the current value, at most MTU), ECHO_BITS the echo requests (2^ECHO_BITS words
// per frame). Times are in microseconds of TICK_CLOCKS of tx_clk.
//
// The stream is plain: full segments, independent of the user's blocks. With `push` each block (tlast) ends its segment and
// is sent at once; BLOCKS is the number of unsent ends that a stream can store. With PACKETS a connection closes behind a
// whole packet (tlast): one that has begun is accepted to its end, so each word must come. With ECN, and `ecn` while a connection is opened, switches may mark data instead of dropping it (RFC 3168). With SACK, and `sack`, the peer
// reports what it misses (RFC 2018).
//
// enable[i] opens the connection of stream i and keeps it open. After it has fallen, accepted words are sent and confirmed,
// and the connection is closed. A broken connection is opened again after RETRY and continues with the first word that was
// not confirmed. With KEEPALIVE a peer that was silent for this number of milliseconds gets up to KEEPALIVE_PROBES probes,
// KEEPALIVE_INTERVAL ms apart; without an answer the connection is broken, too (RFC 9293 3.8.4). The settings are stable
// while a stream is active. first_sequence, in units of twice the buffer, is always zero, except in tests.
//
// status_*: in tx_clk, except status_drops in rx_clk: dropped frames by first reason (tcp_pkg). status_events are pulses of
// events of any stream. STATUS adds the reader for the counters of each stream (see link_shell): word {stream, event} by
// the events of tcp_pkg; {0, 7} has path, active and connected streams, {1, 7} is status_port. Counters run since reset.
`default_nettype none
module tcp_core #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 1,  // streams, 1 to 16
    parameter int BITS = 12,  // a socket buffer has 2^BITS words of 64 bits
    parameter int MTU = 9000,  // largest value of the input mtu, in bytes
    parameter int ECHO_BITS = 8,  // an echo request has up to 2^ECHO_BITS words
    parameter int BLOCKS = 0,  // ends of blocks that a stream can store unsent; 0: `push` is ignored
    parameter int PACKETS = 0,  // 1: a packet (up to tlast) that has begun is accepted whole before a connection closes
    parameter int CONGESTION = 1,  // 0: only the window of the receiver limits the data under way
    parameter int ECN = 0,  // 1: with explicit congestion notification (RFC 3168)
    parameter int SACK = 0,  // 1: with selective acknowledgements (RFC 2018)
    parameter int TICK_CLOCKS = WIDTH == 8 ? 125 : 156,  // clocks of tx_clk in a microsecond
    parameter int TIMEOUT_MIN = 200_000,  // shortest time-out of retransmission, in microseconds
    parameter int TIMEOUT_INIT = 1_000_000,  // first time-out, in microseconds
    parameter int TIMEOUT_MAX = 8_000_000,  // longest time-out, in microseconds
    parameter int RETRY = 1_000_000,  // microseconds from a broken connection to the next attempt
    parameter int KEEPALIVE = 0,  // milliseconds of silence before a probe; 0: no probes
    parameter int KEEPALIVE_INTERVAL = 75_000,  // milliseconds between two probes
    parameter int KEEPALIVE_PROBES = 9,  // without an answer to so many the connection is broken
    parameter int STATUS = 0,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1  // derived, not to be set
) (
    input logic rst,  // resets everything; from any clock
    // settings
    input logic [STREAMS-1:0] enable,  // of each stream: opens the connection and keeps it open
    input logic [47:0] mac_address,  // of this board
    input net_pkg::ip_t ip,  // addresses of this board, its gateway and the peer
    input logic [STREAMS-1:0][15:0] peer_port,  // of each stream, at the peer
    input logic [STREAMS-1:0][15:0] local_port,  // of each stream, of its first connection
    input logic [13:0] mtu,  // limits the segments, in bytes; at most MTU
    input logic push,  // a block (tlast) ends its segment, which is sent at once
    input logic ecn,  // for connections that are opened: with ECN
    input logic sack,  // for connections that are opened: with SACK
    input logic [31:0] first_sequence,  // in units of twice the buffer; 0 except in tests
    // user side
    input logic user_clk,
    output logic user_rst,
    input logic [STREAMS-1:0][link_pkg::WORDS_BITS-1:0] s_axis,  // a link_pkg::words_t of each stream
    output logic [STREAMS-1:0] s_axis_tready,
    output logic [STREAMS-1:0] user_running,  // of each stream: it takes words
    input logic [tcp_pkg::INDEX_BITS-1:0] status_index,
    input logic status_request,
    output logic status_accepted,
    output logic [31:0] status_value,
    output logic status_valid,
    // socket buffers (user_clk, tx_clk)
    output logic [STREAMS-1:0] write_valid,  // of each stream: a word is to be written
    input logic [STREAMS-1:0] write_ready,  // the word before it is written; this one is taken
    output logic [STREAMS-1:0][BITS-1:0] write_address,  // of the word in the buffer of its stream
    output logic [STREAMS-1:0][63:0] write_data,  // the word
    output logic fetch_valid,  // a word is to be read
    input logic fetch_ready,  // the read is taken
    output logic [STREAM_BITS+BITS-1:0] fetch_address,  // {stream, address of the word}
    input logic fetched_valid,  // fetched_data is valid; in the order of the reads
    input logic [63:0] fetched_data,  // the word that was read
    // frames to the MAC
    input logic tx_clk,
    output logic tx_rst,
    output link_pkg::frame_t m_axis,
    input logic m_axis_tready,
    output logic status_path,  // the MAC address of the next hop is known
    output logic [STREAMS-1:0] status_connected,  // of each stream: the connection is open
    output logic [STREAMS-1:0] status_active,  // of each stream: it is enabled, or not yet closed
    output logic [tcp_pkg::EVENTS-1:0] event_streams,  // a pulse for each event of a stream (tcp_pkg)
    output logic event_port,  // a pulse for each segment to a port of no stream
    output logic [23:0] status_timeout,  // time-out of the current stream, in microseconds
    output logic [29:0] status_window,  // congestion window of the current stream, in bytes
    output logic [15:0] status_port,  // segments to ports of no stream
    // frames from the MAC
    input logic rx_clk,
    output logic rx_rst,
    input link_pkg::frame_t s_mac,
    input link_pkg::mac_stat_t mac_stat,
    output logic [tcp_pkg::DROPS-1:0] event_drop,  // a pulse for each drop, by first reason (tcp_pkg)
    output logic [tcp_pkg::DROPS*16-1:0] status_drops,  // the counters of event_drop, 16 bits each
    output logic [link_pkg::MAC_STATS*16-1:0] status_mac  // the counters of mac_stat, 16 bits each
);
  // At 8 bit for small devices, whose block RAM is slow; a word has eight clocks there.
  localparam int READ_CLOCKS = WIDTH == 8 ? 2 : 1;

  if (STREAMS < 1 || STREAMS > 16) begin : g_check_streams
    $error("tcp_core: STREAMS must be 1 to 16");
  end
  if (MTU < 576 || MTU > 9000) begin : g_check_mtu
    $error("tcp_core: MTU must be 576 to 9000 bytes");
  end
  if (KEEPALIVE != 0 && (KEEPALIVE < 0 || KEEPALIVE_INTERVAL < 1 || KEEPALIVE_PROBES < 1)) begin : g_check_keepalive
    $error(
        "tcp_core: KEEPALIVE must be 0 or more, KEEPALIVE_INTERVAL and KEEPALIVE_PROBES 1 or more"
    );
  end
  if (BITS < 8 || BITS > 27) begin : g_check_buffer
    $error("tcp_core: BITS must be 8 to 27");
  end

  // ---- shell ---------------------------------------------------------------------------------
  localparam int EVENT_BITS = tcp_pkg::EVENT_BITS;
  link_pkg::frame_t rx, tx;
  logic tx_tready, tick, count_valid;
  logic [tcp_pkg::INDEX_BITS-2:0] tx_index;
  logic [31:0] port_count, states, count, tx_word;
  logic [STREAM_BITS-1:0] event_stream;
  assign states = {status_path, 15'(status_active >> 1), 15'(status_connected), status_active[0]};
  assign status_port = port_count[15:0];

  link_shell #(
      .WIDTH      (WIDTH),
      .TICK_CLOCKS(TICK_CLOCKS),
      .TX_LONG    (0),
      .RX_EVENTS  (tcp_pkg::DROPS),
      .STATUS     (STATUS),
      .VERSION    (tcp_pkg::CORE_VERSION),
      .INDEX_BITS (tcp_pkg::INDEX_BITS)
  ) shell (
      .tx_events    (STATUS != 0 && event_port),
      .tx_count     (port_count),
      .tx_word_valid(count_valid),
      .rx_events    (STATUS != 0 ? event_drop : '0),
      .rx_count     (status_drops),
      .mac_count    (status_mac),
      .*
  );

  counter_memory #(
      .EVENTS(tcp_pkg::EVENTS),
      .PAGES (STREAMS)
  ) counters (
      .clk   (tx_clk),
      .rst   (tx_rst),
      .page  (event_stream),
      .events(event_streams),
      .index (tx_index[(STREAMS>1?STREAM_BITS : 0)+EVENT_BITS-1:0]),
      .value (count),
      .valid (count_valid)
  );
  always_comb begin
    tx_word = count;
    if (tx_index == (tcp_pkg::INDEX_BITS - 1)'(tcp_pkg::STATES_INDEX)) tx_word = states;
    if (tx_index == (tcp_pkg::INDEX_BITS - 1)'(tcp_pkg::PORT_INDEX)) tx_word = port_count;
  end

  // ---- receive side --------------------------------------------------------------------------
  localparam int RECORDS = 16;
  logic rx_write, rx_commit, rx_ready, record_valid, record_ready;
  logic [tcp_pkg::RECORD_BITS-1:0] rx_word, record_word;
  logic [63:0] rx_data, record_data;
  logic echo_pending, echo_pending_rx;
  logic echo_write_enable;
  logic [ECHO_BITS-1:0] echo_write_address, echo_read_address;
  logic [63:0] echo_write_data, echo_read_data;

  tcp_rx #(
      .MTU      (MTU),
      .ECHO_BITS(ECHO_BITS)
  ) receiver (
      .clk          (rx_clk),
      .rst          (rx_rst),
      .s_axis       (rx),
      .record_write (rx_write),
      .record_word  (rx_word),
      .record_data  (rx_data),
      .record_commit(rx_commit),
      .record_ready (rx_ready),
      .echo_busy    (echo_pending_rx),
      .drop         (event_drop),
      .*
  );

  record_fifo #(
      .DEPTH      (RECORDS),
      .WORD_BITS  (tcp_pkg::RECORD_BITS),
      .READ_CLOCKS(2)
  ) records (
      .s_clk   (rx_clk),
      .s_rst   (rx_rst),
      .s_write (rx_write),
      .s_word  (rx_word),
      .s_data  (rx_data),
      .s_commit(rx_commit),
      .s_ready (rx_ready),
      .m_clk   (tx_clk),
      .m_rst   (tx_rst),
      .m_word  (record_word),
      .m_data  (record_data),
      .m_valid (record_valid),
      .m_ready (record_ready)
  );

  packet_memory #(
      .ADDRESS_BITS(ECHO_BITS),
      .READ_CLOCKS (2)
  ) echo_memory (
      .write_clk    (rx_clk),
      .write_enable (echo_write_enable),
      .write_address(echo_write_address),
      .write_data   (echo_write_data),
      .read_clk     (tx_clk),
      .read_enable  (1'b1),
      .read_address (echo_read_address),
      .read_data    (echo_read_data)
  );
  sync_bits sync_echo (
      .clk(rx_clk),
      .d  (echo_pending),
      .q  (echo_pending_rx)
  );

  // ---- records -------------------------------------------------------------------------------
  tcp_pkg::meta_t meta;
  tcp_pkg::segment_t segment;
  tcp_pkg::neighbour_t neighbour;
  logic read_valid, read_ready, is_arp, is_request, is_echo, reply_valid, reply_take, echo_take;
  logic [15:0] echo_bytes;
  tcp_reader reader (
      .clk  (tx_clk),
      .rst  (tx_rst),
      .sack (sack && SACK != 0),
      .valid(read_valid),
      .ready(read_ready),
      .*
  );
  // A request is read until it was answered.
  assign is_request = meta.kind == tcp_pkg::RECORD_ARP_REQUEST;
  always_ff @(posedge tx_clk) reply_valid <= !tx_rst && read_valid && is_request && !reply_take;
  assign is_arp = meta.kind == tcp_pkg::RECORD_ARP_REQUEST || meta.kind == tcp_pkg::RECORD_ARP_REPLY;
  assign is_echo = read_valid && meta.kind == tcp_pkg::RECORD_ECHO;

  logic [3:0] echo_hold;  // until the receive side has seen it rise
  always_ff @(posedge tx_clk) begin
    if (echo_hold != '0) echo_hold <= echo_hold - 4'd1;
    if (is_echo) begin
      echo_pending <= 1'b1;
      echo_hold <= '1;
      echo_bytes <= meta.length;
    end else if (echo_take) echo_pending <= 1'b0;
    if (tx_rst) {echo_pending, echo_hold} <= '0;
  end

  // ---- path ----------------------------------------------------------------------------------
  logic ask_valid, ask_take;
  logic [31:0] next_hop, hop;
  logic [47:0] peer_mac;
  logic forget_path;
  assign next_hop = net_pkg::next_hop(ip.peer, ip.address, ip.mask, ip.gateway);

  tcp_arp #(
      .RETRY(RETRY)
  ) arp (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .tick         (tick),
      .wanted       (status_active != '0),
      .forget       (forget_path),
      .next_hop     (next_hop),
      .learn_valid  (read_valid && is_arp),
      .learn_ip     (neighbour.ip),
      .learn_mac    (neighbour.mac),
      .known        (status_path),
      .hop          (hop),
      .address      (peer_mac),
      .request_valid(ask_valid),
      .request_take (ask_take)
  );

  // ---- streams -------------------------------------------------------------------------------
  logic [tcp_pkg::WORDS_BITS-1:0] mtu_words;
  assign mtu_words = tcp_pkg::WORDS_BITS'(((mtu < 14'(MTU) ? mtu : 14'(MTU)) - 14'(tcp_pkg::IP_TCP_BYTES)) >> 3);

  logic [STREAMS-1:0] accept, running, accepting, moved, mark_valid, mark_take, confirm, mine;
  logic [STREAMS-1:0][BITS:0] head, mark;
  logic [BITS:0] confirmed;
  logic [STREAMS-1:0][15:0] port;
  logic [STREAMS-1:0][3:0] attempt;
  logic [STREAM_BITS-1:0] mine_index;
  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    tcp_stream #(
        .BITS   (BITS),
        .BLOCKS (BLOCKS),
        .PACKETS(PACKETS)
    ) stream (
        .s_axis       (s_axis[i]),
        .s_axis_tready(s_axis_tready[i]),
        .user_running (user_running[i]),
        .write_valid  (write_valid[i]),
        .write_ready  (write_ready[i]),
        .write_address(write_address[i]),
        .write_data   (write_data[i]),
        .push         (push && BLOCKS != 0),
        .accept       (accept[i]),
        .running      (running[i]),
        .accepting    (accepting[i]),
        .head         (head[i]),
        .moved        (moved[i]),
        .mark_valid   (mark_valid[i]),
        .mark         (mark[i]),
        .mark_take    (mark_take[i]),
        .confirm      (confirm[i]),
        .*
    );
    // Another port for each attempt, so that old segments belong to nobody.
    assign port[i] = local_port[i] ^ {8'd0, attempt[i], 4'd0};
    always_ff @(posedge tx_clk)
      mine[i] <= meta.from_peer && segment.source_port == peer_port[i] && segment.port == port[i];
  end
  always_comb begin
    mine_index = '0;
    for (int i = 0; i < STREAMS; i++) if (mine[i]) mine_index |= STREAM_BITS'(i);
  end

  logic is_segment, segment_take, request_valid, request_near, request_take;
  logic [STREAM_BITS-1:0] request_stream;
  logic [22:0] timeout;
  logic [BITS:0] window;
  tcp_pkg::request_t request;
  assign is_segment = read_valid && meta.kind == tcp_pkg::RECORD_SEGMENT;
  // A segment is read until the engine has done with it.
  assign read_ready = is_request ? reply_take : !is_segment || mine == '0 || segment_take;
  assign event_port = is_segment && mine == '0;

  tcp_engine #(
      .STREAMS           (STREAMS),
      .BITS              (BITS),
      .CONGESTION        (CONGESTION),
      .SACK              (SACK),
      .TIMEOUT_MIN       (TIMEOUT_MIN),
      .TIMEOUT_INIT      (TIMEOUT_INIT),
      .TIMEOUT_MAX       (TIMEOUT_MAX),
      .RETRY             (RETRY),
      .KEEPALIVE         (KEEPALIVE),
      .KEEPALIVE_INTERVAL(KEEPALIVE_INTERVAL),
      .KEEPALIVE_PROBES  (KEEPALIVE_PROBES)
  ) engine (
      .clk           (tx_clk),
      .rst           (tx_rst),
      .path          (status_path),
      .first_sequence(first_sequence << (BITS + 4)),
      .mtu_words     (mtu_words),
      .push          (push && BLOCKS != 0),
      .ecn           (ecn && ECN != 0),
      .sack          (sack && SACK != 0),
      .segment_valid (is_segment && mine != '0),
      .segment_stream(mine_index),
      .segment_length(meta.length),
      .connected     (status_connected),
      .active        (status_active),
      .events        (event_streams),
      .*
  );
  assign status_timeout = 24'(timeout);
  assign status_window  = 30'(window) << 3;

  // ---- transmit side -------------------------------------------------------------------------
  localparam int RING_BITS = $clog2(MTU / 8) + 1;
  logic store_enable, read_enable, frame_valid, frame_take, word_take;
  logic [RING_BITS-1:0] store_address, read_address;
  logic [63:0] store_data, read_data;
  tcp_pkg::made_t frame;

  tcp_builder #(
      .STREAMS  (STREAMS),
      .BITS     (BITS),
      .ECHO_BITS(ECHO_BITS),
      .RING_BITS(RING_BITS),
      .MOST     (MTU / 8 + 3)
  ) builder (
      .clk              (tx_clk),
      .rst              (tx_rst),
      .ip_address       (ip.address),
      .peer_ip          (ip.peer),
      .mss              (mtu_words),
      .ask_ip           (hop),
      .reply_mac        (neighbour.mac),
      .reply_ip         (neighbour.ip),
      .echo_valid       (echo_pending && echo_hold == '0),
      .request_port     (port[request_stream]),
      .request_peer_port(peer_port[request_stream]),
      .*
  );

  packet_memory #(
      .ADDRESS_BITS(RING_BITS)
  ) frame_memory (
      .write_clk    (tx_clk),
      .write_enable (store_enable),
      .write_address(store_address),
      .write_data   (store_data),
      .read_clk     (tx_clk),
      .read_enable  (read_enable),
      .read_address (read_address),
      .read_data    (read_data)
  );

  tcp_tx #(
      .RING_BITS  (RING_BITS),
      .READ_CLOCKS(READ_CLOCKS)
  ) sender (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .m_axis       (tx),
      .m_axis_tready(tx_tready),
      .*
  );
  logic unused;
  assign unused = meta.marked;  // it is in the segment
endmodule
`default_nettype wire
