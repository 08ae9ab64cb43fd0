// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sources.c - see sources.h.
 *
 * This file decides which sources are never pushed down, from the configuration and the kernel's
 * state; push.c has the rest. Exempt sources are not checked again while a push-down is in force:
 * in the data path exemptions come first in any case.
 */
#include "control/mitigation/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "control/running/audit.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "packet/host/ifaces.h"
#include "packet/observe/observe.h"
#include "request/engine/request_rules.h"

#define TICK_US 200000
#define TICK_IDLE_US 1000000 /* nothing is watched: what other nodes publish expires */
#define PASS_TICKS 5	     /* one pass over all users a second */
#define SEEN_NS (10 * SL_NS_PER_SEC)
#define EXPIRE_NS (5 * SL_NS_PER_SEC)
#define LINES_A_SECOND 20

/* Room for pairs of a user and a source: as many as users, within reason. */
#define PAIRS_LEAST 16384
#define PAIRS_MOST 4000000

/* ------------------------------------------------------------------ callbacks of push.c */

static enum push_refusal push_guard(void *arg, const struct sl_prefix *group,
				    const struct sl_prefix *address, bool seen, u64 now_ns)
{
	const struct sources *s = arg;
	const struct running *run = s->running;

	if (!s->def)
		return PUSH_PROTECTED;
	if (!seen && s->guard_generation == run->generation)
		return PUSH_ALLOWED;
	if (protect_has(run->packets, group) ||
	    protect_meets(s->def->never_push_down, s->def->never_push_down_count, group) ||
	    (seen && protect_is_exempt(run->policy, group)))
		return PUSH_PROTECTED;
	if (seen &&
	    (!run->packets->dp || !dp_push_seen(run->packets->dp, address, now_ns, SEEN_NS)))
		return PUSH_UNSEEN;
	return PUSH_ALLOWED;
}

static void push_profile(void *arg, const struct sl_prefix *group, u64 now_ns,
			 struct source_profile *ret)
{
	users_profile(((struct sources *)arg)->users, group, now_ns, ret);
}

static u64 push_good_requests(void *arg)
{
	return users_good_requests(((struct sources *)arg)->users);
}

static u64 push_need(void *arg, const struct source_profile *profile)
{
	const struct http_def *def = ((struct sources *)arg)->def;

	return def ? budget_need_pps(&def->budget, profile) : 0;
}

static int push_put(void *arg, const struct push_down *push)
{
	struct packet_host *packets = ((struct sources *)arg)->running->packets;
	const struct dp_push dp_push = { .src = push->src,
					 .kind = push->kind,
					 .rate = push->rate,
					 .until_ns = push->until_ns,
					 .note = push->note };

	return packets->dp ? ifaces_put_push(packets, &dp_push) : -ENODEV;
}

static void push_del(void *arg, const struct sl_prefix *group)
{
	struct dp *dp = ((struct sources *)arg)->running->packets->dp;

	if (dp)
		dp_push_del(dp, group);
}

/* Bounds the log: a flood of sources must not cause a flood of lines. */
static bool sources_may_publish(struct sources *s)
{
	u64 second = clock_mono_ns() / SL_NS_PER_SEC;

	if (second != s->logged_s) {
		if (s->suppressed)
			log_info("push-down: %u more log lines were suppressed", s->suppressed);
		s->logged_s = second;
		s->logged = s->suppressed = 0;
	}
	if (s->logged == LINES_A_SECOND) {
		s->suppressed++;
		return false;
	}
	s->logged++;
	return true;
}

static void push_report(void *arg, const struct push_entry *entry, enum push_event event,
			enum push_refusal refusal)
{
	static const char *const event_name[] = { "begins", "goes up", "goes down", "ends",
						  "refused" };
	const struct push_step *step = &entry->steps[entry->step];
	struct sources *s = arg;
	char source[SL_PREFIX_TEXT], rate[96] = "";
	json_t *args;

	if (!sources_may_publish(s))
		return;
	sl_prefix_format(&entry->group, source, sizeof(source));
	if (step->kind == SL_PUSH_LIMIT && event != PUSH_REFUSED)
		rate_format(&entry->rate, rate, sizeof(rate));
	log_info("push-down of %s %s%s: %s%s%s (rule %s)%s%s", source, event_name[event],
		 entry->shadow ? " in shadow" : "", push_kind_name(step->kind), rate[0] ? " " : "",
		 rate, entry->rule, refusal == PUSH_ALLOWED ? "" : ": ",
		 refusal == PUSH_ALLOWED ? "" : push_refusal_name(refusal));
	if (event == PUSH_REFUSED)
		return;
	args = json_pack("{s:s, s:s, s:s, s:s, s:b}", "source", source, "event", event_name[event],
			 "step", push_kind_name(step->kind), "rule", entry->rule, "shadow",
			 entry->shadow);
	audit_write(s->running, NULL, "push-down", args, s->running->generation, NULL);
	json_decref(args);
}

/* ------------------------------------------------------------------ the tick */

static void sources_note_user(const struct user_note *note, void *arg)
{
	users_note(((struct sources *)arg)->users, note, clock_mono_ns());
}

/* The present rule, or NULL if it is gone. */
static const struct rule *sources_rule_of(const struct sources *s, const struct refusal_note *note)
{
	const struct ruleset *rules = s->rules;

	if (note->rule_index & REQUEST_RULE_BIT)
		return request_rule_index(s->running->requests.engine->ledger.request_rules,
					  note->rule_index);
	if (note->rule_index < rules->rule_count &&
	    rules->rule[note->rule_index]->id == note->rule_id)
		return rules->rule[note->rule_index];
	for (u32 i = 0; i < rules->rule_count; i++)
		if (rules->rule[i]->id == note->rule_id)
			return rules->rule[i];
	return NULL;
}

static void observe_value(struct sources *s, const struct refusal_note *note, const char *rule,
			  bool plain)
{
	bool cut = note->value_len > sizeof(note->value);
	json_t *text = sources_text(note->value, cut ? sizeof(note->value) : note->value_len, cut);

	observe_refused(s->running->observe, rule,
			json_string_value(text) ? json_string_value(text) : "", plain);
	json_decref(text);
}

static void sources_note_allowed(const struct refusal_note *note, void *arg)
{
	struct sources *s = arg;
	const struct rule *rule = sources_rule_of(s, note);
	char name[ACTIVE_RULE_TEXT];

	if (!rule)
		return;
	snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
	active_add(&s->active, note, false, name, clock_mono_ns());
}

static void sources_note_refused(const struct refusal_note *note, void *arg)
{
	struct sources *s = arg;
	const struct rule *rule = sources_rule_of(s, note);
	u64 now_ns = clock_mono_ns();
	char name[ACTIVE_RULE_TEXT];

	if (!rule)
		return;
	snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
	active_add(&s->refused, note, true, name, now_ns);
	active_add(&s->active, note, true, name, now_ns);
	observe_value(s, note, name, rule->values_plain);
	push_refused(s->push, note, rule, now_ns);
}

void sources_drain(struct sources *s)
{
	struct aggregate_sink sink = { sources_note_user, sources_note_refused,
				       sources_note_allowed, s };

	if (s && s->def)
		aggregate_drain(s->aggregate, &sink);
}

static void on_sources_wake(evutil_socket_t fd, short what, void *arg)
{
	sources_drain(arg);
}

static void on_sources_tick(evutil_socket_t fd, short what, void *arg)
{
	struct sources *s = arg;
	u64 now_ns;

	if (!s->def)
		return;
	sources_drain(s);
	now_ns = clock_mono_ns();
	aggregate_pace(s->aggregate, now_ns - s->paced_ns);
	s->paced_ns = now_ns;
	observe_not_noted(s->running->observe, OBSERVED_REFUSED, NULL,
			  aggregate_lost(s->aggregate) - s->lost);
	s->lost = aggregate_lost(s->aggregate);
	push_tick(s->push, now_ns);
	s->guard_generation = s->running->generation;
	if (users_pass(s->users, PASS_TICKS, now_ns))
		sources_budget(s, now_ns);
	if (s->running->packets->dp && now_ns - s->expired_ns >= EXPIRE_NS) {
		dp_pushes_expire(s->running->packets->dp, now_ns);
		s->expired_ns = now_ns;
	}
}

/* -------------------------------------------------------------- push-downs of an earlier daemon */

static void sources_adopt_steps(const struct sources *s, const struct dp_push *push, u64 now_ns,
				struct push_entry *entry)
{
	const struct rule *rule = NULL;
	u32 step = push->note & 15;

	/* The other node publishes it again in a few seconds. */
	if (push->note == PUSH_NOTE_THEIRS)
		strcpy(entry->node, "?");
	for (u32 i = 0; i < s->rules->rule_count && !rule; i++)
		if (s->rules->rule[i]->id << 4 == (push->note & ~15ULL) &&
		    s->rules->rule[i]->push.after)
			rule = s->rules->rule[i];
	if (rule && step < rule->push.step_count && rule->push.step[step].kind == push->kind) {
		snprintf(entry->rule, sizeof(entry->rule), "%s/%s", rule->domain, rule->path);
		memcpy(entry->steps, rule->push.step,
		       rule->push.step_count * sizeof(entry->steps[0]));
		entry->def = rule->push;
		entry->def.step = NULL; /* as in all entries: it owns its steps */
		entry->step = step;
		entry->rule_id = rule->id;
		return;
	}
	/* Its rule is gone, has other steps, or is another node's: the entry expires. */
	strcpy(entry->rule, entry->node[0] ? "(another node's)" : "(gone)");
	entry->steps[0] = (struct push_step){ push->kind, push->rate };
	entry->def = (struct push_def){ .after = 1,
					.within_ns = SL_NS_PER_SEC,
					.step_count = 1,
					.step_ns = push->until_ns - now_ns,
					.down_ns = push->until_ns - now_ns,
					.max_ns = push->until_ns - now_ns };
}

static void sources_adopt(struct sources *s)
{
	u64 now_ns = clock_mono_ns();
	struct dp_push *push = NULL;
	size_t count = 0, taken = 0;

	s->adopted = true;
	if (!s->running->packets->dp || dp_pushes(s->running->packets->dp, &push, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct push_entry entry = { .group = push[i].src,
					    .rate = push[i].rate,
					    .began_ns = now_ns,
					    .changed_ns = now_ns,
					    .abuse_ns = now_ns,
					    .until_ns = push[i].until_ns };

		if (push[i].until_ns <= now_ns)
			continue;
		sources_adopt_steps(s, &push[i], now_ns, &entry);
		if (s->def->push_down.mode != PUSH_MODE_ENFORCE)
			dp_push_del(s->running->packets->dp, &push[i].src);
		else
			taken += push_adopt(s->push, &entry) == 0;
	}
	if (taken)
		log_info("restored %zu push-downs", taken);
	free(push);
}

/* ------------------------------------------------------------------ start and exit */

static int sources_make_tables(struct sources *s, u64 room, struct sl_seed seed)
{
	struct push_callbacks callbacks = { push_guard, push_profile, push_good_requests, push_need,
					    push_put,	push_del,     push_report,	  s };
	struct users_options options = { .seed = seed };

	options.pairs = room < PAIRS_LEAST ? PAIRS_LEAST : room > PAIRS_MOST ? PAIRS_MOST : room;
	options.sources = options.pairs / 8;
	if (users_new(&options, &s->users) < 0)
		return -ENOMEM;
	return push_new(&callbacks, seed, &s->push);
}

static const struct running_part_ops sources_ops = { .derive = sources_derive };

static int set_tick(struct sources *s, u64 period_us)
{
	struct timeval period = { .tv_sec = (time_t)(period_us / 1000000),
				  .tv_usec = (suseconds_t)(period_us % 1000000) };

	return event_add(s->tick, &period);
}

int sources_start(struct running *run, struct event_base *base, u32 workers, u64 room,
		  struct sources **ret, struct sl_err *err)
{
	struct sources *s = calloc(1, sizeof(*s));
	struct sl_seed seed;
	int r = -ENOMEM;

	*ret = s;
	if (!s || getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		goto out;
	s->running = run;
	s->active.window_ns = 5 * SL_NS_PER_SEC;
	s->refused.window_ns = 300 * SL_NS_PER_SEC;
	s->part.ops = &sources_ops;
	running_join(run, &s->part);
	r = aggregate_new(workers, &s->aggregate);
	if (!r)
		r = sources_make_tables(s, room, seed);
	if (r < 0)
		goto out;
	s->tick = event_new(base, -1, EV_PERSIST, on_sources_tick, s);
	s->wake = event_new(base, aggregate_fd(s->aggregate), EV_READ | EV_PERSIST, on_sources_wake,
			    s);
	if (!s->tick || !s->wake || set_tick(s, TICK_IDLE_US) < 0 || event_add(s->wake, NULL) < 0)
		r = -ENOMEM;
out:
	return r < 0 ? sl_err_set(err, -r, "cannot start tracking users and sources: %s",
				  strerror(-r))
		     : 0;
}

void sources_configure(struct sources *s, const struct http_def *def, const struct ruleset *rules)
{
	bool watch = def->budget.limit[0];
	struct http_def *copy;
	struct users_rules users = {
		.active_ns = def->budget.active_ns ? def->budget.active_ns : 60 * SL_NS_PER_SEC,
		.max_users = def->budget.max_users ? (u32)def->budget.max_users : 500,
	};

	if (!s)
		return;
	if (http_def_clone(def, &copy) < 0) {
		/* The previous rules are about to be freed. */
		log_error(
			"push_down and source_budget: out of memory, both are off until the next reload");
		copy = NULL;
	}
	http_def_free(s->def);
	s->def = copy;
	s->rules = rules;
	if (!copy)
		return;
	s->guard_generation = 0;
	for (u32 i = 0; i < rules->rule_count && def->push_down.mode != PUSH_MODE_OFF; i++)
		watch |= rules->rule[i]->push.after;
	users_set_rules(s->users, &users);
	push_set_limits(s->push, &def->push_down, clock_mono_ns());
	aggregate_configure(s->aggregate, def, rules);
	set_tick(s, watch ? TICK_US : TICK_IDLE_US);
	if (s->running->packets->dp && watch != s->watching &&
	    dp_push_watch(s->running->packets->dp, watch) == 0)
		s->watching = watch;
	if (!s->adopted)
		sources_adopt(s);
}

void sources_close(struct sources *s)
{

	if (!s)
		return;
	running_leave(s->running, &s->part);
	if (s->tick)
		event_free(s->tick);
	if (s->wake)
		event_free(s->wake);
	aggregate_free(s->aggregate);
	users_free(s->users);
	push_free(s->push);
	budgets_clear(&s->budgets);
	http_def_free(s->def);
	free(s);
}
