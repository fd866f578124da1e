// A further protocol for the UDP/IP stack's layers, for tests: it answers a number with the next one.
//
//            +----------------+
//   s_* ====>| extra_protocol |====> request, length, destination, start, data (to the Ethernet layer)
//            +----------------+
//
// Its payload is a 64-bit number, big-endian. One answer at a time.
module extra_protocol #(
    parameter int WIDTH = 8
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic [      3:0] s_count,
    input  logic             s_valid,
    input  logic             s_end,
    input  logic             s_good,
    input  logic [     47:0] s_source,
    output logic             request,
    output logic [     13:0] length,
    output logic [     47:0] destination,
    input  logic             start,
    output logic [WIDTH-1:0] data
);
  logic [63:0] number;
  logic complete, ended, good, behind_valid, busy, sent;
  logic [WIDTH-1:0] behind;
  logic [3:0] behind_count;
  header_strip #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(8)
  ) strip (
      .clk     (clk),
      .rst     (rst),
      .s_data  (s_data),
      .s_count (s_count),
      .s_valid (s_valid),
      .s_end   (s_end),
      .s_good  (s_good),
      .header  (number),
      .complete(complete),
      .m_data  (behind),
      .m_count (behind_count),
      .m_valid (behind_valid),
      .m_end   (ended),
      .m_good  (good)
  );

  logic [63:0] answer;
  assign length = 14'd8;
  always_ff @(posedge clk) begin
    if (s_end && !busy) destination <= s_source;
    if (start) request <= 1'b0;
    if (sent) busy <= 1'b0;
    if (ended && good && complete && !busy) begin
      {busy, request} <= '1;
      answer <= number + 64'd1;
    end
    if (rst) {busy, request} <= '0;
  end

  pull_header #(
      .WIDTH       (WIDTH),
      .HEADER_BYTES(8)
  ) message (
      .clk         (clk),
      .rst         (rst),
      .start       (start),
      .header      (answer),
      .client_start(sent),
      .client_data ('0),
      .data        (data)
  );

  logic unused;
  assign unused = &{1'b0, behind, behind_count, behind_valid};
endmodule
