// SPDX-License-Identifier: Apache-2.0
//
// Makes accesses of a register bus of the user commands of FADE-10G (user clock).
//
//             +-------------+
//   s_cmd_* =>|             |
//   m_rsp_* <=| command_bus |<==> bus_* (to axil_master)
//   clear --->|             |
//             +-------------+
//
// Code 0x01rr reads register rr; 0x02rr writes the argument to it, and the answer is the argument. The answer to another
// code, or to an access that fails, is all ones. An access that is under way when its command is forgotten ends unheard.
`default_nettype none
module command_bus (
    input  logic        clk,
    input  logic        rst,
    input  logic        clear,
    input  logic [15:0] s_cmd_code,
    input  logic [31:0] s_cmd_argument,
    input  logic        s_cmd_valid,
    output logic        s_cmd_ready,
    output logic [63:0] m_rsp_value,
    output logic        m_rsp_valid,
    input  logic        m_rsp_ready,
    output logic        bus_valid,
    output logic        bus_write,
    output logic [ 7:0] bus_address,
    output logic [31:0] bus_wdata,
    input  logic        bus_ready,
    input  logic        bus_error,
    input  logic [31:0] bus_rdata
);
  localparam logic [7:0] READ = 8'h01;
  localparam logic [7:0] WRITE = 8'h02;

  logic forgotten;
  assign s_cmd_ready = !bus_valid && !m_rsp_valid;

  always_ff @(posedge clk) begin
    if (m_rsp_ready) m_rsp_valid <= 1'b0;
    if (clear) begin
      m_rsp_valid <= 1'b0;
      forgotten   <= bus_valid;
    end
    if (s_cmd_valid && s_cmd_ready && !clear) begin
      bus_valid   <= s_cmd_code[15:8] == READ || s_cmd_code[15:8] == WRITE;
      m_rsp_valid <= s_cmd_code[15:8] != READ && s_cmd_code[15:8] != WRITE;
      m_rsp_value <= '1;
      bus_write   <= s_cmd_code[15:8] == WRITE;
      bus_address <= s_cmd_code[7:0];
      bus_wdata   <= s_cmd_argument;
    end
    if (bus_valid && bus_ready) begin
      bus_valid   <= 1'b0;
      m_rsp_valid <= !forgotten && !clear;
      m_rsp_value <= bus_error ? '1 : 64'(bus_write ? bus_wdata : bus_rdata);
      forgotten   <= 1'b0;
    end
    if (rst) {bus_valid, m_rsp_valid, forgotten} <= '0;
  end
endmodule
`default_nettype wire
