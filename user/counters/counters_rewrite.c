// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_rewrite.c - work on the file while the table is in use: checks its blocks, and writes
 * the file again if it was deleted or could not be created at the start.
 *
 * The copy is made while requests continue; then all sets are locked, the blocks written since are
 * copied again, and the new file is mapped at the address of the old one.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters/counters_file.h"
#include "lib/spin.h"

/* Waits until every current holder of a set's lock has released it. */
static void settle(void *arg)
{
	struct counters *counters = arg;

	for (u32 i = 0; i < counters->sets; i++)
		for (u32 turns = 0; __atomic_load_n(&counters->lock[i], __ATOMIC_SEQ_CST);)
			spin_wait(&turns);
}

/* The number of entries in a block of sets. */
static u32 users_in(void *arg, u32 block)
{
	const u32 per_block = BLOCK_BYTES / sizeof(struct counters_set);
	struct counters *counters = arg;
	u32 count = 0;

	for (u32 i = block * per_block; i < (block + 1) * per_block && i < counters->sets; i++)
		for (u32 way = 0; way < COUNTERS_WAYS; way++)
			count += __atomic_load_n(&counters->set[i].key[way], __ATOMIC_RELAXED) != 0;
	return count;
}

void counters_check_blocks(struct counters *counters)
{
	block_checks_update(&counters->checks, settle, users_in, counters);
}

bool counters_is_in_place(const struct counters *counters)
{
	struct stat here, there;

	return counters->fd >= 0 && fstat(counters->fd, &here) == 0 &&
	       stat(counters->path, &there) == 0 && here.st_ino == there.st_ino &&
	       here.st_dev == there.st_dev;
}

static int write_page(int fd, const char *map, u64 at)
{
	ssize_t n = pwrite(fd, map + at, COUNTERS_PAGE, (off_t)at);

	return n == (ssize_t)COUNTERS_PAGE ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Pages of a part; holes stay holes. */
static int write_pages(int fd, const char *map, u64 from, u64 to)
{
	static const char zeros[COUNTERS_PAGE];
	int code = 0;

	for (; !code && from < to; from += COUNTERS_PAGE)
		if (memcmp(map + from, zeros, COUNTERS_PAGE))
			code = write_page(fd, map, from);
	return code;
}

/* Copies blocks that may have changed since they were copied; there are no writers now. */
static int write_rest(struct counters *counters, int fd)
{
	const char *map = counters->map;
	int code = write_pages(fd, map, 0, COUNTERS_SETS_AT);

	for (u32 i = 0; !code && i < counters->checks.count; i++)
		if (block_state(&counters->checks, i) != BLOCK_CLEAN)
			code = write_page(fd, map, COUNTERS_SETS_AT + (u64)i * BLOCK_BYTES);
	return code ? code
		    : write_pages(fd, map, counters_copies_at(&counters->head->fixed),
				  counters->map_bytes);
}

static void lock_all(struct counters *counters)
{
	u32 turns = 0;

	for (u32 i = 0; i < counters->sets; i++)
		counters_lock_set(counters, i);
	counters_classes_lock(counters, true);
	while (__atomic_exchange_n(&counters->clock_lock, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

static void unlock_all(struct counters *counters)
{
	__atomic_store_n(&counters->clock_lock, 0, __ATOMIC_RELEASE);
	counters_classes_lock(counters, false);
	for (u32 i = 0; i < counters->sets; i++)
		counters_unlock_set(counters, i);
}

int counters_rewrite(struct counters *counters, struct sl_err *err)
{
	const struct counters_fixed *fixed = &counters->head->fixed;
	char name[PATH_MAX];
	int fd, code;

	counters_path_new(counters->path, name, sizeof(name));
	code = counters_make_at(name, fixed, &fd, err);
	if (code)
		return code;
	counters_check_blocks(counters);
	code = write_pages(fd, counters->map, COUNTERS_SETS_AT, counters_copies_at(fixed));
	if (!code) {
		lock_all(counters);
		code = write_rest(counters, fd);
		if (!code && mmap(counters->map, counters->map_bytes, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			code = -errno;
		unlock_all(counters);
	}
	if (code) {
		unlink(name);
		close(fd);
		return sl_err_set(err, -code, "%s: %s", name, strerror(-code));
	}
	if (counters->fd >= 0)
		close(counters->fd);
	counters->fd = fd;
	return counters_write_file(counters->path, err);
}
