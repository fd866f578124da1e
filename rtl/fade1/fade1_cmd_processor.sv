// Command processor: obeys START, STOP and RESET (transmit clock). FADE v1 confirms none of them.
//
//                  +---------------------+
//   record_* =====>|                     |====> ack_* (descriptor manager)
//   finished ----->| fade1_cmd_processor |----> session, stop, hold
//   writer_active >|                     |----> event_*
//   sender_idle -->|                     |
//                  +---------------------+
//
// From START to the end of the transmission only the computer that sent the START is obeyed, but
// RESET is taken from every one. RESET, and the end of a transmission, wait for the frame under
// way, so that no frame is torn, and until the writer has seen them.
module fade1_cmd_processor (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [fade1_pkg::RECORD_BITS-1:0] record,
    input  logic                              record_valid,
    output logic                              record_ready,
    // descriptor manager
    output logic                              ack_valid,
    input  logic                              ack_ready,
    // session
    output logic                              session,
    output logic                              stop,
    output logic                              hold,
    output logic                              reset_done,
    output logic [                      47:0] peer_address,
    input  logic                              finished,
    input  logic                              writer_active,
    input  logic                              sender_idle,
    // one pulse each
    output logic                              event_wrong_source,
    output logic                              event_ack_ignored
);
  typedef enum logic [1:0] {
    READY,
    STARTING,  // until the writer is active, so that the end of the session will be seen there
    HOLD,  // until the sender is idle
    CLEAR  // until the writer is idle
  } state_t;

  state_t state;
  logic is_reset;
  logic [47:0] source;
  logic [15:0] kind, set;
  logic [5:0] packet;
  assign {source, kind, set, packet} = record;

  logic from_peer, is_ack, take;
  assign from_peer = source == peer_address;
  assign is_ack = kind == fade1_pkg::TYPE_ACK;
  assign ack_valid = state == READY && record_valid && is_ack && session && from_peer;
  assign record_ready = state == READY && (ack_valid ? ack_ready : !finished);
  assign take = record_valid && record_ready;
  assign hold = state == HOLD || state == CLEAR;

  always_ff @(posedge clk) begin
    event_ack_ignored <= take && is_ack && !ack_valid;
    event_wrong_source <= take && session && !from_peer && !is_ack && kind != fade1_pkg::TYPE_RESET;
    reset_done <= 1'b0;

    case (state)
      READY:
      if (finished) begin
        is_reset <= 1'b0;
        state <= HOLD;
      end else if (take) begin
        case (kind)
          fade1_pkg::TYPE_START:
          if (!session) begin
            session <= 1'b1;
            peer_address <= source;
            state <= STARTING;
          end
          fade1_pkg::TYPE_STOP: if (session && from_peer) stop <= 1'b1;
          fade1_pkg::TYPE_RESET: begin
            is_reset <= 1'b1;
            state <= HOLD;
          end
          default: ;
        endcase
      end
      STARTING: if (writer_active) state <= READY;
      HOLD:
      if (sender_idle) begin
        session <= 1'b0;
        stop <= 1'b0;
        state <= CLEAR;
      end
      default:
      if (!writer_active) begin
        reset_done <= is_reset;
        state <= READY;
      end
    endcase

    if (rst) begin
      state <= READY;
      session <= 1'b0;
      stop <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, set, packet};
endmodule
