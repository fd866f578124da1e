// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The receiver's rules of FADE-10G, and what happens to a frame; see fade_rules.h.
 */
#include "fade_rules.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

#define ETH_HEADER_LEN	14

static u16 be16_at(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static u32 be32_at(const u8 *p)
{
	return (u32)be16_at(p) << 16 | be16_at(p + 2);
}

static u64 be64_at(const u8 *p)
{
	return (u64)be32_at(p) << 32 | be32_at(p + 4);
}

static u64 le64_at(const u8 *p)
{
	u64 value = 0;
	int i;

	for (i = 7; i >= 0; i--)
		value = value << 8 | p[i];
	return value;
}

/*
 * The number of valid words in either byte order: Fadelink's cores send it
 * least significant byte first, the published ones most significant byte first.
 * One reading at most is in range.
 */
static u64 valid_words(const u8 *final_word)
{
	u64 words = le64_at(final_word);

	return words > FADE_LAST_WORDS_MAX ? be64_at(final_word) : words;
}

static void put_be16(u8 *p, u16 value)
{
	p[0] = (u8)(value >> 8);
	p[1] = (u8)value;
}

static void put_be32(u8 *p, u32 value)
{
	put_be16(p, (u16)(value >> 16));
	put_be16(p + 2, (u16)value);
}

static enum fade_kind parse_state1(const u8 *head, size_t len,
				   struct fade_frame *out)
{
	if (len < 18)
		return FADE_BAD_TRUNCATED;
	out->sequence = be16_at(head + 16);
	if (out->sequence > FADE1_STATE_RESET)
		return FADE_BAD_TYPE;
	if (len < FADE1_DATA_HEADER_LEN)
		return FADE_BAD_TRUNCATED;
	out->number = be16_at(head + 18);
	out->packet = be32_at(head + 20);
	return FADE_KIND_STATE1;
}

static enum fade_kind parse_fade1(const u8 *head, size_t len,
				  struct fade_frame *out)
{
	if (be16_at(head + 14) == FADE1_TYPE_STATE)
		return parse_state1(head, len, out);
	if (be16_at(head + 14) != FADE1_TYPE_DATA)
		return FADE_BAD_TYPE;
	if (len != FADE1_DATA_FRAME_LEN)
		return FADE_BAD_LENGTH;
	out->sequence = be16_at(head + 16);
	out->packet = be16_at(head + 18) >> FADE1_RETRY_BITS;
	out->retry = be16_at(head + 18) & ((1 << FADE1_RETRY_BITS) - 1);
	out->delay = be32_at(head + 20);
	out->block_acks = out->retry == FADE1_RETRY_FADELINK &&
			  out->delay & FADE1_TAKES_BLOCK_ACKS;
	if (out->block_acks)
		out->delay &= ~FADE1_TAKES_BLOCK_ACKS;
	if (out->packet >= FADE1_SET_PACKETS)
		return FADE_BAD_PACKET1;
	return FADE_KIND_DATA1;
}

static void parse_response(const u8 *p, struct fade_response *out)
{
	out->code = be16_at(p);
	out->csn = be16_at(p + 2);
	out->value = be64_at(p + 4);
}

/**
 * fade_parse - what a frame from a FEB is
 * @head: the first bytes of the frame, from its Ethernet header on: @len of
 *	them, or FADE_DATA_HEADER_LEN where the frame is longer
 * @len: length of the frame, without check sequence
 * @final_word: its last 8 bytes, if it is FADE_DATA_FRAME_LEN long
 * @out: its fields, of a good frame
 *
 * The two pieces are all that is looked at: the packet itself may lie in
 * pieces of its own.
 */
enum fade_kind fade_parse(const u8 *head, size_t len, const u8 *final_word,
			  struct fade_frame *out)
{
	u16 type;

	memset(out, 0, sizeof(*out));
	if (len < ETH_HEADER_LEN)
		return FADE_BAD_TRUNCATED;
	if (be16_at(head + 12) != FADE_ETHERTYPE)
		return FADE_BAD_ETHERTYPE;
	if (len < 16)
		return FADE_BAD_TRUNCATED;
	if (fade1_is_type(be16_at(head + 14)))
		return parse_fade1(head, len, out);
	if (be16_at(head + 14) != FADE_VERSION)
		return FADE_BAD_VERSION;
	if (len < 18)
		return FADE_BAD_TRUNCATED;
	type = be16_at(head + 16);
	if (type == FADE_TYPE_RESPONSE) {
		if (len < 32)
			return FADE_BAD_TRUNCATED;
		parse_response(head + 20, &out->response);
		return FADE_KIND_RESPONSE;
	}
	if (type != FADE_TYPE_DATA && type != FADE_TYPE_LAST)
		return FADE_BAD_TYPE;
	if (len != FADE_DATA_FRAME_LEN)
		return FADE_BAD_LENGTH;
	if (type == FADE_TYPE_LAST) {
		out->last = true;
		out->last_words = valid_words(final_word);
		if (out->last_words > FADE_LAST_WORDS_MAX)
			return FADE_BAD_VALID_WORDS;
	}
	out->sequence = be16_at(head + 18);
	out->packet = be32_at(head + 20);
	out->delay = be32_at(head + 24);
	parse_response(head + 28, &out->response);
	return FADE_KIND_DATA;
}

static void request(u8 *out, const u8 *feb, const u8 *local, u16 code,
		    u16 sequence, u32 argument)
{
	memset(out, FADE_FILLER, FADE_REQUEST_LEN);
	memcpy(out, feb, 6);
	memcpy(out + 6, local, 6);
	put_be16(out + 12, FADE_ETHERTYPE);
	put_be16(out + 14, FADE_VERSION);
	put_be16(out + 16, code);
	put_be16(out + 18, sequence);
	put_be32(out + 20, argument);
}

/**
 * fade_block - makes an ACK a block ACK
 * @out: behind its fields, 20 bytes
 * @stored: bit i tells that packet 1 + i before the one that it names is in
 */
void fade_block(u8 *out, u64 stored)
{
	memset(out, 0, 20);
	put_be16(out, FADE_BLOCK_MARK);
	put_be32(out + 4, (u32)(stored >> 32));
	put_be32(out + 8, (u32)stored);
}

/**
 * fade_ack - makes an ACK
 * @out: the ACK, without check sequence
 * @feb: address of the FEB
 * @local: address of this computer
 * @what: what it tells
 */
void fade_ack(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
	      const struct fade_confirmation *what)
{
	if (what->fade1) {
		fade1_ack(out, feb, local, what);
		return;
	}
	request(out, feb, local, FADE_ACK, what->sequence, what->packet);
	put_be32(out + 24, what->delay);
	if (what->block)
		fade_block(out + 28, what->stored);
}

/**
 * fade_command - makes a command
 * @out: the command, without check sequence
 * @feb: address of the FEB
 * @local: address of this computer
 * @code: code of the command
 * @csn: command sequence number
 * @argument: argument
 */
void fade_command(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
		  u16 code, u16 csn, u32 argument)
{
	request(out, feb, local, code, csn, argument);
}

/**
 * fade_window_init - begins a transmission
 * @w: the window
 * @first: number of the first packet
 * @size: packets of the window, 1 to FADE_MAX_WINDOW
 * @ring_packets: packets of the ring, a power of two, at least @size
 */
void fade_window_init(struct fade_window *w, u32 first, u32 size,
		      u64 ring_packets)
{
	memset(w, 0, sizeof(*w));
	w->first = first;
	w->size = size;
	w->ring_packets = ring_packets;
}

/* A packet that is in already: the same kind again is confirmed again. */
static enum fade_verdict judge_known(const struct fade_window *w, u64 index,
				     const struct fade_frame *frame)
{
	bool is_end = w->last_seen && index == w->last_index;

	if (frame->last && (!is_end || frame->last_words != w->last_words))
		return FADE_PROTOCOL_ERROR;
	if (!frame->last && is_end)
		return FADE_PROTOCOL_ERROR;
	return FADE_CONFIRM_AGAIN;
}

static bool against_the_end(const struct fade_window *w, u64 index, u32 ahead,
			    const struct fade_frame *frame)
{
	if (!frame->last)
		return w->last_seen && index >= w->last_index;
	if (w->last_seen)
		return index != w->last_index ||
		       frame->last_words != w->last_words;
	/* A packet behind this one was already confirmed. */
	return w->ahead >> ahead != 0;
}

/**
 * fade_window_judge - what to do with a data packet
 * @w: the window
 * @frame: the data frame
 * @released: packets that have left the ring since the start
 * @index: of FADE_STORE and FADE_CONFIRM_AGAIN: packets before this one since
 *	the start
 *
 * Nothing changes until fade_window_stored().
 */
enum fade_verdict fade_window_judge(const struct fade_window *w,
				    const struct fade_frame *frame,
				    u64 released, u64 *index)
{
	u32 next = w->first + (u32)w->in_order;
	u32 ahead = frame->packet - next;

	if (ahead >= 0x80000000u) {
		u32 behind = 0u - ahead;

		/* From before the start, or long ago: another transmission. */
		if (behind > w->in_order || behind > FADE_REPEATED)
			return FADE_PROTOCOL_ERROR;
		*index = w->in_order - behind;
		return judge_known(w, *index, frame);
	}
	if (ahead >= w->size)
		return FADE_PROTOCOL_ERROR;
	*index = w->in_order + ahead;
	if (w->ahead >> ahead & 1)
		return judge_known(w, *index, frame);
	if (against_the_end(w, *index, ahead, frame))
		return FADE_PROTOCOL_ERROR;
	if (*index - released >= w->ring_packets)
		return FADE_NO_SPACE;
	return FADE_STORE;
}

/**
 * fade_window_stored - notes that a packet is in the ring
 * @w: the window
 * @index: of fade_window_judge()
 * @frame: the data frame
 *
 * Returns true if it filled a gap: a later packet is in the ring already.
 */
bool fade_window_stored(struct fade_window *w, u64 index,
			const struct fade_frame *frame)
{
	bool filled_gap = w->ahead >> (index - w->in_order);

	w->ahead |= 1ull << (index - w->in_order);
	while (w->ahead & 1) {
		w->ahead >>= 1;
		w->in_order++;
	}
	if (frame->last) {
		w->last_seen = true;
		w->last_index = index;
		w->last_words = frame->last_words;
	}
	return filled_gap;
}

/**
 * fade_window_stored_before - which packets before one of this window are in
 * @w: the window
 * @index: packets before it since the start
 *
 * Returns bit i set if packet @index - 1 - i is in.
 */
u64 fade_window_stored_before(const struct fade_window *w, u64 index)
{
	return fade_stored_before(index, w->in_order, w->ahead);
}

/**
 * fade_stored_before - which packets before one are in
 * @index: packets before it since the start
 * @in_order: packets received without a gap since the start
 * @ahead: bit i: packet @in_order + i is in
 *
 * Returns bit i set if packet @index - 1 - i is in.
 */
u64 fade_stored_before(u64 index, u64 in_order, u64 ahead)
{
	u64 stored = 0;
	u32 i;

	for (i = 0; i < 64 && i < index; i++) {
		u64 at = index - 1 - i;

		if (at < in_order || ahead >> (at - in_order) & 1)
			stored |= 1ull << i;
	}
	return stored;
}

/**
 * fade_window_slot - place of a packet in the ring: its number modulo the ring
 * @w: the window
 * @index: packets before it since the start
 */
u64 fade_window_slot(const struct fade_window *w, u64 index)
{
	return (w->first + index) & (w->ring_packets - 1);
}

/**
 * fade_window_bytes - bytes received without a gap since the start
 * @w: the window
 */
u64 fade_window_bytes(const struct fade_window *w)
{
	if (fade_window_complete(w))
		return w->last_index * FADE_PACKET_BYTES + w->last_words * 8;
	return w->in_order * FADE_PACKET_BYTES;
}

/**
 * fade_window_complete - the last packet was seen and all before it are in
 * @w: the window
 */
bool fade_window_complete(const struct fade_window *w)
{
	return w->last_seen && w->in_order > w->last_index;
}

static bool runs(const struct fade_feb *feb, u32 protocol)
{
	return feb->started && feb->protocol == protocol;
}

/**
 * fade_csn_after - true if command sequence number @a is after @b
 * @a: number
 * @b: number
 */
bool fade_csn_after(u16 a, u16 b)
{
	u16 distance = (u16)(a - b);

	return distance && distance < 0x8000;
}

static bool is_identity(const struct fade_response *response)
{
	return response->code == FADE_CMD_IDENTIFY &&
	       response->value >> 56 == 1 &&
	       (response->value >> 48 & 0xff) < 32;
}

/**
 * fade_shows_csn - what a response shows of the command that was executed last
 * @response: the response; code 0: there is none
 * @csn: its number
 *
 * The answer to IDENTIFY of Fadelink's cores tells it; any other response has
 * it, but for that to RESET BY, which is not executed. Returns false if there is
 * none.
 */
bool fade_shows_csn(const struct fade_response *response, u16 *csn)
{
	bool told = is_identity(response);

	*csn = told ? (u16)(response->value >> 24) : response->csn;
	return response->code && response->code != FADE_CMD_RESET_BY &&
	       (!told || response->value >> 40 & FADE_IDENTITY_CSN);
}

/* Never 0: the published core takes that, after RESET, for a repetition. */
static u16 new_csn(struct fade_feb *feb)
{
	/* Programs that receive by themselves draw theirs elsewhere. */
	feb->csn_told = false;
	if (++feb->csn == 0)
		feb->csn = 1;
	return feb->csn;
}

static u32 protocol_of(u32 firmware)
{
	switch (firmware) {
	case FADE_FIRMWARE_PUBLISHED_10G:
		return FADE_PROTOCOL_FADE10G;
	case FADE_FIRMWARE_PUBLISHED_V1:
		return FADE_PROTOCOL_FADE1;
	default:
		return FADE_PROTOCOL_ANY;
	}
}

/**
 * fade_feb_init - a FEB of which nothing is known but what the settings say
 * @feb: the FEB
 * @settings: of its transmissions
 * @owned: it is opened for its data
 * @csn: command sequence number that counts as used
 */
void fade_feb_init(struct fade_feb *feb, const struct fade_settings *settings,
		   bool owned, u16 csn)
{
	memset(feb, 0, sizeof(*feb));
	feb->owned = owned;
	feb->firmware = settings->firmware;
	feb->protocol = protocol_of(settings->firmware);
	if (!feb->protocol)
		feb->protocol = settings->protocol;
	feb->csn = csn;
}

/* Bytes of the words that are not as this computer has them. */
static u32 swap_of(const struct fade_feb *feb,
		   const struct fade_settings *settings)
{
	bool native_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	bool published = feb->firmware == FADE_FIRMWARE_PUBLISHED_10G ||
			 feb->firmware == FADE_FIRMWARE_PUBLISHED_V1;
	bool big;

	switch (settings->words) {
	case FADE_WORDS_NATIVE:
		big = published;
		break;
	case FADE_WORDS_LITTLE:
		big = false;
		break;
	case FADE_WORDS_BIG:
		big = true;
		break;
	default:
		return 0;
	}
	if (big == native_is_big)
		return 0;
	return feb->firmware == FADE_FIRMWARE_PUBLISHED_V1 ? 4 : 8;
}

static void add_request(struct fade_tick *out, bool fade1, u16 code, u16 csn)
{
	struct fade_request *request = &out->requests[out->count++];

	request->fade1 = fade1;
	request->code = code;
	request->csn = csn;
}

/* The transmission ends before its end. */
static void abort_running(struct fade_feb *feb)
{
	if (feb->state == FADE_STATE_RUNNING)
		feb->state = FADE_STATE_ABORTED;
}

/* START has an outcome. */
static void start_ends(struct fade_feb *feb, u32 outcome)
{
	feb->stats.interrupted += feb->start.interrupted;
	feb->start.stage = FADE_STAGE_NONE;
	feb->start.outcome = outcome;
	/* A transmission that should have begun again. */
	if (outcome != FADE_BEGUN && !feb->start.asked)
		abort_running(feb);
}

/* The next tick sends RESETs; what comes from now on came in spite of them. */
static void start_resets(struct fade_feb *feb, bool anew, u64 now_ms)
{
	struct fade_start *start = &feb->start;

	start->stage = FADE_STAGE_RESET;
	start->rounds = start->heard || anew ? 1 : start->rounds + 1;
	if (!start->has_reset || anew)
		start->reset_since = now_ms;
	start->has_reset = true;
	start->resets_due = true;
	start->heard = false;
	start->next = now_ms + FADE_SETTLE_MS;
}

static void begin_stage_start(struct fade_feb *feb, u64 now_ms)
{
	feb->start.stage = FADE_STAGE_START;
	feb->start.csn = new_csn(feb);
	feb->start.attempts = 0;
	feb->start.next = now_ms;
}

/* The FEB goes on with an earlier transmission: RESET and START. */
static void restart(struct fade_feb *feb, u64 now_ms)
{
	u32 timeout_ms = feb->start.timeout_ms, retries = feb->start.retries;

	feb->restarts++;
	if (feb->restarts > FADE_START_ATTEMPTS) {
		/*
		 * Its numbers do not begin where they should: what comes from
		 * now on is answered by RESET.
		 */
		fade_feb_break_off(feb);
		return;
	}
	memset(&feb->start, 0, sizeof(feb->start));
	feb->start.timeout_ms = timeout_ms;
	feb->start.retries = retries;
	feb->start.interrupted = true;
	feb->start.csn = new_csn(feb);
	feb->stop_sent |= feb->stopping;
	feb->started = false;
	feb->waiting = false;
	feb->stopping = false;
	feb->first = FADE_FIRST_COME;
	start_resets(feb, true, now_ms);
}

/* It began again after STOP was sent: that is sent again too. */
static void stop_again(struct fade_feb *feb, u64 now_ms)
{
	feb->start.stage = FADE_STAGE_STOP;
	feb->start.csn = new_csn(feb);
	feb->start.attempts = 0;
	feb->start.next = now_ms;
}

static void begin(struct fade_feb *feb, const struct fade_settings *settings,
		  u32 protocol, bool proven)
{
	feb->protocol = protocol;
	feb->swap = swap_of(feb, settings);
	feb->state = FADE_STATE_RUNNING;
	feb->ending = FADE_ENDING_UNKNOWN;
	feb->started = true;
	feb->unconfirmed = false;
	feb->first = proven ? FADE_FIRST_COME : FADE_FIRST_AWAITED;
	start_ends(feb, FADE_BEGUN);
}

static void begin10g(struct fade_feb *feb, const struct fade_settings *settings)
{
	/* One that does not tell what it is is none of Fadelink's. */
	if (!feb->firmware)
		feb->firmware = FADE_FIRMWARE_PUBLISHED_10G;
	fade_window_init(&feb->window, settings->first_packet, settings->window,
			 settings->ring_packets);
	feb->sequence_known = false;
	begin(feb, settings, FADE_PROTOCOL_FADE10G,
	      feb->firmware == FADE_FIRMWARE_FADELINK);
}

/* What is known of the end of a transmission of FADE v1 does not hold. */
static void sends_on(struct fade_feb *feb)
{
	feb->stops = 0;
	feb->told = FADE_ENDING_UNKNOWN;
}

static void begin1(struct fade_feb *feb, const struct fade_settings *settings)
{
	memset(&feb->sets, 0, sizeof(feb->sets));
	feb->sets.ring_packets = settings->ring_packets *
				 (FADE_PACKET_BYTES / FADE1_PACKET_BYTES);
	feb->waiting = false;
	feb->stopping = false;
	sends_on(feb);
	feb->number = feb->start.csn;
	begin(feb, settings, FADE_PROTOCOL_FADE1, false);
}

/* The FEB has answered IDENTIFY, so it speaks FADE-10G. */
static void identified(struct fade_feb *feb,
		       const struct fade_settings *settings,
		       const struct fade_response *response)
{
	bool ours = is_identity(response);

	feb->protocol = FADE_PROTOCOL_FADE10G;
	feb->identified = ours;
	feb->block_acks = ours &&
			  response->value >> 40 & FADE_IDENTITY_BLOCK_ACKS;
	if (!settings->firmware)
		feb->firmware = ours ? FADE_FIRMWARE_FADELINK :
				       FADE_FIRMWARE_PUBLISHED_10G;
}

static bool answers_start(const struct fade_feb *feb,
			  const struct fade_response *response)
{
	const struct fade_start *start = &feb->start;
	u16 code;

	switch (start->stage) {
	case FADE_STAGE_IDENTIFY:
		code = FADE_CMD_IDENTIFY;
		break;
	case FADE_STAGE_START:
		code = FADE_CMD_START;
		break;
	case FADE_STAGE_STOP:
		code = FADE_CMD_STOP;
		break;
	default:
		return false;
	}
	return start->attempts && response->code == code &&
	       response->csn == start->csn;
}

static void start_answered(struct fade_feb *feb,
			   const struct fade_settings *settings, u64 value,
			   u64 now_ms, struct fade_actions *out)
{
	struct fade_start *start = &feb->start;

	feb->csn_told |= start->stage == FADE_STAGE_IDENTIFY;
	if (start->stage == FADE_STAGE_STOP) {
		start->stage = FADE_STAGE_NONE;
		return;
	}
	if (start->stage == FADE_STAGE_START && !value) {
		/* The packet in this very frame may be the first. */
		begin10g(feb, settings);
		if (feb->stop_sent)
			stop_again(feb, now_ms);
		out->begun = true;
		out->answered = true;
		out->tick = feb->stop_sent;
		return;
	}
	if (start->stage == FADE_STAGE_START &&
	    start->refusals == FADE_START_ATTEMPTS) {
		start_ends(feb, FADE_STILL_RUNNING);
		out->answered = true;
		return;
	}
	if (start->stage == FADE_STAGE_IDENTIFY &&
	    feb->firmware == FADE_FIRMWARE_FADELINK) {
		begin_stage_start(feb, now_ms);
	} else {
		if (start->stage == FADE_STAGE_START) {
			start->refusals++;
			start->interrupted = true;
		}
		start_resets(feb, true, now_ms);
	}
	out->tick = true;
}

static bool same_response(const struct fade_response *a,
			  const struct fade_response *b)
{
	return a->code == b->code && a->csn == b->csn && a->value == b->value;
}

/* @riding: in a data frame. */
static void take_response(struct fade_feb *feb,
			  const struct fade_settings *settings,
			  const struct fade_response *response, bool riding,
			  u64 now_ms, struct fade_actions *out)
{
	bool again;
	u16 csn;

	if (!response->code)
		return;
	if (fade_shows_csn(response, &csn) && fade_csn_after(csn, feb->csn))
		feb->csn = csn;
	again = riding && same_response(response, &feb->last_response);
	feb->last_response = *response;
	/* It stays what it is while a transmission runs. */
	if (response->code == FADE_CMD_IDENTIFY && !feb->started)
		identified(feb, settings, response);
	if (feb->pending && response->code == feb->pending_code &&
	    response->csn == feb->pending_csn) {
		feb->stats.responses++;
		feb->csn_told |= response->code == FADE_CMD_IDENTIFY;
		feb->pending = false;
		feb->answer = *response;
		out->answered = true;
	} else if (answers_start(feb, response)) {
		feb->stats.responses++;
		start_answered(feb, settings, response->value, now_ms, out);
	} else if (!again) {
		/* The published core repeats its last one in every frame. */
		feb->stats.unexpected_responses++;
	}
}

/**
 * fade_feb_start - START begins; fade_feb_tick() is to be called at once
 * @feb: the FEB
 * @timeout_ms: from each attempt to the next
 * @retries: attempts after the first
 * @now_ms: time
 *
 * A FEB of which it is not known is asked what it is. One that is not
 * Fadelink's gets RESET, for its START alone proves nothing.
 */
void fade_feb_start(struct fade_feb *feb, u32 timeout_ms, u32 retries,
		    u64 now_ms)
{
	struct fade_start *start = &feb->start;
	bool told = feb->csn_told;

	memset(start, 0, sizeof(*start));
	start->timeout_ms = timeout_ms;
	start->retries = retries;
	start->asked = true;
	start->interrupted = feb->stray;
	feb->stray = false;
	start->next = now_ms;
	start->csn = new_csn(feb);
	/* Frames of an earlier transmission must not pass for the new one's. */
	feb->started = false;
	feb->waiting = false;
	feb->stopping = false;
	feb->stop_sent = false;
	feb->restarts = 0;
	feb->first = FADE_FIRST_COME;
	if (feb->firmware == FADE_FIRMWARE_FADELINK &&
	    feb->protocol == FADE_PROTOCOL_FADE10G && feb->identified && told)
		start->stage = FADE_STAGE_START;
	else if (feb->firmware == FADE_FIRMWARE_PUBLISHED_10G ||
		 feb->protocol == FADE_PROTOCOL_FADE1)
		start_resets(feb, true, now_ms);
	else
		start->stage = FADE_STAGE_IDENTIFY;
}

/**
 * fade1_feb_stop - STOP is to be sent from now on, by fade_feb_tick()
 * @feb: the FEB
 * @now_ms: time
 *
 * Returns false if the FEB is not known to speak FADE v1.
 */
bool fade1_feb_stop(struct fade_feb *feb, u64 now_ms)
{
	if (feb->protocol != FADE_PROTOCOL_FADE1)
		return false;
	/* One that is to begin again is stopped then. */
	feb->stop_sent = true;
	if (!feb->started || feb->state != FADE_STATE_RUNNING)
		return true;
	if (!feb->stopping) {
		sends_on(feb);
		feb->next_request = now_ms;
	}
	feb->stopping = true;
	return true;
}

/**
 * fade_feb_break_off - the transmission ends before its end, START too
 * @feb: the FEB
 */
void fade_feb_break_off(struct fade_feb *feb)
{
	feb->started = false;
	feb->waiting = false;
	feb->stopping = false;
	feb->first = FADE_FIRST_COME;
	feb->start.stage = FADE_STAGE_NONE;
	abort_running(feb);
}

static void end1(struct fade_feb *feb, u32 state, u32 ending)
{
	feb->state = state;
	feb->ending = ending;
	feb->stopping = false;
	feb->waiting = false;
}

/* What FADE v1, which confirms no command, must repeat. */
static void tick1(struct fade_feb *feb, u64 now_ms, struct fade_tick *out)
{
	if (!runs(feb, FADE_PROTOCOL_FADE1) ||
	    !(feb->waiting || feb->stopping) || now_ms < feb->next_request)
		return;
	feb->next_request = now_ms + FADE1_INTERVAL_MS;
	if (!feb->stopping) {
		feb->stats.commands++;
		add_request(out, true, FADE1_TYPE_START, feb->number);
		return;
	}
	if (feb->stops >= FADE1_STOPS && (feb->told || !feb->sets.ahead)) {
		/* Where nothing came at all, perhaps nobody is there. */
		if (!feb->told && feb->first == FADE_FIRST_COME)
			end1(feb, FADE_STATE_COMPLETE, FADE_ENDING_SILENCE);
		else
			end1(feb, FADE_STATE_ABORTED, feb->told);
		out->wake = true;
		return;
	}
	feb->stops++;
	feb->stats.commands++;
	add_request(out, true, FADE1_TYPE_STOP, 0);
}

static void send_resets(struct fade_feb *feb, struct fade_tick *out)
{
	int i;

	feb->start.resets_due = false;
	for (i = 0; i < FADE_RESETS; i++) {
		feb->stats.resets++;
		if (feb->protocol != FADE_PROTOCOL_FADE1)
			add_request(out, false, FADE_CMD_RESET, 0);
		if (feb->protocol != FADE_PROTOCOL_FADE10G)
			add_request(out, true, FADE1_TYPE_RESET, 0);
	}
}

static void tick_start(struct fade_feb *feb, const struct fade_settings *settings,
		       u64 now_ms, struct fade_tick *out)
{
	/* A Fadelink FEB answers START by telling whether it still runs. */
	bool tells = feb->firmware == FADE_FIRMWARE_FADELINK &&
		     feb->protocol == FADE_PROTOCOL_FADE10G;
	u32 rounds = tells ? 1 : FADE_RESET_ROUNDS;
	struct fade_start *start = &feb->start;

	if (start->stage == FADE_STAGE_NONE)
		return;
	if (start->resets_due)
		send_resets(feb, out);
	if (now_ms < start->next)
		return;
	if (start->stage == FADE_STAGE_IDENTIFY &&
	    start->attempts < FADE_IDENTIFY_ATTEMPTS) {
		start->next = now_ms + start->timeout_ms / FADE_IDENTIFY_SHARE;
		start->attempts++;
		feb->stats.commands++;
		add_request(out, false, FADE_CMD_IDENTIFY, start->csn);
		return;
	}
	if (start->stage == FADE_STAGE_IDENTIFY ||
	    (start->stage == FADE_STAGE_RESET &&
	     (start->heard || start->rounds < rounds))) {
		if (start->heard && start->has_reset &&
		    now_ms >= start->reset_since + FADE_RESET_PATIENCE_MS) {
			start_ends(feb, FADE_STILL_RUNNING);
			out->wake = true;
			return;
		}
		start_resets(feb, false, now_ms);
		send_resets(feb, out);
		return;
	}
	if (start->stage == FADE_STAGE_RESET) {
		if (feb->protocol == FADE_PROTOCOL_FADE1) {
			/* Its detector may be silent for long. */
			begin1(feb, settings);
			feb->waiting = true;
			feb->stopping = feb->stop_sent;
			feb->next_request = now_ms;
			out->begun = true;
			out->wake = true;
			tick1(feb, now_ms, out);
			return;
		}
		begin_stage_start(feb, now_ms);
	}
	if (start->attempts > start->retries) {
		if (start->stage == FADE_STAGE_STOP)
			start->stage = FADE_STAGE_NONE;
		else
			start_ends(feb, FADE_NO_RESPONSE);
		out->wake = true;
		return;
	}
	start->next = now_ms + start->timeout_ms;
	start->attempts++;
	feb->stats.commands++;
	if (start->stage == FADE_STAGE_STOP) {
		add_request(out, false, FADE_CMD_STOP, start->csn);
		return;
	}
	add_request(out, false, FADE_CMD_START, start->csn);
	if (!feb->protocol)
		add_request(out, true, FADE1_TYPE_START, start->csn);
}

static bool is_overdue(const struct fade_feb *feb, u64 now_ms)
{
	return feb->first == FADE_FIRST_MISSING &&
	       now_ms >= feb->first_since + FADE_FIRST_PATIENCE_MS;
}

static void next_at(struct fade_tick *out, bool there, u64 at)
{
	if (there && (!out->again || at < out->next)) {
		out->next = at;
		out->again = true;
	}
}

/**
 * fade_feb_tick - what is due: START, and what FADE v1 must repeat
 * @feb: the FEB
 * @settings: of a transmission that may begin
 * @now_ms: time
 * @out: what to do
 */
void fade_feb_tick(struct fade_feb *feb, const struct fade_settings *settings,
		   u64 now_ms, struct fade_tick *out)
{
	memset(out, 0, sizeof(*out));
	if (feb->started && is_overdue(feb, now_ms))
		restart(feb, now_ms);
	tick1(feb, now_ms, out);
	tick_start(feb, settings, now_ms, out);
	out->wake |= feb->state == FADE_STATE_ABORTED;
	next_at(out, runs(feb, FADE_PROTOCOL_FADE1) &&
			     (feb->waiting || feb->stopping),
		feb->next_request);
	next_at(out, feb->start.stage != FADE_STAGE_NONE, feb->start.next);
	next_at(out, feb->started && feb->first == FADE_FIRST_MISSING,
		feb->first_since + FADE_FIRST_PATIENCE_MS);
}

/* The packet does not fit what is in flight: the FEB is told to stop. */
static void fade1_error(struct fade_feb *feb, u64 now_ms,
			struct fade_actions *out)
{
	feb->stats.protocol_errors++;
	if (runs(feb, FADE_PROTOCOL_FADE1) && !feb->stopping)
		out->tick = fade1_feb_stop(feb, now_ms);
}

/*
 * Whether a packet is of this transmission: the @first one, or one that is
 * @foreign to its begin. What may be of it is neither stored nor confirmed
 * before the first has come, and will come again.
 */
static bool admits(struct fade_feb *feb, bool first, bool foreign, u64 now_ms,
		   struct fade_actions *out)
{
	if (first) {
		feb->first = FADE_FIRST_COME;
		return true;
	}
	feb->stats.not_started++;
	if (feb->first == FADE_FIRST_AWAITED) {
		feb->first = FADE_FIRST_MISSING;
		feb->first_since = now_ms;
	}
	if (foreign || is_overdue(feb, now_ms))
		restart(feb, now_ms);
	out->tick = true;
	return false;
}

static void count_missing(struct fade_feb *feb, u16 sequence)
{
	u16 skipped = sequence - feb->next_sequence;

	if (!feb->sequence_known || skipped < 0x8000) {
		if (feb->sequence_known)
			feb->stats.missing_frames += skipped;
		feb->sequence_known = true;
		feb->next_sequence = sequence + 1;
	} else if (feb->stats.missing_frames) {
		feb->stats.missing_frames--; /* late, not lost */
	}
}

/* Data without a transmission: a RESET was lost, or START is under way. */
static void take_stray(struct fade_feb *feb, u64 now_ms,
		       struct fade_actions *out)
{
	struct fade_start *start = &feb->start;

	feb->stats.not_started++;
	if (start->stage != FADE_STAGE_NONE) {
		/* After START it may be the new transmission's already. */
		start->interrupted |= start->stage == FADE_STAGE_IDENTIFY ||
				      start->stage == FADE_STAGE_RESET;
		start->heard = true;
		return;
	}
	feb->stray = true;
	/* It may be another program's transmission. */
	if (!feb->owned || now_ms < feb->next_reset)
		return;
	feb->next_reset = now_ms + FADE_RESET_INTERVAL_MS;
	feb->stats.resets++;
	out->reset = true;
}

static bool takes_blocks(const struct fade_feb *feb)
{
	return feb->block_acks && feb->firmware == FADE_FIRMWARE_FADELINK;
}

/* The next ACK names the newest packet. */
static void note_unconfirmed(struct fade_feb *feb, u64 index,
			     const struct fade_frame *frame)
{
	if (!feb->unconfirmed || index >= feb->newest.index) {
		feb->newest.index = index;
		feb->newest.packet = frame->packet;
		feb->newest.delay = frame->delay;
		feb->newest.sequence = frame->sequence;
	}
	feb->unconfirmed = true;
}

static void take_data(struct fade_feb *feb, const struct fade_frame *frame,
		      u64 released, u64 now_ms, struct fade_actions *out)
{
	u32 ahead = frame->packet - feb->window.first;
	u64 index = 0;

	if (feb->first != FADE_FIRST_COME &&
	    !admits(feb, !ahead, ahead >= feb->window.size, now_ms, out))
		return;
	feb->stats.delay = frame->delay;
	count_missing(feb, frame->sequence);
	/* The end comes when it was asked for. */
	if (frame->last && !feb->stop_sent) {
		feb->stats.protocol_errors++;
		return;
	}
	switch (fade_window_judge(&feb->window, frame, released, &index)) {
	case FADE_STORE:
		out->slot = fade_window_slot(&feb->window, index);
		feb->stats.repaired +=
			fade_window_stored(&feb->window, index, frame);
		feb->stats.packets++;
		if (fade_window_complete(&feb->window)) {
			feb->state = FADE_STATE_COMPLETE;
			feb->ending = FADE_ENDING_CONFIRMED;
		}
		out->store = true;
		break;
	case FADE_CONFIRM_AGAIN:
		feb->stats.duplicates++;
		break;
	case FADE_NO_SPACE:
		feb->stats.no_space++;
		return;
	default:
		feb->stats.protocol_errors++;
		return;
	}
	note_unconfirmed(feb, index, frame);
	out->confirm = !takes_blocks(feb);
}

static void take_data1(struct fade_feb *feb, const struct fade_settings *settings,
		       const struct fade_frame *frame, u64 released, u64 now_ms,
		       struct fade_actions *out)
{
	u64 index = 0;

	if (feb->first != FADE_FIRST_COME) {
		if (!settings->firmware)
			feb->firmware = frame->retry == FADE1_RETRY_FADELINK ?
						FADE_FIRMWARE_FADELINK :
						FADE_FIRMWARE_PUBLISHED_V1;
		feb->swap = swap_of(feb, settings);
		if (!admits(feb, !frame->sequence && !frame->packet,
			    frame->sequence > 1, now_ms, out))
			return;
	}
	feb->waiting = false;
	feb->stats.delay = frame->delay;
	sends_on(feb);
	switch (fade1_sets_judge(&feb->sets, frame->sequence, frame->packet,
				 released, &index)) {
	case FADE1_STORE:
		if (feb->state == FADE_STATE_COMPLETE) {
			/* Nothing new may come, but an ACK may have been lost. */
			feb->stats.protocol_errors++;
			return;
		}
		out->slot = index % feb->sets.ring_packets;
		feb->stats.repaired += fade1_sets_stored(&feb->sets, index);
		feb->stats.packets++;
		out->store = true;
		break;
	case FADE1_CONFIRM_AGAIN:
		feb->stats.duplicates++;
		break;
	case FADE1_NO_SPACE:
		feb->stats.no_space++;
		return;
	default:
		fade1_error(feb, now_ms, out);
		return;
	}
	if (frame->block_acks) {
		note_unconfirmed(feb, index, frame);
		return;
	}
	feb->stats.acks++;
	out->confirm = true;
}

/* The state that nobody has asked for, but START. */
static void take_unasked1(struct fade_feb *feb, const struct fade_frame *frame,
			  bool ours)
{
	bool runs = frame->sequence == FADE1_STATE_RUNNING;

	if (ours && runs && feb->waiting) {
		feb->waiting = false;
		feb->stats.responses++;
	} else if (ours && !runs && frame->sequence != FADE1_STATE_NONE &&
		   feb->state == FADE_STATE_RUNNING) {
		/* Somebody else has stopped it. */
		feb->stats.protocol_errors++;
	} else {
		feb->stats.unexpected_responses++;
	}
}

/*
 * The FEB answers IDENTIFY, START or STOP. What does not agree with what has
 * come is believed when no data follows.
 */
static void take_state1(struct fade_feb *feb,
			const struct fade_settings *settings,
			const struct fade_frame *frame, u64 now_ms,
			struct fade_actions *out)
{
	bool running = runs(feb, FADE_PROTOCOL_FADE1);
	bool ours = running && frame->number == feb->number;

	if (!running && !feb->protocol &&
	    feb->start.stage == FADE_STAGE_IDENTIFY) {
		feb->stats.responses++;
		/* It need not be asked again. */
		feb->start.attempts = FADE_IDENTIFY_ATTEMPTS;
		feb->start.next = now_ms;
		feb->protocol = FADE_PROTOCOL_FADE1;
		if (!settings->firmware)
			feb->firmware = FADE_FIRMWARE_FADELINK;
		out->tick = true;
		return;
	}
	if (!running || !feb->stopping) {
		take_unasked1(feb, frame, ours);
		return;
	}
	feb->stats.responses++;
	if (!ours && frame->sequence != FADE1_STATE_NONE) {
		feb->told = FADE_ENDING_OTHER_TRANSMISSION;
		return;
	}
	switch (frame->sequence) {
	case FADE1_STATE_NONE:
		feb->told = FADE_ENDING_SWITCHED_OFF;
		break;
	case FADE1_STATE_ENDED:
		if (!feb->sets.ahead && frame->packet == (u32)feb->sets.in_order)
			end1(feb, FADE_STATE_COMPLETE, FADE_ENDING_CONFIRMED);
		else
			feb->told = FADE_ENDING_OTHER_NUMBER;
		break;
	case FADE1_STATE_RESET:
		feb->told = FADE_ENDING_RESET;
		break;
	default:
		sends_on(feb);
		break;
	}
}

/*
 * True if data of FADE v1 answers START, which is sent in both protocols where
 * the FEB did not say what it speaks.
 */
static bool begins_fade1(struct fade_feb *feb,
			 const struct fade_settings *settings,
			 struct fade_actions *out)
{
	if (feb->start.stage != FADE_STAGE_START || !feb->start.attempts ||
	    feb->protocol)
		return false;
	begin1(feb, settings);
	out->answered = true;
	out->begun = true;
	return true;
}

/**
 * fade_feb_packet_bytes - bytes of data in a packet of the transmission
 * @feb: the FEB
 */
u32 fade_feb_packet_bytes(const struct fade_feb *feb)
{
	return feb->protocol == FADE_PROTOCOL_FADE1 ? FADE1_PACKET_BYTES :
						      FADE_PACKET_BYTES;
}

/**
 * fade_feb_bytes - bytes received without a gap since the start
 * @feb: the FEB
 */
u64 fade_feb_bytes(const struct fade_feb *feb)
{
	if (feb->protocol == FADE_PROTOCOL_FADE1)
		return feb->sets.in_order * FADE1_PACKET_BYTES;
	return fade_window_bytes(&feb->window);
}

/**
 * fade_feb_origin - byte of the ring where the transmission begins
 * @feb: the FEB
 */
u64 fade_feb_origin(const struct fade_feb *feb)
{
	if (feb->protocol == FADE_PROTOCOL_FADE1)
		return 0;
	return fade_window_slot(&feb->window, 0) * FADE_PACKET_BYTES;
}

/**
 * fade_feb_asks - true if IDENTIFY is to be answered before a command is sent
 * @feb: the FEB
 * @code: code of the command
 *
 * For the number after which the command's comes. To the published core
 * IDENTIFY is a command like any other, so it would not be safer.
 */
bool fade_feb_asks(const struct fade_feb *feb, u16 code)
{
	return !feb->csn_told && code != FADE_CMD_IDENTIFY &&
	       feb->firmware != FADE_FIRMWARE_PUBLISHED_10G;
}

/**
 * fade_feb_command - a command begins to wait for its response
 * @feb: the FEB
 * @code: code of the command; not START, which is for fade_feb_start()
 *
 * Returns its sequence number.
 */
u16 fade_feb_command(struct fade_feb *feb, u16 code)
{
	feb->stop_sent |= code == FADE_CMD_STOP;
	feb->pending = true;
	feb->pending_code = code;
	feb->pending_csn = new_csn(feb);
	return feb->pending_csn;
}

/**
 * fade_feb_take - decides about a frame from a FEB that is open
 * @feb: the FEB
 * @settings: of a transmission that may begin
 * @kind: what the frame is, of fade_parse(); no drop reason of the link
 * @frame: its fields
 * @given_back: bytes that have left the ring since the start
 * @now_ms: time
 * @out: what to do
 */
void fade_feb_take(struct fade_feb *feb, const struct fade_settings *settings,
		   enum fade_kind kind, const struct fade_frame *frame,
		   u64 given_back, u64 now_ms, struct fade_actions *out)
{
	memset(out, 0, sizeof(*out));
	switch (kind) {
	case FADE_KIND_DATA:
		take_response(feb, settings, &frame->response, true, now_ms, out);
		if (out->begun)
			given_back = 0;
		if (runs(feb, FADE_PROTOCOL_FADE10G))
			take_data(feb, frame, given_back / FADE_PACKET_BYTES,
				  now_ms, out);
		else
			take_stray(feb, now_ms, out);
		break;
	case FADE_KIND_DATA1:
		if (begins_fade1(feb, settings, out))
			given_back = 0;
		if (runs(feb, FADE_PROTOCOL_FADE1))
			take_data1(feb, settings, frame,
				   given_back / FADE1_PACKET_BYTES, now_ms, out);
		else
			take_stray(feb, now_ms, out);
		break;
	case FADE_KIND_STATE1:
		take_state1(feb, settings, frame, now_ms, out);
		break;
	case FADE_BAD_PACKET1:
		fade1_error(feb, now_ms, out);
		break;
	case FADE_KIND_RESPONSE:
		take_response(feb, settings, &frame->response, false, now_ms, out);
		break;
	case FADE_BAD_LENGTH:
		feb->stats.wrong_length++;
		break;
	default:
		feb->stats.wrong_valid_words++;
		break;
	}
}

/**
 * fade_feb_confirm - the ACK of what was stored since the last one
 * @feb: the FEB
 * @out: what it tells
 *
 * Returns false if there is none to send.
 */
bool fade_feb_confirm(struct fade_feb *feb, struct fade_confirmation *out)
{
	bool fade1 = runs(feb, FADE_PROTOCOL_FADE1);

	if (!feb->unconfirmed || !(fade1 || runs(feb, FADE_PROTOCOL_FADE10G)))
		return false;
	feb->unconfirmed = false;
	feb->stats.acks++;
	*out = feb->newest;
	out->fade1 = fade1;
	out->block = fade1 || takes_blocks(feb);
	if (fade1)
		out->stored = fade1_sets_stored_before(&feb->sets, out->index);
	else if (out->block)
		out->stored = fade_window_stored_before(&feb->window,
							out->index);
	return true;
}
