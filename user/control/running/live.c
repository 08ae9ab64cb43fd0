// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live.c - applies operations to a policy, keeps the list short, reads and writes it; see live.h. */
#include "control/running/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/running/live_rule.h"
#include "control/running/live_set.h"
#include "lib/file.h"
#include "lib/log.h"

#define LIVE_NAME "live.json"
#define LIVE_LOST "live changes are lost"

const char *op_text(const json_t *op, const char *key)
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

static bool is_override(const json_t *op)
{
	return !strncmp(op_text(op, "op"), "override ", 9);
}

static bool is_override_of(const json_t *op, const char *name)
{
	return is_override(op) && !strcmp(op_text(op, "name"), name);
}

static int apply_override(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *text = op_text(op, "prefix"), *reason, *name = op_text(op, "name");
	const json_t *pairs = json_object_get(op, "pairs"), *pair;
	struct sl_prefix src;
	char *pointer[4];
	size_t i;

	if (sl_prefix_parse(text, &src, &reason) < 0)
		return sl_err_set(err, EINVAL, "'%.80s': %s", text, reason);
	if (!strcmp(op_text(op, "op"), "override del"))
		return policy_override_del(policy, name, &src, err);
	if (json_array_size(pairs) > sizeof(pointer) / sizeof(pointer[0]))
		return sl_err_set(err, EINVAL, "accepted: rate= and burst=, each once");
	json_array_foreach(pairs, i, pair) {
		pointer[i] = (char *)json_string_value(pair);
		if (!pointer[i])
			return sl_err_set(err, EINVAL, "a pair is a string KEY=VALUE");
	}
	return policy_override_set(policy, name, &src, pointer, json_array_size(pairs), err);
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
	if (is_override(op))
		return apply_override(op, policy, err);
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
		     is_override_of(json_array_get(live, i), op_text(op, "name"))))
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

		if (text && strcspn(text, "=") == len && !strncmp(text, pair, len))
			return true;
	}
	return false;
}

int op_merge_pairs(json_t *op, const json_t *before)
{
	json_t *pairs = json_array(), *pair;
	const json_t *own = json_object_get(op, "pairs");
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(before, "pairs"), i, pair)
		if (!has_key(own, json_string_value(pair)))
			r |= json_array_append(pairs, pair);
	r |= json_array_extend(pairs, (json_t *)own);
	r |= json_object_set_new(op, "pairs", pairs);
	return r ? -ENOMEM : 0;
}

/*
 * A limit has one "limit set", its last operation: earlier values under other keys are merged into
 * it. Together they are one step, so their order does not matter.
 */
static int merge_set(json_t *live, const json_t *op)
{
	json_t *merged = json_copy((json_t *)op);
	int r = 0;

	for (size_t at = json_array_size(live); !r && at-- > 0;) {
		const json_t *before = json_array_get(live, at);

		if (is_override_of(before, op_text(op, "name")))
			break;	/* it may only fit the rates before it */
		if (!same_subject(before, op) || !is_op(before, "limit set"))
			continue;
		r = op_merge_pairs(merged, before);
		json_array_remove(live, at);
	}
	return json_array_append_new(live, merged) || r ? -ENOMEM : 0;
}

/* Whether the file by itself has no override there. */
static bool file_has_none(const struct policy *file, const json_t *op)
{
	const struct limit_def *limit = policy_find_limit(file, op_text(op, "name"));
	struct sl_prefix src;
	const char *reason;

	return !limit || sl_prefix_parse(op_text(op, "prefix"), &src, &reason) < 0 ||
	       !override_find(limit, &src);
}

/*
 * Of each source of a limit the last one is kept. Whether an override fits depends on the limit's rates,
 * so neither is moved over a "limit set" of its limit.
 */
static int add_override(json_t *live, json_t *op, const struct policy *file)
{
	const char *name = op_text(op, "name");
	bool barred = false;

	for (size_t i = json_array_size(live); i-- > 0 && !barred;) {
		const json_t *before = json_array_get(live, i);

		if (is_override_of(before, name) &&
		    !strcmp(op_text(before, "prefix"), op_text(op, "prefix")))
			json_array_remove(live, i);
		else
			barred = !is_override(before) &&
				 !strcmp(op_text(before, "name"), name);
	}
	if (!barred && !strcmp(op_text(op, "op"), "override del") && file_has_none(file, op))
		return 0;
	return json_array_append(live, op) ? -ENOMEM : 0;
}

int live_add(json_t *live, json_t *op, const struct policy *file)
{
	if (is_op(op, "limit set"))
		return merge_set(live, op);
	if (json_object_get(op, "prefixes"))
		return live_set_add(live, op, file);
	if (is_override(op))
		return add_override(live, op, file);
	if (live_rule_is(op))
		return live_rule_add(live, op);
	/* A limit of the file that was deleted and added again needs both operations. */
	if (!is_op(op, "limit add"))
		forget_subject(live, op);
	if (file_says_so(op, file))
		return 0;
	return json_array_append(live, op) ? -ENOMEM : 0;
}

static void describe_all(const json_t *list, char *buf, size_t size, size_t used)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, " %s",
						 json_string_value(item));
}

void live_describe(const json_t *op, char *buf, size_t size)
{
	size_t len, used;

	if (live_rule_is(op))
		used = live_rule_describe(op, buf, size);
	else if (is_override(op))
		used = (size_t)snprintf(buf, size, "%s %s %s", op_text(op, "op"),
					op_text(op, "name"), op_text(op, "prefix"));
	else
		used = (size_t)snprintf(buf, size, "%s %s", op_text(op, "op"), subject(op, &len));
	describe_all(json_object_get(op, "pairs"), buf, size, used);
	describe_all(json_object_get(op, "prefixes"), buf, size, strnlen(buf, size));
}

/* ------------------------------------------------------------------ live.json */

bool live_well_formed(const json_t *changes)
{
	const json_t *op, *pair;
	size_t i, k;

	if (!json_is_array(changes))
		return false;
	json_array_foreach(changes, i, op) {
		if (!json_is_string(json_object_get(op, "op")))
			return false;
		json_array_foreach(json_object_get(op, "pairs"), k, pair)
			if (!json_is_string(pair))
				return false;
		json_array_foreach(json_object_get(op, "prefixes"), k, pair)
			if (!json_is_string(pair))
				return false;
	}
	return true;
}

int live_load(const char *state_dir, json_t **ret_live, json_t **ret_record,
	      struct sl_err *err)
{
	json_t *document = file_load_json(state_dir, LIVE_NAME, LIVE_LOST);
	int r = 0;

	if (document && !live_well_formed(json_object_get(document, "changes"))) {
		file_put_aside(state_dir, LIVE_NAME, "not a list of changes", LIVE_LOST);
		json_decref(document);
		document = NULL;
	}
	if (!document)
		document = json_pack("{s:[]}", "changes");
	*ret_live = json_incref(json_object_get(document, "changes"));
	*ret_record = json_incref(document);
	json_object_del(document, "changes");
	if (!*ret_live)
		r = sl_err_set(err, ENOMEM, "out of memory");
	json_decref(document);
	return r;
}

int live_store(const char *state_dir, const json_t *live, const json_t *record,
	       struct sl_err *err)
{
	json_t *document = json_pack("{s:i, s:O}", "version", FILE_VERSION, "changes", live);
	char *path = file_join(state_dir, LIVE_NAME);
	char *text = NULL;
	int r;

	if (document && json_object_update_missing(document, (json_t *)record) == 0)
		text = json_dumps(document, JSON_INDENT(1));
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, err) :
			   sl_err_set(err, ENOMEM, "out of memory");
	free(path);
	free(text);
	json_decref(document);
	return r;
}
