// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is sent to a FEB: commands, START and RESET. For the locks see
 * fadelink_net.c.
 */
#include <linux/etherdevice.h>

#include "fadelink.h"

/* Sends a request to the FEB; -ENODEV if there is none. */
static int send_request(struct fade_slave *slave,
			const struct fade_request *request)
{
	u8 frame[FADE_REQUEST_LEN];
	struct net_device *netdev;
	int err;

	spin_lock_bh(&slave->lock);
	netdev = slave->netdev;
	if (!netdev) {
		spin_unlock_bh(&slave->lock);
		return -ENODEV;
	}
	/* The association may end while the frame is sent. */
	dev_hold(netdev);
	if (request->fade1)
		fade1_request(frame, slave->mac, netdev->dev_addr,
			      request->code, request->csn,
			      request->argument);
	else
		fade_command(frame, slave->mac, netdev->dev_addr,
			     request->code, request->csn,
			     request->argument);
	spin_unlock_bh(&slave->lock);
	err = fade_send_frame(netdev, frame);
	dev_put(netdev);
	return err;
}

/* RESET, in the protocol of the FEB, or in both where it is not known. */
int fade_send_resets(struct fade_slave *slave)
{
	struct fade_request reset = { .code = FADE_CMD_RESET };
	struct fade_request reset1 = { .fade1 = true, .code = FADE1_TYPE_RESET };
	int err = 0;
	u32 protocol;

	spin_lock_bh(&slave->lock);
	protocol = slave->feb.protocol;
	slave->feb.stats.resets++;
	spin_unlock_bh(&slave->lock);
	if (protocol != FADE_PROTOCOL_FADE1)
		err = send_request(slave, &reset);
	if (protocol != FADE_PROTOCOL_FADE10G)
		err = send_request(slave, &reset1);
	return err;
}

/**
 * fade_tick - START, and what FADE v1 must repeat
 * @work: of the device
 */
void fade_tick(struct work_struct *work)
{
	struct fade_slave *slave = container_of(to_delayed_work(work),
						struct fade_slave, tick);
	struct fade_tick tick;
	u64 now = fade_now_ms();
	u32 i;

	spin_lock_bh(&slave->lock);
	if (!fade_is_reachable(slave))
		fade_feb_unheard(&slave->feb);
	fade_feb_tick(&slave->feb, &slave->settings, now, &tick);
	if (tick.begun)
		fade_begin_ring(slave);
	spin_unlock_bh(&slave->lock);
	/* A frame that cannot be sent now is repeated like a lost one. */
	for (i = 0; i < tick.count; i++)
		send_request(slave, &tick.requests[i]);
	if (tick.wake)
		wake_up_all(&slave->wait);
	if (tick.again)
		queue_delayed_work(system_wq, &slave->tick,
				   msecs_to_jiffies(tick.next > now ?
							    tick.next - now :
							    0));
}

/* No response: what can be the reason, if it is known. */
static int no_response(struct fade_slave *slave)
{
	return fade_is_down(slave) ? -ENETDOWN : -ETIMEDOUT;
}

/* The command that waits has its response, or cannot have one any more. */
static bool is_over(struct fade_slave *slave)
{
	return !READ_ONCE(slave->feb.pending) || READ_ONCE(slave->error);
}

/* Sends a command and waits; as fade_command_wait(). */
static int exchange(struct fade_slave *slave, u16 code, u32 argument,
		    unsigned long timeout, u32 attempts,
		    struct fade_response *answer)
{
	struct fade_request request = { .code = code, .argument = argument };
	int err = -ETIMEDOUT;

	spin_lock_bh(&slave->lock);
	request.csn = fade_feb_command(&slave->feb, code);
	spin_unlock_bh(&slave->lock);
	while (attempts--) {
		long left;

		spin_lock_bh(&slave->lock);
		slave->feb.stats.commands++;
		spin_unlock_bh(&slave->lock);
		/* A frame that cannot be sent now is repeated like a lost one. */
		if (send_request(slave, &request) == -ENODEV) {
			err = -ENODEV;
			break;
		}
		left = wait_event_killable_timeout(slave->wait,
						   is_over(slave), timeout);
		if (left < 0) {
			err = -EINTR;
			break;
		}
		if (!READ_ONCE(slave->feb.pending)) {
			err = 0;
			break;
		}
		if (READ_ONCE(slave->error)) {
			err = -EIO;
			break;
		}
	}
	spin_lock_bh(&slave->lock);
	slave->feb.pending = false;
	*answer = slave->feb.answer;
	spin_unlock_bh(&slave->lock);
	return err == -ETIMEDOUT ? no_response(slave) : err;
}

/**
 * fade_command_wait - sends a command, waits for its response
 * @slave: the device
 * @code: code of the command; START is for fade_start()
 * @argument: argument
 * @timeout: jiffies from each attempt to the next
 * @attempts: how often it is sent at most
 * @answer: the response
 *
 * The FEB is asked first after which number the command's may come.
 *
 * Called with slave->control held. Returns 0, -ETIMEDOUT, -ENETDOWN when
 * there was no response and the interface is down, -ENODEV when there is no FEB,
 * -EIO when its interface was removed, or -EINTR for a signal that ends the
 * process. Other signals wait for the end: a call that was begun again would
 * have the FEB execute the command again.
 */
static int fade_command_wait(struct fade_slave *slave, u16 code, u32 argument,
			     unsigned long timeout, u32 attempts,
			     struct fade_response *answer)
{
	unsigned long share = max(timeout / FADE_IDENTIFY_SHARE, 1UL);
	int err = 0;
	bool asks;

	spin_lock_bh(&slave->lock);
	asks = fade_feb_asks(&slave->feb, code);
	spin_unlock_bh(&slave->lock);
	if (asks)
		err = exchange(slave, FADE_CMD_IDENTIFY, 0, share,
			       attempts * FADE_IDENTIFY_SHARE, answer);
	return err ?: exchange(slave, code, argument, timeout, attempts, answer);
}

/**
 * fade_user_command - runs a command as the user wrote it
 * @slave: the device
 * @command: the command, checked; its response is filled in
 * @timeout: jiffies from each attempt to the next
 * @attempts: how often it is sent at most
 *
 * Called with slave->control held. Returns as fade_command_wait(), or
 * -EOPNOTSUPP if the FEB speaks FADE v1, which has no user commands.
 */
int fade_user_command(struct fade_slave *slave,
		      struct fade_user_command *command,
		      unsigned long timeout, u32 attempts)
{
	struct fade_response answer = { .code = command->command };
	int err;

	if (READ_ONCE(slave->feb.protocol) == FADE_PROTOCOL_FADE1)
		err = command->command == FADE_CMD_STOP ? fade_stop(slave) :
							  -EOPNOTSUPP;
	else
		err = fade_command_wait(slave, command->command,
					command->argument, timeout, attempts,
					&answer);
	if (err)
		return err;
	put_unaligned_be16(answer.code, command->response);
	put_unaligned_be16(answer.csn, command->response + 2);
	put_unaligned_be64(answer.value, command->response + 4);
	return 0;
}

/**
 * fade_stop - the packet being filled becomes the last
 * @slave: the device
 *
 * Called with slave->control held. Returns as fade_command_wait(); at once where
 * the FEB speaks FADE v1, which confirms no STOP.
 */
int fade_stop(struct fade_slave *slave)
{
	struct fade_response answer;
	bool is_fade1;

	spin_lock_bh(&slave->lock);
	is_fade1 = fade1_feb_stop(&slave->feb, fade_now_ms());
	spin_unlock_bh(&slave->lock);
	if (is_fade1) {
		mod_delayed_work(system_wq, &slave->tick, 0);
		return 0;
	}
	return fade_command_wait(slave, FADE_CMD_STOP, 0,
				 msecs_to_jiffies(FADE_DEFAULT_TIMEOUT_MS),
				 FADE_DEFAULT_RETRIES + 1, &answer);
}

/* Somebody waits for START; slave->lock is held, or a look will follow. */
static bool is_starting(struct fade_slave *slave)
{
	return READ_ONCE(slave->feb.start.stage) != FADE_STAGE_NONE &&
	       READ_ONCE(slave->feb.start.asked);
}

/**
 * fade_start - begins a transmission
 * @slave: the device
 *
 * One that still runs, as of a reader that was killed, is ended by RESET first.
 * Called with slave->control held. Returns 0, -ETIMEDOUT for a FEB that does not
 * answer, -ENETDOWN where its interface is down, -EBUSY for one that RESET did
 * not help, -EIO when its interface was removed, or -EINTR for a signal that ends
 * the process; others wait, for START begun again and again would never be over.
 */
int fade_start(struct fade_slave *slave)
{
	int err;

	spin_lock_bh(&slave->lock);
	fade_note_address(slave);
	fade_feb_start(&slave->feb, FADE_DEFAULT_TIMEOUT_MS,
		       FADE_DEFAULT_RETRIES, fade_now_ms());
	spin_unlock_bh(&slave->lock);
	mod_delayed_work(system_wq, &slave->tick, 0);
	err = wait_event_killable(slave->wait,
				  !is_starting(slave) || READ_ONCE(slave->error));
	spin_lock_bh(&slave->lock);
	if (is_starting(slave)) {
		slave->feb.start.stage = FADE_STAGE_NONE;
		err = err ? -EINTR : -EIO;
	} else if (!err && slave->feb.start.outcome == FADE_NO_RESPONSE) {
		err = -ETIMEDOUT;
	} else if (!err && slave->feb.start.outcome == FADE_STILL_RUNNING) {
		err = -EBUSY;
	}
	spin_unlock_bh(&slave->lock);
	return err == -ETIMEDOUT ? no_response(slave) : err;
}

/**
 * fade_reset - breaks the transmission off
 * @slave: the device
 *
 * Called with slave->control held. Returns 0 or -ENODEV.
 */
int fade_reset(struct fade_slave *slave)
{
	int err = fade_send_resets(slave);

	spin_lock_bh(&slave->lock);
	fade_feb_break_off(&slave->feb);
	spin_unlock_bh(&slave->lock);
	wake_up_all(&slave->wait);
	return err == -ENODEV ? err : 0;
}
