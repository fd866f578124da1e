// Command processor: obeys START, STOP, RESET and IDENTIFY, passes user commands on, keeps the
// response (transmit clock).
//
//                  +-----------------------+
//   record_* =====>|                       |====> ack_* (descriptor manager)
//   finished ----->|                       |====> user_command_*, <==== user_response_*
//   writer_active >| fade10g_cmd_processor |----> session, stop, hold, clear
//   sender_idle -->|                       |====> response_*, identify_* (sender)
//   cleared ------>|                       |----> event_*
//                  +-----------------------+
//
// Exactly once: a command with the CSN of the last one from the same computer is answered with the
// stored response and not executed again. A command that comes while the user side still works
// on another is dropped; the computer retries it.
//
// From START to the end of the transmission only the computer that sent the START is obeyed, but
// RESET and IDENTIFY are taken from every one. RESET, and the end of a transmission, wait for the
// frame under way, so that no frame is torn, and until the user side has cleared its part.
module fade10g_cmd_processor #(
    parameter int SLOT_BITS = 5
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [fade10g_pkg::RECORD_BITS-1:0] record,
    input  logic                                record_valid,
    output logic                                record_ready,
    // descriptor manager
    output logic                                ack_valid,
    input  logic                                ack_ready,
    // session
    output logic                                session,
    output logic                                stop,
    output logic                                hold,
    output logic                                clear,
    output logic [                        47:0] peer_address,
    input  logic                                finished,
    input  logic                                writer_active,
    input  logic                                sender_idle,
    input  logic                                cleared,
    // user side
    output logic [                        63:0] user_command,
    output logic                                user_command_valid,
    input  logic                                user_command_ready,
    input  logic [                        63:0] user_response,
    input  logic                                user_response_valid,
    // sender
    output logic [                        95:0] response,
    output logic                                response_valid,
    input  logic                                response_lock,
    input  logic                                response_taken,
    output logic [                        47:0] identify_address,
    output logic [                        95:0] identify,
    output logic                                identify_valid,
    input  logic                                identify_taken,
    // one pulse each
    output logic                                event_wrong_source,
    output logic                                event_busy,
    output logic                                event_ack_ignored
);
  typedef enum logic [2:0] {
    READY,
    STARTING,  // until the writer is active, so that the end of the session will be seen there
    HOLD,  // until the sender is idle
    CLEAR,  // until the user side has cleared its part
    SETTLE,  // what the user side sent before is on its way for a few clocks more
    RELEASE  // until the user side knows that it may go on
  } state_t;

  state_t state;
  logic everything;  // CLEAR for a RESET, not for the end of a transmission
  logic [2:0] settle;
  logic known, waiting;  // a response is stored; the user side works on a command
  logic [15:0] identify_csn;

  logic [47:0] source;
  logic [15:0] code, csn;
  logic [31:0] argument;
  assign {source, code, csn, argument} = record;

  logic from_peer, is_ack, is_reset, is_identify, is_command, repeated, take_command;
  assign from_peer = source == peer_address;
  assign is_ack = code == fade10g_pkg::ACK || code == fade10g_pkg::NACK;
  assign is_reset = code == fade10g_pkg::CMD_RESET;
  assign is_identify = code == fade10g_pkg::CMD_IDENTIFY;
  assign is_command = !is_ack && !is_reset && !is_identify;
  assign repeated = known && from_peer && csn == response[79:64];

  assign ack_valid = state == READY && record_valid && is_ack && session && from_peer;
  assign take_command = state == READY && record_valid && is_command && !response_lock && !finished;
  always_comb begin
    record_ready = 1'b0;
    if (state == READY) begin
      if (ack_valid) record_ready = ack_ready;
      else if (is_command) record_ready = take_command;
      else record_ready = !finished;
    end
  end

  assign hold = state == HOLD || state == CLEAR;
  assign clear = everything && (state == CLEAR || state == SETTLE);
  assign user_command = {response[95:64], response[31:0]};
  // What the FEB is: format of this word, log2 of its window, state.
  assign identify = {
    fade10g_pkg::CMD_IDENTIFY, identify_csn, 8'd1, 8'(SLOT_BITS), 6'd0, stop, session, 40'd0
  };

  always_ff @(posedge clk) begin
    event_wrong_source <= 1'b0;
    event_busy <= 1'b0;
    event_ack_ignored <= record_valid && record_ready && is_ack && !ack_valid;

    if (response_taken) response_valid <= 1'b0;
    if (identify_taken) identify_valid <= 1'b0;
    if (user_command_ready) user_command_valid <= 1'b0;
    if (waiting && user_response_valid) begin
      waiting <= 1'b0;
      response[63:0] <= user_response;
      response_valid <= 1'b1;
    end

    case (state)
      READY:
      if (finished) begin
        everything <= 1'b0;
        state <= HOLD;
      end else if (record_valid && is_reset) begin
        everything <= 1'b1;
        state <= HOLD;
      end else if (record_valid && is_identify) begin
        if (identify_valid) event_busy <= 1'b1;
        else begin
          identify_valid <= 1'b1;
          identify_address <= source;
          identify_csn <= csn;
        end
      end else if (take_command) begin
        if (session && !from_peer) event_wrong_source <= 1'b1;
        else if (repeated) response_valid <= !waiting;
        else if (waiting) event_busy <= 1'b1;
        else begin
          known <= 1'b1;
          peer_address <= source;
          response <= {code, csn, fade10g_pkg::STATUS_DONE};
          response_valid <= 1'b1;
          case (code)
            fade10g_pkg::CMD_START: begin
              session <= 1'b1;
              if (!session) state <= STARTING;
              if (stop) response[63:0] <= fade10g_pkg::STATUS_STOPPING;
              else if (session) response[63:0] <= fade10g_pkg::STATUS_RUNNING;
            end
            fade10g_pkg::CMD_STOP: stop <= session;
            default: begin
              response[31:0] <= argument;
              response_valid <= 1'b0;
              user_command_valid <= 1'b1;
              waiting <= 1'b1;
            end
          endcase
        end
      end
      STARTING: if (writer_active) state <= READY;
      HOLD:
      if (sender_idle) begin
        session <= 1'b0;
        stop <= 1'b0;
        settle <= '1;
        state <= CLEAR;
        if (everything) begin
          known <= 1'b0;
          response_valid <= 1'b0;
        end
      end
      CLEAR: if (!writer_active && (cleared || !everything)) state <= SETTLE;
      SETTLE: begin
        settle <= settle - 3'd1;
        if (everything) begin
          waiting <= 1'b0;
          response_valid <= 1'b0;
        end
        if (settle == '0) begin
          everything <= 1'b0;
          state <= RELEASE;
        end
      end
      default: if (!cleared) state <= READY;
    endcase

    if (rst) begin
      state <= READY;
      everything <= 1'b0;
      session <= 1'b0;
      stop <= 1'b0;
      known <= 1'b0;
      waiting <= 1'b0;
      response_valid <= 1'b0;
      identify_valid <= 1'b0;
      user_command_valid <= 1'b0;
    end
  end
endmodule
