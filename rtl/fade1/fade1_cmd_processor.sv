// SPDX-License-Identifier: Apache-2.0
//
// Command processor: obeys START, STOP, RESET and IDENTIFY (transmit clock). All but RESET are answered by the state of the
// transmission.
//
//                  +---------------------+
//   record_* <====>|                     |====> ack_* (descriptor manager)
//   finished ----->| fade1_cmd_processor |====> answer_* (sender)
//   writer_active >|                     |----> session, stop, hold
//   sender_idle -->|                     |----> event_*
//   sent --------->|                     |
//                  +---------------------+
//
// Of FADE-10G IDENTIFY comes here alone. A record (record_fifo) is processed in steps: its source and type are compared, then it is judged. Its word 1, or word 3 while
// ack_bits is high, is available while ack_valid is high.
//
// A START that asks for it is obeyed only with the permit of this moment; without, it is answered by the state, which tells the
// permit.
//
// From START to the end of the transmission only the computer that sent START is obeyed, except for RESET. A record to be
// answered, or START, waits until the answer before it is sent, for peer_address is where that goes. RESET and the end of a
// transmission wait for the end of the current frame, and until the writer has seen them; the record of a RESET stays until
// then, because it names the sender.
`default_nettype none
module fade1_cmd_processor #(
    parameter int READ_CLOCKS = 1  // of the records
) (
    input  logic                     clk,
    input  logic                     rst,
    // records: word 0 source and type, word 1 set and packet, word 3 the bits of a block ACK, while ack_bits is high
    output logic              [ 1:0] record_word,
    input  logic              [63:0] record,
    input  logic                     record_valid,
    output logic                     record_ready,
    // descriptor manager
    output logic                     ack_valid,
    input  logic                     ack_ready,
    input  logic                     ack_bits,
    // session
    output logic                     session,
    output logic                     stop,
    output logic                     hold,
    output logic                     reset_done,
    output logic              [47:0] peer_address,
    input  logic                     finished,
    input  logic                     writer_active,
    input  logic                     sender_idle,
    // what is reported
    input  logic                     sent,                // a packet, for the first time
    output logic                     answer,              // until answer_take
    output fade1_pkg::state_t        answer_state,
    output fade_pkg::resets_t        answer_resets,
    output logic              [29:0] answer_permit,       // 0: there is none
    input  logic                     answer_take,
    // one pulse each
    output logic                     event_wrong_source,
    output logic                     event_ack_ignored
);
  typedef enum logic [3:0] {
    SOURCE,  // the next record's source is read
    SOURCE_WAIT,
    COMPARE,  // when there is a record: and its set and packet
    COMPARE_WAIT,
    JUDGE,  // an ACK: until the descriptor manager is done with it
    AGAIN,  // the source is read again, to be kept
    AGAIN_WAIT,
    KEEP,  // until no answer waits
    NEXT,  // the record is done
    STARTING,  // until the writer is active, so that the end of the session will be seen there
    HOLD,  // until the sender is idle
    CLEAR  // until the writer is idle
  } state_t;

  state_t state;
  logic is_reset, reset_obeyed;

  logic [47:0] source;
  logic [15:0] kind;
  fade_pkg::record_t first;
  assign first  = record;
  assign source = {first.source_begin, first.source_end};
  assign kind   = first.kind;
  fade1_pkg::start_t start;
  assign start = record;
  logic [2:0] same_address;  // by 16 bits
  logic from_peer, is_ack, is_start, is_stop, is_identify;
  assign from_peer = &same_address;

  assign record_word[1] = ack_bits;
  assign record_word[0] = (state == COMPARE && record_valid) || state == COMPARE_WAIT || state == JUDGE;
  assign record_ready = (state == NEXT && !is_reset) || (state == KEEP && !answer) || reset_obeyed;
  assign ack_valid = state == JUDGE && is_ack && session && from_peer && !finished;
  assign hold = state == HOLD || state == CLEAR;

  logic [15:0] transmission, number, ended;  // number: of a START, until it is kept
  logic same_number;  // as that of the last transmission
  logic [31:0] packets;
  assign answer_state.state = !session ? ended : stop ? fade1_pkg::STATE_STOPPING : fade1_pkg::STATE_RUNNING;
  assign answer_state.transmission = transmission;
  assign answer_state.packets = packets;

  assign reset_obeyed = state == CLEAR && is_reset && !writer_active;
  fade_resets reset_count (
      .clk   (clk),
      .rst   (rst),
      .begins(state == STARTING && !same_number),
      .obeyed(reset_obeyed),
      .source(source),
      .resets(answer_resets)
  );

  logic wants_permit, permitted, has_permit, permit_fits, begins;
  logic [29:0] permit;
  assign permitted = permit_fits || !wants_permit;
  assign begins = state == KEEP && !answer && is_start && !session;
  assign answer_permit = has_permit ? permit : 30'd0;
  fade_permit start_permit (
      .clk   (clk),
      .rst   (rst),
      .asked (begins && !permitted),
      .used  (state == STARTING || reset_obeyed),
      .valid (has_permit),
      .permit(permit),
      .load  (state == JUDGE),
      .shown (start.permit[29:0]),
      .fits  (permit_fits)
  );

  always_ff @(posedge clk) begin
    if (sent) packets <= packets + 32'd1;
    if (answer_take) answer <= 1'b0;
    event_wrong_source <= 1'b0;
    event_ack_ignored <= 1'b0;
    reset_done <= 1'b0;

    case (state)
      SOURCE: begin
        is_reset <= 1'b0;
        state <= READ_CLOCKS > 1 ? SOURCE_WAIT : COMPARE;
      end
      SOURCE_WAIT: state <= COMPARE;
      COMPARE: begin
        for (int i = 0; i < 3; i++) same_address[i] <= source[i*16+:16] == peer_address[i*16+:16];
        is_ack <= kind == fade1_pkg::TYPE_ACK;
        is_start <= kind == fade1_pkg::TYPE_START;
        is_stop <= kind == fade1_pkg::TYPE_STOP;
        is_identify <= kind == fade1_pkg::TYPE_FADE10G;
        if (finished) state <= HOLD;
        else if (record_valid) begin
          is_reset <= kind == fade1_pkg::TYPE_RESET;
          state <= READ_CLOCKS > 1 ? COMPARE_WAIT : JUDGE;
        end
      end
      COMPARE_WAIT: state <= JUDGE;
      JUDGE: begin
        state <= NEXT;
        // At the end of a session what came meanwhile waits until all is cleared.
        if (finished) state <= SOURCE;
        else if (is_ack) begin
          if (!(session && from_peer)) event_ack_ignored <= 1'b1;
          else if (!ack_ready) state <= JUDGE;
        end else if (session && !from_peer) event_wrong_source <= !is_reset;
        else if (is_start || is_stop || is_identify) state <= AGAIN;
        number <= start.transmission;
        wants_permit <= start.mark == fade1_pkg::PERMIT_MARK;
      end
      AGAIN: state <= READ_CLOCKS > 1 ? AGAIN_WAIT : KEEP;
      AGAIN_WAIT: state <= KEEP;
      KEEP:
      if (!answer) begin
        peer_address <= source;
        answer <= 1'b1;
        state <= SOURCE;
        if (is_stop) stop <= session;
        if (begins && permitted) begin
          session <= 1'b1;
          transmission <= number;
          same_number <= transmission == number;
          packets <= '0;
          state <= STARTING;
        end
      end
      NEXT: state <= is_reset ? HOLD : SOURCE;
      STARTING: if (writer_active) state <= SOURCE;
      HOLD:
      if (sender_idle) begin
        if (session) ended <= is_reset ? fade1_pkg::STATE_RESET : fade1_pkg::STATE_ENDED;
        session <= 1'b0;
        stop <= 1'b0;
        state <= CLEAR;
      end
      default:
      if (!writer_active) begin
        reset_done <= is_reset;
        state <= SOURCE;
      end
    endcase

    if (rst) begin
      state <= SOURCE;
      {session, stop, answer} <= '0;
      ended <= fade1_pkg::STATE_NONE;
      {transmission, packets} <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, start};
endmodule
`default_nettype wire
