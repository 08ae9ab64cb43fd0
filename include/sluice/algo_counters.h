/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo_counters.h - a window of sub-counters: the window is divided into `quantum` buckets of
 * `mult` ns each, aligned to UTC. The newest one counts, and the sum of all is the use of the
 * limit:
 *
 *     used = count of this bucket + counts of the quantum - 1 buckets before it
 *
 * and a cost c fits where used + c <= capacity. A unit counts for one window less the part of its
 * bucket that was over when it came, so within any window's length less one bucket at most
 * `capacity` units are admitted. That is the error: one bucket.
 *
 * The bucket state: bits 63..48 the newest bucket's number modulo 2^16; below them a count of
 * `shift` = 48 / quantum bits for each bucket, the newest in the lowest bits. A capacity is at most
 * 2^shift - 2, which also keeps a state from being all ones (SL_STATE_BUSY).
 *
 * Numbers are compared as a difference modulo 2^16. One that is ahead by no more than a window is
 * of a clock that was stepped back: its buckets go on. Any other that is not within a window before
 * is over. A state unchanged for 2^16 buckets (3.6 hours of 200 ms) would be taken for a live one:
 * the daemon's sweep clears expired buckets long before.
 */
#ifndef SLUICE_ALGO_COUNTERS_H
#define SLUICE_ALGO_COUNTERS_H

#include "types.h"

#define SL_COUNTERS_BITS 48
#define SL_COUNTERS_MIN 2
#define SL_COUNTERS_MAX 6
#define SL_COUNTERS_NUMBER_MASK (SL_BIT(64 - SL_COUNTERS_BITS) - 1)

struct sl_params;

/* A state as it is read at some time. */
struct sl_counters {
	u64 number; /* of the newest bucket, modulo 2^16 */
	u64 counts; /* of all buckets, the newest in the lowest bits */
	u64 early;  /* buckets until the newest begins; 0 but for a clock set back */
};

static __always_inline u64 sl_counters_mask(const struct sl_params *p)
{
	return SL_BIT(p->shift & 31) - 1;
}

static __always_inline struct sl_counters sl_counters_read(u64 bucket_state,
							   const struct sl_params *p, u64 utc_ns)
{
	u64 number = (utc_ns / p->mult) & SL_COUNTERS_NUMBER_MASK;
	u64 ahead = ((bucket_state >> SL_COUNTERS_BITS) - number) & SL_COUNTERS_NUMBER_MASK;
	u64 behind = -ahead & SL_COUNTERS_NUMBER_MASK;
	struct sl_counters c = { .number = number };

	if (!bucket_state)
		return c;
	c.counts = bucket_state & (SL_BIT(SL_COUNTERS_BITS) - 1);
	if (ahead && ahead <= p->quantum) {
		c.number = bucket_state >> SL_COUNTERS_BITS;
		c.early = ahead;
	} else if (behind < p->quantum) {
		c.counts <<= (behind * p->shift) & 63;
		c.counts &= SL_BIT((p->quantum * p->shift) & 63) - 1;
	} else {
		c.counts = 0;
	}
	return c;
}

/* The count of a bucket; `age`: so many buckets before the newest. */
static __always_inline u64 sl_counters_at(const struct sl_counters *c, const struct sl_params *p,
					  u32 age)
{
	return age < p->quantum ? (c->counts >> ((age * p->shift) & 63)) & sl_counters_mask(p) : 0;
}

static __always_inline u64 sl_counters_sum(const struct sl_counters *c, const struct sl_params *p)
{
	u64 sum = 0;

	for (u32 age = 0; age < SL_COUNTERS_MAX; age++)
		sum += sl_counters_at(c, p, age);
	return sum;
}

static __always_inline u64 sl_counters_state(const struct sl_counters *c)
{
	return c->number << SL_COUNTERS_BITS | c->counts;
}

/* How long until the bucket of this age is over. */
static __always_inline u64 sl_counters_ends(const struct sl_counters *c, const struct sl_params *p,
					    u64 utc_ns, u32 age)
{
	return (p->quantum - age + c->early) * p->mult - utc_ns % p->mult;
}

static __always_inline u64 sl_counters_used(u64 bucket_state, const struct sl_params *p, u64 utc_ns)
{
	struct sl_counters c = sl_counters_read(bucket_state, p, utc_ns);

	return sl_counters_sum(&c, p);
}

static __always_inline struct sl_result
sl_counters_step(u64 bucket_state, const struct sl_params *p, u64 utc_ns, u64 cost)
{
	struct sl_counters c = sl_counters_read(bucket_state, p, utc_ns);
	struct sl_result res = { .bucket_state = bucket_state };
	u64 used = sl_counters_sum(&c, p), freed = 0;

	if (used + cost <= p->capacity) {
		c.counts += cost;
		res.bucket_state = sl_counters_state(&c);
		return res;
	}
	res.verdict = SL_OVER;
	res.wait_ns = ~0ULL;
	if (cost > p->capacity)
		return res;
	for (u32 i = 0; i < SL_COUNTERS_MAX; i++) {
		u32 age = SL_COUNTERS_MAX - 1 - i;

		freed += sl_counters_at(&c, p, age);
		if (freed + p->capacity >= used + cost) {
			res.wait_ns = sl_counters_ends(&c, p, utc_ns, age);
			break;
		}
	}
	return res;
}

/* After a refusal of `cost`, of a limit that counts refused ones. */
static __always_inline u64 sl_counters_fill(u64 bucket_state, const struct sl_params *p, u64 utc_ns,
					    u64 cost)
{
	struct sl_counters c = sl_counters_read(bucket_state, p, utc_ns);
	u64 newest = sl_counters_at(&c, p, 0);
	u64 room = newest < p->capacity ? p->capacity - newest : 0;

	c.counts += cost < room ? cost : room;
	return sl_counters_state(&c);
}

static __always_inline u32 sl_counters_utilization(u64 bucket_state, const struct sl_params *p,
						   u64 utc_ns)
{
	u64 used = sl_counters_used(bucket_state, p, utc_ns);

	if (!used)
		return 0;
	return used >= p->capacity ? 255 : 1 + used * 254 / p->capacity;
}

/* How long until all buckets that count something are over. */
static __always_inline u64 sl_counters_left(u64 bucket_state, const struct sl_params *p, u64 utc_ns)
{
	struct sl_counters c = sl_counters_read(bucket_state, p, utc_ns);

	for (u32 age = 0; age < SL_COUNTERS_MAX; age++)
		if (sl_counters_at(&c, p, age))
			return sl_counters_ends(&c, p, utc_ns, age);
	return 0;
}

/* All of it in the newest bucket that is over by then. */
static __always_inline u64 sl_counters_spent(const struct sl_params *p, u64 utc_ns, u64 left_ns)
{
	u64 number = (utc_ns / p->mult) & SL_COUNTERS_NUMBER_MASK;
	u64 edges = (left_ns + utc_ns % p->mult) / p->mult, age;

	if (!edges)
		return 0;
	age = edges < p->quantum ? p->quantum - edges : 0;
	return number << SL_COUNTERS_BITS | p->capacity << ((age * p->shift) & 63);
}

/* Only from the bucket that utc_ns is in. */
static __always_inline u64 sl_counters_refund(u64 bucket_state, const struct sl_params *p,
					      u64 utc_ns, u64 cost)
{
	struct sl_counters c = sl_counters_read(bucket_state, p, utc_ns);
	u64 newest = sl_counters_at(&c, p, 0);

	if (!bucket_state || c.number != bucket_state >> SL_COUNTERS_BITS)
		return bucket_state;
	c.counts -= newest > cost ? cost : newest;
	return sl_counters_state(&c);
}

#endif
