// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * request_counters.c - window counters: a log of counts, one for each bucket of the window, in
 * place of times. include/sluice/algo_counters.h has the algorithm and its bound; there all counts
 * are in one bucket state, here in the chunks of a log, so there may be more and larger ones.
 *
 * A chunk has the number of its first bucket modulo 2^16, and the counts of five buckets in a row,
 * of 16 bits each; or, with RUN, of two buckets, of 32 bits. So 60 buckets take 192 bytes, fewer
 * where the user was silent. Chunks and buckets that count something are in order of time.
 *
 * Requests in flight are counted in the same way, by the time at which they began. An end has that
 * time with it, so it removes a request of just that bucket, and whatever is left there when the
 * bucket is over are requests whose end was lost.
 */
#include <string.h>

#include "limiter/algorithm.h"
#include "limiter/request_log_private.h"

#define NARROW_SLOTS 5
#define NARROW_MAX 0xffffu
#define WIDE_SLOTS 2
#define WIDE_MAX 0xffffffffu

/* A count in a chunk. */
struct place {
	u32 chunk, slot;
};

/* ------------------------------------------------------------------ a chunk */

static u32 slots_of(const struct request_logs *logs, u32 chunk)
{
	return is_run(logs, chunk) ? WIDE_SLOTS : NARROW_SLOTS;
}

static u16 number_at(const struct request_logs *logs, struct place at)
{
	return logs->chunk[at.chunk].time[0] + at.slot;
}

static u32 count_get(const struct request_logs *logs, struct place at)
{
	const u16 *part = logs->chunk[at.chunk].time;

	if (!is_run(logs, at.chunk))
		return part[1 + at.slot];
	return part[2 + 2 * at.slot] | (u32)part[3 + 2 * at.slot] << 16;
}

static void count_set(struct request_logs *logs, struct place at, u32 count)
{
	u16 *part = logs->chunk[at.chunk].time;

	touch(logs, at.chunk);
	if (!is_run(logs, at.chunk)) {
		part[1 + at.slot] = count;
		return;
	}
	part[2 + 2 * at.slot] = count;
	part[3 + 2 * at.slot] = count >> 16;
}

u64 algorithm_log_bytes(enum sl_algo algo, u64 count, u32 buckets)
{
	u32 slots = count > NARROW_MAX ? WIDE_SLOTS : NARROW_SLOTS;
	u64 chunks;

	if (algo == SL_ALGO_CONCURRENCY)
		buckets = CONCURRENCY_BUCKETS + 1;
	chunks = algo == SL_ALGO_SLIDING_LOG ? count / 2 + 2 : (buckets + slots - 1) / slots + 1;
	return chunks * sizeof(struct request_chunk);
}

u64 request_counters_held(const struct request_logs *logs, u32 chunk)
{
	u64 held = 0;

	for (u32 slot = 0; slot < slots_of(logs, chunk); slot++)
		held += count_get(logs, (struct place){ chunk, slot });
	return held;
}

/* ------------------------------------------------------------------ time */

/* Requests in flight have no round times, and a step of the wall clock ends none of them. */
static u64 clock_of(const struct spec *spec, struct sl_now now)
{
	return spec->algo == SL_ALGO_CONCURRENCY ? now.mono_ns : now.utc_ns;
}

static u16 number_of(const struct spec *spec, struct sl_now now)
{
	return clock_of(spec, now) / spec->bucket_ns;
}

/* How many buckets ago; below 0: the clock was stepped back. */
static int age_of(const struct spec *spec, u16 number, struct sl_now now)
{
	return (short)(u16)(number_of(spec, now) - number);
}

static bool is_over(const struct spec *spec, u16 number, struct sl_now now)
{
	int age = age_of(spec, number, now);

	return age >= spec->buckets || age < -(int)spec->buckets;
}

static u64 left_of(const struct spec *spec, u16 number, struct sl_now now)
{
	u64 edges = spec->buckets - age_of(spec, number, now);

	return edges * spec->bucket_ns - clock_of(spec, now) % spec->bucket_ns;
}

bool request_counters_is_past(const struct spec *spec, struct sl_now then, struct sl_now now)
{
	return is_over(spec, number_of(spec, then), now);
}

/* ------------------------------------------------------------------ the ring */

/* The newest bucket that counts something; false: none does. */
static bool newest(const struct request_logs *logs, u64 bucket_state, struct place *ret)
{
	struct ring ring = ring_of(bucket_state);
	u32 chunk = ring.last;
	bool any = false;

	if (!ring.count)
		return false;
	do {
		chunk = next_of(logs, chunk);
		for (u32 slot = 0; slot < slots_of(logs, chunk); slot++) {
			struct place at = { chunk, slot };

			if (!count_get(logs, at))
				continue;
			*ret = at;
			any = true;
		}
	} while (chunk != ring.last);
	return any;
}

bool request_counters_expired(const struct request_logs *logs, const struct spec *spec,
			      u64 bucket_state, struct sl_now now)
{
	struct place last;

	return !newest(logs, bucket_state, &last) || is_over(spec, number_at(logs, last), now);
}

u64 request_counters_expire(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			    struct sl_now now)
{
	struct ring ring = ring_of(bucket_state);

	if (request_counters_expired(logs, spec, bucket_state, now)) {
		request_log_free(logs, bucket_state);
		return 0;
	}
	for (;;) {
		u32 chunk = next_of(logs, ring.last), slots = slots_of(logs, chunk);
		struct place at = { chunk, 0 };

		for (; at.slot < slots; at.slot++) {
			u32 count = count_get(logs, at);

			if (count && !is_over(spec, number_at(logs, at), now))
				break;
			if (count)
				count_set(logs, at, 0);
			ring.count -= count;
		}
		/* One without counts is removed, too; the last chunk may be filled further. */
		if (at.slot < slots || chunk == ring.last)
			return state_of(&ring);
		set_next(logs, ring.last, next_of(logs, chunk));
		request_chunk_put(logs, chunk);
	}
}

/*
 * Where n requests of this time are counted: never before the newest bucket. False: it takes
 * another chunk, which begins with bucket *ret_number.
 */
static bool find_place(const struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		       struct sl_now now, u64 n, struct place *ret, u16 *ret_number)
{
	struct ring ring = ring_of(bucket_state);
	struct place last;

	*ret_number = number_of(spec, now);
	if (!ring.last)
		return false;
	if (newest(logs, bucket_state, &last) && age_of(spec, number_at(logs, last), now) < 0)
		*ret_number = number_at(logs, last);
	*ret = (struct place){ ring.last, (u16)(*ret_number - logs->chunk[ring.last].time[0]) };
	return ret->slot < slots_of(logs, ring.last) &&
	       count_get(logs, *ret) + n <= (is_run(logs, ring.last) ? WIDE_MAX : NARROW_MAX);
}

bool request_counters_need(const struct request_logs *logs, const struct spec *spec,
			   u64 bucket_state, struct sl_now now, u64 n)
{
	struct place at;
	u16 number;

	return !find_place(logs, spec, bucket_state, now, n, &at, &number);
}

u64 request_counters_add(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			 struct sl_now now, u64 n, u32 chunk)
{
	struct ring ring = ring_of(bucket_state);
	struct place at;
	u16 number;

	ring.count += n;
	if (find_place(logs, spec, bucket_state, now, n, &at, &number)) {
		count_set(logs, at, count_get(logs, at) + n);
		return state_of(&ring);
	}
	touch(logs, chunk);
	memset(logs->chunk[chunk].time, 0, sizeof(logs->chunk[chunk].time));
	logs->chunk[chunk].time[0] = number;
	/* Reports may charge up to twice the limit. */
	request_log_append(logs, &ring, chunk, 2 * spec->capacity > NARROW_MAX || n > NARROW_MAX);
	count_set(logs, (struct place){ chunk, 0 }, n);
	return state_of(&ring);
}

u64 request_counters_remove(struct request_logs *logs, u64 bucket_state, u64 n)
{
	struct ring ring = ring_of(bucket_state);
	struct place at;

	while (n && newest(logs, state_of(&ring), &at)) {
		u32 count = count_get(logs, at), some = count < n ? count : n;

		count_set(logs, at, count - some);
		ring.count -= some;
		n -= some;
	}
	return state_of(&ring);
}

/*
 * A thread with a slightly older clock counted its request in the newest bucket, one later at most
 * (find_place()). Nothing is removed from other buckets: their requests are others.
 */
u64 request_log_release(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			struct sl_now then, struct sl_now now)
{
	struct ring ring = ring_of(bucket_state);
	u16 number = number_of(spec, then);
	u32 chunk = ring.last;

	if (!ring.count || is_over(spec, number, now))
		return bucket_state;
	for (u32 later = 0; later < 2; later++) {
		do {
			chunk = next_of(logs, chunk);
			for (u32 slot = 0; slot < slots_of(logs, chunk); slot++) {
				struct place at = { chunk, slot };
				u32 count = count_get(logs, at);

				if (!count || number_at(logs, at) != (u16)(number + later))
					continue;
				if (ring.count == 1) {
					request_log_free(logs, bucket_state);
					return 0;
				}
				count_set(logs, at, count - 1);
				ring.count--;
				return state_of(&ring);
			}
		} while (chunk != ring.last);
	}
	return bucket_state;
}

u64 request_counters_drop(struct request_logs *logs, u64 bucket_state, u64 n)
{
	struct ring ring = ring_of(bucket_state);

	ring.count -= n;
	for (;;) {
		u32 chunk = next_of(logs, ring.last);
		struct place at = { chunk, 0 };

		for (; n && at.slot < slots_of(logs, chunk); at.slot++) {
			u32 count = count_get(logs, at), some = count < n ? count : n;

			if (some)
				count_set(logs, at, count - some);
			n -= some;
		}
		if (!n || chunk == ring.last)
			return state_of(&ring);
		set_next(logs, ring.last, next_of(logs, chunk));
		request_chunk_put(logs, chunk);
	}
}

u64 request_counters_wait(const struct request_logs *logs, const struct spec *spec,
			  u64 bucket_state, struct sl_now now, u64 n)
{
	u32 last = ring_of(bucket_state).last;
	struct place at = { last, 0 };
	u64 seen = 0;

	do {
		at.chunk = next_of(logs, at.chunk);
		for (at.slot = 0; at.slot < slots_of(logs, at.chunk); at.slot++) {
			seen += count_get(logs, at);
			if (seen >= n)
				return left_of(spec, number_at(logs, at), now);
		}
	} while (at.chunk != last);
	return spec->params.window_ns;
}

u64 request_counters_reset(const struct request_logs *logs, const struct spec *spec,
			   u64 bucket_state, struct sl_now now)
{
	struct place last;

	return newest(logs, bucket_state, &last) ? left_of(spec, number_at(logs, last), now) : 0;
}

u64 request_counters_mend(const struct request_logs *logs, u64 bucket_state, u64 held)
{
	struct ring ring = ring_of(bucket_state);
	u32 first = next_of(logs, ring.last);

	/* A chunk that was added but is not in the bucket state yet follows the last one. */
	if ((short)(u16)(logs->chunk[first].time[0] - logs->chunk[ring.last].time[0]) > 0)
		ring.last = first;
	ring.count = held;
	return held == request_log_count(held) ? state_of(&ring) : 0;
}
