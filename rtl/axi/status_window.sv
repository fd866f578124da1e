// SPDX-License-Identifier: Apache-2.0
//
// Counters of a core, read as registers (one clock).
//
//                  +---------------+
//   request ------>|               |====> status_index
//   address ======>|               |----> status_request
//   ack <----------| status_window |<---- status_accepted
//   data <=========|               |<==== status_value
//   enable ------->|               |<---- status_valid
//                  +---------------+
//
// `request` with the address of a word is answered once, by `ack` with the data. A core that is in reset (enable low), or does
// not answer for TIMEOUT clocks because a clock of its MAC stands, is answered for: with all ones. Its late answer is not
// taken for that to the next request.
`default_nettype none
module status_window #(
    parameter int INDEX_BITS = 6,
    parameter int TIMEOUT = 1024
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  enable,
    input  logic                  request,
    input  logic [INDEX_BITS-1:0] address,
    output logic                  ack,
    output logic [          31:0] data,
    output logic [INDEX_BITS-1:0] status_index,
    output logic                  status_request,
    input  logic                  status_accepted,
    input  logic [          31:0] status_value,
    input  logic                  status_valid
);
  localparam int TIME_BITS = $clog2(TIMEOUT + 1);

  // asked: by the user; under_way: in the core; stale: in the core, and answered for.
  logic asked, under_way, stale;
  logic [TIME_BITS-1:0] left;

  always_ff @(posedge clk) begin
    ack <= 1'b0;
    if (left != '0) left <= left - 1'b1;
    if (status_request && status_accepted) {status_request, under_way} <= 2'b01;
    if (status_valid) {under_way, stale} <= '0;
    if (request) begin
      asked <= 1'b1;
      left <= stale ? '0 : TIME_BITS'(TIMEOUT);
      status_index <= address;
      status_request <= !stale;
    end else if (asked) begin
      if (status_valid && !stale) begin
        {ack, asked} <= 2'b10;
        data <= status_value;
      end else if (left == '0 || !enable) begin
        {ack, asked} <= 2'b10;
        data <= '1;
        status_request <= 1'b0;
        stale <= under_way || (status_request && status_accepted);
      end
    end
    if (rst || !enable) {status_request, under_way, stale} <= '0;
    if (rst) {ack, asked} <= '0;
  end
endmodule
`default_nettype wire
