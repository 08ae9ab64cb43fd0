/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request_log_private.h - the chunks of a log, for request_log.c and request_counters.c. */
#ifndef SLUICE_LIMITER_REQUEST_LOG_PRIVATE_H
#define SLUICE_LIMITER_REQUEST_LOG_PRIVATE_H

#include "limiter/request_log.h"

#define RUN SL_BIT(31)
#define INDEX_MASK (REQUEST_CHUNKS_MAX - 1)

/* A bucket state, taken apart. */
struct ring {
	u32 last;
	u32 fill; /* times in the last chunk, 0..2 */
	u32 gone; /* 1: the first chunk's first time has expired */
	u64 count;
};

static inline struct ring ring_of(u64 bucket_state)
{
	return (struct ring){
		.last = bucket_state >> 36,
		.fill = (bucket_state >> 34) & 3,
		.gone = (bucket_state >> 33) & 1,
		.count = request_log_count(bucket_state),
	};
}

static inline u64 state_of(const struct ring *ring)
{
	return (u64)ring->last << 36 | (u64)ring->fill << 34 | (u64)ring->gone << 33 | ring->count;
}

static inline u32 next_of(const struct request_logs *logs, u32 chunk)
{
	return logs->chunk[chunk].next & INDEX_MASK;
}

/* Of window counters: whether its counts have 32 bits. */
static inline bool is_run(const struct request_logs *logs, u32 chunk)
{
	return logs->chunk[chunk].next & RUN;
}

/* Before each write to a chunk. */
static inline void touch(struct request_logs *logs, u32 chunk)
{
	if (logs->checks)
		block_touch(logs->checks,
			    logs->first_block + chunk / (BLOCK_BYTES / (u32)sizeof(*logs->chunk)));
}

static inline void set_next(struct request_logs *logs, u32 chunk, u32 next)
{
	touch(logs, chunk);
	logs->chunk[chunk].next = (logs->chunk[chunk].next & RUN) | next;
}

/* Adds a chunk after the last one. */
void request_log_append(struct request_logs *logs, struct ring *ring, u32 chunk, bool run);

/* ---- request_counters.c: the functions of request_log.h, of a spec with buckets ---- */

bool request_counters_is_past(const struct spec *spec, struct sl_now then, struct sl_now now);
bool request_counters_expired(const struct request_logs *logs, const struct spec *spec,
			      u64 bucket_state, struct sl_now now);
u64 request_counters_expire(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			    struct sl_now now);
bool request_counters_need(const struct request_logs *logs, const struct spec *spec,
			   u64 bucket_state, struct sl_now now, u64 n);
u64 request_counters_add(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			 struct sl_now now, u64 n, u32 chunk);
u64 request_counters_remove(struct request_logs *logs, u64 bucket_state, u64 n);
u64 request_counters_drop(struct request_logs *logs, u64 bucket_state, u64 n);
u64 request_counters_wait(const struct request_logs *logs, const struct spec *spec,
			  u64 bucket_state, struct sl_now now, u64 n);
u64 request_counters_reset(const struct request_logs *logs, const struct spec *spec,
			   u64 bucket_state, struct sl_now now);
/* The sum of a chunk's counts. */
u64 request_counters_held(const struct request_logs *logs, u32 chunk);
/* After a crash: the bucket state of a whole ring that holds `held`. */
u64 request_counters_mend(const struct request_logs *logs, u64 bucket_state, u64 held);

#endif
