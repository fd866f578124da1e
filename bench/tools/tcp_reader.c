// SPDX-License-Identifier: Apache-2.0
/*
 * The yardstick of the benches: a plain TCP server that reads 64-bit words
 * and verifies the counter.
 *
 * tcp_reader PORT   one connection, to its end; prints the number of words
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	static uint8_t buffer[256 * 1024];
	uint64_t expected = 0;
	size_t held = 0;
	ssize_t got;
	int one = 1;

	if (argc != 2)
		return 2;
	address.sin_port = htons(atoi(argv[1]));
	int server = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server, (struct sockaddr *)&address, sizeof(address)) || listen(server, 1)) {
		perror("tcp_reader");
		return 1;
	}
	int fd = accept(server, NULL, NULL);

	/* The next connection is for the next one of this program. */
	close(server);

	while ((got = read(fd, buffer + held, sizeof(buffer) - held)) > 0) {
		held += got;
		size_t words = held / 8;
		uint64_t differ = 0;

		/* All at once, as `fadelink receive` does. */
		for (size_t i = 0; i < words; i++) {
			uint64_t word;

			memcpy(&word, buffer + 8 * i, 8);
			differ |= word ^ (expected + i);
		}
		if (differ) {
			fprintf(stderr, "a word behind word %llu is wrong\n", (unsigned long long)expected);
			return 1;
		}
		expected += words;
		memmove(buffer, buffer + 8 * words, held % 8);
		held %= 8;
	}
	printf("%llu words\n", (unsigned long long)expected);
	return got < 0;
}
