/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spec.h - a limit, ready for the step functions: one rate, one algorithm, as applied to one value.
 *
 * Four of the algorithms are the packet tier's own step functions (include/sluice/algo.h) over one
 * 64-bit bucket state; a window that begins with its first request (include/sluice/algo_first.h)
 * and the sliding log (request_log.h) belong to the HTTP tier only. algorithm.h has a row for each.
 *
 * The other values of a response (remaining, reset) are computed here, too: a packet has no
 * response.
 */
#ifndef SLUICE_HTTP_SPEC_H
#define SLUICE_HTTP_SPEC_H

#include <stdbool.h>

#include "lib/err.h"
#include "lib/units.h"
#include "limiter/calendar.h"
#include "sluice/algo.h"

/*
 * The definition of a spec. The counter table writes it into its file as the class of an entry;
 * limits with equal definitions share the class. Unused bytes are 0.
 */
struct spec_def {
	/*
	 * Requests each period. SL_ALGO_GRACE: period_ns is the duration. SL_ALGO_BAN: that of the
	 * first ban, count the factor in percent, burst the longest.
	 */
	u64 count, period_ns;
	u64 burst;	     /* 0: the default, or none */
	u32 scale;	     /* of a prefix hierarchy's level: multiplies count and burst */
	u16 soft_permille;   /* 0: the limit itself; else only its soft part */
	u16 ceiling_percent; /* elastic: it may grow to this; 100: not elastic */
	u8 algo;	     /* enum sl_algo */
	u8 buckets;  /* SL_ALGO_WINDOW_COUNTERS: of a window; SL_ALGO_FIRST_REQUEST: it admits in
			the first of so many parts; else 0 */
	u8 round_up; /* SL_ALGO_SLIDING_WINDOW: as sl_params.round_up */
	u8 pad;
	/* SL_ALGO_FIXED_WINDOW: the id of a calendar, whose window_ns is period_ns; 0: none */
	u32 calendar;
};
SL_STATIC_ASSERT(sizeof(struct spec_def) == 40, "part of the store's file");

struct spec {
	struct sl_params
		params; /* of the packet tier's algorithms; capacity and window_ns of all */
	u64 requests, period_ns; /* the rate, for responses; scaled */
	u64 capacity;		 /* burst of a bucket, requests of a window; scaled */
	u8 algo;		 /* enum sl_algo */
	u8 count_bits;		 /* SL_ALGO_FIRST_REQUEST, see anchored.h */
	u8 tick_shift;	/* SL_ALGO_FIRST_REQUEST, SL_ALGO_SLIDING_LOG: a tick is 2^shift ns */
	u8 buckets;	/* as in spec_def */
	u64 bucket_ns;	/* ... the length of each */
	u64 ban_max_ns; /* SL_ALGO_BAN */
	u32 ban_factor_percent;
	const struct calendar *calendar; /* SL_ALGO_FIXED_WINDOW; NULL: none */
};

/* A sliding log's largest capacity. */
#define SPEC_LOG_MAX (SL_BIT(27) - 1)

/*
 * Requests are the unit: a leaky bucket's capacity is one request, a token bucket's default burst
 * one second's worth, at least one. `scale` multiplies rate and burst (a prefix hierarchy's level).
 * -ERANGE with a message if the algorithm cannot represent it (bounds of params.c).
 */
int spec_make_def(const struct spec_def *def, struct spec *ret, struct sl_err *err);

/*
 * ---- stepping: all but a sliding log, whose bucket state alone is not enough (request_log.h)
 */

/*
 * A spec for one request: its parameters, scaled by elastic, and the reserve for requests of a
 * higher priority, in requests: a cost c fits if c + hold fits.
 */
struct spec_view {
	const struct spec *spec;
	struct sl_params p;
	u64 hold;
};

/* `elastic` is 16.16, SL_ELASTIC_ONE or 0: not scaled. hold_permille is of the scaled capacity. */
void spec_view_init(struct spec_view *view, const struct spec *spec, u32 elastic,
		    u32 hold_permille);

/*
 * The largest cost of these functions: less than a window's count may be. A cost above the capacity
 * is refused, or cut to what may be owed, before it is multiplied; a bucket's capacity x mult is
 * below 2^60 (shift 0), and a count and a cost are below 2^48 together.
 */
#define SPEC_COST_MAX SL_BIT(46)

/*
 * Whether `cost` fits (SL_PASS), with the new bucket state, and if not the time until it fits (~0:
 * never). A cost of 0 fits unless reports took the bucket state above its limit.
 */
struct sl_result spec_charge(const struct spec_view *view, u64 bucket_state, struct sl_now now,
			     u64 cost);
/* The bucket state with `cost` charged even if it does not fit; a debt of one capacity at most. */
u64 spec_force(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost);
/*
 * The same for requests of the time `then`: in a window that is over they do not count; a bucket
 * has drained since.
 */
u64 spec_report(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		struct sl_now then, u64 cost);
/*
 * The bucket state after a refusal, of a limit that counts refused requests: up to the limit; a
 * debt stays.
 */
u64 spec_fill(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost);
/* The bucket state with `cost` refunded; never below unused. */
u64 spec_refund(const struct spec_view *view, u64 bucket_state, struct sl_now now, u64 cost);
/* The same for a charge of the time `then`: after the end of its window, where it counts now. */
u64 spec_uncommit(const struct spec_view *view, u64 bucket_state, struct sl_now now,
		  struct sl_now then, u64 cost);

/* Whole requests that fit now, and the time until as many fit as in an unused bucket. */
u64 spec_remaining(const struct spec_view *view, u64 bucket_state, struct sl_now now);
u64 spec_reset_ns(const struct spec_view *view, u64 bucket_state, struct sl_now now);

/* As sl_utilization() and sl_expired(). */
u32 spec_utilization(const struct spec *spec, u64 bucket_state, struct sl_now now);
bool spec_expired(const struct spec *spec, u64 bucket_state, struct sl_now now);
/*
 * Converts a bucket state of another spec to this one: a bucket keeps its debt as a fraction of
 * tau, a window its count. 0 if the kind differs (algorithm, length of a window).
 */
u64 spec_convert(const struct spec *from, const struct spec *to, u64 bucket_state,
		 struct sl_now now);

#endif
