// TCP sender core (design section 4): up to four streams, one direction, which an unmodified TCP/IP
// stack receives.
//
//                    +------------------------------------------------------------+
//   s_axis_* =======>| writer ----------> socket buffer (memory port)             |
//   (a stream each)  |                         |                                  |
//                    |  engine (a stream) -> protocol builder -> packet assembler |====> m_axis_*
//                    |     ^       ^                                 ^    ^       |      (to the MAC)
//                    |     |      ARP -------------------------------+    |       |
//                    |  command FIFO <- receive check and decode -> echo memory   |<==== s_mac_*
//   status_* <=======|                                                            |      (from the MAC)
//                    +------------------------------------------------------------+
//        user_clk                 tx_clk                       rx_clk
//
// WIDTH is the MAC's datapath: 8 for GMII, 64 for XGMII. The socket buffer of a stream is 2^BITS words
// of 64 bits behind the memory port: tcp_memory is block RAM; another memory may take its time, but
// must have written a word before it takes the next, and must answer in order. MTU bounds the
// segments (input mtu: now, at most MTU), ECHO_BITS the echo requests (2^ECHO_BITS words a frame).
// Times are in microseconds of TICK_CLOCKS of tx_clk.
//
// The stream is plain: full segments, whatever the user's blocks. With `push` each block (tlast)
// ends its segment and leaves at once; BLOCKS is how many ends a stream can hold that were not sent
// (0: tlast is ignored).
//
// enable[i] opens stream i's connection and keeps it open; after it has fallen, what was taken is
// sent, confirmed, and the connection closed. A connection that breaks is opened again after RETRY
// and goes on with the first word that was not confirmed. The settings stay still while a stream is
// active. first_sequence, in units of twice the buffer, is zero but in tests of the wrap.
//
// status_*: in tx_clk; status_drop_*: in rx_clk, but drop_port. Counters run since power-up.
module tcp_core #(
    parameter int WIDTH = 64,
    parameter int STREAMS = 1,
    parameter int BITS = 12,
    parameter int MTU = 9000,
    parameter int ECHO_BITS = 8,
    parameter int BLOCKS = 0,
    parameter int TICK_CLOCKS = WIDTH == 8 ? 125 : 156,
    parameter int TIMEOUT_MIN = 200_000,
    parameter int TIMEOUT_INIT = 1_000_000,
    parameter int TIMEOUT_MAX = 8_000_000,
    parameter int RETRY = 1_000_000,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    // user side
    input  logic                                  user_clk,
    input  logic                                  user_rst,
    input  logic [         STREAMS-1:0][    63:0] s_axis_tdata,
    input  logic [         STREAMS-1:0]           s_axis_tvalid,
    output logic [         STREAMS-1:0]           s_axis_tready,
    input  logic [         STREAMS-1:0]           s_axis_tlast,
    output logic [         STREAMS-1:0]           user_running,
    // socket buffers
    output logic [         STREAMS-1:0]           write_valid,
    input  logic [         STREAMS-1:0]           write_ready,
    output logic [         STREAMS-1:0][BITS-1:0] write_address,
    output logic [         STREAMS-1:0][    63:0] write_data,
    output logic                                  fetch_valid,
    input  logic                                  fetch_ready,
    output logic [STREAM_BITS+BITS-1:0]           fetch_address,
    input  logic                                  fetched_valid,
    input  logic [                63:0]           fetched_data,
    // settings
    input  logic [         STREAMS-1:0]           enable,
    input  logic [                47:0]           mac_address,
    input  logic [                31:0]           ip_address,
    input  logic [                31:0]           ip_mask,
    input  logic [                31:0]           ip_gateway,
    input  logic [                31:0]           peer_ip,
    input  logic [         STREAMS-1:0][    15:0] peer_port,
    input  logic [         STREAMS-1:0][    15:0] local_port,
    input  logic [                13:0]           mtu,
    input  logic                                  push,
    input  logic [                31:0]           first_sequence,
    // frames to the MAC
    input  logic                                  tx_clk,
    input  logic                                  tx_rst,
    output logic [           WIDTH-1:0]           m_axis_tdata,
    output logic [         WIDTH/8-1:0]           m_axis_tkeep,
    output logic                                  m_axis_tvalid,
    input  logic                                  m_axis_tready,
    output logic                                  m_axis_tlast,
    output logic                                  m_axis_tuser,
    output logic                                  status_path,
    output logic [         STREAMS-1:0]           status_connected,
    output logic [         STREAMS-1:0]           status_active,
    output logic [         STREAMS-1:0][    31:0] status_sent,
    output logic [         STREAMS-1:0][    31:0] status_retransmitted,
    output logic [         STREAMS-1:0][    31:0] status_fast,
    output logic [         STREAMS-1:0][    31:0] status_timeouts,
    output logic [         STREAMS-1:0][    31:0] status_probes,
    output logic [         STREAMS-1:0][    31:0] status_resets,
    output logic [         STREAMS-1:0][    31:0] status_unacceptable,
    output logic [         STREAMS-1:0][    23:0] status_timeout,
    output logic [         STREAMS-1:0][    29:0] status_window,
    output logic [                15:0]           status_drop_port,
    // frames from the MAC
    input  logic                                  rx_clk,
    input  logic                                  rx_rst,
    input  logic [           WIDTH-1:0]           s_mac_tdata,
    input  logic [         WIDTH/8-1:0]           s_mac_tkeep,
    input  logic                                  s_mac_tvalid,
    input  logic                                  s_mac_tlast,
    input  logic                                  s_mac_tuser,
    output logic [                15:0]           status_drop_destination,
    output logic [                15:0]           status_drop_protocol,
    output logic [                15:0]           status_drop_fragment,
    output logic [                15:0]           status_drop_checksum,
    output logic [                15:0]           status_drop_short,
    output logic [                15:0]           status_drop_full
);
  localparam int WORD_BITS = $clog2(MTU / 8);

  if (STREAMS < 1 || STREAMS > 4) begin : g_check_streams
    $error("tcp_core: STREAMS must be 1 to 4");
  end
  if (MTU < 576 || MTU > 9000) begin : g_check_mtu
    $error("tcp_core: MTU must be 576 to 9000 bytes");
  end
  if (BITS < 8 || BITS > 27) begin : g_check_buffer
    $error("tcp_core: BITS must be 8 to 27");
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

  localparam int RECORD_BITS = 2 + 48 + 32 + 16 + 16 + 32 + 32 + 8 + 16 + 16 + 16 + 4;
  logic [RECORD_BITS-1:0] rx_record, record;
  logic rx_record_valid, rx_record_ready, record_valid, record_ready, has_scale;
  logic [5:0] drop;
  logic echo_pending, echo_pending_rx;
  logic echo_write_enable, echo_read_enable;
  logic [ECHO_BITS-1:0] echo_write_address, echo_read_address;
  logic [63:0] echo_write_data, echo_read_data;

  tcp_rx #(
      .ECHO_BITS(ECHO_BITS)
  ) rx (
      .clk               (rx_clk),
      .rst               (rx_rst),
      .my_mac            (mac_address),
      .my_ip             (ip_address),
      .s_axis_tdata      (rx_tdata),
      .s_axis_tkeep      (rx_tkeep),
      .s_axis_tvalid     (rx_tvalid),
      .s_axis_tlast      (rx_tlast),
      .s_axis_tuser      (rx_tuser),
      .record_kind       (rx_record[237:236]),
      .record_mac        (rx_record[235:188]),
      .record_ip         (rx_record[187:156]),
      .record_source_port(rx_record[155:140]),
      .record_port       (rx_record[139:124]),
      .record_sequence   (rx_record[123:92]),
      .record_ack        (rx_record[91:60]),
      .record_flags      (rx_record[59:52]),
      .record_window     (rx_record[51:36]),
      .record_length     (rx_record[35:20]),
      .record_mss        (rx_record[19:4]),
      .record_scale      (rx_record[3:0]),
      .record_has_scale  (has_scale),
      .record_valid      (rx_record_valid),
      .record_ready      (rx_record_ready),
      .echo_busy         (echo_pending_rx),
      .echo_write_enable (echo_write_enable),
      .echo_write_address(echo_write_address),
      .echo_write_data   (echo_write_data),
      .drop_destination  (drop[0]),
      .drop_protocol     (drop[1]),
      .drop_fragment     (drop[2]),
      .drop_checksum     (drop[3]),
      .drop_short        (drop[4]),
      .drop_full         (drop[5])
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
  assign status_drop_protocol = drop_count[1];
  assign status_drop_fragment = drop_count[2];
  assign status_drop_checksum = drop_count[3];
  assign status_drop_short = drop_count[4];
  assign status_drop_full = drop_count[5];

  async_fifo #(
      .WIDTH(RECORD_BITS),
      .DEPTH(16)
  ) command_fifo (
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

  packet_memory #(
      .ADDRESS_BITS(ECHO_BITS)
  ) echo_memory (
      .write_clk    (rx_clk),
      .write_enable (echo_write_enable),
      .write_address(echo_write_address),
      .write_data   (echo_write_data),
      .read_clk     (tx_clk),
      .read_enable  (echo_read_enable),
      .read_address (echo_read_address),
      .read_data    (echo_read_data)
  );
  sync_bits sync_echo (
      .clk(rx_clk),
      .d  (echo_pending),
      .q  (echo_pending_rx)
  );

  // ---- records -------------------------------------------------------------------------------
  logic [ 1:0] kind;
  logic [47:0] from_mac;
  logic [31:0] from_ip, segment_sequence, segment_ack;
  logic [15:0] from_port, to_port, segment_window, segment_length, segment_mss;
  logic [7:0] segment_flags;
  logic [3:0] segment_scale;
  assign {kind, from_mac, from_ip, from_port, to_port, segment_sequence, segment_ack, segment_flags,
          segment_window, segment_length, segment_mss, segment_scale} = record;

  logic take, is_arp, reply_pending, arp_take, echo_take, learn;
  logic [47:0] reply_mac, echo_mac;
  logic [31:0] reply_ip, echo_ip;
  logic [15:0] echo_bytes;
  // A reply that waits must not be overwritten.
  assign record_ready = !(kind == tcp_pkg::RECORD_ARP_REQUEST && reply_pending);
  assign take = record_valid && record_ready;
  assign is_arp = kind == tcp_pkg::RECORD_ARP_REQUEST || kind == tcp_pkg::RECORD_ARP_REPLY;
  assign learn = take && is_arp;

  logic [3:0] echo_hold;  // until the receive side has seen it rise
  always_ff @(posedge tx_clk) begin
    if (arp_take) reply_pending <= 1'b0;
    if (take && kind == tcp_pkg::RECORD_ARP_REQUEST) begin
      reply_pending <= 1'b1;
      {reply_mac, reply_ip} <= {from_mac, from_ip};
    end
    if (echo_hold != '0) echo_hold <= echo_hold - 4'd1;
    if (take && kind == tcp_pkg::RECORD_ECHO) begin
      echo_pending <= 1'b1;
      echo_hold <= '1;
      {echo_mac, echo_ip, echo_bytes} <= {from_mac, from_ip, segment_length};
    end else if (echo_take) echo_pending <= 1'b0;
    if (tx_rst) {reply_pending, echo_pending, echo_hold} <= '0;
  end

  // ---- time, path ----------------------------------------------------------------------------
  localparam int TICK_BITS = $clog2(TICK_CLOCKS + 1);
  logic [TICK_BITS-1:0] clocks;
  logic tick, request_valid, arp_request_take;
  logic [31:0] next_hop;
  logic [47:0] peer_mac;
  logic [STREAMS-1:0] active, forget;
  always_ff @(posedge tx_clk) begin
    tick   <= clocks == '0;
    clocks <= clocks == '0 ? TICK_BITS'(TICK_CLOCKS - 1) : clocks - 1'b1;
    if (tx_rst) clocks <= '0;
  end
  assign next_hop = net_pkg::next_hop(peer_ip, ip_address, ip_mask, ip_gateway);

  tcp_arp #(
      .RETRY(RETRY)
  ) arp (
      .clk          (tx_clk),
      .rst          (tx_rst),
      .tick         (tick),
      .wanted       (active != '0),
      .forget       (forget != '0),
      .next_hop     (next_hop),
      .learn_valid  (learn),
      .learn_ip     (from_ip),
      .learn_mac    (from_mac),
      .known        (status_path),
      .address      (peer_mac),
      .request_valid(request_valid),
      .request_take (arp_request_take)
  );
  assign arp_request_take = arp_take && !reply_pending;

  // ---- streams -------------------------------------------------------------------------------
  logic [12:0] mtu_words;
  assign mtu_words = 13'(((mtu < 14'(MTU) ? mtu : 14'(MTU)) - 14'(tcp_pkg::IP_TCP_BYTES)) >> 3);

  logic [STREAMS-1:0] send_valid, send_take, mine, accept, accepting;
  logic [STREAMS-1:0][31:0] send_sequence, send_ack;
  logic [STREAMS-1:0][ 7:0] send_flags;
  logic [STREAMS-1:0][12:0] send_words;
  logic [STREAMS-1:0][15:0] port;
  logic [STREAMS-1:0][ 3:0] attempt;

  for (genvar i = 0; i < STREAMS; i++) begin : g_stream
    logic [BITS:0] head, head_gray, head_gray_tx, tail_gray, mark_in, mark;
    logic [BITS:0] head_gray_later;
    logic mark_in_valid, mark_in_ready, mark_valid, mark_take;
    logic [6:0] pulse;
    logic [7*32-1:0] count;

    tcp_writer #(
        .BITS(BITS)
    ) writer (
        .clk          (user_clk),
        .rst          (user_rst),
        .s_axis_tdata (s_axis_tdata[i]),
        .s_axis_tvalid(s_axis_tvalid[i]),
        .s_axis_tready(s_axis_tready[i]),
        .s_axis_tlast (s_axis_tlast[i]),
        .push         (push && BLOCKS != 0),
        .mark_valid   (mark_in_valid),
        .mark_ready   (mark_in_ready),
        .mark         (mark_in),
        .write_valid  (write_valid[i]),
        .write_ready  (write_ready[i]),
        .write_address(write_address[i]),
        .write_data   (write_data[i]),
        .accept       (accept[i]),
        .accepting    (user_running[i]),
        .tail_gray    (tail_gray),
        .head_gray    (head_gray)
    );
    sync_bits #(
        .WIDTH(BITS + 2)
    ) sync_writer (
        .clk(tx_clk),
        .d  ({user_running[i], head_gray}),
        .q  ({accepting[i], head_gray_tx})
    );
    gray_to_binary #(
        .WIDTH(BITS + 1)
    ) head_binary (
        .gray  (BLOCKS != 0 ? head_gray_later : head_gray_tx),
        .binary(head)
    );
    // The end of a block must be seen before its last word.
    always_ff @(posedge tx_clk) head_gray_later <= head_gray_tx;
    if (BLOCKS != 0) begin : g_blocks
      async_fifo #(
          .WIDTH(BITS + 1),
          .DEPTH(BLOCKS)
      ) marks (
          .s_clk  (user_clk),
          .s_rst  (user_rst),
          .s_data (mark_in),
          .s_valid(mark_in_valid),
          .s_ready(mark_in_ready),
          .m_clk  (tx_clk),
          .m_rst  (tx_rst),
          .m_data (mark),
          .m_valid(mark_valid),
          .m_ready(mark_take)
      );
    end else begin : g_no_blocks
      assign {mark_in_ready, mark_valid, mark} = '0;
      logic unused;
      assign unused = &{1'b0, mark_in, mark_in_valid, mark_take};
    end

    // Another port for each attempt, so that old segments belong to nobody.
    assign port[i] = local_port[i] + {8'd0, attempt[i], 4'd0};
    assign mine[i] = from_ip == peer_ip && from_port == peer_port[i] && to_port == port[i];

    tcp_engine #(
        .BITS        (BITS),
        .TIMEOUT_MIN (TIMEOUT_MIN),
        .TIMEOUT_INIT(TIMEOUT_INIT),
        .TIMEOUT_MAX (TIMEOUT_MAX),
        .RETRY       (RETRY)
    ) engine (
        .clk               (tx_clk),
        .rst               (tx_rst),
        .tick              (tick),
        .enable            (enable[i]),
        .path              (status_path),
        .forget_path       (forget[i]),
        .first_sequence    (first_sequence << (BITS + 4)),
        .mtu_words         (mtu_words),
        .attempt           (attempt[i]),
        .accept            (accept[i]),
        .accepting         (accepting[i]),
        .head              (head),
        .push              (push && BLOCKS != 0),
        .mark_valid        (mark_valid),
        .mark              (mark),
        .mark_take         (mark_take),
        .tail_gray         (tail_gray),
        .segment_valid     (take && kind == tcp_pkg::RECORD_SEGMENT && mine[i]),
        .segment_sequence  (segment_sequence),
        .segment_ack       (segment_ack),
        .segment_flags     (segment_flags),
        .segment_window    (segment_window),
        .segment_length    (segment_length),
        .segment_mss       (segment_mss),
        .segment_scale     (segment_scale),
        .send_valid        (send_valid[i]),
        .send_sequence     (send_sequence[i]),
        .send_ack          (send_ack[i]),
        .send_flags        (send_flags[i]),
        .send_words        (send_words[i]),
        .send_take         (send_take[i]),
        .connected         (status_connected[i]),
        .active            (active[i]),
        .timeout           (status_timeout[i]),
        .window            (status_window[i]),
        .event_sent        (pulse[0]),
        .event_again       (pulse[1]),
        .event_fast        (pulse[2]),
        .event_timeout     (pulse[3]),
        .event_probe       (pulse[4]),
        .event_reset       (pulse[5]),
        .event_unacceptable(pulse[6])
    );
    event_counters #(
        .EVENTS(7),
        .WIDTH (32)
    ) counters (
        .clk  (tx_clk),
        .clear(tx_rst),
        .pulse(pulse),
        .count(count)
    );
    assign status_sent[i] = count[0*32+:32];
    assign status_retransmitted[i] = count[1*32+:32];
    assign status_fast[i] = count[2*32+:32];
    assign status_timeouts[i] = count[3*32+:32];
    assign status_probes[i] = count[4*32+:32];
    assign status_resets[i] = count[5*32+:32];
    assign status_unacceptable[i] = count[6*32+:32];
  end
  assign status_active = active;

  event_counter #(
      .WIDTH(16)
  ) port_counter (
      .clk  (tx_clk),
      .clear(tx_rst),
      .pulse(take && kind == tcp_pkg::RECORD_SEGMENT && mine == '0),
      .count(status_drop_port)
  );

  // The streams take turns.
  logic [STREAM_BITS-1:0] turn, chosen;
  logic builder_take;
  always_comb begin
    chosen = turn;
    for (int i = STREAMS - 1; i >= 0; i--)
    if (send_valid[i] && STREAM_BITS'(i) < turn) chosen = STREAM_BITS'(i);
    for (int i = STREAMS - 1; i >= 0; i--)
    if (send_valid[i] && STREAM_BITS'(i) >= turn) chosen = STREAM_BITS'(i);
  end
  always_comb begin
    send_take = '0;
    send_take[chosen] = builder_take;
  end
  always_ff @(posedge tx_clk) begin
    if (builder_take) turn <= 32'(chosen) == STREAMS - 1 ? '0 : chosen + 1'b1;
    if (tx_rst) turn <= '0;
  end

  // ---- transmit side -------------------------------------------------------------------------
  logic store_enable, store_read_enable, segment_ready, segment_done;
  logic [WORD_BITS:0] store_address, store_read_address, segment_start;
  logic [63:0] store_data, store_read_data;
  logic [ 12:0] ready_words;
  logic [319:0] segment_header;

  tcp_segmenter #(
      .STREAMS  (STREAMS),
      .BITS     (BITS),
      .WORD_BITS(WORD_BITS)
  ) builder (
      .clk              (tx_clk),
      .rst              (tx_rst),
      .my_ip            (ip_address),
      .peer_ip          (peer_ip),
      .mss              ({mtu_words, 3'b000}),
      .request_valid    (send_valid != '0),
      .request_take     (builder_take),
      .request_stream   (chosen),
      .request_port     (port[chosen]),
      .request_peer_port(peer_port[chosen]),
      .request_sequence (send_sequence[chosen]),
      .request_ack      (send_ack[chosen]),
      .request_flags    (send_flags[chosen]),
      .request_words    (send_words[chosen]),
      .fetch_valid      (fetch_valid),
      .fetch_ready      (fetch_ready),
      .fetch_address    (fetch_address),
      .fetched_valid    (fetched_valid),
      .fetched_data     (fetched_data),
      .store_enable     (store_enable),
      .store_address    (store_address),
      .store_data       (store_data),
      .segment_valid    (segment_ready),
      .segment_done     (segment_done),
      .segment_start    (segment_start),
      .segment_words    (ready_words),
      .segment_header   (segment_header)
  );

  packet_memory #(
      .ADDRESS_BITS(WORD_BITS + 1)
  ) segment_memory (
      .write_clk    (tx_clk),
      .write_enable (store_enable),
      .write_address(store_address),
      .write_data   (store_data),
      .read_clk     (tx_clk),
      .read_enable  (store_read_enable),
      .read_address (store_read_address),
      .read_data    (store_read_data)
  );

  tcp_tx #(
      .WORD_BITS(WORD_BITS),
      .ECHO_BITS(ECHO_BITS)
  ) tx (
      .clk               (tx_clk),
      .rst               (tx_rst),
      .my_mac            (mac_address),
      .my_ip             (ip_address),
      .peer_mac          (peer_mac),
      .arp_valid         (reply_pending || request_valid),
      .arp_is_reply      (reply_pending),
      .arp_mac           (reply_mac),
      .arp_ip            (reply_pending ? reply_ip : next_hop),
      .arp_take          (arp_take),
      .echo_valid        (echo_pending && echo_hold == '0),
      .echo_mac          (echo_mac),
      .echo_ip           (echo_ip),
      .echo_bytes        (echo_bytes),
      .echo_take         (echo_take),
      .echo_read_address (echo_read_address),
      .echo_read_enable  (echo_read_enable),
      .echo_read_data    (echo_read_data),
      .segment_valid     (segment_ready),
      .segment_done      (segment_done),
      .segment_start     (segment_start),
      .segment_words     (ready_words),
      .segment_header    (segment_header),
      .store_read_enable (store_read_enable),
      .store_read_address(store_read_address),
      .store_read_data   (store_read_data),
      .m_axis_tdata      (tx_tdata),
      .m_axis_tkeep      (tx_tkeep),
      .m_axis_tvalid     (tx_tvalid),
      .m_axis_tready     (tx_tready),
      .m_axis_tlast      (tx_tlast)
  );

  logic unused;
  assign unused = &{1'b0, has_scale};
endmodule
