/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observe.h - records each decision: counters, the decision log, and the engine's hook (users
 * behind sources).
 *
 * observe() runs on the engine's thread right after a decision, within its RCU section, and
 * costs tens of nanoseconds: counters are the worker's own. What the main thread needs goes through
 * a bounded ring of the worker; an entry that finds it full is dropped and counted.
 */
#ifndef SLUICE_HTTP_OBSERVE_H
#define SLUICE_HTTP_OBSERVE_H

#include "lib/histogram.h"
#include "request/engine/engine.h"

/* A series of sluice_decisions_total and related metrics, by rule->metric. */
enum decision_verdict {
	DECISION_OK,
	DECISION_OVER_LIMIT,
	DECISION_SOFT,
	DECISION_SHADOW,
	DECISION_DELAYED,
	DECISION_PEEK,
	DECISION_NO_RULE,
	DECISION_ERROR,
	DECISION_BANNED,
	DECISION_COUNT,
};

struct worker_stats *worker_stats_new(void); /* NULL: no memory */
/* Makes room for so many values of rules with detailed_metric or value_to_metric; 0: no series. */
void worker_stats_values(struct worker_stats *stats, u32 max);
void worker_stats_free(struct worker_stats *stats); /* NULL is fine */

void observe(struct engine_thread *thread, const struct request *request,
	     const struct response *response, u64 took_ns);

/* A request beyond what can be decided was refused: counts it, and logs the first of each kind and
 * minute. */
void observe_beyond(struct engine_thread *thread, const struct request *request);

/* The end of a request that held `units`, of which `released` were still in flight. */
void observe_released(struct engine_thread *thread, u32 units, u32 released);

/*
 * A frontend has sent a response: `code` is the protocol's own (an HTTP status; of gRPC 0 to
 * 16; of SPOE and syslog 0, or 1 for what was malformed; of syslog 2 for what was lost).
 */
void observe_request(struct engine_thread *thread, enum request_api api, int code);
void observe_request_count(struct engine_thread *thread, enum request_api api, int code, u64 count);

/* "v1_check"...: its label. */
const char *request_api_name(enum request_api api);

/* ------------------------------------------------------------------ the main thread's part */

/* Sums over workers, while they go on. */
struct observe_times {
	u64 count[HISTOGRAM_BUCKETS]; /* not cumulative */
	u64 sum_ns;
};
void observe_times(const struct engine *engine, struct observe_times *ret);

struct observe_series {
	u64 verdict[DECISION_COUNT];
	u64 near;	 /* within the limit, but 80% of it used */
	u64 full;	 /* no room for its counter: on_full decided */
	u64 unavailable; /* no reply of Redis: on_store_failure decided */
	u64 bans;	 /* that began */
};
void observe_series(const struct engine *engine, u32 metric, struct observe_series *ret);
/*
 * What one value sent lately, in hits: in periods of a minute, or of its rule's longest window if
 * that is longer, aligned to UTC. [0] is the current period, [1] the one before it.
 */
struct observe_lately {
	u64 period_ns; /* 0: nothing was counted */
	u64 number;    /* of the current period */
	u64 passed[2], refused[2];
	/* Of the limit that refused last; 0: none did. */
	u64 requests, window_ns, capacity;
};
/*
 * What was counted with its value, not in observe_series(): each once, in order of metric and
 * label. An array to be freed.
 */
struct observe_value {
	u32 metric;
	u32 order; /* in which a worker met it first */
	char label[68];
	struct observe_series series;
	struct observe_lately lately; /* of "other": nothing */
};
size_t observe_values(const struct engine *engine, struct observe_value **ret);
/* Units of concurrency, of all rules. */
enum observe_units {
	UNITS_TAKEN,	/* by requests that were admitted */
	UNITS_RELEASED, /* by the report of their end */
	UNITS_UNKNOWN,	/* the report came again, or after the unit's time */
	UNITS_COUNT,
};
u64 observe_units(const struct engine *engine, enum observe_units what);
/* Descriptors that no rule matched. */
u64 observe_no_rule(const struct engine *engine);
/* Calls that were beyond what can be decided. */
u64 observe_beyond_calls(const struct engine *engine);
u64 observe_requests(const struct engine *engine, enum request_api api, int code);
/* Every code that observe_requests() accepts, by number: false at the end. */
bool observe_code(u32 number, int *ret_code);

#endif
