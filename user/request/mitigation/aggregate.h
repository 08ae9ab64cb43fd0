/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aggregate.h - what decisions tell about users and sources, on its way from the workers to the
 * main thread.
 *
 *     worker: aggregate_note() -> a ring of its own -> main thread: aggregate_drain()
 *
 * A note is small and of a fixed size, a ring is bounded: where the main thread is late, notes
 * are lost and counted, and that is harmless. A user counts by his next request, abuse that goes
 * on is seen a moment later.
 */
#ifndef SLUICE_HTTP_AGGREGATE_H
#define SLUICE_HTTP_AGGREGATE_H

#include "request/engine/observe.h"
#include "request/rules/rule.h"
#include "request/mitigation/users.h"
#include "config/http_def.h"

#define AGGREGATE_RULES_MAX 64		/* of source_budget.user */
#define AGGREGATE_VALUE_MAX 64		/* bytes of a value that `user top` shows */

struct aggregate;

int aggregate_new(u32 workers, struct aggregate **ret);
void aggregate_free(struct aggregate *aggregate);	/* NULL is fine */

/*
 * What the workers are to tell, from now on: who is a user, how sources are grouped. From the
 * main thread; workers may see a mixture of before and after for a moment.
 */
void aggregate_configure(struct aggregate *aggregate, const struct http_def *def,
			 const struct ruleset *rules);

/* engine_hook.decided: `arg` is the aggregate. */
void aggregate_note(void *arg, u32 thread, const struct request *request,
		    const struct response *response);

/* Readable where a ring is half full: drain before the next tick. */
int aggregate_fd(const struct aggregate *aggregate);

/* A refusal: of a user, under the rule that refused. */
struct refusal_note {
	u64 rule_id;
	u32 rule_index;			/* in the set that decided */
	u64 who;			/* rule and values: the same for the same user */
	bool has_source, may_push;
	struct sl_prefix group, address;
	char value[AGGREGATE_VALUE_MAX];	/* of the last entry; cut, and not terminated */
	u32 value_len;			/* as it is, maybe more than value holds */
};

struct aggregate_sink {
	void (*user)(const struct user_note *note, void *arg);
	void (*refused)(const struct refusal_note *note, void *arg);
	void *arg;
};
void aggregate_drain(struct aggregate *aggregate, const struct aggregate_sink *sink);

/* Notes that found their ring full, since the start. */
u64 aggregate_lost(const struct aggregate *aggregate);

/* An address as push_down.prefix groups it. */
struct sl_prefix aggregate_group(const struct sl_prefix *address, const u8 len[SL_FAMILY_COUNT]);

#endif
