// SPDX-License-Identifier: Apache-2.0
//
// Formats and numbers of FADC250 streaming; docs/fadc.md explains them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package fadc_pkg;
  localparam logic [31:0] CORE_VERSION = {8'h12, 8'd0, 8'd1, 8'd0};  // see link_pkg::STATUS_VERSION

  // Message header, as the stream_buffer of the JLab slides.
  localparam logic [31:0] MAGIC = 32'hC0DA2019;
  localparam logic [31:0] FORMAT_VERSION = 32'h00000001;
  localparam int HEADER_BYTES = 48;

  // Payload types of a header word.
  localparam logic [15:0] TYPE_HITS = 16'd1;
  localparam logic [15:0] TYPE_LOST = 16'd2;
  localparam logic [15:0] TYPE_TIMEOUT = 16'd3;
  localparam logic [15:0] TYPE_WINDOWS_LOST = 16'd4;

  // One sample is one tick.
  localparam int TICK_NS = 4;
  // Samples of a pulse that are summed, and the least distance of two leading edges.
  localparam int PULSE_TICKS = 8;
  // Ticks that the time of a hit can tell: a longer window is cut into slices of so many.
  localparam int SLICE_TICKS = 16384;
  localparam int WINDOW_TICKS_MIN = 8;
  localparam int WINDOW_TICKS_MAX = 131072;
  localparam int FOLLOW_TICKS_MIN = 32;  // of windows that follow a time

  // Frames, which are windows or slices of them, under way from the modules to the builder.
  localparam int FRAMES = 64;
  localparam int FRAME_BITS = 8;
  localparam int WINDOW_SLICES = WINDOW_TICKS_MAX / SLICE_TICKS;

  // What modules send: a hit, or the mark that a frame has ended and how many of its hits were lost.
  localparam int HIT_BITS = 31;
  localparam int LOST_BITS = 10;
  localparam logic [LOST_BITS-1:0] LOST_MAX = 10'd1023;

  // Of a generator: its random number, and two pulses that may be under way, by height and age in samples.
  typedef struct packed {
    logic [31:0] random;
    logic [12:0] amplitude0;
    logic [12:0] amplitude1;
    logic [2:0]  age0;
    logic [2:0]  age1;
  } generator_t;
  localparam int GENERATOR_BITS = 64;
  localparam logic [2:0] AGE_END = 3'd7;

  // Places 11 and 12 of the crate hold its switches.
  function automatic [4:0] slot_of(input [4:0] index);
    slot_of = index < 5'd8 ? index + 5'd3 : index + 5'd5;
  endfunction

  // Numbers of lost hits stay at their limit.
  function automatic [LOST_BITS-1:0] add_lost(input [LOST_BITS-1:0] a, input [LOST_BITS-1:0] b);
    reg [LOST_BITS:0] total;
    begin
      total = {1'b0, a} + {1'b0, b};
      add_lost = total[LOST_BITS] ? LOST_MAX : total[LOST_BITS-1:0];
    end
  endfunction

  function automatic [31:0] header_word(input [15:0] payload_type, input [LOST_BITS-1:0] count,
                                        input [4:0] slot);
    header_word = {1'b1, payload_type, count, slot};
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
