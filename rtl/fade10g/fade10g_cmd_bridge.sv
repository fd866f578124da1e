// SPDX-License-Identifier: Apache-2.0
//
// Carries user commands to the user clock, and their responses back.
//
//                    +--------------------+
//   command_* ======>|                    |====> m_cmd_* (code, sequence, argument)
//   response_* <=====| fade10g_cmd_bridge |<==== s_rsp_* (value)
//   clear ---------->|                    |----> user_clear, cleared
//                    +--------------------+
//         clk (transmit)              user_clk
//
// The command register stores the last command, for the user (command_send) or not; it may be loaded while command_ready is
// high. There is one command at a time. A response is stable from response_valid until response_done. While
// user_clear is high (a RESET from the computer) the user block must forget its current command; the response would
// be discarded here.
`default_nettype none
module fade10g_cmd_bridge (
    input  logic        clk,
    input  logic        rst,
    input  logic        command_load,
    input  logic [63:0] command_new,
    output logic [63:0] command,
    input  logic        command_send,
    output logic        command_ready,
    output logic [63:0] response,
    output logic        response_valid,
    input  logic        response_done,
    input  logic        clear,
    output logic        cleared,
    input  logic        user_clk,
    input  logic        user_rst,
    output logic        user_clear,
    output logic [15:0] m_cmd_code,
    output logic [15:0] m_cmd_sequence,
    output logic [31:0] m_cmd_argument,
    output logic        m_cmd_valid,
    input  logic        m_cmd_ready,
    input  logic [63:0] s_rsp_value,
    input  logic        s_rsp_valid,
    output logic        s_rsp_ready
);
  logic arrived, under_way, back_ready, back_valid;

  sync_bits sync_clear (
      .clk(user_clk),
      .d  (clear),
      .q  (user_clear)
  );
  sync_bits sync_cleared (
      .clk(clk),
      .d  (user_clear),
      .q  (cleared)
  );

  cdc_register #(
      .WIDTH(64)
  ) command_register (
      .clk (clk),
      .load(command_load),
      .d   (command_new),
      .q   (command)
  );
  assign {m_cmd_code, m_cmd_sequence, m_cmd_argument} = command;

  cdc_token to_user (
      .s_clk  (clk),
      .s_rst  (rst),
      .s_valid(command_send),
      .s_ready(command_ready),
      .m_clk  (user_clk),
      .m_rst  (user_rst),
      .m_valid(arrived),
      .m_ready(user_clear || (m_cmd_valid && m_cmd_ready))
  );
  cdc_handshake #(
      .WIDTH(64)
  ) from_user (
      .s_clk  (user_clk),
      .s_rst  (user_rst),
      .s_data (s_rsp_value),
      .s_valid(back_valid),
      .s_ready(back_ready),
      .m_clk  (clk),
      .m_rst  (rst),
      .m_data (response),
      .m_valid(response_valid),
      .m_ready(response_done)
  );

  assign m_cmd_valid = arrived && !under_way && !user_clear;
  assign back_valid  = s_rsp_valid && under_way && !user_clear;
  assign s_rsp_ready = user_clear || (under_way && back_ready);

  always_ff @(posedge user_clk) begin
    if (user_rst || user_clear) under_way <= 1'b0;
    else if (m_cmd_valid && m_cmd_ready) under_way <= 1'b1;
    else if (back_valid && back_ready) under_way <= 1'b0;
  end
endmodule
`default_nettype wire
