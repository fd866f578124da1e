// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The receiver's rules of FADE-10G, and what becomes of a frame; see fade_rules.h.
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

static enum fade_kind parse_fade1(const u8 *head, size_t len,
				  struct fade_frame *out)
{
	if (be16_at(head + 14) != FADE1_TYPE_DATA)
		return FADE_BAD_TYPE;
	if (len != FADE1_DATA_FRAME_LEN)
		return FADE_BAD_LENGTH;
	out->sequence = be16_at(head + 16);
	out->packet = be16_at(head + 18) >> FADE1_RETRY_BITS;
	out->delay = be32_at(head + 20);
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
 * fade_ack - makes the ACK of a data frame
 * @out: the ACK, without check sequence
 * @feb: address of the FEB
 * @local: address of this computer
 * @frame: the data frame
 */
void fade_ack(u8 out[FADE_REQUEST_LEN], const u8 *feb, const u8 *local,
	      const struct fade_frame *frame)
{
	request(out, feb, local, FADE_ACK, frame->sequence, frame->packet);
	put_be32(out + 24, frame->delay);
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
 * @index: of FADE_STORE: packets before this one since the start
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

		/* From before the start: older than every window. */
		if (behind > w->in_order)
			return FADE_CONFIRM_AGAIN;
		return judge_known(w, w->in_order - behind, frame);
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
 */
void fade_window_stored(struct fade_window *w, u64 index,
			const struct fade_frame *frame)
{
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

static void take_response(struct fade_feb *feb,
			  const struct fade_settings *settings,
			  const struct fade_response *response,
			  struct fade_actions *out)
{
	if (!response->code)
		return;
	if (!feb->pending || response->code != feb->pending_code ||
	    response->csn != feb->csn) {
		feb->stats.unexpected_responses++;
		return;
	}
	feb->stats.responses++;
	feb->pending = false;
	feb->answer = *response;
	out->answered = true;
	if (response->code == FADE_CMD_START && !response->value) {
		/* The packet in this very frame may be the first. */
		fade_window_init(&feb->window, settings->first_packet,
				 settings->window, settings->ring_packets);
		feb->sequence_known = false;
		feb->state = FADE_STATE_RUNNING;
		feb->protocol = FADE_PROTOCOL_FADE10G;
		feb->started = true;
		out->begun = true;
	}
}

static bool runs(const struct fade_feb *feb, u32 protocol)
{
	return feb->started && feb->protocol == protocol;
}

/**
 * fade1_feb_begin - a transmission of FADE v1 begins
 * @feb: the FEB
 * @settings: of the transmission
 */
void fade1_feb_begin(struct fade_feb *feb,
		     const struct fade_settings *settings)
{
	memset(&feb->sets, 0, sizeof(feb->sets));
	feb->sets.ring_packets = settings->ring_packets *
				 (FADE_PACKET_BYTES / FADE1_PACKET_BYTES);
	feb->state = FADE_STATE_RUNNING;
	feb->protocol = FADE_PROTOCOL_FADE1;
	feb->started = true;
	feb->waiting = false;
	feb->stopping = false;
	feb->stops = 0;
}

/**
 * fade1_feb_stop - STOP is to be sent from now on, by fade1_feb_tick()
 * @feb: the FEB
 *
 * Returns false if no transmission of FADE v1 runs.
 */
bool fade1_feb_stop(struct fade_feb *feb)
{
	if (!runs(feb, FADE_PROTOCOL_FADE1))
		return false;
	if (!feb->stopping)
		feb->stops = 0;
	feb->stopping = true;
	return true;
}

/**
 * fade1_feb_tick - what FADE v1, which confirms no command, must repeat
 * @feb: the FEB
 * @next_ms: time until the next call, 0: none is needed
 *
 * Returns the FADE1_TYPE_* to send, 0: nothing. Ends the transmission when
 * silence has followed several STOPs.
 */
u16 fade1_feb_tick(struct fade_feb *feb, u32 *next_ms)
{
	*next_ms = 0;
	if (!runs(feb, FADE_PROTOCOL_FADE1))
		return 0;
	if (feb->stopping) {
		if (feb->stops >= FADE1_STOPS && !feb->sets.ahead) {
			/* Where nothing came at all, perhaps nobody is there. */
			feb->state = feb->waiting ? FADE_STATE_ABORTED :
						    FADE_STATE_COMPLETE;
			feb->stopping = false;
			feb->waiting = false;
			return 0;
		}
		feb->stops++;
		feb->stats.commands++;
		*next_ms = FADE1_INTERVAL_MS;
		return FADE1_TYPE_STOP;
	}
	if (!feb->waiting)
		return 0;
	feb->stats.commands++;
	if (feb->starting == FADE1_FRESH) {
		feb->starting = FADE1_RESET;
		*next_ms = FADE_SETTLE_MS;
		return FADE1_TYPE_RESET;
	}
	feb->starting = FADE1_STARTED;
	*next_ms = FADE1_INTERVAL_MS;
	return FADE1_TYPE_START;
}

/* The packet does not fit what is in flight: the FEB is told to stop. */
static void fade1_error(struct fade_feb *feb, struct fade_actions *out)
{
	feb->stats.protocol_errors++;
	if (!feb->stopping && feb->state == FADE_STATE_RUNNING)
		out->tick = fade1_feb_stop(feb);
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

/*
 * Data without a transmission: a RESET was lost. A START finds out by itself,
 * also while it is repeated.
 */
static void take_stray(struct fade_feb *feb, u64 now_ms,
		       struct fade_actions *out)
{
	feb->stats.not_started++;
	if (feb->pending_code == FADE_CMD_START || now_ms < feb->next_reset)
		return;
	feb->next_reset = now_ms + FADE_RESET_INTERVAL_MS;
	feb->stats.resets++;
	out->reset = true;
}

static void take_data(struct fade_feb *feb, const struct fade_frame *frame,
		      u64 released, struct fade_actions *out)
{
	u64 index;

	feb->stats.delay = frame->delay;
	count_missing(feb, frame->sequence);
	switch (fade_window_judge(&feb->window, frame, released, &index)) {
	case FADE_STORE:
		out->slot = fade_window_slot(&feb->window, index);
		fade_window_stored(&feb->window, index, frame);
		feb->stats.packets++;
		if (fade_window_complete(&feb->window))
			feb->state = FADE_STATE_COMPLETE;
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
	feb->stats.acks++;
	out->confirm = true;
}

static void take_data1(struct fade_feb *feb, const struct fade_frame *frame,
		       u64 released, struct fade_actions *out)
{
	u64 index;

	if (feb->waiting) {
		if (feb->starting != FADE1_STARTED || frame->sequence > 1) {
			/* Of an earlier transmission, whose RESET was lost. */
			feb->stats.not_started++;
			out->tick = feb->starting == FADE1_STARTED;
			if (out->tick)
				feb->starting = FADE1_FRESH;
			return;
		}
		feb->waiting = false;
	}
	feb->stats.delay = frame->delay;
	feb->stops = 0;
	switch (fade1_sets_judge(&feb->sets, frame->sequence, frame->packet,
				 released, &index)) {
	case FADE1_STORE:
		if (feb->state == FADE_STATE_COMPLETE) {
			/* Nothing new may come, but an ACK may have been lost. */
			feb->stats.protocol_errors++;
			return;
		}
		out->slot = index % feb->sets.ring_packets;
		fade1_sets_stored(&feb->sets, index);
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
		fade1_error(feb, out);
		return;
	}
	feb->stats.acks++;
	out->confirm = true;
}

/* True if the packet begins the transmission that waits for it. */
static bool begins_fade1(struct fade_feb *feb,
			 const struct fade_settings *settings,
			 const struct fade_frame *frame,
			 struct fade_actions *out)
{
	if (!feb->pending || feb->pending_code != FADE_CMD_START ||
	    feb->starting != FADE1_STARTED)
		return false;
	if (frame->sequence > 1) {
		/* Of an earlier transmission, whose RESET was lost. */
		feb->starting = FADE1_FRESH;
		return false;
	}
	fade1_feb_begin(feb, settings);
	feb->pending = false;
	memset(&feb->answer, 0, sizeof(feb->answer));
	feb->answer.code = FADE_CMD_START;
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
 * fade_feb_command - a command begins to wait for its response
 * @feb: the FEB
 * @code: code of the command
 *
 * Returns its sequence number. Frames of before a START must not pass for the
 * new ones: until its response no data is taken.
 */
u16 fade_feb_command(struct fade_feb *feb, u16 code)
{
	if (code == FADE_CMD_START) {
		feb->started = false;
		feb->starting = FADE1_FRESH;
	}
	feb->pending = true;
	feb->pending_code = code;
	return ++feb->csn;
}

/**
 * fade_feb_take - decides about a frame from a FEB that is open
 * @feb: the FEB
 * @settings: of a transmission that may begin
 * @kind: what the frame is, of fade_parse(); no drop reason of the link
 * @frame: its fields
 * @given_back: bytes that have left the ring since the start
 * @now_ms: time, for the rate of RESETs
 * @out: what to do
 */
void fade_feb_take(struct fade_feb *feb, const struct fade_settings *settings,
		   enum fade_kind kind, const struct fade_frame *frame,
		   u64 given_back, u64 now_ms, struct fade_actions *out)
{
	memset(out, 0, sizeof(*out));
	switch (kind) {
	case FADE_KIND_DATA:
		take_response(feb, settings, &frame->response, out);
		if (out->begun)
			given_back = 0;
		if (runs(feb, FADE_PROTOCOL_FADE10G))
			take_data(feb, frame, given_back / FADE_PACKET_BYTES, out);
		else
			take_stray(feb, now_ms, out);
		break;
	case FADE_KIND_DATA1:
		if (runs(feb, FADE_PROTOCOL_FADE1))
			take_data1(feb, frame, given_back / FADE1_PACKET_BYTES, out);
		else if (begins_fade1(feb, settings, frame, out))
			take_data1(feb, frame, 0, out);
		else
			take_stray(feb, now_ms, out);
		break;
	case FADE_BAD_PACKET1:
		fade1_error(feb, out);
		break;
	case FADE_KIND_RESPONSE:
		take_response(feb, settings, &frame->response, out);
		break;
	case FADE_BAD_LENGTH:
		feb->stats.wrong_length++;
		break;
	default:
		feb->stats.wrong_valid_words++;
		break;
	}
}
