// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live_set.c - see live_set.h. Prefixes in an operation are in their canonical text. */
#include "control/running/live_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

json_t *live_set_members(const struct set_def *set)
{
	json_t *members = json_object();
	char text[SL_PREFIX_TEXT];

	for (size_t i = 0; set && i < set->count; i++)
		json_object_set_new(members,
				    sl_prefix_format(&set->prefix[i], text, sizeof(text)),
				    json_true());
	return members;
}

/* ------------------------------------------------------------------ applying */

/* The prefixes of an operation; `only`: those that are members of it. */
static int read_prefixes(const json_t *op, const json_t *only, struct sl_prefix **ret,
			 size_t *ret_count, struct sl_err *err)
{
	const json_t *all = json_object_get(op, "prefixes"), *item;
	struct sl_prefix *prefix = calloc(json_array_size(all) + 1, sizeof(*prefix));
	const char *reason;
	size_t i, count = 0;

	if (!prefix)
		return sl_err_set(err, ENOMEM, "out of memory");
	json_array_foreach(all, i, item) {
		const char *text = json_string_value(item);

		if (only && !json_object_get(only, text ? text : ""))
			continue;
		if (!text || sl_prefix_parse(text, &prefix[count], &reason) < 0) {
			free(prefix);
			return sl_err_set(err, EINVAL, "'%s': %s", text ? text : "?",
					  text ? reason : "not a prefix");
		}
		count++;
	}
	*ret = prefix;
	*ret_count = count;
	return 0;
}

static int apply_del(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *name = op_text(op, "name");
	json_t *members = live_set_members(policy_find_set(policy, name));
	struct sl_prefix *prefix = NULL;
	size_t count = 0;
	int r = read_prefixes(op, members, &prefix, &count, err);

	if (!r && !count)
		r = sl_err_set(err, ENOENT, "set \"%s\" has nothing of that", name);
	if (!r)
		r = policy_set_del(policy, name, prefix, count, err);
	json_decref(members);
	free(prefix);
	return r;
}

int live_set_apply(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *what = op_text(op, "op"), *name = op_text(op, "name");
	struct sl_prefix *prefix = NULL;
	size_t count = 0;
	int r;

	if (!strcmp(what, "set del"))
		return apply_del(op, policy, err);
	r = read_prefixes(op, NULL, &prefix, &count, err);
	if (!r && !strcmp(what, "set add"))
		r = policy_set_add(policy, name, prefix, count, err);
	else if (!r)
		r = policy_set_replace(policy, name, prefix, count, err);
	free(prefix);
	return r;
}

/* ------------------------------------------------------------------ keeping the list short */

/* The operation of that kind on the set, or NULL. */
static json_t *find_op(const json_t *live, const char *what, const char *name, size_t *ret_at)
{
	json_t *op;
	size_t i;

	json_array_foreach(live, i, op) {
		if (strcmp(op_text(op, "op"), what) || strcmp(op_text(op, "name"), name))
			continue;
		*ret_at = i;
		return op;
	}
	return NULL;
}

/* Texts of an array as members of an object. */
static json_t *members_of(const json_t *array)
{
	json_t *members = json_object();
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
		json_object_set_new(members, json_string_value(item), json_true());
	return members;
}

/*
 * Those of `a` that are in `b` (or are not), as a new array. `b` is an object.
 */
static json_t *select_in(const json_t *a, const json_t *b, bool in)
{
	json_t *selected = json_array(), *item;
	size_t i;

	json_array_foreach(a, i, item)
		if ((json_object_get(b, json_string_value(item)) != NULL) == in)
			json_array_append(selected, item);
	return selected;
}

/* a and then what b has beyond it; both are used up. */
static json_t *unite(json_t *a, json_t *b)
{
	json_t *members = members_of(a), *more = select_in(b, members, false);

	json_array_extend(a, more);
	json_decref(more);
	json_decref(members);
	json_decref(b);
	return a;
}

/* `op` as an operation `what` on these prefixes, which are used up. */
static json_t *op_with(const json_t *op, const char *what, json_t *prefixes)
{
	json_t *copy = json_copy((json_t *)op);

	if (json_object_set_new(copy, "op", json_string(what)) < 0 ||
	    json_object_set_new(copy, "prefixes", prefixes) < 0) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

/*
 * Puts the operation in the place of the one of its kind: what names the set may stand behind
 * that. Additions stand before removals, so that no set is empty on the way.
 */
static int put(json_t *live, const char *what, json_t *op)
{
	const char *name = op_text(op, "name");
	size_t at;

	if (!op)
		return -ENOMEM;
	if (find_op(live, what, name, &at))
		return json_array_set_new(live, at, op) ? -ENOMEM : 0;
	if (!strcmp(what, "set add") && find_op(live, "set del", name, &at))
		return json_array_insert_new(live, at, op) ? -ENOMEM : 0;
	return json_array_append_new(live, op) ? -ENOMEM : 0;
}

static void take_out(json_t *live, const char *what, const char *name)
{
	size_t at;

	if (find_op(live, what, name, &at))
		json_array_remove(live, at);
}

/* The set was replaced before: that is as if it had been replaced by the result. */
static int add_to_replaced(json_t *live, json_t *op, const json_t *replaced)
{
	json_t *before = json_copy(json_object_get(replaced, "prefixes"));
	json_t *prefixes = json_object_get(op, "prefixes"), *members, *rest;

	if (!strcmp(op_text(op, "op"), "set add"))
		return put(live, "set replace",
			   op_with(op, "set replace", unite(before, json_copy(prefixes))));
	members = members_of(prefixes);
	rest = select_in(before, members, false);
	json_decref(members);
	json_decref(before);
	return put(live, "set replace", op_with(op, "set replace", rest));
}

/* The operation of this kind so far, without the prefixes of `op`, and with `more` of its own. */
static int merge(json_t *live, const json_t *op, const char *what, json_t *more, bool keep_empty)
{
	const char *name = op_text(op, "name");
	json_t *taken = members_of(json_object_get(op, "prefixes"));
	size_t at;
	const json_t *before = find_op(live, what, name, &at);
	json_t *kept = select_in(json_object_get(before, "prefixes"), taken, false);

	json_decref(taken);
	kept = unite(kept, more);
	if (json_array_size(kept) || keep_empty)
		return put(live, what, op_with(op, what, kept));
	json_decref(kept);
	take_out(live, what, name);
	return 0;
}

static bool is_files(const json_t *op, const struct set_def *set)
{
	json_t *has = live_set_members(set), *gets = members_of(json_object_get(op, "prefixes"));
	bool same = set && json_equal(has, gets);

	json_decref(has);
	json_decref(gets);
	return same;
}

int live_set_add(json_t *live, json_t *op, const struct policy *file)
{
	const char *what = op_text(op, "op"), *name = op_text(op, "name");
	const json_t *prefixes = json_object_get(op, "prefixes"), *replaced;
	const struct set_def *set = policy_find_set(file, name);
	bool add = !strcmp(what, "set add");
	json_t *members;
	size_t at;
	int r;

	if (!strcmp(what, "set replace")) {
		take_out(live, "set del", name);
		if (is_files(op, set)) {
			take_out(live, "set add", name);
			take_out(live, "set replace", name);
			return 0;
		}
		/* It takes the place of what was added: others may name the set since. */
		if (find_op(live, "set add", name, &at))
			return json_array_set(live, at, op) ? -ENOMEM : 0;
		return put(live, what, json_incref(op));
	}
	replaced = find_op(live, "set replace", name, &at);
	if (replaced)
		return add_to_replaced(live, op, replaced);
	members = live_set_members(set);
	r = merge(live, op, "set add", add ? select_in(prefixes, members, false) : json_array(),
		  !set);
	if (!r)
		r = merge(live, op, "set del",
			  add ? json_array() : select_in(prefixes, members, true), false);
	json_decref(members);
	return r;
}
