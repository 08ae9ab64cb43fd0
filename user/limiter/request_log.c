// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_log.c - see request_log.h. */
#include <string.h>

#include "lib/spin.h"
#include "limiter/request_log_private.h"

#define TIME_MASK (SL_BIT(48) - 1)
/* For this many requests at once, or more, only one time is stored. */
#define RUN_LEAST 3

/* ------------------------------------------------------------------ chunks */

static void pool_lock(struct request_logs *logs)
{
	u32 turns = 0;

	while (__atomic_exchange_n(&logs->lock, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

static void pool_unlock(struct request_logs *logs)
{
	__atomic_store_n(&logs->lock, 0, __ATOMIC_RELEASE);
}

u32 request_chunk_get(struct request_logs *logs)
{
	u32 chunk;

	pool_lock(logs);
	chunk = logs->free;
	if (chunk) {
		logs->free = next_of(logs, chunk);
		logs->free_count--;
	} else if (*logs->used < logs->chunks) {
		chunk = (*logs->used)++;
	}
	pool_unlock(logs);
	return chunk;
}

/* A chain of chunks from `first` to `last`. */
static void chain_put(struct request_logs *logs, u32 first, u32 last)
{
	u32 count = 1;

	for (u32 chunk = first; chunk != last; chunk = next_of(logs, chunk))
		count++;
	pool_lock(logs);
	touch(logs, last);
	logs->chunk[last].next = logs->free;
	logs->free = first;
	logs->free_count += count;
	pool_unlock(logs);
}

u64 request_logs_used(struct request_logs *logs)
{
	u64 used;

	pool_lock(logs);
	used = *logs->used - 1 - logs->free_count;
	pool_unlock(logs);
	return used;
}

void request_chunk_put(struct request_logs *logs, u32 chunk)
{
	chain_put(logs, chunk, chunk);
}

static u64 time_get(const struct request_logs *logs, u32 chunk, u32 which)
{
	const u16 *part = logs->chunk[chunk].time + 3 * which;

	return part[0] | (u64)part[1] << 16 | (u64)part[2] << 32;
}

static void time_set(struct request_logs *logs, u32 chunk, u32 which, u64 time)
{
	u16 *part = logs->chunk[chunk].time + 3 * which;

	touch(logs, chunk);
	part[0] = time;
	part[1] = time >> 16;
	part[2] = time >> 32;
}

/* ------------------------------------------------------------------ time */

/* Requests at this tick or before have expired. */
static u64 cut_of(const struct spec *spec, struct sl_now now)
{
	return (u64)((s64)(now.mono_ns - spec->params.window_ns) >> spec->tick_shift);
}

/* The ticks until a time expires; 0: it has expired. */
static u64 ahead_of(u64 time, u64 cut)
{
	u64 ahead = (time - cut) & TIME_MASK;

	return ahead <= TIME_MASK / 2 ? ahead : 0;
}

static u64 wait_of(const struct spec *spec, u64 time, struct sl_now now)
{
	u64 cut = cut_of(spec, now), ahead = ahead_of(time, cut);

	if (!ahead)
		return 0;
	return ((cut + ahead) << spec->tick_shift) + spec->params.window_ns - now.mono_ns;
}

/* ------------------------------------------------------------------ the ring */

/* The requests of the first chunk that expire together, and their time. */
static u64 first_of(const struct request_logs *logs, u32 chunk, u32 gone, u64 *ret_time)
{
	*ret_time = time_get(logs, chunk, is_run(logs, chunk) ? 0 : gone);
	return is_run(logs, chunk) ? time_get(logs, chunk, 1) : 1;
}

/* The chunk before the last. */
static u32 before_last(const struct request_logs *logs, const struct ring *ring)
{
	u32 chunk = next_of(logs, ring->last);

	while (next_of(logs, chunk) != ring->last)
		chunk = next_of(logs, chunk);
	return chunk;
}

/* Removes the last chunk, which is empty and not the only one. */
static void drop_last(struct request_logs *logs, struct ring *ring)
{
	u32 before = before_last(logs, ring), empty = ring->last;

	set_next(logs, before, next_of(logs, empty));
	request_chunk_put(logs, empty);
	ring->last = before;
	ring->fill = 2;
}

/* The newest time; the log is not empty. */
static u64 newest(const struct request_logs *logs, const struct ring *ring)
{
	u32 chunk = ring->fill ? ring->last : before_last(logs, ring);
	u32 fill = ring->fill ? ring->fill : 2;

	return time_get(logs, chunk, is_run(logs, chunk) ? 0 : fill - 1);
}

void request_log_free(struct request_logs *logs, u64 bucket_state)
{
	struct ring ring = ring_of(bucket_state);

	if (ring.last)
		chain_put(logs, next_of(logs, ring.last), ring.last);
}

bool request_log_is_past(const struct spec *spec, struct sl_now then, struct sl_now now)
{
	if (spec->buckets)
		return request_counters_is_past(spec, then, now);
	return then.mono_ns + spec->params.window_ns <= now.mono_ns;
}

bool request_log_expired(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			 struct sl_now now)
{
	struct ring ring = ring_of(bucket_state);

	if (spec->buckets)
		return request_counters_expired(logs, spec, bucket_state, now);
	return !ring.count || !ahead_of(newest(logs, &ring), cut_of(spec, now));
}

u64 request_log_expire(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		       struct sl_now now)
{
	struct ring ring = ring_of(bucket_state);
	u64 cut = cut_of(spec, now), time;

	if (!bucket_state)
		return 0;
	if (spec->buckets)
		return request_counters_expire(logs, spec, bucket_state, now);
	/* Unused for long: the whole log has expired. */
	if (request_log_expired(logs, spec, bucket_state, now)) {
		request_log_free(logs, bucket_state);
		return 0;
	}
	for (;;) {
		u32 chunk = next_of(logs, ring.last);
		u64 n = first_of(logs, chunk, ring.gone, &time);

		if (ahead_of(time, cut))
			return state_of(&ring);
		ring.count -= n;
		if (!is_run(logs, chunk) && !ring.gone) {
			ring.gone = 1;
			continue;
		}
		/* Not the last one: its newest time is live. */
		ring.gone = 0;
		set_next(logs, ring.last, next_of(logs, chunk));
		request_chunk_put(logs, chunk);
	}
}

static bool takes_one(const struct request_logs *logs, const struct ring *ring)
{
	return ring->last && ring->fill < 2 && !is_run(logs, ring->last);
}

bool request_log_needs(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		       struct sl_now now, u64 n)
{
	struct ring ring = ring_of(bucket_state);

	if (spec->buckets)
		return request_counters_need(logs, spec, bucket_state, now, n);
	if (n >= RUN_LEAST)
		return true;
	return !takes_one(logs, &ring) || ring.fill + n > 2;
}

void request_log_append(struct request_logs *logs, struct ring *ring, u32 chunk, bool run)
{
	u32 first = ring->last ? next_of(logs, ring->last) : chunk;

	touch(logs, chunk);
	logs->chunk[chunk].next = first | (run ? RUN : 0);
	if (ring->last)
		set_next(logs, ring->last, chunk);
	ring->last = chunk;
	ring->fill = 0;
}

u64 request_log_add(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		    struct sl_now now, u64 n, u32 chunk)
{
	struct ring ring = ring_of(bucket_state);
	u64 time = (now.mono_ns + SL_BIT(spec->tick_shift) - 1) >> spec->tick_shift & TIME_MASK;

	if (spec->buckets)
		return request_counters_add(logs, spec, bucket_state, now, n, chunk);
	/* A clock value that a thread read slightly earlier, or a report of the past. */
	if (ring.count) {
		u64 last = newest(logs, &ring);

		if (((time - last) & TIME_MASK) > TIME_MASK / 2)
			time = last;
	}
	ring.count += n;
	if (n >= RUN_LEAST) {
		/* Keeps the order of the ring, without an empty chunk in it. */
		if (ring.last && !ring.fill && next_of(logs, ring.last) != ring.last)
			drop_last(logs, &ring);
		if (ring.last && !is_run(logs, ring.last) && ring.fill == 1) {
			/* One request fills the free place, so that only last chunks have one. */
			time_set(logs, ring.last, 1, time);
			ring.fill = 2;
			n--;
		}
		request_log_append(logs, &ring, chunk, true);
		time_set(logs, chunk, 0, time);
		time_set(logs, chunk, 1, n);
		ring.fill = 2;
		return state_of(&ring);
	}
	while (n--) {
		if (!takes_one(logs, &ring))
			request_log_append(logs, &ring, chunk, false);
		time_set(logs, ring.last, ring.fill++, time);
	}
	return state_of(&ring);
}

u64 request_log_remove(struct request_logs *logs, const struct spec *spec, u64 bucket_state, u64 n)
{
	struct ring ring = ring_of(bucket_state);

	if (n >= ring.count) {
		request_log_free(logs, bucket_state);
		return 0;
	}
	if (spec->buckets)
		return request_counters_remove(logs, bucket_state, n);
	while (n) {
		if (!ring.fill)
			drop_last(logs, &ring);
		if (is_run(logs, ring.last)) {
			u64 run = time_get(logs, ring.last, 1);
			u64 some = run < n ? run : n;

			time_set(logs, ring.last, 1, run - some);
			ring.fill = run > some ? 2 : 0;
			if (!ring.fill) {
				touch(logs, ring.last);
				logs->chunk[ring.last].next &= ~(u32)RUN;
			}
			ring.count -= some;
			n -= some;
		} else {
			ring.fill--;
			ring.count--;
			n--;
		}
	}
	return state_of(&ring);
}

u64 request_log_drop(struct request_logs *logs, const struct spec *spec, u64 bucket_state, u64 n)
{
	struct ring ring = ring_of(bucket_state);

	if (n >= ring.count) {
		request_log_free(logs, bucket_state);
		return 0;
	}
	if (spec->buckets)
		return request_counters_drop(logs, bucket_state, n);
	while (n) {
		u32 chunk = next_of(logs, ring.last);
		u64 time, run = first_of(logs, chunk, ring.gone, &time);

		if (run > n) {
			time_set(logs, chunk, 1, run - n);
			ring.count -= n;
			break;
		}
		ring.count -= run;
		n -= run;
		if (!is_run(logs, chunk) && !ring.gone) {
			ring.gone = 1;
			continue;
		}
		/* Not the last one: more times follow. */
		ring.gone = 0;
		set_next(logs, ring.last, next_of(logs, chunk));
		request_chunk_put(logs, chunk);
	}
	return state_of(&ring);
}

u64 request_log_wait(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		     struct sl_now now, u64 n)
{
	struct ring ring = ring_of(bucket_state);
	u32 chunk = next_of(logs, ring.last), gone = ring.gone;
	u64 time = 0;

	if (spec->buckets)
		return request_counters_wait(logs, spec, bucket_state, now, n);
	for (u64 seen = 0; seen < n; chunk = next_of(logs, chunk), gone = 0) {
		seen += first_of(logs, chunk, gone, &time);
		if (seen < n && !is_run(logs, chunk) && !gone) {
			time = time_get(logs, chunk, 1);
			seen++;
		}
	}
	return wait_of(spec, time, now);
}

u64 request_log_reset(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		      struct sl_now now)
{
	struct ring ring = ring_of(bucket_state);

	if (spec->buckets)
		return request_counters_reset(logs, spec, bucket_state, now);
	return ring.count ? wait_of(spec, newest(logs, &ring), now) : 0;
}

u64 request_log_copy(struct request_logs *logs, const struct request_logs *from, u64 bucket_state)
{
	struct ring ring = ring_of(bucket_state);
	u32 last = ring.last, chunk = next_of(from, last);

	if (!bucket_state)
		return 0;
	ring.last = 0;
	for (;; chunk = next_of(from, chunk)) {
		u32 copy = request_chunk_get(logs), fill = ring.fill;

		if (!copy) {
			request_log_free(logs, state_of(&ring));
			return 0;
		}
		request_log_append(logs, &ring, copy, is_run(from, chunk));
		ring.fill = fill;
		memcpy(logs->chunk[copy].time, from->chunk[chunk].time,
		       sizeof(logs->chunk[copy].time));
		if (chunk == last)
			return state_of(&ring);
	}
}

/* ------------------------------------------------------------------ after a crash */

/* Requests in a chunk; the bucket state has the number of times of the last one. */
static u64 held_by(const struct request_logs *logs, const struct spec *spec,
		   const struct ring *ring, u32 chunk)
{
	if (spec->buckets)
		return request_counters_held(logs, chunk);
	if (is_run(logs, chunk))
		return time_get(logs, chunk, 1);
	return chunk == ring->last ? ring->fill : 2;
}

/* Marks the ring and returns its number of times; 0 if it is not a ring. */
static u64 walk(const struct request_logs *logs, const struct spec *spec, const struct ring *ring,
		u64 *mark)
{
	u32 chunk = ring->last;
	u64 held = 0;

	do {
		if (!chunk || chunk >= logs->chunks || chunk >= *logs->used ||
		    (mark[chunk / 64] & SL_BIT(chunk % 64)))
			return 0;
		mark[chunk / 64] |= SL_BIT(chunk % 64);
		held += held_by(logs, spec, ring, chunk);
		chunk = next_of(logs, chunk);
	} while (chunk != ring->last);
	return held;
}

u64 request_log_check(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		      u64 *mark)
{
	struct ring ring = ring_of(bucket_state);
	u64 held = ring.fill <= 2 ? walk(logs, spec, &ring, mark) : 0;
	u32 first;

	if (held && spec->buckets)
		return request_counters_mend(logs, bucket_state, held);

	if (held <= ring.gone)
		return 0;
	first = next_of(logs, ring.last);
	/* A chunk that was added but is not in the bucket state yet: it follows the last one. */
	if (held - ring.gone > ring.count && first != ring.last) {
		held -= held_by(logs, spec, &ring, first);
		set_next(logs, ring.last, next_of(logs, first));
		mark[first / 64] &= ~SL_BIT(first % 64);
	}
	/* Expired, but the bucket state still counts them. */
	if (held - ring.gone < ring.count) {
		ring.gone = 0;
		ring.count = held;
	}
	return held - ring.gone == ring.count ? state_of(&ring) : 0;
}

void request_logs_rebuild(struct request_logs *logs, const u64 *mark)
{
	logs->free = logs->free_count = 0;
	for (u32 chunk = *logs->used; --chunk;) {
		if (mark[chunk / 64] & SL_BIT(chunk % 64))
			continue;
		if (logs->chunk[chunk].next != logs->free) {
			touch(logs, chunk);
			logs->chunk[chunk].next = logs->free;
		}
		logs->free = chunk;
		logs->free_count++;
	}
}
