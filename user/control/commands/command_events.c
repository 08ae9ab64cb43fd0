// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_events.c - events list: what happened; see packet/observe/observe.h. */
#include <errno.h>

#include "control/commands/commands.h"
#include "packet/observe/observe.h"

#define COUNT 20
#define COUNT_MAX 1000

static int arg_kind(const struct command_request *request, int *ret, struct sl_err *err)
{
	const char *text = arg_text(request, "kind");
	char list[256] = "";
	size_t used = 0;

	*ret = text ? observed_kind_parse(text) : -1;
	if (!text || *ret >= 0)
		return 0;
	for (int kind = 0; kind < OBSERVED_KINDS; kind++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", kind ? ", " : "",
					 observed_kind_name((enum observed_kind)kind));
	return sl_err_set(err, EINVAL, "no event is of the kind '%.40s'; accepted: %s", text, list);
}

int command_events_list(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	const json_t *count = json_object_get(request->args, "count");
	const json_t *after = json_object_get(request->args, "after");
	struct observe_filter filter = { .count = COUNT,
					 .name = arg_text(request, "limit"),
					 .frames = arg_flag(request, "frames"),
					 .has_within = arg_text(request, "within") };
	int r = arg_kind(request, &filter.kind, err);

	if (!r && filter.has_within)
		r = arg_prefix(request, "within", &filter.within, err);
	if (r)
		return r;
	if (count)
		filter.count = (size_t)json_integer_value(count);
	if (filter.count > COUNT_MAX)
		return sl_err_set(err, EINVAL, "'count' must be a number from 1 to %d", COUNT_MAX);
	if (after)
		filter.after = (u64)json_integer_value(after);
	*ret = observe_read(ctx->running->observe, &filter);
	return 0;
}
