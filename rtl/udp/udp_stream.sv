// SPDX-License-Identifier: Apache-2.0
//
// Stream port: cuts the user's words into datagrams with a counter, and sends them as fast as the line goes.
//
//                  +------------+
//   s_axis_* =====>|            |====> request, length, sum, start, data (to the UDP layer)
//   running <------| udp_stream |<---- enable, path, payload
//                  +------------+
//         user_clk                tx_clk
//
// A datagram is `payload` bytes (16 to PAYLOAD_MAX, a multiple of 4): a header, the words, filler; one that
// tlast ends is as long as its words. Without a frame of its own there is no gap: SLOTS datagrams are buffered,
// and while all are full, or `path` is low, tready is low: the source waits, nothing is dropped here.
//
// When `enable` falls, what was taken is sent, then END_REPEAT times a datagram without words that
// tells how many there were (FLAG_END). A new run begins with the next `enable`, its counter at 0.
`default_nettype none
module udp_stream #(
    parameter int WIDTH = 8,
    parameter int PAYLOAD_MAX = 8972,
    parameter int SLOTS = 2,
    parameter int END_REPEAT = 4
) (
    input  logic             user_clk,
    input  logic             user_rst,
    input  logic [     63:0] s_axis_tdata,
    input  logic             s_axis_tvalid,
    output logic             s_axis_tready,
    input  logic             s_axis_tlast,
    output logic             running,
    input  logic             tx_clk,
    input  logic             tx_rst,
    input  logic             tick_ms,
    input  logic             enable,
    input  logic             path,           // the next hop is known
    input  logic [     13:0] payload,        // stays still while enabled
    output logic             active,         // there is something to send
    output logic             request,
    output logic [     13:0] length,
    output logic [     15:0] sum,
    input  logic             start,
    output logic [WIDTH-1:0] data,
    output logic             event_sent,
    output logic [      7:0] run,
    output logic [     31:0] last_count      // datagrams of the run before
);
  localparam int WORDS_MAX = (PAYLOAD_MAX - udp_pkg::STREAM_HEADER_BYTES) / 8;
  localparam int WORD_BITS = $clog2(WORDS_MAX + 1);
  localparam int SLOT_BITS = $clog2(SLOTS);
  localparam int BYTES = WIDTH / 8;

  if (PAYLOAD_MAX < 16 || PAYLOAD_MAX > 8972 || PAYLOAD_MAX % 4 != 0) begin : g_check_payload
    $error("udp_stream: PAYLOAD_MAX must be 16 to 8972, a multiple of 4");
  end
  if (SLOTS < 2 || SLOTS != 2 ** SLOT_BITS) begin : g_check_slots
    $error("udp_stream: SLOTS must be a power of two and at least 2");
  end

  // ---- user side -----------------------------------------------------------------------------
  logic [WORD_BITS-1:0] index, words_now, words_full;
  logic [SLOT_BITS:0] head, tail_here, tail_gray, tail_gray_here, tail;
  logic [31:0] fill_sum, fill_sum_next, closing_sum;
  logic [WORD_BITS-1:0] closing_words;
  logic taken, close, closing, closing_end, was_running, ready, room;
  sync_bits sync_enable (
      .clk(user_clk),
      .d  (enable),
      .q  (running)
  );
  sync_bits #(
      .WIDTH(SLOT_BITS + 1)
  ) sync_tail (
      .clk(user_clk),
      .d  (tail_gray),
      .q  (tail_gray_here)
  );
  gray_to_binary #(
      .WIDTH(SLOT_BITS + 1)
  ) tail_binary (
      .gray  (tail_gray_here),
      .binary(tail_here)
  );
  assign room = head - tail_here != (SLOT_BITS + 1)'(SLOTS);
  assign s_axis_tready = running && was_running && room && ready;
  assign taken = s_axis_tvalid && s_axis_tready;
  assign words_now = index + WORD_BITS'(taken);
  // The end of the run closes what was begun.
  assign close = (taken && (s_axis_tlast || words_now == words_full)) || (!running && index != '0);
  always_comb begin
    fill_sum_next = fill_sum;
    for (int i = 0; i < 8; i += 2)
    if (taken) fill_sum_next += {16'd0, s_axis_tdata[i*8+:8], s_axis_tdata[i*8+8+:8]};
  end
  always_ff @(posedge user_clk) begin
    was_running <= running;
    if (running && !was_running)
      words_full <= WORD_BITS'((payload - 14'(udp_pkg::STREAM_HEADER_BYTES)) >> 3);
    index <= close ? '0 : words_now;
    fill_sum <= close ? '0 : fill_sum_next;
    closing <= close;
    closing_end <= was_running && !running;
    if (close) begin
      closing_sum <= fill_sum_next;
      closing_words <= words_now;
      head <= head + 1'b1;
    end
    if (user_rst) begin
      {was_running, closing, closing_end} <= '0;
      {index, fill_sum, head} <= '0;
    end
  end

  // The end of a run follows its last datagram.
  logic owed_end;
  always_ff @(posedge user_clk) begin
    if (closing_end) owed_end <= 1'b1;
    else if (!closing && ready) owed_end <= 1'b0;
    if (user_rst) owed_end <= 1'b0;
  end

  logic described, described_take, is_end;
  logic [WORD_BITS-1:0] words;
  logic [15:0] words_sum;
  async_fifo #(
      .WIDTH(1 + WORD_BITS + 16),
      .DEPTH(SLOTS < 4 ? 8 : 2 * SLOTS)
  ) descriptors (
      .s_clk(user_clk),
      .s_rst(user_rst),
      .s_data({
        !closing,
        closing ? closing_words : WORD_BITS'(0),
        closing ? net_pkg::fold(closing_sum) : 16'd0
      }),
      .s_valid(closing || owed_end),
      .s_ready(ready),
      .m_clk(tx_clk),
      .m_rst(tx_rst),
      .m_data({is_end, words, words_sum}),
      .m_valid(described),
      .m_ready(described_take)
  );

  // ---- transmit side -------------------------------------------------------------------------
  typedef enum logic [1:0] {
    IDLE,
    SUM,
    REQUEST,
    PAUSE
  } state_t;
  state_t state;
  localparam int AT_BITS = WORD_BITS + (WIDTH == 8 ? 3 : 0);  // of a place in the datagram's data

  logic [31:0] counter;
  logic [ 2:0] repeats;
  logic [AT_BITS:0] at, next_at, size, size_now;  // in words of the datapath
  logic client_start, reading, placed, has_slot, over;
  logic [13:0] own_length;
  logic [1:0] filler;
  logic [63:0] stored;
  logic [WIDTH-1:0] client_data;
  logic [63:0] header;
  assign header = {counter, 16'(words), run, is_end ? udp_pkg::FLAG_END : 8'd0};
  assign own_length = 14'(udp_pkg::STREAM_HEADER_BYTES) + {words, 3'b000};
  assign length = payload - own_length < 14'd8 && !is_end ? payload : own_length;
  assign filler = 2'((length - own_length) >> 1);  // 16-bit words
  assign request = state == REQUEST;
  assign active = described || reading;
  assign size = WIDTH == 8 ? (AT_BITS + 1)'({words, 3'b000}) : (AT_BITS + 1)'(words);
  assign over = reading && (placed || client_start) && next_at >= size_now;
  assign described_take = start && (!is_end || repeats == 3'(END_REPEAT - 1));
  assign event_sent = start && !is_end;

  logic [31:0] total;
  assign total = 32'(words_sum) + 32'(header[63:48]) + 32'(header[47:32]) + 32'(header[31:16]) + 32'(header[15:0])
      + 32'(filler) * {16'd0, {2{udp_pkg::FILLER}}};

  logic [WORD_BITS-1:0] read_word;
  packet_memory #(
      .ADDRESS_BITS(SLOT_BITS + WORD_BITS)
  ) datagram_memory (
      .write_clk    (user_clk),
      .write_enable (taken),
      .write_address({head[SLOT_BITS-1:0], index}),
      .write_data   (s_axis_tdata),
      .read_clk     (tx_clk),
      .read_enable  (1'b1),
      .read_address ({tail[SLOT_BITS-1:0], read_word}),
      .read_data    (stored)
  );
  assign next_at = client_start ? '0 : at + 1'b1;
  if (WIDTH == 8) begin : g_bytes
    assign read_word   = next_at[AT_BITS-1:3];
    assign client_data = at < size_now ? stored[at[2:0]*8+:8] : udp_pkg::FILLER;
  end else begin : g_words
    assign read_word   = next_at[AT_BITS-1:0];
    assign client_data = at < size_now ? stored : {BYTES{udp_pkg::FILLER}};
  end

  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(udp_pkg::STREAM_HEADER_BYTES)
  ) stream_header (
      .clk         (tx_clk),
      .rst         (tx_rst),
      .start       (start),
      .header      (header),
      .client_start(client_start),
      .client_data (client_data),
      .data        (data)
  );

  always_ff @(posedge tx_clk) begin
    at <= next_at;
    tail_gray <= tail ^ (tail >> 1);
    // The words of the datagram that was started; the next one is prepared meanwhile.
    if (start) begin
      reading  <= 1'b1;
      has_slot <= !is_end;
      size_now <= size;
      placed   <= client_start;
    end else begin
      if (client_start) placed <= 1'b1;
      if (over) begin
        reading <= 1'b0;
        tail <= tail + (SLOT_BITS + 1)'(has_slot);
      end
    end
    case (state)
      IDLE:    if (described && path) state <= SUM;
      SUM: begin
        sum   <= net_pkg::fold(total);
        state <= REQUEST;
      end
      REQUEST:
      if (start) begin
        state   <= described_take ? IDLE : PAUSE;
        counter <= counter + 32'd1;
        if (is_end) begin
          counter <= described_take ? '0 : counter;
          if (described_take) last_count <= counter;
          repeats <= described_take ? '0 : repeats + 3'd1;
          run <= run + 8'(described_take);
        end
      end
      default: if (tick_ms) state <= IDLE;
    endcase
    if (tx_rst) begin
      state <= IDLE;
      {tail, counter, run, repeats, reading, last_count} <= '0;
    end
  end
endmodule
`default_nettype wire
