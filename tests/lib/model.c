// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* model.c - see model.h. */
#include "lib/model.h"

#define TICKS_PER_NS 16
#define MAX_FRAME 9018

static s128 min_s128(s128 a, s128 b)
{
	return a < b ? a : b;
}

static s128 max_s128(s128 a, s128 b)
{
	return a > b ? a : b;
}

struct model_rule model_rule(enum sl_algo algo, struct rate rate, u64 burst)
{
	bool bits = rate.unit == RATE_BITS;
	struct model_rule rule = {
		.algo = algo,
		.count = rate.count,
		.period_ns = rate.period_ns,
		.bytes = bits || rate.unit == RATE_BYTES,
	};

	if (sl_algo_is_window(algo)) {
		rule.capacity = rate.count / (bits ? 8 : 1);
		rule.refill = algo == SL_ALGO_INTERVAL_BUCKET ? rule.capacity : 0;
		if (rule.refill && burst)
			rule.capacity = burst / (bits ? 8 : 1);
		rule.exact = true;
		return rule;
	}
	if (algo == SL_ALGO_LEAKY_BUCKET) {
		burst = !rule.bytes ? 1 : MAX_FRAME * (bits ? 8 : 1);
	} else if (!burst) {
		u64 least = !rule.bytes ? 1 : MAX_FRAME * (bits ? 8 : 1);

		burst = (u64)((unsigned __int128)rate.count * SL_NS_PER_SEC / rate.period_ns);
		burst = burst > least ? burst : least;
	}
	rule.capacity = burst / (bits ? 8 : 1);
	if (bits)
		rule.period_ns *= 8; /* a byte takes eight times as long as a bit */
	rule.exact = rule.period_ns * TICKS_PER_NS % rule.count == 0;
	return rule;
}

/* ------------------------------------------------------------------ token bucket */

static s128 tokens(const struct model_rule *rule, u64 units)
{
	return (s128)units * rule->period_ns;
}

/*
 * How much less than the exact value the code may have. A packet's interval is rounded up to a
 * whole tick, so time refills less: by `count` / (16 x period) of it at most. A step of bytes is
 * rounded up by a tick, and its interval by 2^-37.
 */
static s128 slow_refill(const struct model_rule *rule, u64 ns)
{
	s128 refill = (s128)ns * rule->count;

	if (rule->exact || !ns)
		return refill;
	if (rule->bytes)
		return refill - (refill >> 37) - 1;
	return refill - refill * rule->count / ((s128)TICKS_PER_NS * rule->period_ns) - 1;
}

/* A step of bytes costs up to a tick more than it should. */
static s128 step_slack(const struct model_rule *rule)
{
	if (rule->exact || !rule->bytes)
		return 0;
	return rule->count / TICKS_PER_NS + (tokens(rule, SL_COST_MAX) >> 37) + 1;
}

static void refill(const struct model_rule *rule, struct model_bucket *b, u64 now_ns)
{
	s128 full = tokens(rule, rule->capacity);

	if (!b->seen) {
		b->least = b->most = full;
	} else {
		b->least = min_s128(full, b->least + slow_refill(rule, now_ns - b->at_ns));
		b->most = min_s128(full, b->most + (s128)(now_ns - b->at_ns) * rule->count);
	}
	b->seen = true;
	b->at_ns = now_ns;
}

static enum model_says tokens_ask(const struct model_rule *rule, struct model_bucket *b, u64 now_ns,
				  u64 cost)
{
	refill(rule, b, now_ns);
	if (b->most < tokens(rule, cost))
		return MODEL_DROP;
	return b->least >= tokens(rule, cost) + step_slack(rule) ? MODEL_PASS : MODEL_EITHER;
}

static void tokens_charged(const struct model_rule *rule, struct model_bucket *b, u64 now_ns,
			   u64 cost)
{
	refill(rule, b, now_ns);
	b->least = max_s128(0, b->least - tokens(rule, cost) - step_slack(rule));
	b->most = max_s128(0, b->most - tokens(rule, cost));
}

static void tokens_refused(const struct model_rule *rule, struct model_bucket *b, u64 now_ns,
			   u64 cost)
{
	refill(rule, b, now_ns);
	b->most = min_s128(b->most, tokens(rule, cost) + step_slack(rule));
	b->least = min_s128(b->least, b->most);
}

/* The code scales on 32-bit mantissas: within 2^-28 of the capacity. */
static void tokens_change(const struct model_rule *from, const struct model_rule *to,
			  struct model_bucket *b, u64 now_ns)
{
	s128 full = tokens(to, to->capacity);
	s128 full_before = tokens(from, from->capacity);
	s128 blur;

	if (!b->seen)
		return;
	refill(from, b, now_ns);
	if (from->count == to->count && from->period_ns == to->period_ns &&
	    from->capacity == to->capacity)
		return;
	blur = (full >> 28) + to->count + 1;
	/* Both factors are below 2^63: callers keep to capacity x period < 2^63. */
	b->least = max_s128(0, b->least * full / full_before - blur);
	b->most = min_s128(full, b->most * full / full_before + 1 + blur);
}

/* ------------------------------------------------------------------ fixed window */

/*
 * The bucket as a packet at `utc` meets it: its own window until that ends, also where the
 * clock was stepped back before its beginning by up to one length; else the aligned one
 * around utc. A look changes nothing, so this is a copy; only a charge stores it.
 */
static struct model_bucket window_at(const struct model_rule *rule, const struct model_bucket *b,
				     u64 utc_ns)
{
	struct model_bucket at = *b;

	if (at.seen && utc_ns < at.end_ns && utc_ns >= at.begin_ns - rule->period_ns)
		return at;
	at.begin_ns = utc_ns - utc_ns % rule->period_ns;
	/* An interval bucket gets so many tokens at each edge. */
	if (!at.seen || !rule->refill || at.begin_ns < b->begin_ns)
		at.used = 0;
	else
		at.used -= min_s128(at.used, (s128)rule->refill * ((at.begin_ns - b->begin_ns) /
								   rule->period_ns));
	at.seen = true;
	at.end_ns = at.begin_ns + rule->period_ns;
	return at;
}

static enum model_says window_ask(const struct model_rule *rule, const struct model_bucket *b,
				  u64 utc_ns, u64 cost)
{
	return window_at(rule, b, utc_ns).used + cost <= rule->capacity ? MODEL_PASS : MODEL_DROP;
}

static void window_charged(const struct model_rule *rule, struct model_bucket *b, u64 utc_ns,
			   u64 cost)
{
	*b = window_at(rule, b, utc_ns);
	b->used += cost;
}

/* ------------------------------------------------------------------ sliding window */

/*
 * The same, and what was used in the window before. Where the clock was stepped back before
 * the window's beginning, it is at its beginning.
 */
static struct model_bucket sliding_at(const struct model_rule *rule, const struct model_bucket *b,
				      u64 utc_ns)
{
	struct model_bucket at = window_at(rule, b, utc_ns);

	if (at.used || (b->seen && at.end_ns == b->end_ns))
		return at;
	at.before = b->seen && at.begin_ns == b->end_ns ? b->used : 0;
	return at;
}

/* Units of the last window's length, if those of the window before came evenly; less a part. */
static u64 sliding_used(const struct model_rule *rule, const struct model_bucket *b, u64 utc_ns)
{
	struct model_bucket at = sliding_at(rule, b, utc_ns);
	u64 from = utc_ns < at.begin_ns ? at.begin_ns : utc_ns;

	return at.used + (u64)((s128)at.before * (at.end_ns - from) / rule->period_ns);
}

static enum model_says sliding_ask(const struct model_rule *rule, const struct model_bucket *b,
				   u64 utc_ns, u64 cost)
{
	return sliding_used(rule, b, utc_ns) + cost <= rule->capacity ? MODEL_PASS : MODEL_DROP;
}

static void sliding_charged(const struct model_rule *rule, struct model_bucket *b, u64 utc_ns,
			    u64 cost)
{
	*b = sliding_at(rule, b, utc_ns);
	b->used += cost;
}

/* ------------------------------------------------------------------ window counters */

/* The buckets at `utc`. A clock set back by more than all of them begins again. */
static struct model_bucket counters_at(const struct model_rule *rule, const struct model_bucket *b,
				       u64 utc_ns)
{
	u64 number = utc_ns / (rule->period_ns / MODEL_BUCKETS);
	struct model_bucket at = *b;

	if (!at.seen || at.number > number + MODEL_BUCKETS) {
		at = (struct model_bucket){ .seen = true, .number = number };
		return at;
	}
	for (u32 steps = 0; at.number < number && steps < MODEL_BUCKETS; steps++, at.number++) {
		for (u32 i = MODEL_BUCKETS - 1; i; i--)
			at.count[i] = at.count[i - 1];
		at.count[0] = 0;
	}
	if (at.number < number)
		at.number = number;
	return at;
}

static u64 counters_sum(const struct model_rule *rule, const struct model_bucket *b, u64 utc_ns)
{
	struct model_bucket at = counters_at(rule, b, utc_ns);
	u64 sum = 0;

	for (u32 i = 0; i < MODEL_BUCKETS; i++)
		sum += at.count[i];
	return sum;
}

static enum model_says counters_ask(const struct model_rule *rule, const struct model_bucket *b,
				    u64 utc_ns, u64 cost)
{
	return counters_sum(rule, b, utc_ns) + cost <= rule->capacity ? MODEL_PASS : MODEL_DROP;
}

static void counters_charged(const struct model_rule *rule, struct model_bucket *b, u64 utc_ns,
			     u64 cost)
{
	*b = counters_at(rule, b, utc_ns);
	b->count[0] += cost;
}

/* ------------------------------------------------------------------ each of them */

enum model_says model_ask(const struct model_rule *rule, struct model_bucket *bucket,
			  struct sl_now now, u64 cost)
{
	if (sl_algo_is_count(rule->algo))
		return window_ask(rule, bucket, now.utc_ns, cost);
	if (rule->algo == SL_ALGO_SLIDING_WINDOW)
		return sliding_ask(rule, bucket, now.utc_ns, cost);
	if (rule->algo == SL_ALGO_WINDOW_COUNTERS)
		return counters_ask(rule, bucket, now.utc_ns, cost);
	return tokens_ask(rule, bucket, now.mono_ns, cost);
}

u64 model_wait(const struct model_rule *rule, const struct model_bucket *bucket, u64 cost)
{
	s128 missing = tokens(rule, cost) - bucket->most;

	if (!sl_algo_is_bucket(rule->algo) || cost > rule->capacity || missing <= 0)
		return 0;
	return (u64)((missing + rule->count - 1) / rule->count);
}

void model_charged(const struct model_rule *rule, struct model_bucket *bucket, struct sl_now now,
		   u64 cost)
{
	if (sl_algo_is_count(rule->algo))
		window_charged(rule, bucket, now.utc_ns, cost);
	else if (rule->algo == SL_ALGO_SLIDING_WINDOW)
		sliding_charged(rule, bucket, now.utc_ns, cost);
	else if (rule->algo == SL_ALGO_WINDOW_COUNTERS)
		counters_charged(rule, bucket, now.utc_ns, cost);
	else
		tokens_charged(rule, bucket, now.mono_ns, cost);
}

void model_refused(const struct model_rule *rule, struct model_bucket *bucket, struct sl_now now,
		   u64 cost)
{
	if (sl_algo_is_bucket(rule->algo))
		tokens_refused(rule, bucket, now.mono_ns, cost);
}

void model_change(const struct model_rule *from, const struct model_rule *to,
		  struct model_bucket *bucket, struct sl_now now)
{
	if (sl_algo_is_bucket(to->algo))
		tokens_change(from, to, bucket, now.mono_ns);
}

void model_swept(const struct model_rule *rule, struct model_bucket *bucket, struct sl_now now)
{
	if (sl_algo_is_count(rule->algo) && bucket->seen &&
	    window_at(rule, bucket, now.utc_ns).end_ns != bucket->end_ns &&
	    !window_at(rule, bucket, now.utc_ns).used)
		bucket->seen = false;
	if (rule->algo == SL_ALGO_SLIDING_WINDOW && !sliding_used(rule, bucket, now.utc_ns))
		bucket->seen = false;
	if (rule->algo == SL_ALGO_WINDOW_COUNTERS && !counters_sum(rule, bucket, now.utc_ns))
		bucket->seen = false;
}

/* ------------------------------------------------------------------ the log */

void model_log_admit(const struct model_rule *rule, struct model_log *log, struct sl_now now,
		     u64 cost)
{
	if (!log->started) {
		log->started = true;
		log->first_ns = log->last_ns = now.mono_ns;
	}
	log->excess -= (s128)(now.mono_ns - log->last_ns) * rule->count;
	log->excess = max_s128(0, log->excess) + tokens(rule, cost);
	log->worst = max_s128(log->worst, log->excess);
	log->last_ns = now.mono_ns;
	log->admitted += cost;

	if (now.utc_ns >= log->window_end_ns) {
		log->window_end_ns = now.utc_ns - now.utc_ns % rule->period_ns + rule->period_ns;
		log->in_window = 0;
	}
	log->in_window += cost;
	if (log->in_window > log->worst_window)
		log->worst_window = log->in_window;
}

u64 model_log_worst(const struct model_rule *rule, const struct model_log *log)
{
	return (u64)((log->worst + rule->period_ns - 1) / rule->period_ns);
}

u64 model_refill(const struct model_rule *rule, u64 ns)
{
	return (u64)((s128)ns * rule->count / rule->period_ns);
}
