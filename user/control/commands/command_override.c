// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_override.c - override set, del, list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/commands/listing.h"
#include "control/running/live.h"

/* Parses the limit and the source; *ret_text is the source's canonical text. */
static int arg_override(struct commands *ctx, const struct command_request *request,
			const struct limit_def **ret_limit, struct sl_prefix *ret_src,
			char ret_text[SL_PREFIX_TEXT], struct sl_err *err)
{
	const char *name = arg_text(request, "name");
	int r;

	*ret_limit = policy_find_limit(ctx->running->policy, name);
	if (!*ret_limit)
		return limit_unknown(ctx, name, err);
	r = arg_prefix(request, "src", ret_src, err);
	if (!r)
		sl_prefix_format(ret_src, ret_text, SL_PREFIX_TEXT);
	return r;
}

/*
 * rate= and burst= of the override as it will be: the recorded operation is complete and means the
 * same on a changed file. A new reference, or NULL and err.
 */
static json_t *whole_pairs(const struct limit_def *limit, const struct sl_prefix *src,
			   const json_t *args, struct sl_err *err)
{
	char rate[300], burst[200], **pair;
	struct rates rates;
	size_t count;
	int r = live_pairs(args, &pair, &count, err);

	if (r < 0)
		return NULL;
	r = policy_override_rates(limit, src, pair, count, &rates, err);
	free(pair);
	if (r < 0)
		return NULL;
	override_format_rates(&rates, ",", rate, sizeof(rate));
	override_format_bursts(&rates, ",", burst, sizeof(burst));
	return json_pack("[s+, s+]", "rate=", rate, "burst=", burst);
}

static json_t *override_result(const struct commands *ctx, const char *name, const char *src)
{
	json_t *result = change_result(ctx);

	json_object_set_new(result, "limit", json_string(name));
	json_object_set_new(result, "src", json_string(src));
	return result;
}

int command_override_set(struct commands *ctx, const struct command_request *request, json_t **ret,
			 struct sl_err *err)
{
	const struct limit_def *limit;
	char text[SL_PREFIX_TEXT], name[SL_NAME_MAX];
	struct sl_prefix src;
	json_t *pairs;
	int r = arg_override(ctx, request, &limit, &src, text, err);

	if (r < 0)
		return r;
	strcpy(name, limit->name);
	pairs = whole_pairs(limit, &src, request->args, err);
	if (!pairs)
		return -EINVAL;
	r = op_run(ctx, request,
		   op_new(request, "override set", "{s:s, s:s, s:o}", "name", name, "prefix", text,
			  "pairs", pairs),
		   err);
	if (!r)
		*ret = override_result(ctx, name, text);
	return r;
}

int command_override_del(struct commands *ctx, const struct command_request *request, json_t **ret,
			 struct sl_err *err)
{
	const struct limit_def *limit;
	char text[SL_PREFIX_TEXT], name[SL_NAME_MAX];
	struct sl_prefix src;
	int r = arg_override(ctx, request, &limit, &src, text, err);

	if (r < 0)
		return r;
	strcpy(name, limit->name);
	r = op_run(ctx, request,
		   op_new(request, "override del", "{s:s, s:s}", "name", name, "prefix", text),
		   err);
	if (!r)
		*ret = override_result(ctx, name, text);
	return r;
}

static json_t *override_entry_to_json(const struct limit_def *limit, const struct override_def *def)
{
	const struct rates *rates = &limit->override_rates[def->rates];
	char src[SL_PREFIX_TEXT], rate[300], burst[200];
	json_t *json;

	json = json_pack("{s:s, s:s, s:b, s:i}", "src",
			 sl_prefix_format(&def->src, src, sizeof(src)), "rate",
			 override_format_rates(rates, ", ", rate, sizeof(rate)), "live", !def->line,
			 "line", (int)def->line);
	if (override_format_bursts(rates, ", ", burst, sizeof(burst))[0])
		json_object_set_new(json, "burst", json_string(burst));
	if (def->derived)
		json_object_set_new(json, "derived", json_true());
	if (def->csv)
		json_object_set_new(json, "file", json_string(limit->overrides_file));
	return json;
}

int command_override_list(struct commands *ctx, const struct command_request *request, json_t **ret,
			  struct sl_err *err)
{
	const struct limit_def *limit;
	const char *name = arg_text(request, "name");
	struct listing listing;
	int r;

	limit = policy_find_limit(ctx->running->policy, name);
	if (!limit)
		return limit_unknown(ctx, name, err);
	r = listing_begin(request, &listing, err);
	if (r < 0)
		return r;
	while (listing_pass(&listing))
		for (size_t i = 0; i < limit->override_count; i++)
			if (!limit->override[i].removed &&
			    listing_wants(&listing, &limit->override[i].src))
				listing_add(&listing,
					    override_entry_to_json(limit, &limit->override[i]));
	*ret = json_pack("{s:s, s:I}", "limit", name, "count", (json_int_t)override_count(limit));
	return listing_end(&listing, *ret, "overrides", err);
}
