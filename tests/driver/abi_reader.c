// SPDX-License-Identifier: Apache-2.0
/*
 * An application written against the published ABI of /dev/l3_fpga%d: its own
 * copy of numbers and structures, nothing of this project's headers.
 *
 * abi_reader DEVICE INTERFACE MAC BYTES [kill] [big]
 * Receives BYTES and more, STOP, to the end; each word must be the counter's.
 * Prints the number of words; status 0 if all is right. `kill`: dies in the
 * middle without closing anything. `big`: the words come big-endian.
 *
 * abi_reader DEVICE INTERFACE MAC meanings HZ
 * Checks each line of the table of meanings in docs/driver.md. HZ: jiffies a
 * second. Needs the default size of the ring.
 *
 * abi_reader DEVICE INTERFACE MAC signals COUNT
 * COUNT commands and a STARTMAC while a timer sends a signal every millisecond,
 * whose handler lets interrupted calls be begun again. The FEB must execute each
 * command once.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
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
#define RESETMAC _IO(0xA5, 0x39)

static long must(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static int wrong;

static void expect(int right, const char *what)
{
	if (!right) {
		printf("%s: not as published (errno %s)\n", what, strerror(errno));
		wrong = 1;
	}
}

static int ready(int fd, int timeout)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return must(poll(&poll_fd, 1, timeout), "poll") ? poll_fd.revents : 0;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Seconds that a command takes that nobody answers; it must time out. */
static double unanswered(int fd, int retries, unsigned int timeout)
{
	struct user_command command = { .command = 0x0100, .retries = retries, .timeout = timeout };
	double begin = seconds();

	expect(ioctl(fd, USERCMD, &command) < 0 && errno == ETIMEDOUT, "USERCMD to nobody");
	return seconds() - begin;
}

static int meanings(int fd, struct slave *slave, double hz)
{
	struct user_command command = { .command = 0x0207, .retries = 100, .argument = 3, .timeout = hz / 10 };
	struct slave nobody = *slave;
	struct pointers p;
	long length = must(ioctl(fd, GETBUFLEN), "GETBUFLEN");
	double took;

	expect(length == 32 << 20, "default size of the ring");
	expect(ioctl(fd, SETWAKEUP, length / 2) == 0, "SETWAKEUP of half the ring");
	expect(ioctl(fd, SETWAKEUP, length / 2 + 1) < 0 && errno == EINVAL, "SETWAKEUP of more");
	expect(ready(fd, 0) == 0, "nothing is there");
	expect(ioctl(fd, SETWAKEUP, 0) == 0, "SETWAKEUP of 0");
	expect(ready(fd, 0) == POLLIN, "0 bytes wake the reader");
	expect(ioctl(fd, SETWAKEUP, 64 * 1024) == 0, "SETWAKEUP");
	expect(ioctl(fd, _IO(0xA5, 0x3A)) < 0 && errno == EINVAL, "unknown call");
	expect(ioctl(fd, _IO(0xA4, 0x31)) < 0 && errno == EINVAL, "call of another driver");
	expect(ioctl(fd, FREEMAC) == 0, "FREEMAC without a FEB");
	expect(ioctl(fd, STARTMAC) < 0 && errno == ENODEV, "STARTMAC without a FEB");

	nobody.mac[5] ^= 0x55;
	must(ioctl(fd, GETMAC, &nobody), "GETMAC");
	expect(unanswered(fd, 0, hz) < 0.5, "USERCMD with no attempt");
	took = unanswered(fd, 3, hz / 5);
	expect(took > 0.55 && took < 0.79, "USERCMD with 3 attempts of a fifth of a second");
	took = unanswered(fd, 2, 0);
	expect(took < 0.5, "USERCMD with a time-out of 0");
	must(ioctl(fd, FREEMAC), "FREEMAC");

	must(ioctl(fd, GETMAC, slave), "GETMAC");
	for (int i = 0; i < 3; i++)
		must(ioctl(fd, RESETMAC), "RESETMAC");
	expect(ready(fd, 0) == 0, "RESET before START changes nothing");
	must(ioctl(fd, STARTMAC), "STARTMAC");
	expect(ready(fd, 10000) == POLLIN, "data");
	must(ioctl(fd, USERCMD, &command), "USERCMD");
	must(ioctl(fd, STOPMAC), "STOPMAC");
	do {
		expect(ready(fd, 10000) == POLLIN, "data, to the end");
		/* What is left after the end is POLLIN still. */
		must(ioctl(fd, READPTRS, &p), "READPTRS");
		must(ioctl(fd, WRITEPTRS, must(ioctl(fd, READPTRS, &p), "READPTRS")), "WRITEPTRS");
	} while (!p.eof && !wrong);
	expect(ready(fd, 10000) == POLLHUP, "the end, with nothing left");
	must(ioctl(fd, FREEMAC), "FREEMAC");
	if (!wrong)
		printf("all calls mean what is published\n");
	return wrong;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static int signals(int fd, struct slave *slave, uint64_t count)
{
	struct user_command command = { .command = 0x0207, .retries = 100, .argument = 1, .timeout = 100 };
	struct itimerval often = { .it_interval.tv_usec = 1000, .it_value.tv_usec = 1000 }, never = {};
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	uint64_t executed = 0;

	must(ioctl(fd, GETMAC, slave), "GETMAC");
	must(sigaction(SIGALRM, &action, NULL), "sigaction");
	must(setitimer(ITIMER_REAL, &often, NULL), "setitimer");
	for (uint64_t i = 0; i < count; i++)
		must(ioctl(fd, USERCMD, &command), "USERCMD");
	must(ioctl(fd, STARTMAC), "STARTMAC");
	must(setitimer(ITIMER_REAL, &never, NULL), "setitimer");
	must(ioctl(fd, RESETMAC), "RESETMAC");
	memcpy(&executed, command.response + 4, 8);
	printf("%llu commands, %llu executed, %s signals\n", (unsigned long long)count,
	       (unsigned long long)be64toh(executed), alarms > (int)count ? "many" : "few");
	return be64toh(executed) != count;
}

int main(int argc, char **argv)
{
	struct user_command command = { .command = 0x0207, .retries = 30, .argument = 1, .timeout = 50 };
	struct slave slave = {};
	struct pointers p;
	uint64_t expected = 0, sum = 0;
	int stopped = 0, kill = 0, big = 0;

	if (argc < 5 || sscanf(argv[3], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &slave.mac[0], &slave.mac[1], &slave.mac[2],
			       &slave.mac[3], &slave.mac[4], &slave.mac[5]) != 6) {
		fprintf(stderr, "usage: abi_reader DEVICE INTERFACE MAC BYTES [kill] [big]\n"
				"   or: ... MAC meanings HZ\n"
				"   or: ... MAC signals COUNT\n");
		return 2;
	}
	for (int i = 5; i < argc; i++) {
		kill |= !strcmp(argv[i], "kill");
		big |= !strcmp(argv[i], "big");
	}
	strncpy(slave.name, argv[2], sizeof(slave.name) - 1);
	uint64_t wanted = strtoull(argv[4], NULL, 0) / 8;

	int fd = must(open(argv[1], O_RDWR), "open");

	if (argc > 5 && !strcmp(argv[4], "meanings"))
		return meanings(fd, &slave, atof(argv[5]));
	if (argc > 5 && !strcmp(argv[4], "signals"))
		return signals(fd, &slave, strtoull(argv[5], NULL, 0));
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
			word = big ? be64toh(word) : word;
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
			if (kill)
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
