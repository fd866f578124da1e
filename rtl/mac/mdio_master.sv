// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes a register of a PHY: the management interface (IEEE 802.3 clause 22.2.4.5).
//
//                 +-------------+
//   request ----->|             |----> mdc
//   write, phy ==>| mdio_master |----> mdio_out, mdio_drive
//   index, wdata =>             |<---- mdio_in
//   ready, done <-|             |====> rdata, answered (with done)
//                 +-------------+
//
// A frame begins when request and ready are high. mdc has a period of HALF * 2 clocks, and rests between frames; it must not
// be shorter than 400 ns. answered: the PHY has driven the turnaround bit of a read.
`default_nettype none
module mdio_master #(
    parameter int HALF = 32
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        request,
    input  logic        write,
    input  logic [ 4:0] phy,
    input  logic [ 4:0] index,
    input  logic [15:0] wdata,
    output logic        ready,
    output logic        done,
    output logic [15:0] rdata,
    output logic        answered,
    output logic        mdc,
    output logic        mdio_out,
    output logic        mdio_drive,
    input  logic        mdio_in
);
  localparam int HALF_BITS = $clog2(HALF);
  localparam logic [5:0] PREAMBLE = 6'd32;
  localparam logic [5:0] TURNAROUND = 6'd46;  // the bits before are the master's in a read, too
  localparam logic [5:0] LAST = 6'd63;
  localparam logic [1:0] START = 2'b01;
  localparam logic [1:0] READ = 2'b10;
  localparam logic [1:0] WRITE = 2'b01;
  localparam logic [1:0] TURN = 2'b10;

  logic [HALF_BITS-1:0] clocks;
  logic busy, in, reading;
  logic [ 5:0] at;
  logic [31:0] frame;
  sync_bits sync_in (
      .clk(clk),
      .d  (mdio_in),
      .q  (in)
  );
  assign ready = !busy && !done;

  // The PHY reads at the rising edge of mdc and changes behind it: what it sends is taken before the next one.
  always_ff @(posedge clk) begin
    done   <= 1'b0;
    clocks <= clocks == HALF_BITS'(HALF - 1) ? '0 : clocks + 1'b1;
    if (!busy) begin
      mdc <= 1'b0;
      mdio_drive <= 1'b0;
      clocks <= '0;
      at <= '0;
      frame <= {START, write ? WRITE : READ, phy, index, TURN, wdata};
      if (request && ready) begin
        busy <= 1'b1;
        reading <= !write;
        mdio_drive <= 1'b1;
        mdio_out <= 1'b1;
      end
    end else if (clocks == HALF_BITS'(HALF - 1)) begin
      mdc <= !mdc;
      if (!mdc) begin
        if (at == TURNAROUND + 6'd1) answered <= !in;
        rdata <= {rdata[14:0], in};
      end else begin
        at <= at + 6'd1;
        mdio_out <= at + 6'd1 < PREAMBLE || frame[31];
        if (at + 6'd1 >= PREAMBLE) frame <= frame << 1;
        if (reading && at + 6'd1 == TURNAROUND) mdio_drive <= 1'b0;
        if (at == LAST) begin
          busy <= 1'b0;
          done <= 1'b1;
        end
      end
    end
    if (rst) begin
      busy <= 1'b0;
      mdc <= 1'b0;
      mdio_drive <= 1'b0;
    end
  end

  if (HALF < 8) begin : g_check
    $error("mdio_master: HALF must be at least 8");
  end
endmodule
`default_nettype wire
