/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sources.h - carries what the HTTP tier has learned about sources to the packet tier.
 *
 *     workers -> aggregate.c -> users.c, active.c, push.c -> sources_budget.c: overrides
 *                                                          -> dp_push.h: push-downs
 *
 * Knows: both tiers' view of a source, the running configuration. Does not know: workers, other
 * nodes, commands. May use: every room below control but request/server and the frontends, and
 * control/running.
 *
 * Everything runs on the main thread, in a tick of a fifth of a second. The pointer is NULL
 * without an HTTP tier.
 */
#ifndef SLUICE_MITIGATION_SOURCES_H
#define SLUICE_MITIGATION_SOURCES_H

#include <event2/event.h>

#include "control/running/running.h"
#include "lib/exposition.h"
#include "request/mitigation/active.h"
#include "request/mitigation/budget.h"
#include "request/mitigation/push.h"

struct sources {
	struct running_part part; /* first: a part is cast to its struct */
	struct running *running;
	struct http_def *def; /* a copy of the section in force; NULL: none yet */
	const struct ruleset *rules;
	struct aggregate *aggregate; /* the workers' end: http_tier.aggregate */
	struct users *users;
	struct push *push;
	struct active active;  /* requests, of the last 5 to 10 seconds */
	struct active refused; /* refusals, of the last 5 to 10 minutes */
	u64 paced_ns;	       /* of the last aggregate_pace() */
	u64 lost;	       /* aggregate_lost() then */
	struct event *tick, *wake;
	bool watching;	      /* the packet tier records established sources */
	bool adopted;	      /* push-downs of an earlier daemon were restored */
	u64 expired_ns;	      /* of the last removal of expired push-downs */
	u64 guard_generation; /* of the rules that push-downs were last checked against */
	u64 logged_s;	      /* log lines: the second, and their number in it */
	u32 logged, suppressed;
	/* sources_budget.c */
	struct budgets budgets; /* in force */
	u64 budgets_ns;		/* in force since */
	u64 install_ns;		/* duration of the last change */
	bool budgets_failed;	/* already logged */
};

/*
 * Creates it, for `workers` workers and about `room` users behind sources. Before workers run: they
 * write to (*ret)->aggregate.
 */
int sources_start(struct running *run, struct event_base *base, u32 workers, u64 room,
		  struct sources **ret, struct sl_err *err);
/*
 * The configuration or the rule set was replaced: `rules` must live until the next call or
 * sources_close().
 */
void sources_configure(struct sources *s, const struct http_def *def, const struct ruleset *rules);
void sources_close(struct sources *s);

/* Processes the workers' notes, so that the state is current. */
void sources_drain(struct sources *s);
/* Bytes of a client as a JSON string (out_utf8()); a new reference. */
json_t *sources_text(const char *bytes, size_t len, bool cut);

/* {"users", "well_behaved", "requests", "budget_pps", "push_down"} of a source, or NULL. */
json_t *sources_show(struct sources *s, const struct sl_prefix *source);
json_t *sources_push_to_json(struct sources *s, const struct push_entry *entry);
void sources_metrics(struct sources *s, struct exposition *e);

/* ---- sources_budget.c ---- */

/* After each pass over the users: computes the overrides of source_budget.limit. */
void sources_budget(struct sources *sources, u64 now_ns);
/* Adds the budgets in force to a policy that is about to replace the running one. */
void sources_derive(struct running_part *part, struct policy *policy);

#endif
