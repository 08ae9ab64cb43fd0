/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* push_rig.h - the push-down policy over a data path, users and a clock of the test. */
#ifndef SLUICE_TESTS_PUSH_RIG_H
#define SLUICE_TESTS_PUSH_RIG_H

#include "request/mitigation/push.h"

#define S SL_NS_PER_SEC

/* The data path and the source profiles of the test. */
struct world {
	struct push *push;
	u64 now;
	enum push_refusal guard;       /* of the source .66 */
	struct source_profile profile; /* of the source .66 */
	u64 good_requests, need_pps;
	int put_result;
	struct push_down on[64]; /* by last byte */
	bool is_on[64];
	u32 puts, dels, events[PUSH_REFUSED + 1];
};

static u32 number(const struct sl_prefix *group)
{
	return (u32)(group->addr.hi >> 32) % 64;
}

#define BAD 2 /* 66 % 64 */

static enum push_refusal guard(void *arg, const struct sl_prefix *group,
			       const struct sl_prefix *address, bool seen, u64 now_ns)
{
	struct world *w = arg;

	if (number(group) != BAD || (w->guard == PUSH_UNSEEN && !seen))
		return PUSH_ALLOWED;
	return w->guard;
}

static void profile(void *arg, const struct sl_prefix *group, u64 now_ns,
		    struct source_profile *ret)
{
	struct world *w = arg;

	*ret = (struct source_profile){ .group = *group, .requests = 1000 };
	if (number(group) == BAD)
		*ret = w->profile;
	if (!ret->as_of_ns)
		ret->as_of_ns = now_ns;
}

static u64 good_requests(void *arg)
{
	return ((struct world *)arg)->good_requests;
}

static u64 need_pps(void *arg, const struct source_profile *profile)
{
	return profile->good ? ((struct world *)arg)->need_pps : 0;
}

static int put(void *arg, const struct push_down *push)
{
	struct world *w = arg;

	if (w->put_result)
		return w->put_result;
	w->on[number(&push->src)] = *push;
	w->is_on[number(&push->src)] = true;
	w->puts++;
	return 0;
}

static void del(void *arg, const struct sl_prefix *group)
{
	struct world *w = arg;

	w->is_on[number(group)] = false;
	w->dels++;
}

static void notify(void *arg, const struct push_entry *entry, enum push_event event,
		   enum push_refusal refusal)
{
	((struct world *)arg)->events[event]++;
}

/* 20 rejections/10s; limit 50 packets/s, no-new, drop; step 60s, down 60s, max 1h */
static struct push_step steps[] = {
	{ SL_PUSH_LIMIT, { 50, S, RATE_PACKETS } },
	{ .kind = SL_PUSH_NO_NEW },
	{ .kind = SL_PUSH_DROP },
};
static struct rule rule = {
	.domain = "api",
	.path = "user",
	.id = 1,
	.push = { .after = 20,
		  .within_ns = 10 * S,
		  .step = steps,
		  .step_count = 3,
		  .step_ns = 60 * S,
		  .down_ns = 60 * S,
		  .max_ns = 3600 * S },
};

static struct push_limits_def limits(enum push_mode mode)
{
	return (struct push_limits_def){ .mode = mode,
					 .max_sources = 10,
					 .max_share_permille = 100,
					 .min_requests = 20,
					 .prefix = { 32, 64 } };
}

static void begin(struct world *w)
{
	struct push_callbacks world = {
		guard, profile, good_requests, need_pps, put, del, notify, w
	};
	struct push_limits_def l = limits(PUSH_MODE_ENFORCE);

	push_free(w->push);
	memset(w, 0, sizeof(*w));
	w->now = 1000 * S;
	w->profile.requests = 1000;
	assert_int_equal(push_new(&world, (struct sl_seed){ 1, 2 }, &w->push), 0);
	push_set_limits(w->push, &l, w->now);
}

/* Of the test that runs. */
static struct world w;

static int set_up(void **state)
{
	begin(&w);
	return 0;
}

static int tear_down(void **state)
{
	push_free(w.push);
	w.push = NULL;
	return 0;
}

#define PUSH_TEST(test) TEST_WITH(test, set_up, tear_down)

static struct sl_prefix source(u32 n)
{
	return (struct sl_prefix){ .addr = { .hi = (u64)(0xc0000200 + n) << 32 },
				   .family = SL_V4,
				   .len = 32 };
}

static void refuse(struct world *w, u32 n, u64 who, bool may_push)
{
	struct refusal_note note = { .rule_id = 1,
				     .who = who,
				     .has_source = true,
				     .may_push = may_push,
				     .group = source(n),
				     .address = source(n),
				     .value = "eve",
				     .value_len = 3 };

	push_refused(w->push, &note, &rule, w->now);
}

/* So many seconds of a client with so many refusals in each of them. */
static void run(struct world *w, u32 n, u32 seconds, u32 per_s)
{
	for (u32 s = 0; s < seconds; s++)
		for (u32 tick = 0; tick < 4; tick++) {
			for (u32 i = 0; i < per_s; i++)
				if (i % 4 == tick)
					refuse(w, n, n, true);
			w->now += S / 4;
			push_tick(w->push, w->now);
		}
}

static bool on(struct world *w, enum sl_push_kind kind)
{
	return w->is_on[BAD] && w->on[BAD].kind == kind && w->on[BAD].until_ns > w->now;
}

#endif
