// SPDX-License-Identifier: Apache-2.0
/*
 * Wrong calls to /dev/l3_fpga%d: each must give its errno and change nothing.
 *
 * abi_abuse errno DEVICE INTERFACE MAC      checks each case
 * abi_abuse fuzz DEVICE SEED CALLS THREADS  random calls, of several threads on
 *					     one descriptor; must come through
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../driver/fadelink_uapi.h"

static int failures;
static int watched = -1;

/* All that a call may change, as far as an application can see it. */
struct state {
	struct fade_pointers64 pointers;
	struct fade_statistics stats;
	long length;
};

static struct state look(void)
{
	struct state state;

	memset(&state, 0, sizeof(state));
	if (watched >= 0) {
		ioctl(watched, FADE_IOC_READPTRS64, &state.pointers);
		ioctl(watched, FADE_IOC_GETSTATS, &state.stats);
		state.length = ioctl(watched, FADE_IOC_GETBUFLEN);
	}
	return state;
}

static void expect(long result, int error, const char *what, const struct state *before)
{
	int got = errno;

	if ((error == 0 && result < 0) || (error && (result >= 0 || got != error))) {
		printf("%s: result %ld, errno %s, expected %s\n", what, result, strerror(got), strerror(error));
		failures++;
	}
	/* A command that has no response was sent all the same. */
	struct state after = look();

	if (error && error != ETIMEDOUT && memcmp(before, &after, sizeof(after))) {
		printf("%s: failed as it should, yet changed something\n", what);
		failures++;
	}
}

#define EXPECT(error, call)                                \
	do {                                               \
		struct state before = look();              \
		long result = call;                        \
							   \
		expect(result, error, #call, &before);     \
	} while (0)

static void check_settings(int fd, struct fade_slave_id *feb, long length)
{
	struct fade_config config = { .ring_packets = 16, .window = 16 };

	EXPECT(EFAULT, ioctl(fd, FADE_IOC_SETCONFIG, (void *)8));
	config = (struct fade_config){ .ring_packets = 16, .window = 16, .protocol = 3 };
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config = (struct fade_config){ .ring_packets = 16, .window = 16, .firmware = 4 };
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config = (struct fade_config){ .ring_packets = 16, .window = 16, .words = 4 };
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config = (struct fade_config){ .ring_packets = 16, .window = 16, .reserved = 1 };
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config = (struct fade_config){ .ring_packets = 4, .window = 4, .protocol = FADE_PROTOCOL_FADE1 };
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config = (struct fade_config){ .ring_packets = 16, .window = 16 };
	config.window = 0;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config.window = 65;
	config.ring_packets = 128;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config.window = 16;
	config.ring_packets = 8;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config.ring_packets = 48;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config.ring_packets = 1 << 18;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	config.ring_packets = 16;
	EXPECT(0, ioctl(fd, FADE_IOC_GETMAC, feb));
	EXPECT(EBUSY, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	EXPECT(0, ioctl(fd, FADE_IOC_FREEMAC));
	EXPECT(0, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	EXPECT(0, ioctl(fd, FADE_IOC_GETBUFLEN) == 16 * 8192 ? 0 : -1);
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETWAKEUP, 8 * 8192 + 1));
	void *ring = mmap(NULL, 16 * 8192, PROT_READ, MAP_SHARED, fd, 0);

	EXPECT(0, ring == MAP_FAILED ? -1 : 0);
	config.ring_packets = length / 8192;
	EXPECT(EBUSY, ioctl(fd, FADE_IOC_SETCONFIG, &config));
	munmap(ring, 16 * 8192);
}

static void check_control(const struct fade_slave_id *feb)
{
	struct fade_user_command command = { .command = 0x0100, .timeout = 20, .retries = 50 };
	struct fade_feb_command request = { .feb = *feb, .command = command };
	struct fade_link_statistics link;
	int fd = open("/dev/l3_fpga_ctl", O_RDWR);

	EXPECT(0, fd);
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_FEBCMD, (void *)8));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETLINK, (void *)8));
	EXPECT(ENOTTY, ioctl(fd, FADE_IOC_STARTMAC));
	EXPECT(0, ioctl(fd, FADE_IOC_GETLINK, &link));
	EXPECT(0, ioctl(fd, FADE_IOC_FEBCMD, &request));
	EXPECT(0, memcmp(request.command.response + 4, "FADE10G\1", 8) ? -1 : 0);
	request.command.command = 0x0001; /* START is for the one who reads */
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_FEBCMD, &request));
	request.command.command = 0x0005;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_FEBCMD, &request));
	request.command.command = 0x0100;
	request.command.timeout = 0;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_FEBCMD, &request));
	request.command.timeout = 20;
	request.command.retries = 1001;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_FEBCMD, &request));
	request.command.retries = 1;
	strcpy(request.feb.devname, "none0");
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_FEBCMD, &request));
	request.feb = *feb;
	request.feb.mac[0] |= 1;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_FEBCMD, &request));
	request.feb = *feb;
	request.feb.mac[5] ^= 0x55;
	EXPECT(ETIMEDOUT, ioctl(fd, FADE_IOC_FEBCMD, &request));
	close(fd);
}

static int check_errno(char **argv)
{
	struct fade_slave_id id = {}, other;
	struct fade_user_command command = { .command = 0x0100, .timeout = 20 };
	struct fade_pointers pointers;
	void *bad = (void *)8;

	sscanf(argv[4], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &id.mac[0], &id.mac[1], &id.mac[2], &id.mac[3], &id.mac[4],
	       &id.mac[5]);
	strncpy(id.devname, argv[3], sizeof(id.devname) - 1);
	int fd = open(argv[2], O_RDWR);

	EXPECT(0, fd);
	watched = fd;
	EXPECT(EBUSY, open(argv[2], O_RDWR));
	long length = ioctl(fd, FADE_IOC_GETBUFLEN);

	/* Without a FEB. */
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_STARTMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_STOPMAC));
	EXPECT(0, ioctl(fd, FADE_IOC_FREEMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_RESETMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_USERCMD, &command));
	EXPECT(0, ioctl(fd, FADE_IOC_READPTRS, &pointers));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_WRITEPTRS, 1));
	EXPECT(0, ioctl(fd, FADE_IOC_WRITEPTRS, 0));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_WRITEPTRS, -1L));

	/* Bad values and pointers. */
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETWAKEUP, length / 2 + 1));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETTHRESHOLD, length + 1));
	EXPECT(0, ioctl(fd, FADE_IOC_SETTHRESHOLD, length));
	EXPECT(0, ioctl(fd, FADE_IOC_SETTHRESHOLD, 1));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETKIND, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETTOLD, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_READPTRS, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_READPTRS64, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETSTATS, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETMAC, bad));
	EXPECT(EINVAL, ioctl(fd, _IO(FADE_IOC_MAGIC, 0x2F)));
	EXPECT(EINVAL, ioctl(fd, _IO(0xA4, 0x31)));
	other = id;
	memset(other.devname, 'x', sizeof(other.devname));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_GETMAC, &other));
	other = id;
	other.mac[0] |= 1;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_GETMAC, &other));
	memset(other.mac, 0, 6);
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_GETMAC, &other));
	other = id;
	strcpy(other.devname, "none0");
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_GETMAC, &other));

	/* With a FEB. */
	EXPECT(0, ioctl(fd, FADE_IOC_GETMAC, &id));
	EXPECT(EBUSY, ioctl(fd, FADE_IOC_GETMAC, &id));
	int second = open("/dev/l3_fpga1", O_RDWR);

	EXPECT(0, second);
	EXPECT(EBUSY, ioctl(second, FADE_IOC_GETMAC, &id));
	close(second);
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_USERCMD, bad));
	command.command = 0x0003;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_USERCMD, &command));
	command.command = 0x0100;
	command.retries = 50;
	EXPECT(0, ioctl(fd, FADE_IOC_USERCMD, &command));
	EXPECT(0, memcmp(command.response + 4, "FADE10G\1", 8) ? -1 : 0);
	EXPECT(0, ioctl(fd, FADE_IOC_FREEMAC));
	id.mac[5] ^= 0x55; /* of no FEB */
	EXPECT(0, ioctl(fd, FADE_IOC_GETMAC, &id));
	command.retries = 1;
	EXPECT(ETIMEDOUT, ioctl(fd, FADE_IOC_USERCMD, &command));
	EXPECT(0, ioctl(fd, FADE_IOC_FREEMAC));

	/* Mappings: to be read only, of the ring or of it twice. */
	EXPECT(EPERM, mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	EXPECT(EINVAL, mmap(NULL, 3 * length, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	EXPECT(EINVAL, mmap(NULL, 2 * length, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED ? -1 : 0);
	char *ring = mmap(NULL, 2 * length, PROT_READ, MAP_SHARED, fd, 0);

	EXPECT(0, ring == MAP_FAILED ? -1 : 0);
	EXPECT(EACCES, mprotect(ring, length, PROT_READ | PROT_WRITE));
	EXPECT(0, memcmp(ring, ring + length, length) ? -1 : 0);
	close(fd);
	/* The mapping keeps the device. */
	EXPECT(EBUSY, open(argv[2], O_RDWR));
	munmap(ring, 2 * length);
	watched = -1;
	fd = open(argv[2], O_RDWR);
	EXPECT(0, fd);
	watched = fd;
	id.mac[5] ^= 0x55;
	check_settings(fd, &id, length);
	check_control(&id);
	printf("errno: %d failures\n", failures);
	return failures != 0;
}

struct fuzzer {
	pthread_t thread;
	const char *device;
	unsigned int seed;
	long calls, good;
	int fd, control;
	int alone; /* may close the device and open it again */
};

static void *fuzz_thread(void *context)
{
	static const unsigned int codes[] = {
		FADE_IOC_SETWAKEUP,  FADE_IOC_GETBUFLEN, FADE_IOC_READPTRS,   FADE_IOC_WRITEPTRS, FADE_IOC_GETMAC,
		FADE_IOC_STARTMAC,   FADE_IOC_STOPMAC,	 FADE_IOC_FREEMAC,    FADE_IOC_USERCMD,	  FADE_IOC_RESETMAC,
		FADE_IOC_READPTRS64, FADE_IOC_GETSTATS,	 FADE_IOC_SETCONFIG,  FADE_IOC_FEBCMD,	  FADE_IOC_GETLINK,
		FADE_IOC_GETKIND,    FADE_IOC_SETTHRESHOLD, FADE_IOC_GETENDING,
		FADE_IOC_GETTOLD,
	};
	struct fuzzer *f = context;
	unsigned char block[4096];

	for (long i = 0; i < f->calls; i++) {
		unsigned int known = codes[rand_r(&f->seed) % (sizeof(codes) / sizeof(codes[0]))];
		unsigned int code = rand_r(&f->seed) % 8 ? known : (unsigned int)rand_r(&f->seed);
		struct fade_slave_id feb = { { 2, 0xfa, 0xde, 0, 0, 1 + rand_r(&f->seed) % 3 }, "eth0" };
		struct fade_slave_id *id = (void *)block;
		struct fade_user_command *command = (void *)block;
		struct fade_feb_command *request = (void *)block;
		struct fade_config *config = (void *)block;
		int fd = code == FADE_IOC_FEBCMD || code == FADE_IOC_GETLINK ? f->control : f->fd;
		void *arg = block;

		for (size_t j = 0; j < 64; j++)
			block[j] = rand_r(&f->seed);
		if (code == FADE_IOC_FEBCMD) {
			request->feb = feb;
			command = &request->command;
		}
		if (code == FADE_IOC_GETMAC && rand_r(&f->seed) % 2)
			*id = feb;
		if (code == FADE_IOC_USERCMD || code == FADE_IOC_FEBCMD) {
			command->timeout = rand_r(&f->seed) % 5;
			command->retries = rand_r(&f->seed) % 3;
		}
		if (code == FADE_IOC_SETCONFIG && rand_r(&f->seed) % 2)
			*config = (struct fade_config){
				.ring_packets = 1 << rand_r(&f->seed) % 10,
				.window = rand_r(&f->seed) % 70,
				.protocol = rand_r(&f->seed) % 4,
				.firmware = rand_r(&f->seed) % 5,
				.words = rand_r(&f->seed) % 5,
			};
		if (rand_r(&f->seed) % 8 == 0)
			arg = (void *)(uintptr_t)((uint64_t)rand_r(&f->seed) << (rand_r(&f->seed) % 40));
		if (code == FADE_IOC_STARTMAC && rand_r(&f->seed) % 4)
			continue; /* it takes its time */
		f->good += ioctl(fd, code, arg) >= 0;
		if (f->alone && rand_r(&f->seed) % 64 == 0) {
			close(f->fd);
			f->fd = open(f->device, O_RDWR);
		}
	}
	return NULL;
}

static int fuzz(char **argv)
{
	long calls = atol(argv[4]), good = 0;
	int threads = atoi(argv[5]), fd = open(argv[2], O_RDWR), control = open("/dev/l3_fpga_ctl", O_RDWR);
	struct fuzzer *all = calloc(threads, sizeof(*all));

	for (int i = 0; i < threads; i++) {
		all[i] = (struct fuzzer){ .device = argv[2], .seed = atoi(argv[3]) + 1000 * i, .calls = calls,
					  .fd = fd, .control = control, .alone = threads == 1 };
		pthread_create(&all[i].thread, NULL, fuzz_thread, &all[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(all[i].thread, NULL);
		good += all[i].good;
	}
	printf("fuzz: %ld of %ld calls had something to do\n", good, calls * threads);
	return good == 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "errno"))
		return check_errno(argv);
	if (argc == 6 && !strcmp(argv[1], "fuzz"))
		return fuzz(argv);
	return 2;
}
