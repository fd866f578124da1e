// SPDX-License-Identifier: Apache-2.0
//
// Retransmission time-out from measured round trips (RFC 6298).
//
//               +---------+
//   sample ====>| tcp_rtt |====> timeout (microseconds)
//   valid ----->|         |
//               +---------+
//
// SRTT is kept in eighths, RTTVAR in quarters of a microsecond. RFC 6298 asks for at least a second;
// MINIMUM is a parameter, because a link to a computer beside the board is a thousand times faster.
`default_nettype none
module tcp_rtt #(
    parameter int MINIMUM = 200_000,    // microseconds
    parameter int INITIAL = 1_000_000,
    parameter int MAXIMUM = 8_000_000
) (
    input  logic        clk,
    input  logic        clear,
    input  logic [23:0] sample,
    input  logic        valid,
    output logic [23:0] timeout
);
  if (MINIMUM < 1 || INITIAL < MINIMUM || MAXIMUM < INITIAL || MAXIMUM >= 2 ** 24) begin : g_check
    $error("tcp_rtt: expected 1 <= MINIMUM <= INITIAL <= MAXIMUM < 2^24");
  end

  logic measured;
  logic [26:0] smooth;
  logic [25:0] variation;
  logic [23:0] error;
  logic [26:0] wanted;
  assign error  = sample > smooth[26:3] ? sample - smooth[26:3] : smooth[26:3] - sample;
  assign wanted = 27'(smooth[26:3]) + 27'(variation == '0 ? 26'd1 : variation);

  always_ff @(posedge clk) begin
    if (clear) begin
      measured <= 1'b0;
      timeout  <= 24'(INITIAL);
    end else if (valid) begin
      measured <= 1'b1;
      if (!measured) begin
        smooth <= {sample, 3'b000};
        variation <= {1'b0, sample, 1'b0};
      end else begin
        smooth <= sample > smooth[26:3] ? smooth + 27'(error) : smooth - 27'(error);
        variation <= variation - (variation >> 2) + 26'(error);
      end
    end else if (measured) begin
      if (wanted < 27'(MINIMUM)) timeout <= 24'(MINIMUM);
      else if (wanted > 27'(MAXIMUM)) timeout <= 24'(MAXIMUM);
      else timeout <= wanted[23:0];
    end
  end
endmodule
`default_nettype wire
