// SPDX-License-Identifier: GPL-2.0
/*
 * A disk that fails, calls that fail and a clock that is stepped, for one program (LD_PRELOAD).
 *
 * FADELINK_EIO_PATH=PREFIX	files whose path begins so are on the disk that fails
 * FADELINK_EIO_AFTER=BYTES	it takes so many bytes; then each write and each sync fails with EIO
 * FADELINK_EIO_SYNC=1		writes succeed, only syncs fail, as when the disk fails behind the page cache
 * FADELINK_EIO_ERRNO=NUMBER	the error is this one, as EROFS of a file system that was aborted
 * FADELINK_CALLS_PATH=PREFIX	calls of the file system's functions with files whose path begins so may fail
 * FADELINK_CALLS=FILE		four numbers of 8 bytes, at any moment: which call from now on fails (0: none);
 *				its error; whether all behind it fail, too; how many calls there were (written here)
 * FADELINK_CLOCK=FILE		the first 8 bytes of FILE: nanoseconds to add to the time of day, at any moment
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
static const char *calls_prefix;
static struct calls {
	_Atomic int64_t until;
	_Atomic int64_t error;
	_Atomic int64_t all;
	_Atomic int64_t count;
} *calls;
static int (*timedwait)(cnd_t *, mtx_t *, const struct timespec *);

/* The content of a file, as others change it; NULL: there is none. */
static void *shared(const char *variable, size_t size, int prot)
{
	const char *path = getenv(variable);
	void *page;
	int fd;

	if (!path)
		return NULL;
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	page = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

__attribute__((constructor)) static void start(void)
{
	const char *after = getenv("FADELINK_EIO_AFTER");
	const char *number;

	timedwait = dlsym(RTLD_NEXT, "cnd_timedwait");
	prefix = getenv("FADELINK_EIO_PATH");
	limit = after ? atoll(after) : 0;
	only_sync = !!getenv("FADELINK_EIO_SYNC");
	number = getenv("FADELINK_EIO_ERRNO");
	error_number = number ? atoi(number) : EIO;
	step = shared("FADELINK_CLOCK", sizeof(*step), PROT_READ);
	calls_prefix = getenv("FADELINK_CALLS_PATH");
	calls = shared("FADELINK_CALLS", sizeof(*calls), PROT_READ | PROT_WRITE);
}

/* The path that a descriptor is of. */
static const char *path_of(int fd, char path[4096])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, 4095);
	if (length < 0)
		return NULL;
	path[length] = 0;
	return path;
}

/* This call fails, and errno says why. A full disk fails only what `needs_space`. */
static int call_fails(const char *path, int needs_space)
{
	int64_t until;

	if (calls && !needs_space && atomic_load(&calls->error) == ENOSPC)
		return 0;
	if (!calls || !calls_prefix || !path || strncmp(path, calls_prefix, strlen(calls_prefix)))
		return 0;
	atomic_fetch_add(&calls->count, 1);
	do {
		until = atomic_load(&calls->until);
		if (until <= 0)
			return 0;
		if (until == 1 && atomic_load(&calls->all))
			break;
	} while (!atomic_compare_exchange_weak(&calls->until, &until, until - 1));
	if (until != 1)
		return 0;
	errno = atomic_load(&calls->error);
	return 1;
}

static int call_with_fails(int fd, int needs_space)
{
	char path[4096];

	return calls && call_fails(path_of(fd, path), needs_space);
}

/* The disk has failed for this file, after `count` bytes more; a sync has none. */
static int fails(int fd, size_t count)
{
	char path[4096];

	if (call_with_fails(fd, 1))
		return 1;
	if (!prefix || !path_of(fd, path) || strncmp(path, prefix, strlen(prefix)))
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

ssize_t read(int fd, void *data, size_t count)
{
	return call_with_fails(fd, 0) ? -1 : syscall(SYS_read, fd, data, count);
}

int open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	return call_fails(path, flags & O_CREAT) ? -1 : syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int ftruncate64(int fd, off64_t length)
{
	return call_with_fails(fd, 0) ? -1 : syscall(SYS_ftruncate, fd, length);
}

int statx(int fd, const char *restrict path, int flags, unsigned int mask, struct statx *restrict found)
{
	/* Without a path it is asked whether the kernel has this call; the header says that there is one. */
	const char *volatile named = path;
	int fails = named && (*named ? call_fails(named, 0) : call_with_fails(fd, 0));

	return fails ? -1 : syscall(SYS_statx, fd, path, flags, mask, found);
}

int mkdir(const char *path, mode_t mode)
{
	return call_fails(path, 1) ? -1 : syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rmdir(const char *path)
{
	return call_fails(path, 0) ? -1 : syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int unlink(const char *path)
{
	return call_fails(path, 0) ? -1 : syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rename(const char *from, const char *to)
{
	return call_fails(to, 1) ? -1 : syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

DIR *opendir(const char *path)
{
	DIR *(*opens)(const char *) = dlsym(RTLD_NEXT, "opendir");

	return call_fails(path, 0) ? NULL : opens(path);
}

struct dirent64 *readdir64(DIR *folder)
{
	struct dirent64 *(*reads)(DIR *) = dlsym(RTLD_NEXT, "readdir64");

	return call_with_fails(dirfd(folder), 0) ? NULL : reads(folder);
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
