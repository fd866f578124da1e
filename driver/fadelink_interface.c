// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices and the interfaces of their FEBs: the association, and what happens when
 * an interface goes down, changes or goes away. For the locks see fadelink_net.c.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

#include "fadelink.h"

/* A bridge, bond or the like takes its frames, before a protocol handler. */
static bool is_port(const struct net_device *netdev)
{
	return netif_is_bridge_port(netdev) || netif_is_bond_slave(netdev) ||
	       netif_is_team_port(netdev) || netif_is_ovs_port(netdev);
}

static bool is_mtu_enough(const struct net_device *netdev, u32 protocol)
{
	u32 frame = protocol == FADE_PROTOCOL_FADE1 ? FADE1_DATA_FRAME_LEN :
						      FADE_DATA_FRAME_LEN;

	return READ_ONCE(netdev->mtu) >= frame - ETH_HLEN;
}

/* FADE_INTERFACE_*: what keeps frames of the FEB from coming; the lock is held. */
static u32 in_the_way(const struct fade_slave *slave)
{
	const struct net_device *netdev = slave->netdev;
	u32 state = 0;

	if (!netdev)
		return FADE_INTERFACE_NONE;
	if (!(netdev->flags & IFF_UP))
		state |= FADE_INTERFACE_DOWN;
	if (!netif_carrier_ok(netdev))
		state |= FADE_INTERFACE_NO_CARRIER;
	if (!is_mtu_enough(netdev, slave->feb.protocol))
		state |= FADE_INTERFACE_SMALL_MTU;
	if (!ether_addr_equal_unaligned(netdev->dev_addr, slave->local))
		state |= FADE_INTERFACE_OTHER_ADDRESS;
	if (is_port(netdev))
		state |= FADE_INTERFACE_PORT;
	return state;
}

/**
 * fade_is_reachable - frames of the FEB can come at this moment
 * @slave: the device; its lock is held
 */
bool fade_is_reachable(const struct fade_slave *slave)
{
	return !in_the_way(slave);
}

/**
 * fade_is_down - the interface of the FEB is down
 * @slave: the device
 */
bool fade_is_down(struct fade_slave *slave)
{
	bool down;

	spin_lock_bh(&slave->lock);
	down = slave->netdev && !(slave->netdev->flags & IFF_UP);
	spin_unlock_bh(&slave->lock);
	return down;
}

/**
 * fade_note_address - the FEB will send to the address that the interface has now
 * @slave: the device; its lock is held
 */
void fade_note_address(struct fade_slave *slave)
{
	if (slave->netdev)
		memcpy(slave->local, slave->netdev->dev_addr, ETH_ALEN);
}

/**
 * fade_interface_state - what keeps frames of the FEB from coming
 * @slave: the device
 * @out: FADE_INTERFACE_*, and how often it was down
 */
void fade_interface_state(struct fade_slave *slave, struct fade_interface *out)
{
	spin_lock_bh(&slave->lock);
	out->downs = slave->downs;
	out->state = in_the_way(slave);
	spin_unlock_bh(&slave->lock);
}

/* Lets go of the interface. Called with no lock. */
static void release_netdev(struct fade_slave *slave, int error)
{
	struct net_device *netdev;

	spin_lock_bh(&slave->lock);
	netdev = slave->netdev;
	if (netdev)
		fade_remember_csn(netdev->ifindex, slave->mac, slave->feb.csn);
	WRITE_ONCE(slave->netdev, NULL);
	fade_feb_break_off(&slave->feb);
	if (netdev && error)
		slave->error = error;
	spin_unlock_bh(&slave->lock);
	wake_up_all(&slave->wait);
	if (netdev)
		netdev_put(netdev, &slave->tracker);
}

/*
 * The interface of a slave has gone down or come up: the FEB sends again what is
 * not confirmed, so nothing is lost.
 */
static void went_down(struct fade_slave *slave)
{
	spin_lock_bh(&slave->lock);
	slave->downs++;
	fade_feb_unheard(&slave->feb);
	spin_unlock_bh(&slave->lock);
	wake_up_all(&slave->wait);
}

static void came_up(struct fade_slave *slave)
{
	spin_lock_bh(&slave->lock);
	fade_feb_unheard(&slave->feb);
	spin_unlock_bh(&slave->lock);
	mod_delayed_work(system_wq, &slave->tick, 0);
}

/* Tells what else the user has done to the interface, if it is in the way. */
static void tell_change(struct fade_slave *slave, struct net_device *netdev)
{
	struct fade_interface now;

	fade_interface_state(slave, &now);
	if (now.state & FADE_INTERFACE_OTHER_ADDRESS)
		netdev_warn(netdev,
			    "fadelink: FEB %pM sends to the former address %pM: set it again, or send START\n",
			    slave->mac, slave->local);
	if (now.state & FADE_INTERFACE_SMALL_MTU)
		netdev_warn(netdev,
			    "fadelink: MTU %u is too small for data of FEB %pM\n",
			    netdev->mtu, slave->mac);
	if (now.state & FADE_INTERFACE_PORT)
		netdev_warn(netdev,
			    "fadelink: a port of another interface gets nothing of FEB %pM\n",
			    slave->mac);
}

static int netdev_event(struct notifier_block *block, unsigned long event,
			void *info)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(info);
	int i;

	for (i = 0; i < fade_max_slaves; i++) {
		struct fade_slave *slave = &fade_slaves[i];

		if (READ_ONCE(slave->netdev) != netdev)
			continue;
		switch (event) {
		case NETDEV_UNREGISTER:
			/* Also when it moves to another network namespace. */
			release_netdev(slave, ENODEV);
			break;
		case NETDEV_DOWN:
			went_down(slave);
			break;
		case NETDEV_UP:
			came_up(slave);
			break;
		case NETDEV_CHANGEADDR:
		case NETDEV_CHANGEMTU:
		case NETDEV_CHANGEUPPER:
			tell_change(slave, netdev);
			break;
		}
	}
	return NOTIFY_DONE;
}

static struct notifier_block fade_notifier = { .notifier_call = netdev_event };

/**
 * fade_associate - gives a device its FEB
 * @slave: the device
 * @id: address and interface
 * @owned: for its data; else for a command, while another program may receive
 *
 * Called with slave->control held. Returns 0, -EINVAL for an address or a name
 * that is invalid, -ENODEV for an interface that is not there, -EMEDIUMTYPE for one
 * that is not Ethernet or a port of another one, -ENETDOWN for one that is down,
 * -EBUSY for a FEB or a device that is taken.
 */
int fade_associate(struct fade_slave *slave, const struct fade_slave_id *id,
		   bool owned)
{
	struct net_device *netdev;
	int i, err = 0;

	if (!is_valid_ether_addr(id->mac) ||
	    strnlen(id->devname, sizeof(id->devname)) == sizeof(id->devname))
		return -EINVAL;
	/* The notifier runs under this lock: the interface cannot go meanwhile. */
	rtnl_lock();
	netdev = __dev_get_by_name(current->nsproxy->net_ns, id->devname);
	if (!netdev)
		err = -ENODEV;
	else if (netdev->type != ARPHRD_ETHER || is_port(netdev))
		err = -EMEDIUMTYPE;
	else if (!(netdev->flags & IFF_UP))
		err = -ENETDOWN;
	for (i = 0; !err && i < fade_max_slaves; i++)
		if (fade_slaves[i].netdev == netdev &&
		    ether_addr_equal_unaligned(fade_slaves[i].mac, id->mac))
			err = -EBUSY;
	if (slave->netdev)
		err = -EBUSY;
	if (!err) {
		netdev_hold(netdev, &slave->tracker, GFP_KERNEL);
		spin_lock_bh(&slave->lock);
		ether_addr_copy(slave->mac, id->mac);
		fade_feb_init(&slave->feb, &slave->settings, owned,
			      fade_latest_csn(netdev->ifindex, id->mac));
		slave->origin = 0;
		slave->head = 0;
		slave->tail = 0;
		slave->error = 0;
		slave->downs = 0;
		WRITE_ONCE(slave->netdev, netdev);
		fade_note_address(slave);
		spin_unlock_bh(&slave->lock);
	}
	rtnl_unlock();
	return err;
}

/**
 * fade_dissociate - takes the FEB from a device
 * @slave: the device
 *
 * Called with slave->control held. A transmission that was started ends by
 * RESET, repeated because it is not confirmed.
 */
void fade_dissociate(struct fade_slave *slave)
{
	int i;

	if (READ_ONCE(slave->feb.state) != FADE_STATE_IDLE ||
	    READ_ONCE(slave->feb.start.has_reset) ||
	    READ_ONCE(slave->feb.start.attempts))
		for (i = 0; i < FADE_RESETS; i++)
			fade_send_resets(slave);
	/* The notifier may let go at the same time: one of them finds it. */
	rtnl_lock();
	release_netdev(slave, 0);
	rtnl_unlock();
	/* Now no frame can start it again. */
	cancel_delayed_work_sync(&slave->tick);
}

int fade_interface_init(void)
{
	return register_netdevice_notifier(&fade_notifier);
}

void fade_interface_exit(void)
{
	unregister_netdevice_notifier(&fade_notifier);
}
