// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_place.c - the store's file beside its users: its blocks are checked, and it is written anew
 * where others deleted it, or where there was no room for it at the start.
 *
 * A copy is made while calls go on; then all sets are locked, the blocks that were written to since
 * are copied again, and the new file is mapped in the old one's place.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters/store_file.h"
#include "lib/spin.h"

/* Until all who hold a set's lock now have given it back. */
static void settle(void *arg)
{
	struct store *store = arg;

	for (u32 i = 0; i < store->sets; i++)
		for (u32 turns = 0; __atomic_load_n(&store->lock[i], __ATOMIC_SEQ_CST);)
			spin_wait(&turns);
}

/* Users of a block of sets. */
static u32 users_in(void *arg, u32 block)
{
	const u32 per_block = BLOCK_BYTES / sizeof(struct store_set);
	struct store *store = arg;
	u32 count = 0;

	for (u32 i = block * per_block; i < (block + 1) * per_block && i < store->sets; i++)
		for (u32 way = 0; way < STORE_WAYS; way++)
			count += __atomic_load_n(&store->set[i].key[way], __ATOMIC_RELAXED) != 0;
	return count;
}

void store_check_blocks(struct store *store)
{
	block_checks_update(&store->checks, settle, users_in, store);
}

bool store_is_in_place(const struct store *store)
{
	struct stat here, there;

	return store->fd >= 0 && fstat(store->fd, &here) == 0 && stat(store->path, &there) == 0 &&
	       here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

static int write_page(int fd, const char *map, u64 at)
{
	ssize_t n = pwrite(fd, map + at, STORE_PAGE, (off_t)at);

	return n == (ssize_t)STORE_PAGE ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Pages of a part; holes stay holes. */
static int write_pages(int fd, const char *map, u64 from, u64 to)
{
	static const char zeros[STORE_PAGE];
	int code = 0;

	for (; !code && from < to; from += STORE_PAGE)
		if (memcmp(map + from, zeros, STORE_PAGE))
			code = write_page(fd, map, from);
	return code;
}

/* What may have changed since the blocks were copied; nobody writes now. */
static int write_rest(struct store *store, int fd)
{
	const char *map = store->map;
	int code = write_pages(fd, map, 0, STORE_SETS_AT);

	for (u32 i = 0; !code && i < store->checks.count; i++)
		if (block_state(&store->checks, i) != BLOCK_CLEAN)
			code = write_page(fd, map, STORE_SETS_AT + (u64)i * BLOCK_BYTES);
	return code ? code : write_pages(fd, map, store_copies_at(&store->head->fixed),
					 store->map_bytes);
}

static void lock_all(struct store *store)
{
	u32 turns = 0;

	for (u32 i = 0; i < store->sets; i++)
		store_lock_set(store, i);
	store_classes_lock(store, true);
	while (__atomic_exchange_n(&store->clock_lock, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

static void unlock_all(struct store *store)
{
	__atomic_store_n(&store->clock_lock, 0, __ATOMIC_RELEASE);
	store_classes_lock(store, false);
	for (u32 i = 0; i < store->sets; i++)
		store_unlock_set(store, i);
}

int store_place_again(struct store *store, struct sl_err *err)
{
	const struct store_fixed *fixed = &store->head->fixed;
	char name[PATH_MAX];
	int fd, code;

	store_path_new(store->path, name, sizeof(name));
	code = store_make_at(name, fixed, &fd, err);
	if (code)
		return code;
	store_check_blocks(store);
	code = write_pages(fd, store->map, STORE_SETS_AT, store_copies_at(fixed));
	if (!code) {
		lock_all(store);
		code = write_rest(store, fd);
		if (!code && mmap(store->map, store->map_bytes, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			code = -errno;
		unlock_all(store);
	}
	if (code) {
		unlink(name);
		close(fd);
		return sl_err_set(err, -code, "%s: %s", name, strerror(-code));
	}
	if (store->fd >= 0)
		close(store->fd);
	store->fd = fd;
	return store_place_file(store->path, err);
}
