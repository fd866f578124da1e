/* SPDX-License-Identifier: GPL-2.0-only */
/* Common declarations of the module. */
#ifndef FADELINK_H
#define FADELINK_H

#include <linux/cdev.h>
#include <linux/if_ether.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "fade_rules.h"
#include "fadelink_uapi.h"

#define FADE_DEFAULT_TIMEOUT_MS	100
#define FADE_DEFAULT_RETRIES	20
/* Pointers of the published driver are 32 bits with sign. */
#define FADE_MAX_RING_PACKETS	BIT(17)

/**
 * struct fade_slave - one device and its FEB
 * @control: ioctls that change the association or run a command, one at a time
 * @opened: one process has the device; bit 0
 * @lock: all below; taken in softirq
 * @wait: readers and commands
 * @ring: data; lives from open to close
 * @mapped: the ring was mapped and must not change
 * @settings: of transmissions, and the size of the ring
 * @netdev: interface of the FEB, NULL: not associated; holds a reference
 * @tracker: of that reference
 * @mac: address of the FEB
 * @local: address of the interface at START, to which the FEB sends
 * @downs: how often the interface went down since the association
 * @feb: its state for the rules
 * @head: bytes received without a gap since START
 * @tail: bytes returned since START
 * @origin: byte of the ring where the transmission began
 * @wakeup: bytes that wake the reader, maybe 0
 * @error: errno of the failure, or 0
 * @tick: fade_feb_tick(), when it is due
 * @index: minor number
 */
struct fade_slave {
	struct mutex control; /* the association, and commands */
	unsigned long opened;
	spinlock_t lock; /* all that follows */
	wait_queue_head_t wait;
	u8 *ring;
	bool mapped;
	struct fade_settings settings;
	struct net_device *netdev;
	netdevice_tracker tracker;
	u8 mac[ETH_ALEN] __aligned(2);
	u8 local[ETH_ALEN] __aligned(2);
	u32 downs;
	struct fade_feb feb;
	u64 head;
	u64 tail;
	u64 origin;
	u64 wakeup;
	int error;
	struct delayed_work tick;
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
	atomic64_t send_errors;
};

extern struct fade_slave *fade_slaves;
extern struct fade_link_stats fade_link_stats;
extern int fade_max_slaves;
extern struct fade_settings fade_default_settings;
extern bool fade_reset_unknown;

static inline u64 fade_ring_bytes(const struct fade_slave *slave)
{
	return slave->settings.ring_packets * FADE_PACKET_BYTES;
}

static inline u64 fade_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

/* fadelink_net.c */
void fade_net_init(void);
void fade_net_exit(void);
int fade_send_frame(struct net_device *netdev, const u8 *frame);
void fade_begin_ring(struct fade_slave *slave);

/* fadelink_interface.c */
int fade_interface_init(void);
void fade_interface_exit(void);
bool fade_is_reachable(const struct fade_slave *slave);
bool fade_is_down(struct fade_slave *slave);
void fade_note_address(struct fade_slave *slave);
void fade_interface_state(struct fade_slave *slave, struct fade_interface *out);
int fade_associate(struct fade_slave *slave, const struct fade_slave_id *id,
		   bool owned);
void fade_dissociate(struct fade_slave *slave);

/* fadelink_command.c */
int fade_send_resets(struct fade_slave *slave);
int fade_user_command(struct fade_slave *slave,
		      struct fade_user_command *command,
		      unsigned long timeout, u32 attempts);
int fade_start(struct fade_slave *slave);
int fade_stop(struct fade_slave *slave);
void fade_tick(struct work_struct *work);
int fade_reset(struct fade_slave *slave);

/* fadelink_file.c */
extern const struct file_operations fade_fops;

/* fadelink_control.c */
extern struct miscdevice fade_control;

/* fadelink_numbers.c */
u16 fade_latest_csn(int ifindex, const u8 *mac);
void fade_remember_csn(int ifindex, const u8 *mac, u16 csn);

/* fadelink_debugfs.c */
void fade_debugfs_init(void);
void fade_debugfs_exit(void);

#endif /* FADELINK_H */
