// SPDX-License-Identifier: Apache-2.0
//
// Finds the next hop of packets, with the cache of ARP (RFC 826, 1122 2.3.2).
//
//                 +----------------+
//   lookup_* ====>|                |----> lookup_done, known, mac
//   stream_* ====>| udp_neighbours |----> stream_path
//   learn_* <====>|                |----> learned, learned_nothing
//   tick_ms ----->|                |----> ask, ask_ip
//                 +----------------+
//
// A packet goes to its destination, to the gateway of other networks, or, for a group or broadcast, to the MAC address of
// that. The cache has ENTRIES addresses in distributed RAM, each for TIMEOUT milliseconds after the last message; a new one
// replaces the one that was written longest ago. The search goes byte by byte, from the entry that was found last: 15
// clocks from `lookup` to `lookup_done` if it is found there, 3 or 4 more for each other entry. The last route is stored: a
// packet to the same destination has it two clocks after `lookup`. So has the first packet to the destination of a stream,
// if its route was found last.
//
// lookup, learn: levels, until lookup_done, or `learned`. in_use: `mac` is needed. learn_byte is byte learn_place of the
// MAC address (2 to 7) and IP address (8 to 11) of the neighbour. learn_new: an unknown neighbour is added to the cache.
// The destination of a stream is looked up each millisecond, after each message of a neighbour, and when stream_changed
// says that it has changed. ask, a level until ask_taken: this address is needed. One request is sent in RETRY
// milliseconds.
`default_nettype none
module udp_neighbours #(
    parameter int STREAMS = 1,
    parameter int ENTRIES = 4,
    parameter int TIMEOUT = 60_000,
    parameter int RETRY   = 100
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic                     tick_ms,
    input  logic [       31:0]       ip_address,
    input  logic [       31:0]       mask,
    input  logic [       31:0]       gateway,
    // a packet
    input  logic                     lookup,
    input  logic [       31:0]       lookup_ip,
    input  logic                     in_use,
    output logic                     lookup_done,
    output logic                     known,            // from lookup_done on
    output logic [       47:0]       mac,
    // the streams
    input  logic [STREAMS-1:0][31:0] stream_ip,
    input  logic [STREAMS-1:0]       stream_changed,
    input  logic [STREAMS-1:0]       stream_active,
    output logic [STREAMS-1:0]       stream_path,      // its next hop is known
    // a neighbour was heard of
    input  logic                     learn,
    input  logic                     learn_new,
    output logic [        3:0]       learn_place,
    input  logic [        7:0]       learn_byte,
    output logic                     learned,
    output logic                     learned_nothing,  // with it: it was not known and is not
    // a neighbour is wanted
    output logic                     ask,
    output logic [       31:0]       ask_ip,
    input  logic                     ask_taken
);
  localparam int AGE_BITS = $clog2(TIMEOUT + 1);
  localparam int RETRY_BITS = $clog2(RETRY + 1);
  localparam int ENTRY_BITS = $clog2(ENTRIES);
  localparam int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1;
  localparam logic [47:0] GROUP = {net_pkg::MULTICAST, 24'd0};

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
    SEARCH,
    WRITE,
    AGE,
    AGED
  } state_t;
  state_t state;
  job_t   job;

  // ---- cache ---------------------------------------------------------------------------------
  // An entry is MAC and IP address, as they stand in a message of ARP; all is done from its last byte to its first.
  localparam logic [3:0] IP_LAST = 4'd11, IP_FIRST = 4'd8, MAC_FIRST = 4'd2, NONE = 4'd1;
  entry_t at, left, newest;
  logic [3:0] place, shown, here;  // here: in the memory
  (* ram_style = "distributed" *)
  logic [7:0] stations[ENTRIES*16];
  (* ram_style = "distributed" *)
  logic [AGE_BITS-1:0] ages[ENTRIES];  // milliseconds that are left
  logic [AGE_BITS-1:0] age;
  logic [7:0] station, target;
  logic writes;
  assign learn_place = place;
  assign here = writes ? shown : place;
  always_ff @(posedge clk) begin
    station <= stations[{at, here}];
    age <= ages[at];
    // The byte that has come is `target`, and its place is `shown`.
    writes <= state == WRITE;
    if (writes) stations[{at, here}] <= target;
    if (state == WIPE || state == WRITE || state == AGED)
      ages[at] <= state == WRITE ? AGE_BITS'(TIMEOUT) : state == WIPE || age == '0 ? '0 : age - 1'b1;
  end

  // ---- one byte ------------------------------------------------------------------------------
  logic via, whole, first, restarts, shown_valid, shows_ip;
  logic is_it, on_link, to_group, to_network, to_all, direct;
  logic [1:0] octet;  // of an IP address, the last one is 0
  logic [7:0] own_byte, mask_byte, mac_byte;
  logic [3:0][7:0] lookup_bytes, stream_bytes, gateway_bytes, own_bytes, mask_bytes;
  logic [STREAMS-1:0] stream_due;  // to be looked up
  logic [STREAM_BITS-1:0] next_stream, stream;
  assign {lookup_bytes, stream_bytes, gateway_bytes} = {lookup_ip, stream_ip[stream], gateway};
  assign {own_bytes, mask_bytes} = {ip_address, mask};
  assign octet = ~place[1:0];
  assign shows_ip = shown_valid && shown[3];
  assign first = whole && !via;
  assign direct = job != LEARN && (to_group || to_all || (to_network && on_link));
  always_comb begin
    mac_byte = station;
    if (to_group && direct)
      case (shown)
        4'd7, 4'd6: mac_byte = target;
        4'd5: mac_byte = {1'b0, target[6:0]};
        default: mac_byte = GROUP[(3'd7-shown[2:0])*8+:8];
      endcase
    if (direct && !to_group) mac_byte = '1;
  end
  always_ff @(posedge clk) begin
    case (job)
      LEARN:   target <= learn_byte;
      PACKET:  target <= via ? gateway_bytes[octet] : lookup_bytes[octet];
      default: target <= via ? gateway_bytes[octet] : stream_bytes[octet];
    endcase
    {own_byte, mask_byte} <= {own_bytes[octet], mask_bytes[octet]};
    shown <= place;
    shown_valid <= state == SEARCH && place != NONE && !restarts;
    if (shows_ip) is_it <= (shown == IP_LAST || is_it) && station == target && age != '0;
    if (shows_ip && first) begin
      on_link <= (shown == IP_LAST || on_link) && ((target ^ own_byte) & mask_byte) == '0;
      to_network <= (shown == IP_LAST || to_network) && (target | mask_byte) == '1;
      to_all <= (shown == IP_LAST || to_all) && target == '1;
      to_group <= net_pkg::is_group({target, 24'd0});
    end
  end

  // ---- searches ------------------------------------------------------------------------------
  logic aging_due, loads, judges, tried, was_first, ends, found, is_last, to_gateway;
  logic asked, same, fresh, wished, wishes;
  logic [RETRY_BITS-1:0] pause;
  logic [31:0] route;  // where `mac` leads to
  // The first entry, and the first for the gateway, are compared to their end, the others to the first difference.
  assign judges = tried && (was_first || (!whole && !is_it));
  assign found = direct || (is_it && !to_gateway);
  assign to_gateway = first && job != LEARN && !direct && !on_link;
  assign is_last = left == '0;
  assign restarts = judges && !found;
  assign ends = (judges && (found ? !loads : !to_gateway && is_last)) || (shown_valid && shown == MAC_FIRST);
  always_comb begin
    next_stream = '0;
    for (int i = STREAMS - 1; i >= 0; i--) if (stream_due[i]) next_stream = STREAM_BITS'(i);
  end
  always_ff @(posedge clk) begin
    lookup_done <= 1'b0;
    learned <= 1'b0;
    aging_due <= aging_due || tick_ms;
    stream_due <= stream_due | stream_changed;
    asked <= lookup && !lookup_done;
    same <= lookup_ip == route;
    tried <= shows_ip && !restarts;
    was_first <= shown == IP_FIRST;
    if (place != NONE) place <= place - 1'b1;
    if (shows_ip && first && loads) route <= {target, route[31:8]};
    if (shown_valid && !shows_ip && loads) mac <= {mac_byte, mac[47:8]};
    if (asked && same && fresh && !lookup_done) {lookup_done, known} <= '1;
    case (state)
      WIPE: begin
        at   <= at + 1'b1;
        left <= left - 1'b1;
        if (is_last) state <= IDLE;
      end
      IDLE: begin
        left <= '1;
        place <= IP_LAST;
        whole <= 1'b1;
        {via, loads, wishes} <= '0;
        state <= SEARCH;
        if (learn && !learned) begin
          job <= LEARN;
        end else if (asked && lookup && !lookup_done && !(same && fresh)) begin
          job <= PACKET;
          loads <= 1'b1;
          wishes <= !ask && !(wished && pause == '0);
          fresh <= 1'b0;
        end else if (aging_due) begin
          state <= AGE;
          aging_due <= tick_ms;
        end else if (stream_due != '0) begin
          job <= STREAM;
          stream <= next_stream;
          stream_due[next_stream] <= stream_changed[next_stream];
          wishes <= !ask && !wished;
          if (!in_use && (stream_active & stream_path) == '0) {loads, fresh} <= 2'b10;
        end else state <= IDLE;
      end
      SEARCH:
      if (restarts) begin
        place <= IP_LAST;
        whole <= to_gateway;
        if (to_gateway) begin
          via <= 1'b1;
        end else begin
          at   <= at + 1'b1;
          left <= left - 1'b1;
        end
      end
      WRITE:
      if (place == MAC_FIRST) begin
        learned <= 1'b1;
        learned_nothing <= 1'b0;
        stream_due <= '1;
        fresh <= 1'b0;
        state <= IDLE;
      end
      AGE: state <= AGED;
      default: begin
        // AGED
        at <= at + 1'b1;
        left <= left - 1'b1;
        state <= is_last ? IDLE : AGE;
        if (is_last) stream_due <= '1;
        if (age == AGE_BITS'(1)) fresh <= 1'b0;
      end
    endcase
    if (ends) begin
      state <= IDLE;
      case (job)
        LEARN:
        if (found || learn_new) begin
          state <= WRITE;
          place <= IP_LAST;
          if (!found) {at, newest} <= {2{entry_t'(newest + 1'b1)}};
        end else {learned, learned_nothing} <= '1;
        PACKET: {lookup_done, known, fresh} <= {1'b1, found, found};
        default: begin
          if (!stream_due[stream]) stream_path[stream] <= found;
          if (loads) fresh <= found && !stream_due[stream];
        end
      endcase
    end
    for (int i = 0; i < STREAMS; i++) if (stream_changed[i]) stream_path[i] <= 1'b0;
    if (rst) begin
      state <= WIPE;
      left <= '1;
      {at, newest} <= '0;
      {lookup_done, asked, learned, aging_due, fresh, tried} <= '0;
      stream_path <= '0;
      stream_due <= '1;
    end
  end

  // ---- wishes --------------------------------------------------------------------------------
  // A packet that has no way is lost and goes before the stream, which waits and is looked up again.
  always_ff @(posedge clk) begin
    if (shows_ip && whole && wishes) ask_ip <= {target, ask_ip[31:8]};
    if (shows_ip && wishes) wished <= 1'b0;
    if (ends && !found && wishes && (job == PACKET || (stream_active[stream] && !stream_due[stream])))
      wished <= 1'b1;
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
