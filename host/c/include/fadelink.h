/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fadelink for C: receive the data of front-end boards (FEBs), in place and
 * without loss. Link with -lfadelink. examples/receive.c is a complete program.
 *
 * Functions that fail return NULL or a negative value, and fadelink_error() returns
 * the reason. Several threads may use a receiver, but only one a FEB, except for
 * fadelink_command() and fadelink_stop(), which any thread may call.
 *
 * A process that was forked has nothing of what its parent has opened: all functions
 * but those that close return an error for it, and closing does nothing. It may open its
 * own. What the parent closes is free at once, though its child lives.
 */
#ifndef FADELINK_H
#define FADELINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives from the FEBs behind one interface. */
typedef struct fadelink_receiver fadelink_receiver;
/* An open FEB. */
typedef struct fadelink_feb fadelink_feb;

/* Settings of a FEB. */
typedef struct fadelink_config {
	uint64_t ring_packets; /* packets of 8192 bytes, a power of two, at least the window */
	uint32_t window;       /* window of the FEB in packets, 1 to 64; a larger value is safe */
	uint32_t first_packet; /* number of the first packet: always 0, except in tests */
	uint32_t protocol;     /* FADELINK_ANY: START finds it out */
	uint32_t firmware;     /* FADELINK_ANY: START finds it out */
	uint32_t word_order;   /* on the wire; FADELINK_ANY: that of the firmware */
} fadelink_config;

/* Protocol, firmware and word order: unknown, or not given. */
#define FADELINK_ANY	 0

#define FADELINK_FADE10G 1
#define FADELINK_FADE1	 2 /* the last packet ends with filler, 0xA5 */

#define FADELINK_FIRMWARE_FADELINK	1
#define FADELINK_FIRMWARE_PUBLISHED_10G 2 /* the FADE-10G core of the authors of FADE */
#define FADELINK_FIRMWARE_PUBLISHED_V1	3 /* their FADE v1 core; its words have 32 bits */

#define FADELINK_WORDS_LITTLE 1
#define FADELINK_WORDS_BIG    2

#define FADELINK_CONFIG_DEFAULT { 2048, 64, 0, FADELINK_ANY, FADELINK_ANY, FADELINK_ANY }

/* The kind of a FEB, found out by START; FADELINK_ANY: not known yet. */
typedef struct fadelink_kind {
	uint32_t protocol;
	uint32_t firmware;
	uint32_t word_order; /* on the wire; fadelink_read() returns native words */
} fadelink_kind;

/* How the end of a transmission is known. */
#define FADELINK_ENDING_UNKNOWN	      0 /* it has not ended, or the receiver has ended it */
#define FADELINK_ENDING_CONFIRMED     1 /* the FEB told it */
#define FADELINK_ENDING_SILENCE	      2 /* the FEB is silent after STOP; the published FADE v1 core tells no more */
#define FADELINK_ENDING_RESET	      3 /* the FEB told that RESET has ended it: FADELINK_ERROR */
#define FADELINK_ENDING_SWITCHED_OFF  4 /* the FEB has lost its power: FADELINK_ERROR */
#define FADELINK_ENDING_OTHER_NUMBER  5 /* the FEB has sent another number of packets: FADELINK_ERROR */
#define FADELINK_ENDING_OTHER_TRANSMISSION 6 /* the FEB has begun another transmission: FADELINK_ERROR */

/* What a FEB says of its transmission when it is asked. */
typedef struct fadelink_inquiry {
	int32_t ending;	     /* FADELINK_ENDING_*; UNKNOWN: it goes on, has ended well, or the FEB does not tell */
	int32_t resets;	     /* that the FEB has obeyed since START (255: or more); -1: it does not tell */
	uint8_t reset_by[6]; /* the computer that sent the last of them; zero: not known, or none */
} fadelink_inquiry;

#define FADELINK_ERROR	 (-1)
#define FADELINK_END	 (-2) /* it has ended, all data was released; fadelink_against() says if it is whole */
#define FADELINK_TIMEOUT (-3) /* a command without response */

/* The last error of this thread, as a sentence. Never NULL. */
const char *fadelink_error(void);

/*
 * Opens an interface. backend: "packet" (AF_PACKET), "kernel" (the driver); if the library was built with the
 * feature xdp, also "xdp" (AF_XDP) or "xdp-busy-poll".
 */
fadelink_receiver *fadelink_open(const char *interface, const char *backend);
/* Closes it. It ends when its FEBs are closed, too. */
void fadelink_close(fadelink_receiver *receiver);

/* Opens a FEB ("02:fa:de:00:00:01") exclusively for its data. config: NULL for the default. */
fadelink_feb *fadelink_feb_open(fadelink_receiver *receiver, const char *mac, const fadelink_config *config);
/* Closes it; sends RESET if its transmission is running. No other thread may use it, and pointers to its words are not valid any more. */
void fadelink_feb_close(fadelink_feb *feb);

/* START: the ring is empty; words of an earlier transmission are not valid any more. */
int fadelink_start(fadelink_feb *feb);
/* STOP: the packet that is being filled becomes the last. Continue to read until FADELINK_END. */
int fadelink_stop(fadelink_feb *feb);
/* RESET: aborts the transmission. */
int fadelink_reset(fadelink_feb *feb);
/* The kind of the FEB, known after START; with FADE v1 after the first data. */
int fadelink_feb_kind(const fadelink_feb *feb, fadelink_kind *kind);
/* FADELINK_ENDING_*, or FADELINK_ERROR. */
int fadelink_feb_ending(const fadelink_feb *feb);
/*
 * Asks the FEB for what it says of its transmission, and for RESETs, which any computer may have sent.
 * Returns 0, FADELINK_TIMEOUT, or FADELINK_ERROR.
 */
int fadelink_inquire(fadelink_feb *feb, fadelink_inquiry *inquiry);
/*
 * Asks the FEB, and returns how many things speak against the data after FADELINK_END: 0 if it is whole. `text`, of
 * `size` bytes, gets them as words; it may be NULL. Other results: FADELINK_TIMEOUT, FADELINK_ERROR.
 */
int64_t fadelink_against(fadelink_feb *feb, char *text, size_t size);

/*
 * Sends a user command (code 0x0100 to 0xFFFF), repeats it `retries` times after `timeout_ms` each. A Fadelink FEB
 * executes it exactly once, a published core executes each repetition. Returns 0 and the response in
 * *value, FADELINK_TIMEOUT, or FADELINK_ERROR.
 */
int fadelink_command(fadelink_feb *feb, uint16_t code, uint32_t argument, uint32_t timeout_ms, uint32_t retries,
		     uint64_t *value);

/*
 * Waits until `threshold` bytes have come, or the transmission has ended, or `timeout_ms` is over (negative: no
 * limit). Returns the number of available words, which may be 0, and a pointer to them: contiguous, in the ring,
 * native. (The published FADE v1 core has words of 32 bits: two in each of these.)
 * They are valid until fadelink_release(). Other results: FADELINK_END, FADELINK_ERROR.
 */
int64_t fadelink_read(fadelink_feb *feb, size_t threshold, int timeout_ms, const uint64_t **words);
/* Returns the first `words` of them to the ring. FADELINK_ERROR if there were fewer. */
int fadelink_release(fadelink_feb *feb, uint64_t words);

/* Makes the descriptor readable at `threshold` bytes or at the end. Returns 1 if this is true already, else 0. */
int fadelink_arm(fadelink_feb *feb, size_t threshold);
/* The descriptor, for poll(). */
int fadelink_fd(const fadelink_feb *feb);

/* A counter of the FEB by its name, as in `fadelink receive --json`. Returns 0; FADELINK_ERROR: unknown name. */
int fadelink_counter(const fadelink_feb *feb, const char *name, uint64_t *value);
/* The same for frames that belong to no open FEB. */
int fadelink_link_counter(const fadelink_receiver *receiver, const char *name, uint64_t *value);

#ifdef __cplusplus
}
#endif

#endif /* FADELINK_H */
