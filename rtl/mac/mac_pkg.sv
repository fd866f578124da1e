// SPDX-License-Identifier: Apache-2.0
//
// Constants shared by the Ethernet MACs (IEEE 802.3).
// A design uses only some of them.
`default_nettype none
/* verilator lint_off UNUSEDPARAM */
package mac_pkg;
  localparam int MIN_FRAME = 60;  // bytes, without frame check sequence
  localparam int FCS_BYTES = 4;
  localparam int GAP_BYTES = 12;
  localparam int MAX_FRAME = 9018;  // bytes, with frame check sequence: a payload of 9000
  localparam logic [47:0] CONTROL_ADDRESS = 48'h0180C2000001;
  localparam logic [15:0] ETHERTYPE_CONTROL = 16'h8808;
  localparam logic [15:0] OPCODE_PAUSE = 16'h0001;

  localparam logic [31:0] CRC_POLYNOMIAL = 32'hEDB88320;  // reflected
  localparam logic [31:0] CRC_RESIDUE = 32'hDEBB20E3;

  // The state of a CRC after `count` more bytes of zero.
  function automatic [31:0] crc_zeros(input [31:0] state, input integer count);
    integer i;
    begin
      crc_zeros = state;
      for (i = 0; i < 8 * count; i = i + 1)
      crc_zeros = crc_zeros[0] ? (crc_zeros >> 1) ^ CRC_POLYNOMIAL : crc_zeros >> 1;
    end
  endfunction

  localparam logic [7:0] PREAMBLE = 8'h55;
  localparam logic [7:0] SFD = 8'hD5;

  // State of the link of a PHY; the code of the speed is that of RGMII's in-band status (RGMII 2.0, table 4).
  localparam logic [1:0] SPEED_10 = 2'd0;
  localparam logic [1:0] SPEED_100 = 2'd1;
  localparam logic [1:0] SPEED_1000 = 2'd2;
  typedef struct packed {
    logic full_duplex;
    logic [1:0] speed;
    logic up;
  } link_t;
  // What a board knows of its PHY, as a register.
  typedef struct packed {
    logic [15:0] downs;  // how often the link went down
    logic [1:0] unused_high;
    logic found;
    logic [4:0] address;
    logic [3:0] unused_low;
    link_t link;
  } phy_t;

  localparam logic [7:0] XGMII_IDLE = 8'h07;
  localparam logic [7:0] XGMII_START = 8'hFB;
  localparam logic [7:0] XGMII_TERMINATE = 8'hFD;
  localparam logic [7:0] XGMII_ERROR = 8'hFE;
endpackage
/* verilator lint_on UNUSEDPARAM */
`default_nettype wire
