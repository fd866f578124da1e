/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The receiver's rules of FADE-10G and FADE v1, without kernel calls: what a
 * frame from a FEB is, what becomes of its packet and of its command response.
 * Design sections 2 and 3; paper section 4. docs/protocol/ is the reference.
 *
 * The same file is built into the kernel module and, in user space, into the
 * test that holds it against the Rust engine (host/driver-check).
 */
#ifndef FADE_RULES_H
#define FADE_RULES_H

#include "fade1_rules.h"
#include "fadelink_uapi.h"

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

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
#define FADE_CMD_USER_FIRST	0x0100

#define FADE_PACKET_BYTES	8192
#define FADE_DATA_HEADER_LEN	40
#define FADE_DATA_FRAME_LEN	(FADE_DATA_HEADER_LEN + FADE_PACKET_BYTES)
#define FADE_REQUEST_LEN	78
#define FADE_LAST_WORDS_MAX	1023
#define FADE_MAX_WINDOW		64

/* What a frame from a FEB is; the names of what is wrong are drop reasons. */
enum fade_kind {
	FADE_KIND_DATA,
	FADE_KIND_RESPONSE,
	FADE_KIND_DATA1,	/* of FADE v1 */
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
 * @packet: packet number; of FADE v1 in its set
 * @delay: transmission delay
 * @sequence: frame sequence number; of FADE v1 set number
 * @last: the last data frame of a transmission
 * @last_words: valid words of the last packet
 */
struct fade_frame {
	struct fade_response response;
	u32 packet;
	u32 delay;
	u16 sequence;
	bool last;
	u64 last_words;
};

/* What to do with a data packet. */
enum fade_verdict {
	FADE_STORE,		/* new: store it, then confirm it */
	FADE_CONFIRM_AGAIN,	/* known, or older than the window */
	FADE_NO_SPACE,		/* new, but its place is not free: no ACK */
	FADE_PROTOCOL_ERROR,	/* beyond the window, or against the end */
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

/* What START has sent to a FEB of FADE v1. */
enum fade1_starting {
	FADE1_FRESH,	/* nothing: RESET comes first */
	FADE1_RESET,	/* RESET: START comes when frames under way have come */
	FADE1_STARTED,	/* START: data begins the transmission */
};

/**
 * struct fade_feb - the receiver's view of one FEB
 * @window: of the transmission, if @started
 * @sets: of a transmission of FADE v1
 * @protocol: FADE_PROTOCOL_* of the transmission
 * @started: START was answered: data is taken
 * @starting: what START has sent to a FEB that may speak FADE v1
 * @waiting: START of FADE v1 is repeated until data comes
 * @stopping: STOP of FADE v1 is repeated until there is silence
 * @stops: STOPs sent since the last data frame
 * @state: FADE_STATE_*
 * @pending: a command waits for its response
 * @pending_code: code of the last command; 0 after a START that failed
 * @csn: its sequence number
 * @answer: response of the last command that had one
 * @next_sequence: frame sequence number that is expected, if @sequence_known
 * @sequence_known: a data frame of this transmission was seen
 * @next_reset: time before which no RESET answers stray data
 * @stats: counters
 */
struct fade_feb {
	struct fade_window window;
	struct fade1_sets sets;
	u32 protocol;
	bool started;
	u32 starting;
	bool waiting;
	bool stopping;
	u32 stops;
	u32 state;
	bool pending;
	u16 pending_code;
	u16 csn;
	struct fade_response answer;
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
 */
struct fade_settings {
	u64 ring_packets;
	u32 window;
	u32 first_packet;
	u32 protocol;
};

/**
 * struct fade_actions - what to do about a frame
 * @store: copy the packet to place @slot of the ring
 * @confirm: send an ACK, after the packet is stored
 * @reset: send RESET
 * @begun: a transmission has begun: the ring is empty
 * @answered: the pending command has its response
 * @tick: fade1_feb_tick() has something to do at once
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

#define FADE_RESET_INTERVAL_MS	50
/* Time after a RESET in which frames under way arrive and are thrown away. */
#define FADE_SETTLE_MS		20
/* From one START or STOP of FADE v1 to the next. */
#define FADE1_INTERVAL_MS	100
/* STOPs that must have met with silence: that all are lost cannot be. */
#define FADE1_STOPS		5

enum fade_kind fade_parse(const u8 *head, size_t len, const u8 *final_word,
			  struct fade_frame *out);
void fade_ack(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
	      const struct fade_frame *frame);
void fade_command(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
		  u16 code, u16 csn, u32 argument);

void fade_window_init(struct fade_window *w, u32 first, u32 size,
		      u64 ring_packets);
enum fade_verdict fade_window_judge(const struct fade_window *w,
				    const struct fade_frame *frame,
				    u64 released, u64 *index);
void fade_window_stored(struct fade_window *w, u64 index,
			const struct fade_frame *frame);
u64 fade_window_slot(const struct fade_window *w, u64 index);
u64 fade_window_bytes(const struct fade_window *w);
bool fade_window_complete(const struct fade_window *w);

u64 fade_feb_bytes(const struct fade_feb *feb);
u32 fade_feb_packet_bytes(const struct fade_feb *feb);
void fade1_feb_begin(struct fade_feb *feb,
		     const struct fade_settings *settings);
bool fade1_feb_stop(struct fade_feb *feb);
u16 fade1_feb_tick(struct fade_feb *feb, u32 *next_ms);
u16 fade_feb_command(struct fade_feb *feb, u16 code);
void fade_feb_take(struct fade_feb *feb, const struct fade_settings *settings,
		   enum fade_kind kind, const struct fade_frame *frame,
		   u64 given_back, u64 now_ms, struct fade_actions *out);

#endif /* FADE_RULES_H */
