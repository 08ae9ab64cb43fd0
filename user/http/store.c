// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* store.c - opening the store, and its time; see store.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "http/store_file.h"

/* mono_ns is promised so far ahead, and again when half of it has gone by. */
#define PROMISE_NS (2 * SL_NS_PER_SEC)

static u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * SL_NS_PER_SEC + ts.tv_nsec;
}

/*
 * A reader of the same file after a reboot goes on from what was promised last, which the file
 * has to know before anyone is told the time. Twice a second, whoever comes by writes it.
 */
struct sl_now store_now(struct store *store)
{
	struct sl_now now = {
		.mono_ns = clock_ns(CLOCK_BOOTTIME) + store->head->mono_base,
		.utc_ns = clock_ns(CLOCK_REALTIME),
	};

	if (now.mono_ns + PROMISE_NS / 2 > __atomic_load_n(&store->promised, __ATOMIC_RELAXED)) {
		__atomic_store_n(&store->promised, now.mono_ns + PROMISE_NS, __ATOMIC_RELAXED);
		__atomic_store_n(&store->head->utc_promised, now.utc_ns, __ATOMIC_RELAXED);
		__atomic_store_n(&store->head->mono_promised, now.mono_ns + PROMISE_NS,
				 __ATOMIC_RELAXED);
	}
	return now;
}

/*
 * Makes mono_ns go on from where it was: over a reboot by the wall clock, or standing still where
 * that was set back. Returns how long nobody used the file, at least.
 */
static u64 resume_clock(struct store *store, const char *boot_id)
{
	struct store_header *head = store->head;
	u64 boot = clock_ns(CLOCK_BOOTTIME), utc = clock_ns(CLOCK_REALTIME);
	u64 last = head->mono_promised, away = 0;

	if (*boot_id && !strncmp(boot_id, head->boot_id, sizeof(head->boot_id)) &&
	    boot + head->mono_base + PROMISE_NS >= last)
		return boot + head->mono_base > last ? boot + head->mono_base - last : 0;
	if (last && utc > head->utc_promised)
		away = utc - head->utc_promised;
	snprintf(head->boot_id, sizeof(head->boot_id), "%s", boot_id);
	head->mono_base = last + away - boot;
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
	store->promised = store->head->mono_promised;
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

static int map_memory(struct store *store, const struct store_fixed *want, struct sl_err *err)
{
	store->map_bytes = store_bytes(want);
	store->map = mmap(NULL, store->map_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (store->map == MAP_FAILED)
		return sl_err_set(err, errno, "no %zu bytes of memory for the HTTP tier's state",
				  store->map_bytes);
	store->head = store->map;
	if (store_fill_header(store->head, want))
		return sl_err_set(err, EIO, "no random bytes for the HTTP tier's keys");
	return 0;
}

int store_open(const char *path, u64 users, u64 log_bytes, struct store **ret,
	       struct sl_err *err)
{
	struct store *store = calloc(1, sizeof(*store));
	char boot_id[sizeof(store->head->boot_id)];
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
		      map_memory(store, &want, err);
	if (code)
		goto out;
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
		code = store_place_file(path, err);
		if (code)
			goto out;
	}
	store_recover(store, away);
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
	store_classes_close(store);
	free(store->lock);
	if (store->map != MAP_FAILED)
		munmap(store->map, store->map_bytes);
	if (store->fd >= 0)
		close(store->fd);
	pthread_mutex_destroy(&store->sweep_lock);
	free(store);
}

int store_sync(struct store *store)
{
	return store->fd >= 0 && fdatasync(store->fd) ? -errno : 0;
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
