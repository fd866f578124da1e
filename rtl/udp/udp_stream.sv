// SPDX-License-Identifier: Apache-2.0
//
// Stream port: divides the user's words into datagrams with a counter, and sends them at the rate of the line.
//
//                  +------------+
//   s_axis_* =====>|            |====> request, length, sum, start, data (to the UDP layer)
//   running <------| udp_stream |<---- enable, path, payload
//                  +------------+
//         user_clk                tx_clk
//
// A datagram has `payload` bytes (16 to PAYLOAD_MAX, a multiple of 4): a header, the words, filler. tlast ends a datagram
// with the length of its words. SLOTS datagrams are buffered. While all slots are full, or `path` is low, tready is low:
// the source waits, nothing is dropped here. After the last word of a datagram tready is low for four clocks, less than its
// headers take on the wire.
//
// `sum` is the sum of the 16-bit words of the datagram; it is ready five clocks after the request. When `enable` falls,
// accepted words are sent, then END_REPEAT times a datagram without words that contains the number of datagrams (FLAG_END).
// A new run begins with the next `enable`, its counter at 0.
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
  localparam logic [15:0] FILLER_SUM = 16'h4B4B;  // of two of its 16-bit words

  if (PAYLOAD_MAX < 16 || PAYLOAD_MAX > 8972 || PAYLOAD_MAX % 4 != 0) begin : g_check_payload
    $error("udp_stream: PAYLOAD_MAX must be 16 to 8972, a multiple of 4");
  end
  if (SLOTS < 2 || SLOTS != 2 ** SLOT_BITS) begin : g_check_slots
    $error("udp_stream: SLOTS must be a power of two and at least 2");
  end

  // ---- user side -----------------------------------------------------------------------------
  logic [WORD_BITS-1:0] index, index_next, last_index;
  logic [SLOT_BITS:0] head, tail_here, tail_gray, tail_gray_here, tail;
  logic taken, full, close, close_end, begun, is_last, was_running, end_due, room, ready, push;
  logic [4:1] closing;  // clocks since the datagram's last word
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
  assign taken = s_axis_tvalid && s_axis_tready;
  assign index_next = index + WORD_BITS'(taken);
  // The end of the run closes what was begun; then comes its own datagram.
  assign close = (taken && (s_axis_tlast || is_last)) || (close_end && begun);
  assign close_end = end_due && !s_axis_tready && closing == '0;
  assign push = closing[4] || (close_end && !begun);
  always_ff @(posedge user_clk) begin
    was_running <= running;
    if (running && !was_running)
      last_index <= WORD_BITS'((payload - 14'(udp_pkg::STREAM_HEADER_BYTES + 8)) >> 3);
    room <= head - tail_here != (SLOT_BITS + 1)'(SLOTS);
    s_axis_tready <= running && was_running && !end_due && room && !close && closing[3:1] == '0 && (!closing[4] || ready);
    if (was_running && !running) end_due <= 1'b1;
    else if (close_end && !begun && ready) end_due <= 1'b0;
    closing <= {closing[3] || (closing[4] && !ready), closing[2:1], close};
    index   <= index_next;
    is_last <= index_next == last_index;
    if (taken) begun <= 1'b1;
    if (close) full <= taken && is_last;
    if (close) head <= head + 1'b1;
    if (closing[4] && ready) begin
      index   <= '0;
      begun   <= 1'b0;
      is_last <= last_index == '0;
    end
    if (user_rst) begin
      {was_running, s_axis_tready, end_due, closing, begun} <= '0;
      {index, head} <= '0;
    end
  end

  // The sum of the words, and one for each: the header tells their number. Its last carry is added with the filler.
  logic [3:0][15:0] halves;
  logic [1:0][16:0] pairs;
  logic [17:0] part;
  logic [31:0] sum_here;
  logic [16:0] folded;
  logic counts;
  for (genvar i = 0; i < 4; i++) begin : g_half
    assign halves[i] = {s_axis_tdata[i*16+:8], s_axis_tdata[i*16+8+:8]};
  end
  always_ff @(posedge user_clk) begin
    counts   <= taken;
    pairs[0] <= {1'b0, halves[0]} + {1'b0, halves[1]};
    pairs[1] <= {1'b0, halves[2]} + {1'b0, halves[3]};
    if (!taken) pairs <= '0;
    part <= {1'b0, pairs[0]} + {1'b0, pairs[1]} + 18'(counts);
    sum_here <= sum_here + 32'(part);
    folded <= {1'b0, sum_here[31:16]} + {1'b0, sum_here[15:0]};
    if (user_rst || (closing[4] && ready)) {sum_here, folded} <= '0;
  end

  logic described, described_take, is_end, is_full;
  logic [WORD_BITS-1:0] words;
  logic [15:0] words_sum;
  logic carry;
  async_fifo #(
      .WIDTH(2 + WORD_BITS + 17),
      .DEPTH(SLOTS < 4 ? 8 : 2 * SLOTS)
  ) descriptors (
      .s_clk  (user_clk),
      .s_rst  (user_rst),
      .s_data ({!closing[4], full && closing[4], index, folded}),
      .s_valid(push),
      .s_ready(ready),
      .m_clk  (tx_clk),
      .m_rst  (tx_rst),
      .m_data ({is_end, is_full, words, carry, words_sum}),
      .m_valid(described),
      .m_ready(described_take)
  );

  // ---- transmit side -------------------------------------------------------------------------
  typedef enum logic [1:0] {
    IDLE,
    REQUEST,
    HEADER,
    PAUSE
  } state_t;
  state_t state;

  logic in_data;
  logic [31:0] counter;
  logic [2:0] repeats;
  logic client_start, has_filler, last_end;
  logic [WIDTH-1:0] client_data;
  logic [63:0] header;
  assign header = {counter, 16'(words), run, is_end ? udp_pkg::FLAG_END : 8'd0};
  assign request = state == REQUEST;
  assign active = described || in_data;
  assign last_end = is_end && repeats == 3'(END_REPEAT - 1);
  assign described_take = client_start && (!is_end || last_end);
  assign event_sent = client_start && !is_end;
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
    case (state)
      IDLE:
      if (described && path) begin
        state <= REQUEST;
        has_filler <= is_full && payload[2];
        length <= is_full ? payload : {11'(words) + 11'd1, 3'b000};
      end
      REQUEST: if (start) state <= HEADER;
      PAUSE:   if (tick_ms) state <= IDLE;
      default: ;
    endcase
    if (client_start) state <= is_end && !last_end ? PAUSE : IDLE;
    if (event_sent) counter <= counter + 32'd1;
    if (client_start && is_end) repeats <= repeats + 3'd1;
    if (client_start && last_end) begin
      {counter, repeats} <= '0;
      last_count <= counter;
      run <= run + 8'd1;
    end
    if (tx_rst) begin
      state <= IDLE;
      {counter, run, repeats, last_count} <= '0;
    end
  end

  // The sum of the datagram: what does not depend on its words is summed before they are there.
  localparam int SUM_DONE = 6;
  logic [SUM_DONE:0] summed;  // how far it is, one bit
  logic [15:0] term;
  logic adds, anew;
  always_comb begin
    term = '0;
    if (summed[0]) term |= counter[31:16];
    if (summed[1]) term |= counter[15:0];
    if (summed[2]) term |= {run, 8'd0};
    if (summed[3]) term |= words_sum;
    if (summed[4])
      term |= is_end ? 16'(udp_pkg::FLAG_END) : has_filler ? (carry ? FILLER_SUM + 16'd1 : FILLER_SUM) : 16'(carry);
  end
  assign adds = !summed[SUM_DONE] && !(summed[3] && !request);
  assign anew = tx_rst || client_start;
  ones_add checksum_sum (
      .clk (tx_clk),
      .load(anew),
      .seed('0),
      .add (adds),
      .term(term),
      .sum (sum)
  );
  always_ff @(posedge tx_clk) begin
    if (adds) summed <= summed << 1;
    if (anew) summed <= (SUM_DONE + 1)'(1);
  end

  // ---- words ---------------------------------------------------------------------------------
  // Words are read two clocks before they go.
  localparam int AT_BITS = WORD_BITS + (WIDTH == 8 ? 3 : 0);  // of a place in the datagram's data
  logic [AT_BITS-1:0] fetch, fetched;
  logic [WORD_BITS-1:0] words_here;
  logic ends;
  logic [WORD_BITS-1:0] read_word;
  logic [63:0] stored;
  packet_memory #(
      .ADDRESS_BITS(SLOT_BITS + WORD_BITS),
      .READ_CLOCKS (2)
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
  if (WIDTH == 8) begin : g_bytes
    logic [2:0] lane;
    always_ff @(posedge tx_clk) lane <= client_start ? '0 : lane + 3'd1;
    assign read_word   = fetch[AT_BITS-1:3];
    assign ends        = fetched == {words_here, 3'b000};
    assign client_data = in_data ? stored[lane*8+:8] : udp_pkg::FILLER;
  end else begin : g_words
    // Before it begins the first word is read, and then the second one, which waits behind the memory.
    logic [2:0] read_first;  // clocks since then
    logic [WIDTH-1:0] first_word;
    logic is_first;
    assign read_word   = in_data ? fetch : WORD_BITS'(read_first[0]);
    assign ends        = fetched == words_here;
    assign client_data = !in_data ? {BYTES{udp_pkg::FILLER}} : is_first ? first_word : stored;
    always_ff @(posedge tx_clk) begin
      read_first <= {read_first[1:0], described} & {3{!in_data}};
      if (read_first[1] && !read_first[2]) first_word <= stored;
      is_first <= client_start;
    end
  end
  always_ff @(posedge tx_clk) begin
    tail_gray <= tail ^ (tail >> 1);
    fetch <= fetch + 1'b1;
    fetched <= fetch;
    if (!in_data || ends) begin
      in_data <= 1'b0;
      fetch   <= '0;
    end
    if (in_data && ends) tail <= tail + 1'b1;
    if (client_start) begin
      in_data <= words != '0;
      words_here <= words;
      fetch <= AT_BITS'(2);
      fetched <= AT_BITS'(1);
    end
    if (tx_rst) {in_data, tail} <= '0;
  end
endmodule
`default_nettype wire
