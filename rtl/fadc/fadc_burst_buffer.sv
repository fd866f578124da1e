// SPDX-License-Identifier: Apache-2.0
//
// The burst buffer: stores the payloads of windows in a large memory until the link reads them.
//
//                +-------------------+
//   s_* ========>|                   |====> window_* : windows that are in the memory, in order
//   end_* ======>| fadc_burst_buffer |====> m_data (64 bit), m_valid, m_ready
//                |                   |
//                +-------------------+
//            memory_write_*   memory_read_*, memory_data_*
//
// Payload words are joined in pairs, the first in the lower half; a window begins in a new word. The memory port accepts a
// write or a read with valid and ready. Data comes in the order of the reads, at any time, and includes earlier writes. Up
// to READS reads are under way. 2**BITS words; WINDOWS windows, with the empty ones.
`default_nettype none
module fadc_burst_buffer #(
    parameter int BITS = 16,
    parameter int WINDOWS = 512,
    parameter int READS = 32,
    parameter int META_BITS = 160
) (
    input logic clk,
    input logic rst,

    input  logic [31:0] s_data,
    input  logic        s_valid,
    output logic        s_ready,

    input  logic                 end_valid,
    output logic                 end_ready,
    input  logic                 end_send,
    input  logic [         31:0] end_words,
    input  logic [META_BITS-1:0] end_meta,

    output logic                 window_valid,
    input  logic                 window_ready,
    output logic [         31:0] window_words,
    output logic [META_BITS-1:0] window_meta,

    output logic [63:0] m_data,
    output logic        m_valid,
    input  logic        m_ready,

    output logic            memory_write_valid,
    input  logic            memory_write_ready,
    output logic [BITS-1:0] memory_write_address,
    output logic [    63:0] memory_write_data,
    output logic            memory_read_valid,
    input  logic            memory_read_ready,
    output logic [BITS-1:0] memory_read_address,
    input  logic            memory_data_valid,
    input  logic [    63:0] memory_data,

    output logic [BITS:0] used,
    output logic [BITS:0] most_used
);
  localparam int READ_BITS = $clog2(READS);

  logic half, write, odd_end;
  logic [$clog2(WINDOWS):0] list_used;
  logic [31:0] low;
  logic [BITS:0] head, written, asked, tail;
  logic [READ_BITS:0] waiting, at_output;
  logic room, may_read, accept, list_ready, list_valid;

  // A word pair stands in a register until the memory takes it.
  assign accept = !write || memory_write_ready;
  assign s_ready = accept && room;
  assign odd_end = end_valid && half;
  assign end_ready = accept && list_ready && (!half || room);

  assign memory_write_valid = write;
  always_ff @(posedge clk) begin
    if (memory_write_ready) write <= 1'b0;
    if (s_valid && s_ready) begin
      half <= !half;
      low  <= s_data;
    end
    if ((s_valid && s_ready && half) || (odd_end && end_ready)) begin
      write <= 1'b1;
      memory_write_address <= head[BITS-1:0];
      memory_write_data <= odd_end ? {32'd0, low} : {s_data, low};
      head <= head + 1'b1;
    end
    if (end_valid && end_ready) half <= 1'b0;
    if (write && memory_write_ready) written <= written + 1'b1;
    // A word that is written meanwhile is allowed for.
    used <= head - tail;
    room <= used < (BITS + 1)'(2 ** BITS - 4);
    if (used > most_used) most_used <= used;
    if (rst) begin
      half <= 1'b0;
      write <= 1'b0;
      head <= '0;
      used <= '0;
      written <= '0;
      most_used <= '0;
    end
  end

  stream_fifo #(
      .WIDTH(32 + META_BITS),
      .DEPTH(WINDOWS)
  ) list (
      .clk    (clk),
      .rst    (rst),
      .s_data ({end_words, end_meta}),
      .s_valid(end_valid && end_ready && end_send),
      .s_ready(list_ready),
      .used   (list_used),
      .m_data ({window_words, window_meta}),
      .m_valid(list_valid),
      .m_ready(window_ready)
  );
  assign window_valid = list_valid;

  // Each read has a place in the output FIFO.
  logic out_ready;
  assign memory_read_valid   = asked != written && may_read;
  assign memory_read_address = asked[BITS-1:0];
  stream_fifo #(
      .WIDTH(64),
      .DEPTH(READS)
  ) out (
      .clk    (clk),
      .rst    (rst),
      .s_data (memory_data),
      .s_valid(memory_data_valid),
      .s_ready(out_ready),
      .used   (at_output),
      .m_data (m_data),
      .m_valid(m_valid),
      .m_ready(m_ready)
  );
  always_ff @(posedge clk) begin
    if (memory_read_valid && memory_read_ready) asked <= asked + 1'b1;
    if (memory_data_valid) tail <= tail + 1'b1;
    // Two more are asked for before `may_read` falls.
    may_read <= waiting + at_output < (READ_BITS + 1)'(READS - 2);
    waiting <= waiting + (READ_BITS + 1)'(memory_read_valid && memory_read_ready) - (READ_BITS + 1)'(memory_data_valid);
    if (rst) begin
      asked <= '0;
      tail <= '0;
      waiting <= '0;
      may_read <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, out_ready, list_used};
endmodule
`default_nettype wire
