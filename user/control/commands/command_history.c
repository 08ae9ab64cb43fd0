// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_history.c - history read: what the history on disk has; see packet/observe/history.h. */
#include <errno.h>

#include "control/commands/commands.h"
#include "packet/observe/history.h"

#define MINUTE_S 60
#define RANGE_MAX_S (366 * 86400LL)

/* Rows of a minute bear the time of its first drop: the time asked for begins with its minute. */
static int arg_range(const struct command_request *request, struct history_query *ret,
		     struct sl_err *err)
{
	json_int_t from = json_integer_value(json_object_get(request->args, "from"));
	json_int_t to = json_integer_value(json_object_get(request->args, "to"));

	if (to <= from || to - from > RANGE_MAX_S || from < 0 || to > 1LL << 33)
		return sl_err_set(err, EINVAL, "the time from %lld to %lld is not one; accepted: seconds since 1970, "
				  "at most 366 days", (long long)from, (long long)to);
	ret->from_ns = (u64)(from - from % MINUTE_S) * SL_NS_PER_SEC;
	ret->to_ns = (u64)to * SL_NS_PER_SEC;
	return 0;
}

int command_history_read(struct commands *ctx, const struct command_request *request, json_t **ret,
			 struct sl_err *err)
{
	struct history *history = observe_history(ctx->running->observe);
	struct history_query query = { .rule = arg_text(request, "who"),
				       .value = arg_text(request, "value") };
	int r = arg_range(request, &query, err);

	if (r)
		return r;
	if (!history)
		return sl_err_set(err, ENOENT, "there is no history: history.size is 0, or the log says why its file "
				  "could not be opened");
	if (!query.value)
		r = arg_prefix(request, "who", &query.source, err);
	if (!r)
		r = history_read(history, &query, ret, err);
	if (r)
		return r;
	json_object_set(*ret, "who", json_object_get(request->args, "who"));
	if (query.value)
		json_object_set(*ret, "value", json_object_get(request->args, "value"));
	return 0;
}
