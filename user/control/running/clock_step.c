// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* clock_step.c - see clock_step.h. */
#include "control/running/clock_step.h"

#include "control/running/entries.h"
#include "control/running/feeds.h"
#include "control/running/history.h"
#include "control/running/rules.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "packet/observe/observe.h"

static void move(u64 *utc_ns, s64 step_ns)
{
	if (*utc_ns)
		*utc_ns += (u64)step_ns;
}

/* ------------------------------------------------------------------ live changes */

#define UNTIL "until_utc_ns"
#define MOVED "moved" /* lists share their operations: each is moved once */

static void move_operations(const json_t *live, s64 step_ns)
{
	json_t *op;
	size_t i;

	json_array_foreach(live, i, op) {
		json_int_t until = json_integer_value(json_object_get(op, UNTIL));

		if (!until || json_object_get(op, MOVED))
			continue;
		json_object_set_new(op, UNTIL, json_integer(until + step_ns));
		json_object_set_new(op, MOVED, json_true());
	}
}

static void moved(const json_t *live)
{
	json_t *op;
	size_t i;

	json_array_foreach(live, i, op)
		json_object_del(op, MOVED);
}

static void move_live(struct running *run, s64 step_ns)
{
	json_t *live[] = { run->live, run->pending.before.live, run->requests.live };

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		move_operations(live[i], step_ns);
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		moved(live[i]);
}

/* What rollback would restore. */
static void move_history(const struct running *run, s64 step_ns)
{
	struct sl_err err;
	json_t *state;

	for (u32 n = run->history_top; n && n + HISTORY_MAX > run->history_top; n--) {
		json_t *changes;

		if (history_state_read(run->state_dir, n, &state, &err) < 0)
			continue;
		changes = json_object_get(state, "changes");
		move_operations(changes, step_ns);
		moved(changes);
		if (history_state_write(run->state_dir, n, state, &err) < 0)
			log_warn(
				"%s: the clock was set, and rollback may restore blocks with a wrong end",
				err.message);
		json_decref(state);
	}
}

/* ------------------------------------------------------------------ the rules in force */

/* True if the file has a date, of which the compiled rules have the time until then. */
static bool move_policy(struct policy *policy, s64 step_ns)
{
	bool dated = false;

	for (int kind = 0; policy && kind < LIST_KIND_COUNT; kind++) {
		struct list_def *list = &policy->list[kind];

		for (size_t i = 0; i < list->count; i++) {
			if (list->entry[i].pos.line)
				dated |= list->entry[i].until_utc_ns != 0;
			else
				move(&list->entry[i].until_utc_ns, step_ns);
		}
		for (size_t i = 0; i < list->set_count; i++)
			if (!list->set[i].entry.pos.line)
				move(&list->set[i].entry.until_utc_ns, step_ns);
	}
	return dated;
}

bool clock_step_check(struct running *run)
{
	s64 step_ns = clock_follow();
	bool dated;

	if (!step_ns)
		return false;
	log_warn("the clock was set %s by %lld s: what ends after a time still does",
		 step_ns < 0 ? "back" : "forward",
		 (long long)(step_ns < 0 ? -step_ns : step_ns) / (long long)SL_NS_PER_SEC);
	move_live(run, step_ns);
	move_history(run, step_ns);
	move_policy(run->pending.before.running, step_ns);
	dated = move_policy(run->policy, step_ns);
	move(&run->pending.deadline_utc_ns, step_ns);
	entries_step(run, step_ns);
	feeds_step(run, step_ns);
	observe_step(run->observe, step_ns);
	if (dated)
		rules_refresh(run);
	rules_write(run);
	return true;
}
