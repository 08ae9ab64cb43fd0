/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request_log.h - the sliding log: the time of every request of the last W, so that at most
 * `capacity` of them lie in any interval of that length. Exact, and paid for in memory.
 *
 * Times are kept in chunks of 16 bytes out of one pool of fixed size: a link, and two times of 48
 * bits; or, for a charge of three requests or more, one time and a count. So a request takes 8
 * bytes, and a log wastes at most 16 bytes in its first and last chunk. Chunks form a ring: the
 * bucket state has the number of the last one, whose link leads to the first.
 *
 * A time is the monotonic clock in ticks, modulo 2^48. A tick is a nanosecond for windows below
 * 2^47 of them (39 hours), else the least power of two with which W is below 2^47 ticks; times are
 * rounded up to one, so a log never admits too much.
 *
 * The bucket state: bits 63..36 the last chunk; 35..34 its number of times (a run: 2); 33 the
 * first chunk's first time has expired; 27..0 requests. 0 is an empty log.
 *
 * With a spec of window counters all functions are those of request_counters.c, which keeps counts
 * of buckets in chunks of the same pool. So do requests in flight (SL_ALGO_CONCURRENCY): there a
 * bucket has the requests that began in it and have not ended, and the window is how long one
 * counts whose end nobody reports.
 *
 * The caller holds the lock of the bucket state's set; the pool has a lock of its own.
 */
#ifndef SLUICE_HTTP_REQUEST_LOG_H
#define SLUICE_HTTP_REQUEST_LOG_H

#include "lib/block_check.h"
#include "limiter/spec.h"

struct request_chunk {
	u32 next;    /* bits 27..0 the next, the last's: the first; 31 a run */
	u16 time[6]; /* two of three parts, low one first; a run: one, then its count */
};
SL_STATIC_ASSERT(sizeof(struct request_chunk) == 16, "part of the store's file");

#define REQUEST_CHUNKS_MAX (1U << 28)

struct request_logs {
	struct request_chunk *chunk;
	u32 chunks; /* 0 is none, the others are 1..chunks - 1 */
	u32 *used;  /* in the file: chunks from here on were never used */
	u32 free;   /* the first of the free list; 0 none */
	u32 free_count;
	u8 lock;
	struct block_checks *checks; /* of the file, marked before a chunk is written; or NULL */
	u32 first_block;	     /* that chunk 0 is in */
};

/* Allocates a chunk, 0 if none is left; and frees one that was not used. */
u32 request_chunk_get(struct request_logs *logs);
void request_chunk_put(struct request_logs *logs, u32 chunk);
u64 request_logs_used(struct request_logs *logs); /* chunks */

/* The log without expired requests: the bucket state to store, 0 if empty. */
u64 request_log_expire(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		       struct sl_now now);
/* Whether adding `n` needs a chunk, which the caller allocates before. */
bool request_log_needs(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		       struct sl_now now, u64 n);
/* Adds n >= 1 requests, with `chunk` if one is needed. */
u64 request_log_add(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		    struct sl_now now, u64 n, u32 chunk);
/* Removes the n newest. */
u64 request_log_remove(struct request_logs *logs, const struct spec *spec, u64 bucket_state, u64 n);
/* Removes the n oldest. */
u64 request_log_drop(struct request_logs *logs, const struct spec *spec, u64 bucket_state, u64 n);
/*
 * SL_ALGO_CONCURRENCY only. Removes one request that was added at the time `then`. If there is none
 * of that time, or its time is over, the bucket state stays as it is.
 */
u64 request_log_release(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			struct sl_now then, struct sl_now now);
/* Removes all. */
void request_log_free(struct request_logs *logs, u64 bucket_state);

/* Of a log without expired ones: requests, */
static inline u64 request_log_count(u64 bucket_state)
{
	return bucket_state & (SL_BIT(28) - 1);
}

/* the time until `n` of them have expired (1..count), and until the last has expired. */
u64 request_log_wait(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		     struct sl_now now, u64 n);
u64 request_log_reset(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		      struct sl_now now);
/* Whether a request of the time `then` has expired. */
bool request_log_is_past(const struct spec *spec, struct sl_now then, struct sl_now now);
/* Whether all of it has expired. */
bool request_log_expired(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
			 struct sl_now now);

/* Copies a log of another pool into this one; 0 if it does not fit or is empty. */
u64 request_log_copy(struct request_logs *logs, const struct request_logs *from, u64 bucket_state);

/*
 * After a crash: returns the bucket state, or 0 if its chunks are not a valid ring. The chunks are
 * marked in `mark`, a bit each; a ring interrupted in an addition or expiry is repaired. The second
 * function then, once, makes the pool of all unmarked chunks.
 */
u64 request_log_check(struct request_logs *logs, const struct spec *spec, u64 bucket_state,
		      u64 *mark);
void request_logs_rebuild(struct request_logs *logs, const u64 *mark);

#endif
