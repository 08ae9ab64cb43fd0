/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aggregate.h - notes of decisions about users and sources, from the workers to the main thread.
 *
 *     worker: aggregate_note() -> a ring of its own -> main thread: aggregate_drain()
 *
 * A note is small and of a fixed size, and a ring is bounded: if the main thread is late, notes
 * are lost and counted. That is harmless: a user is counted with the next request, and continuing
 * abuse is detected with the next refusal.
 */
#ifndef SLUICE_HTTP_AGGREGATE_H
#define SLUICE_HTTP_AGGREGATE_H

#include "request/engine/observe.h"
#include "request/rules/rule.h"
#include "request/mitigation/users.h"
#include "config/http_def.h"

#define AGGREGATE_RULES_MAX 64 /* of source_budget.user */
#define AGGREGATE_VALUE_MAX 64 /* bytes of a value that `user top` and `user list` show */
#define AGGREGATE_SAMPLES 1000 /* allowed requests noted in a second, of a worker */

struct aggregate;

int aggregate_new(u32 workers, struct aggregate **ret);
void aggregate_free(struct aggregate *aggregate); /* NULL is fine */

/*
 * Sets which rules name users and how sources are grouped in further notes. From the main thread;
 * workers may use a mixture of old and new settings for a moment.
 */
void aggregate_configure(struct aggregate *aggregate, const struct http_def *def,
			 const struct ruleset *rules);

/* engine_hook.decided: `arg` is the aggregate. */
void aggregate_note(void *arg, u32 thread, const struct request *request,
		    const struct response *response);

/* Readable when a ring is half full: drain before the next tick. */
int aggregate_fd(const struct aggregate *aggregate);

/*
 * A refusal of a user, under the rule that refused; or a request of one that was allowed: of these
 * about AGGREGATE_SAMPLES a second and worker, drawn at random, are noted, for `user list`.
 */
struct refusal_note {
	u64 rule_id;
	u32 rule_index; /* in the set that decided */
	u64 who;	/* hash of rule and values: the same for the same user */
	bool has_source, may_push;
	struct sl_prefix group, address;
	char value[AGGREGATE_VALUE_MAX]; /* of all entries: "a,b"; truncated, not terminated */
	u32 value_len;			 /* the full length, which may exceed value */
	u32 stands_for;			 /* so many requests; of a refusal 1 */
	u8 limits;			 /* bit i: the rule's i-th limit refused it */
};

struct aggregate_sink {
	void (*user)(const struct user_note *note, void *arg);
	void (*refused)(const struct refusal_note *note, void *arg);
	void (*allowed)(const struct refusal_note *note, void *arg);
	void *arg;
};
void aggregate_drain(struct aggregate *aggregate, const struct aggregate_sink *sink);

/* Adapts how many allowed requests one sample stands for to their number in `span_ns`, just
 * ended. */
void aggregate_pace(struct aggregate *aggregate, u64 span_ns);

/* Notes lost to full rings since the start. */
u64 aggregate_lost(const struct aggregate *aggregate);

/* An address as push_down.prefix groups it. */
struct sl_prefix aggregate_group(const struct sl_prefix *address, const u8 len[SL_FAMILY_COUNT]);

#endif
