// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * START and RESET: what a FEB is asked and told before its transmission begins, or
 * begins again; see fade_rules.h.
 */
#include "fade_feb.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

void fade_add_request(struct fade_tick *out, bool fade1, u16 code, u16 csn,
		      u32 argument)
{
	struct fade_request *request = &out->requests[out->count++];

	request->fade1 = fade1;
	request->code = code;
	request->csn = csn;
	request->argument = argument;
}

/* START has an outcome. */
static void start_ends(struct fade_feb *feb, u32 outcome)
{
	feb->stats.interrupted += feb->start.interrupted;
	feb->stats.begun_again += feb->start.begun_again;
	feb->start.stage = FADE_STAGE_NONE;
	feb->start.outcome = outcome;
	/* A transmission that should have begun again. */
	if (outcome != FADE_BEGUN && !feb->start.asked)
		fade_abort_running(feb);
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
	start->permit = 0;
	start->heard = false;
	start->next = now_ms + FADE_SETTLE_MS;
}

static void begin_stage_start(struct fade_feb *feb, u64 now_ms)
{
	feb->start.stage = FADE_STAGE_START;
	feb->start.csn = fade_new_csn(feb);
	feb->start.attempts = 0;
	feb->start.next = now_ms;
}

/* The FEB goes on with an earlier transmission: RESET and START. */
void fade_restart(struct fade_feb *feb, u64 now_ms)
{
	u32 timeout_ms = feb->start.timeout_ms, retries = feb->start.retries;

	/*
	 * It may have been this one, whose first packet was lost: the FEB has
	 * taken words for it. That it runs another one may have been said
	 * before START reached it.
	 */
	feb->stats.begun_again++;
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
	feb->start.csn = fade_new_csn(feb);
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
	feb->start.csn = fade_new_csn(feb);
	feb->start.attempts = 0;
	feb->start.next = now_ms;
}

static void begin(struct fade_feb *feb, const struct fade_settings *settings,
		  u32 protocol, bool proven)
{
	feb->protocol = protocol;
	feb->swap = fade_swap_of(feb, settings);
	feb->state = FADE_STATE_RUNNING;
	feb->ending = FADE_ENDING_UNKNOWN;
	feb->started = true;
	feb->number = feb->start.csn;
	feb->resets_told = false;
	feb->unconfirmed = false;
	feb->first = proven ? FADE_FIRST_COME : FADE_FIRST_AWAITED;
	start_ends(feb, FADE_BEGUN);
}

static void begin10g(struct fade_feb *feb, const struct fade_settings *settings)
{
	fade_window_init(&feb->window, settings->first_packet, settings->window,
			 settings->ring_packets);
	feb->sequence_known = false;
	begin(feb, settings, FADE_PROTOCOL_FADE10G,
	      feb->firmware == FADE_FIRMWARE_FADELINK);
}

void fade1_begin(struct fade_feb *feb, const struct fade_settings *settings)
{
	memset(&feb->sets, 0, sizeof(feb->sets));
	feb->sets.ring_packets = settings->ring_packets *
				 (FADE_PACKET_BYTES / FADE1_PACKET_BYTES);
	feb->waiting = false;
	feb->permit = 0;
	feb->permit_due = false;
	feb->has_shown = false;
	feb->others = 0;
	feb->stopping = false;
	fade1_sends_on(feb);
	begin(feb, settings, FADE_PROTOCOL_FADE1, false);
}

/* The FEB has answered IDENTIFY, so it speaks FADE-10G. */
void fade_identified(struct fade_feb *feb, const struct fade_settings *settings,
		     const struct fade_response *response)
{
	bool ours = fade_is_identity(response);
	struct fade_start *start = &feb->start;

	/* The first packet proves that of a published core. */
	if (ours && (!(response->value >> 40 & FADE_IDENTITY_RUNNING) ||
		     (u16)(response->value >> 8) != start->obeyed))
		start->has_obeyed = false;
	feb->protocol = FADE_PROTOCOL_FADE10G;
	feb->identified = ours;
	feb->block_acks =
		ours && response->value >> 40 & FADE_IDENTITY_BLOCK_ACKS;
	if (!settings->firmware)
		feb->firmware = ours ? FADE_FIRMWARE_FADELINK :
				       FADE_FIRMWARE_PUBLISHED_10G;
}

/*
 * A FEB of FADE v1 answers START, which was sent in both protocols. It gives
 * permits, so it has not obeyed that START, which showed none.
 */
void fade_start_unknown1(struct fade_feb *feb, u64 now_ms,
			 struct fade_actions *out)
{
	start_resets(feb, true, now_ms);
	out->tick = true;
}

bool fade_answers_start(const struct fade_feb *feb,
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

/*
 * It speaks FADE-10G, and has not told what it is. Every core answers IDENTIFY,
 * so the cable was out when it was asked: which core it is decides the order of
 * its words.
 */
static void identify_again(struct fade_feb *feb, u64 now_ms,
			   struct fade_actions *out)
{
	struct fade_start *start = &feb->start;

	if (start->refusals == FADE_START_ATTEMPTS) {
		start_ends(feb, FADE_NO_RESPONSE);
		out->answered = true;
		return;
	}
	start->refusals++;
	start->permit = 0;
	start->stage = FADE_STAGE_IDENTIFY;
	start->csn = fade_new_csn(feb);
	start->attempts = 0;
	start->next = now_ms;
	out->tick = true;
}

/* The answer to START has a permit. */
static bool gives_permit(u64 value)
{
	return (value & FADE_STATUS_PERMIT) == FADE_STATUS_PERMIT &&
	       value >> 32 == 0;
}

void fade_start_answered(struct fade_feb *feb,
			 const struct fade_settings *settings, u64 value,
			 u64 now_ms, struct fade_actions *out)
{
	struct fade_start *start = &feb->start;

	feb->csn_told |= start->stage == FADE_STAGE_IDENTIFY;
	if (start->stage == FADE_STAGE_STOP) {
		start->stage = FADE_STAGE_NONE;
		return;
	}
	if (start->stage == FADE_STAGE_START && !feb->firmware) {
		start->has_obeyed = !value;
		start->obeyed = start->csn;
		identify_again(feb, now_ms, out);
		return;
	}
	if (start->stage == FADE_STAGE_IDENTIFY && start->has_obeyed) {
		start->csn = start->obeyed;
		value = 0;
		start->stage = FADE_STAGE_START;
	}
	/*
	 * With a permit it may have been obeyed before: that permit was used
	 * up then, and this is the answer to a repetition.
	 */
	if (start->stage == FADE_STAGE_START && start->permit && value)
		start->begun_again++;
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
	if (start->stage == FADE_STAGE_START && gives_permit(value)) {
		start->refusals++;
		start->permit = (u32)value >> FADE_PERMIT_SHIFT;
		begin_stage_start(feb, now_ms);
	} else if (start->stage == FADE_STAGE_IDENTIFY &&
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
	start->csn = fade_new_csn(feb);
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
	fade_abort_running(feb);
}

static void send_resets(struct fade_feb *feb, struct fade_tick *out)
{
	int i;

	feb->start.resets_due = false;
	for (i = 0; i < FADE_RESETS; i++) {
		feb->stats.resets++;
		if (feb->protocol != FADE_PROTOCOL_FADE1)
			fade_add_request(out, false, FADE_CMD_RESET, 0, 0);
		if (feb->protocol != FADE_PROTOCOL_FADE10G)
			fade_add_request(out, true, FADE1_TYPE_RESET, 0, 0);
	}
}

/* The published core has a meaning for none. */
static u32 start_argument(const struct fade_feb *feb)
{
	if (feb->firmware == FADE_FIRMWARE_PUBLISHED_10G)
		return 0;
	return feb->start.permit << FADE_PERMIT_SHIFT | FADE_START_PERMIT;
}

static void tick_start(struct fade_feb *feb,
		       const struct fade_settings *settings, u64 now_ms,
		       struct fade_tick *out)
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
	if (start->stage == FADE_STAGE_IDENTIFY && start->has_obeyed &&
	    start->attempts == FADE_IDENTIFY_ATTEMPTS) {
		/* RESET would end the transmission that has begun. */
		struct fade_actions again = {};

		identify_again(feb, now_ms, &again);
		out->wake |= again.answered;
		if (start->stage == FADE_STAGE_NONE)
			return;
	}
	if (start->stage == FADE_STAGE_IDENTIFY &&
	    start->attempts < FADE_IDENTIFY_ATTEMPTS) {
		start->next = now_ms + start->timeout_ms / FADE_IDENTIFY_SHARE;
		start->attempts++;
		feb->stats.commands++;
		fade_add_request(out, false, FADE_CMD_IDENTIFY, start->csn, 0);
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
			fade1_begin(feb, settings);
			feb->waiting = true;
			feb->stopping = feb->stop_sent;
			feb->next_request = now_ms;
			out->begun = true;
			out->wake = true;
			fade1_tick(feb, now_ms, out);
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
		fade_add_request(out, false, FADE_CMD_STOP, start->csn, 0);
		return;
	}
	fade_add_request(out, false, FADE_CMD_START, start->csn,
			 start_argument(feb));
	if (!feb->protocol)
		fade_add_request(out, true, FADE1_TYPE_START, start->csn, 0);
}

bool fade_is_overdue(const struct fade_feb *feb, u64 now_ms)
{
	return feb->first == FADE_FIRST_MISSING && now_ms >= feb->first_until;
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
	if (feb->started && fade_is_overdue(feb, now_ms))
		fade_restart(feb, now_ms);
	fade1_tick(feb, now_ms, out);
	tick_start(feb, settings, now_ms, out);
	out->wake |= feb->state == FADE_STATE_ABORTED;
	next_at(out,
		fade_runs(feb, FADE_PROTOCOL_FADE1) &&
			(feb->waiting || feb->stopping),
		feb->next_request);
	next_at(out, feb->start.stage != FADE_STAGE_NONE, feb->start.next);
	next_at(out, feb->started && feb->first == FADE_FIRST_MISSING,
		feb->first_until);
}
