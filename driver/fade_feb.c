// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * What happens to a frame of a FEB: its responses, and the data of FADE-10G; see
 * fade_rules.h.
 */
#include "fade_feb.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

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

bool fade_is_identity(const struct fade_response *response)
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
	bool told = fade_is_identity(response);

	*csn = told ? (u16)(response->value >> 24) : response->csn;
	return response->code && response->code != FADE_CMD_RESET_BY &&
	       (!told || response->value >> 40 & FADE_IDENTITY_CSN);
}

/* Never 0: the published core takes that, after RESET, for a repetition. */
u16 fade_new_csn(struct fade_feb *feb)
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
u32 fade_swap_of(const struct fade_feb *feb,
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

/* The transmission ends before its end. */
void fade_abort_running(struct fade_feb *feb)
{
	if (feb->state == FADE_STATE_RUNNING)
		feb->state = FADE_STATE_ABORTED;
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
	bool pending = feb->pending && response->code == feb->pending_code &&
		       response->csn == feb->pending_csn;
	bool starts = fade_answers_start(feb, response);
	bool again;
	u16 csn;

	if (!response->code)
		return;
	if (fade_shows_csn(response, &csn) && fade_csn_after(csn, feb->csn))
		feb->csn = csn;
	again = riding && same_response(response, &feb->last_response);
	feb->last_response = *response;
	/*
	 * One that nobody asked for may be forged. The FEB stays what it is
	 * while a transmission runs.
	 */
	if (response->code == FADE_CMD_IDENTIFY && (pending || starts) &&
	    !feb->started)
		fade_identified(feb, settings, response);
	if (pending) {
		feb->stats.responses++;
		feb->csn_told |= response->code == FADE_CMD_IDENTIFY;
		feb->pending = false;
		feb->answer = *response;
		out->answered = true;
	} else if (starts) {
		feb->stats.responses++;
		fade_start_answered(feb, settings, response->value, now_ms,
				    out);
	} else if (!again) {
		/* The published core repeats its last one in every frame. */
		feb->stats.unexpected_responses++;
	}
}

/*
 * Whether a packet is of this transmission: the @first one, or one that is
 * @foreign to its begin. What may be of it is neither stored nor confirmed
 * before the first has come, and will come again.
 */
bool fade_admits(struct fade_feb *feb, bool first, bool foreign,
		 u32 patience_ms, u64 now_ms, struct fade_actions *out)
{
	if (first) {
		feb->first = FADE_FIRST_COME;
		return true;
	}
	feb->stats.not_started++;
	if (feb->first == FADE_FIRST_AWAITED) {
		feb->first = FADE_FIRST_MISSING;
		feb->first_until = now_ms + patience_ms;
	}
	if (foreign || fade_is_overdue(feb, now_ms))
		fade_restart(feb, now_ms);
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
		start->interrupted |= (start->stage == FADE_STAGE_IDENTIFY &&
				       !start->has_obeyed) ||
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
void fade_note_unconfirmed(struct fade_feb *feb, u64 index,
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
	    !fade_admits(feb, !ahead, ahead >= feb->window.size,
			 FADE_FIRST_PATIENCE_MS, now_ms, out))
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
	fade_note_unconfirmed(feb, index, frame);
	out->confirm = !takes_blocks(feb);
}

/*
 * True if data of FADE v1 answers START, which is sent in both protocols where
 * the FEB did not say what it speaks.
 */
static bool begins_fade1(struct fade_feb *feb,
			 const struct fade_settings *settings, u64 now_ms,
			 struct fade_actions *out)
{
	if (feb->start.stage != FADE_STAGE_START || !feb->start.attempts ||
	    feb->protocol)
		return false;
	fade1_begin(feb, settings);
	/* It may say that it runs another transmission. */
	feb->waiting = true;
	feb->next_request = now_ms + FADE1_INTERVAL_MS;
	out->tick = true;
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
	feb->pending_csn = fade_new_csn(feb);
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
		take_response(feb, settings, &frame->response, true, now_ms,
			      out);
		if (out->begun)
			given_back = 0;
		if (fade_runs(feb, FADE_PROTOCOL_FADE10G))
			take_data(feb, frame, given_back / FADE_PACKET_BYTES,
				  now_ms, out);
		else
			take_stray(feb, now_ms, out);
		break;
	case FADE_KIND_DATA1:
		if (begins_fade1(feb, settings, now_ms, out))
			given_back = 0;
		if (fade_runs(feb, FADE_PROTOCOL_FADE1))
			fade1_take_data(feb, settings, frame,
					given_back / FADE1_PACKET_BYTES, now_ms,
					out);
		else
			take_stray(feb, now_ms, out);
		break;
	case FADE_KIND_STATE1:
		fade1_take_state(feb, settings, frame, now_ms, out);
		break;
	case FADE_BAD_PACKET1:
		fade1_error(feb, now_ms, out);
		break;
	case FADE_KIND_RESPONSE:
		take_response(feb, settings, &frame->response, false, now_ms,
			      out);
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
	bool fade1 = fade_runs(feb, FADE_PROTOCOL_FADE1);

	if (!feb->unconfirmed ||
	    !(fade1 || fade_runs(feb, FADE_PROTOCOL_FADE10G)))
		return false;
	feb->unconfirmed = false;
	feb->stats.acks++;
	*out = feb->newest;
	out->fade1 = fade1;
	out->block = fade1 || takes_blocks(feb);
	if (fade1)
		out->stored = fade1_sets_stored_before(&feb->sets, out->index);
	else if (out->block)
		out->stored =
			fade_window_stored_before(&feb->window, out->index);
	return true;
}
