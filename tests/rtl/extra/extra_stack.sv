// The Ethernet layer with ARP and one more protocol: one module and one input of the arbiter.
module extra_stack #(
    parameter int WIDTH = 8
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [       47:0] mac_address,
    input  logic [       31:0] ip_address,
    input  logic [  WIDTH-1:0] s_data,
    input  logic [        3:0] s_count,
    input  logic               s_valid,
    input  logic               s_end,
    input  logic               s_good,
    output logic [  WIDTH-1:0] m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic               m_axis_tvalid,
    output logic               m_axis_tlast,
    input  logic               m_axis_start
);
  localparam logic [15:0] EXTRA = 16'h88B5;  // for experiments (IEEE 802)

  logic [WIDTH-1:0] data;
  logic [3:0] count;
  logic valid, ended, good, tick_ms;
  logic [47:0] source;
  logic [15:0] ethertype;
  logic [1:0] request, start, claims;
  logic learn, learn_new, learned, learned_nothing, ask, ask_taken, lookup_done, known, stream_path;
  logic [31:0] ask_ip;
  logic [3:0] learn_place;
  logic [7:0] learn_byte;
  logic [1:0][13:0] length;
  logic [1:0][47:0] destination;
  logic [1:0][WIDTH-1:0] client_data;
  logic [47:0] mac;
  logic [2:0] drop;
  logic [3:0] arp_drop;
  assign claims  = {ethertype == EXTRA, ethertype == net_pkg::ETHERTYPE_ARP};
  assign tick_ms = 1'b0;

  udp_ethernet_rx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) rx (
      .clk             (clk),
      .rst             (rst),
      .mac_address     (mac_address),
      .s_data          (s_data),
      .s_count         (s_count),
      .s_valid         (s_valid),
      .s_end           (s_end),
      .s_good          (s_good),
      .m_data          (data),
      .m_count         (count),
      .m_valid         (valid),
      .m_end           (ended),
      .m_good          (good),
      .source          (source),
      .ethertype       (ethertype),
      .claims          (claims),
      .drop_destination(drop[0]),
      .drop_protocol   (drop[1]),
      .drop_short      (drop[2])
  );
  udp_arp #(
      .WIDTH(WIDTH)
  ) arp (
      .s_data          (data),
      .s_count         (count),
      .s_valid         (valid),
      .s_end           (ended),
      .s_good          (good && claims[0]),
      .drop_short      (arp_drop[0]),
      .drop_protocol   (arp_drop[1]),
      .drop_destination(arp_drop[2]),
      .drop_full       (arp_drop[3]),
      .request         (request[0]),
      .length          (length[0]),
      .destination     (destination[0]),
      .start           (start[0]),
      .data            (client_data[0]),
      .*
  );
  udp_neighbours neighbours (
      .mask          ('0),
      .gateway       ('0),
      .lookup        (1'b0),
      .lookup_ip     ('0),
      .in_use        (1'b0),
      .stream_ip     ('0),
      .stream_changed(1'b0),
      .stream_active (1'b0),
      .*
  );
  extra_protocol #(
      .WIDTH(WIDTH)
  ) extra (
      .clk        (clk),
      .rst        (rst),
      .s_data     (data),
      .s_count    (count),
      .s_valid    (valid),
      .s_end      (ended),
      .s_good     (good && claims[1]),
      .s_source   (source),
      .request    (request[1]),
      .length     (length[1]),
      .destination(destination[1]),
      .start      (start[1]),
      .data       (client_data[1])
  );
  udp_ethernet_tx #(
      .WIDTH  (WIDTH),
      .CLIENTS(2)
  ) tx (
      .clk          (clk),
      .rst          (rst),
      .mac_address  (mac_address),
      .s_request    (request),
      .s_length     (length),
      .s_destination(destination),
      .s_ethertype  ({EXTRA, net_pkg::ETHERTYPE_ARP}),
      .s_start      (start),
      .s_data       (client_data),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tlast (m_axis_tlast),
      .m_axis_start (m_axis_start)
  );

  logic unused;
  assign unused = &{1'b0, known, lookup_done, stream_path, mac, drop, arp_drop};
endmodule
