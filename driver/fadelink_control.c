// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/l3_fpga_ctl: commands to FEBs beside the programs that receive from
 * them, and the counters of the link.
 */
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "fadelink.h"

#define MAX_TIMEOUT_MS	600000
#define MAX_RETRIES	1000

/* Here time-outs are milliseconds, and retries come after the first attempt. */
static int command_of(struct fade_slave *slave,
		      struct fade_user_command *command)
{
	return fade_user_command(slave, command,
				 msecs_to_jiffies(command->timeout),
				 command->retries + 1);
}

static bool patience_ok(const struct fade_user_command *command)
{
	return command->retries <= MAX_RETRIES && command->timeout >= 1 &&
	       command->timeout <= MAX_TIMEOUT_MS;
}

static bool has_feb(struct fade_slave *slave, const struct fade_slave_id *id)
{
	struct net_device *netdev;
	bool has;

	spin_lock_bh(&slave->lock);
	netdev = slave->netdev;
	has = netdev && ether_addr_equal_unaligned(slave->mac, id->mac) &&
	      net_eq(dev_net(netdev), current->nsproxy->net_ns) &&
	      !strncmp(netdev->name, id->devname, sizeof(id->devname));
	spin_unlock_bh(&slave->lock);
	return has;
}

/* Through the device that has the FEB; -ENOENT if none has. */
static long through_owner(struct fade_feb_command *request)
{
	int i;

	for (i = 0; i < fade_max_slaves; i++) {
		struct fade_slave *slave = &fade_slaves[i];
		long err = -ENOENT;

		if (!has_feb(slave, &request->feb))
			continue;
		if (mutex_lock_interruptible(&slave->control))
			return -ERESTARTSYS;
		/* It may have gone while this waited. */
		if (has_feb(slave, &request->feb))
			err = command_of(slave, &request->command);
		mutex_unlock(&slave->control);
		return err;
	}
	return -ENOENT;
}

/* Through a device that is free; -EBUSY if none is. */
static long through_free(struct fade_feb_command *request)
{
	int i;

	for (i = fade_max_slaves - 1; i >= 0; i--) {
		struct fade_slave *slave = &fade_slaves[i];
		long err;

		if (test_and_set_bit(0, &slave->opened))
			continue;
		mutex_lock(&slave->control);
		slave->settings = fade_default_settings;
		err = fade_associate(slave, &request->feb, false);
		if (!err) {
			err = command_of(slave, &request->command);
			fade_dissociate(slave);
		}
		mutex_unlock(&slave->control);
		clear_bit_unlock(0, &slave->opened);
		return err;
	}
	return -EBUSY;
}

static long feb_command(void __user *both)
{
	struct fade_feb_command request __aligned(2);
	u16 code;
	int attempt;
	long err = -EBUSY;

	if (copy_from_user(&request, both, sizeof(request)))
		return -EFAULT;
	code = request.command.command;
	if ((code < FADE_CMD_USER_FIRST && code != FADE_CMD_STOP &&
	     code != FADE_CMD_IDENTIFY && code != FADE_CMD_RESET_BY) ||
	    !patience_ok(&request.command) ||
	    strnlen(request.feb.devname, sizeof(request.feb.devname)) ==
		    sizeof(request.feb.devname))
		return -EINVAL;
	/* The FEB may be opened or closed between the two looks. */
	for (attempt = 0; attempt < 10 && err == -EBUSY; attempt++) {
		err = through_owner(&request);
		if (err == -ENOENT)
			err = through_free(&request);
	}
	if (err)
		return err;
	return copy_to_user(both, &request, sizeof(request)) ? -EFAULT : 0;
}

static long get_link(void __user *to)
{
	struct fade_link_stats *now = &fade_link_stats;
	struct fade_link_statistics out = {
		.frames = atomic64_read(&now->frames),
		.other_destination = atomic64_read(&now->other_destination),
		.truncated = atomic64_read(&now->truncated),
		.wrong_version = atomic64_read(&now->wrong_version),
		.wrong_type = atomic64_read(&now->wrong_type),
		.unknown_feb = atomic64_read(&now->unknown_feb),
		.resets = atomic64_read(&now->resets),
		.no_memory = atomic64_read(&now->no_memory),
		.send_errors = atomic64_read(&now->send_errors),
	};

	return copy_to_user(to, &out, sizeof(out)) ? -EFAULT : 0;
}

static long control_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	switch (cmd) {
	case FADE_IOC_FEBCMD:
		return feb_command((void __user *)arg);
	case FADE_IOC_GETLINK:
		return get_link((void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

struct miscdevice fade_control = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "l3_fpga_ctl",
	.fops = &control_fops,
};
