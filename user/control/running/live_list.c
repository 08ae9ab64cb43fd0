// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * live_list.c - the list of live changes: what differs from the file, and live.json; see live.h.
 *
 * Whether an object differs is computed: the file's is compared with the running one. The operation
 * that is kept has the text of the command, so that it means the same on a changed file.
 */
#include "control/running/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file.h"

#define LIVE_NAME "live.json"
#define LIVE_LOST "live changes are lost"

static bool is_op(const json_t *op, const char *what)
{
	return !strcmp(live_text(op, "op"), what);
}

static bool is_subject(const json_t *op, enum live_subject subject)
{
	const struct live_kind *kind = live_kind_of(op);

	return kind && kind->subject == subject;
}

static bool same_subject(const json_t *a, const json_t *b)
{
	const struct live_kind *x = live_kind_of(a), *y = live_kind_of(b);

	if (!x || !y || x->subject != y->subject)
		return false;
	for (size_t i = 0; i < 2 && x->member[i]; i++)
		if (strcmp(live_text(a, x->member[i]), live_text(b, x->member[i])) != 0)
			return false;
	return true;
}

static bool same_name(const json_t *a, const json_t *b)
{
	return !strcmp(live_text(a, "name"), live_text(b, "name"));
}

/* True if the list has another operation on the subject. */
static bool has_other(json_t *live, const json_t *op)
{
	json_t *other;
	size_t i;

	json_array_foreach(live, i, other)
		if (same_subject(other, op))
			return true;
	return false;
}

/* ------------------------------------------------------------------ what differs from the file */

static bool limit_differs(const char *name, const struct policy *file, const struct policy *running)
{
	const struct limit_def *before = policy_find_limit(file, name);
	const struct limit_def *after = policy_find_limit(running, name);

	return before && after ? !limit_equal(before, after) : before || after;
}

/* The rates of the source's override; NULL: none. */
static const struct rates *override_rates(const struct policy *policy, const json_t *op)
{
	const struct limit_def *limit = policy_find_limit(policy, live_text(op, "name"));
	const struct override_def *def = NULL;
	struct sl_prefix src;
	const char *reason;

	if (limit && sl_prefix_parse(live_text(op, "prefix"), &src, &reason) == 0)
		def = override_find(limit, &src);
	return def && !def->derived ? &limit->override_rates[def->rates] : NULL;
}

static bool override_differs(const json_t *op, const struct policy *file,
			     const struct policy *running)
{
	const struct rates *before = override_rates(file, op), *after = override_rates(running, op);

	return before && after ? memcmp(before, after, sizeof(*before)) != 0 : before || after;
}

/* The list's entry of an operation; NULL: none. */
static const struct list_entry *list_entry(const struct list_def *list, const char *text)
{
	const struct list_set *set;
	struct sl_prefix prefix;
	const char *reason;

	if (text[0] == '@') {
		set = list_find_set(list, text + 1);
		return set ? &set->entry : NULL;
	}
	return sl_prefix_parse(text, &prefix, &reason) < 0 ? NULL : list_find_entry(list, &prefix);
}

static bool list_differs(const char *text, const struct list_def *file,
			 const struct list_def *running)
{
	const struct list_entry *before = list_entry(file, text),
				*after = list_entry(running, text);

	if (!before || !after)
		return before || after;
	return before->until_utc_ns != after->until_utc_ns ||
	       strcmp(before->reason, after->reason) != 0;
}

static bool interface_differs(const char *name, const struct policy *file,
			      const struct policy *running)
{
	const struct interface_def *before = policy_find_interface(file, name);
	const struct interface_def *after = policy_find_interface(running, name);

	return before && after ? before->mode != after->mode : before || after;
}

static bool differs(const json_t *op, const struct policy *file, const struct policy *running)
{
	switch (live_kind_of(op)->subject) {
	case LIVE_LIMIT:
		return limit_differs(live_text(op, "name"), file, running);
	case LIVE_OVERRIDE:
		return override_differs(op, file, running);
	case LIVE_BLOCK:
		return list_differs(live_text(op, "prefix"), &file->list[LIST_BLOCK],
				    &running->list[LIST_BLOCK]);
	case LIVE_EXEMPT:
		return list_differs(live_text(op, "prefix"), &file->list[LIST_EXEMPT],
				    &running->list[LIST_EXEMPT]);
	case LIVE_INTERFACE:
		return interface_differs(live_text(op, "interface"), file, running);
	default: /* the rule files are not part of a policy */
		return !json_is_true(json_object_get(op, "forget"));
	}
}

/* ------------------------------------------------------------------ sets */

json_t *live_set_members(const struct set_def *set)
{
	json_t *members = json_object();
	char text[SL_PREFIX_TEXT];

	for (size_t i = 0; set && i < set->count; i++)
		json_object_set_new(members, sl_prefix_format(&set->prefix[i], text, sizeof(text)),
				    json_true());
	return members;
}

/* The members of `a` that `b` does not have, as an array. */
static json_t *beyond(json_t *a, const json_t *b)
{
	json_t *more = json_array(), *value;
	const char *text;

	json_object_foreach(a, text, value)
		if (!json_object_get(b, text))
			json_array_append_new(more, json_string(text));
	return more;
}

/* Inserts `op` as an operation `what` on these prefixes, which it consumes. */
static int insert_set(json_t *live, size_t at, json_t *op, const char *what, json_t *prefixes)
{
	json_t *copy = json_copy(op);

	if (json_object_set_new(copy, "op", json_string(what)) < 0 ||
	    json_object_set_new(copy, "prefixes", prefixes) < 0 ||
	    json_array_insert(live, at, copy) < 0) {
		json_decref(copy);
		return -ENOMEM;
	}
	json_decref(copy);
	return 0;
}

static bool is_empty(const struct policy *running, const json_t *op)
{
	const struct set_def *set = policy_find_set(running, live_text(op, "name"));

	return set && !set->count;
}

/* What the list makes of a set. */
static json_t *listed_members(const json_t *live, const json_t *op, const struct policy *file)
{
	json_t *members = live_set_members(policy_find_set(file, live_text(op, "name"))), *other,
	       *prefix;
	size_t i, k;

	json_array_foreach((json_t *)live, i, other) {
		if (!same_subject(other, op))
			continue;
		if (is_op(other, "set replace"))
			json_object_clear(members);
		json_array_foreach(json_object_get(other, "prefixes"), k, prefix) {
			if (is_op(other, "set del"))
				json_object_del(members, json_string_value(prefix));
			else
				json_object_set_new(members, json_string_value(prefix),
						    json_true());
		}
	}
	return members;
}

/*
 * A limit must not match on an empty set. So a set becomes empty after all that was changed of
 * limits, which had addresses in it until then.
 */
static int empty_set(json_t *live, json_t *op, const struct policy *file)
{
	json_t *before = listed_members(live, op, file);
	bool is_new = !policy_find_set(file, live_text(op, "name")) && !has_other(live, op);
	int r = 0;

	if (is_new || json_object_size(before))
		r = json_array_append(live, op) ? -ENOMEM : 0;
	json_decref(before);
	return r;
}

/*
 * Either what the set was replaced by, or what was added to the file's and what was removed from
 * it, in this order, so that no set is empty on the way. They take the place of the earlier ones:
 * later operations may name the set.
 */
static int add_set(json_t *live, json_t *op, const struct policy *file,
		   const struct policy *running)
{
	const struct set_def *set = policy_find_set(file, live_text(op, "name"));
	json_t *before = live_set_members(set);
	json_t *after = live_set_members(policy_find_set(running, live_text(op, "name")));
	json_t *more = beyond(after, before), *less = beyond(before, after);
	bool replaced = is_op(op, "set replace");
	size_t at = json_array_size(live);
	int r = 0;

	for (size_t i = at; i-- > 0;) {
		if (!same_subject(json_array_get(live, i), op))
			continue;
		replaced |= is_op(json_array_get(live, i), "set replace");
		json_array_remove(live, i);
		at = i;
	}
	if (set && !json_array_size(more) && !json_array_size(less)) {
		r = 0;
	} else if (replaced) {
		json_t *nothing = json_object();

		r = insert_set(live, at, op, "set replace", beyond(after, nothing));
		json_decref(nothing);
	} else {
		if (json_array_size(less))
			r = insert_set(live, at, op, "set del", json_incref(less));
		if (!r && (!set || json_array_size(more)))
			r = insert_set(live, at, op, "set add", json_incref(more));
	}
	json_decref(more);
	json_decref(less);
	json_decref(before);
	json_decref(after);
	return r;
}

/* ------------------------------------------------------------------ the list */

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

/*
 * The operation and earlier values under other keys become one: a set of a limit or a rule is one
 * step, so the order of its keys does not matter.
 */
static int merge_pairs(json_t *op, const json_t *before)
{
	json_t *own = json_object_get(op, "pairs"), *pairs = json_array(), *pair;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(before, "pairs"), i, pair)
		if (!has_key(own, json_string_value(pair)))
			r |= json_array_append(pairs, pair);
	r |= json_array_extend(pairs, own);
	return json_object_set_new(op, "pairs", pairs) < 0 || r ? -ENOMEM : 0;
}

/* True if the list has an operation on a limit: the one that `of` names; NULL: any. */
static bool has_limit(json_t *live, const json_t *of)
{
	json_t *op;
	size_t i;

	json_array_foreach(live, i, op)
		if (is_subject(op, LIVE_LIMIT) && (!of || same_name(op, of)))
			return true;
	return false;
}

/*
 * An override may only fit the rates before it, and a limit the overrides: they keep their order.
 * And a set may only be empty since the limit has another match.
 */
static bool keeps_order(const json_t *before, const json_t *op, const struct policy *running)
{
	if (is_op(op, "limit set") && is_subject(before, LIVE_SET))
		return is_empty(running, before);
	if (is_op(op, "limit set"))
		return is_subject(before, LIVE_OVERRIDE) && same_name(before, op);
	return is_subject(op, LIVE_OVERRIDE) && !is_subject(before, LIVE_OVERRIDE) &&
	       same_name(before, op);
}

/* True if `op` takes the place of `before`. */
static bool overrides(const json_t *before, const json_t *op)
{
	/* A limit of the file that was deleted and added again needs both operations. */
	if (is_op(op, "limit add"))
		return false;
	if (is_op(op, "limit set"))
		return is_op(before, "limit set") && same_name(before, op);
	if (is_op(op, "limit del") && is_subject(before, LIVE_OVERRIDE))
		return same_name(before, op);
	return same_subject(before, op);
}

int live_add(json_t *live, json_t *op, const struct policy *file, const struct policy *running)
{
	bool merges = is_op(op, "limit set") || is_op(op, "rule set"), ordered = false;
	size_t at = json_array_size(live);
	json_t *kept;
	int r = 0;

	if (is_subject(op, LIVE_SET))
		return is_empty(running, op) && has_limit(live, NULL)
			       ? empty_set(live, op, file)
			       : add_set(live, op, file, running);
	/* What it removes may be the limit's as it was added, or between two changes of the
	 * limit. */
	if (is_op(op, "override del"))
		ordered = has_limit(live, op);
	kept = json_copy(op);
	for (size_t i = at; i-- > 0 && !ordered && !r;) {
		const json_t *before = json_array_get(live, i);

		ordered = keeps_order(before, op, running);
		if (ordered || !overrides(before, op))
			continue;
		if (merges)
			r = merge_pairs(kept, before);
		json_array_remove(live, i);
		/* A set may be empty since the limit is gone, or matches on others. */
		at = is_op(op, "limit del") ? i : at - 1;
	}
	if (!r && (ordered || has_other(live, op) || differs(op, file, running)))
		r = json_array_insert(live, at, kept) ? -ENOMEM : 0;
	json_decref(kept);
	return r;
}

json_t *live_rules(const json_t *live, enum live_term term)
{
	json_t *list = json_array(), *op;
	size_t i;

	json_array_foreach((json_t *)live, i, op) {
		bool timed = json_integer_value(json_object_get(op, "until_utc_ns"));

		if (live_is_rule(op) && (term == LIVE_ANY_TERM || timed == (term == LIVE_TIMED)))
			json_array_append(list, op);
	}
	return list;
}

json_t *live_rules_of(const json_t *live, const char *name, enum live_subject subject)
{
	json_t *list = json_array(), *op;
	size_t i;

	json_array_foreach((json_t *)live, i, op)
		if (!strcmp(live_text(op, "name"), name) && is_subject(op, subject))
			json_array_append(list, op);
	return list;
}

bool live_expired(const json_t *op, u64 now_utc_ns)
{
	u64 until = (u64)json_integer_value(json_object_get(op, "until_utc_ns"));

	return until && until <= now_utc_ns;
}

size_t live_expire(json_t *live, u64 now_utc_ns)
{
	size_t dropped = 0;

	for (size_t i = json_array_size(live); i-- > 0;) {
		if (live_expired(json_array_get(live, i), now_utc_ns)) {
			json_array_remove(live, i);
			dropped++;
		}
	}
	return dropped;
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

int live_load(const char *state_dir, json_t **ret_live, json_t **ret_record, struct sl_err *err)
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

int live_store(const char *state_dir, const json_t *live, const json_t *record, struct sl_err *err)
{
	json_t *document = json_pack("{s:i, s:O}", "version", FILE_VERSION, "changes", live);
	char *path = file_join(state_dir, LIVE_NAME);
	char *text = NULL;
	int r;

	if (document && json_object_update_missing(document, (json_t *)record) == 0)
		text = json_dumps(document, JSON_INDENT(1));
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0600, err)
			 : sl_err_set(err, ENOMEM, "out of memory");
	free(path);
	free(text);
	json_decref(document);
	return r;
}
