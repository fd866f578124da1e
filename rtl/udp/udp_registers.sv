// SPDX-License-Identifier: Apache-2.0
//
// Registers of the UDP/IP stack, which the slow control reads and writes (udp_pkg; docs/protocol/udp.md; one clock).
//
//              +---------------+
//   reg_* <===>| udp_registers |====> settings of the stream and of PTP
//              |               |<==== count, time_status, run, last_count
//              +---------------+
//
// At reset they are start, peer_ip, peer_port, payload, checksum and ptp_role. `enable` low ends the stream whatever
// its register says. set_time: the seconds are written.
`default_nettype none
module udp_registers #(
    parameter int PAYLOAD_MAX = 8972,
    parameter int SYNC_CLOCKS = 125_000_000,
    parameter int SYNC_LOG = 0
) (
    input logic clk,
    input logic rst,
    // at reset
    input logic [31:0] peer_ip,
    input logic [15:0] peer_port,
    input logic [13:0] payload,
    input logic checksum,
    input logic start,
    input logic [1:0] ptp_role,
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
    output logic [1:0] role,
    output logic [31:0] sync_clocks,
    output logic [7:0] sync_log,
    output logic set_time,
    input ptp_pkg::status_t time_status,
    // counters
    output logic counter_read,
    output logic [4:0] counter_index,
    input logic [31:0] count,
    input logic count_valid
);
  logic is_counter, payload_right, still;
  assign counter_index = reg_address[4:0];
  assign is_counter = reg_address[31:8] == udp_pkg::REGISTER_COUNTERS[31:8] && reg_address[7:0] < 8'(udp_pkg::COUNTERS);
  assign counter_read = reg_valid && is_counter;
  assign reg_ready = !is_counter || count_valid;
  assign payload_right = reg_wdata >= 32'd16 && reg_wdata <= 32'(PAYLOAD_MAX) && reg_wdata[1:0] == '0;
  // Where the stream goes, and how, is changed while it stands.
  assign still = !(stream_enable && enable) && !stream_active;
  logic [31:0] read_ns;  // of the moment in which the seconds were read
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
      udp_pkg::REGISTER_PTP_ROLE:
      {reg_error, reg_rdata} = {reg_write && reg_wdata > 32'd2, 30'd0, role};
      udp_pkg::REGISTER_PTP_LOCKED: {reg_error, reg_rdata} = {reg_write, 31'd0, time_status.locked};
      udp_pkg::REGISTER_PTP_OFFSET: {reg_error, reg_rdata} = {reg_write, time_status.offset};
      udp_pkg::REGISTER_PTP_DELAY: {reg_error, reg_rdata} = {reg_write, time_status.path_delay};
      udp_pkg::REGISTER_PTP_RATE: {reg_error, reg_rdata} = {reg_write, time_status.rate};
      udp_pkg::REGISTER_PTP_CLOCKS:
      {reg_error, reg_rdata} = {reg_write && reg_wdata < 32'd1000, sync_clocks};
      udp_pkg::REGISTER_PTP_LOG: reg_rdata = {{24{sync_log[7]}}, sync_log};
      udp_pkg::REGISTER_PTP_SECONDS: reg_rdata = time_status.now[63:32];
      udp_pkg::REGISTER_PTP_NS: {reg_error, reg_rdata} = {reg_write, read_ns};
      udp_pkg::REGISTER_CHECKSUM: reg_rdata = 32'(with_checksum);
      default: begin
        reg_error = reg_write || !is_counter;
        reg_rdata = is_counter ? count : '0;
      end
    endcase
  end
  assign set_time = reg_valid && reg_write && reg_address == udp_pkg::REGISTER_PTP_SECONDS;
  always_ff @(posedge clk) begin
    stream_changed <= reg_valid && reg_write && reg_address == udp_pkg::REGISTER_PEER_IP;
    if (reg_valid && reg_address == udp_pkg::REGISTER_PTP_SECONDS) read_ns <= time_status.now[31:0];
    if (reg_valid && reg_write && !reg_error) begin
      case (reg_address)
        udp_pkg::REGISTER_ENABLE: stream_enable <= reg_wdata[0];
        udp_pkg::REGISTER_PEER_IP: stream_ip <= reg_wdata;
        udp_pkg::REGISTER_PEER_PORT: stream_port <= reg_wdata[15:0];
        udp_pkg::REGISTER_PAYLOAD: stream_payload <= reg_wdata[13:0];
        udp_pkg::REGISTER_PTP_ROLE: role <= reg_wdata[1:0];
        udp_pkg::REGISTER_PTP_CLOCKS: sync_clocks <= reg_wdata;
        udp_pkg::REGISTER_PTP_LOG: sync_log <= reg_wdata[7:0];
        udp_pkg::REGISTER_CHECKSUM: with_checksum <= reg_wdata[0];
        default: ;
      endcase
    end
    if (rst) begin
      role <= ptp_role;
      sync_clocks <= 32'(SYNC_CLOCKS);
      sync_log <= 8'(SYNC_LOG);
      {stream_enable, stream_ip, stream_port, with_checksum} <= {
        start, peer_ip, peer_port, checksum
      };
      stream_payload <= payload > 14'(PAYLOAD_MAX) ? 14'(PAYLOAD_MAX) : payload;
    end
  end

  logic unused;
  assign unused = &{1'b0, time_status};
endmodule
`default_nettype wire
