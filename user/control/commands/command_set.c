// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_set.c - set add, del, replace, list. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/commands/commands.h"
#include "control/running/live.h"

/* "NAME" or "@NAME". */
static const char *arg_name(const struct command_request *request)
{
	const char *name = arg_text(request, "name");

	return name && name[0] == '@' ? name + 1 : name;
}

/*
 * Parses the prefixes into a new array: each once, in its canonical text. `any_width` (--force)
 * permits prefixes that are too wide for a set in the blocklist.
 */
static int arg_prefixes(const struct command_request *request, bool any_width, json_t **ret,
			struct sl_err *err)
{
	const json_t *given = json_object_get(request->args, "prefixes"), *item;
	json_t *seen = json_object(), *prefixes = json_array();
	size_t i;
	int r = 0;

	json_array_foreach(given, i, item) {
		const char *text = json_string_value(item), *reason;
		struct sl_prefix prefix;
		char canonical[SL_PREFIX_TEXT];

		if (sl_prefix_parse(text, &prefix, &reason) < 0)
			r = sl_err_set(err, EINVAL, "'%.80s': %s", text, reason);
		else if (!any_width)
			r = block_check_width(&prefix, err);
		if (r < 0)
			break;
		sl_prefix_format(&prefix, canonical, sizeof(canonical));
		if (json_object_get(seen, canonical))
			continue;
		json_object_set_new(seen, canonical, json_true());
		json_array_append_new(prefixes, json_string(canonical));
	}
	json_decref(seen);
	if (r < 0)
		json_decref(prefixes);
	else
		*ret = prefixes;
	return r;
}

static json_t *set_result(const struct commands *ctx, const char *name)
{
	const struct set_def *set = policy_find_set(ctx->running->policy, name);
	json_t *result = change_result(ctx);

	json_object_set_new(result, "name", json_string(name));
	json_object_set_new(result, "count", json_u64(set ? set->count : 0));
	return result;
}

static int change(struct commands *ctx, const struct command_request *request, const char *what,
		  json_t **ret, struct sl_err *err)
{
	const char *name = arg_name(request);
	const struct list_def *block = &ctx->running->policy->list[LIST_BLOCK];
	json_t *prefixes = NULL;
	int r = arg_prefixes(request, arg_flag(request, "force") || !list_find_set(block, name),
			     &prefixes, err);

	if (!r)
		r = op_run(ctx, request,
			   op_new(request, what, "{s:s, s:o}", "name", name, "prefixes", prefixes),
			   err);
	if (!r)
		*ret = set_result(ctx, name);
	return r;
}

int command_set_add(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	return change(ctx, request, "set add", ret, err);
}

int command_set_replace(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	return change(ctx, request, "set replace", ret, err);
}

int command_set_del(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	json_t *prefixes = NULL, *members, *item;
	const char *name = arg_name(request);
	size_t i;
	int r = arg_prefixes(request, true, &prefixes, err);

	if (r < 0)
		return r;
	members = live_set_members(policy_find_set(ctx->running->policy, name));
	json_array_foreach(prefixes, i, item)
		if (!r && !json_object_get(members, json_string_value(item)))
			r = sl_err_set(err, ENOENT, "%s is not in the set '%.63s'; sluicectl set "
				       "list %.63s shows its prefixes", json_string_value(item), name,
				       name);
	json_decref(members);
	if (r < 0) {
		json_decref(prefixes);
		return r;
	}
	r = op_run(ctx, request, op_new(request, "set del", "{s:s, s:o}", "name", name, "prefixes",
				      prefixes), err);
	if (!r)
		*ret = set_result(ctx, name);
	return r;
}

/* ------------------------------------------------------------------ list */

static bool names_set_in(char (*set)[SL_NAME_MAX], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(set[i], name))
			return true;
	return false;
}

/* The lists and limits that use it: "block", "exempt", "limit web". */
static json_t *users_of(const struct policy *policy, const char *name)
{
	json_t *users = json_array();

	if (list_find_set(&policy->list[LIST_BLOCK], name))
		json_array_append_new(users, json_string("block"));
	if (list_find_set(&policy->list[LIST_EXEMPT], name))
		json_array_append_new(users, json_string("exempt"));
	if (list_find_set(&policy->list[LIST_NEVER_BAN], name))
		json_array_append_new(users, json_string("never_ban"));
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct match_def *match = &policy->limit[i].match;

		if (names_set_in(match->src_set, match->src_set_count, name) ||
		    names_set_in(match->dst_set, match->dst_set_count, name))
			json_array_append_new(users, json_sprintf("limit %s",
								  policy->limit[i].name));
	}
	return users;
}

static json_t *set_to_json(const struct policy *policy, const struct set_def *set)
{
	json_t *json = json_pack("{s:s, s:o, s:b, s:o}", "name", set->name, "count",
				 json_u64(set->count), "live", set->live, "used_by",
				 users_of(policy, set->name));

	if (set->file)
		json_object_set_new(json, "file", json_string(set->file));
	return json;
}

int command_set_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	const struct set_def *set;
	const char *name = arg_name(request);
	json_t *sets = json_array(), *prefixes;
	char text[SL_PREFIX_TEXT];

	if (!name) {
		for (size_t i = 0; i < ctx->running->policy->set_count; i++)
			json_array_append_new(sets, set_to_json(ctx->running->policy,
								&ctx->running->policy->set[i]));
		*ret = json_pack("{s:o}", "sets", sets);
		return 0;
	}
	json_decref(sets);
	set = policy_find_set(ctx->running->policy, name);
	if (!set)
		return sl_err_set(err, ENOENT, "there is no set '%.63s'; sluicectl set list shows "
				  "all sets", name);
	*ret = set_to_json(ctx->running->policy, set);
	prefixes = json_array();
	for (size_t i = 0; i < set->count; i++)
		json_array_append_new(prefixes, json_string(sl_prefix_format(&set->prefix[i], text,
									     sizeof(text))));
	json_object_set_new(*ret, "prefixes", prefixes);
	return 0;
}
