/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the module share. */
#ifndef FADELINK_H
#define FADELINK_H

#include <linux/cdev.h>
#include <linux/if_ether.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "fade_rules.h"
#include "fadelink_uapi.h"

#define FADE_DEFAULT_TIMEOUT_MS	100
#define FADE_DEFAULT_RETRIES	20

/**
 * struct fade_slave - one device and its FEB
 * @control: ioctls that change the association or run a command, one at a time
 * @opened: one process has the device; bit 0
 * @lock: all below; taken in softirq
 * @wait: readers and commands
 * @ring: data, @ring_packets packets; lives from open to close
 * @netdev: interface of the FEB, NULL: not associated; holds a reference
 * @mac: address of the FEB
 * @started: START was answered: data is taken
 * @window: of the transmission
 * @head: bytes in without a gap since START
 * @tail: bytes given back since START
 * @wakeup: bytes that wake the reader
 * @state: FADE_STATE_*
 * @error: errno of what failed, or 0
 * @next_csn: CSN of the last command
 * @pending: a command waits for its response
 * @pending_code: its code
 * @answer: the response
 * @next_sequence: frame sequence that is expected
 * @sequence_known: it is
 * @next_reset: jiffies before which no RESET answers stray data
 * @stats: counters
 * @index: minor number
 */
struct fade_slave {
	struct mutex control;
	unsigned long opened;
	spinlock_t lock;
	wait_queue_head_t wait;
	u8 *ring;
	struct net_device *netdev;
	netdevice_tracker tracker;
	u8 mac[ETH_ALEN];
	bool started;
	struct fade_window window;
	u64 head;
	u64 tail;
	u64 origin;
	u64 wakeup;
	u32 state;
	int error;
	u16 next_csn;
	bool pending;
	u16 pending_code;
	struct fade_response answer;
	u16 next_sequence;
	bool sequence_known;
	unsigned long next_reset;
	struct fade_statistics stats;
	int index;
};

/* Frames that belong to no open FEB, by reason. */
struct fade_link_stats {
	atomic64_t frames;
	atomic64_t truncated;
	atomic64_t wrong_version;
	atomic64_t wrong_type;
	atomic64_t unknown_feb;
	atomic64_t other_destination;
	atomic64_t resets;
	atomic64_t no_memory;
};

extern struct fade_slave *fade_slaves;
extern struct fade_link_stats fade_link_stats;
extern int fade_max_slaves;
extern u64 fade_ring_packets;
extern u32 fade_window_size;
extern u32 fade_first_packet;

static inline u64 fade_ring_bytes(void)
{
	return fade_ring_packets * FADE_PACKET_BYTES;
}

/* fadelink_net.c */
int fade_net_init(void);
void fade_net_exit(void);
int fade_associate(struct fade_slave *slave, const struct fade_slave_id *id);
void fade_dissociate(struct fade_slave *slave);
int fade_command_wait(struct fade_slave *slave, u16 code, u32 argument,
		      u32 timeout_ms, u32 retries,
		      struct fade_response *answer);
int fade_start(struct fade_slave *slave);
int fade_reset(struct fade_slave *slave);

/* fadelink_file.c */
extern const struct file_operations fade_fops;

/* fadelink_debugfs.c */
void fade_debugfs_init(void);
void fade_debugfs_exit(void);

#endif /* FADELINK_H */
