// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command sequence numbers of FEBs that are not open: a FEB takes a command
 * with the number of the last one for its repetition.
 */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/spinlock.h>

#include "fadelink.h"

#define REMEMBERED	256

/* The latest number of a FEB, by interface. */
static struct {
	int ifindex;
	u8 mac[ETH_ALEN];
	u16 csn;
} remembered[REMEMBERED];
static unsigned int next_place;
static unsigned int places;
static DEFINE_SPINLOCK(lock);

/* The place of a FEB, or @places; lock is held. */
static unsigned int place_of(int ifindex, const u8 *mac)
{
	unsigned int i;

	for (i = 0; i < places; i++)
		if (remembered[i].ifindex == ifindex &&
		    ether_addr_equal_unaligned(remembered[i].mac, mac))
			break;
	return i;
}

/**
 * fade_latest_csn - the number after which the next one of a FEB comes
 * @ifindex: interface
 * @mac: the FEB
 *
 * Returns a random one for a FEB of which none is known.
 */
u16 fade_latest_csn(int ifindex, const u8 *mac)
{
	u16 csn = (u16)get_random_u32();
	unsigned int i;

	spin_lock_bh(&lock);
	i = place_of(ifindex, mac);
	if (i < places)
		csn = remembered[i].csn;
	spin_unlock_bh(&lock);
	return csn;
}

/**
 * fade_remember_csn - a number was used, or the FEB has shown it
 * @ifindex: interface
 * @mac: the FEB
 * @csn: the number
 */
void fade_remember_csn(int ifindex, const u8 *mac, u16 csn)
{
	unsigned int i;

	spin_lock_bh(&lock);
	i = place_of(ifindex, mac);
	if (i < places) {
		if (fade_csn_after(csn, remembered[i].csn))
			remembered[i].csn = csn;
	} else {
		if (places < REMEMBERED)
			places++;
		else
			i = next_place++ % REMEMBERED;
		remembered[i].ifindex = ifindex;
		ether_addr_copy(remembered[i].mac, mac);
		remembered[i].csn = csn;
	}
	spin_unlock_bh(&lock);
}
