// The functions of code_8b10b_pkg, for tests.
module extra_code_8b10b (
    input logic [8:0] octet,
    input logic disparity,
    input logic [9:0] received,
    output logic [10:0] encoded,
    output logic [8:0] decoded
);
  assign encoded = code_8b10b_pkg::encode(octet, disparity);
  assign decoded = code_8b10b_pkg::decode(received);
endmodule
