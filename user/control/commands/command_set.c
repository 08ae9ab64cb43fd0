// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_set.c - set add, del, replace, list; feed report. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "control/commands/commands.h"
#include "control/running/entries.h"
#include "control/running/feeds.h"
#include "control/running/live.h"
#include "lib/clock.h"

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
	if (r < 0)
		return r;
	feeds_changed(ctx->running, FEED_SET, name);
	*ret = set_result(ctx, name);
	return 0;
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
	if (r < 0)
		return r;
	feeds_changed(ctx->running, FEED_SET, name);
	*ret = set_result(ctx, name);
	return 0;
}

/* ------------------------------------------------------------------ list */

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
	for (size_t i = 0; i < policy->limit_count; i++)
		if (match_names_set(&policy->limit[i].match, name))
			json_array_append_new(users, json_sprintf("limit %s",
								  policy->limit[i].name));
	return users;
}

/* What is known of a list's origin: "changed", "age_ns", "checked", "source", "failed", "error". */
static void add_feed(json_t *json, const struct feed *feed, u64 changed_utc_ns)
{
	u64 now_ns = clock_utc_ns();

	if (feed && feed->changed_utc_ns > changed_utc_ns)
		changed_utc_ns = feed->changed_utc_ns;
	if (changed_utc_ns) {
		json_object_set_new(json, "changed", json_utc(changed_utc_ns));
		json_object_set_new(json, "age_ns", json_u64(now_ns > changed_utc_ns ? now_ns - changed_utc_ns : 0));
	}
	if (feed && feed->checked_utc_ns) {
		json_object_set_new(json, "checked", json_utc(feed->checked_utc_ns));
		json_object_set_new(json, "checked_ns", json_u64(now_ns > feed->checked_utc_ns ?
								 now_ns - feed->checked_utc_ns : 0));
	}
	if (feed && feed->source[0])
		json_object_set_new(json, "source", json_string(feed->source));
	if (feed && feed->error[0]) {
		json_object_set_new(json, "error", json_string(feed->error));
		json_object_set_new(json, "failed", json_utc(feed->failed_utc_ns));
		json_object_set_new(json, "failed_ns", json_u64(now_ns > feed->failed_utc_ns ?
								now_ns - feed->failed_utc_ns : 0));
	}
}

/* When a set's file was written; 0: unknown. */
static u64 file_changed_ns(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 ?
	       (u64)st.st_mtim.tv_sec * SL_NS_PER_SEC + (u64)st.st_mtim.tv_nsec : 0;
}

static json_t *set_to_json(const struct commands *ctx, const struct set_def *set)
{
	const struct policy *policy = ctx->running->policy;
	json_t *json = json_pack("{s:s, s:o, s:b, s:o}", "name", set->name, "count",
				 json_u64(set->count), "live", set->live, "used_by",
				 users_of(policy, set->name));

	if (set->file)
		json_object_set_new(json, "file", json_string(set->file));
	add_feed(json, feeds_find(ctx->running, FEED_SET, set->name), file_changed_ns(set->file));
	return json;
}

struct origins {
	const struct commands *ctx;
	json_t *list;
};

static void add_origin(void *arg, const char *name)
{
	struct origins *origins = arg;
	json_t *json = json_pack("{s:s, s:o}", "name", name, "count",
				 json_u64(entries_of_origin(origins->ctx->running, name)));

	add_feed(json, feeds_find(origins->ctx->running, FEED_ORIGIN, name), 0);
	json_array_append_new(origins->list, json);
}

/* Those that list something, and those that failed. */
static json_t *origins_to_json(const struct commands *ctx)
{
	struct origins origins = { ctx, json_array() };

	entries_origins(ctx->running, add_origin, &origins);
	for (size_t i = 0; i < feeds_count(ctx->running); i++) {
		const struct feed *feed = feeds_at(ctx->running, i);

		if (feed->kind == FEED_ORIGIN && !entries_of_origin(ctx->running, feed->name))
			add_origin(&origins, feed->name);
	}
	return origins.list;
}

json_t *feeds_failing(const struct commands *ctx)
{
	json_t *list = json_array(), *json;

	for (size_t i = 0; i < feeds_count(ctx->running); i++) {
		const struct feed *feed = feeds_at(ctx->running, i);

		if (!feed->error[0] ||
		    (feed->kind == FEED_SET && !policy_find_set(ctx->running->policy, feed->name)))
			continue;
		json = json_pack("{s:s, s:s, s:o}", "name", feed->name, "kind", feed_kind_name(feed->kind),
				 "count", json_u64(feed_prefixes(ctx->running, feed)));
		add_feed(json, feed, 0);
		json_array_append_new(list, json);
	}
	return list;
}

int command_feed_report(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	const char *error = arg_text(request, "error"), *text = arg_text(request, "kind");
	enum feed_kind kind = text && !strcmp(text, feed_kind_name(FEED_ORIGIN)) ? FEED_ORIGIN : FEED_SET;
	int r;

	if (text && strcmp(text, feed_kind_name(kind)) != 0)
		return sl_err_set(err, EINVAL, "'kind' must be set or origin, not '%.80s'", text);
	r = feeds_report(ctx->running, kind, arg_name(request), arg_text(request, "source"), error, err);

	if (r < 0)
		return r;
	*ret = json_pack("{s:s}", "name", arg_name(request));
	if (error)
		json_object_set_new(*ret, "error", json_string(error));
	return 0;
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
			json_array_append_new(sets, set_to_json(ctx, &ctx->running->policy->set[i]));
		*ret = json_pack("{s:o, s:o}", "sets", sets, "origins", origins_to_json(ctx));
		return 0;
	}
	json_decref(sets);
	set = policy_find_set(ctx->running->policy, name);
	if (!set)
		return sl_err_set(err, ENOENT, "there is no set '%.63s'; sluicectl set list shows "
				  "all sets", name);
	*ret = set_to_json(ctx, set);
	prefixes = json_array();
	for (size_t i = 0; i < set->count; i++)
		json_array_append_new(prefixes, json_string(sl_prefix_format(&set->prefix[i], text,
									     sizeof(text))));
	json_object_set_new(*ret, "prefixes", prefixes);
	return 0;
}
