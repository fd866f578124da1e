// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Frames of FADE-10G and FADE v1: what comes is read, and what goes is written;
 * see fade_rules.h.
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
 * One reading at most is in range. Above a mark may be a CRC, which a driver
 * does not ask for.
 */
static u64 valid_words(const u8 *final_word)
{
	u64 words = le64_at(final_word);

	if ((words >> 16 & 0xFFFF) == FADE_CHECKSUM_MARK)
		return words & 0xFFFF;
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
	if (len >= FADE1_STATE_LEN && head[24] == FADE1_STATE_RESETS) {
		out->resets_told = true;
		out->resets = head[25];
		memcpy(out->reset_by, head + 26, sizeof(out->reset_by));
	}
	if (len >= FADE1_STATE_PERMIT_LEN &&
	    be16_at(head + 40) == FADE1_PERMIT_MARK) {
		out->permit_told = true;
		out->permit = be32_at(head + 44) & (~0u >> FADE_PERMIT_SHIFT);
	}
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
	if (out->retry == FADE1_RETRY_FADELINK) {
		out->block_acks = out->delay & FADE1_TAKES_BLOCK_ACKS;
		out->delay &= ~(FADE1_TAKES_BLOCK_ACKS | FADE1_SAME_WORDS);
	}
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
 *	them, or FADE_HEAD_LEN where the frame is longer
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
