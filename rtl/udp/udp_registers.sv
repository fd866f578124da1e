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
  logic is_counter, is_ptp, payload_right, still;
  assign counter_index = reg_address[4:0];
  assign is_counter = reg_address[31:8] == udp_pkg::REGISTER_COUNTERS[31:8] && reg_address[7:0] < 8'(udp_pkg::COUNTERS);
  assign counter_read = reg_valid && is_counter;
  assign is_ptp = reg_address[31:8] == udp_pkg::REGISTER_PTP_ROLE[31:8] && (reg_address[7:4] == 4'd1 || reg_address[7:4] == 4'd2);
  assign ptp_valid = reg_valid && is_ptp;
  assign ptp_index = {reg_address[5], reg_address[3:0]};
  assign reg_ready = is_ptp ? ptp_ready : !is_counter || count_valid;
  assign payload_right = reg_wdata >= 32'd16 && reg_wdata <= 32'(PAYLOAD_MAX) && reg_wdata[1:0] == '0;
  // Where the stream goes, and how, is changed while it stands.
  assign still = !(stream_enable && enable) && !stream_active;
  always_comb begin
    reg_error = 1'b0;
    reg_rdata = '0;
    case (reg_address)
      udp_pkg::REGISTER_IDENTITY: {reg_error, reg_rdata} = {reg_write, udp_pkg::IDENTITY};
      udp_pkg::REGISTER_ENABLE: reg_rdata = 32'(stream_enable);
      udp_pkg::REGISTER_PEER_IP: {reg_error, reg_rdata} = {reg_write && !still, stream_ip};
      udp_pkg::REGISTER_PEER_PORT:
      {reg_error, reg_rdata} = {reg_write && !still, 16'd0, stream_port};
      udp_pkg::REGISTER_PAYLOAD:
      {reg_error, reg_rdata} = {reg_write && !(still && payload_right), 18'd0, stream_payload};
      udp_pkg::REGISTER_RUN: {reg_error, reg_rdata} = {reg_write, 24'd0, run};
      udp_pkg::REGISTER_LAST: {reg_error, reg_rdata} = {reg_write, last_count};
      udp_pkg::REGISTER_CHECKSUM: reg_rdata = 32'(with_checksum);
      default: begin
        reg_error = is_ptp ? ptp_error : reg_write || !is_counter;
        reg_rdata = is_ptp ? ptp_rdata : is_counter ? count : '0;
      end
    endcase
  end
  always_ff @(posedge clk) begin
    stream_changed <= reg_valid && reg_write && reg_address == udp_pkg::REGISTER_PEER_IP;
    if (reg_valid && reg_write && !reg_error) begin
      case (reg_address)
        udp_pkg::REGISTER_ENABLE: stream_enable <= reg_wdata[0];
        udp_pkg::REGISTER_PEER_IP: stream_ip <= reg_wdata;
        udp_pkg::REGISTER_PEER_PORT: stream_port <= reg_wdata[15:0];
        udp_pkg::REGISTER_PAYLOAD: stream_payload <= reg_wdata[13:0];
        udp_pkg::REGISTER_CHECKSUM: with_checksum <= reg_wdata[0];
        default: ;
      endcase
    end
    if (rst) begin
      {stream_enable, stream_ip, stream_port, with_checksum} <= {
        start, peer_ip, peer_port, checksum
      };
      stream_payload <= payload > 14'(PAYLOAD_MAX) ? 14'(PAYLOAD_MAX) : payload;
    end
  end
endmodule
`default_nettype wire
