// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters as text: /sys/kernel/debug/fadelink/link and .../l3_fpga%d, a name
 * and a value a line.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "fadelink.h"

static struct dentry *root;

#define SHOW(name) seq_printf(seq, #name " %llu\n", stats.name)

static int slave_show(struct seq_file *seq, void *unused)
{
	struct fade_slave *slave = seq->private;
	struct fade_interface interface;
	struct fade_statistics stats;

	fade_interface_state(slave, &interface);
	spin_lock_bh(&slave->lock);
	stats = slave->feb.stats;
	spin_unlock_bh(&slave->lock);
	SHOW(packets);
	SHOW(duplicates);
	SHOW(repaired);
	SHOW(no_space);
	SHOW(not_started);
	SHOW(protocol_errors);
	SHOW(wrong_length);
	SHOW(wrong_valid_words);
	SHOW(missing_frames);
	SHOW(acks);
	SHOW(responses);
	SHOW(unexpected_responses);
	SHOW(commands);
	SHOW(resets);
	SHOW(interrupted);
	SHOW(begun_again);
	SHOW(delay);
	seq_printf(seq, "interface_state %u\n", interface.state);
	seq_printf(seq, "interface_downs %u\n", interface.downs);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(slave);

#define SHOW_LINK(name)							\
	seq_printf(seq, #name " %lld\n",				\
		   (long long)atomic64_read(&fade_link_stats.name))

static int link_show(struct seq_file *seq, void *unused)
{
	SHOW_LINK(frames);
	SHOW_LINK(truncated);
	SHOW_LINK(wrong_version);
	SHOW_LINK(wrong_type);
	SHOW_LINK(unknown_feb);
	SHOW_LINK(other_destination);
	SHOW_LINK(resets);
	SHOW_LINK(no_memory);
	SHOW_LINK(send_errors);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(link);

/* Without debugfs the module works all the same. */
void fade_debugfs_init(void)
{
	char name[24];
	int i;

	root = debugfs_create_dir("fadelink", NULL);
	debugfs_create_file("link", 0444, root, NULL, &link_fops);
	for (i = 0; i < fade_max_slaves; i++) {
		snprintf(name, sizeof(name), "l3_fpga%d", i);
		debugfs_create_file(name, 0444, root, &fade_slaves[i],
				    &slave_fops);
	}
}

void fade_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
}
