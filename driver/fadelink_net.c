// SPDX-License-Identifier: GPL-2.0-only
/*
 * The network side: the protocol handler for ethertype 0xFADE.
 *
 * Locking: slave->lock protects a slave and is taken in softirq. Frames are
 * sent after it is released. slave->control orders the callers of this file
 * and is never taken in softirq.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/skbuff.h>

#include "fadelink.h"
#include "fadelink_compat.h"

#define STRANGERS		64

struct fade_link_stats fade_link_stats;

/* FEBs that nobody opened: when each may be told again to be silent. */
static struct {
	u8 mac[ETH_ALEN];
	u64 next_reset;
} strangers[STRANGERS];
static unsigned int next_stranger;
static DEFINE_SPINLOCK(strangers_lock);

/* Sends 78 bytes that are a whole frame. */
int fade_send_frame(struct net_device *netdev, const u8 *frame)
{
	struct sk_buff *skb;
	int err;

	skb = alloc_skb(LL_RESERVED_SPACE(netdev) + FADE_REQUEST_LEN +
			netdev->needed_tailroom, GFP_ATOMIC);
	if (!skb) {
		atomic64_inc(&fade_link_stats.send_errors);
		return -ENOMEM;
	}
	skb_reserve(skb, LL_RESERVED_SPACE(netdev));
	skb_reset_mac_header(skb);
	skb_put_data(skb, frame, FADE_REQUEST_LEN);
	skb_set_network_header(skb, ETH_HLEN);
	skb->dev = netdev;
	skb->protocol = htons(FADE_ETHERTYPE);
	skb->priority = TC_PRIO_CONTROL;
	err = dev_queue_xmit(skb);
	err = net_xmit_eval(err); /* a macro that names its argument twice */
	if (err)
		atomic64_inc(&fade_link_stats.send_errors);
	return err;
}

/* RESET as the FEB's frame was: of FADE-10G or FADE v1. */
static void send_reset(struct net_device *netdev, const u8 *mac,
		       enum fade_kind kind)
{
	u8 frame[FADE_REQUEST_LEN];

	if (kind == FADE_KIND_DATA1)
		fade1_request(frame, mac, netdev->dev_addr, FADE1_TYPE_RESET,
			      0, 0);
	else
		fade_command(frame, mac, netdev->dev_addr, FADE_CMD_RESET, 0, 0);
	fade_send_frame(netdev, frame);
}

/* A frame from a FEB that nobody opened. */
static void stranger(struct net_device *netdev, const u8 *mac,
		     enum fade_kind kind, const struct fade_frame *frame)
{
	bool data = kind == FADE_KIND_DATA || kind == FADE_KIND_DATA1;
	u64 now = fade_now_ms();
	unsigned int i;
	bool due;
	u16 csn;

	atomic64_inc(&fade_link_stats.unknown_feb);
	if (fade_shows_csn(&frame->response, &csn))
		fade_remember_csn(netdev->ifindex, mac, csn);
	/* A response harms nobody: another program may have asked for it. */
	if (!data || !READ_ONCE(fade_reset_unknown) || !is_valid_ether_addr(mac))
		return;
	spin_lock(&strangers_lock);
	for (i = 0; i < STRANGERS; i++)
		if (ether_addr_equal_unaligned(strangers[i].mac, mac))
			break;
	if (i == STRANGERS) {
		i = next_stranger++ % STRANGERS;
		ether_addr_copy(strangers[i].mac, mac);
		strangers[i].next_reset = now;
	}
	due = now >= strangers[i].next_reset;
	if (due)
		strangers[i].next_reset = now + FADE_RESET_INTERVAL_MS;
	spin_unlock(&strangers_lock);
	if (due) {
		atomic64_inc(&fade_link_stats.resets);
		send_reset(netdev, mac, kind);
	}
}

/* A transmission begins; slave->lock is held. */
void fade_begin_ring(struct fade_slave *slave)
{
	slave->origin = fade_feb_origin(&slave->feb);
	slave->head = 0;
	slave->tail = 0;
	slave->error = 0;
}

/* Turns words round in place: they were just copied, and are in the cache. */
static void swap_words(u8 *place, u32 bytes, u32 word_bytes)
{
	u64 *words64 = (u64 *)place;
	u32 *words32 = (u32 *)place;
	u32 i;

	if (word_bytes == sizeof(u64))
		for (i = 0; i < bytes / sizeof(u64); i++)
			swab64s(&words64[i]);
	else
		for (i = 0; i < bytes / sizeof(u32); i++)
			swab32s(&words32[i]);
}

/* What the rules said, on the slave; its lock is held. */
static void act(struct fade_slave *slave, struct sk_buff *skb,
		const struct fade_actions *actions)
{
	u32 bytes = fade_feb_packet_bytes(&slave->feb);
	u8 *place = slave->ring + actions->slot * bytes;

	if (actions->begun)
		fade_begin_ring(slave);
	if (actions->store) {
		/* Cannot fail: the length of the frame was checked. */
		skb_copy_bits(skb, skb->len - bytes, place, bytes);
		if (slave->feb.swap)
			swap_words(place, bytes, slave->feb.swap);
		slave->head = fade_feb_bytes(&slave->feb);
	}
	if (actions->tick)
		mod_delayed_work(system_wq, &slave->tick, 0);
	if (actions->answered || slave->feb.state == FADE_STATE_COMPLETE ||
	    slave->head - slave->tail >= slave->wakeup)
		wake_up(&slave->wait);
}

/* A frame, if it is from the FEB of this slave; the skb starts with its header. */
static bool take_own(struct fade_slave *slave, struct net_device *netdev,
		     struct sk_buff *skb, const u8 *head, enum fade_kind kind,
		     const struct fade_frame *frame)
{
	struct fade_confirmation confirmation = {
		.packet = frame->packet,
		.sequence = frame->sequence,
		.fade1 = true,
	};
	struct fade_actions actions = {};
	u8 ack[FADE_REQUEST_LEN];
	bool is_own;

	spin_lock(&slave->lock);
	is_own = slave->netdev == netdev &&
		 ether_addr_equal_unaligned(slave->mac, head + ETH_ALEN);
	if (is_own) {
		fade_feb_take(&slave->feb, &slave->settings, kind, frame,
			      slave->tail, fade_now_ms(), &actions);
		act(slave, skb, &actions);
		if (actions.confirm && kind == FADE_KIND_DATA)
			actions.confirm = fade_feb_confirm(&slave->feb,
							   &confirmation);
	}
	spin_unlock(&slave->lock);

	if (actions.reset)
		send_reset(netdev, head + ETH_ALEN, kind);
	if (actions.confirm) {
		fade_ack(ack, head + ETH_ALEN, netdev->dev_addr, &confirmation);
		fade_send_frame(netdev, ack);
	}
	return is_own;
}

/* Frame of a FEB that has a slave, or not. */
static void take_frame(struct net_device *netdev, struct sk_buff *skb,
		       const u8 *head, enum fade_kind kind,
		       const struct fade_frame *frame)
{
	int i;

	for (i = 0; i < fade_max_slaves; i++)
		if (READ_ONCE(fade_slaves[i].netdev) == netdev &&
		    take_own(&fade_slaves[i], netdev, skb, head, kind, frame))
			return;
	stranger(netdev, head + ETH_ALEN, kind, frame);
}

/* Confirms what came together, where that is not done at once. */
static void confirm(struct net_device *netdev)
{
	int i;

	for (i = 0; i < fade_max_slaves; i++) {
		struct fade_slave *slave = &fade_slaves[i];
		struct fade_confirmation confirmation;
		u8 ack[FADE_REQUEST_LEN];
		bool due;

		if (READ_ONCE(slave->netdev) != netdev ||
		    !READ_ONCE(slave->feb.unconfirmed))
			continue;
		spin_lock(&slave->lock);
		due = slave->netdev == netdev &&
		      fade_feb_confirm(&slave->feb, &confirmation);
		if (due)
			fade_ack(ack, slave->mac, netdev->dev_addr,
				 &confirmation);
		spin_unlock(&slave->lock);
		if (due)
			fade_send_frame(netdev, ack);
	}
}

static int receive_one(struct sk_buff *skb, struct net_device *netdev)
{
	u8 head[FADE_HEAD_LEN] __aligned(2) = {};
	u8 final_word[8] = {};
	struct fade_frame frame;
	enum fade_kind kind;

	atomic64_inc(&fade_link_stats.frames);
	/* From a tunnel, the loopback or the like: before it is not an Ethernet header. */
	if (netdev->type != ARPHRD_ETHER || skb_headroom(skb) < ETH_HLEN ||
	    skb_mac_header(skb) + ETH_HLEN != skb->data) {
		atomic64_inc(&fade_link_stats.wrong_type);
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	if (skb->pkt_type != PACKET_HOST) {
		atomic64_inc(&fade_link_stats.other_destination);
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb) {
		atomic64_inc(&fade_link_stats.no_memory);
		return NET_RX_DROP;
	}
	skb_push(skb, ETH_HLEN);
	skb_copy_bits(skb, 0, head, min_t(u32, skb->len, sizeof(head)));
	if (skb->len == FADE_DATA_FRAME_LEN)
		skb_copy_bits(skb, FADE_DATA_FRAME_LEN - 8, final_word, 8);
	kind = fade_parse(head, skb->len, final_word, &frame);
	switch (kind) {
	case FADE_BAD_TRUNCATED:
		atomic64_inc(&fade_link_stats.truncated);
		break;
	case FADE_BAD_VERSION:
		atomic64_inc(&fade_link_stats.wrong_version);
		break;
	case FADE_BAD_ETHERTYPE:
	case FADE_BAD_TYPE:
		atomic64_inc(&fade_link_stats.wrong_type);
		break;
	default:
		take_frame(netdev, skb, head, kind, &frame);
		break;
	}
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

static int receive(struct sk_buff *skb, struct net_device *netdev,
		   struct packet_type *type, struct net_device *original)
{
	int result = receive_one(skb, netdev);

	confirm(netdev);
	return result;
}

/* Frames that the card's driver handed over together: one ACK a FEB. */
static void receive_list(struct list_head *list, struct packet_type *type,
			 struct net_device *netdev)
{
	struct net_device *last = NULL;
	struct sk_buff *skb, *next;

	list_for_each_entry_safe(skb, next, list, list) {
		/* Ports of a bridge and the like differ from one to the next. */
		if (last && last != skb->dev)
			confirm(last);
		last = skb->dev;
		skb_list_del_init(skb);
		receive_one(skb, last);
	}
	if (last)
		confirm(last);
}

static struct packet_type fade_packet_type = {
	.type = cpu_to_be16(FADE_ETHERTYPE),
	.func = receive,
	.list_func = receive_list,
};

void fade_net_init(void)
{
	dev_add_pack(&fade_packet_type);
}

void fade_net_exit(void)
{
	dev_remove_pack(&fade_packet_type);
}
