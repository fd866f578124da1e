// SPDX-License-Identifier: Apache-2.0
//
// Slow control: reads and writes registers over UDP, with sequence number and reply (docs/protocol/udp.md).
//
//            +-------------+
//   s_* ====>|             |====> request, length, destination, destination_port, sum, start, data
//   (UDP)    | udp_control |====> reg_* (register bus)
//            +-------------+
//
// A request with the sequence, the source and the port of the previous one is a repetition: it gets the stored reply and is
// not executed again. While a request is served another one is dropped (drop_full). Register bus: reg_valid, address, write
// and data are stable until reg_ready; reg_error with it: no such register. reg_rdata is reg_wdata unless this is a read.
// s_source and s_source_port are of the request at s_end alone: a frame that follows it at once changes them.
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

  // ---- request -------------------------------------------------------------------------------
  // A request stands in the strip until its reply is sent: what comes meanwhile does not get there.
  logic [udp_pkg::CONTROL_BYTES*8-1:0] message;
  logic complete, ended, good, in_datagram, refused, refuses;
  logic [WIDTH-1:0] behind;
  logic [3:0] behind_count;
  logic behind_valid;
  assign refuses = in_datagram ? refused : state != IDLE;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(udp_pkg::CONTROL_BYTES)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (s_data),
      .s_count (s_count),
      .s_valid (s_valid && !refuses),
      .s_end   (s_end),
      .s_good  (s_good && s_claimed && !refuses),
      .header  (message),
      .complete(complete),
      .m_data  (behind),
      .m_count (behind_count),
      .m_valid (behind_valid),
      .m_end   (ended),
      .m_good  (good)
  );

  logic [31:0] sequence_number, last_sequence, value;
  logic [7:0] operation, status;
  logic answered, known_operation, sent, is_repeated;
  logic [31:0] source;
  logic [15:0] source_port;
  assign sequence_number = message[127:96];
  assign operation = message[95:88];
  assign {reg_address, reg_wdata} = message[63:0];
  assign reg_write = operation != udp_pkg::CONTROL_READ;
  assign known_operation = operation == udp_pkg::CONTROL_READ || operation == udp_pkg::CONTROL_WRITE;
  assign reg_valid = state == ACCESS && known_operation;
  assign request = state == REPLY;
  assign length = 14'(udp_pkg::CONTROL_BYTES);

  // ---- checksum ------------------------------------------------------------------------------
  // Of the reply's words, and zero for the last carry.
  logic [127:0] reply_words;
  logic [  2:0] index;
  assign reply_words = {
    16'd0, value, reg_address, operation | udp_pkg::CONTROL_REPLY, status, sequence_number
  };
  ones_add reply_sum (
      .clk (clk),
      .load(state == DECIDE && !is_repeated),
      .seed('0),
      .add (state == ADD),
      .term(reply_words[index*16+:16]),
      .sum (sum)
  );

  always_ff @(posedge clk) begin
    drop_short <= ended && good && !complete;
    drop_full  <= s_end && s_good && s_claimed && refuses;
    if (s_valid) {in_datagram, refused} <= {1'b1, refuses};
    if (s_end) in_datagram <= 1'b0;
    if (s_end) {source, source_port} <= {s_source, s_source_port};
    is_repeated <= answered && {sequence_number, source, source_port} == {last_sequence, destination, destination_port};
    case (state)
      IDLE: if (ended && good && complete) state <= DECIDE;
      DECIDE:
      if (is_repeated) begin
        state <= REPLY;
      end else begin
        last_sequence <= sequence_number;
        {destination, destination_port} <= {source, source_port};
        answered <= 1'b1;
        index <= '0;
        state <= ACCESS;
      end
      ACCESS: begin
        value <= reg_rdata;
        status <= !known_operation ? udp_pkg::STATUS_OPERATION : reg_error ? udp_pkg::STATUS_ADDRESS : udp_pkg::STATUS_DONE;
        if (reg_error && !reg_write) value <= '0;
        if (reg_ready || !known_operation) state <= ADD;
      end
      ADD: begin
        index <= index + 1'b1;
        if (index == '1) state <= REPLY;
      end
      REPLY: if (start) state <= SEND;
      default: ;
    endcase
    if (sent) state <= IDLE;
    if (rst) begin
      state <= IDLE;
      {answered, in_datagram, drop_short, drop_full} <= '0;
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
        sequence_number, operation | udp_pkg::CONTROL_REPLY, status, 16'd0, reg_address, value
      }),
      .client_start(sent),
      .client_data('0),
      .data(data)
  );

  logic unused;
  assign unused = &{1'b0, behind, behind_count, behind_valid, message[87:64]};
endmodule
`default_nettype wire
