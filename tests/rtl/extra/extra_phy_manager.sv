// phy_manager with two writes of a board, in a time that suits a simulation.
module extra_phy_manager #(
    parameter int MS = 2000
) (
    input  logic        clk,
    input  logic        rst,
    output logic [31:0] status,
    output logic        phy_enable,
    output logic        mdc,
    output logic        mdio_out,
    output logic        mdio_drive,
    input  logic        mdio_in
);
  phy_manager #(
      .MS         (MS),
      .RESET      (3),
      .SETTLE     (2),
      .POLL       (2),
      .WRITE_COUNT(2),
      .WRITES     ({5'h1F, 16'hABCD, 5'h1E, 16'h0123})
  ) manager (
      .*
  );
endmodule
