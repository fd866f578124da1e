// Example design: a link core, a source and user commands, without a MAC.
//
//                    +-----------------+
//   settings =======>| example_design |====> m_axis_* (to the MAC)
//   mac_stat_* =====>|                 |<==== s_mac_* (from the MAC)
//                    +-----------------+
//         user_clk                    tx_clk, rx_clk
//
// The source is the pattern, or with CRATE a crate of FADC modules (see example_crate): then the seed
// is that of its pulses, the limit is in windows, the gap is the length of a window in ticks.
// mac_stat: pulses of the MAC's receive side (rx_clk): error, runt, oversize, bad FCS.
module example_design #(
    parameter int WIDTH = 64,
    parameter int PROTOCOL = 10,  // FADE-10G; 1: FADE v1
    parameter int PACKETS = 32,
    parameter int TICK_INIT = 65536,
    parameter int CRATE = 0
) (
    input  logic               rst,
    input  logic               user_clk,
    input  logic [       47:0] mac_address,
    input  logic [       31:0] first_packet,
    input  logic [       15:0] first_sequence,
    input  logic               paper_rule,
    input  logic               source_random,
    input  logic [       63:0] source_seed,
    input  logic [       31:0] source_limit,
    input  logic [       15:0] source_gap,
    output logic               running,
    input  logic               tx_clk,
    output logic               tx_rst,
    output logic [  WIDTH-1:0] m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic               m_axis_tvalid,
    input  logic               m_axis_tready,
    output logic               m_axis_tlast,
    output logic               m_axis_tuser,
    output logic [       31:0] status_sent,
    output logic [       31:0] status_retransmitted,
    output logic [       31:0] status_early,
    output logic [       31:0] status_delay,
    input  logic               rx_clk,
    output logic               rx_rst,
    input  logic [  WIDTH-1:0] s_mac_tdata,
    input  logic [WIDTH/8-1:0] s_mac_tkeep,
    input  logic               s_mac_tvalid,
    input  logic               s_mac_tlast,
    input  logic               s_mac_tuser,
    input  logic [        3:0] mac_stat
);
  localparam int TX_WORDS = 12;
  localparam int RX_WORDS = 10;

  logic user_rst, user_running, user_clear;
  sync_reset user_reset (
      .clk    (user_clk),
      .rst_in (rst),
      .rst_out(user_rst)
  );
  sync_reset tx_reset (
      .clk    (tx_clk),
      .rst_in (rst),
      .rst_out(tx_rst)
  );
  sync_reset rx_reset (
      .clk    (rx_clk),
      .rst_in (rst),
      .rst_out(rx_rst)
  );

  logic random;
  logic [63:0] seed;
  logic [31:0] limit;
  logic [15:0] gap;
  logic [63:0] source_tdata;
  logic source_tvalid, source_tready, source_tlast;

  if (CRATE == 0) begin : g_pattern
    pattern_source source (
        .clk          (user_clk),
        .rst          (user_rst),
        .running      (user_running),
        .random       (random),
        .seed         (seed),
        .gap          (gap),
        .limit        (limit),
        .block        ('0),
        .m_axis_tdata (source_tdata),
        .m_axis_tvalid(source_tvalid),
        .m_axis_tready(source_tready),
        .m_axis_tlast (source_tlast)
    );
  end else begin : g_crate
    localparam logic [31:0] SOURCE_ID = 32'hC0DA0001;
    localparam logic [63:0] FIRST_SECOND = 64'd1_700_000_000;
    localparam logic [19:0] PULSE_RATE = 20'd419;  // 100,000 a second and channel
    logic begun, crate_rst, link_running, idle;
    logic [9*32-1:0] crate_counters;
    // Each transmission begins anew.
    always_ff @(posedge user_clk) begin
      crate_rst <= user_rst || !user_running;
      begun <= !crate_rst;
    end
    example_crate crate (
        .clk          (user_clk),
        .rst          (crate_rst),
        .start        (!crate_rst && !begun),
        .source_id    (SOURCE_ID),
        .first_window (64'd0),
        .first_sec    (FIRST_SECOND),
        .first_nsec   (32'd0),
        .window_ticks (18'(gap)),
        .keepalive    (24'd0),
        .windows      (limit),
        .module_enable(16'hFFFF),
        .pulse_seed   (seed[31:0]),
        .pulse_rate   (PULSE_RATE),
        .burst_rate   (20'd0),
        .burst_every  (32'd0),
        .burst_ticks  (32'd0),
        .noise        (4'd4),
        .m_axis_tdata (source_tdata),
        .m_axis_tvalid(source_tvalid),
        .m_axis_tready(source_tready),
        .m_axis_tlast (source_tlast),
        .running      (link_running),
        .idle         (idle),
        .counters     (crate_counters)
    );
    logic unused;
    assign unused = &{1'b0, random, seed[63:32], link_running, idle, crate_counters};
  end

  logic [15:0] cmd_code, cmd_sequence;
  logic [31:0] cmd_argument;
  logic cmd_valid, cmd_ready, rsp_valid, rsp_ready;
  logic [63:0] rsp_value;
  logic [ 4:0] status_index;
  logic status_request, tx_accepted, rx_accepted, tx_status_valid, rx_status_valid;
  logic [31:0] tx_status_value, rx_status_value;

  example_commands #(
      .TX_WORDS(TX_WORDS),
      .RX_WORDS(RX_WORDS)
  ) commands (
      .clk            (user_clk),
      .rst            (user_rst),
      .clear          (user_clear),
      .random_default (source_random),
      .seed_default   (source_seed),
      .limit_default  (source_limit),
      .gap_default    (source_gap),
      .s_cmd_code     (cmd_code),
      .s_cmd_argument (cmd_argument),
      .s_cmd_valid    (cmd_valid),
      .s_cmd_ready    (cmd_ready),
      .m_rsp_value    (rsp_value),
      .m_rsp_valid    (rsp_valid),
      .m_rsp_ready    (rsp_ready),
      .random         (random),
      .seed           (seed),
      .limit          (limit),
      .gap            (gap),
      .status_index   (status_index),
      .status_request (status_request),
      .status_accepted(status_index[4] ? rx_accepted : tx_accepted),
      .status_value   (status_index[4] ? rx_status_value : tx_status_value),
      .status_valid   (tx_status_valid || rx_status_valid)
  );

  logic status_running, status_stopping, status_error;
  logic [31:0] status_acknowledged, status_protocol_errors;
  logic [15:0] status_stale_acks, status_wrong_source, status_busy;
  logic [15:0] status_drop_destination, status_drop_ethertype, status_drop_version;
  logic [15:0] status_drop_code, status_drop_short, status_drop_full;
  logic [TX_WORDS-1:0][31:0] tx_values;
  logic [RX_WORDS-1:0][31:0] rx_values;
  logic [3:0][15:0] mac_count;

  assign tx_values[0]  = status_sent;
  assign tx_values[1]  = status_retransmitted;
  assign tx_values[2]  = status_acknowledged;
  assign tx_values[3]  = status_early;
  assign tx_values[4]  = status_protocol_errors;
  assign tx_values[5]  = status_delay;
  assign tx_values[6]  = 32'(status_stale_acks);
  assign tx_values[7]  = 32'(status_wrong_source);
  assign tx_values[8]  = 32'(status_busy);
  assign tx_values[9]  = 32'(status_running);
  assign tx_values[10] = 32'(status_stopping);
  assign tx_values[11] = 32'(status_error);

  assign rx_values[0]  = 32'(mac_count[0]);
  assign rx_values[1]  = 32'(mac_count[1]);
  assign rx_values[2]  = 32'(mac_count[2]);
  assign rx_values[3]  = 32'(mac_count[3]);
  assign rx_values[4]  = 32'(status_drop_destination);
  assign rx_values[5]  = 32'(status_drop_ethertype);
  assign rx_values[6]  = 32'(status_drop_version);
  assign rx_values[7]  = 32'(status_drop_code);
  assign rx_values[8]  = 32'(status_drop_short);
  assign rx_values[9]  = 32'(status_drop_full);

  event_counters #(
      .EVENTS(4),
      .WIDTH (16)
  ) mac_stat_counters (
      .clk  (rx_clk),
      .clear(rx_rst),
      .pulse(mac_stat),
      .count(mac_count)
  );

  status_reader #(
      .WORDS(TX_WORDS)
  ) tx_status (
      .clk      (user_clk),
      .rst      (user_rst),
      .s_index  (status_index[3:0]),
      .s_valid  (status_request && !status_index[4]),
      .s_ready  (tx_accepted),
      .m_value  (tx_status_value),
      .m_valid  (tx_status_valid),
      .there_clk(tx_clk),
      .there_rst(tx_rst),
      .values   (tx_values)
  );
  status_reader #(
      .WORDS(RX_WORDS)
  ) rx_status (
      .clk      (user_clk),
      .rst      (user_rst),
      .s_index  (status_index[3:0]),
      .s_valid  (status_request && status_index[4]),
      .s_ready  (rx_accepted),
      .m_value  (rx_status_value),
      .m_valid  (rx_status_valid),
      .there_clk(rx_clk),
      .there_rst(rx_rst),
      .values   (rx_values)
  );

  // A design changes its wire protocol by changing one instance.
  if (PROTOCOL == 10) begin : g_fade10g
    fade10g_core #(
        .WIDTH    (WIDTH),
        .PACKETS  (PACKETS),
        .TICK_INIT(TICK_INIT)
    ) core (
        .user_clk               (user_clk),
        .user_rst               (user_rst),
        .s_axis_tdata           (source_tdata),
        .s_axis_tvalid          (source_tvalid),
        .s_axis_tready          (source_tready),
        .s_axis_tlast           (source_tlast),
        .m_cmd_code             (cmd_code),
        .m_cmd_sequence         (cmd_sequence),
        .m_cmd_argument         (cmd_argument),
        .m_cmd_valid            (cmd_valid),
        .m_cmd_ready            (cmd_ready),
        .s_rsp_value            (rsp_value),
        .s_rsp_valid            (rsp_valid),
        .s_rsp_ready            (rsp_ready),
        .user_running           (user_running),
        .user_clear             (user_clear),
        .mac_address            (mac_address),
        .first_packet           (first_packet),
        .first_sequence         (first_sequence),
        .paper_rule             (paper_rule),
        .tx_clk                 (tx_clk),
        .tx_rst                 (tx_rst),
        .m_axis_tdata           (m_axis_tdata),
        .m_axis_tkeep           (m_axis_tkeep),
        .m_axis_tvalid          (m_axis_tvalid),
        .m_axis_tready          (m_axis_tready),
        .m_axis_tlast           (m_axis_tlast),
        .m_axis_tuser           (m_axis_tuser),
        .status_running         (status_running),
        .status_stopping        (status_stopping),
        .status_error           (status_error),
        .status_sent            (status_sent),
        .status_retransmitted   (status_retransmitted),
        .status_acknowledged    (status_acknowledged),
        .status_early           (status_early),
        .status_protocol_errors (status_protocol_errors),
        .status_delay           (status_delay),
        .status_stale_acks      (status_stale_acks),
        .status_wrong_source    (status_wrong_source),
        .status_busy            (status_busy),
        .rx_clk                 (rx_clk),
        .rx_rst                 (rx_rst),
        .s_mac_tdata            (s_mac_tdata),
        .s_mac_tkeep            (s_mac_tkeep),
        .s_mac_tvalid           (s_mac_tvalid),
        .s_mac_tlast            (s_mac_tlast),
        .s_mac_tuser            (s_mac_tuser),
        .status_drop_destination(status_drop_destination),
        .status_drop_ethertype  (status_drop_ethertype),
        .status_drop_version    (status_drop_version),
        .status_drop_code       (status_drop_code),
        .status_drop_short      (status_drop_short),
        .status_drop_full       (status_drop_full)
    );
  end else if (PROTOCOL == 1) begin : g_fade1
    fade1_core #(
        .WIDTH    (WIDTH),
        .PACKETS  (PACKETS),
        .TICK_INIT(TICK_INIT / 4)
    ) core (
        .user_clk               (user_clk),
        .user_rst               (user_rst),
        .s_axis_tdata           (source_tdata),
        .s_axis_tvalid          (source_tvalid),
        .s_axis_tready          (source_tready),
        .s_axis_tlast           (source_tlast),
        .m_cmd_code             (cmd_code),
        .m_cmd_sequence         (cmd_sequence),
        .m_cmd_argument         (cmd_argument),
        .m_cmd_valid            (cmd_valid),
        .m_cmd_ready            (cmd_ready),
        .s_rsp_value            (rsp_value),
        .s_rsp_valid            (rsp_valid),
        .s_rsp_ready            (rsp_ready),
        .user_running           (user_running),
        .user_clear             (user_clear),
        .mac_address            (mac_address),
        .first_packet           (first_packet),
        .first_sequence         (first_sequence),
        .paper_rule             (paper_rule),
        .tx_clk                 (tx_clk),
        .tx_rst                 (tx_rst),
        .m_axis_tdata           (m_axis_tdata),
        .m_axis_tkeep           (m_axis_tkeep),
        .m_axis_tvalid          (m_axis_tvalid),
        .m_axis_tready          (m_axis_tready),
        .m_axis_tlast           (m_axis_tlast),
        .m_axis_tuser           (m_axis_tuser),
        .status_running         (status_running),
        .status_stopping        (status_stopping),
        .status_error           (status_error),
        .status_sent            (status_sent),
        .status_retransmitted   (status_retransmitted),
        .status_acknowledged    (status_acknowledged),
        .status_early           (status_early),
        .status_protocol_errors (status_protocol_errors),
        .status_delay           (status_delay),
        .status_stale_acks      (status_stale_acks),
        .status_wrong_source    (status_wrong_source),
        .status_busy            (status_busy),
        .rx_clk                 (rx_clk),
        .rx_rst                 (rx_rst),
        .s_mac_tdata            (s_mac_tdata),
        .s_mac_tkeep            (s_mac_tkeep),
        .s_mac_tvalid           (s_mac_tvalid),
        .s_mac_tlast            (s_mac_tlast),
        .s_mac_tuser            (s_mac_tuser),
        .status_drop_destination(status_drop_destination),
        .status_drop_ethertype  (status_drop_ethertype),
        .status_drop_version    (status_drop_version),
        .status_drop_code       (status_drop_code),
        .status_drop_short      (status_drop_short),
        .status_drop_full       (status_drop_full)
    );
  end else begin : g_check
    $error("example_design: PROTOCOL must be 10 or 1");
  end

  assign running = status_running;

  logic unused;
  assign unused = &{1'b0, cmd_sequence};
endmodule
