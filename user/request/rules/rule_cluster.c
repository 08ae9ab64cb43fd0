// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_cluster.c - which limits of a rule are of scope cluster, their consistency, and what
 * applies while the cluster store is unavailable.
 *
 * Keys for cluster limits imply the scope: consistency and on_store_failure make the limits of
 * their rule scope cluster, unless the rule or the limit has a scope.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/limit_types.h"
#include "request/rules/rule_keys.h"
#include "request/rules/rule_private.h"
#include "limiter/algorithm.h"

#define MS 1000000ULL
#define LEASE_MIN (10 * MS)
#define LEASE_MAX (10000 * MS)
#define WRITE_BACK_MIN (20 * MS)
#define WRITE_BACK_MAX (3600000 * MS)

#define CONSISTENCIES "strict, {lease: 100ms} or {write_back: 1s}"

const struct name counters_failure_names[] = {
	{ "local", STORE_FAILS_LOCAL },
	{ "open", STORE_FAILS_OPEN },
	{ "closed", STORE_FAILS_CLOSED },
	{ "error", STORE_FAILS_ERROR },
	{ NULL, 0 },
};

void imply_scope(struct draft *draft)
{
	if (!draft_given(draft, "scope") &&
	    (draft_given(draft, "consistency") || draft_given(draft, "on_store_failure")))
		draft->defaults.terms.cluster = true;
}

static const struct key consistency_rows[] = {
	{ "lease", DRAFT(rule.consistency_ns), &type_duration, .least = LEASE_MIN,
	  .most = LEASE_MAX },
	{ "write_back", DRAFT(rule.consistency_ns), &type_duration, .least = WRITE_BACK_MIN,
	  .most = WRITE_BACK_MAX },
};

/* It has one key: consistency_read(). */
static int check_consistency(struct reader *r, const struct yaml_node *node, void *section)
{
	struct draft *draft = section;

	draft->rule.consistency =
		yaml_node_find(node, "lease") ? CONSISTENCY_LEASE : CONSISTENCY_WRITE_BACK;
	return 0;
}

static const struct keys consistency_keys =
	KEYS(struct draft, consistency_rows, .check = check_consistency);

static void consistency_clear(const struct key *key, void *section)
{
	struct draft *draft = section;

	draft->rule.consistency = CONSISTENCY_STRICT;
	draft->rule.consistency_ns = 0;
}

static int consistency_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			    void *section)
{
	if (node->kind == YAML_TEXT && !strcmp(node->text, "strict"))
		return 0;
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, CONSISTENCIES);
	if (node->count != 1)
		return read_fail(r, node, EINVAL,
				 "found a mapping of %zu keys; accepted: " CONSISTENCIES,
				 node->count);
	return keys_read(r, node, &consistency_keys, section);
}

const char *consistency_format(const struct rule *rule, char *buf, size_t size)
{
	char text[48];

	if (rule->consistency == CONSISTENCY_STRICT)
		snprintf(buf, size, "strict");
	else
		snprintf(buf, size, "{%s: %s}",
			 rule->consistency == CONSISTENCY_LEASE ? "lease" : "write_back",
			 duration_format(rule->consistency_ns, text, sizeof(text)));
	return buf;
}

static void consistency_write(struct writer *w, const struct key *key, const void *section)
{
	char text[64];

	fputs(consistency_format(&((const struct draft *)section)->rule, text, sizeof(text)),
	      w->out);
}

const struct key_type type_rule_consistency = {
	.name = "consistency",
	.read = consistency_read,
	.write = consistency_write,
	.clear = consistency_clear,
};

/* What a release charges is counted in Redis alone, and all of what is charged there passes its
 * queue. */
static const char *defer_conflict(const struct limit_terms *terms, const struct rule *rule)
{
	if (!terms->cluster)
		return "scope is node, but on_limit defers requests to Redis; accepted with it: scope: cluster";
	if (rule->consistency != CONSISTENCY_STRICT)
		return "on_limit defers requests in the order of Redis; accepted with it: consistency: strict";
	if (terms->throttle.kind == THROTTLE_SOFT)
		return "throttle is soft, but on_limit defers what is over the limit; accepted with it: throttle: hard";
	if (terms->calendar)
		return "calendar is given, but on_limit defers requests, evenly over a window of one length; accepted with it: on_limit: refuse";
	if (terms->count)
		return "refused requests count, but on_limit defers them; accepted with it: count: admitted";
	return NULL;
}

int check_limit_scope(const struct rule_limit *limit, const struct rule *rule, struct sl_err *err)
{
	const char *of = rule->consistency == CONSISTENCY_LEASE ? "lease" : "write_back";
	const char *conflict = limit_terms_conflict(&limit->terms);
	char text[48], period[48];

	if (conflict)
		return sl_err_set(err, ERANGE, "%s", conflict);
	if (limit->terms.count && rule->wait_ns)
		return sl_err_set(err, ERANGE,
				  "count is %s, but on_limit delays requests that do not "
				  "fit; accepted with it: on_limit: refuse",
				  name_of(http_count_names, limit->terms.count));
	if (limit->terms.algorithm == SL_ALGO_CONCURRENCY && (rule->wait_ns || rule->defer.max))
		return sl_err_set(
			err, ERANGE,
			"on_limit delays requests until they fit, but when a request in "
			"flight ends is not known; accepted with a concurrency: on_limit: refuse");
	if (rule->defer.max) {
		conflict = defer_conflict(&limit->terms, rule);
		if (conflict)
			return sl_err_set(err, ERANGE, "%s", conflict);
	}
	if (limit->mode == SL_MODE_SHADOW && (rule->wait_ns || rule->defer.max))
		return sl_err_set(err, ERANGE,
				  "mode is shadow, but on_limit decides a request that waits "
				  "more than once; accepted with it: on_limit: refuse");
	if (!limit->terms.cluster)
		return 0;
	if (limit->mode == SL_MODE_SHADOW && algorithm_is_log(limit->terms.algorithm))
		return sl_err_set(
			err, ERANGE,
			"mode is shadow, but only Redis has the %s of all nodes, and "
			"nothing waits for it; accepted with it: scope: node, or algorithm: "
			"sliding-window",
			algorithm_name(limit->terms.algorithm));
	if (rule->consistency == CONSISTENCY_STRICT)
		return 0;
	if (limit->terms.count == COUNT_DEBT)
		return sl_err_set(err, ERANGE,
				  "count is debt, which each check reads from Redis; accepted with "
				  "it: consistency: strict, not %s",
				  of);
	if (algorithms[limit->terms.algorithm]->strict_note)
		return sl_err_set(err, ERANGE,
				  "consistency is %s, but algorithm is %s, which %s; accepted "
				  "with it: consistency: strict, or algorithm: sliding-window",
				  of, algorithm_name(limit->terms.algorithm),
				  algorithms[limit->terms.algorithm]->strict_note);
	if (rule->consistency_ns > limit->terms.rates.rate[0].period_ns)
		return sl_err_set(err, ERANGE,
				  "%s is %s, longer than the limit's own period of %s; "
				  "accepted: up to that",
				  of, duration_format(rule->consistency_ns, text, sizeof(text)),
				  duration_format(limit->terms.rates.rate[0].period_ns, period,
						  sizeof(period)));
	return 0;
}

int check_rule_scope(struct reader *r, const struct draft *draft)
{
	static const char *const key[] = { "consistency", "on_store_failure" };

	for (size_t i = 0; i < ARRAY_SIZE(key); i++)
		if (draft_given(draft, key[i]) &&
		    !has_common_limit(draft->limit, draft->rule.limit_count))
			return read_fail(r, yaml_node_find(draft->map, key[i]), EINVAL,
					 "%s is "
					 "given, but scope is node: no limit of the rule is in the "
					 "store; accepted with it: scope: cluster",
					 key[i]);
	return 0;
}
