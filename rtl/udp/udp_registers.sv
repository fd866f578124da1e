// SPDX-License-Identifier: Apache-2.0
//
// Registers that the slow control reads and writes (udp_pkg; docs/protocol/udp.md; one clock).
//
//              +---------------+
//              |               |<===> user_* (the user's registers)
//   reg_* <===>| udp_registers |====> settings of the streams
//              |               |<==== count, run, last_count
//              |               |<===> ptp_* (registers of PTP)
//              +---------------+
//
// After reset start, peer_ip, peer_port, payload and checksum are written, as slow control would. Written values are read
// from a memory. `enable` low ends the streams independent of their registers.
// reg_rdata is reg_wdata unless this is a read.
`default_nettype none
module udp_registers #(
    parameter int STREAMS = 1,
    parameter int PAYLOAD_MAX = 8972
) (
    input  logic                     clk,
    input  logic                     rst,
    // after reset
    input  logic [       31:0]       peer_ip,
    input  logic [STREAMS-1:0][15:0] peer_port,
    input  logic [       13:0]       payload,
    input  logic                     checksum,
    input  logic [STREAMS-1:0]       start,
    input  logic                     enable,
    // slow control
    input  logic                     reg_valid,
    input  logic                     reg_write,
    input  logic [       31:0]       reg_address,
    input  logic [       31:0]       reg_wdata,
    output logic                     reg_ready,
    output logic                     reg_error,
    output logic [       31:0]       reg_rdata,
    // the user's registers
    output logic                     user_valid,
    input  logic                     user_ready,
    input  logic                     user_error,
    input  logic [       31:0]       user_rdata,
    // streams
    output logic [STREAMS-1:0]       stream_enable,
    output logic [STREAMS-1:0][31:0] stream_ip,
    output logic [STREAMS-1:0]       stream_changed,
    output logic [STREAMS-1:0][15:0] stream_port,
    output logic [STREAMS-1:0][13:0] stream_payload,
    output logic [STREAMS-1:0]       with_checksum,
    input  logic [STREAMS-1:0]       stream_active,
    input  logic [STREAMS-1:0][ 7:0] run,
    input  logic [STREAMS-1:0][31:0] last_count,
    // PTP
    output logic                     ptp_valid,
    output logic [        4:0]       ptp_index,
    input  logic                     ptp_ready,
    input  logic                     ptp_error,
    input  logic [       31:0]       ptp_rdata,
    // counters
    output logic                     counter_read,
    output logic [        4:0]       counter_index,
    input  logic [       31:0]       count,
    input  logic                     count_valid
);
  localparam int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1;
  localparam logic [2:0] ENABLE = udp_pkg::REGISTER_ENABLE[2:0];
  localparam logic [2:0] PEER_IP = udp_pkg::REGISTER_PEER_IP[2:0];
  localparam logic [2:0] PEER_PORT = udp_pkg::REGISTER_PEER_PORT[2:0];
  localparam logic [2:0] PAYLOAD = udp_pkg::REGISTER_PAYLOAD[2:0];
  localparam logic [2:0] CHECKSUM = udp_pkg::REGISTER_CHECKSUM[2:0];
  localparam logic [2:0] RUN = udp_pkg::REGISTER_RUN[2:0];
  localparam logic [2:0] LAST = udp_pkg::REGISTER_LAST[2:0];

  // ---- address -------------------------------------------------------------------------------
  // The address stands some clocks before a request.
  logic is_counter, is_ptp, is_stream, booting, writes;
  // The register that is written after reset, in the last of two clocks; its upper bit: it is over.
  logic [STREAM_BITS+4:0] boot;
  logic [STREAM_BITS+2:0] address, asked_address;
  logic [STREAM_BITS-1:0] which;
  logic [2:0] place;
  assign booting = !boot[STREAM_BITS+4];
  assign address = booting ? boot[STREAM_BITS+3:1] : asked_address;
  assign which   = STREAMS > 1 ? address[STREAM_BITS+2:3] : '0;
  assign place   = address[2:0];
  always_ff @(posedge clk) begin
    asked_address <= {reg_address[udp_pkg::REGISTER_STREAM_BIT+:STREAM_BITS], reg_address[2:0]};
    is_stream <= reg_address[31:12] == udp_pkg::REGISTER_IDENTITY[31:12] && reg_address[8:3] == '0
        && 32'(reg_address[11:udp_pkg::REGISTER_STREAM_BIT]) < STREAMS;
    is_ptp <= reg_address[31:8] == udp_pkg::REGISTER_IDENTITY[31:8] && (reg_address[7:4] == 4'd1 || reg_address[7:4] == 4'd2);
    is_counter <= reg_address[31:8] == udp_pkg::REGISTER_COUNTERS[31:8] && reg_address[7:0] < 8'(udp_pkg::COUNTERS);
  end
  assign user_valid = reg_valid && !reg_address[31];
  assign ptp_valid  = reg_valid && is_ptp;
  assign ptp_index  = {reg_address[5], reg_address[3:0]};

  // ---- read ----------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    WRITTEN,
    USER,
    PTP,
    COUNTER,
    SETTING,
    IS_RUN,
    IS_LAST,
    IDENTITY
  } choice_t;
  choice_t choice;
  (* ram_style = "distributed" *)
  logic [31:0] settings[8*2**STREAM_BITS];
  logic [31:0] wdata, wdata_next;
  logic [8*32-1:0] choices;
  assign choices = {
    udp_pkg::IDENTITY,
    last_count[which],
    32'(run[which]),
    settings[address],
    count,
    ptp_rdata,
    user_rdata,
    reg_wdata
  };
  assign reg_rdata = choices[choice*32+:32];
  always_ff @(posedge clk) begin
    choice <= SETTING;
    if (place == '0) choice <= IDENTITY;
    if (place == RUN) choice <= IS_RUN;
    if (place == LAST) choice <= IS_LAST;
    if (is_counter) choice <= COUNTER;
    if (is_ptp) choice <= PTP;
    if (!reg_address[31]) choice <= USER;
    if (reg_write) choice <= WRITTEN;
    wdata <= wdata_next;
    if (writes) settings[address] <= wdata;
    {counter_read, counter_index} <= {reg_valid && is_counter, reg_address[4:0]};
  end

  // ---- write ---------------------------------------------------------------------------------
  // Where a stream goes, and how, is changed while it stands. Two clocks after the request its value is compared, and whether it can be
  // written. A payload is at least 16 bytes.
  logic still, payload_right, refused, is_fixed;
  logic [1:0] asked;
  assign still  = !(stream_enable[which] && enable) && !stream_active[which];
  assign writes = booting ? !boot[0] : reg_valid && asked[1] && reg_write && !is_fixed;
  always_comb begin
    case (place)
      ENABLE, CHECKSUM: refused = 1'b0;
      PEER_IP, PEER_PORT: refused = !still;
      PAYLOAD: refused = !still || !payload_right;
      default: refused = 1'b1;
    endcase
    wdata_next = reg_wdata;
    if (booting)
      case (place)
        ENABLE: wdata_next = 32'(start[which]);
        PEER_IP: wdata_next = peer_ip;
        PEER_PORT: wdata_next = 32'(peer_port[which]);
        PAYLOAD: wdata_next = 32'(payload > 14'(PAYLOAD_MAX) ? 14'(PAYLOAD_MAX) : payload);
        default: wdata_next = 32'(checksum);
      endcase
    if (is_ptp) {reg_ready, reg_error} = {ptp_ready, ptp_error};
    else if (!reg_address[31]) {reg_ready, reg_error} = {user_ready, user_error};
    else begin
      reg_ready = asked[1] && (!is_counter || count_valid);
      reg_error = reg_write ? is_fixed : !is_counter && !is_stream;
    end
  end
  always_ff @(posedge clk) begin
    asked <= {asked[0], reg_valid && !booting};
    is_fixed <= !is_stream || refused;
    payload_right <= reg_wdata[31:14] == '0 && reg_wdata[13:4] != '0 && reg_wdata[13:0] <= 14'(PAYLOAD_MAX) && reg_wdata[1:0] == '0;
    stream_changed <= '0;
    for (int i = 0; i < STREAMS; i++)
    if (writes && 32'(which) == i) begin
      stream_changed[i] <= place == PEER_IP;
      case (place)
        ENABLE: stream_enable[i] <= wdata[0];
        PEER_IP: stream_ip[i] <= wdata;
        PEER_PORT: stream_port[i] <= wdata[15:0];
        PAYLOAD: stream_payload[i] <= wdata[13:0];
        CHECKSUM: with_checksum[i] <= wdata[0];
        default: ;
      endcase
    end
    // From the last one down: a stream is enabled when it has its settings.
    if (booting) boot <= boot - 1'b1;
    if (rst) begin
      boot <= {1'b0, {(STREAM_BITS + 4) {1'b1}}};
      stream_enable <= '0;
    end
  end
endmodule
`default_nettype wire
