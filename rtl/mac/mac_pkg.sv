// Constants shared by the Ethernet MACs (IEEE 802.3).
// A design uses some of them only.
/* verilator lint_off UNUSEDPARAM */
package mac_pkg;
  localparam int MIN_FRAME = 60;  // bytes, without frame check sequence
  localparam int FCS_BYTES = 4;
  localparam int GAP_BYTES = 12;
  localparam int MAX_FRAME = 9018;  // bytes, with frame check sequence: a payload of 9000
  localparam logic [31:0] CRC_RESIDUE = 32'hDEBB20E3;

  localparam logic [7:0] PREAMBLE = 8'h55;
  localparam logic [7:0] SFD = 8'hD5;

  localparam logic [7:0] XGMII_IDLE = 8'h07;
  localparam logic [7:0] XGMII_START = 8'hFB;
  localparam logic [7:0] XGMII_TERMINATE = 8'hFD;
  localparam logic [7:0] XGMII_ERROR = 8'hFE;
endpackage
/* verilator lint_on UNUSEDPARAM */
