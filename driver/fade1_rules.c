// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The receiver's rules of FADE v1; see fade1_rules.h.
 */
#include "fade_rules.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

/**
 * fade1_is_type - a type of FADE v1 stands where FADE-10G has its version
 * @type: the 16 bits behind the ethertype
 */
bool fade1_is_type(u16 type)
{
	return type == FADE1_TYPE_DATA || type == FADE1_TYPE_STATE ||
	       type == FADE1_TYPE_START || type == FADE1_TYPE_STOP ||
	       type == FADE1_TYPE_ACK || type == FADE1_TYPE_RESET;
}

/**
 * fade1_request - makes START, STOP or RESET
 * @out: FADE_REQUEST_LEN bytes, without check sequence
 * @feb: address of the FEB
 * @local: address of this computer
 * @type: FADE1_TYPE_*
 * @number: START: of the transmission
 * @permit: START: with which alone it is obeyed by a FEB that gives permits
 */
void fade1_request(u8 *out, const u8 *feb, const u8 *local, u16 type,
		   u16 number, u32 permit)
{
	memset(out, FADE_FILLER, FADE_REQUEST_LEN);
	memcpy(out, feb, 6);
	memcpy(out + 6, local, 6);
	out[12] = FADE_ETHERTYPE >> 8;
	out[13] = FADE_ETHERTYPE & 0xff;
	out[14] = (u8)(type >> 8);
	out[15] = (u8)type;
	if (type == FADE1_TYPE_START) {
		out[16] = (u8)(number >> 8);
		out[17] = (u8)number;
		out[18] = FADE1_PERMIT_MARK >> 8;
		out[19] = FADE1_PERMIT_MARK & 0xff;
		out[20] = (u8)(permit >> 24);
		out[21] = (u8)(permit >> 16);
		out[22] = (u8)(permit >> 8);
		out[23] = (u8)permit;
	}
}

/**
 * fade1_ack - makes the ACK of a packet
 * @out: FADE_REQUEST_LEN bytes, without check sequence
 * @feb: address of the FEB
 * @local: address of this computer
 * @what: what it tells: the number of the packet's set as its sequence
 */
void fade1_ack(u8 *out, const u8 *feb, const u8 *local,
	       const struct fade_confirmation *what)
{
	fade1_request(out, feb, local, FADE1_TYPE_ACK, 0, 0);
	out[16] = (u8)(what->sequence >> 8);
	out[17] = (u8)what->sequence;
	out[18] = (u8)(what->packet << (FADE1_RETRY_BITS - 8));
	out[19] = 0;
	if (what->block)
		fade_block(out + 20, what->stored);
}

/**
 * fade1_sets_judge - what to do with a packet
 * @s: the transmission
 * @set: number of the packet's set
 * @packet: its number in the set, less than FADE1_SET_PACKETS
 * @released: packets that have left the ring since the start
 * @index: of FADE1_STORE and FADE1_CONFIRM_AGAIN: packets before this one
 *	since the start
 *
 * Packets of two consecutive sets may be under way: of the set that is not
 * complete and of the next. One of the set before has lost its ACK. Every other
 * set is a protocol error. Nothing changes until fade1_sets_stored().
 */
enum fade1_verdict fade1_sets_judge(const struct fade1_sets *s, u16 set,
				    u32 packet, u64 released, u64 *index)
{
	u64 current_set = s->in_order / FADE1_SET_PACKETS;
	u16 ahead = (u16)(set - (u16)current_set);

	if (ahead == 0xffff && current_set > 0) {
		*index = (current_set - 1) * FADE1_SET_PACKETS + packet;
		return FADE1_CONFIRM_AGAIN;
	}
	if (ahead > 1)
		return FADE1_PROTOCOL_ERROR;
	*index = (current_set + ahead) * FADE1_SET_PACKETS + packet;
	if (*index < s->in_order || (s->ahead >> (*index - s->in_order) & 1))
		return FADE1_CONFIRM_AGAIN;
	if (*index - released >= s->ring_packets)
		return FADE1_NO_SPACE;
	return FADE1_STORE;
}

/**
 * fade1_sets_stored - notes that a packet is in the ring
 * @s: the transmission
 * @index: of fade1_sets_judge()
 *
 * Returns true if it filled a gap: a later packet is in the ring already.
 */
bool fade1_sets_stored(struct fade1_sets *s, u64 index)
{
	bool filled_gap = s->ahead >> (index - s->in_order);

	s->ahead |= 1ull << (index - s->in_order);
	while (s->ahead & 1) {
		s->ahead >>= 1;
		s->in_order++;
	}
	return filled_gap;
}

/**
 * fade1_sets_stored_before - which packets before one of these sets are in
 * @s: the transmission
 * @index: packets before it since the start
 *
 * Returns bit i set if packet @index - 1 - i is in.
 */
u64 fade1_sets_stored_before(const struct fade1_sets *s, u64 index)
{
	return fade_stored_before(index, s->in_order, s->ahead);
}
