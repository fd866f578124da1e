// SPDX-License-Identifier: Apache-2.0
//
// Runs the program of PTP (ptp.asm) on numbers of 1 to 16 words of 16 bits in memory, word by word.
//
//   PARAMETERS =>+-------------+====> address, write, wdata (0x200 and up)
//   window =====>| ptp_machine |
//                |  ROM, RAM   |<==== rdata, two clocks behind its address
//                +-------------+
//
// An instruction is {operation 4, words minus one or condition 4, a 10, b 10}; a := a op b. Addresses are those of words of
// 16 bits; the first word is the most significant. An instruction takes one clock and six more for each word; a jump or a
// call takes four, a return seven: the next instruction is read meanwhile. PARAMETERS are the first words of the memory;
// the RAM is at 0x000; at 0x380 are the two words of the register that `window` selects, which are two of the lowest words
// of the RAM.
`default_nettype none
module ptp_machine #(
    parameter logic [ptp_program_pkg::PARAMETERS*16-1:0] PARAMETERS = '0
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [ 4:0] window,
    output logic [ 9:0] address,
    output logic        write,
    output logic [15:0] wdata,
    input  logic [15:0] rdata
);
  localparam int WORD = 28;

  typedef enum logic [3:0] {
    MOVE     = 4'b0000,
    ADD      = 4'b0001,
    SUBTRACT = 4'b0010,
    AND      = 4'b0100,
    SHIFT    = 4'b0110,  // to the right, by one, with the sign
    CALL     = 4'b0111,
    JUMP     = 4'b1000,
    RETURN   = 4'b1001,
    COMPARE  = 4'b1010,
    TEST     = 4'b1100
  } operation_t;

  // One state at a time; FIRST shows b's word to the memories, the others a's; the two behind it only wait.
  localparam int FETCH = 0, FETCHED = 1, DECODE = 2, FIRST = 3, FOURTH = 6, RESULT = 7, STORE = 8;
  logic [8:0] state;

  // ---- program -------------------------------------------------------------------------------
  (* rom_style = "block" *)
  logic [WORD-1:0] rom[1024];
  initial for (int i = 0; i < 1024; i++) rom[i] = ptp_program_pkg::PROGRAM[i*WORD+:WORD];
  logic [WORD-1:0] read, fetched;
  logic [9:0] pc, a, b;
  logic [3:0] count;
  operation_t operation;
  always_ff @(posedge clk) {read, fetched} <= {rom[pc], read};

  // ---- memory --------------------------------------------------------------------------------
  (* ram_style = "block" *)
  logic [15:0] ram[512];
  initial begin
    for (int i = 0; i < 512; i++) ram[i] = ptp_program_pkg::DATA[i*16+:16];
    for (int i = 0; i < ptp_program_pkg::PARAMETERS; i++)
    ram[ptp_program_pkg::PARAMETERS_AT+i] = PARAMETERS[(ptp_program_pkg::PARAMETERS-1-i)*16+:16];
  end
  logic [8:0] ram_address;
  logic [15:0] ram_word, ram_late, word, held;
  logic in_window, is_outside, outside_late;
  assign address = state[FIRST] ? b : a;
  assign in_window = address[9:7] == 3'b111;
  assign ram_address = in_window ? {3'd0, window, address[0]} : address[8:0];
  assign write = state[STORE] && !operation[3];
  always_ff @(posedge clk) begin
    ram_word <= ram[ram_address];
    if (write && (!address[9] || in_window)) ram[ram_address] <= wdata;
    // Nothing is between a block RAM and a register.
    ram_late <= ram_word;
    is_outside <= address[9] && !in_window;
    outside_late <= is_outside;
    word <= outside_late ? rdata : ram_late;
  end

  // ---- arithmetic ----------------------------------------------------------------------------
  // In RESULT `word` is a's, and `held` b's.
  logic carry, zero, first, carry_in, taken;
  logic [16:0] sum;
  assign carry_in = !first ? carry : operation == SUBTRACT || operation == COMPARE;
  assign sum = {1'b0, operation == MOVE ? 16'd0 : word}
      + {1'b0, operation == SUBTRACT || operation == COMPARE ? ~held : held} + 17'(carry_in);

  // Conditions, the lowest bit inverts: always, zero, carry (no borrow), negative.
  always_comb begin
    case (count[2:1])
      2'd0: taken = 1'b1;
      2'd1: taken = zero;
      2'd2: taken = carry;
      default: taken = wdata[15];
    endcase
    if (count[0]) taken = !taken;
  end

  always_ff @(posedge clk) begin
    state <= {state[STORE-1:0], 1'b0};
    if (state[DECODE]) begin
      operation <= operation_t'(fetched[27:24]);
      {count, a, b} <= fetched[23:0];
      pc <= pc + 1'b1;
      first <= 1'b1;
    end
    if (state[FIRST]) begin
      if (operation == JUMP) begin
        if (taken) pc <= b;
        state <= 9'd1 << FETCH;
      end
      if (operation == CALL) begin
        wdata <= 16'(pc);
        pc <= b;
        state <= 9'd1 << STORE;
      end
    end
    if (state[FOURTH]) begin
      held <= word;
      if (operation == RETURN) begin
        pc <= word[9:0];
        state <= 9'd1 << FETCH;
      end
    end
    if (state[RESULT]) begin
      case (operation)
        AND, TEST: wdata <= word & held;
        SHIFT: {wdata, carry} <= {first ? word[15] : carry, word};
        default: {carry, wdata} <= sum;
      endcase
    end
    if (state[STORE]) begin
      if (operation != CALL) zero <= (first || zero) && wdata == '0;
      first <= 1'b0;
      // From the least significant word up, but for a shift.
      a <= operation == SHIFT ? a + 1'b1 : a - 1'b1;
      b <= b - 1'b1;
      count <= count - 1'b1;
      state <= operation == CALL ? 9'd1 << FETCHED : count == '0 ? 9'd1 << DECODE : 9'd1 << FIRST;
    end
    if (rst) begin
      state <= 9'd1 << FETCH;
      pc <= '0;
    end
  end
endmodule
`default_nettype wire
