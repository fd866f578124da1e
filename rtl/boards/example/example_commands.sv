// SPDX-License-Identifier: Apache-2.0
//
// Example user command block: registers, the source's settings, the core's counters (user clock).
//
//                 +------------------+
//   s_cmd_* =====>|                  |====> m_rsp_*
//   clear ------->| example_commands |====> settings of the source
//   status_* <===>|                  |
//                 +------------------+
//
// Codes: 0x01rr reads register rr, 0x02rr writes the argument to it and returns the old value. Every other code, and an
// unknown register, returns all ones.
//
//   00 identity (read only)      05 words after which the source stops (0: never)
//   01 scratch                   06 idle clocks after each word
//   02 pattern: 0 counter,       07 accumulator: a write adds the argument, and answers the sum
//      1 random                  10-1B counters of the transmit side (read only)
//   03 seed, lower half          1F version of the core (read only)
//   04 seed, upper half          20-29 counters of the receive side (read only)
//                                1E the PHY and its link, mac_pkg::phy_t (read only)
`default_nettype none
module example_commands #(
    parameter logic [63:0] IDENTITY = 64'h46414445_31304701,  // "FADE10G", version 1
    parameter int TX_WORDS = 12,
    parameter int RX_WORDS = 10
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        clear,
    // settings of the source after reset
    input  logic        random_default,
    input  logic [63:0] seed_default,
    input  logic [31:0] limit_default,
    input  logic [15:0] gap_default,
    input  logic [15:0] s_cmd_code,
    input  logic [31:0] s_cmd_argument,
    input  logic        s_cmd_valid,
    output logic        s_cmd_ready,
    output logic [63:0] m_rsp_value,
    output logic        m_rsp_valid,
    input  logic        m_rsp_ready,
    input  logic [31:0] phy,
    output logic        random,
    output logic [63:0] seed,
    output logic [31:0] limit,
    output logic [15:0] gap,
    // counters: bit 5 of the index says transmit (0) or receive (1) side
    output logic [ 5:0] status_index,
    output logic        status_request,
    input  logic        status_accepted,
    input  logic [31:0] status_value,
    input  logic        status_valid
);
  localparam logic [7:0] GET = 8'h01;
  localparam logic [7:0] SET = 8'h02;
  localparam logic [7:0] TX_FIRST = 8'h10;
  localparam logic [7:0] RX_FIRST = 8'h20;
  localparam logic [7:0] CORE = 8'h1F;

  typedef enum logic [1:0] {
    IDLE,
    REQUEST,
    WAIT,
    RESPOND
  } state_t;

  state_t state;
  logic [31:0] scratch, accumulator;
  logic [7:0] operation, register;
  logic is_tx_status, is_rx_status, is_core, forget;
  logic [63:0] register_value;

  assign {operation, register} = s_cmd_code;
  assign is_tx_status = register >= TX_FIRST && register < TX_FIRST + 8'(TX_WORDS);
  assign is_rx_status = register >= RX_FIRST && register < RX_FIRST + 8'(RX_WORDS);
  assign is_core = register == CORE;
  assign s_cmd_ready = state == IDLE;
  assign m_rsp_valid = state == RESPOND;
  assign status_request = state == REQUEST;

  always_comb begin
    case (register)
      8'h00:   register_value = IDENTITY;
      8'h01:   register_value = 64'(scratch);
      8'h02:   register_value = 64'(random);
      8'h03:   register_value = 64'(seed[31:0]);
      8'h04:   register_value = 64'(seed[63:32]);
      8'h05:   register_value = 64'(limit);
      8'h06:   register_value = 64'(gap);
      8'h07:   register_value = 64'(accumulator);
      8'h1E:   register_value = 64'(phy);
      default: register_value = '1;
    endcase
  end

  always_ff @(posedge clk) begin
    case (state)
      IDLE:
      if (s_cmd_valid) begin
        state <= RESPOND;
        m_rsp_value <= operation == GET || operation == SET ? register_value : '1;
        if (operation == GET && (is_tx_status || is_rx_status || is_core)) begin
          status_index <= is_core ? link_pkg::STATUS_VERSION : {is_rx_status, 1'b0, register[3:0]};
          state <= REQUEST;
        end
        if (operation == SET) begin
          case (register)
            8'h01:   scratch <= s_cmd_argument;
            8'h02:   random <= s_cmd_argument[0];
            8'h03:   seed[31:0] <= s_cmd_argument;
            8'h04:   seed[63:32] <= s_cmd_argument;
            8'h05:   limit <= s_cmd_argument;
            8'h06:   gap <= s_cmd_argument[15:0];
            8'h07: begin
              accumulator <= accumulator + s_cmd_argument;
              m_rsp_value <= 64'(accumulator + s_cmd_argument);
            end
            default: m_rsp_value <= '1;
          endcase
        end
      end
      REQUEST: if (status_accepted) state <= WAIT;
      WAIT:
      if (status_valid) begin
        m_rsp_value <= 64'(status_value);
        state <= RESPOND;
      end
      default: if (m_rsp_ready) state <= IDLE;
    endcase
    // A status word under way when its command is forgotten is waited for, so that it cannot answer
    // the next one.
    forget <= state == WAIT && (forget || clear);
    if (clear && state == REQUEST && status_accepted) forget <= 1'b1;
    else if (clear && state != WAIT) state <= IDLE;
    if (forget && status_valid) state <= IDLE;
    if (rst) begin
      state <= IDLE;
      forget <= 1'b0;
      scratch <= '0;
      random <= random_default;
      seed <= seed_default;
      limit <= limit_default;
      gap <= gap_default;
      accumulator <= '0;
    end
  end
endmodule
`default_nettype wire
