// SPDX-License-Identifier: Apache-2.0
//
// PTP messages from the wire with their arrival times, until the machine has read them.
//
//                +-------------+
//   s_* ========>|             |----> pending
//   s_begin ---->| ptp_receive |====> word (of the oldest message), length, arrival
//   now ========>|             |<---- next, index
//                +-------------+
//
// s_begin: the first word of a frame is here; its time is that of the message which the frame may contain. SLOTS messages
// wait, each with its first 128 bytes; drop_full: there was no room. `word` is two clocks behind `index`. length is at most
// 255.
`default_nettype none
module ptp_receive #(
    parameter int WIDTH = 8,
    parameter int SLOTS = 8,
    localparam int STAMP_BITS = 48
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [STAMP_BITS-1:0] now,
    input  logic                  s_begin,
    input  logic [     WIDTH-1:0] s_data,
    input  logic [           3:0] s_count,
    input  logic                  s_valid,
    input  logic                  s_end,
    input  logic                  s_good,
    output logic                  drop_full,
    output logic                  pending,
    input  logic                  next,
    input  logic [           5:0] index,
    output logic [          15:0] word,
    output logic [           7:0] length,
    output logic [STAMP_BITS-1:0] arrival
);
  localparam int SLOT_BITS = $clog2(SLOTS);
  localparam int BUS = WIDTH < 16 ? 16 : WIDTH;
  localparam int LANES = BUS / 16;
  localparam int LANE_BITS = $clog2(LANES);
  localparam int WORD_BITS = 6 - LANE_BITS;  // of a word in its slot

  (* ram_style = "block" *)
  logic [BUS-1:0] words[SLOTS << WORD_BITS];
  (* ram_style = "distributed" *)
  logic [STAMP_BITS-1:0] stamps[SLOTS];
  (* ram_style = "distributed" *)
  logic [7:0] lengths[SLOTS];

  logic [SLOT_BITS:0] write_slot, read_slot;
  logic full, in_message;
  logic [7:0] bytes;  // of the message
  logic [STAMP_BITS-1:0] begun;
  assign full = write_slot == {~read_slot[SLOT_BITS], read_slot[SLOT_BITS-1:0]};
  assign pending = write_slot != read_slot;

  // ---- in ------------------------------------------------------------------------------------
  logic [BUS-1:0] in;
  logic in_valid;
  if (WIDTH == 8) begin : g_bytes
    logic [7:0] high;
    always_ff @(posedge clk) if (s_valid) high <= s_data;
    assign in = {high, s_data};
    assign in_valid = s_valid && bytes[0] && !bytes[7];
  end else begin : g_words
    byte_reverse #(
        .BYTES(BUS / 8)
    ) reverse (
        .field   (s_data),
        .reversed(in)
    );
    assign in_valid = s_valid && !bytes[7];
  end

  logic [8:0] bytes_next;
  assign bytes_next = 9'(bytes) + 9'(s_count);
  always_ff @(posedge clk) begin
    if (s_begin) begun <= now;
    if (in_valid && !full) words[{write_slot[SLOT_BITS-1:0], bytes[6-:WORD_BITS]}] <= in;
    if (s_valid && !in_message && !full) stamps[write_slot[SLOT_BITS-1:0]] <= begun;
    if (s_valid) begin
      in_message <= 1'b1;
      bytes <= bytes_next[8] ? '1 : bytes_next[7:0];
    end
    drop_full <= 1'b0;
    if (s_end) begin
      in_message <= 1'b0;
      bytes <= '0;
      if (s_good && full) drop_full <= 1'b1;
      if (s_good && !full) begin
        lengths[write_slot[SLOT_BITS-1:0]] <= s_valid ? bytes_next[8] ? '1 : bytes_next[7:0] : bytes;
        write_slot <= write_slot + 1'b1;
      end
    end
    if (rst) begin
      {write_slot, in_message, bytes, drop_full} <= '0;
    end
  end

  // ---- out -----------------------------------------------------------------------------------
  logic [BUS-1:0] read, read_late;
  logic [5:0] lane, lane_late;
  assign length  = lengths[read_slot[SLOT_BITS-1:0]];
  assign arrival = stamps[read_slot[SLOT_BITS-1:0]];
  always_ff @(posedge clk) begin
    read <= words[{read_slot[SLOT_BITS-1:0], index[5-:WORD_BITS]}];
    lane <= ~index & 6'(LANES - 1);  // the first one is the highest
    {read_late, lane_late} <= {read, lane};
    if (next && pending) read_slot <= read_slot + 1'b1;
    if (rst) read_slot <= '0;
  end
  assign word = read_late[lane_late*16+:16];
endmodule
`default_nettype wire
