/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sources.h - what the HTTP tier knows of sources, carried to the packet tier.
 *
 *     workers -> aggregate.c -> users.c, refused.c, push.c -> sources_budget.c: overrides
 *                                                          -> dp_push.h: push-downs
 *
 * Knows: both tiers' view of a source, the running configuration. Does not know: workers, other
 * nodes, commands. May use: every room below control but request/server and the frontends, and
 * control/running.
 *
 * All of it is on the main thread, in a tick of a fifth of a second. The pointer is NULL where
 * there is no HTTP tier.
 */
#ifndef SLUICE_MITIGATION_SOURCES_H
#define SLUICE_MITIGATION_SOURCES_H

#include <event2/event.h>

#include "control/running/running.h"
#include "lib/exposition.h"
#include "request/mitigation/budget.h"
#include "request/mitigation/push.h"
#include "request/mitigation/refused.h"

struct sources {
	struct running_part part;	/* first: a part is its sources */
	struct running *running;
	struct http_def *def;		/* a copy of what is in force; NULL: nothing yet */
	const struct ruleset *rules;
	struct aggregate *aggregate;	/* the workers' end: http_tier.aggregate */
	struct users *users;
	struct push *push;
	struct refused refused;
	struct event *tick, *wake;
	bool watching;			/* the packet tier notes whom it sees */
	bool adopted;			/* what a daemon before left in force is known */
	u64 expired_ns;			/* when ended push-downs were last taken out */
	u64 guard_generation;		/* of the rules that push-downs were last held against */
	u64 told_s;			/* lines of the log: the second, and how many in it */
	u32 told, untold;
	/* sources_budget.c */
	struct budgets budgets;		/* in force */
	u64 budgets_ns;			/* since when */
	u64 install_ns;			/* how long the last change took */
	bool budgets_failed;		/* said so already */
};

/*
 * Makes it, for so many workers and about so many users behind sources. Before workers run: they
 * write to (*ret)->aggregate.
 */
int sources_start(struct running *run, struct event_base *base, u32 workers, u64 room,
		  struct sources **ret, struct sl_err *err);
/*
 * There is another configuration, or another rule set: `rules` lives until the next call or
 * sources_close().
 */
void sources_configure(struct sources *s, const struct http_def *def, const struct ruleset *rules);
void sources_close(struct sources *s);

/* Empties the workers' notes into what is known: before somebody asks. */
void sources_drain(struct sources *s);
/* Bytes of a client as text that harms no terminal; a new reference. */
json_t *sources_text(const char *bytes, size_t len, bool cut);

/* {"users", "well_behaved", "requests", "budget_pps", "push_down"} of a source, or NULL. */
json_t *sources_show(struct sources *s, const struct sl_prefix *source);
json_t *sources_push_to_json(struct sources *s, const struct push_entry *entry);
void sources_metrics(struct sources *s, struct exposition *e);

/* ---- sources_budget.c ---- */

/* After each pass over the users: what the overrides of source_budget.limit should be. */
void sources_budget(struct sources *sources, u64 now_ns);
/* Puts those in force into a policy that is about to take the place of the running one. */
void sources_derive(struct running_part *part, struct policy *policy);

#endif
