// SPDX-License-Identifier: Apache-2.0
//
// Makes AXI4-Lite transactions of the accesses of a register bus (one clock).
//
//             +-------------+
//   bus_* <==>| axil_master |<==> m_axil_*
//             +-------------+
//
// The bus is that of udp_control: bus_valid, write, address (of a word) and data are stable until bus_ready, and bus_error
// comes with it. One transaction at a time; a slave that does not answer blocks the bus.
`default_nettype none
module axil_master #(
    parameter int ADDRESS_BITS = 12
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    bus_valid,
    input  logic                    bus_write,
    input  logic [ADDRESS_BITS-3:0] bus_address,
    input  logic [            31:0] bus_wdata,
    output logic                    bus_ready,
    output logic                    bus_error,
    output logic [            31:0] bus_rdata,
    output logic [ADDRESS_BITS-1:0] m_axil_awaddr,
    output logic [             2:0] m_axil_awprot,
    output logic                    m_axil_awvalid,
    input  logic                    m_axil_awready,
    output logic [            31:0] m_axil_wdata,
    output logic [             3:0] m_axil_wstrb,
    output logic                    m_axil_wvalid,
    input  logic                    m_axil_wready,
    input  logic [             1:0] m_axil_bresp,
    input  logic                    m_axil_bvalid,
    output logic                    m_axil_bready,
    output logic [ADDRESS_BITS-1:0] m_axil_araddr,
    output logic [             2:0] m_axil_arprot,
    output logic                    m_axil_arvalid,
    input  logic                    m_axil_arready,
    input  logic [            31:0] m_axil_rdata,
    input  logic [             1:0] m_axil_rresp,
    input  logic                    m_axil_rvalid,
    output logic                    m_axil_rready
);
  logic busy;
  assign m_axil_awprot = '0;
  assign m_axil_arprot = '0;
  assign m_axil_wstrb  = '1;
  assign m_axil_araddr = m_axil_awaddr;

  always_ff @(posedge clk) begin
    bus_ready <= 1'b0;
    if (m_axil_awready) m_axil_awvalid <= 1'b0;
    if (m_axil_wready) m_axil_wvalid <= 1'b0;
    if (m_axil_arready) m_axil_arvalid <= 1'b0;
    // The access that ends in this clock is still there.
    if (bus_valid && !busy && !bus_ready) begin
      busy <= 1'b1;
      m_axil_awaddr <= {bus_address, 2'b00};
      m_axil_wdata <= bus_wdata;
      {m_axil_awvalid, m_axil_wvalid, m_axil_arvalid} <= {{2{bus_write}}, !bus_write};
      {m_axil_bready, m_axil_rready} <= {bus_write, !bus_write};
    end
    if ((m_axil_bvalid && m_axil_bready) || (m_axil_rvalid && m_axil_rready)) begin
      {busy, m_axil_bready, m_axil_rready} <= '0;
      bus_ready <= 1'b1;
      bus_error <= m_axil_bready ? m_axil_bresp[1] : m_axil_rresp[1];
      bus_rdata <= m_axil_rdata;
    end
    if (rst) begin
      {busy, bus_ready} <= '0;
      {m_axil_awvalid, m_axil_wvalid, m_axil_arvalid, m_axil_bready, m_axil_rready} <= '0;
    end
  end
  logic unused;
  assign unused = &{1'b0, m_axil_bresp, m_axil_rresp};
endmodule
`default_nettype wire
