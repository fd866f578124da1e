// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Which packet of FADE-10G is stored or confirmed; see fade_rules.h.
 */
#include "fade_rules.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

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
