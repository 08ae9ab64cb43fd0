// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* counters.c - opens the counter table, and keeps its time; see counters.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters/counters_file.h"
#include "lib/clock.h"

/* mono_ns is promised this far ahead, and again when half of it has passed. */
#define PROMISE_NS (2 * SL_NS_PER_SEC)

/* A reboot between the two writes makes the time continue a little earlier, never later. */
static void promise(struct counters *counters, struct sl_now now)
{
	struct counters_clock *clock = &counters->head->clock;
	u64 promised = now.mono_ns + PROMISE_NS;

	/* Another thread is writing it. */
	if (__atomic_exchange_n(&counters->clock_lock, 1, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&clock->utc_promised, now.utc_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&clock->mono_promised, promised, __ATOMIC_RELEASE);
	__atomic_store_n(&counters->promised, promised, __ATOMIC_RELAXED);
	__atomic_store_n(&counters->clock_lock, 0, __ATOMIC_RELEASE);
}

/*
 * After a reboot the time continues from the last promise, which must be in the file before any
 * later time is returned. A caller writes it twice a second.
 */
struct sl_now counters_now(struct counters *counters)
{
	struct sl_now now = {
		.mono_ns = clock_read_ns(CLOCK_BOOTTIME) + counters->mono_base,
		.utc_ns = clock_read_ns(CLOCK_REALTIME),
	};

	if (now.mono_ns + PROMISE_NS / 2 > __atomic_load_n(&counters->promised, __ATOMIC_RELAXED))
		promise(counters, now);
	return now;
}

/*
 * Continues mono_ns from its saved value: over a reboot by the wall clock, or unchanged if that was
 * set back. Returns the minimum time for which the file was unused.
 */
static u64 resume_clock(struct counters *counters)
{
	struct counters_clock *clock = &counters->head->clock;
	u64 boot = clock_read_ns(CLOCK_BOOTTIME), utc = clock_read_ns(CLOCK_REALTIME);
	u64 last = clock->mono_promised, away = 0, base = clock->mono_base;
	bool same = *counters->boot_id &&
		    !strncmp(counters->boot_id, clock->boot_id, sizeof(clock->boot_id)) &&
		    boot + base + PROMISE_NS >= last;

	if (!same) {
		if (last && utc > clock->utc_promised)
			away = utc - clock->utc_promised;
		base = last + away - boot;
		/* A process killed between these leaves a boot that is no other's. */
		memset(clock->boot_id, 0, sizeof(clock->boot_id));
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		clock->mono_base = base;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		memcpy(clock->boot_id, counters->boot_id, sizeof(clock->boot_id));
	}
	counters->mono_base = base;
	counters->promised = last;
	if (same)
		return boot + base > last ? boot + base - last : 0;
	return away > PROMISE_NS ? away - PROMISE_NS : 0;
}

/* Pointers into store->map. */
static void counters_point_into(struct counters *counters)
{
	char *at = counters->map;
	const struct counters_fixed *fixed = &((struct counters_header *)counters->map)->fixed;

	counters->head = counters->map;
	counters->sets = fixed->sets;
	counters->seed = fixed->seed;
	counters->def = (void *)(at + COUNTERS_DEFS_AT);
	counters->set = (void *)(at + COUNTERS_SETS_AT);
	counters->logs.chunk = (void *)(at + counters_chunks_at(fixed->sets));
	counters->logs.chunks = fixed->chunks;
	counters->logs.used = &counters->head->chunks_used;
	counters->logs.checks = &counters->checks;
	counters->logs.first_block =
		(u32)((counters_chunks_at(fixed->sets) - COUNTERS_SETS_AT) / BLOCK_BYTES);
	counters->checks = counters_checks_of(counters->map);
	if (counters->fresh)
		block_checks_init(&counters->checks);
}

static void fill_layout(struct counters_fixed *fixed, u64 users, u64 log_bytes)
{
	u64 sets = (users * COUNTERS_USER_BYTES + sizeof(struct counters_set) - 1) /
		   sizeof(struct counters_set);
	u64 chunks = log_bytes / sizeof(struct request_chunk);

	memset(fixed, 0, sizeof(*fixed));
	memcpy(fixed->magic, COUNTERS_MAGIC, sizeof(fixed->magic));
	fixed->version = COUNTERS_VERSION;
	fixed->sets = sets < 2 ? 2 : sets;
	/* Chunk 0 is not used. */
	fixed->chunks = chunks < REQUEST_CHUNKS_MAX ? chunks + 1 : REQUEST_CHUNKS_MAX;
	fixed->classes = COUNTERS_CLASSES;
}

int counters_open(const char *path, u64 users, u64 log_bytes, struct counters **ret,
		  struct sl_err *err)
{
	struct counters *counters = calloc(1, sizeof(*counters));
	size_t old_bytes = 0;
	void *old = NULL;
	struct counters_fixed want;
	u64 away;
	int code;

	if (!counters)
		return sl_err_set(err, ENOMEM, "no memory for the HTTP tier's state");
	counters->map = MAP_FAILED;
	counters->fd = -1;
	counters->users = users;
	pthread_mutex_init(&counters->sweep_lock, NULL);
	code = -ERANGE;
	if (users < 1 || users > COUNTERS_USERS_MAX) {
		sl_err_set(err, ERANGE, "state.users is %llu; 1 to %llu are accepted", users,
			   COUNTERS_USERS_MAX);
		goto out;
	}
	fill_layout(&want, users, log_bytes);
	clock_boot_id(counters->boot_id, sizeof(counters->boot_id));
	code = path ? counters_map_file(counters, path, &want, &old, &old_bytes, err)
		    : counters_map_memory(counters, &want, err);
	if (code)
		goto out;
	counters->path = path ? strdup(path) : NULL;
	counters_point_into(counters);
	counters->lock = calloc(counters->sets, 1);
	code = counters->lock ? counters_classes_open(counters, err)
			      : sl_err_set(err, ENOMEM, "no memory for the HTTP tier's state");
	if (code)
		goto out;
	away = resume_clock(counters);
	if (old) {
		counters_move(counters, old, counters_now(counters));
		code = counters->fd < 0 ? 0 : counters_write_file(path, err);
		if (code)
			goto out;
	}
	code = counters_recover(counters, counters_now(counters), away);
	if (code) {
		sl_err_set(err, ENOMEM, "no memory for the HTTP tier's state");
		goto out;
	}
	counters_sweep_all(counters, counters_now(counters));
	*ret = counters;
	counters = NULL;
out:
	if (old)
		munmap(old, old_bytes);
	counters_close(counters);
	return code;
}

void counters_close(struct counters *counters)
{
	if (!counters)
		return;
	/* No thread uses the table any more, so all blocks can be checked. */
	if (counters->fd >= 0 && counters->checks.count && counters->lock)
		counters_check_blocks(counters);
	counters_classes_close(counters);
	free(counters->lock);
	free(counters->path);
	if (counters->map != MAP_FAILED)
		munmap(counters->map, counters->map_bytes);
	if (counters->fd >= 0)
		close(counters->fd);
	pthread_mutex_destroy(&counters->sweep_lock);
	free(counters);
}

int counters_sync(struct counters *counters)
{
	if (counters->fd < 0)
		return 0;
	counters_check_blocks(counters);
	return fdatasync(counters->fd) ? -errno : 0;
}

const char *counters_not_kept(const struct counters *counters)
{
	struct stat here, there;

	if (!counters->path)
		return NULL;
	if (counters->fd < 0)
		return "http.state could not be written at the start: counts of users are in memory";
	if (fstat(counters->fd, &here) == 0 && stat(counters->path, &there) == 0 &&
	    here.st_ino == there.st_ino && here.st_dev == there.st_dev)
		return NULL;
	return "http.state was deleted or replaced by another process";
}

void counters_on_full(struct counters *counters, bool closed)
{
	counters->full_closed = closed;
}

s64 *counters_set_quotas(struct counters *counters, struct sl_seed seed)
{
	counters->cluster_seed = seed;
	counters->shared = true;
	return &counters->cluster_utc_ns;
}

const char *counters_note(const struct counters *counters)
{
	return counters->note;
}
