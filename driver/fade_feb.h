/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the rules of a FEB share: fade_feb.c, fade_start.c and fade1_feb.c.
 */
#ifndef FADE_FEB_H
#define FADE_FEB_H

#include "fade_rules.h"

static inline bool fade_runs(const struct fade_feb *feb, u32 protocol)
{
	return feb->started && feb->protocol == protocol;
}

void fade_add_request(struct fade_tick *out, bool fade1, u16 code, u16 csn,
		      u32 argument);
void fade_start_unknown1(struct fade_feb *feb, u64 now_ms,
			 struct fade_actions *out);
void fade_restart(struct fade_feb *feb, u64 now_ms);
void fade1_begin(struct fade_feb *feb, const struct fade_settings *settings);
void fade_identified(struct fade_feb *feb, const struct fade_settings *settings,
		     const struct fade_response *response);
bool fade_answers_start(const struct fade_feb *feb,
			const struct fade_response *response);
void fade_start_answered(struct fade_feb *feb,
			 const struct fade_settings *settings, u64 value,
			 u64 now_ms, struct fade_actions *out);
bool fade_is_overdue(const struct fade_feb *feb, u64 now_ms);
void fade1_sends_on(struct fade_feb *feb);
void fade1_tick(struct fade_feb *feb, u64 now_ms, struct fade_tick *out);
void fade1_error(struct fade_feb *feb, u64 now_ms, struct fade_actions *out);
void fade1_take_data(struct fade_feb *feb, const struct fade_settings *settings,
		     const struct fade_frame *frame, u64 released, u64 now_ms,
		     struct fade_actions *out);
void fade1_take_state(struct fade_feb *feb,
		      const struct fade_settings *settings,
		      const struct fade_frame *frame, u64 now_ms,
		      struct fade_actions *out);
bool fade_is_identity(const struct fade_response *response);
u16 fade_new_csn(struct fade_feb *feb);
u32 fade_swap_of(const struct fade_feb *feb,
		 const struct fade_settings *settings);
void fade_abort_running(struct fade_feb *feb);
bool fade_admits(struct fade_feb *feb, bool first, bool foreign,
		 u32 patience_ms, u64 now_ms, struct fade_actions *out);
void fade_note_unconfirmed(struct fade_feb *feb, u64 index,
			   const struct fade_frame *frame);

#endif
