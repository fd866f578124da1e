// SPDX-License-Identifier: Apache-2.0
//
// Command processor: obeys START, STOP, RESET, IDENTIFY and RESET BY, passes user commands on, stores the
// response (transmit clock).
//
//                  +-----------------------+
//   record_* <====>|                       |====> ack_* (descriptor manager)
//   finished ----->|                       |<===> command_*, <==== user_response_* (command bridge)
//   writer_active >| fade10g_cmd_processor |----> session, stop, hold, clear
//   sender_idle -->|                       |====> response_*, identify_* (sender)
//   cleared ------>|                       |----> event_*
//                  +-----------------------+
//
// A record (record_fifo) is processed in steps: its source is compared, its fields are decoded, then it is judged. Its fields
// are stable while ack_valid is high; ack_bits selects the bits instead. Its words are stable while identify_valid
// is high; identify_word selects one. The answer to IDENTIFY waits for the end of the current frame, and all later records wait
// for that. Another IDENTIFY is answered only when no record waits, so that many of them cannot stop the ACKs. RESET BY is an
// IDENTIFY with another answer.
//
// Exactly once: a command with the CSN of the last one from the same computer is answered with the
// stored response and not executed again. A command that comes while the user side is busy with another is dropped; the
// computer repeats it.
//
// From START to the end of the transmission only the computer that sent START is obeyed, except for RESET, IDENTIFY and
// RESET BY. A START that asks for it is obeyed only with the permit of this moment; without, it is answered by the permit.
// RESET and the end of a transmission wait for the end of the current frame, and until the user side has cleared its part; the
// record of a RESET stays until then, because it names the sender.
`default_nettype none
module fade10g_cmd_processor #(
    parameter int SLOT_BITS   = 5,
    parameter int READ_CLOCKS = 1,  // of the records
    parameter int CHECKSUM    = 0   // the buffer has a CRC of the words
) (
    input  logic        clk,
    input  logic        rst,
    // records: word 0 source, word 1 code, sequence, argument, word 3 bits of a block ACK
    output logic [ 1:0] record_word,
    input  logic [63:0] record,
    input  logic        record_valid,
    output logic        record_ready,
    // descriptor manager
    output logic        ack_valid,
    input  logic        ack_ready,
    output logic        ack_negative,
    input  logic        ack_bits,
    // session
    output logic        session,
    output logic        stop,
    output logic        hold,
    output logic        clear,
    output logic        with_checksum,        // START has asked for it
    output logic [47:0] peer_address,
    input  logic        finished,
    input  logic        writer_active,
    input  logic        sender_idle,
    input  logic        cleared,
    // user side; command_head, command_argument: of the last command
    output logic        command_load,
    input  logic [31:0] command_head,
    input  logic [31:0] command_argument,
    output logic        command_send,
    input  logic        command_ready,
    input  logic [63:0] user_response,
    input  logic        user_response_valid,
    output logic        user_response_done,
    // sender: code, CSN and value
    output logic [95:0] response,
    output logic        response_valid,
    input  logic        response_lock,
    input  logic        response_taken,
    output logic        identify_valid,
    input  logic        identify_word,
    output logic [47:0] identify_address,
    output logic [95:0] identify,
    input  logic        identify_taken,
    // one pulse each
    output logic        event_wrong_source,
    output logic        event_busy,
    output logic        event_ack_ignored
);
  typedef enum logic [4:0] {
    SOURCE,  // the next record's source is read
    SOURCE_WAIT,
    COMPARE,  // when there is a record: and its fields
    COMPARE_WAIT,
    DECODE,
    JUDGE,  // an ACK: until the descriptor manager is done with it
    IDENTIFY,  // until the sender is done with it
    AGAIN,  // the source is read again, to be kept
    AGAIN_WAIT,
    KEEP,
    NEXT,  // the record is done
    STARTING,  // until the writer is active, so that the end of the session will be seen there
    HOLD,  // until the sender is idle
    CLEAR,  // until the user side has cleared its part
    SETTLE,  // what the user side sent before is on its way for a few clocks more
    RELEASE  // until the user side knows that it may go on
  } state_t;

  state_t state;
  logic everything;  // HOLD for a RESET, not for the end of a transmission
  logic [2:0] settle;
  logic known, waiting;  // a response is stored; the user side works on a command
  logic from_user;  // the response is the user's; else it is the status
  logic [1:0] status;
  logic tells_permit;  // the status has the permit above it
  logic may_identify;
  logic [15:0] transmission;  // CSN of the START that began it
  logic same_number;  // the command has this number, too
  logic asks_checksum;
  assign with_checksum = CHECKSUM != 0 && asks_checksum;

  // ---- decoding ------------------------------------------------------------------------------
  logic [47:0] source;
  logic [15:0] code, csn;
  fade_pkg::record_t first;
  fade10g_pkg::fields_t fields;
  assign first = record;
  assign fields = record;
  assign source = {first.source_begin, first.source_end};
  assign code = fields.code;
  assign csn = fields.number;
  logic [2:0] same_address;  // by 16 bits
  logic
      from_peer, takes_ack, repeats, is_ack, is_reset, is_identify, is_reset_by, is_start, is_stop;
  always_ff @(posedge clk) begin
    if (state == COMPARE)
      for (int i = 0; i < 3; i++) same_address[i] <= source[i*16+:16] == peer_address[i*16+:16];
    if (state == DECODE) begin
      from_peer <= &same_address;
      takes_ack <= session && &same_address && !finished;
      repeats <= known && &same_address && csn == command_head[15:0];
      is_ack <= code == fade10g_pkg::ACK || code == fade10g_pkg::NACK;
      ack_negative <= code == fade10g_pkg::NACK;
      is_reset <= code == fade10g_pkg::CMD_RESET;
      is_identify <= code == fade10g_pkg::CMD_IDENTIFY || code == fade10g_pkg::CMD_RESET_BY;
      is_reset_by <= code == fade10g_pkg::CMD_RESET_BY;
      is_start <= code == fade10g_pkg::CMD_START;
      is_stop <= code == fade10g_pkg::CMD_STOP;
    end
  end

  // ---- RESETs --------------------------------------------------------------------------------
  logic reset_obeyed;
  fade_pkg::resets_t resets;
  assign reset_obeyed = state == SETTLE && everything && settle == '0;
  fade_resets reset_count (
      .clk   (clk),
      .rst   (rst),
      .begins(state == STARTING && !same_number),
      .obeyed(reset_obeyed),
      .source(source),
      .resets(resets)
  );

  // ---- permit to begin -----------------------------------------------------------------------
  logic wants_permit, permitted, has_permit, permit_fits;
  logic [29:0] permit;
  assign wants_permit = (command_argument & fade10g_pkg::START_PERMIT) != '0;
  assign permitted = permit_fits || !wants_permit;
  fade_permit start_permit (
      .clk   (clk),
      .rst   (rst),
      .asked (state == KEEP && is_start && !session && !permitted),
      .used  (state == STARTING || reset_obeyed),
      .valid (has_permit),
      .permit(permit),
      .load  (state == AGAIN),
      .shown (command_argument[31:fade10g_pkg::PERMIT_SHIFT]),
      .fits  (permit_fits)
  );

  // ---- ports ---------------------------------------------------------------------------------
  logic is_command, executes;
  assign is_command = !is_ack && !is_reset && !is_identify;
  assign executes = state == JUDGE && !finished && is_command && !response_lock && (from_peer || !session) && !repeats
      && !waiting && command_ready;

  assign record_word[1] = ack_bits;
  assign record_word[0] = (state == COMPARE && record_valid) || state == COMPARE_WAIT || state == DECODE || state == JUDGE
      || (state == IDENTIFY && identify_word);
  assign ack_valid = state == JUDGE && is_ack && takes_ack;
  assign record_ready = state == NEXT || state == KEEP || reset_obeyed;
  assign identify_valid = state == IDENTIFY;
  assign identify_address = source;
  assign command_load = executes;
  assign command_send = state == KEEP && !is_start && !is_stop;
  // The response that was stored goes when another command comes.
  assign user_response_done = executes || (state == SETTLE && everything);

  assign hold = state == HOLD || state == CLEAR;
  always_comb begin
    response = {
      command_head, from_user ? user_response : {32'd0, tells_permit ? permit : 30'd0, status}
    };
  end
  // What the FEB is: format of this word, log2 of its window, state, numbers of the last command and transmission, RESETs.
  localparam logic [7:0] ABLE = fade10g_pkg::IDENTITY_BLOCK_ACKS | fade10g_pkg::IDENTITY_RESETS
      | fade10g_pkg::IDENTITY_SAME_WORDS | (CHECKSUM != 0 ? fade10g_pkg::IDENTITY_CHECKSUM : 8'd0);
  logic [63:0] identity;
  assign identity = {
    8'd1,
    8'(SLOT_BITS),
    ABLE | {4'd0, known, 1'd0, stop, session},
    command_head[15:0],
    transmission,
    resets.count
  };
  assign identify = {code, csn, is_reset_by ? {transmission, resets.address} : identity};

  always_ff @(posedge clk) begin
    event_wrong_source <= 1'b0;
    event_busy <= 1'b0;
    event_ack_ignored <= 1'b0;
    clear <= everything && (state == CLEAR || state == SETTLE);

    if (response_taken) response_valid <= 1'b0;
    if (waiting && user_response_valid) begin
      waiting <= 1'b0;
      response_valid <= 1'b1;
    end

    case (state)
      SOURCE: state <= READ_CLOCKS > 1 ? SOURCE_WAIT : COMPARE;
      SOURCE_WAIT: state <= COMPARE;
      COMPARE:
      if (finished) state <= HOLD;
      else if (record_valid) state <= READ_CLOCKS > 1 ? COMPARE_WAIT : DECODE;
      else may_identify <= 1'b1;
      COMPARE_WAIT: state <= DECODE;
      DECODE: state <= JUDGE;
      JUDGE:
      if (ack_valid) begin
        if (ack_ready) state <= NEXT;
      end else if (finished) begin
        // What came meanwhile waits until all is cleared.
        state <= SOURCE;
      end else if (is_ack) begin
        event_ack_ignored <= 1'b1;
        state <= NEXT;
      end else if (is_reset) begin
        everything <= 1'b1;
        state <= HOLD;
      end else if (is_identify) begin
        event_busy <= !may_identify;
        state <= may_identify ? IDENTIFY : NEXT;
      end else if (executes) begin
        response_valid <= 1'b0;
        state <= AGAIN;
      end else if (!response_lock) begin
        if (session && !from_peer) event_wrong_source <= 1'b1;
        else if (repeats) response_valid <= !waiting;
        else if (waiting) event_busy <= 1'b1;
        if ((session && !from_peer) || repeats || waiting) state <= NEXT;
      end
      IDENTIFY:
      if (identify_taken) begin
        may_identify <= 1'b0;
        state <= NEXT;
      end
      AGAIN: state <= READ_CLOCKS > 1 ? AGAIN_WAIT : KEEP;
      AGAIN_WAIT: state <= KEEP;
      KEEP: begin
        state <= SOURCE;
        known <= 1'b1;
        peer_address <= source;
        from_user <= !is_start && !is_stop;
        waiting <= !is_start && !is_stop;
        response_valid <= is_start || is_stop;
        status <= 2'(fade10g_pkg::STATUS_DONE);
        tells_permit <= is_start && !session && !permitted;
        if (is_start) begin
          if (!session && permitted) begin
            session <= 1'b1;
            state <= STARTING;
            same_number <= transmission == command_head[15:0];
            transmission <= command_head[15:0];
            asks_checksum <= (command_argument & fade10g_pkg::START_CHECKSUM) != '0;
          end
          if (stop) status <= 2'(fade10g_pkg::STATUS_STOPPING);
          else if (session) status <= 2'(fade10g_pkg::STATUS_RUNNING);
          else if (!permitted) status <= 2'(fade10g_pkg::STATUS_PERMIT);
        end
        if (is_stop) stop <= session;
      end
      NEXT: state <= SOURCE;
      STARTING: if (writer_active) state <= SOURCE;
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
      default: if (!cleared) state <= SOURCE;
    endcase

    if (rst) begin
      state <= SOURCE;
      everything <= 1'b0;
      session <= 1'b0;
      stop <= 1'b0;
      known <= 1'b0;
      waiting <= 1'b0;
      response_valid <= 1'b0;
      may_identify <= 1'b0;
      transmission <= '0;
      asks_checksum <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, first, fields, record, has_permit};
endmodule
`default_nettype wire
