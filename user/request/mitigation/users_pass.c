// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * users_pass.c - see users.h: the pass over the table, a part at a time, that sums up the users
 * behind each source; and the results of the last whole pass.
 */
#include "request/mitigation/users_private.h"

/* ------------------------------------------------------------------ the pass */

static struct sum *sum_of(struct users *users, u32 index)
{
	struct sum *sum = &users->source[index].sum[users->pass & 1];

	if (sum->pass != users->pass) {
		memset(sum, 0, sizeof(*sum));
		sum->pass = users->pass;
		users->listed[users->pass & 1][users->listed_count[users->pass & 1]++] = index;
	}
	return sum;
}

/* Invented users are seen once: at a source above its maximum, users seen once do not count. */
static bool counts(const struct users *users, const struct pair *pair, u32 now_s)
{
	return has_returned(pair) ||
	       !within(users->source[pair->source].crowded_s, now_s, active_s(users));
}

/* A user protects the source from push-downs at once, but counts for a budget after a second. */
static bool counts_for_budget(const struct pair *pair, u32 now_s)
{
	return has_returned(pair) || pair->first_s < now_s;
}

static void sum_pair(struct users *users, const struct pair *pair, u32 k, u32 now_s)
{
	struct sum *sum = sum_of(users, pair->source);
	u64 rate_urps = (u64)pair->rate_mrps * 1000 / k;
	bool good = !within(pair->refused_s, now_s, active_s(users));
	u32 age = half_age(pair->ok_s, now_s);
	u32 requests = age > 1 ? 0 : age ? pair->ok[0] : pair->ok[0] + pair->ok[1];

	if (counts_for_budget(pair, now_s) && sum->users < users->rules.max_users) {
		sum->users++;
		sum->rate_urps += rate_urps;
	}
	if (good) {
		sum->good_rate_urps += rate_urps;
		sum->good++;
		sum->good_requests += requests;
		users->pass_good += requests;
	}
}

static void pass_set(struct users *users, u32 at, u32 now_s)
{
	struct pair *pair = &users->pair[(size_t)at * PAIR_WAYS];
	struct pair_set *set = &users->set[at];
	bool on[PAIR_WAYS];

	for (u32 way = 0; way < PAIR_WAYS; way++) {
		const struct pair *p = &pair[way];

		on[way] = false;
		if (!set->tag[way])
			continue;
		if (!is_kept(users, p, now_s))
			pair_remove(users, set, pair, way);
		else if (counts(users, p, now_s))
			on[way] = within(p->ok_s, now_s, active_s(users));
		else if (!within(p->ok_s, now_s, GRACE_S))
			pair_remove(users, set, pair, way);
	}
	for (u32 way = 0; way < PAIR_WAYS; way++) {
		u32 k = 0;

		for (u32 other = 0; on[way] && other < PAIR_WAYS; other++)
			k += on[other] && set->tag[other] == set->tag[way];
		if (on[way])
			sum_pair(users, &pair[way], k, now_s);
	}
}

bool users_pass(struct users *users, u32 share, u64 now_ns)
{
	u32 end = users->sets - users->next_set, part = users->sets / share + 1;
	u32 now_s = seconds(now_ns);

	end = users->next_set + (end < part ? end : part);
	if (!users->next_set)
		users->began_ns[users->pass & 1] = now_ns;
	/* Of no users: megabytes of empty sets are not read. */
	if (!users->stats.pairs)
		users->next_set = end;
	for (; users->next_set < end; users->next_set++)
		pass_set(users, users->next_set, now_s);
	if (users->next_set < users->sets)
		return false;
	users->next_set = 0;
	plain_age(users, now_s);
	users->good_requests = users->pass_good;
	users->pass_good = 0;
	users->pass++;
	users->listed_count[users->pass & 1] = 0;
	return true;
}

/* ------------------------------------------------------------------ results */

static void profile_of(const struct users *users, const struct source *source, u64 now_ns,
		       struct source_profile *ret)
{
	u32 whole = users->pass - 1;
	const struct sum *sum = &source->sum[whole & 1];

	*ret = (struct source_profile){
		.group = source->group,
		.address = source->address,
		.requests = recent(source->requests, source->seen_s, seconds(now_ns)),
		.seen_ns = (u64)(source->seen_s - 1) * SL_NS_PER_SEC,
		.as_of_ns = users->began_ns[whole & 1],
	};
	if (!within(source->refused_s, seconds(now_ns), active_s(users)))
		ret->good_requests = recent(source->plain, source->seen_s, seconds(now_ns));
	if (sum->pass != whole || !whole)
		return;
	ret->users = sum->users;
	ret->good = sum->good;
	ret->rate_urps = sum->rate_urps;
	ret->good_rate_urps = sum->good_rate_urps;
	ret->good_requests += sum->good_requests;
}

bool users_profile(const struct users *users, const struct sl_prefix *group, u64 now_ns,
		   struct source_profile *ret)
{
	const struct source *source = users_source_find(users, group);

	memset(ret, 0, sizeof(*ret));
	ret->group = *group;
	if (source)
		profile_of(users, source, now_ns, ret);
	return source;
}

void users_sources(const struct users *users, u64 now_ns,
		   void (*each)(const struct source_profile *profile, void *arg), void *arg)
{
	u32 whole = (users->pass - 1) & 1;
	struct source_profile profile;

	for (u32 i = 0; i < users->listed_count[whole]; i++) {
		profile_of(users, &users->source[users->listed[whole][i]], now_ns, &profile);
		if (profile.users)
			each(&profile, arg);
	}
}

u64 users_good_requests(const struct users *users)
{
	return users->good_requests + users->plain[0] + users->plain[1];
}

void users_stats(const struct users *users, struct users_stats *ret)
{
	*ret = users->stats;
}
