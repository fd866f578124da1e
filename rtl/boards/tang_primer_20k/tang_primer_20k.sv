// SPDX-License-Identifier: Apache-2.0
//
// Sipeed Tang Primer 20K on its dock: a Gowin GW2A-18 and a Realtek RTL8201F of 100 Mb/s behind RMII.
//
//            +-----------------+
//   clk27 -->|                 |====> rmii_txd, rmii_tx_en
//            | tang_primer_20k |<==== rmii_refclk, rmii_rxd, rmii_crs_dv, rmii_rx_er
//            |                 |<===> mdc, mdio
//            |                 |----> phy_enable (low: reset)
//            +-----------------+
//
// The PHY gives the clock of both directions; the oscillator is the user clock. Pins: tang_primer_20k.cst. Parameters: see
// board_design.
`default_nettype none
module tang_primer_20k #(
    parameter int DESIGN = example_pkg::FADE,
    parameter int PROTOCOL = 10,
    parameter int PACKETS = 8,
    parameter int BITS = 12,
    parameter int NUMBER = 1
) (
    input  logic       clk27,
    output logic       phy_enable,
    output logic       mdc,
    inout  wire        mdio,
    input  logic       rmii_refclk,
    output logic [1:0] rmii_txd,
    output logic       rmii_tx_en,
    input  logic [1:0] rmii_rxd,
    input  logic       rmii_crs_dv,
    input  logic       rmii_rx_er
);
  // These registers have their values when the FPGA has loaded its bitstream.
  /* verilator lint_off PROCASSINIT */
  logic [3:0] count = 4'd0;
  logic rst = 1'b1;
  /* verilator lint_on PROCASSINIT */
  always_ff @(posedge clk27) begin
    if (count != '1) count <= count + 4'd1;
    rst <= count != '1;
  end

  logic mdio_out, mdio_drive, mdio_in, up, running;
  IOBUF mdio_pad (
      .I  (mdio_out),
      .OEN(!mdio_drive),
      .O  (mdio_in),
      .IO (mdio)
  );

  rmii_board #(
      .DESIGN  (DESIGN),
      .PROTOCOL(PROTOCOL),
      .PACKETS (PACKETS),
      .BITS    (BITS),
      .NUMBER  (NUMBER)
  ) board (
      .clk     (rmii_refclk),
      .user_clk(clk27),
      .*
  );

  logic unused;
  assign unused = &{1'b0, up, running};
endmodule
`default_nettype wire
