// A small crate with its memories, whose samples the test gives. The memory port answers late and
// pauses at random, as an external memory does.
module extra_fadc #(
    parameter int SAMPLES = 2,
    parameter int MODULES = 2,
    parameter int CHANNELS = 2,
    parameter int LINKS = 1,
    parameter int BITS = 10,
    parameter int WINDOWS = 16,
    parameter int FOLLOW = 0
) (
    input  logic                                        clk,
    input  logic                                        rst,
    input  logic                                        start,
    input  logic                                        enable,
    input  logic [       63:0]                          start_record,
    input  logic [       63:0]                          start_sec,
    input  logic [       31:0]                          start_nsec,
    input  logic [       17:0]                          window_ticks,
    input  logic [       23:0]                          keepalive,
    input  logic [       31:0]                          limit,
    input  logic [MODULES-1:0]                          module_enable,
    input  logic [MODULES-1:0][SAMPLES*CHANNELS*12-1:0] samples,
    input  logic [       79:0]                          time_now,
    input  logic                                        time_locked,
    output logic                                        event_off,
    input  logic                                        config_valid,
    input  logic                                        config_all,
    input  logic [        3:0]                          config_module,
    input  logic [        3:0]                          config_channel,
    input  logic [        1:0]                          config_item,
    input  logic [       15:0]                          config_value,
    output logic [  LINKS-1:0][                   63:0] m_axis_tdata,
    output logic [  LINKS-1:0]                          m_axis_tvalid,
    input  logic [  LINKS-1:0]                          m_axis_tready,
    output logic [  LINKS-1:0]                          m_axis_tlast,
    output logic                                        bad_window,
    output logic [       31:0]                          version,
    output logic [  LINKS-1:0]                          running,
    output logic [  LINKS-1:0]                          idle,
    output logic [  LINKS-1:0][               9*32-1:0] counters
);
  localparam int DELAY = 7;
  localparam logic [31:0] SEED = 32'h2545F491;

  logic [LINKS-1:0][link_pkg::WORDS_BITS-1:0] m_axis;
  for (genvar l = 0; l < LINKS; l++) begin : g_words
    assign {m_axis_tdata[l], m_axis_tvalid[l], m_axis_tlast[l]} = m_axis[l];
  end

  logic [LINKS-1:0] write_valid, write_ready, read_valid, read_ready, data_valid;
  logic [LINKS-1:0][BITS-1:0] write_address, read_address;
  logic [LINKS-1:0][63:0] write_data, data;

  fadc_core #(
      .SAMPLES (SAMPLES),
      .MODULES (MODULES),
      .CHANNELS(CHANNELS),
      .LINKS   (LINKS),
      .BITS    (BITS),
      .WINDOWS (WINDOWS),
      .INBOX   (256),
      .FOLLOW  (FOLLOW)
  ) core (
      .follow(FOLLOW != 0),
      .timeout(32'd64),
      .source_id(32'hC0DA0001),
      .memory_write_valid(write_valid),
      .memory_write_ready(write_ready),
      .memory_write_address(write_address),
      .memory_write_data(write_data),
      .memory_read_valid(read_valid),
      .memory_read_ready(read_ready),
      .memory_read_address(read_address),
      .memory_data_valid(data_valid),
      .memory_data(data),
      .*
  );

  logic [31:0] random;
  always_ff @(posedge clk) begin
    random <= rst ? SEED : {random[30:0], random[31] ^ random[21] ^ random[1] ^ random[0]};
  end
  for (genvar l = 0; l < LINKS; l++) begin : g_memory
    logic ready_w, ready_r, valid;
    logic [63:0] word;
    logic [DELAY-1:0] valids;
    logic [DELAY-1:0][63:0] words;
    assign write_ready[l] = ready_w && (random[l] || random[4]);
    assign read_ready[l]  = ready_r && (random[l+8] || random[12]);
    fadc_memory #(
        .BITS(BITS)
    ) memory (
        .clk          (clk),
        .rst          (rst),
        .write_valid  (write_valid[l] && write_ready[l]),
        .write_ready  (ready_w),
        .write_address(write_address[l]),
        .write_data   (write_data[l]),
        .read_valid   (read_valid[l] && read_ready[l]),
        .read_ready   (ready_r),
        .read_address (read_address[l]),
        .data_valid   (valid),
        .data         (word)
    );
    always_ff @(posedge clk) begin
      valids <= rst ? '0 : {valids[DELAY-2:0], valid};
      words  <= {words[DELAY-2:0], word};
    end
    assign data_valid[l] = valids[DELAY-1];
    assign data[l] = words[DELAY-1];
  end
endmodule
