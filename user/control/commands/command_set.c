// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_set.c - set add, del, replace, list; feed report. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "control/commands/listing.h"
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

/* Prefixes on their way into a set. */
struct reading {
	const struct commands *ctx;
	struct block_sum *sum;	  /* of the set with them; NULL: nothing is too wide */
	struct list_lines *lines; /* bad ones are skipped; NULL: one refuses all */
};

/* A bad one: 1 if it is skipped, or the error. */
static int skip(const struct reading *reading, size_t index, const struct sl_err *why, int r,
		struct sl_err *err)
{
	if (!reading->lines) {
		*err = *why;
		return r;
	}
	list_lines_skip(reading->lines, index, why);
	return 1;
}

/* One prefix: 0, 1 if it is skipped or empty, or the error. */
static int read_prefix(const struct reading *reading, const json_t *given, size_t index,
		       struct sl_prefix *ret, struct sl_err *err)
{
	const char *text = json_string_value(json_array_get(given, index)), *reason;
	struct sl_err why;
	int r = 0;

	if (reading->lines && !*text)
		return 1;
	if (reading->lines)
		reading->lines->count++;
	if (sl_prefix_parse(text, ret, &reason) < 0)
		r = sl_err_set(&why, EINVAL, "'%.80s': %s", text, reason);
	else if (reading->sum)
		r = block_check_width(ret, &why);
	if (!r && reading->sum)
		r = block_check_own(reading->ctx, ret, &why);
	return r < 0 ? skip(reading, index, &why, r, err) : 0;
}

/* Parses the prefixes into a new array: each once, in its canonical text. */
static int arg_prefixes(const struct command_request *request, const struct reading *reading,
			json_t **ret, struct sl_err *err)
{
	const json_t *given = json_object_get(request->args, "prefixes");
	json_t *lines = json_object(), *prefixes = json_array(), *line;
	struct sl_prefix prefix;
	const char *text;
	struct sl_err why;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < json_array_size(given); i++) {
		char canonical[SL_PREFIX_TEXT];

		r = read_prefix(reading, given, i, &prefix, err);
		if (r)
			continue;
		sl_prefix_format(&prefix, canonical, sizeof(canonical));
		if (json_object_get(lines, canonical))
			continue;
		json_object_set_new(lines, canonical, json_integer((json_int_t)i));
		if (reading->sum)
			block_sum_add(reading->sum, &prefix);
	}
	if (reading->sum)
		block_sum_fit(reading->sum);
	json_object_foreach(lines, text, line) {
		if (r < 0)
			break;
		sl_prefix_parse(text, &prefix, &(const char *){ NULL });
		r = reading->sum ? block_sum_check(reading->sum, &prefix, &why) : 0;
		if (r < 0)
			r = skip(reading, (size_t)json_integer_value(line), &why, r, err);
		else
			json_array_append_new(prefixes, json_string(text));
	}
	if (r >= 0 && reading->lines)
		r = list_lines_judge(reading->lines, err);
	json_decref(lines);
	if (r < 0)
		json_decref(prefixes);
	else
		*ret = prefixes;
	return r < 0 ? r : 0;
}

static json_t *set_result(const struct commands *ctx, const char *name)
{
	const struct set_def *set = policy_find_set(ctx->running->policy, name);
	json_t *result = change_result(ctx);

	json_object_set_new(result, "name", json_string(name));
	json_object_set_new(result, "count", json_u64(set ? set->count : 0));
	return result;
}

/* `replace`: by the lines of a file. */
static int change(struct commands *ctx, const struct command_request *request, const char *what,
		  bool replace, json_t **ret, struct sl_err *err)
{
	const char *name = arg_name(request);
	const struct policy *policy = ctx->running->policy;
	const struct set_def *set = replace ? NULL : policy_find_set(policy, name);
	bool bounded =
		!arg_flag(request, "force") && list_find_set(&policy->list[LIST_BLOCK], name);
	struct block_sum sum = { .shortest = { 0 } };
	struct list_lines lines = { .count = 0 };
	struct reading reading = { ctx, bounded ? &sum : NULL, replace ? &lines : NULL };
	json_t *prefixes = NULL;
	int r;

	for (size_t i = 0; set && i < set->count; i++)
		block_sum_add(&sum, &set->prefix[i]);
	r = arg_prefixes(request, &reading, &prefixes, err);
	if (!r)
		r = op_run(ctx, request,
			   op_new(request, what, "{s:s, s:o}", "name", name, "prefixes", prefixes),
			   err);
	if (!r) {
		feeds_changed(ctx->running, FEED_SET, name);
		*ret = set_result(ctx, name);
	}
	list_lines_end(&lines, what, name, r < 0 ? NULL : *ret);
	return r;
}

int command_set_add(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	return change(ctx, request, "set add", false, ret, err);
}

int command_set_replace(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	return change(ctx, request, "set replace", true, ret, err);
}

int command_set_del(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	json_t *prefixes = NULL, *members, *item;
	const char *name = arg_name(request);
	size_t i;
	int r = arg_prefixes(request, &(struct reading){ ctx, NULL, NULL }, &prefixes, err);

	if (r < 0)
		return r;
	members = live_set_members(policy_find_set(ctx->running->policy, name));
	json_array_foreach(prefixes, i, item)
		if (!r && !json_object_get(members, json_string_value(item)))
			r = sl_err_set(err, ENOENT,
				       "%s is not in the set '%.63s'; sluicectl set "
				       "list %.63s shows its prefixes",
				       json_string_value(item), name, name);
	json_decref(members);
	if (r < 0) {
		json_decref(prefixes);
		return r;
	}
	r = op_run(ctx, request,
		   op_new(request, "set del", "{s:s, s:o}", "name", name, "prefixes", prefixes),
		   err);
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
			json_array_append_new(users,
					      json_sprintf("limit %s", policy->limit[i].name));
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
		json_object_set_new(
			json, "age_ns",
			json_u64(now_ns > changed_utc_ns ? now_ns - changed_utc_ns : 0));
	}
	if (feed && feed->checked_utc_ns) {
		json_object_set_new(json, "checked", json_utc(feed->checked_utc_ns));
		json_object_set_new(json, "checked_ns",
				    json_u64(now_ns > feed->checked_utc_ns
						     ? now_ns - feed->checked_utc_ns
						     : 0));
	}
	if (feed && feed->source[0])
		json_object_set_new(json, "source", json_string(feed->source));
	if (feed && feed->error[0]) {
		json_object_set_new(json, "error", json_string(feed->error));
		json_object_set_new(json, "failed", json_utc(feed->failed_utc_ns));
		json_object_set_new(
			json, "failed_ns",
			json_u64(now_ns > feed->failed_utc_ns ? now_ns - feed->failed_utc_ns : 0));
	}
}

/* When a set's file was written; 0: unknown. */
static u64 file_changed_ns(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0
		       ? (u64)st.st_mtim.tv_sec * SL_NS_PER_SEC + (u64)st.st_mtim.tv_nsec
		       : 0;
}

static json_t *set_to_json(const struct commands *ctx, const struct set_def *set)
{
	const struct policy *policy = ctx->running->policy;
	json_t *json =
		json_pack("{s:s, s:o, s:b, s:o}", "name", set->name, "count", json_u64(set->count),
			  "live", set->live, "used_by", users_of(policy, set->name));

	if (set->file)
		json_object_set_new(json, "file", json_string(set->file));
	if (set->skipped)
		json_object_set_new(json, "skipped",
				    json_pack("{s:o, s:o, s:i}", "count", json_u64(set->skipped),
					      "lines", json_u64(set->lines), "first",
					      set->skipped_first));
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
		json = json_pack("{s:s, s:s, s:o}", "name", feed->name, "kind",
				 feed_kind_name(feed->kind), "count",
				 json_u64(feed_prefixes(ctx->running, feed)));
		add_feed(json, feed, 0);
		json_array_append_new(list, json);
	}
	return list;
}

int command_feed_report(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	const char *error = arg_text(request, "error"), *text = arg_text(request, "kind");
	enum feed_kind kind =
		text && !strcmp(text, feed_kind_name(FEED_ORIGIN)) ? FEED_ORIGIN : FEED_SET;
	int r;

	if (text && strcmp(text, feed_kind_name(kind)) != 0)
		return sl_err_set(err, EINVAL, "'kind' must be set or origin, not '%.80s'", text);
	r = feeds_report(ctx->running, kind, arg_name(request), arg_text(request, "source"), error,
			 err);

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
	json_t *sets = json_array();
	struct listing listing;
	char text[SL_PREFIX_TEXT];
	int r;

	if (!name) {
		for (size_t i = 0; i < ctx->running->policy->set_count; i++)
			json_array_append_new(sets,
					      set_to_json(ctx, &ctx->running->policy->set[i]));
		*ret = json_pack("{s:o, s:o}", "sets", sets, "origins", origins_to_json(ctx));
		return 0;
	}
	json_decref(sets);
	set = policy_find_set(ctx->running->policy, name);
	if (!set)
		return sl_err_set(err, ENOENT,
				  "there is no set '%.63s'; sluicectl set list shows "
				  "all sets",
				  name);
	r = listing_begin(request, &listing, err);
	if (r < 0)
		return r;
	while (listing_pass(&listing))
		for (size_t i = 0; i < set->count; i++)
			if (listing_wants(&listing, &set->prefix[i]))
				listing_add(&listing,
					    json_string(sl_prefix_format(&set->prefix[i], text,
									 sizeof(text))));
	*ret = set_to_json(ctx, set);
	return listing_end(&listing, *ret, "prefixes", err);
}
