// SPDX-License-Identifier: Apache-2.0
//
// What the streams may do now: take words, and be seen as running (transmit clock).
//
//                  +----------+
//   stream =======>|          |----> running[], accept[] (to the socket buffers)
//   write, flags =>| tcp_gate |----> connected[], active[]
//   enable[] ----->|          |====> attempt[] (connections before)
//   again -------->|          |
//                  +----------+
//
// No word is taken but for a connection. `accept` falls when the writer has followed it up (`accepting`).
`default_nettype none
module tcp_gate #(
    parameter int STREAMS = 1,
    parameter int STREAM_BITS = STREAMS > 1 ? $clog2(STREAMS) : 1
) (
    input logic clk,
    input logic rst,
    input logic [STREAM_BITS-1:0] stream,
    input logic write,
    input tcp_pkg::flags_t flags,
    input logic again,  // another connection of the stream begins
    input logic [STREAMS-1:0] enable,
    input logic [STREAMS-1:0] accepting,
    output logic [STREAMS-1:0] accept,
    output logic [STREAMS-1:0] running,
    output logic [STREAMS-1:0] connected,
    output logic [STREAMS-1:0] active,
    output logic [STREAMS-1:0][3:0] attempt
);
  logic [STREAMS-1:0] may_run, may_accept;
  logic runs;
  assign runs = flags.started
      && (flags.state == tcp_pkg::OPEN || flags.state == tcp_pkg::BROKEN || flags.state == tcp_pkg::SYN_SENT);

  always_ff @(posedge clk) begin
    if (write) begin
      connected[stream]  <= flags.state == tcp_pkg::OPEN;
      active[stream]     <= flags.state != tcp_pkg::IDLE;
      may_run[stream]    <= runs;
      may_accept[stream] <= runs && !flags.peer_closed;
    end
    if (again) attempt[stream] <= attempt[stream] + 4'd1;
    running <= enable & may_run;
    accept  <= (enable & may_accept) | (accept & ~accepting);
    if (rst) begin
      connected <= '0;
      active <= '0;
      may_run <= '0;
      may_accept <= '0;
      attempt <= '0;
      {running, accept} <= '0;
    end
  end
  logic unused;
  assign unused = &{1'b0, flags};
endmodule
`default_nettype wire
