// SPDX-License-Identifier: Apache-2.0
//
// Who is where: the way of a packet to its next hop, and the cache of ARP (RFC 826, 1122 2.3.2).
//
//                 +----------------+
//   lookup_* ====>|                |----> lookup_done, known, mac
//   stream_* ====>| udp_neighbours |----> stream_path
//   learn_* =====>|                |----> learned, learned_known
//   tick_ms ----->|                |----> ask, ask_ip
//                 +----------------+
//
// A packet goes to its destination, to the gateway of other networks, or, to a group or to all, to the MAC address of those.
// The cache has ENTRIES addresses in distributed RAM, each for TIMEOUT milliseconds after it was last heard of; the one
// that was written longest ago makes room. It is searched an entry after another, from the one that was found last: four clocks
// from `lookup` to `lookup_done` if it is found there. One search goes on at a time.
//
// lookup, learn: levels, until lookup_done, or `learned`. learn_new: who is not in the cache gets in.
// Where the stream goes is looked up each millisecond, after each word of a neighbour, and when stream_changed tells that it goes
// elsewhere. ask, a level until ask_taken: this address is wanted. Addresses are asked for one in RETRY milliseconds.
`default_nettype none
module udp_neighbours #(
    parameter int ENTRIES = 4,
    parameter int TIMEOUT = 60_000,
    parameter int RETRY   = 100
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        tick_ms,
    input  logic [31:0] ip_address,
    input  logic [31:0] mask,
    input  logic [31:0] gateway,
    // a packet
    input  logic        lookup,
    input  logic [31:0] lookup_ip,
    output logic        lookup_done,
    output logic        known,            // from lookup_done on
    output logic [47:0] mac,
    // the stream
    input  logic [31:0] stream_ip,
    input  logic        stream_changed,
    input  logic        stream_active,
    output logic        stream_path,      // its next hop is known
    // a neighbour was heard of
    input  logic        learn,
    input  logic        learn_new,
    input  logic [31:0] learn_ip,
    input  logic [47:0] learn_mac,
    output logic        learned,
    output logic        learned_nothing,  // with it: it was not known and is not
    // a neighbour is wanted
    output logic        ask,
    output logic [31:0] ask_ip,
    input  logic        ask_taken
);
  localparam int AGE_BITS = $clog2(TIMEOUT + 1);
  localparam int RETRY_BITS = $clog2(RETRY + 1);
  localparam int ENTRY_BITS = $clog2(ENTRIES);

  if (ENTRIES < 2 || ENTRIES != 2 ** ENTRY_BITS) begin : g_check
    $error("udp_neighbours: ENTRIES must be a power of two and at least 2");
  end

  typedef logic [ENTRY_BITS-1:0] entry_t;
  typedef enum logic [1:0] {
    LEARN,
    PACKET,
    STREAM
  } job_t;
  typedef enum logic [2:0] {
    WIPE,
    IDLE,
    ROUTE,
    HOP,
    READ,
    JUDGE,
    WRITE,
    AGE
  } state_t;
  state_t state;
  job_t   job;

  // ---- cache ---------------------------------------------------------------------------------
  entry_t at, left, newest;
  (* ram_style = "distributed" *)
  logic [79:0] stations[ENTRIES];  // IP and MAC address
  (* ram_style = "distributed" *)
  logic [AGE_BITS-1:0] ages[ENTRIES];  // milliseconds that are left
  logic [31:0] target;
  logic [31:0] station_ip;
  logic [47:0] station_mac;
  logic [AGE_BITS-1:0] age;
  logic is_it, is_last;
  assign {station_ip, station_mac} = stations[at];
  assign age = ages[at];
  assign is_last = left == '0;
  always_ff @(posedge clk) begin
    if (state == WRITE) stations[at] <= {target, learn_mac};
    if (state == WIPE || state == WRITE || state == AGE)
      ages[at] <= state == WRITE ? AGE_BITS'(TIMEOUT) : state == WIPE || age == '0 ? '0 : age - 1'b1;
  end

  // ---- route ---------------------------------------------------------------------------------
  logic on_link, to_group, to_network, to_all, ends;
  always_ff @(posedge clk) begin
    on_link  <= ((target ^ ip_address) & mask) == '0;
    to_group <= net_pkg::is_group(target);
    to_network <= (target | mask) == '1;
    to_all <= target == '1;
    is_it    <= station_ip == target && age != '0;
  end

  // ---- searches ------------------------------------------------------------------------------
  logic aging_due, stream_due, direct, wished;
  logic [RETRY_BITS-1:0] pause;
  assign direct = job != LEARN && (to_group || to_all || (to_network && on_link));
  assign ends   = (state == HOP && direct) || (state == JUDGE && (is_it || is_last));
  always_ff @(posedge clk) begin
    lookup_done <= 1'b0;
    learned <= 1'b0;
    aging_due <= aging_due || tick_ms;
    stream_due <= stream_due || stream_changed;
    left <= left - 1'b1;
    case (state)
      WIPE: begin
        at <= at + 1'b1;
        if (is_last) state <= IDLE;
      end
      IDLE: begin
        left  <= '1;
        state <= ROUTE;
        if (learn && !learned) begin
          job <= LEARN;
          target <= learn_ip;
        end else if (lookup && !lookup_done) begin
          job <= PACKET;
          target <= lookup_ip;
        end else if (aging_due) begin
          state <= AGE;
          aging_due <= tick_ms;
        end else if (stream_due) begin
          job <= STREAM;
          target <= stream_ip;
          stream_due <= stream_changed;
        end else state <= IDLE;
      end
      ROUTE: begin
        left  <= left;
        state <= HOP;
      end
      HOP: begin
        left <= left;
        if (job != LEARN && !direct && !on_link) target <= gateway;
        state <= READ;
      end
      READ: begin
        left  <= left;
        state <= JUDGE;
      end
      JUDGE: begin
        state <= READ;
        if (!is_it) at <= at + 1'b1;
      end
      WRITE: begin
        stream_due <= 1'b1;
        state <= IDLE;
      end
      default: begin
        at <= at + 1'b1;
        if (is_last) begin
          stream_due <= 1'b1;
          state <= IDLE;
        end
      end
    endcase
    if (ends) begin
      state <= IDLE;
      case (job)
        LEARN: begin
          learned <= 1'b1;
          learned_nothing <= !is_it && !learn_new;
          if (is_it || learn_new) state <= WRITE;
          if (!is_it && learn_new) {at, newest} <= {2{entry_t'(newest + 1'b1)}};
        end
        PACKET: begin
          lookup_done <= 1'b1;
          known <= direct || is_it;
          mac <= !direct ? station_mac : to_group ? {net_pkg::MULTICAST, 1'b0, target[22:0]} : net_pkg::BROADCAST;
        end
        default: if (!stream_due) stream_path <= direct || is_it;
      endcase
    end
    if (stream_changed) stream_path <= 1'b0;
    if (rst) begin
      state <= WIPE;
      left <= '1;
      {at, newest} <= '0;
      {lookup_done, learned, aging_due, stream_path} <= '0;
      stream_due <= 1'b1;
    end
  end

  // ---- wishes --------------------------------------------------------------------------------
  // A packet that has no way is lost and goes before the stream, which waits.
  logic misses;
  assign misses = ends && !direct && !is_it && (job == PACKET || (job == STREAM && stream_active));
  always_ff @(posedge clk) begin
    if (misses && !ask && (job == PACKET || !wished)) begin
      wished <= 1'b1;
      ask_ip <= target;
    end
    if (tick_ms && pause != '0) pause <= pause - 1'b1;
    if (ask_taken) ask <= 1'b0;
    if (wished && pause == '0 && !ask) begin
      ask <= 1'b1;
      wished <= 1'b0;
      pause <= RETRY_BITS'(RETRY);
    end
    if (rst) begin
      {wished, ask} <= '0;
      pause <= '0;
    end
  end
endmodule
`default_nettype wire
