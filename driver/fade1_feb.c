// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A transmission of FADE v1: its data, and its end; see fade_rules.h.
 */
#include "fade_feb.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

/* What is known of the end of a transmission of FADE v1 does not hold. */
void fade1_sends_on(struct fade_feb *feb)
{
	feb->stops = 0;
	feb->told = FADE_ENDING_UNKNOWN;
}

/**
 * fade_feb_unheard - nothing can come from the FEB at this moment
 * @feb: the FEB
 *
 * Its silence means nothing: that after STOP counts anew.
 */
void fade_feb_unheard(struct fade_feb *feb)
{
	fade1_sends_on(feb);
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
		fade1_sends_on(feb);
		feb->next_request = now_ms;
	}
	feb->stopping = true;
	return true;
}

static void end1(struct fade_feb *feb, u32 state, u32 ending)
{
	feb->state = state;
	feb->ending = ending;
	feb->stopping = false;
	feb->waiting = false;
}

static void add_start1(struct fade_feb *feb, struct fade_tick *out)
{
	feb->stats.commands++;
	fade_add_request(out, true, FADE1_TYPE_START, feb->number, feb->permit);
}

/* What FADE v1, which confirms no command, must repeat. */
void fade1_tick(struct fade_feb *feb, u64 now_ms, struct fade_tick *out)
{
	if (fade_runs(feb, FADE_PROTOCOL_FADE1) && feb->permit_due) {
		/*
		 * Also before STOP: what is asked to begin and to end at once
		 * begins.
		 */
		feb->permit_due = false;
		feb->has_shown = true;
		if (!feb->stopping)
			feb->next_request = now_ms + FADE1_INTERVAL_MS;
		add_start1(feb, out);
	}
	if (!fade_runs(feb, FADE_PROTOCOL_FADE1) ||
	    !(feb->waiting || feb->stopping) || now_ms < feb->next_request)
		return;
	feb->next_request = now_ms + FADE1_INTERVAL_MS;
	if (!feb->stopping) {
		add_start1(feb, out);
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
	fade_add_request(out, true, FADE1_TYPE_STOP, 0, 0);
}

/* The packet does not fit what is in flight: the FEB is told to stop. */
void fade1_error(struct fade_feb *feb, u64 now_ms, struct fade_actions *out)
{
	feb->stats.protocol_errors++;
	if (fade_runs(feb, FADE_PROTOCOL_FADE1) && !feb->stopping)
		out->tick = fade1_feb_stop(feb, now_ms);
}

void fade1_take_data(struct fade_feb *feb, const struct fade_settings *settings,
		     const struct fade_frame *frame, u64 released, u64 now_ms,
		     struct fade_actions *out)
{
	u64 index = 0;
	bool tells;

	if (feb->first != FADE_FIRST_COME) {
		if (!settings->firmware)
			feb->firmware = frame->retry == FADE1_RETRY_FADELINK ?
						FADE_FIRMWARE_FADELINK :
						FADE_FIRMWARE_PUBLISHED_V1;
		feb->swap = fade_swap_of(feb, settings);
		/* Fadelink's answers START. */
		tells = feb->firmware == FADE_FIRMWARE_FADELINK && feb->waiting;
		if (!fade_admits(feb, !frame->sequence && !frame->packet, false,
				 tells ? FADE_ANSWER_PATIENCE_MS :
					 FADE_FIRST_PATIENCE_MS,
				 now_ms, out))
			return;
	}
	feb->waiting = false;
	feb->stats.delay = frame->delay;
	fade1_sends_on(feb);
	switch (fade1_sets_judge(&feb->sets, frame->sequence, frame->packet,
				 released, &index)) {
	case FADE1_STORE:
		if (feb->state == FADE_STATE_COMPLETE) {
			/* Nothing new may come, but an ACK may have been lost. */
			feb->stats.protocol_errors++;
			return;
		}
		out->slot = fade_ring_place(index, feb->sets.ring_packets);
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
		fade_note_unconfirmed(feb, index, frame);
		return;
	}
	feb->stats.acks++;
	out->confirm = true;
}

/* The state that nobody has asked for, but START. */
static void take_unasked1(struct fade_feb *feb,
			  const struct fade_settings *settings,
			  const struct fade_frame *frame, bool ours,
			  u64 now_ms, struct fade_actions *out)
{
	bool runs = frame->sequence == FADE1_STATE_RUNNING;

	if (runs && feb->waiting) {
		feb->stats.responses++;
		if (ours) {
			feb->waiting = false;
			if (feb->first != FADE_FIRST_COME) {
				if (!settings->firmware)
					feb->firmware = FADE_FIRMWARE_FADELINK;
				feb->swap = fade_swap_of(feb, settings);
			}
			feb->first = FADE_FIRST_COME;
		} else if (++feb->others >= FADE1_SHOWN) {
			/* One answer may be to IDENTIFY, and late. */
			feb->first = FADE_FIRST_MISSING;
			feb->first_until = now_ms;
			out->tick = true;
		}
	} else if (ours && !runs && frame->sequence != FADE1_STATE_NONE &&
		   feb->state == FADE_STATE_RUNNING) {
		/* Somebody else has stopped it. */
		feb->stats.protocol_errors++;
	} else {
		feb->stats.unexpected_responses++;
	}
}

/*
 * An idle FEB tells the permit of this moment, while START is not known to have
 * been obeyed. Returns false if it does not. Where STOP is under way, what speaks
 * against the transmission is said at its end.
 */
static bool take_permit1(struct fade_feb *feb, const struct fade_frame *frame,
			 bool ours, u64 now_ms, struct fade_actions *out)
{
	if (frame->sequence == FADE1_STATE_RUNNING ||
	    frame->sequence == FADE1_STATE_STOPPING || !frame->permit ||
	    !feb->waiting || feb->first == FADE_FIRST_COME ||
	    (feb->stopping && feb->has_shown))
		return false;
	feb->stats.responses++;
	if (feb->has_shown && (ours || frame->permit != feb->permit)) {
		/*
		 * That START may have been obeyed, and the FEB was reset or
		 * switched off behind it.
		 */
		feb->first = FADE_FIRST_MISSING;
		feb->first_until = now_ms;
		out->tick = true;
	} else if (frame->permit != feb->permit) {
		feb->permit = frame->permit;
		feb->permit_due = true;
		out->tick = true;
	}
	return true;
}

/*
 * The FEB answers IDENTIFY, START or STOP. What does not agree with what has
 * come is believed when no data follows.
 */
void fade1_take_state(struct fade_feb *feb,
		      const struct fade_settings *settings,
		      const struct fade_frame *frame, u64 now_ms,
		      struct fade_actions *out)
{
	bool running = fade_runs(feb, FADE_PROTOCOL_FADE1);
	bool ours = running && frame->number == feb->number;

	if (!running && !feb->protocol && frame->permit_told &&
	    feb->start.stage == FADE_STAGE_START && feb->start.attempts) {
		feb->stats.responses++;
		feb->protocol = FADE_PROTOCOL_FADE1;
		if (!settings->firmware)
			feb->firmware = FADE_FIRMWARE_FADELINK;
		fade_start_unknown1(feb, now_ms, out);
		return;
	}
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
	if (ours && feb->state == FADE_STATE_RUNNING && frame->resets_told) {
		feb->resets_told = true;
		feb->resets = frame->resets;
		memcpy(feb->reset_by, frame->reset_by, sizeof(feb->reset_by));
	}
	if (running && take_permit1(feb, frame, ours, now_ms, out))
		return;
	if (!running || !feb->stopping) {
		take_unasked1(feb, settings, frame, ours, now_ms, out);
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
		if (!feb->sets.ahead &&
		    frame->packet == (u32)feb->sets.in_order)
			end1(feb, FADE_STATE_COMPLETE, FADE_ENDING_CONFIRMED);
		else
			feb->told = FADE_ENDING_OTHER_NUMBER;
		break;
	case FADE1_STATE_RESET:
		feb->told = FADE_ENDING_RESET;
		break;
	default:
		fade1_sends_on(feb);
		break;
	}
}
