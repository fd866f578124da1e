/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The receiver's rules of FADE-10G and FADE v1, without kernel calls: the kind
 * of a frame from a FEB, and what happens to its packet and command response
 * (docs/protocol; paper section 4).
 *
 * The same file is built into the kernel module and, in user space, into the
 * test that compares it with the Rust engine (host/driver-check).
 */
#ifndef FADE_RULES_H
#define FADE_RULES_H

#include "fade1_rules.h"
#include "fadelink_uapi.h"

#define FADE_ETHERTYPE		0xFADE
#define FADE_VERSION		0x0100
#define FADE_FILLER		0xA5
#define FADE_TYPE_DATA		0xA5A5
#define FADE_TYPE_LAST		0xA5A6
#define FADE_TYPE_RESPONSE	0xA55A

#define FADE_CMD_START		0x0001
#define FADE_CMD_STOP		0x0002
#define FADE_ACK		0x0003
#define FADE_NACK		0x0004
#define FADE_CMD_RESET		0x0005
#define FADE_CMD_IDENTIFY	0x0006
#define FADE_CMD_RESET_BY	0x0007
#define FADE_CMD_USER_FIRST	0x0100

#define FADE_BLOCK_MARK		0xB10C
#define FADE_CHECKSUM_MARK	0xC4EC
/* In the argument of START: it is obeyed only with the permit, which is above. */
#define FADE_START_PERMIT	2
#define FADE_PERMIT_SHIFT	2
/* Answer to START: not with this permit; the right one is above. */
#define FADE_STATUS_PERMIT	3
#define FADE_IDENTITY_RUNNING		1
#define FADE_IDENTITY_BLOCK_ACKS	4
#define FADE_IDENTITY_CSN		8

#define FADE_PACKET_BYTES	8192
#define FADE_DATA_HEADER_LEN	40
#define FADE_DATA_FRAME_LEN	(FADE_DATA_HEADER_LEN + FADE_PACKET_BYTES)
/* Bytes of a frame that have fields */
#define FADE_HEAD_LEN		48
#define FADE_REQUEST_LEN	78
#define FADE_LAST_WORDS_MAX	1023
#define FADE_MAX_WINDOW		64
/* Packets that may come again behind the newest */
#define FADE_REPEATED		1024

/* The kind of a frame from a FEB; the names of errors are drop reasons. */
enum fade_kind {
	FADE_KIND_DATA,
	FADE_KIND_RESPONSE,
	FADE_KIND_DATA1,	/* of FADE v1 */
	FADE_KIND_STATE1,	/* of FADE v1: the answer to STOP */
	FADE_BAD_TRUNCATED,
	FADE_BAD_ETHERTYPE,
	FADE_BAD_VERSION,
	FADE_BAD_TYPE,
	FADE_BAD_LENGTH,
	FADE_BAD_VALID_WORDS,
	FADE_BAD_PACKET1,	/* FADE v1: a number that no set has */
};

/**
 * struct fade_response - a command response
 * @code: code of the command; 0 if none was pending
 * @csn: command sequence number
 * @value: the value
 */
struct fade_response {
	u16 code;
	u16 csn;
	u64 value;
};

/**
 * struct fade_frame - the fields of a frame from a FEB
 * @response: command response, alone or inside a data frame
 * @packet: packet number; FADE v1: in its set; of a state, packets sent
 * @retry: FADE v1: retry number
 * @number: FADE v1: of a state, what its START called the transmission
 * @resets_told: FADE v1: a state tells @resets and @reset_by
 * @resets: RESETs that were obeyed since START; 255: or more
 * @reset_by: the computer that sent the last of them; zero: there is none
 * @permit_told: FADE v1: a state tells @permit
 * @permit: to begin a transmission; 0: there is none now
 * @block_acks: FADE v1: the FEB accepts block ACKs
 * @delay: transmission delay
 * @sequence: frame sequence number; FADE v1: set number, or FADE1_STATE_*
 * @last: the last data frame of a transmission
 * @last_words: valid words of the last packet
 */
struct fade_frame {
	struct fade_response response;
	u32 packet;
	u32 delay;
	u16 sequence;
	u16 retry;
	u16 number;
	bool resets_told;
	u8 resets;
	u8 reset_by[6];
	bool permit_told;
	u32 permit;
	bool block_acks;
	bool last;
	u64 last_words;
};

/* What to do with a data packet. */
enum fade_verdict {
	FADE_STORE,		/* new: store it, then confirm it */
	FADE_CONFIRM_AGAIN,	/* known */
	FADE_NO_SPACE,		/* new, but its slot is not free: no ACK */
	FADE_PROTOCOL_ERROR,	/* outside the window, or after the end */
};

/**
 * struct fade_window - the receiver's view of one transmission
 * @in_order: packets received without a gap since the start
 * @ahead: bit i: packet in_order + i is in; bit 0 is always clear
 * @ring_packets: packets of the ring, a power of two
 * @last_index: index of the last packet, if @last_seen
 * @last_words: its valid words
 * @first: number of the first packet
 * @size: packets of the window, 1 to FADE_MAX_WINDOW
 * @last_seen: the last packet was seen
 */
struct fade_window {
	u64 in_order;
	u64 ahead;
	u64 ring_packets;
	u64 last_index;
	u64 last_words;
	u32 first;
	u32 size;
	bool last_seen;
};

/**
 * struct fade_confirmation - content of an ACK
 * @index: packets before @packet since the start
 * @stored: block ACK: bit i: packet @packet - 1 - i is stored
 * @packet: newest packet that it confirms
 * @delay: transmission delay of its last frame
 * @sequence: sequence number of that frame; of FADE v1 number of the set
 * @block: it is a block ACK
 * @fade1: it is one of FADE v1
 */
struct fade_confirmation {
	u64 index;
	u64 stored;
	u32 packet;
	u32 delay;
	u16 sequence;
	bool block;
	bool fade1;
};

/* Stage of START. */
enum fade_stage {
	FADE_STAGE_NONE,	/* not active */
	FADE_STAGE_IDENTIFY,	/* IDENTIFY was sent */
	FADE_STAGE_RESET,	/* RESET was sent; silence must follow */
	FADE_STAGE_START,	/* START was sent */
	FADE_STAGE_STOP,	/* restarted: STOP was sent again */
};

/* How the last START ended. */
enum fade_outcome {
	FADE_BEGUN,
	FADE_NO_RESPONSE,
	FADE_STILL_RUNNING,	/* whatever was done */
};

/**
 * struct fade_start - a START that is being executed
 * @stage: FADE_STAGE_*
 * @asked: a caller waits for its result; else a transmission restarts
 * @heard: data came since RESET
 * @has_reset: RESET was sent
 * @resets_due: the next tick sends RESETs
 * @interrupted: an earlier transmission ran
 * @csn: of IDENTIFY, then of START
 * @attempts: frames sent of the stage
 * @refusals: STARTs answered by "an earlier transmission runs"
 * @has_obeyed: a FEB that has not told what it is has obeyed START
 * @obeyed: number of that START
 * @permit: that START shows; 0: none, it asks for one
 * @begun_again: STARTs that may have been obeyed, and are not any more: the FEB
 *	was reset or switched off behind them
 * @rounds: RESETs that were followed by silence, and the current one
 * @reset_since: time of the first RESET
 * @next: time of the next action
 * @timeout_ms: time between attempts
 * @retries: attempts after the first
 * @outcome: FADE_BEGUN, or the result of the last one
 */
struct fade_start {
	u32 stage;
	bool asked;
	bool heard;
	bool has_reset;
	bool resets_due;
	bool interrupted;
	u16 csn;
	u32 attempts;
	u32 refusals;
	bool has_obeyed;
	u16 obeyed;
	u32 permit;
	u32 begun_again;
	u32 rounds;
	u64 reset_since;
	u64 next;
	u32 timeout_ms;
	u32 retries;
	u32 outcome;
};

/* First packet of a transmission whose START proves nothing. */
enum fade_first {
	FADE_FIRST_COME,	/* or what comes is proven to be of it */
	FADE_FIRST_AWAITED,
	FADE_FIRST_MISSING,	/* others have come */
};

/**
 * struct fade_feb - the receiver's view of one FEB
 * @owned: it was opened for its data; else another program may receive from it
 * @window: of the transmission, if @started
 * @sets: of a transmission of FADE v1
 * @protocol: FADE_PROTOCOL_* that was set or found out
 * @firmware: FADE_FIRMWARE_* that was set or found out
 * @identified: it answered IDENTIFY like a Fadelink core
 * @block_acks: it accepts block ACKs
 * @unconfirmed: packets were stored since the last ACK
 * @newest: of them
 * @swap: bytes of the words to swap; 0: none
 * @started: START was answered: data is accepted
 * @start: START that is being executed
 * @first: FADE_FIRST_*
 * @first_until: others have come; the first one is waited for until then
 * @number: what START has called the transmission
 * @resets_told: it has told @resets and @reset_by of this transmission
 * @resets: RESETs that it has obeyed since START; 255: or more
 * @reset_by: the computer that sent the last of them; zero: there is none
 * @waiting: START of FADE v1 is repeated until it is obeyed
 * @permit: that this START shows; 0: none, it asks for one
 * @permit_due: the next tick sends it with a new permit
 * @has_shown: it was sent with a permit
 * @others: answers to it by which the FEB runs another transmission
 * @stopping: STOP of FADE v1 is repeated until there is silence
 * @stops: STOPs sent since it was last known to send on
 * @told: how it says that the transmission has ended, FADE_ENDING_*, where
 *	that is otherwise than it seems here
 * @next_request: when START or STOP of FADE v1 is sent again
 * @stop_sent: STOP was sent since START
 * @stray: data came without a transmission, since the last START
 * @restarts: number of restarts of the transmission since START
 * @state: FADE_STATE_*
 * @ending: FADE_ENDING_*: how the end is known
 * @pending: a command waits for its response
 * @pending_code: code of the last command
 * @pending_csn: its sequence number
 * @csn: the sequence number that was used or seen last
 * @csn_told: it has told which number it executed last, and none was used
 *	since
 * @answer: response of the last command that had one
 * @last_response: the response that came last
 * @next_sequence: frame sequence number that is expected, if @sequence_known
 * @sequence_known: a data frame of this transmission was seen
 * @next_reset: time before which no RESET answers stray data
 * @stats: counters
 */
struct fade_feb {
	bool owned;
	struct fade_window window;
	struct fade1_sets sets;
	u32 protocol;
	u32 firmware;
	bool identified;
	bool block_acks;
	bool unconfirmed;
	struct fade_confirmation newest;
	u32 swap;
	bool started;
	struct fade_start start;
	u32 first;
	u64 first_until;
	u16 number;
	bool resets_told;
	u8 resets;
	u8 reset_by[6];
	bool waiting;
	u32 permit;
	bool permit_due;
	bool has_shown;
	u32 others;
	bool stopping;
	u32 stops;
	u32 told;
	u64 next_request;
	bool stop_sent;
	bool stray;
	u32 restarts;
	u32 state;
	u32 ending;
	bool pending;
	u16 pending_code;
	u16 pending_csn;
	u16 csn;
	bool csn_told;
	struct fade_response answer;
	struct fade_response last_response;
	u16 next_sequence;
	bool sequence_known;
	u64 next_reset;
	struct fade_statistics stats;
};

/**
 * struct fade_settings - of a transmission
 * @ring_packets: packets of the ring, a power of two, at least @window
 * @window: packets of the FEB's window, 1 to FADE_MAX_WINDOW
 * @first_packet: number of the first packet
 * @protocol: FADE_PROTOCOL_* of the FEB
 * @firmware: FADE_FIRMWARE_* of the FEB
 * @words: FADE_WORDS_*
 */
struct fade_settings {
	u64 ring_packets;
	u32 window;
	u32 first_packet;
	u32 protocol;
	u32 firmware;
	u32 words;
};

/**
 * struct fade_actions - actions for a frame
 * @store: copy the packet to slot @slot of the ring
 * @confirm: send an ACK, after the packet is stored; else fade_feb_confirm()
 *	makes it when all frames that came together were processed
 * @reset: send RESET
 * @begun: a transmission has begun: the ring is empty
 * @answered: the pending command has its response, or START its outcome
 * @tick: fade_feb_tick() has something to do at once
 */
struct fade_actions {
	bool store;
	bool confirm;
	bool reset;
	bool begun;
	bool answered;
	bool tick;
	u64 slot;
};

/**
 * struct fade_request - a frame to send
 * @fade1: of FADE v1: @code is its FADE1_TYPE_*
 * @code: code of the command
 * @csn: its sequence number; FADE v1: of START, the number of the transmission
 * @argument: its argument; FADE v1: of START, the permit
 */
struct fade_request {
	bool fade1;
	u16 code;
	u16 csn;
	u32 argument;
};

#define FADE_MAX_REQUESTS	12

/**
 * struct fade_tick - actions that are due by time
 * @requests: frames to send, in order
 * @count: their number
 * @begun: a transmission has begun: the ring is empty
 * @wake: wake readers, and the caller of START
 * @next: time of the next call, if @again
 * @again: there is one
 */
struct fade_tick {
	struct fade_request requests[FADE_MAX_REQUESTS];
	u32 count;
	bool begun;
	bool wake;
	u64 next;
	bool again;
};

#define FADE_RESET_INTERVAL_MS	50
/* RESETs in a row, because one may be lost. */
#define FADE_RESETS		3
/* How often, with silence after each, if nothing else proves its effect. */
#define FADE_RESET_ROUNDS	3
/* Time after a RESET in which frames under way arrive and are discarded. */
#define FADE_SETTLE_MS		20
/* How often RESET is sent before a START that finds a running transmission. */
#define FADE_START_ATTEMPTS	10
/* Number of IDENTIFYs to a FEB; repeated after this part of a time-out. */
#define FADE_IDENTIFY_ATTEMPTS	12
#define FADE_IDENTIFY_SHARE	4
/* Time for which RESET is repeated to a FEB that continues to send. */
#define FADE_RESET_PATIENCE_MS	2000
/* So many answers to START of FADE v1 show that another transmission runs. */
#define FADE1_SHOWN		2
/* Time for which others may come before the first packet of a transmission. */
#define FADE_FIRST_PATIENCE_MS	100
/* The same of a FEB that answers START, which is repeated meanwhile. */
#define FADE_ANSWER_PATIENCE_MS	1000
/* Time between two STARTs or STOPs of FADE v1. */
#define FADE1_INTERVAL_MS	100
/* STOPs that silence must follow: not all of them are lost. */
#define FADE1_STOPS		5

enum fade_kind fade_parse(const u8 *head, size_t len, const u8 *final_word,
			  struct fade_frame *out);
void fade_ack(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
	      const struct fade_confirmation *what);
void fade_command(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
		  u16 code, u16 csn, u32 argument);

void fade_window_init(struct fade_window *w, u32 first, u32 size,
		      u64 ring_packets);
enum fade_verdict fade_window_judge(const struct fade_window *w,
				    const struct fade_frame *frame,
				    u64 released, u64 *index);
bool fade_window_stored(struct fade_window *w, u64 index,
			const struct fade_frame *frame);
u64 fade_window_stored_before(const struct fade_window *w, u64 index);
u64 fade_stored_before(u64 index, u64 in_order, u64 ahead);
void fade_block(u8 *out, u64 stored);
u64 fade_window_slot(const struct fade_window *w, u64 index);
u64 fade_window_bytes(const struct fade_window *w);
bool fade_window_complete(const struct fade_window *w);

void fade_feb_init(struct fade_feb *feb, const struct fade_settings *settings,
		   bool owned, u16 csn);
u64 fade_feb_bytes(const struct fade_feb *feb);
u32 fade_feb_packet_bytes(const struct fade_feb *feb);
u64 fade_feb_origin(const struct fade_feb *feb);
void fade_feb_start(struct fade_feb *feb, u32 timeout_ms, u32 retries,
		    u64 now_ms);
bool fade1_feb_stop(struct fade_feb *feb, u64 now_ms);
void fade_feb_unheard(struct fade_feb *feb);
void fade_feb_break_off(struct fade_feb *feb);
void fade_feb_tick(struct fade_feb *feb, const struct fade_settings *settings,
		   u64 now_ms, struct fade_tick *out);
bool fade_csn_after(u16 a, u16 b);
bool fade_shows_csn(const struct fade_response *response, u16 *csn);
bool fade_feb_asks(const struct fade_feb *feb, u16 code);
u16 fade_feb_command(struct fade_feb *feb, u16 code);
void fade_feb_take(struct fade_feb *feb, const struct fade_settings *settings,
		   enum fade_kind kind, const struct fade_frame *frame,
		   u64 given_back, u64 now_ms, struct fade_actions *out);
bool fade_feb_confirm(struct fade_feb *feb, struct fade_confirmation *out);

#endif /* FADE_RULES_H */
