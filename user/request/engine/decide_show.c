// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* decide_show.c - shows or resets the usage of one value of one rule, for operators. */
#include "request/engine/decide_private.h"
#include "request/rules/rule_values.h"

static int begin(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, const struct request *request, struct sl_now now,
		 struct decision **ret)
{
	struct rule_values values;
	struct rule_match match;
	struct decision *d;
	int err = rule_values_match(rules, rule, value, &values, &match, NULL);

	if (!err) {
		*ret = d = decision_begin(ledger, request, now);
		if (rule->place == RULE_OF_REQUEST)
			decide_collect_request(d, rule, &values.descriptor);
		else
			decide_collect_one(d, rule, &match);
		store_begin(d->counters, &d->locks, d->ref, d->ref_count);
	}
	rule_values_free(&values);
	return err;
}

int decide_looks(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, struct quota_lookup *ret, u32 max, u32 *ret_count)
{
	struct request request = { .count = 1, .peek = true };
	struct decision *d;
	int err = begin(ledger, rules, rule, value, &request, counters_now(ledger->counters), &d);

	*ret_count = 0;
	if (err)
		return err;
	for (u32 i = 0; i < d->bucket_count && *ret_count < max; i++) {
		const struct bucket *b = &d->bucket[i];

		if (b->cluster)
			ret[(*ret_count)++] =
				(struct quota_lookup){ .ref = decide_cluster_ref(d, b, 0),
						       .def = d->ref[b->ref].def };
	}
	counters_end(&d->locks);
	return 0;
}

/* Only Redis has all of a sliding log of the cluster. */
static void tell(struct decision *d, struct bucket *b, const struct quota_lookup *look, u32 count)
{
	for (u32 i = 0; b->cluster && i < count; i++) {
		if (!look[i].answered || look[i].ref.key != d->ref[b->ref].key ||
		    !algorithm_is_log(look[i].def.algo))
			continue;
		b->from_store = true;
		b->reply_used = look[i].used;
	}
}

/* Behind the enforced ones, as far as there is room. */
static void show_candidates(const struct decision *d, struct response *ret)
{
	const struct part *part = &d->part[0];

	for (u32 k = 0; k < part->candidates && ret->policy_count < RESPONSE_POLICIES_MAX; k++) {
		struct response_policy *policy = &ret->policy[ret->policy_count++];

		decide_policy(d, &d->bucket[part->candidate[k]], policy);
		policy->shadow = true;
	}
}

int decide_show(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		struct bytes value, const struct quota_lookup *look, u32 look_count,
		struct sl_now now, struct response *ret)
{
	struct request request = { .count = 1, .peek = true };
	struct decision *d;
	int err = begin(ledger, rules, rule, value, &request, now, &d);

	if (err)
		return err;
	for (u32 i = 0; i < d->bucket_count; i++) {
		tell(d, &d->bucket[i], look, look_count);
		decide_look(d, &d->bucket[i], NULL);
	}
	decide_ban_look(d);
	decide_response(d, decide_refused(d) ? RESPONSE_OVER_LIMIT : RESPONSE_OK, ret);
	show_candidates(d, ret);
	counters_end(&d->locks);
	return 0;
}

/*
 * Refunds in Redis the most that can have been charged. The keys are published to the other nodes
 * (control/replication/resets.h); a node that misses that retries once a second (refusal_cache.h).
 */
static void reset_cluster(struct decision *d, const struct bucket *b, struct decide_reset *ret)
{
	for (u32 i = 0; ret && i < b->refs && ret->count < DECIDE_RESET_MAX; i++)
		ret->key[ret->count++] = d->ref[b->ref + i].key;
	for (u32 i = 0; i < b->refs; i++) {
		const struct spec *spec = d->ref[b->ref + i].spec;
		struct quota_ref ref = decide_cluster_ref(d, b, i);

		if (!spec || (i && i != b->soft_ref && i != b->grace_ref))
			continue;
		quota_forget(d->quotas, ref.key);
		quota_add_unflushed(d->quotas, &ref, -2 * (s64)spec->capacity, d->now);
	}
}

int decide_reset(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, struct decide_reset *ret)
{
	struct request request = { .count = 1, .peek = true };
	struct counters *counters = ledger->counters;
	struct sl_now now = counters_now(counters);
	struct decision *d;
	int err = begin(ledger, rules, rule, value, &request, now, &d);

	if (err)
		return err;
	if (ret)
		ret->count = 0;
	for (u32 i = 0; i < d->ref_count; i++) {
		counters_look(counters, &d->ref[i], now);
		if (d->ref[i].present)
			counters_forget(counters, &d->ref[i]);
		if (ledger->refusal_cache)
			refusal_cache_forget(ledger->refusal_cache, d->ref[i].key);
	}
	for (u32 i = 0; i < d->bucket_count; i++)
		if (d->bucket[i].cluster)
			reset_cluster(d, &d->bucket[i], ret);
	if (ret)
		decide_ban_keys(d, &d->part[0], ret);
	counters_end(&d->locks);
	return 0;
}

int decide_unban(const struct ledger *ledger, const struct ruleset *rules, const struct rule *rule,
		 struct bytes value, struct decide_reset *ret, bool *ret_was)
{
	struct request request = { .count = 1, .peek = true };
	struct sl_now now = counters_now(ledger->counters);
	struct decision *d;
	int err = begin(ledger, rules, rule, value, &request, now, &d);
	u32 level;

	if (err)
		return err;
	ret->count = 0;
	decide_ban_look(d);
	*ret_was = decide_ban_left(d, &d->part[0], &level);
	for (u32 i = 0; d->part[0].ban_ref && i < 2; i++) {
		struct counters_ref *ref = &d->ref[d->part[0].ban_ref - 1 + i];

		if (ref->present)
			counters_forget(d->counters, ref);
	}
	decide_ban_keys(d, &d->part[0], ret);
	counters_end(&d->locks);
	return 0;
}

void decide_forget(const struct ledger *ledger, u64 key)
{
	struct counters_ref ref = { .key = key };
	struct counters_locks locks;

	store_begin(ledger->counters, &locks, &ref, 1);
	counters_forget_key(ledger->counters, key);
	quota_forget(ledger->quotas, key);
	refusal_cache_forget(ledger->refusal_cache, key);
	counters_end(&locks);
}
