// SPDX-License-Identifier: Apache-2.0
//
// Controls which streams may accept words, and which count as running (transmit clock).
//
//                  +----------+
//   stream =======>|          |----> running[], accept[] (to the socket buffers)
//   write, flags =>| tcp_gate |----> connected[], active[]
//   enable[] ----->|          |====> attempt[] (connections before)
//   again -------->|          |
//                  +----------+
//
// Words are accepted only for a connection. `accept` falls when the writer has followed it up (`accepting`).
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
  // What was written is looked at a clock later.
  logic [STREAMS-1:0] may_run, may_run_next, may_accept, may_accept_next;
  logic [STREAM_BITS-1:0] here;
  tcp_pkg::state_t state;
  logic written, started, closed, runs;
  assign runs = started && (state == tcp_pkg::OPEN || state == tcp_pkg::BROKEN || state == tcp_pkg::SYN_SENT);
  always_comb begin
    {may_run_next, may_accept_next} = {may_run, may_accept};
    if (written) begin
      may_run_next[here] = runs;
      may_accept_next[here] = runs && !closed;
    end
  end

  always_ff @(posedge clk) begin
    written <= write;
    here <= stream;
    {state, started, closed} <= {flags.state, flags.started, flags.peer_closed};
    if (written) begin
      connected[here] <= state == tcp_pkg::OPEN;
      active[here] <= state != tcp_pkg::IDLE;
    end
    if (again) attempt[stream] <= attempt[stream] + 4'd1;
    {may_run, may_accept} <= {may_run_next, may_accept_next};
    running <= enable & may_run_next;
    accept <= (enable & may_accept_next) | (accept & ~accepting);
    if (rst) begin
      written <= 1'b0;
      {connected, active} <= '0;
      {may_run, may_accept} <= '0;
      attempt <= '0;
      {running, accept} <= '0;
    end
  end
  logic unused;
  assign unused = &{1'b0, flags};
endmodule
`default_nettype wire
