// SPDX-License-Identifier: Apache-2.0
/*
 * Wrong calls to /dev/l3_fpga%d: each must give its errno and change nothing.
 *
 * abi_abuse errno DEVICE INTERFACE MAC   checks each case
 * abi_abuse fuzz DEVICE SEED CALLS       random calls; must come through
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../driver/fadelink_uapi.h"

static int failures;

static void expect(long result, int error, const char *what)
{
	if ((error == 0 && result < 0) || (error && (result >= 0 || errno != error))) {
		printf("%s: result %ld, errno %s, expected %s\n", what, result, strerror(errno), strerror(error));
		failures++;
	}
}

#define EXPECT(error, call) expect(call, error, #call)

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
	EXPECT(EBUSY, open(argv[2], O_RDWR));
	long length = ioctl(fd, FADE_IOC_GETBUFLEN);

	/* Without a FEB. */
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_STARTMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_STOPMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_FREEMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_RESETMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_USERCMD, &command));
	EXPECT(0, ioctl(fd, FADE_IOC_READPTRS, &pointers));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_WRITEPTRS, 1));
	EXPECT(0, ioctl(fd, FADE_IOC_WRITEPTRS, 0));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_WRITEPTRS, -1L));

	/* Bad values and pointers. */
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETWAKEUP, 0));
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_SETWAKEUP, length + 1));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_READPTRS, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_READPTRS64, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETSTATS, bad));
	EXPECT(EFAULT, ioctl(fd, FADE_IOC_GETMAC, bad));
	EXPECT(ENOTTY, ioctl(fd, _IO(FADE_IOC_MAGIC, 0x2F)));
	EXPECT(ENOTTY, ioctl(fd, _IO(0xA4, 0x31)));
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
	command.timeout = 0;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_USERCMD, &command));
	command.timeout = 60001;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_USERCMD, &command));
	command.timeout = 20;
	command.retries = 1001;
	EXPECT(EINVAL, ioctl(fd, FADE_IOC_USERCMD, &command));
	command.retries = 50;
	EXPECT(0, ioctl(fd, FADE_IOC_USERCMD, &command));
	EXPECT(0, memcmp(command.response + 4, "FADE10G\1", 8) ? -1 : 0);
	EXPECT(0, ioctl(fd, FADE_IOC_FREEMAC));
	EXPECT(ENODEV, ioctl(fd, FADE_IOC_FREEMAC));
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
	fd = open(argv[2], O_RDWR);
	EXPECT(0, fd);
	printf("errno: %d failures\n", failures);
	return failures != 0;
}

static int fuzz(char **argv)
{
	static const unsigned int codes[] = { FADE_IOC_SETWAKEUP,   FADE_IOC_GETBUFLEN, FADE_IOC_READPTRS,
					      FADE_IOC_WRITEPTRS,   FADE_IOC_GETMAC,	FADE_IOC_STARTMAC,
					      FADE_IOC_STOPMAC,	    FADE_IOC_FREEMAC,	FADE_IOC_USERCMD,
					      FADE_IOC_RESETMAC,    FADE_IOC_READPTRS64, FADE_IOC_GETSTATS };
	static unsigned char block[4096];
	long calls = atol(argv[4]), good = 0;
	int fd = open(argv[2], O_RDWR);

	srand(atoi(argv[3]));
	for (long i = 0; i < calls; i++) {
		unsigned int code = rand() % 8 ? codes[rand() % 12] : (unsigned int)rand();
		struct fade_slave_id *id = (void *)block;
		struct fade_user_command *command = (void *)block;
		void *arg = block;

		for (size_t j = 0; j < 64; j++)
			block[j] = rand();
		if (code == FADE_IOC_GETMAC && rand() % 2)
			*id = (struct fade_slave_id){ { 2, 0xfa, 0xde, 0, 0, 1 + rand() % 3 }, "eth0" };
		if (code == FADE_IOC_USERCMD) {
			command->timeout = rand() % 5;
			command->retries = rand() % 3;
		}
		if (rand() % 8 == 0)
			arg = (void *)(uintptr_t)((uint64_t)rand() << (rand() % 40));
		if (code == FADE_IOC_STARTMAC && rand() % 4)
			continue; /* it takes its time */
		good += ioctl(fd, code, arg) >= 0;
		if (rand() % 64 == 0) {
			close(fd);
			fd = open(argv[2], O_RDWR);
		}
	}
	printf("fuzz: %ld of %ld calls had something to do\n", good, calls);
	return good == 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "errno"))
		return check_errno(argv);
	if (argc == 5 && !strcmp(argv[1], "fuzz"))
		return fuzz(argv);
	return 2;
}
