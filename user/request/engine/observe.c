// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * observe.c - counters of the HTTP tier; see observe.h.
 *
 * A counter has one writer, its worker, and a scrape sums it over all workers: aligned integers,
 * written and read whole. Series of rules are in chunks that a worker allocates at their first use,
 * so a reload with more rules moves nothing that a reader uses.
 */
#include "request/engine/observe.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/clock.h"
#include "request/engine/decision_log.h"
#include "request/engine/request_rules.h"
#include "request/engine/value_series.h"

#define CHUNK 256	     /* series */
#define CHUNKS 1024	     /* a quarter of a million rules; those beyond are not counted */
#define REQUEST_CHUNK CHUNKS /* of rules of limits in requests */
#define CODES 64

_Static_assert(REQUEST_RULES_MAX <= CHUNK, "they have one chunk");

struct chunk {
	struct observe_series series[CHUNK];
};

struct worker_stats {
	struct chunk *chunk[CHUNKS + 1];
	u64 no_rule;
	u64 beyond;
	u64 units[UNITS_COUNT];
	struct observe_times times;
	u64 requests[API_COUNT][CODES];
	struct value_table *values; /* NULL: no series by value */
};

/* One writer: no locked instruction is needed, only that readers see whole integers. */
static void add(u64 *counter, u64 n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static u64 get(const u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

struct worker_stats *worker_stats_new(void)
{
	return calloc(1, sizeof(struct worker_stats));
}

void worker_stats_values(struct worker_stats *stats, u32 max)
{
	if (max)
		stats->values = value_table_new(max);
}

void worker_stats_free(struct worker_stats *stats)
{
	if (!stats)
		return;
	for (u32 i = 0; i <= REQUEST_CHUNK; i++)
		free(stats->chunk[i]);
	value_table_free(stats->values);
	free(stats);
}

/* ------------------------------------------------------------------ codes */

static const short http_code[] = {
	200, 202, 204, 400, 401, 403, 404, 405, 408, 411, 413,
	414, 415, 417, 421, 422, 429, 431, 500, 501, 503, 505,
};
#define HTTP_CODES (sizeof(http_code) / sizeof(http_code[0]))
#define OTHER (17 + HTTP_CODES)
_Static_assert(OTHER < CODES, "codes have room");

static u32 code_number(int code)
{
	if (code >= 0 && code < 17)
		return (u32)code;
	for (u32 i = 0; i < HTTP_CODES; i++)
		if (http_code[i] == code)
			return 17 + i;
	return OTHER;
}

bool observe_code(u32 number, int *ret_code)
{
	if (number >= OTHER)
		return false;
	*ret_code = number < 17 ? (int)number : http_code[number - 17];
	return true;
}

void observe_request_count(struct engine_thread *thread, enum request_api api, int code, u64 count)
{
	add(&thread->stats->requests[api][code_number(code)], count);
}

void observe_request(struct engine_thread *thread, enum request_api api, int code)
{
	observe_request_count(thread, api, code, 1);
}

const char *request_api_name(enum request_api api)
{
	static const char *const name[API_COUNT] = {
#define LABEL(id, label) [id] = label,
		REQUEST_APIS(LABEL)
	};

	return name[api];
}

/* ------------------------------------------------------------------ decisions */

static void note_time(struct observe_times *times, u64 took_ns)
{
	u64 us = took_ns / 1000 + (took_ns % 1000 != 0);
	u32 bucket = us <= 1 ? 0 : 64 - (u32)__builtin_clzll(us - 1);

	add(&times->count[bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1], 1);
	add(&times->sum_ns, took_ns);
}

/* False: it is beyond those that are counted. */
static bool chunk_number(u32 metric, u32 *ret)
{
	*ret = metric & REQUEST_RULE_BIT ? REQUEST_CHUNK : metric / CHUNK;
	return metric & REQUEST_RULE_BIT || *ret < CHUNKS;
}

static struct observe_series *series_of(struct worker_stats *stats, u32 metric)
{
	struct chunk *chunk;
	u32 number;

	if (!chunk_number(metric, &number))
		return NULL;
	chunk = stats->chunk[number];
	if (!chunk) {
		chunk = calloc(1, sizeof(*chunk));
		__atomic_store_n(&stats->chunk[number], chunk, __ATOMIC_RELEASE);
	}
	return chunk ? &chunk->series[metric % CHUNK] : NULL;
}

static enum decision_verdict verdict_of(const struct request *request,
					const struct response *response,
					const struct response_status *status)
{
	if (request->peek)
		return DECISION_PEEK;
	if (response->code == RESPONSE_ERROR || response->code == RESPONSE_CLOSED)
		return DECISION_ERROR;
	if (status->shadow)
		return DECISION_SHADOW;
	if (status->over && status->ban_left_ns && !status->ban_began)
		return DECISION_BANNED;
	if (status->over)
		return DECISION_OVER_LIMIT;
	if (status->soft)
		return DECISION_SOFT;
	return response->delayed_ns ? DECISION_DELAYED : DECISION_OK;
}

/* As envoyproxy/ratelimit's near_limit: allowed, with 80% of the limit or more used. */
static bool is_near(const struct response_status *status)
{
	return !status->over && !status->unlimited && status->limit &&
	       status->remaining * 5 <= status->requests;
}

static void count(struct observe_series *series, enum decision_verdict verdict,
		  const struct response_status *status)
{
	add(&series->verdict[verdict], 1);
	if (is_near(status))
		add(&series->near, 1);
	if (status->full)
		add(&series->full, 1);
	if (status->unavailable)
		add(&series->unavailable, 1);
	if (status->ban_began)
		add(&series->bans, 1);
}

static void count_candidate(struct worker_stats *stats, const struct request *request,
			    const struct response_candidate *candidate)
{
	struct observe_series *series = series_of(stats, candidate->limit->metric);

	if (!series)
		return;
	add(&series->verdict[request->peek     ? DECISION_PEEK
			     : candidate->over ? DECISION_SHADOW
					       : DECISION_OK],
	    1);
	if (!candidate->over && candidate->r * 5 <= candidate->q)
		add(&series->near, 1);
	if (candidate->full)
		add(&series->full, 1);
}

static void count_lately(struct value_series *value, enum decision_verdict verdict,
			 const struct request_descriptor *descriptor,
			 const struct response_status *status)
{
	bool over = verdict == DECISION_OVER_LIMIT || verdict == DECISION_SHADOW;

	if (!descriptor->refund && status->window_ns &&
	    (over || verdict == DECISION_OK || verdict == DECISION_SOFT ||
	     verdict == DECISION_DELAYED))
		value_series_note(value, status, over, descriptor->hits, clock_utc_ns());
}

/* With its value, if the rule has that on and there is room, else without. */
static void count_status(struct worker_stats *stats, const struct request *request, u32 i,
			 enum decision_verdict verdict, const struct response_status *status)
{
	struct value_series *value = NULL;
	struct observe_series *series;

	if (stats->values && i < request->count && value_series_wanted(status->rule))
		value = value_series(stats->values, status->rule, &request->descriptor[i]);
	series = value ? &value->series : series_of(stats, status->rule->metric);
	if (series)
		count(series, verdict, status);
	if (value)
		count_lately(value, verdict, &request->descriptor[i], status);
}

void observe(struct engine_thread *thread, const struct request *request,
	     const struct response *response, u64 took_ns)
{
	struct worker_stats *stats = thread->stats;
	const struct engine *engine = thread->engine;

	note_time(&stats->times, took_ns);
	if (engine->hook.decided)
		engine->hook.decided(engine->hook.arg, thread->index, request, response);
	if (__atomic_load_n(&engine->log_every, __ATOMIC_ACQUIRE))
		decision_log_note(thread, request, response);
	add(&stats->units[UNITS_TAKEN], response->permit.count);
	for (u32 i = 0; i < response_statuses(response); i++) {
		const struct response_status *status = &response->status[i];

		if (!status->rule) {
			add(&stats->no_rule, 1);
			continue;
		}
		count_status(stats, request, i, verdict_of(request, response, status), status);
		for (u32 k = 0; k < status->candidates; k++)
			count_candidate(stats, request, &status->candidate[k]);
	}
}

void observe_released(struct engine_thread *thread, u32 units, u32 released)
{
	add(&thread->stats->units[UNITS_RELEASED], released);
	add(&thread->stats->units[UNITS_UNKNOWN], units - released);
}

void observe_beyond(struct engine_thread *thread, const struct request *request)
{
	add(&thread->stats->beyond, 1);
	undecided_log(&thread->engine->undecided, request->api, UNDECIDED_COUNT,
		      "request refused as over the limit, "
		      "because it exceeds a bound",
		      request->beyond, clock_mono_ns());
}

/* ------------------------------------------------------------------ sums */

void observe_times(const struct engine *engine, struct observe_times *ret)
{
	*ret = (struct observe_times){ .sum_ns = 0 };
	for (u32 i = 0; i < engine->thread_count; i++) {
		const struct observe_times *times = &engine->thread[i].stats->times;

		for (u32 b = 0; b < HISTOGRAM_BUCKETS; b++)
			ret->count[b] += get(&times->count[b]);
		ret->sum_ns += get(&times->sum_ns);
	}
}

static void add_series(struct observe_series *to, const struct observe_series *from)
{
	for (u32 v = 0; v < DECISION_COUNT; v++)
		to->verdict[v] += get(&from->verdict[v]);
	to->near += get(&from->near);
	to->full += get(&from->full);
	to->unavailable += get(&from->unavailable);
	to->bans += get(&from->bans);
}

void observe_series(const struct engine *engine, u32 metric, struct observe_series *ret)
{
	u32 number;

	*ret = (struct observe_series){ .near = 0 };
	if (!chunk_number(metric, &number))
		return;
	for (u32 i = 0; i < engine->thread_count; i++) {
		const struct chunk *chunk =
			__atomic_load_n(&engine->thread[i].stats->chunk[number], __ATOMIC_ACQUIRE);

		if (chunk)
			add_series(ret, &chunk->series[metric % CHUNK]);
	}
}

/* The sum of a counter at this offset of struct worker_stats. */
static u64 sum_of(const struct engine *engine, size_t offset)
{
	u64 sum = 0;

	for (u32 i = 0; i < engine->thread_count; i++)
		sum += get((const u64 *)(const void *)((const char *)engine->thread[i].stats +
						       offset));
	return sum;
}

u64 observe_requests(const struct engine *engine, enum request_api api, int code)
{
	return sum_of(engine, offsetof(struct worker_stats, requests[api][code_number(code)]));
}

u64 observe_no_rule(const struct engine *engine)
{
	return sum_of(engine, offsetof(struct worker_stats, no_rule));
}

u64 observe_units(const struct engine *engine, enum observe_units what)
{
	return sum_of(engine, offsetof(struct worker_stats, units[what]));
}

u64 observe_beyond_calls(const struct engine *engine)
{
	return sum_of(engine, offsetof(struct worker_stats, beyond));
}

/* ------------------------------------------------------------------ values */

struct gather {
	struct observe_value *value; /* all that any worker has; then each once, in order */
	size_t count;
	u64 utc_ns;
};

/* Of two workers; if their periods differ, the limit has changed, and one of them has not met it
 * yet. */
static void add_lately(struct observe_lately *to, const struct observe_lately *from)
{
	if (!to->period_ns)
		*to = *from;
	else if (to->period_ns == from->period_ns)
		for (int i = 0; i < 2; i++) {
			to->passed[i] += from->passed[i];
			to->refused[i] += from->refused[i];
		}
	if (!to->requests) {
		to->requests = from->requests;
		to->window_ns = from->window_ns;
		to->capacity = from->capacity;
	}
}

static void gather(void *arg, u32 index, u32 metric, const char *label,
		   const struct value_series *from)
{
	struct gather *all = arg;
	struct observe_value *to;

	if (append(all->value, all->count,
		   (struct observe_value){ .metric = metric, .order = index }))
		return;
	to = &all->value[all->count - 1];
	snprintf(to->label, sizeof(to->label), "%s", label);
	add_series(&to->series, &from->series);
	value_series_lately(from, all->utc_ns, &to->lately);
}

static int by_metric_and_label(const void *a, const void *b)
{
	const struct observe_value *one = a, *other = b;

	if (one->metric != other->metric)
		return one->metric < other->metric ? -1 : 1;
	return strcmp(one->label, other->label);
}

static int by_order(const void *a, const void *b)
{
	const struct observe_value *one = a, *other = b;

	return one->order < other->order ? -1 : one->order > other->order;
}

/* Sorts, and those that are alike become one. */
static size_t merge(struct observe_value *value, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(value, count, sizeof(*value), by_metric_and_label);
	for (size_t i = 0; i < count; i++) {
		struct observe_value *last = kept ? &value[kept - 1] : NULL;

		if (!last || by_metric_and_label(last, &value[i])) {
			value[kept++] = value[i];
			continue;
		}
		if (last->order > value[i].order)
			last->order = value[i].order;
		add_series(&last->series, &value[i].series);
		add_lately(&last->lately, &value[i].lately);
	}
	return kept;
}

/*
 * Each worker is bounded. Where workers have different values, the last ones beyond max_values are
 * summed as "other" of their rule. A value that was exported once stays exported.
 */
size_t observe_values(const struct engine *engine, struct observe_value **ret)
{
	struct gather all = { .utc_ns = clock_utc_ns() };
	size_t count;

	for (u32 i = 0; i < engine->thread_count; i++)
		value_table_each(engine->thread[i].stats->values, gather, &all);
	count = merge(all.value, all.count);
	if (count > engine->max_values) {
		qsort(all.value, count, sizeof(*all.value), by_order);
		for (size_t i = engine->max_values; i < count; i++) {
			snprintf(all.value[i].label, sizeof(all.value[i].label), "other");
			all.value[i].lately = (struct observe_lately){ .period_ns = 0 };
		}
		count = merge(all.value, count);
	}
	*ret = all.value;
	return count;
}
