// Bounded proof of the permit to begin a transmission: what fits is the permit that was given last, and was not used up since.
//
//   free inputs ==> fade_permit ==> assertions
//
// Run by tests/rtl/test_formal.py.
module permit_proof (
    input logic        clk,
    input logic        asked,
    input logic        used,
    input logic        load,
    input logic [29:0] shown
);
  logic rst = 1'b1;
  always_ff @(posedge clk) rst <= 1'b0;

  logic valid, fits;
  logic [29:0] permit;
  fade_permit dut (.*);

  // The permit as it was when it was given; what was compared last, and whether the permit was valid then.
  logic is_given = 1'b0, was_valid = 1'b0;
  logic [29:0] given = '0, compared = '0;
  always_ff @(posedge clk) begin
    if (load) compared <= shown;
    was_valid <= load && valid && !used && !rst;
    if (rst || used) is_given <= 1'b0;
    else if (asked && !is_given) begin
      is_given <= 1'b1;
      given <= permit;
    end
  end

  always_comb
    if (!rst) begin
      assert (valid == is_given);
      if (valid) assert (permit == given && permit != '0);
      if (fits) assert (is_given);
      if (was_valid) assert (fits == (compared == given));
    end
endmodule
