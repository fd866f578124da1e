// SPDX-License-Identifier: Apache-2.0
/*
 * An application written against the published ABI of /dev/l3_fpga%d: its own
 * copy of numbers and structures, nothing of this project's headers.
 *
 * abi_reader DEVICE INTERFACE MAC BYTES [kill]
 * Receives BYTES and more, STOP, to the end; each word must be the counter's.
 * Prints the number of words; status 0 if all is right. `kill`: dies in the
 * middle without closing anything.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

struct pointers {
	int32_t head;
	int32_t tail;
	int8_t eof;
} __attribute__((packed));

struct slave {
	uint8_t mac[6];
	char name[16];
} __attribute__((packed));

struct user_command {
	uint16_t command;
	uint16_t retries;
	uint32_t argument;
	uint32_t timeout;
	uint8_t response[12];
} __attribute__((packed));

#define SETWAKEUP _IO(0xA5, 0x30)
#define GETBUFLEN _IO(0xA5, 0x31)
#define READPTRS _IOR(0xA5, 0x32, struct pointers)
#define WRITEPTRS _IO(0xA5, 0x33)
#define GETMAC _IOW(0xA5, 0x34, struct slave)
#define STARTMAC _IO(0xA5, 0x35)
#define STOPMAC _IO(0xA5, 0x36)
#define FREEMAC _IO(0xA5, 0x37)
#define USERCMD _IOWR(0xA5, 0x38, struct user_command)

static long must(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

int main(int argc, char **argv)
{
	struct user_command command = { .command = 0x0207, .retries = 30, .argument = 1, .timeout = 50 };
	struct slave slave = {};
	struct pointers p;
	uint64_t expected = 0, sum = 0;
	int stopped = 0;

	if (argc < 5 || sscanf(argv[3], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &slave.mac[0], &slave.mac[1], &slave.mac[2],
			       &slave.mac[3], &slave.mac[4], &slave.mac[5]) != 6) {
		fprintf(stderr, "usage: abi_reader DEVICE INTERFACE MAC BYTES [kill]\n");
		return 2;
	}
	strncpy(slave.name, argv[2], sizeof(slave.name) - 1);
	uint64_t wanted = strtoull(argv[4], NULL, 0) / 8;

	int fd = must(open(argv[1], O_RDWR), "open");
	long length = must(ioctl(fd, GETBUFLEN), "GETBUFLEN");
	const uint8_t *ring = mmap(NULL, 2 * length, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		must(-1, "mmap");
	must(ioctl(fd, SETWAKEUP, 64 * 1024), "SETWAKEUP");
	must(ioctl(fd, GETMAC, &slave), "GETMAC");
	must(ioctl(fd, STARTMAC), "STARTMAC");
	for (;;) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
		long bytes;

		if (must(poll(&poll_fd, 1, 10000), "poll") == 0) {
			fprintf(stderr, "no data for 10 s\n");
			return 1;
		}
		bytes = must(ioctl(fd, READPTRS, &p), "READPTRS");
		for (long at = 0; at < bytes; at += 8) {
			uint64_t word;

			memcpy(&word, ring + p.tail + at, 8);
			if (word != expected) {
				fprintf(stderr, "word %llu is %llx\n", (unsigned long long)expected,
					(unsigned long long)word);
				return 1;
			}
			expected++;
		}
		must(ioctl(fd, WRITEPTRS, bytes), "WRITEPTRS");
		if (p.eof)
			break;
		if (!stopped && expected >= wanted) {
			if (argc > 5)
				raise(SIGKILL);
			must(ioctl(fd, USERCMD, &command), "USERCMD");
			memcpy(&sum, command.response + 4, 8);
			must(ioctl(fd, STOPMAC), "STOPMAC");
			stopped = 1;
		}
	}
	must(ioctl(fd, FREEMAC), "FREEMAC");
	printf("%llu words, all right\n", (unsigned long long)expected);
	return stopped && be64toh(sum) >= 1 ? 0 : 1;
}
