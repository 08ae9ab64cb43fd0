// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * edit.c - live changes to a policy.
 *
 * `limit set` reads its pairs by the rows of their keys, as from a file. Every change is made on a
 * copy, which replaces the original once it is valid.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/override.h"
#include "conf/pair.h"
#include "config/keys.h"

/* ---- limit set ---- */

/* Refuses keys that `limit set` cannot change. */
static int check_pair(const char *limit, const char *pair, struct sl_err *err)
{
	size_t len = strcspn(pair, "=");

	if (len == 4 && !strncmp(pair, "name", len))
		return sl_err_set(err, EINVAL,
				  "limit \"%s\": name: a limit cannot be renamed; "
				  "accepted: limit del and limit add",
				  limit);
	if (!strncmp(pair, "overrides", 9))
		return sl_err_set(err, EINVAL,
				  "limit \"%s\": overrides: limit set cannot change these; "
				  "accepted: override set, override del, or the file and reload",
				  limit);
	return 0;
}

int policy_limit_set(struct policy *policy, const char *name, char *const *pairs, size_t count,
		     struct sl_err *err)
{
	struct reader r = { .file = "", .err = err, .model = policy };
	struct limit_def *limit = policy_find_limit(policy, name);
	struct limit_def before, after;
	char subject[SL_NAME_MAX + 16];
	int rc = 0;

	if (!limit)
		return sl_err_set(err, ENOENT, "no limit \"%.63s\"", name);
	for (size_t i = 0; i < count; i++)
		if (check_pair(limit->name, pairs[i], err))
			return -EINVAL;
	snprintf(subject, sizeof(subject), "limit \"%s\"", limit->name);
	r.subject = subject;
	after = *limit;
	keys_copy(&limit_def_keys, &after, &rc);
	rc = rc ? sl_err_no_memory(err) : pairs_read(&r, &limit_def_keys, &after, pairs, count);
	if (!rc)
		rc = overrides_check(&after, err);
	if (rc) {
		limit_clear(&after);
		return rc;
	}
	before = *limit;
	*limit = after;
	rc = policy_check(policy, err);
	if (rc)
		*limit = before;
	limit_clear(rc ? &after : &before);
	return rc;
}

/* What the checks over a whole policy and those of overrides read of it is as before. */
static bool weighs_the_same(const struct limit_def *before, const struct limit_def *after)
{
	const struct rates *a = &before->terms.rates, *b = &after->terms.rates;

	if (!a->count || a->count != b->count || before->mode == SL_MODE_OFF ||
	    after->mode == SL_MODE_OFF)
		return false;
	for (u8 i = 0; i < a->count; i++)
		if (a->rate[i].unit != b->rate[i].unit ||
		    (sl_algo_is_window(after->terms.algorithm) &&
		     a->rate[i].period_ns != b->rate[i].period_ns))
			return false;
	return true;
}

bool limit_revalue(const struct limit_def *limit, char *const *pairs, size_t count,
		   struct limit_def *ret)
{
	struct sl_err err;
	struct reader r = { .file = "", .err = &err, .subject = "" };

	if (!pairs_are(&limit_def_keys, KEY_OWN, pairs, count))
		return false;
	*ret = *limit;
	return !pairs_read(&r, &limit_def_keys, ret, pairs, count) && weighs_the_same(limit, ret);
}

/* ---- limit add, del ---- */

static void truncate_limits(struct policy *policy, size_t count)
{
	while (policy->limit_count > count)
		limit_clear(&policy->limit[--policy->limit_count]);
}

/* The list of limits in the text: its root, or the value of `limits`. */
static int find_limits(struct reader *r, const struct yaml_node *root, const struct yaml_node **ret)
{
	const struct yaml_node *key = yaml_node_find(root, "limits");

	if (key && root->count > 1)
		return read_fail(r, root, EINVAL,
				 "found other keys next to limits; accepted: a limit, a "
				 "list of limits, or only the key limits");
	*ret = key ? key->value : root;
	return 0;
}

int policy_limit_add(struct policy *policy, const char *name, const char *yaml, size_t size,
		     struct sl_err *err)
{
	struct reader r = { .file = name, .err = err, .model = policy, .subject = "" };
	const struct yaml_node *limits = NULL;
	size_t i, before = policy->limit_count;
	struct tree tree = { 0 };
	int rc;

	rc = tree_parse(name, yaml, size, &tree, err);
	if (!rc)
		rc = find_limits(&r, tree.root, &limits);
	if (!rc)
		rc = read_limits(&r, limits, policy);
	tree_free(&tree);
	for (i = before; i < policy->limit_count; i++)
		policy->limit[i].pos = (struct config_pos){ 0, 0 };
	if (!rc)
		rc = policy_check(policy, err);
	if (rc)
		truncate_limits(policy, before);
	return rc;
}

int policy_limit_del(struct policy *policy, const char *name, struct sl_err *err)
{
	struct limit_def *limit = policy_find_limit(policy, name);

	if (!limit)
		return sl_err_set(err, ENOENT, "no limit \"%.63s\"", name);
	limit_clear(limit);
	remove_at(policy->limit, policy->limit_count, limit - policy->limit);
	return 0;
}
