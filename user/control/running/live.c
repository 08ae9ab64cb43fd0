// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * live.c - the operations, a row each, and how they are applied to a policy; see live.h. Prefixes
 * in an operation are in their canonical text.
 */
#include "control/running/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/value_hash.h"
#include "lib/array.h"
#include "lib/log.h"

const char *live_text(const json_t *op, const char *member)
{
	const char *text = json_string_value(json_object_get(op, member));

	return text ? text : "";
}

static bool is_op(const json_t *op, const char *what)
{
	return !strcmp(live_text(op, "op"), what);
}

static int op_prefix(const json_t *op, struct sl_prefix *ret, struct sl_err *err)
{
	const char *text = live_text(op, "prefix"), *reason;

	if (sl_prefix_parse(text, ret, &reason) < 0)
		return sl_err_set(err, EINVAL, "'%.80s': %s", text, reason);
	return 0;
}

int live_pairs(const json_t *op, char ***ret, size_t *ret_count, struct sl_err *err)
{
	const json_t *pairs = json_object_get(op, "pairs"), *pair;
	char **text = calloc(json_array_size(pairs) + 1, sizeof(*text));
	size_t i;

	if (!text)
		return sl_err_no_memory(err);
	json_array_foreach(pairs, i, pair) {
		text[i] = (char *)json_string_value(pair);
		if (text[i])
			continue;
		free(text);
		return sl_err_set(err, EINVAL, "invalid pair: a string KEY=VALUE is required");
	}
	*ret = text;
	*ret_count = i;
	return 0;
}

/* ------------------------------------------------------------------ limits and overrides */

static int limit_set(const json_t *op, struct policy *policy, struct sl_err *err)
{
	size_t count;
	char **pair;
	int r = live_pairs(op, &pair, &count, err);

	if (r < 0)
		return r;
	r = policy_limit_set(policy, live_text(op, "name"), pair, count, err);
	free(pair);
	return r;
}

static int limit_add(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *yaml = live_text(op, "yaml");

	return policy_limit_add(policy, live_text(op, "name"), yaml, strlen(yaml), err);
}

static int limit_del(const json_t *op, struct policy *policy, struct sl_err *err)
{
	return policy_limit_del(policy, live_text(op, "name"), err);
}

static int override_set(const json_t *op, struct policy *policy, struct sl_err *err)
{
	struct sl_prefix src;
	size_t count;
	char **pair;
	int r = op_prefix(op, &src, err);

	if (!r)
		r = live_pairs(op, &pair, &count, err);
	if (r < 0)
		return r;
	r = policy_override_set(policy, live_text(op, "name"), &src, pair, count, err);
	free(pair);
	return r;
}

static int override_del(const json_t *op, struct policy *policy, struct sl_err *err)
{
	struct sl_prefix src;
	int r = op_prefix(op, &src, err);

	return r ? r : policy_override_del(policy, live_text(op, "name"), &src, err);
}

/* ------------------------------------------------------------------ block and exempt */

static enum list_kind list_of(const json_t *op)
{
	return live_kind_of(op)->subject == LIVE_BLOCK ? LIST_BLOCK : LIST_EXEMPT;
}

static int list_add(const json_t *op, struct policy *policy, struct sl_err *err)
{
	struct list_set ref = { .entry.until_utc_ns = (u64)json_integer_value(
					json_object_get(op, "until_utc_ns")) };
	const char *text = live_text(op, "prefix");
	int r;

	strncpy(ref.entry.reason, live_text(op, "reason"), sizeof(ref.entry.reason) - 1);
	if (text[0] == '@') {
		snprintf(ref.name, sizeof(ref.name), "%s", text + 1);
		return policy_list_add_set(policy, list_of(op), &ref, err);
	}
	r = op_prefix(op, &ref.entry.prefix, err);
	return r ? r : policy_list_add(policy, list_of(op), &ref.entry, err);
}

static int list_del(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *text = live_text(op, "prefix");
	struct sl_prefix prefix;
	int r;

	if (text[0] == '@')
		return policy_list_del_set(policy, list_of(op), text + 1, err);
	r = op_prefix(op, &prefix, err);
	return r ? r : policy_list_del(policy, list_of(op), &prefix, err);
}

/* ------------------------------------------------------------------ sets */

static int read_prefixes(const json_t *op, struct sl_prefix **ret, size_t *ret_count,
			 struct sl_err *err)
{
	const json_t *all = json_object_get(op, "prefixes"), *item;
	struct sl_prefix *prefix = calloc(json_array_size(all) + 1, sizeof(*prefix));
	const char *reason;
	size_t i;

	if (!prefix)
		return sl_err_no_memory(err);
	json_array_foreach(all, i, item) {
		const char *text = json_string_value(item);

		if (!text || sl_prefix_parse(text, &prefix[i], &reason) < 0) {
			free(prefix);
			return sl_err_set(err, EINVAL, "'%s': %s", text ? text : "?",
					  text ? reason : "not a prefix");
		}
	}
	*ret = prefix;
	*ret_count = json_array_size(all);
	return 0;
}

static int set_change(const json_t *op, struct policy *policy, struct sl_err *err)
{
	struct sl_prefix *prefix = NULL;
	size_t count = 0;
	int r = read_prefixes(op, &prefix, &count, err);

	if (!r)
		r = (is_op(op, "set add")   ? policy_set_add
		     : is_op(op, "set del") ? policy_set_del
					    : policy_set_replace)(policy, live_text(op, "name"),
								  prefix, count, err);
	free(prefix);
	return r;
}

/* ------------------------------------------------------------------ interfaces */

/* Adds an interface, or changes its mode. */
static int attach(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *ifname = live_text(op, "interface");
	struct interface_def *def = (void *)policy_find_interface(policy, ifname);
	enum attach_mode mode;

	if (!attach_mode_parse(live_text(op, "mode"), &mode))
		return sl_err_set(err, EINVAL, "unknown mode '%.32s'", live_text(op, "mode"));
	if (!ifname[0] || strlen(ifname) >= sizeof(def->name))
		return sl_err_set(err, EINVAL, "an interface's name has 1 to %zu characters",
				  sizeof(def->name) - 1);
	if (!def) {
		if (append(policy->interface, policy->interface_count, (struct interface_def){ 0 }))
			return sl_err_no_memory(err);
		def = &policy->interface[policy->interface_count - 1];
		strcpy(def->name, ifname);
	}
	def->mode = mode;
	return 0;
}

static int detach(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *ifname = live_text(op, "interface");
	struct interface_def *def = (void *)policy_find_interface(policy, ifname);

	if (!def)
		return sl_err_set(err, ENOENT, "interface %s is not configured in sluice", ifname);
	remove_at(policy->interface, policy->interface_count, def - policy->interface);
	return 0;
}

/* ------------------------------------------------------------------ rules of the HTTP tier */

static int rule_change(const json_t *op, struct policy *policy, struct sl_err *err)
{
	if (!policy->http)
		return sl_err_set(
			err, ENOENT,
			"the HTTP tier is not configured: sluice.yaml has no section 'http'");
	if (!live_text(op, "name")[0] || (live_kind_of(op)->subject == LIVE_USER &&
					  !json_is_string(json_object_get(op, "value"))))
		return sl_err_set(err, EINVAL,
				  "a change to a rule needs the name of the rule, and one "
				  "of a user the value");
	return 0;
}

/* ------------------------------------------------------------------ the rows */

static const struct live_kind kinds[] = {
	{ "limit set", LIVE_LIMIT, { "name" }, limit_set },
	{ "limit add", LIVE_LIMIT, { "name" }, limit_add },
	{ "limit del", LIVE_LIMIT, { "name" }, limit_del },
	{ "override set", LIVE_OVERRIDE, { "name", "prefix" }, override_set },
	{ "override del", LIVE_OVERRIDE, { "name", "prefix" }, override_del },
	{ "block add", LIVE_BLOCK, { "prefix" }, list_add },
	{ "block del", LIVE_BLOCK, { "prefix" }, list_del },
	{ "exempt add", LIVE_EXEMPT, { "prefix" }, list_add },
	{ "exempt del", LIVE_EXEMPT, { "prefix" }, list_del },
	{ "set add", LIVE_SET, { "name" }, set_change },
	{ "set del", LIVE_SET, { "name" }, set_change },
	{ "set replace", LIVE_SET, { "name" }, set_change },
	{ "attach", LIVE_INTERFACE, { "interface" }, attach },
	{ "detach", LIVE_INTERFACE, { "interface" }, detach },
	{ "rule set", LIVE_RULE, { "name" }, rule_change },
	{ "user set", LIVE_USER, { "name", "value" }, rule_change },
	{ "user unset", LIVE_USER, { "name", "value" }, rule_change },
	{ "user block", LIVE_USER, { "name", "value" }, rule_change },
	{ "user exempt", LIVE_USER, { "name", "value" }, rule_change },
};

const struct live_kind *live_kind_of(const json_t *op)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is_op(op, kinds[i].op))
			return &kinds[i];
	return NULL;
}

bool live_is_rule(const json_t *op)
{
	const struct live_kind *kind = live_kind_of(op);

	return kind && (kind->subject == LIVE_RULE || kind->subject == LIVE_USER);
}

int live_apply(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const struct live_kind *kind = live_kind_of(op);

	if (!kind)
		return sl_err_set(err, EINVAL,
				  "unknown operation: it is from another version of sluice");
	return kind->apply(op, policy, err);
}

void live_replay(json_t *live, struct policy *policy, u64 now_utc_ns, json_t *dropped)
{
	struct sl_err err;
	char words[256], text[768];

	live_expire(live, now_utc_ns);
	for (size_t i = 0; i < json_array_size(live);) {
		const json_t *op = json_array_get(live, i);

		if (live_apply(op, policy, &err) == 0) {
			i++;
			continue;
		}
		live_describe(op, words, sizeof(words));
		log_warn("live change '%s' no longer applies and was dropped: %s", words,
			 sl_err_format(&err, text, sizeof(text)));
		json_array_append_new(dropped, json_sprintf("%s: %s", words, text));
		json_array_remove(live, i);
	}
}

void live_describe(const json_t *op, char *buf, size_t size)
{
	const struct live_kind *kind = live_kind_of(op);
	const char *const lists[] = { "pairs", "prefixes" };
	char hash[VALUE_HASH_TEXT];
	size_t used = (size_t)snprintf(buf, size, "%s", live_text(op, "op")), i;
	const json_t *item;

	for (size_t k = 0; kind && k < 2 && kind->member[k]; k++)
		if (used < size)
			used += (size_t)snprintf(
				buf + used, size - used, " %s",
				strcmp(kind->member[k], "value")
					? live_text(op, kind->member[k])
					: value_hash(live_text(op, "value"),
						     strlen(live_text(op, "value")), hash));
	for (size_t k = 0; k < 2; k++)
		json_array_foreach(json_object_get(op, lists[k]), i, item)
			if (used < size)
				used += (size_t)snprintf(buf + used, size - used, " %s",
							 json_string_value(item));
}
