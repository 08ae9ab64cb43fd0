// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rules.c - see rules.h. */
#include "daemon/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/cpus.h"
#include "daemon/ifaces.h"
#include "daemon/live.h"
#include "daemon/state.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ putting a policy in force */

static bool is_bound(const struct sl_slot_info *info)
{
	return info->state == SL_SLOT_BOUND;
}

static bool same_binding(const struct sl_slot_info *a, const struct sl_slot_info *b)
{
	return is_bound(a) && is_bound(b) && !strcmp(a->name, b->name);
}

/* A slot that gets a limit starts with clean counters; the program does not know it yet. */
static int clear_new_slots(struct daemon *d, const struct sl_slot_info *before,
			   const struct sl_slot_info *after)
{
	int r = 0;

	for (u32 slot = 1; !r && slot < SL_SLOTS; slot++)
		if (is_bound(&after[slot]) && !same_binding(&before[slot], &after[slot]))
			r = d->dp->ops->limit_stats_clear(d->dp, slot);
	return r;
}

static bool has_name(const struct sl_slot_info *slots, const char *name)
{
	for (u32 slot = 1; slot < SL_SLOTS; slot++)
		if (is_bound(&slots[slot]) && !strcmp(slots[slot].name, name))
			return true;
	return false;
}

/*
 * A limit that left its slot for another takes its counters along; one that is gone loses
 * them. True where there was either.
 */
static bool carry_counters(struct daemon *d, const struct sl_slot_info *before,
			   const struct sl_slot_info *after)
{
	struct sl_limit_stats stats;
	bool any = false;

	for (u32 slot = 1; slot < SL_SLOTS; slot++) {
		if (!is_bound(&before[slot]) || same_binding(&before[slot], &after[slot]))
			continue;
		any = true;
		if (strchr(before[slot].name, '#'))
			continue;	/* a further row: its limit's head has the counters */
		if (!has_name(after, before[slot].name))
			state_base_drop(d, before[slot].name);
		else if (d->dp->ops->limit_stats(d->dp, slot, &stats) == 0)
			state_base_add(d, before[slot].name, &stats);
	}
	return any;
}

/* Words are to be moved or taken out where a rate generation changed or a slot drains. */
static bool needs_sweep(const struct sl_slot_info *before, const struct sl_slot_info *after)
{
	for (u32 slot = 1; slot < SL_SLOTS; slot++)
		if (before[slot].gen != after[slot].gen ||
		    (is_bound(&before[slot]) && !is_bound(&after[slot])))
			return true;
	return false;
}

static struct compile_env make_env(struct daemon *d, char (*names)[16],
				   struct sl_slot_info *slots)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		memcpy(names[slot], d->iface[slot].name, sizeof(names[slot]));
	return (struct compile_env){
		.mono_ns = clock_mono_ns(),
		.utc_offset_ns = clock_utc_offset_ns(),
		.cpus = cpus_possible(),
		.seed = d->dp->ops->state(d->dp)->seed,
		.generation = d->generation + 1,
		.iface = (const char (*)[16])names,
		.local = d->local,
		.local_count = d->local_count,
		.slots = slots,
	};
}

/* Compiles a policy and puts it in force, with all that goes with new slots. */
static int install(struct daemon *d, const struct policy *policy, struct sl_err *err)
{
	struct sl_slot_info *slots = d->dp->ops->slots(d->dp);
	struct sl_slot_info *before = malloc(SL_SLOTS * sizeof(*before));
	struct sl_slot_info *after = malloc(SL_SLOTS * sizeof(*after));
	char names[SL_IFACES_MAX][16];
	struct compile_env env = make_env(d, names, after);
	struct sl_image *image = NULL;
	int r;

	if (!before || !after) {
		r = sl_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	protect_find_sessions(d);
	memcpy(before, slots, SL_SLOTS * sizeof(*before));
	memcpy(after, slots, SL_SLOTS * sizeof(*after));
	r = image_compile(policy, &env, &image, err);
	if (r < 0)
		goto out;
	r = clear_new_slots(d, before, after);
	if (r < 0) {
		sl_err_set(err, -r, "cannot clear counters: %s", strerror(-r));
		goto out;
	}
	r = d->dp->ops->apply(d->dp, image, err);
	if (r < 0)
		goto out;
	memcpy(slots, after, SL_SLOTS * sizeof(*after));
	d->generation = env.generation;
	image_free(d->image);
	d->image = image;
	image = NULL;
	if (carry_counters(d, before, after) && state_store(d, err) < 0)
		log_error("%s", err->message);
	/* Before another change can use a rate generation's number again. */
	if (needs_sweep(before, after))
		dp_sweep(d->dp, clock_now(env.utc_offset_ns));
	d->table_at_ns = 0;
out:
	image_free(image);
	free(before);
	free(after);
	return r;
}

/* ------------------------------------------------------------------ a change */

int change_begin(const struct daemon *d, struct change *change, struct sl_err *err)
{
	memset(change, 0, sizeof(*change));
	change->live = json_copy(d->live);
	if (!change->live || policy_clone(d->running, &change->running) < 0) {
		change_end(change);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int change_do(struct change *change, const struct daemon *d, json_t *op, struct sl_err *err)
{
	int r = live_apply(op, change->running, err);

	if (!r && live_add(change->live, op, d->file) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	return r;
}

void change_end(struct change *change)
{
	policy_free(change->file);
	policy_free(change->running);
	json_decref(change->live);
	memset(change, 0, sizeof(*change));
}

static void undo(struct daemon *d)
{
	struct sl_err err;

	if (install(d, d->running, &err) < 0 || ifaces_attach(d, d->running, false, &err) < 0 ||
	    ifaces_detach_others(d, d->running, &err) < 0)
		log_error("cannot go back to what was before: %s", err.message);
}

int change_commit(struct daemon *d, struct change *change, struct sl_err *err)
{
	int r = ifaces_assign(d, change->running, err);

	if (r > 0)
		r = state_store(d, err);
	if (r < 0)
		return r;
	r = install(d, change->running, err);
	if (r < 0)
		return r;
	r = ifaces_attach(d, change->running, false, err);
	if (!r)
		r = ifaces_detach_others(d, change->running, err);
	if (!r && !json_equal(change->live, d->live))
		r = live_store(d->state_dir, change->live, err);
	if (r < 0) {
		undo(d);
		return r;
	}
	if (change->file) {
		policy_free(d->file);
		d->file = change->file;
		change->file = NULL;
	}
	policy_free(d->running);
	d->running = change->running;
	change->running = NULL;
	json_decref(d->live);
	d->live = change->live;
	change->live = NULL;
	return 0;
}

/* ------------------------------------------------------------------ start, reload, refresh */

int rules_start(struct daemon *d, struct sl_err *err)
{
	const struct sl_rules *before = d->dp->ops->rules(d->dp);
	size_t count = json_array_size(d->live);
	int r;

	d->generation = before ? before->generation : 0;
	live_replay(d->live, d->running, clock_utc_ns());
	policy_list_expire(d->running, clock_utc_ns());
	r = ifaces_assign(d, d->running, err);
	if (r < 0)
		return r;
	r = state_store(d, err);
	if (!r && json_array_size(d->live) != count)
		r = live_store(d->state_dir, d->live, err);
	if (!r)
		r = install(d, d->running, err);
	if (!r)
		r = ifaces_attach(d, d->running, true, err);
	if (r < 0)
		return r;
	if (ifaces_detach_others(d, d->running, err) < 0)
		log_error("an interface that is no longer configured stays attached: %s",
			  err->message);
	d->reload.ok = true;
	d->reload.ok_utc_ns = d->reload.at_utc_ns = clock_utc_ns();
	return 0;
}

static bool differs(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") != 0;
}

/* What is fixed at start; the old value goes on until then. */
static void warn_of_fixed(const struct policy *running, const struct policy *file)
{
	const struct {
		const char *key;
		bool changed;
	} fixed[] = {
		{ "table.buckets", running->table_buckets != file->table_buckets },
		{ "metrics.listen", differs(running->metrics_listen, file->metrics_listen) },
		{ "control.socket", differs(running->control_socket, file->control_socket) },
		{ "control.group", differs(running->control_group, file->control_group) },
		{ "control.read_group",
		  differs(running->control_read_group, file->control_read_group) },
		{ "state_dir", differs(running->state_dir, file->state_dir) },
		{ "pin_dir", differs(running->pin_dir, file->pin_dir) },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].changed)
			log_warn("%s has changed in the file: that takes effect when sluiced is "
				 "started again", fixed[i].key);
}

static int reload(struct daemon *d, struct sl_err *err)
{
	struct change change = { .live = json_copy(d->live) };
	int r = policy_load(d->config_path, &change.file, err);

	if (!r && (!change.live || policy_clone(change.file, &change.running) < 0))
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (!r) {
		warn_of_fixed(d->file, change.file);
		live_replay(change.live, change.running, clock_utc_ns());
		policy_list_expire(change.running, clock_utc_ns());
		r = change_commit(d, &change, err);
	}
	change_end(&change);
	return r;
}

int rules_reload(struct daemon *d, struct sl_err *err)
{
	char text[768];
	int r = reload(d, err);

	d->reload.ok = !r;
	d->reload.at_utc_ns = clock_utc_ns();
	if (!r) {
		d->reload.ok_utc_ns = d->reload.at_utc_ns;
		log_info("reloaded %s: %zu limits, generation %llu", d->config_path,
			 d->running->limit_count, d->generation);
	} else {
		d->reload.err = *err;
		log_error("not reloaded, the rules before go on: %s",
			  sl_err_format(err, text, sizeof(text)));
	}
	return r;
}

void rules_refresh(struct daemon *d)
{
	struct sl_err err;

	if (install(d, d->running, &err) < 0)
		log_error("cannot compile the rules for this host's new addresses: %s", err.message);
}

void rules_expire(struct daemon *d)
{
	u64 now_utc_ns = clock_utc_ns();
	struct sl_err err;

	/* The data path let them end on time; this only tidies up. */
	if (policy_list_expire(d->running, now_utc_ns) > 0)
		rules_refresh(d);
	if (live_expire(d->live, now_utc_ns) > 0 &&
	    live_store(d->state_dir, d->live, &err) < 0)
		log_error("%s", err.message);
}
