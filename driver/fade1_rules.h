/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The receiver's rules of FADE v1, without kernel calls: its formats, and which
 * packet is stored or confirmed (docs/protocol/fade1.md). fade1_feb.c decides
 * about frames.
 */
#ifndef FADE1_RULES_H
#define FADE1_RULES_H

#include "fade_types.h"

#define FADE1_TYPE_START	0x0001
#define FADE1_TYPE_STOP		0x0002
#define FADE1_TYPE_ACK		0x0003
#define FADE1_TYPE_RESET	0x0005
#define FADE1_TYPE_DATA		0xA5A5
#define FADE1_TYPE_STATE	0xA55A

/* What a Fadelink FEB reports on its current or last transmission. */
#define FADE1_STATE_NONE	0	/* none since it was switched on */
#define FADE1_STATE_RUNNING	1
#define FADE1_STATE_STOPPING	2
#define FADE1_STATE_ENDED	3	/* by STOP: every packet is confirmed */
#define FADE1_STATE_RESET	4	/* by RESET */
/* Before the RESETs in a state: they are counted. */
#define FADE1_STATE_RESETS	1
#define FADE1_STATE_LEN		(FADE1_DATA_HEADER_LEN + 8)
/* Before a permit, in START and in a state behind the CRC: it is used. */
#define FADE1_PERMIT_MARK	0x9E12
#define FADE1_STATE_PERMIT_LEN	(FADE1_STATE_LEN + 16)

#define FADE1_PACKET_BYTES	1024
#define FADE1_SET_PACKETS	32
#define FADE1_RETRY_BITS	10
#define FADE1_RETRY_FADELINK	0x2A5
#define FADE1_BLOCK_MARK	0xB10C
/* Above the delay: it accepts block ACKs; a packet sent again has the same words. */
#define FADE1_TAKES_BLOCK_ACKS	0x80000000
#define FADE1_SAME_WORDS	0x40000000
#define FADE1_DATA_HEADER_LEN	24
#define FADE1_DATA_FRAME_LEN	(FADE1_DATA_HEADER_LEN + FADE1_PACKET_BYTES)
/* Packets of 8192 bytes that hold two sets, the most that is in flight. */
#define FADE1_MIN_RING_PACKETS	8

/* Like enum fade_verdict, for a packet of FADE v1. */
enum fade1_verdict {
	FADE1_STORE,
	FADE1_CONFIRM_AGAIN,
	FADE1_NO_SPACE,
	FADE1_PROTOCOL_ERROR,
};

/**
 * struct fade1_sets - the receiver's view of one transmission, from set 0 on
 * @ring_packets: packets of 1024 bytes of the ring, a power of two, at least two
 *	sets
 * @in_order: packets received without a gap since the start
 * @ahead: bit i: packet in_order + i is in; bit 0 is always clear
 */
struct fade1_sets {
	u64 ring_packets;
	u64 in_order;
	u64 ahead;
};

struct fade_confirmation;

/*
 * Where in a ring something is that is counted since its begin. The size of every
 * ring is a power of two: 32-bit kernels cannot divide 64 bits by a variable.
 */
static inline u64 fade_ring_place(u64 count, u64 ring)
{
	return count & (ring - 1);
}

bool fade1_is_type(u16 type);
void fade1_request(u8 *out, const u8 *feb, const u8 *local, u16 type,
		   u16 number, u32 permit);
void fade1_ack(u8 *out, const u8 *feb, const u8 *local,
	       const struct fade_confirmation *what);
enum fade1_verdict fade1_sets_judge(const struct fade1_sets *s, u16 set,
				    u32 packet, u64 released, u64 *index);
bool fade1_sets_stored(struct fade1_sets *s, u64 index);
u64 fade1_sets_stored_before(const struct fade1_sets *s, u64 index);

#endif /* FADE1_RULES_H */
