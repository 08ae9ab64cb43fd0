// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * command_list.c - block and exempt: add, del, list; load and withdraw of an origin.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "control/commands/listing.h"
#include "control/running/entries.h"
#include "control/running/feeds.h"
#include "control/running/rules.h"
#include "control/replication/replication.h"

/* Returns the first address of this host in the prefix, or NULL. */
static const struct sl_prefix *own_address(const struct commands *ctx,
					   const struct sl_prefix *prefix)
{
	const struct packet_host *host = ctx->running->packets;

	for (size_t i = 0; i < host->local_count; i++)
		if (sl_prefix_contains(prefix, &host->local[i]))
			return &host->local[i];
	return NULL;
}

int block_check_own(const struct commands *ctx, const struct sl_prefix *prefix, struct sl_err *err)
{
	const struct sl_prefix *own = own_address(ctx, prefix);
	char address[SL_PREFIX_TEXT];

	if (!own || !sl_prefix_equal(prefix, own))
		return 0;
	return sl_err_set(err, EINVAL,
			  "%s is an address of this host: a block drops packets that come from it, "
			  "not those to it; accepted: another source, or --force",
			  sl_prefix_format(own, address, sizeof(address)));
}

/*
 * Parses "192.0.2.0/24" or "@set". `buf` gets the canonical text; each prefix of a set is checked,
 * and the set must exist in the running policy.
 */
static int arg_entry(const struct commands *ctx, const struct command_request *request,
		     bool any_width, char *buf, size_t size, struct sl_err *err)
{
	const struct set_def *set;
	struct sl_prefix prefix;
	const char *text = arg_text(request, "prefix");
	struct block_sum sum = { .shortest = { 0 } };
	int r = 0;

	if (text[0] != '@') {
		r = arg_prefix(request, "prefix", &prefix, err);
		if (r < 0)
			return r;
		sl_prefix_format(&prefix, buf, size);
		return any_width ? 0 : block_check_width(&prefix, err);
	}
	set = policy_find_set(ctx->running->policy, text + 1);
	if (!set)
		return sl_err_set(err, ENOENT,
				  "there is no set '%.80s'; sluicectl set list shows "
				  "all sets",
				  text + 1);
	for (size_t i = 0; i < set->count; i++)
		block_sum_add(&sum, &set->prefix[i]);
	block_sum_fit(&sum);
	for (size_t i = 0; !r && !any_width && i < set->count; i++) {
		r = block_check_width(&set->prefix[i], err);
		if (!r)
			r = block_sum_check(&sum, &set->prefix[i], err);
		if (!r)
			r = block_check_own(ctx, &set->prefix[i], err);
	}
	snprintf(buf, size, "@%s", set->name);
	return r;
}

/* Adds a note if the blocked network contains an address of this host. */
static void note_own(const struct commands *ctx, const struct sl_prefix *prefix, const char *text,
		     json_t *result)
{
	const struct sl_prefix *own = own_address(ctx, prefix);
	char address[SL_PREFIX_TEXT];

	if (own)
		json_object_set_new(result, "note",
				    json_sprintf("%s holds this host's own address %s", text,
						 sl_prefix_format(own, address, sizeof(address))));
}

#define FOR_MOST_NS (3650ULL * 86400 * SL_NS_PER_SEC)

/* The time in `text` from now; `what` is its place. Who says a hundred years means no end. */
static int until_parse(const char *text, const char *what, u64 *ret_utc_ns, struct sl_err *err)
{
	const char *reason;
	u64 for_ns;
	int r = duration_parse(text, &for_ns, &reason);

	if (r == -ERANGE || (!r && for_ns > FOR_MOST_NS))
		for_ns = FOR_MOST_NS;
	else if (r < 0 || !for_ns)
		return sl_err_set(err, EINVAL,
				  "invalid duration '%s%.80s': accepted are durations "
				  "such as 30s, 10m, 1h30m or 2d",
				  what, text);
	*ret_utc_ns = clock_utc_ns() + for_ns;
	return 0;
}

int arg_until(const struct command_request *request, u64 *ret_utc_ns, struct sl_err *err)
{
	const char *text = arg_text(request, "for");

	*ret_utc_ns = 0;
	return text ? until_parse(text, "for=", ret_utc_ns, err) : 0;
}

static int reason_check(const char *reason, struct sl_err *err)
{
	const size_t most = sizeof(((struct list_entry *)NULL)->reason) - 1;

	if (strlen(reason) > most)
		return sl_err_set(err, EINVAL, "the reason is too long: %zu bytes, at most %zu",
				  strlen(reason), most);
	for (const char *c = reason; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return sl_err_set(err, EINVAL,
					  "the reason must not contain control characters");
	return 0;
}

static int arg_reason(const struct command_request *request, const char **ret, struct sl_err *err)
{
	const char *text = arg_text(request, "reason");

	*ret = text ? text : "";
	return reason_check(*ret, err);
}

static int list_add(struct commands *ctx, const struct command_request *request, bool block,
		    json_t **ret, struct sl_err *err)
{
	char prefix[SL_NAME_MAX + SL_PREFIX_TEXT];
	const char *reason = "";
	struct sl_prefix source;
	bool is_source;
	u64 until;
	int r = arg_entry(ctx, request, !block || arg_flag(request, "force"), prefix,
			  sizeof(prefix), err);

	is_source = !r && block && sl_prefix_parse(prefix, &source, &reason) == 0;
	if (is_source && !arg_flag(request, "force"))
		r = block_check_own(ctx, &source, err);
	if (!r)
		r = arg_until(request, &until, err);
	if (!r)
		r = arg_reason(request, &reason, err);
	if (!r)
		r = op_run(ctx, request,
			   op_new(request, block ? "block add" : "exempt add", "{s:s, s:I, s:s}",
				  "prefix", prefix, "until_utc_ns", (json_int_t)until, "reason",
				  reason),
			   err);
	if (!r) {
		*ret = change_result(ctx);
		json_object_set_new(*ret, "prefix", json_string(prefix));
		json_object_set_new(*ret, "until", json_utc(until));
		if (is_source)
			note_own(ctx, &source, prefix, *ret);
	}
	return r;
}

static int list_del(struct commands *ctx, const struct command_request *request, bool block,
		    json_t **ret, struct sl_err *err)
{
	char prefix[SL_NAME_MAX + SL_PREFIX_TEXT];
	const char *reason;
	struct sl_prefix other;
	int r = arg_entry(ctx, request, true, prefix, sizeof(prefix), err);

	/* A block of another node: not part of this node's configuration. */
	if (!r && block && sl_prefix_parse(prefix, &other, &reason) == 0 &&
	    replication_unblock(ctx->nodes, &other))
		goto done;
	if (!r)
		r = op_run(ctx, request,
			   op_new(request, block ? "block del" : "exempt del", "{s:s}", "prefix",
				  prefix),
			   err);
	if (r < 0)
		return r;
	if (block && sl_prefix_parse(prefix, &other, &reason) == 0)
		replication_withdrawn(ctx->nodes, REPLICATION_BLOCK, &other);
done:
	*ret = change_result(ctx);
	json_object_set_new(*ret, "prefix", json_string(prefix));
	return 0;
}

struct showing {
	struct listing listing;
	enum list_kind list;
	u64 now_utc_ns;
};

static json_t *fed_to_json(const char *origin, const struct entry *entry, u64 now_utc_ns)
{
	char prefix[SL_PREFIX_TEXT];
	json_t *json;

	sl_prefix_format(&entry->prefix, prefix, sizeof(prefix));
	json = json_pack("{s:s, s:o, s:s, s:b, s:s}", "prefix", prefix, "until",
			 json_utc(entry->until_utc_ns), "reason", entry->reason, "live", 0,
			 "origin", origin);
	if (entry->until_utc_ns)
		json_object_set_new(json, "left_ns", json_u64(entry->until_utc_ns - now_utc_ns));
	return json;
}

static void show_fed(void *arg, const char *origin, const struct entry *entry)
{
	struct showing *showing = arg;

	if (entry->list == showing->list && listing_wants(&showing->listing, &entry->prefix))
		listing_add(&showing->listing, fed_to_json(origin, entry, showing->now_utc_ns));
}

static json_t *entry_to_json(const struct commands *ctx, const struct list_def *list,
			     const struct list_entry *entry, u64 now_utc_ns)
{
	char prefix[SL_PREFIX_TEXT];
	json_t *json;

	sl_prefix_format(&entry->prefix, prefix, sizeof(prefix));
	json = json_pack("{s:s, s:o, s:s, s:b}", "prefix", prefix, "until",
			 json_utc(entry->until_utc_ns), "reason", entry->reason, "live",
			 !entry->pos.line && !entry->derived);
	if (entry->derived)
		json_object_set_new(json, "node",
				    json_string(replication_node(ctx->nodes, REPLICATION_BLOCK,
								 &entry->prefix)));
	if (entry->from)
		json_object_set_new(json, "set", json_string(list->set[entry->from - 1].name));
	if (entry->until_utc_ns)
		json_object_set_new(json, "left_ns", json_u64(entry->until_utc_ns - now_utc_ns));
	return json;
}

static int list_show(const struct commands *ctx, const struct command_request *request,
		     enum list_kind kind, json_t **ret, struct sl_err *err)
{
	const struct list_def *list = &ctx->running->policy->list[kind];
	struct showing showing = { .list = kind, .now_utc_ns = clock_utc_ns() };
	int r = listing_begin(request, &showing.listing, err);

	if (r < 0)
		return r;
	while (listing_pass(&showing.listing)) {
		for (size_t i = 0; i < list->count; i++) {
			const struct list_entry *entry = &list->entry[i];

			/* Expired, but not yet removed: expired entries are removed once a
			 * minute. */
			if (entry->until_utc_ns && entry->until_utc_ns <= showing.now_utc_ns)
				continue;
			if (listing_wants(&showing.listing, &entry->prefix))
				listing_add(&showing.listing,
					    entry_to_json(ctx, list, entry, showing.now_utc_ns));
		}
		entries_walk(ctx->running, NULL, show_fed, &showing);
	}
	*ret = json_object();
	return listing_end(&showing.listing, *ret, "entries", err);
}

/* Rows of blocks_latest(), of entries with an end, then of those without. */
struct latest {
	json_t *rows;
	size_t count;
	bool ends;
	u64 now_utc_ns;
};

static bool is_latest(const struct latest *latest, u64 until_utc_ns)
{
	return json_array_size(latest->rows) < latest->count && !until_utc_ns == !latest->ends &&
	       (!until_utc_ns || until_utc_ns > latest->now_utc_ns);
}

static void add_fed(void *arg, const char *origin, const struct entry *entry)
{
	struct latest *latest = arg;

	if (entry->list == LIST_BLOCK && is_latest(latest, entry->until_utc_ns))
		json_array_append_new(latest->rows, fed_to_json(origin, entry, latest->now_utc_ns));
}

static json_t *set_to_json(const struct list_def *list, size_t index)
{
	json_int_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->entry[i].from == index + 1;
	return json_pack("{s:o, s:s, s:I, s:s}", "prefix",
			 json_sprintf("@%s", list->set[index].name), "set", list->set[index].name,
			 "count", count, "reason", list->set[index].entry.reason);
}

json_t *blocks_latest(struct commands *ctx, size_t count)
{
	const struct list_def *list = &ctx->running->policy->list[LIST_BLOCK];
	struct latest latest = { .rows = json_array(),
				 .count = count,
				 .now_utc_ns = clock_utc_ns() };

	for (size_t i = 0; i < list->set_count && i < count; i++)
		json_array_append_new(latest.rows, set_to_json(list, i));
	for (int pass = 0; pass < 2; pass++) {
		latest.ends = !pass;
		for (size_t i = 0; i < list->count; i++)
			if (!list->entry[i].from && is_latest(&latest, list->entry[i].until_utc_ns))
				json_array_append_new(latest.rows,
						      entry_to_json(ctx, list, &list->entry[i],
								    latest.now_utc_ns));
		entries_walk(ctx->running, NULL, add_fed, &latest);
	}
	return latest.rows;
}

int command_block_add(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	return list_add(ctx, request, true, ret, err);
}

int command_block_del(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	return list_del(ctx, request, true, ret, err);
}

int command_block_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	return list_show(ctx, request, LIST_BLOCK, ret, err);
}

int command_exempt_add(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	return list_add(ctx, request, false, ret, err);
}

int command_exempt_del(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	return list_del(ctx, request, false, ret, err);
}

int command_exempt_list(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	return list_show(ctx, request, LIST_EXEMPT, ret, err);
}

/* ------------------------------------------------------------------ the lines of a list */

#define SKIPPED_NAMED 5

void list_lines_skip(struct list_lines *lines, size_t index, const struct sl_err *why)
{
	json_t *text;

	lines->skipped++;
	if (!lines->why)
		lines->why = json_array();
	if (json_array_size(lines->why) == SKIPPED_NAMED)
		return;
	text = json_sprintf("line %zu: %s", index + 1, why->message);
	/* Cut in the middle of a character. */
	json_array_append_new(lines->why, text ? text : json_sprintf("line %zu", index + 1));
}

static const char *first_why(const struct list_lines *lines)
{
	return json_string_value(json_array_get(lines->why, 0));
}

int list_lines_judge(const struct list_lines *lines, struct sl_err *err)
{
	if (lines->skipped <= lines->count / 2)
		return 0;
	return sl_err_set(err, EINVAL,
			  "%zu of %zu lines are not accepted, so this is not taken for a list; %s",
			  lines->skipped, lines->count, first_why(lines));
}

void list_lines_end(struct list_lines *lines, const char *command, const char *name, json_t *reply)
{
	if (reply && lines->skipped) {
		log_warn("%s %s: skipped %zu of %zu lines; %s", command, name, lines->skipped,
			 lines->count, first_why(lines));
		json_object_set_new(reply, "skipped", json_u64(lines->skipped));
		json_object_set_new(reply, "lines", json_u64(lines->count));
		json_object_set(reply, "skipped_why", lines->why);
	}
	json_decref(lines->why);
}

/* ------------------------------------------------------------------ of an origin */

/* "PREFIX [DURATION [REASON]]" into an entry that has what a line without these gets. */
static int entry_parse(const char *line, struct entry *entry, struct sl_err *err)
{
	char text[256], *word, *rest = text;
	const char *why;
	int r = 0;

	if (snprintf(text, sizeof(text), "%s", line) >= (int)sizeof(text))
		return sl_err_set(err, EINVAL, "'%.80s...': too long: at most %zu bytes", line,
				  sizeof(text) - 1);
	word = strsep(&rest, " \t");
	if (sl_prefix_parse(word, &entry->prefix, &why) < 0)
		return sl_err_set(err, EINVAL, "'%.80s': %s", word, why);
	if (rest)
		rest += strspn(rest, " \t");
	if (rest && *rest) {
		word = strsep(&rest, " \t");
		r = until_parse(word, "", &entry->until_utc_ns, err);
	}
	if (rest)
		rest += strspn(rest, " \t");
	if (!r && rest && *rest)
		r = reason_check(rest, err);
	if (!r && rest && *rest)
		snprintf(entry->reason, sizeof(entry->reason), "%s", rest);
	return r;
}

static void add_held(void *arg, const char *origin, const struct entry *entry)
{
	if (entry->list == LIST_BLOCK)
		block_sum_add(arg, &entry->prefix);
}

#define SKIPPED LIST_KIND_COUNT /* the list of an entry that is none */

/*
 * Skips entries that would block too much together with those that the origin keeps (NULL: all are
 * replaced).
 */
static void skip_wide(const struct commands *ctx, const char *keeps, struct entry *entry,
		      size_t count, struct list_lines *lines)
{
	struct block_sum sum = { .shortest = { 0 } };
	struct sl_err why;

	if (keeps)
		entries_walk(ctx->running, keeps, add_held, &sum);
	for (size_t i = 0; i < count; i++)
		if (entry[i].list != SKIPPED &&
		    !(keeps && entries_have(ctx->running, keeps, LIST_BLOCK, &entry[i].prefix)))
			block_sum_add(&sum, &entry[i].prefix);
	block_sum_fit(&sum);
	for (size_t i = 0; i < count; i++) {
		if (entry[i].list == SKIPPED || block_sum_check(&sum, &entry[i].prefix, &why) == 0)
			continue;
		entry[i].list = SKIPPED;
		list_lines_skip(lines, i, &why);
	}
}

/* `any_width`: nothing is too wide. `keeps`: see skip_wide(). The caller frees *ret. */
static int arg_entries(const struct commands *ctx, const struct command_request *request,
		       bool any_width, const char *keeps, struct list_lines *lines,
		       struct entry **ret, size_t *ret_count, struct sl_err *err)
{
	const json_t *given = json_object_get(request->args, "prefixes"), *item;
	size_t i, kept = 0, count = json_array_size(given);
	struct entry *entry = calloc(count + 1, sizeof(*entry));
	const char *reason = "";
	struct sl_err why;
	u64 until;
	int r = arg_until(request, &until, err);

	if (!r)
		r = arg_reason(request, &reason, err);
	if (!r && !entry)
		r = sl_err_set(err, ENOMEM, "out of memory");
	json_array_foreach(given, i, item) {
		const char *text = json_string_value(item);

		if (r < 0)
			break;
		entry[i].list = *text ? LIST_BLOCK : SKIPPED;
		entry[i].until_utc_ns = until;
		strcpy(entry[i].reason, reason);
		lines->count += *text != '\0';
		if (!*text || (entry_parse(text, &entry[i], &why) == 0 &&
			       (any_width || (block_check_width(&entry[i].prefix, &why) == 0 &&
					      block_check_own(ctx, &entry[i].prefix, &why) == 0))))
			continue;
		entry[i].list = SKIPPED;
		list_lines_skip(lines, i, &why);
	}
	if (!r && !any_width)
		skip_wide(ctx, keeps, entry, count, lines);
	if (!r)
		r = list_lines_judge(lines, err);
	if (r < 0) {
		free(entry);
		return r;
	}
	for (i = 0; i < count; i++)
		if (entry[i].list != SKIPPED)
			entry[kept++] = entry[i];
	*ret = entry;
	*ret_count = kept;
	return 0;
}

static json_t *entries_result(const struct commands *ctx, const char *origin,
			      const struct entries_result *result)
{
	return json_pack("{s:s*, s:s, s:o, s:o, s:o}", "unsaved", rules_unsaved_why(ctx->running),
			 "origin", origin, "added", json_u64(result->added), "changed",
			 json_u64(result->changed), "removed", json_u64(result->removed));
}

int command_block_load(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	const char *origin = arg_text(request, "origin") ? arg_text(request, "origin") : "file";
	bool replace = arg_flag(request, "replace");
	struct list_lines lines = { .count = 0 };
	struct entries_result result;
	struct entry *entry = NULL;
	size_t count;
	int r = arg_entries(ctx, request, arg_flag(request, "force"), replace ? NULL : origin,
			    &lines, &entry, &count, err);

	if (!r && replace)
		r = entries_replace(ctx->running, origin, LIST_BLOCK, entry, count, &result, err);
	else if (!r)
		r = entries_add(ctx->running, origin, entry, count, &result, err);
	if (!r && (result.added || result.changed || result.removed))
		feeds_changed(ctx->running, FEED_ORIGIN, origin);
	if (!r)
		*ret = entries_result(ctx, origin, &result);
	list_lines_end(&lines, "block load", origin, r < 0 ? NULL : *ret);
	free(entry);
	return r;
}

int command_block_withdraw(struct commands *ctx, const struct command_request *request,
			   json_t **ret, struct sl_err *err)
{
	const char *origin = arg_text(request, "origin");
	bool some = json_object_get(request->args, "prefixes") != NULL;
	struct list_lines lines = { .count = 0 };
	struct entries_result result;
	struct entry *entry = NULL;
	size_t count;
	int r = some ? arg_entries(ctx, request, true, NULL, &lines, &entry, &count, err) : 0;

	if (!r)
		r = some ? entries_del(ctx->running, origin, entry, count, &result, err)
			 : entries_withdraw(ctx->running, origin, &result, err);
	if (!r && some)
		feeds_changed(ctx->running, FEED_ORIGIN, origin);
	else if (!r)
		feeds_forget(ctx->running, FEED_ORIGIN, origin);
	if (!r)
		*ret = entries_result(ctx, origin, &result);
	list_lines_end(&lines, "block withdraw", origin, r < 0 ? NULL : *ret);
	free(entry);
	return r;
}
