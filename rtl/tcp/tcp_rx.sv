// SPDX-License-Identifier: Apache-2.0
//
// Receive check and decode: ARP, ICMP echo and TCP frames for this board (receive clock).
//
//                 +--------+
//   s_axis_* ====>|        |====> record_* (fields of a good frame)
//   mac_address, ip ==>| tcp_rx |====> echo_write_* (the frame of an echo request)
//   echo_busy --->|        |----> drop_* (one pulse a dropped frame, by first reason)
//                 +--------+
//
// Dropped: frames to other addresses, other protocols, fragments, IP options, wrong checksums of IP,
// ICMP and TCP, frames shorter than their IP length, and what finds no room. Frames that the MAC
// marked bad were counted there. A SYN waits until its options are read, a byte a clock.
//
// An echo request is written to a memory of 2^ECHO_BITS words while it comes; the record hands it
// over, and until echo_busy falls the next ones are dropped (drop_full).
`default_nettype none
module tcp_rx #(
    parameter int ECHO_BITS = 8
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic [         47:0] mac_address,
    input  logic [         31:0] ip_address,
    input  logic [         63:0] s_axis_tdata,
    input  logic [          7:0] s_axis_tkeep,
    input  logic                 s_axis_tvalid,
    input  logic                 s_axis_tlast,
    input  logic                 s_axis_tuser,
    // the record
    output logic [          1:0] record_kind,
    output logic [         47:0] record_mac,
    output logic [         31:0] record_ip,
    output logic [         15:0] record_source_port,
    output logic [         15:0] record_port,
    output logic [         31:0] record_sequence,
    output logic [         31:0] record_ack,
    output logic [          7:0] record_flags,
    output logic [         15:0] record_window,
    output logic [         15:0] record_length,       // of the payload; of an echo: of the frame
    output logic [         15:0] record_mss,
    output logic [          3:0] record_scale,
    output logic                 record_has_scale,
    output logic                 record_valid,
    input  logic                 record_ready,
    // echo memory
    input  logic                 echo_busy,
    output logic                 echo_write_enable,
    output logic [ECHO_BITS-1:0] echo_write_address,
    output logic [         63:0] echo_write_data,
    // one pulse each
    output logic                 drop_destination,
    output logic                 drop_protocol,
    output logic                 drop_fragment,
    output logic                 drop_checksum,
    output logic                 drop_short,
    output logic                 drop_full
);
  localparam logic [13:0] ETHERNET = 14'd14;

  // Input words with the first byte on the wire in the upper bits.
  logic [63:0] word;
  logic [ 7:0] keep;
  assign word = link_pkg::swap64(s_axis_tdata);
  for (genvar i = 0; i < 8; i++) begin : g_keep
    assign keep[i] = s_axis_tkeep[7-i];
  end

  // ---- fields --------------------------------------------------------------------------------
  logic [10:0] index;  // of the word in the frame
  logic [47:0] destination, source;
  logic [15:0] ethertype, total_length, fragment, arp_operation, port, source_port, window;
  logic [7:0] version, protocol, icmp_type, icmp_code, flags;
  logic [31:0] source_ip, destination_ip, arp_ip, arp_target, sequence_number, ack;
  logic [ 3:0] offset;
  logic [47:0] arp_shape;
  // Option bytes 54..93 are in words 6..11.
  logic [383:0] options, options_shifted;
  logic [13:0] bytes;  // of the frame
  logic [13:0] ip_end;
  assign ip_end = total_length[13:0] + ETHERNET;

  // Of IP and above: 16-bit sums over the bytes before ip_end. Headers have even lengths.
  logic [63:0] masked;
  logic [18:0] ip_part, payload_part;
  logic [31:0] ip_sum, payload_sum;
  for (genvar i = 0; i < 8; i++) begin : g_mask
    assign masked[i*8+:8] = keep[i] && 14'({index, 3'd0}) + 14'(7 - i) < ip_end ? word[i*8+:8] : 8'h00;
  end
  always_comb begin
    ip_part = '0;
    payload_part = '0;
    case (index)
      11'd1: ip_part = 19'(word[15:0]);
      11'd2: ip_part = 19'(word[63:48]) + 19'(word[47:32]) + 19'(word[31:16]) + 19'(word[15:0]);
      11'd3: ip_part = 19'(word[63:48]) + 19'(word[47:32]) + 19'(word[31:16]) + 19'(word[15:0]);
      11'd4: begin
        ip_part = 19'(word[63:48]);
        payload_part = 19'(masked[47:32]) + 19'(masked[31:16]) + 19'(masked[15:0]);
      end
      default:
      if (index > 11'd4) begin
        payload_part = 19'(masked[63:48]) + 19'(masked[47:32]) + 19'(masked[31:16]) + 19'(masked[15:0]);
      end
    endcase
  end

  logic [3:0] lanes;
  always_comb begin
    lanes = '0;
    for (int i = 0; i < 8; i++) lanes += 4'(keep[i]);
  end

  logic ended;
  always_ff @(posedge clk) begin
    ended <= 1'b0;
    if (s_axis_tvalid) begin
      index <= s_axis_tlast ? '0 : index == '1 ? '1 : index + 1'b1;
      bytes <= (index == '0 ? '0 : bytes) + 14'(lanes);
      ip_sum <= (index == '0 ? '0 : ip_sum) + 32'(ip_part);
      payload_sum <= (index == '0 ? '0 : payload_sum) + 32'(payload_part);
      if (index >= 11'd6 && index < 11'd12) options[(11-32'(index))*64+:64] <= word;
      case (index)
        11'd0: begin
          destination   <= word[63:16];
          source[47:32] <= word[15:0];
        end
        11'd1: begin
          source[31:0] <= word[63:32];
          {ethertype, version} <= word[31:8];
          arp_shape[47:32] <= word[15:0];
        end
        11'd2: begin
          total_length <= word[63:48];
          fragment <= word[31:16];
          protocol <= word[7:0];
          arp_shape[31:0] <= word[63:32];
          arp_operation <= word[31:16];
        end
        11'd3: begin
          source_ip <= word[47:16];
          destination_ip[31:16] <= word[15:0];
          arp_ip <= word[31:0];
        end
        11'd4: begin
          destination_ip[15:0] <= word[63:48];
          {icmp_type, icmp_code} <= word[47:32];
          source_port <= word[47:32];
          port <= word[31:16];
          sequence_number[31:16] <= word[15:0];
          arp_target[31:16] <= word[15:0];
        end
        11'd5: begin
          sequence_number[15:0] <= word[63:48];
          ack <= word[47:16];
          offset <= word[15:12];
          flags <= word[7:0];
          arp_target[15:0] <= word[63:48];
        end
        11'd6:   window <= word[63:48];
        default: ;
      endcase
      ended <= s_axis_tlast && !s_axis_tuser;
    end
    if (rst) begin
      index <= '0;
      ended <= 1'b0;
    end
  end
  // The first option byte is byte 54, the seventh of its word.
  assign options_shifted = options << 48;

  logic [1:0] step;
  // ---- the echo memory -----------------------------------------------------------------------
  // Whether it is free is decided at the first word of a frame.
  logic echo_free, echo_open, echo_waits, echo_ends;
  // The frame before may be an echo request on its way to the verdict; its fields are still here.
  assign echo_ends = {step, ended} != '0 && protocol == net_pkg::PROTOCOL_ICMP && icmp_type == net_pkg::ICMP_ECHO_REQUEST;
  assign echo_free = !echo_busy && !echo_waits && !echo_ends;
  assign echo_write_enable = s_axis_tvalid && (index == '0 ? echo_free : echo_open) && 32'(index) < 1 << ECHO_BITS;
  assign echo_write_address = index[ECHO_BITS-1:0];
  assign echo_write_data = s_axis_tdata;

  // ---- verdict, in three steps after the last word; frames are further apart -----------------
  logic is_ip, is_arp, is_tcp, is_echo, header_here, arp_here;
  logic [15:0] ip_folded, payload_folded, tcp_header, tcp_length;
  assign tcp_header = {10'd0, offset, 2'b00};
  assign tcp_length = total_length - 16'd20;

  logic [5:0] fault;
  logic syn, options_busy, options_done, for_me, decided;
  assign syn = is_tcp && flags[tcp_pkg::SYN];
  always_comb begin
    fault = 6'b000000;
    if (!for_me) fault = 6'b000001;
    else if (is_arp) begin
      if (!arp_here) fault = 6'b010000;
      else if (arp_shape != net_pkg::ARP_SHAPE) fault = 6'b000010;
      else if (arp_target != ip_address) fault = 6'b000001;
      else if (arp_operation != net_pkg::ARP_REQUEST && arp_operation != net_pkg::ARP_REPLY)
        fault = 6'b000010;
    end else if (!is_ip) fault = 6'b000010;
    else if (!header_here) fault = 6'b010000;
    else if (version != net_pkg::IP_VERSION[15:8]) fault = 6'b000010;
    else if (ip_folded != '1) fault = 6'b001000;
    else if (destination_ip != ip_address) fault = 6'b000001;
    // More fragments, or not the first one.
    else if (fragment[13] || fragment[12:0] != '0) fault = 6'b000100;
    else if (!is_tcp && !is_echo) fault = 6'b000010;
    else if (bytes < ip_end || total_length < 16'd28) fault = 6'b010000;
    else if (is_tcp && (tcp_header < 16'd20 || tcp_header > tcp_length)) fault = 6'b010000;
    else if (payload_folded != '1) fault = 6'b001000;
    else if (!record_ready || options_busy) fault = 6'b100000;
    else if (is_echo && (!echo_open || 32'(bytes) > 8 << ECHO_BITS)) fault = 6'b100000;
  end

  tcp_options tcp_options (
      .clk      (clk),
      .rst      (rst),
      .s_bytes  (options_shifted[383:64]),
      .s_length (6'({offset - 4'd5, 2'b00})),
      .s_valid  (decided && fault == '0 && syn),
      .busy     (options_busy),
      .mss      (record_mss),
      .scale    (record_scale),
      .has_scale(record_has_scale),
      .m_valid  (options_done)
  );

  always_ff @(posedge clk) begin
    step <= {step[0], ended};
    if (s_axis_tvalid && index == '0) echo_open <= echo_free;
    is_arp <= ethertype == net_pkg::ETHERTYPE_ARP;
    is_ip <= ethertype == net_pkg::ETHERTYPE_IPV4;
    is_tcp <= protocol == net_pkg::PROTOCOL_TCP && ethertype == net_pkg::ETHERTYPE_IPV4;
    is_echo <= protocol == net_pkg::PROTOCOL_ICMP && icmp_type == net_pkg::ICMP_ECHO_REQUEST && icmp_code == 8'd0;
    header_here <= bytes >= 14'd34;
    arp_here <= bytes >= 14'd42;
    for_me <= destination == mac_address || (destination == net_pkg::BROADCAST && ethertype == net_pkg::ETHERTYPE_ARP);
    ip_folded <= net_pkg::fold(ip_sum);
    // The pseudo header: addresses, protocol and length.
    payload_folded <= net_pkg::fold(
        payload_sum + (protocol == net_pkg::PROTOCOL_TCP ? 32'(source_ip[31:16]) + 32'(source_ip[15:0])
                       + 32'(destination_ip[31:16]) + 32'(destination_ip[15:0]) + 32'(net_pkg::PROTOCOL_TCP)
                       + 32'(tcp_length) : 32'd0)
    );
    {drop_full, drop_short, drop_checksum, drop_fragment, drop_protocol, drop_destination} <=
        decided ? fault : 6'b000000;

    record_valid <= options_done;
    if (decided && fault == '0) begin
      record_valid <= !syn;
      record_kind <= is_tcp ? tcp_pkg::RECORD_SEGMENT : is_echo && is_ip ? tcp_pkg::RECORD_ECHO
                     : arp_operation == net_pkg::ARP_REPLY ? tcp_pkg::RECORD_ARP_REPLY
                     : tcp_pkg::RECORD_ARP_REQUEST;
      record_mac <= source;
      record_ip <= is_arp ? arp_ip : source_ip;
      record_source_port <= source_port;
      record_port <= port;
      record_sequence <= sequence_number;
      record_ack <= ack;
      record_flags <= flags;
      record_window <= window;
      record_length <= is_tcp ? tcp_length - tcp_header : 16'(ip_end);
      if (is_echo && is_ip) echo_waits <= 1'b1;
    end
    // The other clock domain holds it from here.
    if (echo_busy) echo_waits <= 1'b0;
    if (rst) begin
      step <= '0;
      record_valid <= 1'b0;
      echo_waits <= 1'b0;
    end
  end
  assign decided = step[1];

  logic unused;
  assign unused = &{1'b0, options_shifted[63:0], total_length[15:14], fragment[15:14]};
endmodule
`default_nettype wire
