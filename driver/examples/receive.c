// SPDX-License-Identifier: Apache-2.0
/* receive DEVICE INTERFACE MAC SECONDS: receives the counter pattern of a FEB and verifies it. */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <fadelink_uapi.h>

static long check(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

int main(int argc, char **argv)
{
	struct fade_slave_id feb = {};
	struct fade_pointers p = {};
	uint64_t next = 0;
	uint8_t *m = feb.mac;

	if (argc != 5 || sscanf(argv[3], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4, m + 5) != 6)
		return fprintf(stderr, "usage: receive DEVICE INTERFACE MAC SECONDS\n"), 2;
	strncpy(feb.devname, argv[2], sizeof(feb.devname) - 1);
	int fd = check(open(argv[1], O_RDWR), argv[1]);
	long length = check(ioctl(fd, FADE_IOC_GETBUFLEN), "GETBUFLEN");
	/* Mapped twice in a row: no packet is split at the end of the ring. */
	uint8_t *ring = mmap(NULL, 2 * length, PROT_READ, MAP_SHARED, fd, 0);

	check(ring == MAP_FAILED ? -1 : 0, "mmap");
	check(ioctl(fd, FADE_IOC_GETMAC, &feb), "GETMAC");
	check(ioctl(fd, FADE_IOC_STARTMAC), "STARTMAC");
	struct pollfd wake = { .fd = fd, .events = POLLIN };

	for (time_t end = time(NULL) + atoi(argv[4]); !p.eof;) {
		if (end && time(NULL) >= end) {
			check(ioctl(fd, FADE_IOC_STOPMAC), "STOPMAC");
			end = 0;
		}
		check(poll(&wake, 1, 100), "poll");
		long bytes = check(ioctl(fd, FADE_IOC_READPTRS, &p), "READPTRS");
		const uint64_t *words = (const uint64_t *)(ring + p.tail);

		for (long i = 0; i < bytes / 8; i++)
			if (words[i] != next++)
				return fprintf(stderr, "word %llu is wrong\n", (unsigned long long)next - 1), 1;
		check(ioctl(fd, FADE_IOC_WRITEPTRS, bytes), "WRITEPTRS");
	}
	return printf("%llu words, every one verified\n", (unsigned long long)next) < 0;
}
