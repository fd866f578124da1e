// SPDX-License-Identifier: Apache-2.0
//
// Slow control: reads and writes registers over UDP, with sequence number and reply (docs/protocol/udp.md).
//
//            +-------------+
//   s_* ====>|             |====> request, length, destination, destination_port, sum, start, data
//   (UDP)    | udp_control |====> reg_* (register bus)
//            +-------------+
//
// A request with the sequence, the source and the port of the one before is a repetition: it gets the stored
// reply and nothing is done again. While a request is served another one is dropped (drop_full).
//
// Register bus: reg_valid stands with address, write and data until reg_ready; reg_error with it: no
// such register.
`default_nettype none
module udp_control #(
    parameter int WIDTH = 8
) (
    input  logic             clk,
    input  logic             rst,
    // from the UDP layer
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    input  logic             s_end,
    input  logic             s_good,
    input  logic             s_claimed,         // it is for this port
    input  logic [     31:0] s_source,
    input  logic [     15:0] s_source_port,
    output logic             drop_short,
    output logic             drop_full,
    // to the UDP layer
    output logic             request,
    output logic [     13:0] length,
    output logic [     31:0] destination,
    output logic [     15:0] destination_port,
    output logic [     15:0] sum,
    input  logic             start,
    output logic [WIDTH-1:0] data,
    // register bus
    output logic             reg_valid,
    output logic             reg_write,
    output logic [     31:0] reg_address,
    output logic [     31:0] reg_wdata,
    input  logic             reg_ready,
    input  logic             reg_error,
    input  logic [     31:0] reg_rdata
);
  typedef enum logic [2:0] {
    IDLE,
    DECIDE,
    ACCESS,
    ADD,
    REPLY,
    SEND
  } state_t;
  state_t state;

  logic [udp_pkg::CONTROL_BYTES*8-1:0] message;
  logic complete, ended, good;
  logic [WIDTH-1:0] behind;
  logic [3:0] behind_count;
  logic behind_valid;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(udp_pkg::CONTROL_BYTES)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (s_data),
      .s_count (s_count),
      .s_valid (s_valid),
      .s_end   (s_end),
      .s_good  (s_good && s_claimed),
      .header  (message),
      .complete(complete),
      .m_data  (behind),
      .m_count (behind_count),
      .m_valid (behind_valid),
      .m_end   (ended),
      .m_good  (good)
  );

  logic [31:0] sequence_number, from, last_sequence, last_from, value;
  logic [15:0] from_port, last_port;
  logic [7:0] operation, status;
  logic answered, known_operation, sent;
  assign known_operation = operation == udp_pkg::CONTROL_READ || operation == udp_pkg::CONTROL_WRITE;
  assign drop_short = ended && good && !complete;
  assign drop_full = ended && good && complete && state != IDLE;
  assign reg_valid = state == ACCESS && known_operation;
  assign reg_write = operation == udp_pkg::CONTROL_WRITE;
  assign request = state == REPLY;
  assign length = 14'(udp_pkg::CONTROL_BYTES);
  assign destination = from;
  assign destination_port = from_port;

  logic [31:0] total;
  assign total = 32'(last_sequence[31:16]) + 32'(last_sequence[15:0]) + 32'({operation | udp_pkg::CONTROL_REPLY, status})
      + 32'(reg_address[31:16]) + 32'(reg_address[15:0]) + 32'(value[31:16]) + 32'(value[15:0]);

  always_ff @(posedge clk) begin
    if (s_end && state == IDLE) {from, from_port} <= {s_source, s_source_port};
    case (state)
      IDLE:
      if (ended && good && complete) begin
        sequence_number <= message[127:96];
        state <= DECIDE;
      end
      DECIDE:
      if (answered && {sequence_number, from, from_port} == {last_sequence, last_from, last_port}) begin
        state <= REPLY;
      end else begin
        {last_sequence, last_from, last_port} <= {sequence_number, from, from_port};
        answered <= 1'b1;
        operation <= message[95:88];
        {reg_address, reg_wdata} <= message[63:0];
        value <= message[31:0];
        status <= udp_pkg::STATUS_OPERATION;
        state <= ACCESS;
      end
      ACCESS:
      if (!known_operation) state <= ADD;
      else if (reg_ready) begin
        status <= reg_error ? udp_pkg::STATUS_ADDRESS : udp_pkg::STATUS_DONE;
        if (!reg_write) value <= reg_error ? '0 : reg_rdata;
        state <= ADD;
      end
      ADD: begin
        sum   <= net_pkg::fold(total);
        state <= REPLY;
      end
      REPLY:   if (start) state <= SEND;
      default: ;
    endcase
    if (sent) state <= IDLE;
    if (rst) begin
      state <= IDLE;
      answered <= 1'b0;
    end
  end

  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(udp_pkg::CONTROL_BYTES)
  ) reply (
      .clk(clk),
      .rst(rst),
      .start(start),
      .header({
        last_sequence, operation | udp_pkg::CONTROL_REPLY, status, 16'd0, reg_address, value
      }),
      .client_start(sent),
      .client_data('0),
      .data(data)
  );

  logic unused;
  assign unused = &{1'b0, behind, behind_count, behind_valid, message[87:64]};
endmodule
`default_nettype wire
