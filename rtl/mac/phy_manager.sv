// SPDX-License-Identifier: Apache-2.0
//
// Brings a PHY up and watches its link (IEEE 802.3 clauses 22.2.4 and 28).
//
//               +-------------+
//               |             |----> phy_enable (low: the PHY is in reset)
//   status <====| phy_manager |----> mdc
//               |             |----> mdio_out, mdio_drive
//               +-------------+<---- mdio_in
//
// It holds the PHY in reset for RESET ms, waits SETTLE ms, and looks for the first address that answers, from ADDRESS on. Then
// it makes the board's own WRITES, advertises full duplex alone at (SLOW) 10, 100 and (GIGABIT) 1000 Mb/s, restarts
// autonegotiation, and asks for the link each POLL ms. If the PHY does not answer any more it begins again. MS: clocks of a
// millisecond.
//
// WRITES: {register, value} of each of the WRITE_COUNT writes, the first in the lowest bits. status.link.full_duplex low: the
// other side negotiates no full duplex, and frames will be lost.
`default_nettype none
module phy_manager #(
    parameter int MS = 125_000,
    parameter int RESET = 20,  // milliseconds that the PHY is held in reset
    parameter int SETTLE = 100,  // milliseconds from the reset to the first access
    parameter int POLL = 10,  // milliseconds between two reads of the link
    parameter int ADDRESS = 0,  // first address to look for the PHY
    parameter int GIGABIT = 1,  // 1: 1000 Mb/s is advertised
    parameter int SLOW = 1,  // 1: 10 and 100 Mb/s are advertised
    parameter int WRITE_COUNT = 0,  // number of WRITES
    parameter logic [21*8-1:0] WRITES = '0
) (
    input  logic          clk,
    input  logic          rst,
    output mac_pkg::phy_t status,      // address and link of the PHY (mac_pkg)
    output logic          phy_enable,  // low: the PHY is in reset
    output logic          mdc,         // clock of the management interface
    output logic          mdio_out,    // to the pin of MDIO, with mdio_drive
    output logic          mdio_drive,  // the pin of MDIO is an output
    input  logic          mdio_in      // from the pin of MDIO
);
  // Registers.
  localparam logic [4:0] CONTROL = 5'd0;
  localparam logic [4:0] STATUS = 5'd1;
  localparam logic [4:0] IDENTIFIER = 5'd2;
  localparam logic [4:0] ADVERTISE = 5'd4;
  localparam logic [4:0] PARTNER = 5'd5;
  localparam logic [4:0] ADVERTISE_1000 = 5'd9;
  localparam logic [4:0] PARTNER_1000 = 5'd10;
  localparam logic [15:0] RESTART = 16'h1200;  // autonegotiation
  localparam logic [15:0] FULL_10_100 = SLOW != 0 ? 16'h0141 : 16'h0001;  // of IEEE 802.3
  localparam logic [15:0] FULL_1000 = 16'h0200;

  typedef enum logic [3:0] {
    HOLD,
    SETTLING,
    SEARCH,
    OWN,
    OFFER,
    OFFER_1000,
    BEGIN,
    WAIT,
    ASK_LINK,
    ASK_PARTNER,
    ASK_1000
  } state_t;

  // ---- time ----------------------------------------------------------------------------------
  localparam int MS_BITS = $clog2(MS);
  logic [MS_BITS-1:0] clocks;
  logic ms;
  logic [9:0] waited;  // ms in this state

  // ---- steps ---------------------------------------------------------------------------------
  state_t state;
  logic request, write, ready, done, answered, asking;
  logic [4:0] address, index;
  logic [15:0] wdata, rdata;
  logic [ 3:0] own;
  logic [20:0] own_write;
  logic up, full_1000, found;
  logic [15:0] downs;
  mac_pkg::link_t link;
  assign own_write = WRITES[own[2:0]*21+:21];
  assign asking = state >= SEARCH && state != WAIT;
  assign request = asking && ready;
  assign write = state == OWN || state == OFFER || state == OFFER_1000 || state == BEGIN;
  assign status = {downs, 2'd0, found, address, 4'd0, link};

  always_comb begin
    wdata = '0;
    case (state)
      SEARCH:      index = IDENTIFIER;
      OWN:         {index, wdata} = own_write;
      OFFER:       {index, wdata} = {ADVERTISE, FULL_10_100};
      OFFER_1000:  {index, wdata} = {ADVERTISE_1000, FULL_1000};
      BEGIN:       {index, wdata} = {CONTROL, RESTART};
      ASK_PARTNER: index = PARTNER;
      ASK_1000:    index = PARTNER_1000;
      default:     index = STATUS;
    endcase
  end

  always_ff @(posedge clk) begin
    ms <= clocks == MS_BITS'(MS - 1);
    clocks <= clocks == MS_BITS'(MS - 1) ? '0 : clocks + 1'b1;
    if (ms) waited <= waited + 10'd1;
    case (state)
      HOLD:
      if (waited == 10'(RESET)) begin
        phy_enable <= 1'b1;
        waited <= '0;
        state <= SETTLING;
      end
      SETTLING:
      if (waited == 10'(SETTLE)) begin
        address <= 5'(ADDRESS);
        state   <= SEARCH;
      end
      SEARCH:
      if (done) begin
        own <= '0;
        // All ones are the bus without anyone on it.
        if (answered && rdata != '1) begin
          found <= 1'b1;
          state <= WRITE_COUNT == 0 ? OFFER : OWN;
        end else begin
          address <= address + 5'd1;
        end
      end
      OWN:
      if (done) begin
        own <= own + 4'd1;
        if (own == 4'(WRITE_COUNT - 1)) state <= OFFER;
      end
      OFFER: if (done) state <= GIGABIT != 0 ? OFFER_1000 : BEGIN;
      OFFER_1000: if (done) state <= BEGIN;
      BEGIN:
      if (done) begin
        waited <= '0;
        state  <= WAIT;
      end
      WAIT:
      if (waited == 10'(POLL)) begin
        waited <= '0;
        state  <= ASK_LINK;
      end
      ASK_LINK:
      if (done) begin
        // Its link bit stays low until it is read, and its autonegotiation bit says that what follows is valid.
        up <= rdata[2] && rdata[5];
        state <= GIGABIT != 0 ? ASK_1000 : ASK_PARTNER;
      end
      ASK_1000:
      if (done) begin
        full_1000 <= rdata[11];
        state <= ASK_PARTNER;
      end
      default:  // ASK_PARTNER
      if (done) begin
        link.up <= up;
        if (up) begin
          // A partner that does not negotiate is known by its signals, and taken for half duplex (28.2.3.1).
          link.full_duplex <= full_1000 || rdata[8] || rdata[6];
          link.speed <= full_1000 ? mac_pkg::SPEED_1000 : rdata[8] || rdata[7] ? mac_pkg::SPEED_100 : mac_pkg::SPEED_10;
        end
        if (link.up && !up) downs <= downs + 16'd1;
        waited <= '0;
        state  <= WAIT;
      end
    endcase
    if (done && !write && state != SEARCH && !answered) begin
      // It was reset, or is gone.
      found   <= 1'b0;
      link.up <= 1'b0;
      if (link.up) downs <= downs + 16'd1;
      phy_enable <= 1'b0;
      waited <= '0;
      state <= HOLD;
    end
    if (rst) begin
      state <= HOLD;
      clocks <= '0;
      waited <= '0;
      phy_enable <= 1'b0;
      full_1000 <= 1'b0;
      found <= 1'b0;
      downs <= '0;
      link <= '0;
    end
  end

  mdio_master #(
      .HALF(MS / 2000 < 8 ? 8 : MS / 2000)
  ) master (
      .phy(address),
      .*
  );

  if (WRITE_COUNT > 8) begin : g_check
    $error("phy_manager: WRITE_COUNT must be at most 8");
  end
endmodule
`default_nettype wire
