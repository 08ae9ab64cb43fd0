// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pending.c - see pending.h. */
#include "control/running/pending.h"

#include <errno.h>
#include <string.h>

#include "control/running/audit.h"
#include "lib/clock.h"
#include "control/running/entries.h"
#include "control/running/history.h"
#include "control/running/http_rules.h"
#include "packet/host/ifaces.h"
#include "control/running/rules.h"
#include "lib/log.h"
#include "lib/units.h"

int pending_refusal(const struct running *run, struct sl_err *err)
{
	u64 now_ns = clock_mono_ns(), left_ns;
	char text[64];

	left_ns = run->pending.deadline_ns > now_ns ? run->pending.deadline_ns - now_ns : 0;
	return sl_err_set(
		err, EBUSY,
		"the applied %s is not confirmed yet and reverts in %s: "
		"confirm it (sluicectl confirm) or revert it (sluicectl rollback) first",
		run->source.path,
		duration_format(left_ns / SL_NS_PER_SEC * SL_NS_PER_SEC, text, sizeof(text)));
}

/* Interfaces were not detached while the rules could revert. */
static void settled(struct running *run)
{
	struct sl_err err;

	if (ifaces_attach(run->packets, run->policy, false, &err) < 0 ||
	    ifaces_detach_others(run->packets, run->policy, &err) < 0)
		log_error("%s", err.message);
}

int pending_confirm(struct running *run, struct sl_err *err)
{
	int r;

	if (!pending_is(run))
		return sl_err_set(err, ENOENT,
				  "there is nothing to confirm: no applied file is pending");
	/* Written first: if that fails, the rules still revert at the deadline. */
	r = rules_store(run, &run->source, run->live, run->history_top, 0, 0, err);
	if (!r)
		r = run->packets->dp->ops->confirm(run->packets->dp, err);
	if (r < 0)
		return r;
	rules_state_clear(&run->pending.before);
	memset(&run->pending, 0, sizeof(run->pending));
	rules_settle(run);
	if (entries_narrow(run, run->policy, 0, err) < 0)
		log_error("%s", err->message);
	settled(run);
	log_info("%s was confirmed", run->source.path);
	return 0;
}

int pending_revert(struct running *run, const char *why, struct sl_err *err)
{
	struct rules_state before = run->pending.before, after;
	struct sl_err ignored;
	int r;

	/* Budgets and blocks of other nodes keep their present state. */
	running_derive(run, before.running);
	r = rules_install(run, before.running, 0, err);
	if (r < 0)
		return r;
	log_warn("%s: reverted to the previous rules (%s)", run->source.path, why);
	after = (struct rules_state){
		.source = run->source, .file = run->file, .running = run->policy, .live = run->live
	};
	run->source = before.source;
	run->file = before.file;
	run->policy = before.running;
	run->live = before.live;
	http_rules_follow(run);
	rules_state_clear(&after);
	memset(&run->pending, 0, sizeof(run->pending));
	run->history_top--;
	if (running_configure(run, run->policy, &ignored) < 0)
		log_error("http: cannot revert the settings, keeping the present ones: %s",
			  ignored.message);
	/* On failure live.json still has the deadline: pending_is_over(). */
	rules_write(run);
	if (!run->unwritten)
		history_tidy(run->state_dir, run->history_top, true, run->source.number);
	settled(run);
	return 0;
}

void pending_check_deadline(struct running *run)
{
	u64 generation = run->generation;
	struct sl_err err;
	int r;

	if (clock_mono_ns() < run->pending.deadline_ns)
		return;
	r = pending_revert(run, "not confirmed in time", &err);
	/* The data path has reverted; the rest is tried again every second, and logged once. */
	if (r < 0 && run->pending.failed)
		return;
	run->pending.failed = r < 0;
	if (r < 0)
		log_error("cannot revert to the previous rules, trying again: %s", err.message);
	audit_write(run, NULL, "revert", NULL, generation, r < 0 ? &err : NULL);
}

/* ------------------------------------------------------------------ over a restart */

bool pending_is_over(const struct running *run, const json_t *json, u64 deadline_ns)
{
	const struct sl_rules *rules = run->packets->dp->ops->rules(run->packets->dp);
	u64 generation = (u64)json_integer_value(json_object_get(json, "generation"));

	return deadline_ns <= clock_mono_ns() ||
	       (rules && !rules->revert_at_ns && rules->generation > generation);
}

json_t *pending_to_json(u64 deadline_ns, u64 deadline_utc_ns, u64 generation)
{
	char boot[64];

	clock_boot_id(boot, sizeof(boot));
	return json_pack("{s:I, s:I, s:s, s:I}", "deadline_ns", (json_int_t)deadline_ns,
			 "deadline_utc_ns", (json_int_t)deadline_utc_ns, "boot_id", boot,
			 "generation", (json_int_t)generation);
}

bool pending_from_json(const json_t *json, u64 *ret_deadline_ns, u64 *ret_deadline_utc_ns)
{
	const char *of = json_string_value(json_object_get(json, "boot_id"));
	u64 mono_ns = (u64)json_integer_value(json_object_get(json, "deadline_ns"));
	u64 utc_ns = (u64)json_integer_value(json_object_get(json, "deadline_utc_ns"));
	u64 now_utc_ns = clock_utc_ns();
	char boot[64];

	if (!json_is_object(json))
		return false;
	clock_boot_id(boot, sizeof(boot));
	if (!of || strcmp(of, boot) != 0) {
		/* Never longer than the requested time, even if the clock was set back. */
		u64 left_ns = utc_ns > now_utc_ns ? utc_ns - now_utc_ns : 0;

		mono_ns = clock_mono_ns() + (left_ns < CONFIRM_MOST_NS ? left_ns : 0);
	}
	*ret_deadline_ns = mono_ns ? mono_ns : 1;
	*ret_deadline_utc_ns = utc_ns;
	return true;
}
