// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file side: open, ioctl, poll, mmap of /dev/l3_fpga%d.
 */
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fadelink.h"
#include "fadelink_compat.h"

/* The same for 32-bit programs on 64-bit kernels, also where u64 is aligned to 4. */
static_assert(sizeof(struct fade_pointers) == 9);
static_assert(sizeof(struct fade_slave_id) == 22);
static_assert(sizeof(struct fade_user_command) == 24);
static_assert(sizeof(struct fade_pointers64) == 32);
static_assert(sizeof(struct fade_statistics) == 17 * 8);
static_assert(sizeof(struct fade_config) == 32);
static_assert(sizeof(struct fade_feb_kind) == 8);
static_assert(sizeof(struct fade_interface) == 8);
static_assert(sizeof(struct fade_told) == 10);
static_assert(sizeof(struct fade_feb_command) == 46);
static_assert(sizeof(struct fade_link_statistics) == 9 * 8);

static int fade_open(struct inode *inode, struct file *file)
{
	struct fade_slave *slave = &fade_slaves[iminor(inode)];

	if (test_and_set_bit(0, &slave->opened))
		return -EBUSY;
	slave->settings = fade_default_settings;
	slave->mapped = false;
	slave->ring = vmalloc_user(fade_ring_bytes(slave));
	if (!slave->ring) {
		clear_bit_unlock(0, &slave->opened);
		return -ENOMEM;
	}
	slave->wakeup = 1;
	slave->head = 0;
	slave->tail = 0;
	slave->origin = 0;
	slave->error = 0;
	slave->feb.state = FADE_STATE_IDLE;
	slave->feb.ending = FADE_ENDING_UNKNOWN;
	file->private_data = slave;
	return nonseekable_open(inode, file);
}

/* The last reference is gone, mappings included. */
static int fade_release(struct inode *inode, struct file *file)
{
	struct fade_slave *slave = file->private_data;

	mutex_lock(&slave->control);
	fade_dissociate(slave);
	mutex_unlock(&slave->control);
	/* The handler may still copy under the lock; after this it cannot. */
	spin_lock_bh(&slave->lock);
	spin_unlock_bh(&slave->lock);
	vfree(slave->ring);
	slave->ring = NULL;
	clear_bit_unlock(0, &slave->opened);
	return 0;
}

static long set_wakeup(struct fade_slave *slave, unsigned long bytes,
		       unsigned long most)
{
	long err = 0;

	spin_lock_bh(&slave->lock);
	if (bytes > most)
		err = -EINVAL;
	else
		slave->wakeup = bytes;
	spin_unlock_bh(&slave->lock);
	wake_up(&slave->wait);
	return err;
}

static void read_state(struct fade_slave *slave, struct fade_pointers64 *state)
{
	spin_lock_bh(&slave->lock);
	state->head = slave->head;
	state->tail = slave->tail;
	state->origin = slave->origin;
	state->state = slave->feb.state;
	state->error = slave->error;
	spin_unlock_bh(&slave->lock);
}

static long read_pointers(struct fade_slave *slave, void __user *to)
{
	struct fade_pointers pointers;
	struct fade_pointers64 state;
	u64 ring = fade_ring_bytes(slave);

	read_state(slave, &state);
	pointers.head = fade_ring_place(state.origin + state.head, ring);
	pointers.tail = fade_ring_place(state.origin + state.tail, ring);
	pointers.eof = state.state == FADE_STATE_COMPLETE;
	if (copy_to_user(to, &pointers, sizeof(pointers)))
		return -EFAULT;
	if (state.error)
		return -EIO;
	return state.head - state.tail;
}

static long write_pointers(struct fade_slave *slave, unsigned long bytes)
{
	long err = 0;

	spin_lock_bh(&slave->lock);
	if (bytes > slave->head - slave->tail)
		err = -EINVAL;
	else
		slave->tail += bytes;
	spin_unlock_bh(&slave->lock);
	return err;
}

static long get_mac(struct fade_slave *slave, const void __user *from)
{
	struct fade_slave_id id __aligned(2);

	if (copy_from_user(&id, from, sizeof(id)))
		return -EFAULT;
	return fade_associate(slave, &id, true);
}

static long user_command(struct fade_slave *slave, void __user *both)
{
	struct fade_user_command command;
	long err;

	if (copy_from_user(&command, both, sizeof(command)))
		return -EFAULT;
	if (command.command < FADE_CMD_USER_FIRST)
		return -EINVAL;
	/* As published: jiffies, and the number of all attempts. */
	err = fade_user_command(slave, &command, command.timeout,
				command.retries);
	if (err)
		return err;
	return copy_to_user(both, &command, sizeof(command)) ? -EFAULT : 0;
}

/* Another ring; the old one is left where it cannot be replaced. */
static long set_config(struct fade_slave *slave, const void __user *from)
{
	struct fade_config config;
	void *ring, *unused;

	if (copy_from_user(&config, from, sizeof(config)))
		return -EFAULT;
	if (config.window < 1 || config.window > FADE_MAX_WINDOW ||
	    config.ring_packets < config.window ||
	    config.ring_packets > FADE_MAX_RING_PACKETS ||
	    !is_power_of_2(config.ring_packets) ||
	    config.protocol > FADE_PROTOCOL_FADE1 ||
	    config.firmware > FADE_FIRMWARE_PUBLISHED_V1 ||
	    config.words > FADE_WORDS_BIG || config.reserved ||
	    (config.protocol != FADE_PROTOCOL_FADE10G &&
	     config.firmware != FADE_FIRMWARE_PUBLISHED_10G &&
	     config.ring_packets < FADE1_MIN_RING_PACKETS))
		return -EINVAL;
	ring = vmalloc_user(config.ring_packets * FADE_PACKET_BYTES);
	if (!ring)
		return -ENOMEM;
	spin_lock_bh(&slave->lock);
	if (slave->mapped || slave->netdev) {
		unused = ring;
	} else {
		unused = slave->ring;
		slave->ring = ring;
		slave->settings.ring_packets = config.ring_packets;
		slave->settings.window = config.window;
		slave->settings.first_packet = config.first_packet;
		slave->settings.protocol = config.protocol;
		slave->settings.firmware = config.firmware;
		slave->settings.words = config.words;
		slave->wakeup = 1;
	}
	spin_unlock_bh(&slave->lock);
	vfree(unused);
	return unused == ring ? -EBUSY : 0;
}

static long get_statistics(struct fade_slave *slave, void __user *to)
{
	struct fade_statistics stats;

	spin_lock_bh(&slave->lock);
	stats = slave->feb.stats;
	spin_unlock_bh(&slave->lock);
	return copy_to_user(to, &stats, sizeof(stats)) ? -EFAULT : 0;
}

static long get_kind(struct fade_slave *slave, void __user *to)
{
	struct fade_feb_kind kind;

	spin_lock_bh(&slave->lock);
	kind.protocol = slave->feb.protocol;
	kind.firmware = slave->feb.firmware;
	spin_unlock_bh(&slave->lock);
	return copy_to_user(to, &kind, sizeof(kind)) ? -EFAULT : 0;
}

static long get_interface(struct fade_slave *slave, void __user *to)
{
	struct fade_interface interface;

	fade_interface_state(slave, &interface);
	return copy_to_user(to, &interface, sizeof(interface)) ? -EFAULT : 0;
}

static long get_told(struct fade_slave *slave, void __user *to)
{
	const struct fade_feb *feb = &slave->feb;
	struct fade_told told = {};

	spin_lock_bh(&slave->lock);
	if (feb->started) {
		told.transmission = feb->number;
		told.known = FADE_TOLD_TRANSMISSION;
	}
	if (feb->resets_told) {
		told.known |= FADE_TOLD_RESETS;
		told.resets = feb->resets;
		memcpy(told.reset_by, feb->reset_by, sizeof(told.reset_by));
	}
	spin_unlock_bh(&slave->lock);
	return copy_to_user(to, &told, sizeof(told)) ? -EFAULT : 0;
}

/* What needs the FEB, one at a time. */
static long control(struct fade_slave *slave, unsigned int cmd, void __user *p)
{
	if (cmd == FADE_IOC_GETMAC)
		return get_mac(slave, p);
	if (cmd == FADE_IOC_SETCONFIG)
		return set_config(slave, p);
	if (!READ_ONCE(slave->netdev))
		return cmd == FADE_IOC_FREEMAC ? 0 : -ENODEV;
	switch (cmd) {
	case FADE_IOC_STARTMAC:
		return fade_start(slave);
	case FADE_IOC_STOPMAC:
		return fade_stop(slave);
	case FADE_IOC_USERCMD:
		return user_command(slave, p);
	case FADE_IOC_RESETMAC:
		return fade_reset(slave);
	default:
		fade_dissociate(slave);
		return 0;
	}
}

static long fade_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct fade_slave *slave = file->private_data;
	void __user *p = (void __user *)arg;
	struct fade_pointers64 state;
	long result;

	switch (cmd) {
	case FADE_IOC_SETWAKEUP:
		return set_wakeup(slave, arg, fade_ring_bytes(slave) / 2);
	case FADE_IOC_SETTHRESHOLD:
		return set_wakeup(slave, arg, fade_ring_bytes(slave));
	case FADE_IOC_GETBUFLEN:
		return fade_ring_bytes(slave);
	case FADE_IOC_READPTRS:
		return read_pointers(slave, p);
	case FADE_IOC_WRITEPTRS:
		return write_pointers(slave, arg);
	case FADE_IOC_READPTRS64:
		read_state(slave, &state);
		return copy_to_user(p, &state, sizeof(state)) ? -EFAULT : 0;
	case FADE_IOC_GETKIND:
		return get_kind(slave, p);
	case FADE_IOC_GETTOLD:
		return get_told(slave, p);
	case FADE_IOC_GETINTERFACE:
		return get_interface(slave, p);
	case FADE_IOC_GETENDING:
		return READ_ONCE(slave->feb.ending);
	case FADE_IOC_GETSTATS:
		return get_statistics(slave, p);
	case FADE_IOC_SETCONFIG:
	case FADE_IOC_GETMAC:
	case FADE_IOC_STARTMAC:
	case FADE_IOC_STOPMAC:
	case FADE_IOC_FREEMAC:
	case FADE_IOC_USERCMD:
	case FADE_IOC_RESETMAC:
		if (mutex_lock_interruptible(&slave->control))
			return -ERESTARTSYS;
		result = control(slave, cmd, p);
		mutex_unlock(&slave->control);
		return result;
	default:
		return -EINVAL; /* as published */
	}
}

static __poll_t fade_poll(struct file *file, poll_table *table)
{
	struct fade_slave *slave = file->private_data;
	struct fade_pointers64 state;
	__poll_t mask = 0;
	u64 available;
	bool is_due;

	poll_wait(file, &slave->wait, table);
	read_state(slave, &state);
	available = state.head - state.tail;
	spin_lock_bh(&slave->lock);
	is_due = available >= slave->wakeup;
	spin_unlock_bh(&slave->lock);
	if (is_due)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (state.state == FADE_STATE_COMPLETE)
		mask |= available ? EPOLLIN | EPOLLRDNORM : EPOLLHUP;
	if (state.error || state.state == FADE_STATE_ABORTED)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLERR;
	return mask;
}

static vm_fault_t fade_fault(struct vm_fault *fault)
{
	struct fade_slave *slave = fault->vma->vm_private_data;
	/* The second half shows the ring again: a reader sees across its end. */
	u64 offset = fade_ring_place((u64)fault->pgoff << PAGE_SHIFT,
				     fade_ring_bytes(slave));

	fault->page = vmalloc_to_page(slave->ring + offset);
	get_page(fault->page);
	return 0;
}

static const struct vm_operations_struct fade_vm_ops = { .fault = fade_fault };

static int fade_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct fade_slave *slave = file->private_data;
	u64 end = ((u64)vma->vm_pgoff + vma_pages(vma)) << PAGE_SHIFT;
	bool fits;

	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	spin_lock_bh(&slave->lock);
	/* Pages may be larger than the ring; then it cannot be seen twice in a row. */
	fits = end <= 2 * fade_ring_bytes(slave) &&
	       fade_ring_bytes(slave) >= PAGE_SIZE;
	if (fits)
		slave->mapped = true;
	spin_unlock_bh(&slave->lock);
	if (!fits)
		return -EINVAL;
	fade_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE);
	vma->vm_private_data = slave;
	vma->vm_ops = &fade_vm_ops;
	return 0;
}

const struct file_operations fade_fops = {
	.owner = THIS_MODULE,
	.open = fade_open,
	.release = fade_release,
	.unlocked_ioctl = fade_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = fade_poll,
	.mmap = fade_mmap,
};
