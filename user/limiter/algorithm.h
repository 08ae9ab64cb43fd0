/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algorithm.h - the differences of the algorithms, in user space: one row (struct algorithm) for
 * each value of enum sl_algo.
 *
 * The steps themselves are in include/sluice/algo_*.h, shared with the packet tier. A row adds
 * parameters, the values of a response, the requests of reports, and the state in Redis. The file
 * of a row has the name of the kind of its bucket state: bucket.c, window.c, sliding.c,
 * first_request.c, log.c, grace.c, ban.c.
 *
 * To add an algorithm: its value in include/sluice/algo.h, with a step for the packet tier if it
 * has one; a line in the list below; a row. A new kind of bucket state also needs a
 * value of enum state_kind, and its code in user/cluster/quota/charge.lua.
 */
#ifndef SLUICE_LIMITER_ALGORITHM_H
#define SLUICE_LIMITER_ALGORITHM_H

#include "limiter/cluster_state.h"
#include "limiter/params.h"
#include "limiter/spec.h"

/* The kinds of bucket states. charge.lua uses the same values. */
enum state_kind {
	STATE_DEBT,	/* when the bucket is full again */
	STATE_WINDOW,	/* one count, of windows that are aligned to UTC */
	STATE_SLIDING,	/* the counts of two such windows */
	STATE_LOG,	/* the position of the requests' times, or of counters (request_log.h) */
	STATE_ANCHORED, /* the count of a window that begins with its first request */
	STATE_TIME,	/* a time, and no count; no state in Redis */
};

/* Value of enum sl_algo, row, name, kind of state. Algorithms of both tiers: */
#define ALGORITHMS_OF_PACKETS(X)                                                                   \
	X(SL_ALGO_TOKEN_BUCKET, token_bucket, "token-bucket", STATE_DEBT)                          \
	X(SL_ALGO_LEAKY_BUCKET, leaky_bucket, "leaky-bucket", STATE_DEBT)                          \
	X(SL_ALGO_FIXED_WINDOW, fixed_window, "fixed-window", STATE_WINDOW)                        \
	X(SL_ALGO_SLIDING_WINDOW, sliding_window, "sliding-window", STATE_SLIDING)                 \
	X(SL_ALGO_INTERVAL_BUCKET, interval_bucket, "interval-bucket", STATE_WINDOW)               \
	X(SL_ALGO_WINDOW_COUNTERS, window_counters, "window-counters", STATE_LOG)
/* Algorithms of rules only. */
#define ALGORITHMS_OF_REQUESTS(X)                                                                  \
	ALGORITHMS_OF_PACKETS(X)                                                                   \
	X(SL_ALGO_SLIDING_LOG, sliding_log, "sliding-log", STATE_LOG)
/* ... and those that follow from other keys. */
#define ALGORITHMS(X)                                                                              \
	ALGORITHMS_OF_REQUESTS(X)                                                                  \
	X(SL_ALGO_FIRST_REQUEST, first_request, "first-request", STATE_ANCHORED)                   \
	X(SL_ALGO_GRACE, grace, "soft-for", STATE_TIME)                                            \
	X(SL_ALGO_BAN, ban, "ban", STATE_TIME)                                                     \
	X(SL_ALGO_CONCURRENCY, concurrency, "concurrency", STATE_LOG)

/* Of a list above, in the help of a key: "`token-bucket`, `leaky-bucket`, ". */
#define ALGORITHM_HELP(id, row, name, kind) "`" name "`, "

/* The same for an error. */
#define ALGORITHM_LIST(id, row, name, kind) name ", "

/* A function that is NULL is not called for such an algorithm. */
struct algorithm {
	/* The default of `burst`; NULL: `burst` is not accepted. */
	u64 (*default_burst)(const struct rate *rate, u32 max_frame);
	bool has_window;   /* `window: first-request` is accepted */
	bool has_buckets;  /* `buckets` is accepted */
	bool has_rounding; /* `rounding` is accepted */
	/* Why `count: all` makes no difference; NULL: it does. */
	const char *count_note;
	/* With scope: cluster why only consistency: strict is possible; NULL: any. */
	const char *strict_note;
	/* Windows after which any state has ended; 0: the state shows it. */
	u32 windows_kept;
	const char *percpu_note; /* params_percpu_note() */

	/* params_compile(), after the checks common to all; p->algo is set. */
	int (*compile)(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
		       const char **ret_reason);
	/* The rest of a spec, which has to represent counts up to `most`. */
	int (*layout)(struct spec *spec, u64 most, const char **ret_reason);
	/* params_error_ppm() as a fraction. */
	double (*error)(const struct sl_params *p, const struct rate *rate);

	/* The functions of spec.h. A charge of 0 only reads. */
	struct sl_result (*charge)(const struct spec_view *view, u64 bucket_state,
				   struct sl_now now, u64 cost);
	struct sl_result (*look)(const struct spec_view *view, u64 bucket_state, struct sl_now now);
	u64 (*force)(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost);
	u64 (*report)(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		      struct sl_now then, u64 cost);
	u64 (*refund)(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost);
	u64 (*uncommit)(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			struct sl_now then, u64 cost);
	u64 (*remaining)(const struct spec_view *view, u64 bucket_state, struct sl_now now);
	u64 (*reset_ns)(const struct spec_view *view, u64 bucket_state, struct sl_now now);
	u32 (*utilization)(const struct spec *spec, u64 bucket_state, struct sl_now now);
	bool (*expired)(const struct spec *spec, u64 bucket_state, struct sl_now now);
	/* Both specs have this algorithm and, except for buckets, the same length of a window. */
	u64 (*convert)(const struct spec *from, const struct spec *to, u64 bucket_state,
		       struct sl_now now);

	/* The functions of cluster_state.h. `cost` fits into `room`, of an unused bucket. */
	u64 (*store_wait_ns)(const struct cluster_store_rate *rate,
			     const struct cluster_store_raw *raw, u64 room, u64 cost, u64 now_us);
	u64 (*from_store)(const struct spec *spec, const struct cluster_store_state *state,
			  u64 more, struct sl_now now);
};

#define ALGORITHM_DECLARE(id, row, name, kind) extern const struct algorithm algorithm_##row;
ALGORITHMS(ALGORITHM_DECLARE)
#undef ALGORITHM_DECLARE

/* By enum sl_algo. */
extern const struct algorithm *const algorithms[SL_ALGO_COUNT];

static inline enum state_kind algorithm_kind(enum sl_algo algo)
{
#define ALGORITHM_KIND(id, row, name, kind) [id] = kind,
	static const u8 kinds[SL_ALGO_COUNT] = { ALGORITHMS(ALGORITHM_KIND) };
#undef ALGORITHM_KIND

	return (enum state_kind)kinds[algo];
}

static inline bool algorithm_is_bucket(enum sl_algo algo)
{
	return algorithm_kind(algo) == STATE_DEBT;
}

static inline bool algorithm_is_aligned(enum sl_algo algo)
{
	return algorithm_kind(algo) == STATE_WINDOW || algorithm_kind(algo) == STATE_SLIDING;
}

static inline bool algorithm_is_sliding(enum sl_algo algo)
{
	return algorithm_kind(algo) == STATE_SLIDING;
}

static inline bool algorithm_is_anchored(enum sl_algo algo)
{
	return algorithm_kind(algo) == STATE_ANCHORED;
}

static inline bool algorithm_is_log(enum sl_algo algo)
{
	return algorithm_kind(algo) == STATE_LOG;
}

/*
 * A request in flight counts at least for its period, and at most this part of it longer: its
 * bucket of the log is over as a whole (request_log.h).
 */
#define CONCURRENCY_BUCKETS 16

/* The most memory, in bytes, of a key of a log of `count` requests, or of window counters of
 * `buckets`. */
u64 algorithm_log_bytes(enum sl_algo algo, u64 count, u32 buckets);

/* The algorithm of a limit of such an algorithm whose window begins with its first request. */
static inline enum sl_algo algorithm_anchored(enum sl_algo algo, bool first_request)
{
	return first_request && algorithms[algo]->has_window ? SL_ALGO_FIRST_REQUEST : algo;
}

/* "token-bucket"...; "unknown" for an invalid value. */
const char *algorithm_name(enum sl_algo algo);

#endif
