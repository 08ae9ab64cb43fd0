// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * packet_judge.c - the packet tier of judge.h.
 *
 * One CPU: on several, limits with leases may admit up to 1% of the burst less or more. All that a
 * daemon learns from its host (addresses, sockets, login sessions, load) is not in a capture: every
 * destination counts as this host's, and no segment has a socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "packet/dataplane/dp_bucket.h"
#include "replay/judge.h"

#define SWEEP_NS (60 * SL_NS_PER_SEC)
#define LONGEST 128 /* overrides of any prefix length apply */

static int find_interface(struct packet_judge *judge, const char *interface, struct sl_err *err)
{
	const struct policy *policy = judge->policy;

	for (size_t i = 0; interface && i < policy->interface_count; i++)
		if (!strcmp(policy->interface[i].name, interface)) {
			judge->iface_slot = i;
			return 0;
		}
	if (!interface)
		return 0;
	return sl_err_set(err, EINVAL, "%s: there is no interface '%s' in it", policy->path,
			  interface);
}

static int compile(struct packet_judge *judge, struct sl_err *err)
{
	/* All addresses: failsafe ports are then those of any destination. */
	static const struct sl_prefix local[] = { { .family = SL_V4 }, { .family = SL_V6 } };
	struct sl_state *state = judge->dp->state;
	char(*names)[16] = calloc(SL_IFACES_MAX, sizeof(*names));
	struct compile_env env = {
		.mono_ns = JUDGE_BEGIN_NS,
		.utc_offset_ns = judge->utc_offset_ns,
		.cpus = 1,
		.seed = state->seed,
		.generation = 1,
		.local = local,
		.local_count = ARRAY_SIZE(local),
		.slots = judge->dp->slots,
	};
	int r;

	if (!names)
		return sl_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < judge->policy->interface_count && i < SL_IFACES_MAX; i++)
		memcpy(names[i], judge->policy->interface[i].name, sizeof(names[i]));
	env.iface = (const char(*)[16])names;
	r = image_compile(judge->policy, &env, &judge->image, err);
	if (!r)
		r = judge->dp->ops->apply(judge->dp, judge->image, err);
	free(names);
	return r;
}

int packet_judge_open(struct policy *policy, const char *interface, enum sl_link link, u64 utc_ns,
		      struct packet_judge **ret, struct sl_err *err)
{
	struct packet_judge *judge = calloc(1, sizeof(*judge));
	int r;

	if (!judge)
		return sl_err_set(err, ENOMEM, "out of memory");
	judge->policy = policy;
	judge->utc_offset_ns = utc_ns - JUDGE_BEGIN_NS;
	judge->swept_ns = JUDGE_BEGIN_NS;
	r = find_interface(judge, interface, err);
	if (!r && dp_sim_open(policy->table_buckets, 1, 1 << 16, &judge->dp))
		r = sl_err_set(err, ENOMEM, "out of memory for a table of %llu buckets",
			       policy->table_buckets);
	if (!r) {
		dp_sim_set_link(judge->dp, judge->iface_slot, link);
		dp_sim_set_time(judge->dp, JUDGE_BEGIN_NS);
		dp_set_clock(judge->dp, judge->utc_offset_ns);
		r = compile(judge, err);
	}
	if (r) {
		packet_judge_close(judge);
		return r;
	}
	*ret = judge;
	return 0;
}

void packet_judge_close(struct packet_judge *judge)
{
	if (!judge)
		return;
	image_free(judge->image);
	if (judge->dp)
		judge->dp->ops->close(judge->dp);
	free(judge);
}

/* ------------------------------------------------------------------ packets */

/* Adds the bans there are to `sum`; `ended`: only those that are forgotten now. */
static void add_bans(struct packet_judge *judge, u64 mono_ns, bool ended, u64 *sum)
{
	const struct sl_rules *rules = judge->image->rules;
	struct dp_ban *bans;
	size_t count;

	if (judge->dp->ops->hash_all(judge->dp, DP_BANS, &bans, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		u32 slot = bans[i].state.slot;
		u32 limit = slot < SL_LIMIT_IDS ? rules->limit_of_id[slot] : SL_NO_LIMIT;

		/* A ban of level 2 is the third: each begins while the one before it is
		 * remembered. */
		if (limit < SL_LIMITS_MAX && (!ended || dp_ban_is_over(&bans[i].state, mono_ns)))
			sum[limit] += 1 + bans[i].state.level;
	}
	free(bans);
}

/* As the daemon does every minute. */
static void sweep(struct packet_judge *judge, u64 mono_ns)
{
	struct sl_now now = { mono_ns, mono_ns + judge->utc_offset_ns };

	judge->swept_ns = mono_ns;
	add_bans(judge, mono_ns, true, judge->bans);
	dp_sweep(judge->dp, now);
	dp_bans_expire(judge->dp, mono_ns);
}

struct sim_verdict packet_judge_frame(struct packet_judge *judge, u64 mono_ns, u8 *frame,
				      u32 length)
{
	dp_sim_set_time(judge->dp, mono_ns);
	if (mono_ns - judge->swept_ns >= SWEEP_NS)
		sweep(judge, mono_ns);
	return dp_sim_packet(judge->dp, 0, judge->iface_slot, frame, length);
}

float packet_judge_used(struct packet_judge *judge, const struct sl_prefix *source, u64 mono_ns,
			u32 *ret_limit)
{
	const struct sl_rules *rules = judge->image->rules;
	struct sl_now now = { mono_ns, mono_ns + judge->utc_offset_ns };
	float most = 0;

	for (u32 i = 0; i < rules->limits_count; i++) {
		u32 meters = 0;

		if (rules->limits[i].by_match || (rules->limits[i].per & ~SL_PER_SOURCE) ||
		    !rules->limits[i].per)
			continue;
		for (u32 at = i; at < SL_METERS_MAX && meters < SL_CHARGES_MAX;
		     at = rules->limits[at].next, meters++) {
			struct dp_bucket bucket;
			float used;

			if (!dp_bucket_of(judge->image, at, source, LONGEST, &bucket))
				continue;
			used = (float)sl_used(dp_bucket_state(judge->dp, bucket.key),
					      &bucket.params, now) /
			       (float)(bucket.params.capacity ? bucket.params.capacity : 1);
			if (used > most) {
				most = used;
				*ret_limit = i;
			}
		}
	}
	return most < 1 ? most : 1;
}

/* ------------------------------------------------------------------ limits */

void judge_limits_free(struct judge_limit *limit, u32 count)
{
	for (u32 i = 0; limit && i < count; i++)
		free(limit[i].rate);
	free(limit);
}

int packet_judge_limits(struct packet_judge *judge, struct judge_limit **ret, u32 *ret_count)
{
	const struct sl_rules *rules = judge->image->rules;
	u32 count = rules->limits_count;
	struct judge_limit *limit = calloc(count ? count : 1, sizeof(*limit));
	u64 bans[SL_LIMITS_MAX];

	if (!limit)
		return -ENOMEM;
	memcpy(bans, judge->bans, sizeof(bans));
	add_bans(judge, 0, false, bans);
	for (u32 i = 0; i < count && i < judge->policy->limit_count; i++) {
		const struct limit_def *def = &judge->policy->limit[i];
		struct sl_limit_stats stats = { .full = 0 };
		char text[256];

		judge->dp->ops->limit_stats(judge->dp, rules->limits[i].slot, &stats);
		limit[i] = (struct judge_limit){
			.name = def->name,
			.mode = limit_mode_name((enum sl_mode)def->mode),
			.rate = strdup(rates_format(&def->terms.rates, text, sizeof(text))),
			.count = { [OUTCOME_PASSED] =
					   stats.packets[SL_LV_PASS] + stats.packets[SL_LV_SOFT],
				   [OUTCOME_REFUSED] = stats.packets[SL_LV_DROP],
				   [OUTCOME_TAGGED] = stats.packets[SL_LV_TAG],
				   [OUTCOME_SHADOW] = stats.packets[SL_LV_SHADOW] },
			.soft = stats.packets[SL_LV_SOFT],
			.bans = bans[i],
		};
	}
	*ret = limit;
	*ret_count = count;
	return 0;
}

void packet_judge_notes(const struct packet_judge *judge, void (*add)(void *arg, const char *text),
			void *arg)
{
	char text[SL_NAME_MAX + 160];

	for (size_t i = 0; i < judge->policy->limit_count; i++) {
		const struct limit_def *def = &judge->policy->limit[i];

		if (def->mode == SL_MODE_OFF)
			continue;
		if (def->terms.throttle.kind == THROTTLE_ELASTIC) {
			snprintf(text, sizeof(text), "limit %s is elastic: judged at its own rate",
				 def->name);
			add(arg, text);
		}
		if (def->ban.after && !def->ban.spoofable) {
			snprintf(text, sizeof(text),
				 "limit %s bans for segments of open connections alone, "
				 "which the input does not show: no ban of it is foreseen",
				 def->name);
			add(arg, text);
		}
		if (def->terms.cluster) {
			snprintf(text, sizeof(text),
				 "limit %s has scope cluster: packets of other nodes are "
				 "not in the input",
				 def->name);
			add(arg, text);
		}
	}
	if (judge->policy->failsafe_count)
		add(arg,
		    "failsafe ports: every destination counts as this host's, and no TCP segment as one "
		    "of an open connection");
}
