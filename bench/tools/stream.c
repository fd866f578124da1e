// SPDX-License-Identifier: Apache-2.0
/*
 * Yardsticks of bench/receive.py: senders of the 64-bit counter by TCP and UDP,
 * and a UDP receiver that verifies and counts what is missing.
 *
 * stream tcp-send HOST PORT SECONDS [BYTES_A_SECOND]
 * stream udp-send HOST PORT SECONDS
 * stream udp-receive PORT           to an empty datagram; prints words and missing words
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PACKET 8192
#define WORDS (PACKET / 8)
#define BATCH 32

static uint8_t buffers[BATCH][PACKET];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int must(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static void count_up(uint8_t *buffer, uint64_t first)
{
	for (uint64_t i = 0; i < WORDS; i++) {
		uint64_t word = first + i;

		memcpy(buffer + 8 * i, &word, 8);
	}
}

static int connect_to(int kind, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[3])) };
	int fd = must(socket(AF_INET, kind, 0), "socket");

	inet_pton(AF_INET, argv[2], &to.sin_addr);
	must(connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	return fd;
}

static int tcp_send(int argc, char **argv)
{
	int fd = connect_to(SOCK_STREAM, argv);
	double begin = now(), end = begin + atof(argv[4]), rate = argc > 5 ? atof(argv[5]) : 0;
	int batch = rate > 0 ? 1 : BATCH, one = 1;
	uint64_t word = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (now() < end) {
		uint8_t *at = buffers[0];
		size_t left = (size_t)batch * PACKET;

		while (rate > 0 && now() < begin + word * 8 / rate)
			usleep(10);
		for (int i = 0; i < batch; i++, word += WORDS)
			count_up(buffers[i], word);
		while (left > 0) {
			ssize_t sent = write(fd, at, left);

			must(sent, "write");
			at += sent;
			left -= sent;
		}
	}
	return 0;
}

static void messages(struct mmsghdr *all, struct iovec *parts)
{
	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ buffers[i], PACKET };
		all[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i], .msg_iovlen = 1 } };
	}
}

static int udp_send(char **argv)
{
	int fd = connect_to(SOCK_DGRAM, argv);
	double end = now() + atof(argv[4]);
	struct mmsghdr all[BATCH];
	struct iovec parts[BATCH];
	uint64_t word = 0;

	messages(all, parts);
	while (now() < end) {
		for (int i = 0; i < BATCH; i++)
			count_up(buffers[i], word + (uint64_t)i * WORDS);
		int sent = sendmmsg(fd, all, BATCH, 0);

		/* What the kernel has no room for is lost, as by any board that sends UDP. */
		word += (uint64_t)(sent > 0 ? sent : 0) * WORDS;
	}
	for (int i = 0; i < 20; i++) {
		send(fd, "", 0, 0);
		usleep(10000);
	}
	return 0;
}

static int udp_receive(char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0), "socket"), space = 16 << 20;
	uint64_t expected = 0, words = 0, missing = 0;
	struct mmsghdr all[BATCH];
	struct iovec parts[BATCH];

	must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &space, sizeof(space)), "SO_RCVBUFFORCE");
	must(bind(fd, (struct sockaddr *)&here, sizeof(here)), "bind");
	messages(all, parts);
	for (;;) {
		int got = must(recvmmsg(fd, all, BATCH, MSG_WAITFORONE, NULL), "recvmmsg");

		for (int i = 0; i < got; i++) {
			uint64_t first, word, differ = 0;

			if (all[i].msg_len != PACKET) {
				printf("%llu words, %llu missing\n", (unsigned long long)words,
				       (unsigned long long)missing);
				return 0;
			}
			memcpy(&first, buffers[i], 8);
			missing += first - expected;
			for (uint64_t j = 0; j < WORDS; j++) {
				memcpy(&word, buffers[i] + 8 * j, 8);
				differ |= word ^ (first + j);
			}
			if (differ) {
				fprintf(stderr, "a word behind word %llu is wrong\n", (unsigned long long)first);
				return 1;
			}
			expected = first + WORDS;
			words += WORDS;
		}
	}
}

int main(int argc, char **argv)
{
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "tcp-send"))
		return tcp_send(argc, argv);
	if (argc == 5 && !strcmp(argv[1], "udp-send"))
		return udp_send(argv);
	if (argc == 3 && !strcmp(argv[1], "udp-receive"))
		return udp_receive(argv);
	return 2;
}
