// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fadelink: data of front-end boards by FADE-10G and FADE v1. The protocol handler stores
 * and confirms packets in softirq; the application reads a mapped ring.
 *
 * This file: parameters, devices, begin and end of the module.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "fadelink.h"
#include "fadelink_compat.h"

static int max_slaves = 4;
module_param(max_slaves, int, 0444);
MODULE_PARM_DESC(max_slaves, "number of FEBs, 1 to 64 (default 4)");

static int ring_order = 12;
module_param(ring_order, int, 0444);
MODULE_PARM_DESC(ring_order,
		 "log2 of the packets in each ring, up to 17 (default 12: 32 MiB)");

static int window = FADE_MAX_WINDOW;
module_param(window, int, 0444);
MODULE_PARM_DESC(window, "packets of the FEB's window, 1 to 64 (default 64)");

static uint first_packet;
module_param(first_packet, uint, 0444);
MODULE_PARM_DESC(first_packet,
		 "number of the first packet (0 but in tests of its wrap)");

bool fade_reset_unknown;
module_param_named(reset_unknown, fade_reset_unknown, bool, 0644);
MODULE_PARM_DESC(reset_unknown,
		 "send RESET to FEBs that send without being associated (default N)");

struct fade_slave *fade_slaves;
int fade_max_slaves;
struct fade_settings fade_default_settings;

static dev_t fade_dev;
static struct cdev fade_cdev;
static struct class *fade_class;

static int check_parameters(void)
{
	if (max_slaves < 1 || max_slaves > 64) {
		pr_err("fadelink: max_slaves %d: expected 1 to 64\n", max_slaves);
		return -EINVAL;
	}
	if (window < 1 || window > FADE_MAX_WINDOW) {
		pr_err("fadelink: window %d: expected 1 to %d\n", window,
		       FADE_MAX_WINDOW);
		return -EINVAL;
	}
	if (ring_order < 0 || ring_order > ilog2(FADE_MAX_RING_PACKETS) ||
	    (1 << ring_order) < window) {
		pr_err("fadelink: ring_order %d: expected log2 of the window, at least, to 17\n",
		       ring_order);
		return -EINVAL;
	}
	return 0;
}

static int __init fade_init(void)
{
	int i, err;

	err = check_parameters();
	if (err)
		return err;
	fade_max_slaves = max_slaves;
	fade_default_settings.ring_packets = 1ull << ring_order;
	fade_default_settings.window = window;
	fade_default_settings.first_packet = first_packet;

	fade_slaves = kcalloc(max_slaves, sizeof(*fade_slaves), GFP_KERNEL);
	if (!fade_slaves)
		return -ENOMEM;
	for (i = 0; i < max_slaves; i++) {
		struct fade_slave *slave = &fade_slaves[i];

		mutex_init(&slave->control);
		spin_lock_init(&slave->lock);
		init_waitqueue_head(&slave->wait);
		INIT_DELAYED_WORK(&slave->tick, fade_tick);
		slave->index = i;
	}

	err = alloc_chrdev_region(&fade_dev, 0, max_slaves, "l3_fpga");
	if (err)
		goto free_slaves;
	fade_class = fade_class_create("l3_fpga");
	if (IS_ERR(fade_class)) {
		err = PTR_ERR(fade_class);
		goto free_region;
	}
	err = fade_interface_init();
	if (err)
		goto destroy_class;
	fade_net_init();
	cdev_init(&fade_cdev, &fade_fops);
	fade_cdev.owner = THIS_MODULE;
	err = cdev_add(&fade_cdev, fade_dev, max_slaves);
	if (err)
		goto stop_net;
	for (i = 0; i < max_slaves; i++) {
		struct device *dev = device_create(fade_class, NULL,
						   fade_dev + i, NULL,
						   "l3_fpga%d", i);
		if (IS_ERR(dev)) {
			err = PTR_ERR(dev);
			goto destroy_devices;
		}
	}
	err = misc_register(&fade_control);
	if (err)
		goto destroy_devices;
	fade_debugfs_init();
	return 0;

destroy_devices:
	while (i-- > 0)
		device_destroy(fade_class, fade_dev + i);
	cdev_del(&fade_cdev);
stop_net:
	fade_net_exit();
	fade_interface_exit();
destroy_class:
	class_destroy(fade_class);
free_region:
	unregister_chrdev_region(fade_dev, max_slaves);
free_slaves:
	kfree(fade_slaves);
	return err;
}

static void __exit fade_exit(void)
{
	int i;

	fade_debugfs_exit();
	misc_deregister(&fade_control);
	for (i = 0; i < fade_max_slaves; i++)
		device_destroy(fade_class, fade_dev + i);
	cdev_del(&fade_cdev);
	fade_net_exit();
	fade_interface_exit();
	class_destroy(fade_class);
	unregister_chrdev_region(fade_dev, fade_max_slaves);
	kfree(fade_slaves);
}

module_init(fade_init);
module_exit(fade_exit);
MODULE_DESCRIPTION("Fadelink: detector data by FADE-10G and FADE v1");
MODULE_AUTHOR("Fadelink maintainers");
MODULE_LICENSE("GPL");
