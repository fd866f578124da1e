// Cuts the user's stream into packets and writes them to the packet memory (user clock).
//
//                    +---------------+
//   s_axis_* =======>|               |====> write_* (packet memory)
//   session, stop -->| packet_writer |----> head_gray, active
//   tail_gray ======>|               |----> last, last_packet, last_words
//   last_seen ------>|               |
//                    +---------------+
//
// head_gray counts the finished packets, tail_gray the confirmed ones; both run modulo 2M and hold
// the low bits of the packet number, so a packet's place is its number modulo M. All inputs but
// s_axis_* come from the transmit clock and are synchronized here.
//
// tready falls when the buffer is full: data waits in the source. On `stop` the packet being filled
// becomes the last. The head moves over it only after the transmit side has answered `last` with
// `last_seen`, so that it can never take the last packet for a full one.
module packet_writer #(
    parameter int SLOT_BITS = 5,
    parameter int WORD_BITS = 10  // a packet is 2^WORD_BITS words
) (
    input  logic                           clk,
    input  logic                           rst,
    // user side
    input  logic [                   63:0] s_axis_tdata,
    input  logic                           s_axis_tvalid,
    output logic                           s_axis_tready,
    output logic                           active,
    // packet memory
    output logic                           write_enable,
    output logic [SLOT_BITS+WORD_BITS-1:0] write_address,
    output logic [                   63:0] write_data,
    // transmit side
    input  logic [            SLOT_BITS:0] first_packet,
    input  logic                           session,
    input  logic                           stop,
    input  logic                           last_seen,
    input  logic [            SLOT_BITS:0] tail_gray,
    output logic [            SLOT_BITS:0] head_gray,
    output logic                           last,
    output logic [            SLOT_BITS:0] last_packet,
    output logic [          WORD_BITS-1:0] last_words
);
  localparam int PTR_BITS = SLOT_BITS + 1;
  localparam logic [SLOT_BITS:0] SLOTS = PTR_BITS'(2 ** SLOT_BITS);

  logic session_here, stop_here, last_seen_here;
  logic [SLOT_BITS:0] head, head_next, tail, tail_gray_here;
  logic [WORD_BITS-1:0] word;
  logic full, accept, packet_done, closed;

  sync_bits #(
      .WIDTH(3)
  ) sync_levels (
      .clk(clk),
      .d  ({session, stop, last_seen}),
      .q  ({session_here, stop_here, last_seen_here})
  );
  sync_bits #(
      .WIDTH(PTR_BITS)
  ) sync_tail (
      .clk(clk),
      .d  (tail_gray),
      .q  (tail_gray_here)
  );
  gray_to_binary #(
      .WIDTH(PTR_BITS)
  ) tail_binary (
      .gray  (tail_gray_here),
      .binary(tail)
  );

  assign full = head - tail == SLOTS;
  assign s_axis_tready = active && !full && !stop_here && !last;
  assign accept = s_axis_tvalid && s_axis_tready;
  assign packet_done = accept && word == '1;
  assign head_next = head + 1'b1;

  assign write_enable = accept;
  assign write_address = {head[SLOT_BITS-1:0], word};
  assign write_data = s_axis_tdata;
  assign last_packet = head;
  assign last_words = word;

  always_ff @(posedge clk) begin
    if (rst || !session_here) begin
      active <= 1'b0;
      last <= 1'b0;
      closed <= 1'b0;
      word <= '0;
      head <= first_packet;
      head_gray <= first_packet ^ (first_packet >> 1);
    end else begin
      active <= 1'b1;
      if (accept) word <= word + 1'b1;
      if (packet_done) begin
        head <= head_next;
        head_gray <= head_next ^ (head_next >> 1);
      end
      if (active && stop_here && !full && !last) last <= 1'b1;
      // The counter itself stays: it still names the last packet to the transmit side.
      if (last && last_seen_here && !closed) begin
        closed <= 1'b1;
        head_gray <= head_next ^ (head_next >> 1);
      end
    end
  end
endmodule
