// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_history.c - history read, sources: what the history on disk has; see
 * packet/observe/history.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/commands/commands.h"
#include "lib/clock.h"
#include "lib/value_hash.h"
#include "packet/observe/history.h"
#include "request/rules/rule.h"

#define MINUTE_S 60
#define RANGE_MAX_S (366 * 86400LL)
#define DAY_MAX_S (25 * 3600LL) /* with the hour that a clock is set back */
#define COUNT 20		/* sources */
#define COUNT_MAX 1000

/* Rows of a minute bear the time of its first drop: the time asked for begins with its minute. */
static int arg_range(const struct command_request *request, json_int_t most_s, u64 *ret_from_ns,
		     u64 *ret_to_ns, struct sl_err *err)
{
	json_int_t from = json_integer_value(json_object_get(request->args, "from"));
	json_int_t to = json_integer_value(json_object_get(request->args, "to"));

	if (to <= from || to - from > most_s || from < 0 || to > 1LL << 33)
		return sl_err_set(
			err, EINVAL,
			"the time from %lld to %lld is not one; accepted: seconds since 1970, "
			"at most %lld hours",
			(long long)from, (long long)to, (long long)most_s / 3600);
	*ret_from_ns = (u64)(from - from % MINUTE_S) * SL_NS_PER_SEC;
	*ret_to_ns = (u64)to * SL_NS_PER_SEC;
	return 0;
}

static int the_history(const struct commands *ctx, struct history **ret, struct sl_err *err)
{
	*ret = observe_history(ctx->running->observe);
	return *ret ? 0
		    : sl_err_set(err, ENOENT,
				 "there is no history: history.size is 0, or the log says why its "
				 "file could not be opened");
}

/* Values are stored as lists show them: one that is cut is taken as it is, and so is one of a rule
 * that is gone. */
static int arg_listed(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	const struct ruleset *rules = ctx->running->requests.rules;
	const char *text = arg_text(request, "value"), *who = arg_text(request, "who");
	const struct rule *rule = rules ? ruleset_find(rules, who) : NULL;
	size_t len = strlen(text);
	char *value;
	int r;

	if (!rule || value_hash_is(text) ||
	    (len > AGGREGATE_VALUE_MAX && !strcmp(text + len - 3, "..."))) {
		*ret = json_string(text);
		return 0;
	}
	r = arg_value(ctx, request, rule, &value, err);
	if (!r)
		*ret = listed_value(value);
	free(value);
	return r;
}

int command_history_read(struct commands *ctx, const struct command_request *request, json_t **ret,
			 struct sl_err *err)
{
	struct history *history;
	struct history_query query = { .rule = arg_text(request, "who") };
	json_t *value = NULL;
	int r = arg_range(request, RANGE_MAX_S, &query.from_ns, &query.to_ns, err);

	if (!r)
		r = the_history(ctx, &history, err);
	if (!r)
		r = arg_text(request, "value") ? arg_listed(ctx, request, &value, err)
					       : arg_prefix(request, "who", &query.source, err);
	query.value = json_string_value(value);
	if (!r)
		r = history_read(history, &query, ret, err);
	if (!r)
		json_object_set(*ret, "who", json_object_get(request->args, "who"));
	if (!r && value)
		json_object_set(*ret, "value", value);
	json_decref(value);
	return r;
}

static int arg_order(const struct command_request *request, enum history_order *ret,
		     struct sl_err *err)
{
	static const char *const name[] = { [HISTORY_BY_DROPS] = "drops",
					    [HISTORY_BY_PASSES] = "passes",
					    [HISTORY_BY_BITS] = "bits" };
	const char *by = arg_text(request, "by");

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (!by || !strcmp(by, name[i])) {
			*ret = (enum history_order)i;
			return 0;
		}
	return sl_err_set(err, EINVAL, "'by' is '%.32s'; of the past accepted: drops, passes, bits",
			  by);
}

/* Rows of the last minute are written when it is over. Of more than a day the main thread would be
 * too long at it. */
int command_history_sources(struct commands *ctx, const struct command_request *request,
			    json_t **ret, struct sl_err *err)
{
	struct history_heaviest query = { .count = COUNT };
	json_int_t count = json_integer_value(json_object_get(request->args, "count"));
	u64 now_ns = clock_utc_ns(), minute_ns = MINUTE_S * SL_NS_PER_SEC;
	struct history *history;
	int r = arg_range(request, DAY_MAX_S, &query.from_ns, &query.to_ns, err);

	if (!r)
		r = arg_order(request, &query.by, err);
	if (!r)
		r = the_history(ctx, &history, err);
	if (r)
		return r;
	if (count)
		query.count = count < COUNT_MAX ? (u32)count : COUNT_MAX;
	query.to_ns += minute_ns - 1;
	query.to_ns -= query.to_ns % minute_ns;
	r = history_heaviest(history, &query, ret, err);
	if (!r && query.to_ns > now_ns - now_ns % minute_ns)
		json_object_set_new(*ret, "in_progress", json_true());
	return r;
}
