/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fadelink for C: receive the data of front-end boards (FEBs), in place and
 * without loss. Link with -lfadelink. examples/receive.c is a whole program.
 *
 * Functions that can fail return NULL or a negative value and leave a sentence for
 * fadelink_error(). A receiver may be used by several threads; a FEB by one, but
 * for fadelink_command() and fadelink_stop(), which any thread may call.
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
/* A FEB that is open. */
typedef struct fadelink_feb fadelink_feb;

/* Settings of a FEB. */
typedef struct fadelink_config {
	uint64_t ring_packets; /* packets of 8192 bytes, a power of two, at least the window */
	uint32_t window;       /* packets of the FEB's window, 1 to 64; more than it has is safe */
	uint32_t first_packet; /* number of the first packet: 0 but in tests of its wrap */
	uint32_t protocol;     /* FADELINK_ANY: START finds out what the FEB speaks */
	uint32_t firmware;     /* FADELINK_ANY: START finds out whose core it runs */
	uint32_t word_order;   /* of its words on the wire; FADELINK_ANY: as its firmware has it */
} fadelink_config;

/* Of the fields that say what a FEB is: not known, or not told. */
#define FADELINK_ANY	 0

#define FADELINK_FADE10G 1
#define FADELINK_FADE1	 2 /* the last packet ends with filler, 0xA5 */

#define FADELINK_FIRMWARE_FADELINK	1
#define FADELINK_FIRMWARE_PUBLISHED_10G 2 /* the FADE-10G core of the authors of FADE */
#define FADELINK_FIRMWARE_PUBLISHED_V1	3 /* their FADE v1 core; its words have 32 bits */

#define FADELINK_WORDS_LITTLE 1
#define FADELINK_WORDS_BIG    2

#define FADELINK_CONFIG_DEFAULT { 2048, 64, 0, FADELINK_ANY, FADELINK_ANY, FADELINK_ANY }

/* What START found a FEB to be; FADELINK_ANY: not known yet. */
typedef struct fadelink_kind {
	uint32_t protocol;
	uint32_t firmware;
	uint32_t word_order; /* on the wire: fadelink_read() hands out native words */
} fadelink_kind;

#define FADELINK_ERROR	 (-1)
#define FADELINK_END	 (-2) /* the transmission is complete, and all of it was released */
#define FADELINK_TIMEOUT (-3) /* a command without response */

/* What went wrong last in this thread: a sentence that names what was wrong. Never NULL. */
const char *fadelink_error(void);

/*
 * Opens an interface. backend: "packet" (AF_PACKET), "kernel" (the driver), and if the library was built with its
 * feature xdp "xdp" (AF_XDP) or "xdp-busy-poll".
 */
fadelink_receiver *fadelink_open(const char *interface, const char *backend);
/* Closes it. Its FEBs are closed before. */
void fadelink_close(fadelink_receiver *receiver);

/* Opens a FEB ("02:fa:de:00:00:01") for its data; no other program has it meanwhile. config: NULL for the default. */
fadelink_feb *fadelink_feb_open(fadelink_receiver *receiver, const char *mac, const fadelink_config *config);
/* Closes it, by RESET if its transmission runs. */
void fadelink_feb_close(fadelink_feb *feb);

/* START: the ring begins anew; words of an earlier transmission must not be used any more. */
int fadelink_start(fadelink_feb *feb);
/* STOP: the packet being filled becomes the last. Read on until FADELINK_END. */
int fadelink_stop(fadelink_feb *feb);
/* RESET: breaks the transmission off. */
int fadelink_reset(fadelink_feb *feb);
/* What START found the FEB to be. Of FADE v1 the first data tells. */
int fadelink_feb_kind(const fadelink_feb *feb, fadelink_kind *kind);

/*
 * Sends a user command (code 0x0100 to 0xFFFF), repeats it `retries` times after `timeout_ms` each. A Fadelink FEB
 * executes it exactly once, a published core each time that a repetition comes. Returns 0 and the response in
 * *value, FADELINK_TIMEOUT, or FADELINK_ERROR.
 */
int fadelink_command(fadelink_feb *feb, uint16_t code, uint32_t argument, uint32_t timeout_ms, uint32_t retries,
		     uint64_t *value);

/*
 * Waits until `threshold` bytes are there, or the transmission has ended, or `timeout_ms` is over (negative: no
 * limit). Returns the number of words that are there, maybe none, and where they are: contiguous, in the ring, native.
 * (The published FADE v1 core has words of 32 bits: two in each of these.)
 * They stay until fadelink_release(). Or FADELINK_END, or FADELINK_ERROR.
 */
int64_t fadelink_read(fadelink_feb *feb, size_t threshold, int timeout_ms, const uint64_t **words);
/* Gives the first `words` of them back. FADELINK_ERROR if so many were not there. */
int fadelink_release(fadelink_feb *feb, uint64_t words);

/* Asks the descriptor to become readable at `threshold` bytes or the end. Returns 1 if it is so already, else 0. */
int fadelink_arm(fadelink_feb *feb, size_t threshold);
/* The descriptor, for poll(). */
int fadelink_fd(const fadelink_feb *feb);

/* A counter of the FEB by its name, as in `fadelink receive --json`: 0, or FADELINK_ERROR for an unknown name. */
int fadelink_counter(const fadelink_feb *feb, const char *name, uint64_t *value);
/* The same of frames that belong to no open FEB. */
int fadelink_link_counter(const fadelink_receiver *receiver, const char *name, uint64_t *value);

#ifdef __cplusplus
}
#endif

#endif /* FADELINK_H */
