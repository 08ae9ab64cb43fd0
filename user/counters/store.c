// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* store.c - opening the store, and its time; see store.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "counters/store_file.h"

/* mono_ns is promised so far ahead, and again when half of it has gone by. */
#define PROMISE_NS (2 * SL_NS_PER_SEC)

static u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * SL_NS_PER_SEC + ts.tv_nsec;
}

/* One copy after the other, so that one is always whole. */
static void put_clock(struct store *store, const struct store_clock *clock)
{
	store->tail->clock = *clock;
	store->tail->clock_check = store_clock_check(clock);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	store->head->clock = *clock;
	store->head->clock_check = store->tail->clock_check;
}

static void promise(struct store *store, struct sl_now now)
{
	struct store_clock clock;

	/* Another thread is at it. */
	if (__atomic_exchange_n(&store->clock_lock, 1, __ATOMIC_ACQUIRE))
		return;
	clock = store->head->clock;
	clock.utc_promised = now.utc_ns;
	clock.mono_promised = now.mono_ns + PROMISE_NS;
	put_clock(store, &clock);
	__atomic_store_n(&store->promised, clock.mono_promised, __ATOMIC_RELAXED);
	__atomic_store_n(&store->clock_lock, 0, __ATOMIC_RELEASE);
}

/*
 * A reader of the same file after a reboot goes on from what was promised last, which the file
 * has to know before anyone is told the time. Twice a second, whoever comes by writes it.
 */
struct sl_now store_now(struct store *store)
{
	struct sl_now now = {
		.mono_ns = clock_ns(CLOCK_BOOTTIME) + store->mono_base,
		.utc_ns = clock_ns(CLOCK_REALTIME),
	};

	if (now.mono_ns + PROMISE_NS / 2 > __atomic_load_n(&store->promised, __ATOMIC_RELAXED))
		promise(store, now);
	return now;
}

/*
 * Makes mono_ns go on from where it was: over a reboot by the wall clock, or standing still where
 * that was set back. Returns how long nobody used the file, at least.
 */
static u64 resume_clock(struct store *store, const char *boot_id)
{
	struct store_clock clock = store->head->clock;
	u64 boot = clock_ns(CLOCK_BOOTTIME), utc = clock_ns(CLOCK_REALTIME);
	u64 last = clock.mono_promised, away = 0;
	bool same = *boot_id && !strncmp(boot_id, clock.boot_id, sizeof(clock.boot_id)) &&
		    boot + clock.mono_base + PROMISE_NS >= last;

	if (!same) {
		if (last && utc > clock.utc_promised)
			away = utc - clock.utc_promised;
		memset(clock.boot_id, 0, sizeof(clock.boot_id));
		snprintf(clock.boot_id, sizeof(clock.boot_id), "%s", boot_id);
		clock.mono_base = last + away - boot;
	}
	put_clock(store, &clock);
	store->mono_base = clock.mono_base;
	store->promised = clock.mono_promised;
	if (same)
		return boot + clock.mono_base > last ? boot + clock.mono_base - last : 0;
	return away > PROMISE_NS ? away - PROMISE_NS : 0;
}

static void read_boot_id(char *buf, size_t size)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	*buf = 0;
	if (!file)
		return;
	if (!fgets(buf, size, file))
		*buf = 0;
	buf[strcspn(buf, "\n")] = 0;
	fclose(file);
}

/* Pointers into store->map. */
static void store_point_into(struct store *store)
{
	char *at = store->map;
	const struct store_fixed *fixed = &((struct store_header *)store->map)->fixed;

	store->head = store->map;
	store->sets = fixed->sets;
	store->seed = fixed->seed;
	store->def = (void *)(at + STORE_DEFS_AT);
	store->set = (void *)(at + STORE_SETS_AT);
	store->logs.chunk = (void *)(at + store_chunks_at(fixed->sets));
	store->logs.chunks = fixed->chunks;
	store->logs.used = &store->head->chunks_used;
	store->logs.checks = &store->checks;
	store->logs.first_block = (u32)((store_chunks_at(fixed->sets) - STORE_SETS_AT) / BLOCK_BYTES);
	store->def_copy = (void *)(at + store_copies_at(fixed));
	store->checks = (struct block_checks){
		.word = (void *)(at + store_checks_at(fixed)),
		.memory = at + STORE_SETS_AT,
		.count = store_blocks(fixed),
	};
	store->tail = (void *)(at + store_tail_at(fixed));
	if (store->fresh)
		block_checks_init(&store->checks);
	*store->tail = *store->head;
}

static void fill_layout(struct store_fixed *fixed, u64 users, u64 log_bytes)
{
	u64 sets = (users * STORE_USER_BYTES + sizeof(struct store_set) - 1) /
		   sizeof(struct store_set);
	u64 chunks = log_bytes / sizeof(struct request_chunk);

	memset(fixed, 0, sizeof(*fixed));
	memcpy(fixed->magic, STORE_MAGIC, sizeof(fixed->magic));
	fixed->version = STORE_VERSION;
	fixed->sets = sets < 2 ? 2 : sets;
	/* Chunk 0 is none. */
	fixed->chunks = chunks < REQUEST_CHUNKS_MAX ? chunks + 1 : REQUEST_CHUNKS_MAX;
	fixed->classes = STORE_CLASSES;
}

int store_open(const char *path, u64 users, u64 log_bytes, struct store **ret,
	       struct sl_err *err)
{
	struct store *store = calloc(1, sizeof(*store));
	char boot_id[sizeof(store->head->clock.boot_id)];
	size_t old_bytes = 0;
	void *old = NULL;
	struct store_fixed want;
	u64 away;
	int code;

	if (!store)
		return sl_err_set(err, ENOMEM, "no memory for the HTTP tier's state");
	store->map = MAP_FAILED;
	store->fd = -1;
	store->users = users;
	pthread_mutex_init(&store->sweep_lock, NULL);
	code = -ERANGE;
	if (users < 1 || users > STORE_USERS_MAX) {
		sl_err_set(err, ERANGE, "state.users is %llu; 1 to %llu are possible", users,
			   STORE_USERS_MAX);
		goto out;
	}
	fill_layout(&want, users, log_bytes);
	code = path ? store_map_file(store, path, &want, &old, &old_bytes, err) :
		      store_map_memory(store, &want, err);
	if (code)
		goto out;
	store->path = path ? strdup(path) : NULL;
	store_point_into(store);
	store->lock = calloc(store->sets, 1);
	code = store->lock ? store_classes_open(store, err) :
			     sl_err_set(err, ENOMEM, "no memory for the HTTP tier's state");
	if (code)
		goto out;
	read_boot_id(boot_id, sizeof(boot_id));
	away = resume_clock(store, boot_id);
	if (old) {
		store_move(store, old, store_now(store));
		code = store->fd < 0 ? 0 : store_place_file(path, err);
		if (code)
			goto out;
	}
	store_recover(store, store_now(store), away);
	store_sweep_all(store, store_now(store));
	*ret = store;
	store = NULL;
out:
	if (old)
		munmap(old, old_bytes);
	store_close(store);
	return code;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	/* Nobody uses it any more: all of it can be checked. */
	if (store->fd >= 0 && store->checks.count && store->lock)
		store_check_blocks(store);
	store_classes_close(store);
	free(store->lock);
	free(store->path);
	if (store->map != MAP_FAILED)
		munmap(store->map, store->map_bytes);
	if (store->fd >= 0)
		close(store->fd);
	pthread_mutex_destroy(&store->sweep_lock);
	free(store);
}

int store_sync(struct store *store)
{
	struct sl_err err;
	int code;

	if (!store->path)
		return 0;
	if (!store_is_in_place(store)) {
		code = store_place_again(store, &err);
		if (code)
			return code;
		__atomic_fetch_add(&store->placed, 1, __ATOMIC_RELAXED);
	}
	store_check_blocks(store);
	return fdatasync(store->fd) ? -errno : 0;
}

u64 store_placed(const struct store *store)
{
	return __atomic_load_n(&store->placed, __ATOMIC_RELAXED);
}

void store_on_full(struct store *store, bool closed)
{
	store->full_closed = closed;
}

void store_share(struct store *store, struct sl_seed seed, struct shares *shares)
{
	store->shared_seed = seed;
	store->shares = shares;
}

const char *store_note(const struct store *store)
{
	return store->note;
}
