// SPDX-License-Identifier: Apache-2.0
//
// FADE link core (docs/protocol; paper figure 3): FADE-10G, or FADE v1 with PROTOCOL = 1.
//
//                    +-------------------------------------------------+
//   s_axis =========>| fade_buffer -------------> engine: sender       |====> m_axis (to the MAC)
//                    |                              ^                  |
//   m_cmd, s_rsp <==>|                    descriptor manager, commands |
//                    |                              ^                  |
//   status_* <======>| link_shell                receiver              |<==== s_mac (from the MAC)
//                    +-------------------------------------------------+
//        user_clk                    tx_clk                  rx_clk
//
// The protocol is an engine between the shell and the buffer: fade10g_engine, with packets of 8192 bytes, PACKETS of
// 16, 32 or 64 (any power of two from 4), or fade1_engine, with sets of 32 packets of 1024 bytes. FADE v1 has no user
// commands (responses are accepted and ignored), no frame sequence numbers, no early retransmissions and no busy state; the
// signals for these are never active.
//
// The three clocks are unrelated; `rst` may come from any. first_packet (FADE v1: its lower 16 bits are the set) and
// first_sequence are the numbers a transmission begins with: zero but in tests of their wrap. Settings stand still
// while a transmission runs.
//
// status: in tx_clk; RESET clears the error and, as every START, the delay. status_drops: in rx_clk, frames that were
// dropped by first reason (fade_pkg). STATUS adds what reads them from the user side (see link_shell), and counters of
// the MAC.
`default_nettype none
module fade_core #(
    parameter int PROTOCOL = 10,  // 10: FADE-10G; 1: FADE v1
    parameter int WIDTH = 64,
    parameter int PACKETS = 32,  // packets in the buffer, a power of two from 4; 32 with FADE v1
    parameter int TICK_MIN = 256,  // shortest tick, in clocks; a packet is overdue after two
    parameter int TICK_INIT = PROTOCOL == 1 ? 32768 : 65536,  // first tick, in clocks
    parameter int TICK_MAX = 1048576,  // longest tick, in clocks
    parameter int PERIOD = 256,
    parameter int PAPER_PERIOD = PROTOCOL == 1 ? 10000 : 1024,
    parameter int DELAY_FLOOR = 0,  // least pause after a data frame, in clocks
    parameter int DELAY_CEILING = 1048576,  // longest pause after a data frame, in clocks
    parameter int STATUS = 0,
    parameter int CHECKSUM = 0  // 1: the end of a transmission has a CRC of all its words
) (
    input logic rst,  // resets everything; from any clock
    // settings
    input logic [47:0] mac_address,  // of this board
    input logic [31:0] first_packet,  // number of the first packet; FADE v1: of the set (16 bits)
    input logic [15:0] first_sequence,  // number of the first frame
    input logic paper_rule,
    // user side
    input logic user_clk,
    output logic user_rst,
    input link_pkg::words_t s_axis,  // words to send; tlast ends a packet early
    output logic s_axis_tready,
    output link_pkg::command_t m_cmd,  // user command
    input logic m_cmd_ready,  // the command is taken
    input link_pkg::response_t s_rsp,  // answer to the command
    output logic s_rsp_ready,  // the answer is taken
    output logic user_running,  // a transmission runs: words are taken
    output logic user_clear,  // RESET from the computer: the current command is to be forgotten
    input logic [5:0] status_index,
    input logic status_request,
    output logic status_accepted,
    output logic [31:0] status_value,
    output logic status_valid,
    // frames to the MAC
    input logic tx_clk,
    output logic tx_rst,
    output link_pkg::frame_t m_axis,
    input logic m_axis_tready,
    output fade_pkg::status_t status,  // counters and state, see fade_pkg
    // frames from the MAC
    input logic rx_clk,
    output logic rx_rst,
    input link_pkg::frame_t s_mac,
    input link_pkg::mac_stat_t mac_stat,
    output logic [fade_pkg::DROPS*16-1:0] status_drops  // dropped frames by first reason (fade_pkg)
);
  localparam int SLOT_BITS = $clog2(PACKETS);
  localparam int WORD_BITS = PROTOCOL == 1 ? fade1_pkg::WORD_BITS : fade10g_pkg::WORD_BITS;
  // A MAC of 8 bits takes a word in eight clocks: time for a register behind each block RAM, which slow devices need.
  localparam int READ_CLOCKS = WIDTH == 8 ? 2 : 1;
  localparam int WIRE_BYTES = PROTOCOL == 1 ? fade1_pkg::DATA_WIRE_BYTES : fade10g_pkg::DATA_WIRE_BYTES;

  if (PACKETS < 4 || PACKETS != 2 ** SLOT_BITS) begin : g_check_packets
    $error("fade_core: PACKETS must be a power of two and at least 4");
  end
  if (PROTOCOL == 1 && PACKETS != fade1_pkg::SET_PACKETS) begin : g_check_set
    $error("fade_core: PACKETS must be 32, the packets of a set, with FADE v1");
  end

  // ---- shell ---------------------------------------------------------------------------------
  link_pkg::frame_t rx, tx;
  logic tx_tready;
  logic [fade_pkg::EVENTS-1:0] events;
  logic [fade_pkg::EVENTS-1:0][31:0] count;
  logic [fade_pkg::DROPS-1:0] drop;
  logic tick;
  logic [link_pkg::MAC_STATS*16-1:0] mac_count;

  logic [4:0] tx_index;
  link_shell #(
      .WIDTH    (WIDTH),
      .TX_EVENTS(fade_pkg::EVENTS),
      .TX_LONG  (fade_pkg::LONG_EVENTS),
      .RX_EVENTS(fade_pkg::DROPS),
      .STATUS   (STATUS),
      .VERSION  (PROTOCOL == 1 ? fade1_pkg::CORE_VERSION : fade10g_pkg::CORE_VERSION)
  ) shell (
      .tx_events    (events),
      .tx_count     (count),
      .tx_word      (status[tx_index*32+:32]),
      .tx_word_valid(1'b1),
      .rx_events    (drop),
      .rx_count     (status_drops),
      .*
  );

  // ---- buffer --------------------------------------------------------------------------------
  logic session, stop, closed, writer_active, read_enable;
  logic [SLOT_BITS:0] first_slot, head, tail_gray;
  logic [WORD_BITS-1:0] last_words;
  logic [31:0] words_crc;
  logic [SLOT_BITS+WORD_BITS-1:0] read_address;
  logic [63:0] read_data;

  fade_buffer #(
      .SLOT_BITS  (SLOT_BITS),
      .WORD_BITS  (WORD_BITS),
      .SEND_EMPTY (PROTOCOL != 1),
      .READ_CLOCKS(READ_CLOCKS),
      .CHECKSUM   (CHECKSUM)
  ) buffer (
      .*
  );

  // ---- protocol ------------------------------------------------------------------------------
  logic queued, idle, pausing, clear;
  logic [31:0] delay;

  case (PROTOCOL)
    10: begin : g_fade10g
      fade10g_engine #(
          .SLOT_BITS(SLOT_BITS),
          .READ_CLOCKS(READ_CLOCKS),
          .TICK_MIN(TICK_MIN),
          .TICK_INIT(TICK_INIT),
          .TICK_MAX(TICK_MAX),
          .CHECKSUM(CHECKSUM)
      ) engine (
          .*
      );
    end
    1: begin : g_fade1
      fade1_engine #(
          .READ_CLOCKS(READ_CLOCKS),
          .TICK_MIN(TICK_MIN),
          .TICK_INIT(TICK_INIT),
          .TICK_MAX(TICK_MAX),
          .CHECKSUM(CHECKSUM)
      ) engine (
          .*
      );
    end
    default:
    begin : g_check
      $error("fade_core: PROTOCOL must be 10 or 1");
    end
  endcase

  congestion #(
      .FRAME_CLOCKS(WIRE_BYTES * 8 / WIDTH),
      .PERIOD      (PERIOD),
      .PAPER_PERIOD(PAPER_PERIOD),
      .FLOOR       (DELAY_FLOOR),
      .CEILING     (DELAY_CEILING)
  ) congestion (
      .clk  (tx_clk),
      .rst  (tx_rst),
      .seed (mac_address[14:0]),
      // Of 8 bits, the adapter holds a word: the pause begins when the last one is on its way.
      .idle (idle && (WIDTH != 8 || tx_tready)),
      .sent (events[fade_pkg::EVENT_SENT]),
      .again(events[fade_pkg::EVENT_RETRANSMITTED]),
      .*
  );

  // ---- status --------------------------------------------------------------------------------
  logic error;
  always_ff @(posedge tx_clk) begin
    if (tx_rst || clear) error <= 1'b0;
    else if (events[fade_pkg::EVENT_PROTOCOL_ERROR]) error <= 1'b1;
  end
  assign status = {
    31'd0,
    error,
    31'd0,
    stop,
    31'd0,
    session,
    count[fade_pkg::EVENT_BUSY],
    count[fade_pkg::EVENT_WRONG_SOURCE],
    count[fade_pkg::EVENT_STALE_ACK],
    delay,
    count[fade_pkg::EVENT_PROTOCOL_ERROR],
    count[fade_pkg::EVENT_EARLY],
    count[fade_pkg::EVENT_ACKNOWLEDGED],
    count[fade_pkg::EVENT_RETRANSMITTED],
    count[fade_pkg::EVENT_SENT]
  };

  logic unused;
  assign unused = &{1'b0, tick, mac_count};
endmodule
`default_nettype wire
