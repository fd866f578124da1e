// SPDX-License-Identifier: Apache-2.0
/* receive INTERFACE FEB SECONDS [BACKEND]: receives the counter pattern of a FEB and verifies it. */
#include <fadelink.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, fadelink_error());
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t next = 0, identity, again;
	const uint64_t *words;
	int64_t count;

	if (argc < 4)
		return fprintf(stderr, "usage: receive INTERFACE FEB SECONDS [BACKEND]\n"), 2;
	fadelink_receiver *receiver = fadelink_open(argv[1], argc > 4 ? argv[4] : "packet");

	if (!receiver)
		return failed(argv[1]);
	fadelink_feb *feb = fadelink_feb_open(receiver, argv[2], NULL);

	if (!feb || fadelink_command(feb, 0x0100, 0, 100, 20, &identity) || fadelink_start(feb))
		return failed(argv[2]);
	time_t end = time(NULL) + atoi(argv[3]);

	while ((count = fadelink_read(feb, 256 * 1024, 100, &words)) >= 0) {
		for (int64_t i = 0; i < count; i++)
			if (words[i] != next++)
				return fprintf(stderr, "word %" PRIu64 " is wrong\n", next - 1), 1;
		fadelink_release(feb, count);
		if (end && time(NULL) >= end) {
			if (fadelink_stop(feb))
				return failed("STOP");
			end = 0;
		}
	}
	if (count != FADELINK_END)
		return failed("reading");
	fadelink_counter(feb, "duplicates", &again);
	printf("identity %" PRIx64 ", %" PRIu64 " words verified, ", identity, next);
	printf("%" PRIu64 " packets came twice\n", again);
	fadelink_feb_close(feb);
	fadelink_close(receiver);
	return 0;
}
