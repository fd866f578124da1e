// SPDX-License-Identifier: GPL-2.0
/*
 * A disk that fails and a clock that is stepped, for one program (LD_PRELOAD).
 *
 * FADELINK_EIO_PATH=PREFIX	files whose path begins so are on the disk that fails
 * FADELINK_EIO_AFTER=BYTES	it takes so many bytes; then each write and each sync fails with EIO
 * FADELINK_EIO_SYNC=1		writes succeed, only syncs fail, as when the disk fails behind the page cache
 * FADELINK_EIO_ERRNO=NUMBER	the error is this one, as EROFS of a file system that was aborted
 * FADELINK_CLOCK=FILE		the first 8 bytes of FILE: nanoseconds to add to the time of day, at any moment
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const char *prefix;
static long long limit;
static int only_sync;
static int error_number = EIO;
static atomic_llong written;
static const volatile int64_t *step;
static int (*timedwait)(cnd_t *, mtx_t *, const struct timespec *);

__attribute__((constructor)) static void start(void)
{
	const char *after = getenv("FADELINK_EIO_AFTER");
	const char *clock = getenv("FADELINK_CLOCK");
	const char *number;
	int fd;

	timedwait = dlsym(RTLD_NEXT, "cnd_timedwait");
	prefix = getenv("FADELINK_EIO_PATH");
	limit = after ? atoll(after) : 0;
	only_sync = !!getenv("FADELINK_EIO_SYNC");
	number = getenv("FADELINK_EIO_ERRNO");
	error_number = number ? atoi(number) : EIO;
	if (!clock)
		return;
	fd = open(clock, O_RDONLY);
	if (fd < 0)
		return;
	step = mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (step == MAP_FAILED)
		step = NULL;
}

/* The disk has failed for this file, after `count` bytes more; a sync has none. */
static int fails(int fd, size_t count)
{
	char link[32], path[4096];
	ssize_t length;

	if (!prefix)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	if (strncmp(path, prefix, strlen(prefix)))
		return 0;
	if (atomic_fetch_add(&written, count) + (long long)count <= limit || (only_sync && count))
		return 0;
	errno = error_number;
	return 1;
}

ssize_t write(int fd, const void *data, size_t count)
{
	return fails(fd, count) ? -1 : syscall(SYS_write, fd, data, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return fails(fd, bytes) ? -1 : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at)
{
	return fails(fd, count) ? -1 : syscall(SYS_pwrite64, fd, data, count, at);
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t at)
{
	return pwrite64(fd, data, count, at);
}

int fsync(int fd)
{
	return fails(fd, 0) ? -1 : syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return fails(fd, 0) ? -1 : syscall(SYS_fdatasync, fd);
}

int clock_gettime(clockid_t id, struct timespec *at)
{
	int64_t all;

	if (syscall(SYS_clock_gettime, id, at))
		return -1;
	if (!step || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return 0;
	all = at->tv_sec * 1000000000LL + at->tv_nsec + *step;
	at->tv_sec = all / 1000000000;
	at->tv_nsec = all % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}

int timespec_get(struct timespec *at, int base)
{
	return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, at) ? base : 0;
}

/* C11's waits end by the time of day. The kernel's is not stepped, so it is looked at again and again. */
int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
	struct timespec now, slice;
	int result;

	if (!step)
		return timedwait(condition, mutex, until);
	do {
		clock_gettime(CLOCK_REALTIME, &now);
		if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
			return thrd_timedout;
		syscall(SYS_clock_gettime, CLOCK_REALTIME, &slice);
		slice.tv_nsec += 10000000;
		if (slice.tv_nsec >= 1000000000) {
			slice.tv_nsec -= 1000000000;
			slice.tv_sec++;
		}
		result = timedwait(condition, mutex, &slice);
	} while (result == thrd_timedout);
	return result;
}
