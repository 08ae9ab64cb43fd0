// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live.c - applies operations to a policy, and keeps the list short; see live.h. */
#include "control/running/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/running/live_override.h"
#include "control/running/live_rule.h"
#include "control/running/live_set.h"
#include "lib/log.h"

static const char *op_text(const json_t *op, const char *key)
{
	const char *text = json_string_value(json_object_get(op, key));

	return text ? text : "";
}

/* ------------------------------------------------------------------ interfaces */

/* Adds an interface, or changes its mode. */
static int attach(struct policy *policy, const char *ifname, enum attach_mode mode,
		  struct sl_err *err)
{
	struct interface_def *def = (void *)policy_find_interface(policy, ifname);

	if (!ifname[0] || strlen(ifname) >= sizeof(def->name))
		return sl_err_set(err, EINVAL, "an interface's name has 1 to %zu characters",
				  sizeof(def->name) - 1);
	if (!def) {
		def = reallocarray(policy->interface, policy->interface_count + 1, sizeof(*def));
		if (!def)
			return sl_err_set(err, ENOMEM, "out of memory");
		policy->interface = def;
		def += policy->interface_count++;
		memset(def, 0, sizeof(*def));
		strcpy(def->name, ifname);
	}
	def->mode = mode;
	return 0;
}

static int detach(struct policy *policy, const char *ifname, struct sl_err *err)
{
	struct interface_def *def = (void *)policy_find_interface(policy, ifname);
	struct interface_def *end = policy->interface + policy->interface_count;

	if (!def)
		return sl_err_set(err, ENOENT, "interface %s is not configured in sluice", ifname);
	memmove(def, def + 1, (size_t)(end - def - 1) * sizeof(*def));
	policy->interface_count--;
	return 0;
}

/* ------------------------------------------------------------------ applying */

static int apply_set(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const json_t *pairs = json_object_get(op, "pairs"), *pair;
	size_t count = json_array_size(pairs), i;
	char **pointer = calloc(count + 1, sizeof(*pointer));
	int r = 0;

	if (!pointer)
		return sl_err_set(err, ENOMEM, "out of memory");
	json_array_foreach(pairs, i, pair) {
		pointer[i] = (char *)json_string_value(pair);
		if (!pointer[i])
			r = sl_err_set(err, EINVAL, "invalid pair: a string KEY=VALUE is required");
	}
	if (!r)
		r = policy_limit_set(policy, op_text(op, "name"), pointer, count, err);
	free(pointer);
	return r;
}

/* One prefix of a block or exempt operation. */
static int apply_prefix(const json_t *op, bool add, enum list_kind kind,
			const struct sl_prefix *prefix, struct policy *policy,
			struct sl_err *err)
{
	struct list_entry entry = { .prefix = *prefix, .live = true };

	if (!add)
		return policy_list_del(policy, kind, prefix, err);
	entry.until_utc_ns = (u64)json_integer_value(json_object_get(op, "until_utc_ns"));
	strncpy(entry.reason, op_text(op, "reason"), sizeof(entry.reason) - 1);
	return policy_list_add(policy, kind, &entry, err);
}

static int apply_list(const json_t *op, bool add, enum list_kind kind, struct policy *policy,
		      struct sl_err *err)
{
	const char *text = op_text(op, "prefix"), *reason;
	struct sl_prefix prefix;
	struct list_set ref = { .live = true };

	if (text[0] != '@') {
		if (sl_prefix_parse(text, &prefix, &reason) < 0)
			return sl_err_set(err, EINVAL, "'%s': %s", text, reason);
		return apply_prefix(op, add, kind, &prefix, policy, err);
	}
	if (!add)
		return policy_list_del_set(policy, kind, text + 1, err);
	snprintf(ref.name, sizeof(ref.name), "%s", text + 1);
	ref.until_utc_ns = (u64)json_integer_value(json_object_get(op, "until_utc_ns"));
	strncpy(ref.reason, op_text(op, "reason"), sizeof(ref.reason) - 1);
	return policy_list_add_set(policy, kind, &ref, err);
}

int live_apply(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *what = op_text(op, "op"), *name = op_text(op, "name");
	const char *ifname = op_text(op, "interface"), *yaml = op_text(op, "yaml");
	enum attach_mode mode;

	if (!strcmp(what, "limit set"))
		return apply_set(op, policy, err);
	if (!strcmp(what, "limit add"))
		return policy_limit_add(policy, name, yaml, strlen(yaml), err);
	if (!strcmp(what, "limit del"))
		return policy_limit_del(policy, name, err);
	if (!strcmp(what, "block add") || !strcmp(what, "block del"))
		return apply_list(op, !strcmp(what, "block add"), LIST_BLOCK, policy, err);
	if (!strcmp(what, "exempt add") || !strcmp(what, "exempt del"))
		return apply_list(op, !strcmp(what, "exempt add"), LIST_EXEMPT, policy, err);
	if (!strcmp(what, "set add") || !strcmp(what, "set del") || !strcmp(what, "set replace"))
		return live_set_apply(op, policy, err);
	if (live_override_is(op))
		return live_override_apply(op, policy, err);
	if (live_rule_is(op))
		return live_rule_apply(op, policy, err);
	if (!strcmp(what, "detach"))
		return detach(policy, ifname, err);
	if (!strcmp(what, "attach") && attach_mode_parse(op_text(op, "mode"), &mode))
		return attach(policy, ifname, mode, err);
	return sl_err_set(err, EINVAL, "unknown operation: it is from another version of sluice");
}

static bool expired(const json_t *op, u64 now_utc_ns)
{
	u64 until = (u64)json_integer_value(json_object_get(op, "until_utc_ns"));

	return until && until <= now_utc_ns;
}

size_t live_expire(json_t *live, u64 now_utc_ns)
{
	size_t dropped = 0;

	for (size_t i = json_array_size(live); i-- > 0;) {
		if (expired(json_array_get(live, i), now_utc_ns)) {
			json_array_remove(live, i);
			dropped++;
		}
	}
	return dropped;
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

/* ------------------------------------------------------------------ keeping the list short */

/* The subject of an operation: its first word and the member that names the object. */
static const char *subject(const json_t *op, size_t *ret_class_len)
{
	const char *what = op_text(op, "op");

	*ret_class_len = strcspn(what, " ");
	if (!strncmp(what, "limit", 5) || !strncmp(what, "set", 3))
		return op_text(op, "name");
	if (!strcmp(what, "attach") || !strcmp(what, "detach")) {
		*ret_class_len = 0;
		return op_text(op, "interface");
	}
	return op_text(op, "prefix");
}

static bool same_subject(const json_t *a, const json_t *b)
{
	size_t len_a, len_b;
	const char *subject_a = subject(a, &len_a), *subject_b = subject(b, &len_b);

	return len_a == len_b && !strncmp(op_text(a, "op"), op_text(b, "op"), len_a) &&
	       !strcmp(subject_a, subject_b);
}

static bool is_op(const json_t *op, const char *what)
{
	return !strcmp(op_text(op, "op"), what);
}

/* Removes every earlier operation on the same subject, with a limit also on its overrides. */
static void forget_subject(json_t *live, const json_t *op)
{
	for (size_t i = json_array_size(live); i-- > 0;)
		if (same_subject(json_array_get(live, i), op) ||
		    (is_op(op, "limit del") &&
		     live_override_of(json_array_get(live, i), op_text(op, "name"))))
			json_array_remove(live, i);
}

static bool list_has(const struct list_def *list, const struct sl_prefix *prefix)
{
	for (size_t i = 0; i < list->count; i++)
		if (!list->entry[i].from && sl_prefix_equal(&list->entry[i].prefix, prefix))
			return true;
	return false;
}

/* True if the file has no list entry for an operation's "prefix". */
static bool file_lists_none(const struct policy *file, enum list_kind kind, const char *text)
{
	struct sl_prefix prefix;
	const char *reason;

	if (text[0] != '@')
		return sl_prefix_parse(text, &prefix, &reason) == 0 &&
		       !list_has(&file->list[kind], &prefix);
	return !list_find_set(&file->list[kind], text + 1);
}

/* True if the file alone already has the effect of this operation. */
static bool file_says_so(const json_t *op, const struct policy *file)
{
	const struct interface_def *def = policy_find_interface(file, op_text(op, "interface"));

	if (is_op(op, "limit del"))
		return !policy_find_limit(file, op_text(op, "name"));
	if (is_op(op, "detach"))
		return !def;
	if (is_op(op, "attach"))
		return def && !strcmp(attach_mode_name(def->mode), op_text(op, "mode"));
	if (is_op(op, "block del"))
		return file_lists_none(file, LIST_BLOCK, op_text(op, "prefix"));
	if (is_op(op, "exempt del"))
		return file_lists_none(file, LIST_EXEMPT, op_text(op, "prefix"));
	return false;
}

static bool has_key(const json_t *pairs, const char *pair)
{
	size_t len = strcspn(pair, "="), i;
	const json_t *other;

	json_array_foreach(pairs, i, other) {
		const char *text = json_string_value(other);

		if (strcspn(text, "=") == len && !strncmp(text, pair, len))
			return true;
	}
	return false;
}

/*
 * A limit has one "limit set", its last operation: earlier values under other keys are merged into
 * it. Together they are one step, so their order does not matter.
 */
static int merge_set(json_t *live, json_t *op)
{
	json_t *pairs = json_array(), *merged = json_copy(op), *pair;
	size_t i;
	int r = 0;

	for (size_t at = json_array_size(live); at-- > 0;) {
		json_t *before = json_array_get(live, at);

		if (live_override_of(before, op_text(op, "name")))
			break;	/* it may only fit the rates before it */
		if (!same_subject(before, op) || !is_op(before, "limit set"))
			continue;
		json_array_foreach(json_object_get(before, "pairs"), i, pair)
			if (!has_key(json_object_get(op, "pairs"), json_string_value(pair)))
				r |= json_array_append(pairs, pair);
		json_array_remove(live, at);
	}
	r |= json_array_extend(pairs, json_object_get(op, "pairs"));
	r |= json_object_set_new(merged, "pairs", pairs);
	r |= json_array_append_new(live, merged);
	return r ? -ENOMEM : 0;
}

int live_add(json_t *live, json_t *op, const struct policy *file)
{
	if (is_op(op, "limit set"))
		return merge_set(live, op);
	if (json_object_get(op, "prefixes"))
		return live_set_add(live, op, file);
	if (live_override_is(op))
		return live_override_add(live, op, file);
	if (live_rule_is(op))
		return live_rule_add(live, op);
	/* A limit of the file that was deleted and added again needs both operations. */
	if (!is_op(op, "limit add"))
		forget_subject(live, op);
	if (file_says_so(op, file))
		return 0;
	return json_array_append(live, op) ? -ENOMEM : 0;
}

void live_describe(const json_t *op, char *buf, size_t size)
{
	const json_t *pair;
	size_t len, used, i;

	if (live_rule_is(op)) {
		live_rule_describe(op, buf, size);
		return;
	}
	used = (size_t)snprintf(buf, size, "%s %s", op_text(op, "op"), subject(op, &len));
	if (live_override_is(op))
		used = (size_t)snprintf(buf, size, "%s %s %s", op_text(op, "op"),
					op_text(op, "name"), op_text(op, "prefix"));
	json_array_foreach(json_object_get(op, "pairs"), i, pair) {
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, " %s",
						 json_string_value(pair));
	}
	json_array_foreach(json_object_get(op, "prefixes"), i, pair) {
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, " %s",
						 json_string_value(pair));
	}
}
