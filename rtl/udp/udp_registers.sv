// SPDX-License-Identifier: Apache-2.0
//
// Registers of the UDP/IP stack, which the slow control reads and writes (udp_pkg; docs/protocol/udp.md; one clock).
//
//              +---------------+
//   reg_* <===>| udp_registers |====> settings of the stream
//              |               |<==== count, run, last_count
//              |               |<===> ptp_* (registers of PTP)
//              +---------------+
//
// At reset they are start, peer_ip, peer_port, payload and checksum. `enable` low ends the stream whatever its register says.
`default_nettype none
module udp_registers #(
    parameter int PAYLOAD_MAX = 8972
) (
    input logic clk,
    input logic rst,
    // at reset
    input logic [31:0] peer_ip,
    input logic [15:0] peer_port,
    input logic [13:0] payload,
    input logic checksum,
    input logic start,
    input logic enable,
    // slow control
    input logic reg_valid,
    input logic reg_write,
    input logic [31:0] reg_address,
    input logic [31:0] reg_wdata,
    output logic reg_ready,
    output logic reg_error,
    output logic [31:0] reg_rdata,
    // stream
    output logic stream_enable,
    output logic [31:0] stream_ip,
    output logic stream_changed,
    output logic [15:0] stream_port,
    output logic [13:0] stream_payload,
    output logic with_checksum,
    input logic stream_active,
    input logic [7:0] run,
    input logic [31:0] last_count,
    // PTP
    output logic ptp_valid,
    output logic [4:0] ptp_index,
    input logic ptp_ready,
    input logic ptp_error,
    input logic [31:0] ptp_rdata,
    // counters
    output logic counter_read,
    output logic [4:0] counter_index,
    input logic [31:0] count,
    input logic count_valid
);
  // ---- address -------------------------------------------------------------------------------
  localparam logic [3:0] ENABLE = udp_pkg::REGISTER_ENABLE[3:0];
  localparam logic [3:0] PEER_IP = udp_pkg::REGISTER_PEER_IP[3:0];
  localparam logic [3:0] PEER_PORT = udp_pkg::REGISTER_PEER_PORT[3:0];
  localparam logic [3:0] PAYLOAD = udp_pkg::REGISTER_PAYLOAD[3:0];
  localparam logic [3:0] CHECKSUM = udp_pkg::REGISTER_CHECKSUM[3:0];
  logic in_range, is_counter, is_ptp, is_own, payload_right, still, writes;
  logic [3:0] place;
  assign place = reg_address[3:0];
  assign in_range = reg_address[31:9] == udp_pkg::REGISTER_IDENTITY[31:9];
  assign is_own = in_range && reg_address[8:4] == udp_pkg::REGISTER_IDENTITY[8:4];
  assign is_ptp = in_range && (reg_address[8:4] == 5'd1 || reg_address[8:4] == 5'd2);
  assign is_counter = in_range && reg_address[8] && reg_address[7:0] < 8'(udp_pkg::COUNTERS);
  assign ptp_valid = reg_valid && is_ptp;
  assign ptp_index = {reg_address[5], place};

  // ---- read ----------------------------------------------------------------------------------
  // Where the stream goes, and how, is changed while it stands.
  assign still = !(stream_enable && enable) && !stream_active;
  logic [31:0] wide;
  logic [15:0] narrow;
  logic [ 1:0] choice;
  logic is_narrow, is_identity, is_fixed, refused;
  always_comb begin
    case (choice)
      2'd0: wide = stream_ip;
      2'd1: wide = last_count;
      2'd2: wide = count;
      default: wide = ptp_rdata;
    endcase
    case (place)
      ENABLE: narrow = 16'(stream_enable);
      PEER_PORT: narrow = stream_port;
      PAYLOAD: narrow = 16'(stream_payload);
      CHECKSUM: narrow = 16'(with_checksum);
      default: narrow = 16'(run);
    endcase
    // What cannot be written, now or ever.
    case (place)
      ENABLE, CHECKSUM: refused = 1'b0;
      PEER_IP, PEER_PORT: refused = !still;
      PAYLOAD: refused = !still || !payload_right;
      default: refused = 1'b1;
    endcase
  end
  always_ff @(posedge clk) begin
    choice <= is_ptp ? 2'd3 : is_counter ? 2'd2 : place == udp_pkg::REGISTER_LAST[3:0] ? 2'd1 : 2'd0;
    is_narrow <= is_own && place != PEER_IP && place != udp_pkg::REGISTER_LAST[3:0];
    is_identity <= is_own && place == '0;
    is_fixed <= !is_own || refused;
  end
  assign reg_rdata = is_identity ? udp_pkg::IDENTITY : is_narrow ? 32'(narrow) : wide;
  assign reg_error = is_ptp ? ptp_error : reg_write ? is_fixed : !is_counter && !(is_own && place < 4'd8);
  // Two clocks after the request its value is compared, and whether it can be written.
  logic [1:0] asked;
  assign reg_ready = is_ptp ? ptp_ready : asked[1] && (!is_counter || count_valid);
  assign writes = reg_valid && asked[1] && reg_write && !is_fixed;
  always_ff @(posedge clk) begin
    asked <= {asked[0], reg_valid};
    {counter_read, counter_index} <= {reg_valid && is_counter, reg_address[4:0]};
    payload_right <= reg_wdata >= 32'd16 && reg_wdata <= 32'(PAYLOAD_MAX) && reg_wdata[1:0] == '0;
    stream_changed <= writes && place == PEER_IP;
    if (writes && place == ENABLE) stream_enable <= reg_wdata[0];
    if (writes && place == PEER_IP) stream_ip <= reg_wdata;
    if (writes && place == PEER_PORT) stream_port <= reg_wdata[15:0];
    if (writes && place == PAYLOAD) stream_payload <= reg_wdata[13:0];
    if (writes && place == CHECKSUM) with_checksum <= reg_wdata[0];
    if (rst) begin
      {stream_enable, stream_ip, stream_port, with_checksum} <= {
        start, peer_ip, peer_port, checksum
      };
      stream_payload <= payload > 14'(PAYLOAD_MAX) ? 14'(PAYLOAD_MAX) : payload;
    end
  end
endmodule
`default_nettype wire
