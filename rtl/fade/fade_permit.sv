// SPDX-License-Identifier: Apache-2.0
//
// The permit to begin a transmission, which a board gives to who asks, and which is used up by the first transmission or RESET
// behind it (transmit clock; docs/protocol/fade10g.md, "The permit").
//
//             +-------------+
//   asked --->|             |----> valid
//   used ---->| fade_permit |====> permit
//   load ---->|             |
//   shown ===>|             |----> fits
//             +-------------+
//
// A START that is repeated, or late, may come when the board was reset or switched off behind the first one. It is obeyed only
// with the permit that is valid now, so it begins nothing.
//
// `asked`: a START without the permit; from the next clock on there is one, which stays until `used`: a transmission begins,
// or a RESET was obeyed. `shown` is compared with it while `load` is high; `fits` tells the outcome one clock later.
//
// The permit is a shift register of maximum length that runs while there is none. So its value depends on when the board was
// switched on and on when it was asked, and two are the same with a chance of 1 in 2^30.
`default_nettype none
module fade_permit (
    input  logic        clk,
    input  logic        rst,
    input  logic        asked,
    input  logic        used,
    output logic        valid,
    output logic [29:0] permit,
    input  logic        load,
    input  logic [29:0] shown,
    output logic        fits
);
  localparam logic [29:0] TAPS = 30'h0000_0053;  // x^30 + x^6 + x^4 + x + 1

  logic [1:0] same;  // by 15 bits
  assign fits = valid && &same;

  always_ff @(posedge clk) begin
    if (load) for (int i = 0; i < 2; i++) same[i] <= shown[i*15+:15] == permit[i*15+:15];
    if (!valid && !asked) permit <= {permit[28:0], 1'b0} ^ (permit[29] ? TAPS : 30'd0);
    if (asked) valid <= 1'b1;
    if (used) valid <= 1'b0;
    if (rst) begin
      valid  <= 1'b0;
      permit <= 30'd1;
    end
  end
endmodule
`default_nettype wire
