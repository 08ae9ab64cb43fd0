/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * model.h - what a limit admits, computed in another way than include/sluice/ does.
 *
 * The code under test keeps a 64-bit bucket state: a bucket as the time at which it would be full,
 * in rounded ticks; a window as a number, cut to some bits, and a count or two. Here a bucket is
 * the tokens it holds, as an exact fraction in 128 bits; a window is its two ends in UTC, whole.
 *
 * The code may round to one side only, by a documented amount. So the
 * model keeps all states that agree with the verdicts so far, as an interval [least, most]
 * of what is left, and narrows it with each verdict. Without rounding the two are the
 * same, and there is only one right verdict for each packet.
 *
 * struct model_log is the other judge, for tests that do not predict each verdict: all units
 * admitted, at any time, against limit x time + burst over every interval at once.
 */
#ifndef TESTS_LIB_MODEL_H
#define TESTS_LIB_MODEL_H

#include <stdbool.h>

#include "lib/units.h"
#include "sluice/algo.h"

typedef __int128 s128;

/* A limit as it was written. Built by model_rule(). */
struct model_rule {
	enum sl_algo algo;
	u64 count, period_ns; /* of the rate, in units charged: bits are bytes by 8 periods */
	u64 capacity;	      /* units */
	u64 refill;	      /* interval bucket: units at each edge; else 0 */
	bool exact;	      /* the code's interval is a whole number of ticks: no rounding */
	bool bytes;
};

/* burst 0: a second of the rate, at least 1 (bytes: 9018). Of a window it is not read. */
struct model_rule model_rule(enum sl_algo algo, struct rate rate, u64 burst);

#define MODEL_BUCKETS 4 /* of window counters */

/* One key's bucket. All zeroes: never seen. */
struct model_bucket {
	bool seen;
	u64 at_ns;	      /* bucket: the time of the levels */
	s128 least, most;     /* tokens left, in units of 1/period_ns of a token */
	u64 begin_ns, end_ns; /* window: its ends in UTC, and what was used in it */
	u64 used, before;     /* `before`: in the window before, where windows slide */
	u64 number;	      /* window counters: of the newest bucket, and the counts from it on */
	u64 count[MODEL_BUCKETS];
};

enum model_says {
	MODEL_DROP,
	MODEL_PASS,
	MODEL_EITHER, /* within the rounding */
};

enum model_says model_ask(const struct model_rule *rule, struct model_bucket *bucket,
			  struct sl_now now, u64 cost);
/* ns until `cost` fits a bucket that refuses it; 0 where it never will, or for windows. */
u64 model_wait(const struct model_rule *rule, const struct model_bucket *bucket, u64 cost);
/* Observed: a packet of that cost was charged here, or refused here. */
void model_charged(const struct model_rule *rule, struct model_bucket *bucket, struct sl_now now,
		   u64 cost);
void model_refused(const struct model_rule *rule, struct model_bucket *bucket, struct sl_now now,
		   u64 cost);
/* The rate or burst changes; the share of the bucket that is full stays. */
void model_change(const struct model_rule *from, const struct model_rule *to,
		  struct model_bucket *bucket, struct sl_now now);
/*
 * The table is swept: a window that does not count now (it is over, or UTC was set back by
 * more than its length) is forgotten, and not known if UTC comes back to it. Those that slide
 * are if nothing of them counts.
 */
void model_swept(const struct model_rule *rule, struct model_bucket *bucket, struct sl_now now);

/*
 * All units admitted: excess = units since the worst instant before, less the rate
 * since then. So `worst` is the largest of (admitted - rate x time) over every interval.
 */
struct model_log {
	bool started;
	u64 first_ns, last_ns;
	u64 admitted;				    /* units */
	s128 excess, worst;			    /* units x period_ns */
	u64 window_end_ns, in_window, worst_window; /* the same per aligned window */
};

void model_log_admit(const struct model_rule *rule, struct model_log *log, struct sl_now now,
		     u64 cost);
/* The worst interval's admitted - rate x time, units, rounded up. */
u64 model_log_worst(const struct model_rule *rule, const struct model_log *log);
/* rate x time, units, rounded down. */
u64 model_refill(const struct model_rule *rule, u64 ns);

#endif
