// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_defer.c - defer list: the queues of rules with on_limit: defer, as of the last poll of
 * Redis. */
#include "control/commands/commands.h"
#include "control/running/running.h"
#include "request/engine/defer.h"

static json_t *queue_to_json(struct defers *defers, const struct rule *rule)
{
	json_t *json = json_pack("{s:s+++}", "rule", rule->domain, "/", rule->path, "");
	struct defer_shown shown;

	if (!json || !defers_show(defers, rule->id, &shown)) {
		json_object_set_new(json, "unreached", json_true());
		return json;
	}
	json_object_update_new(
		json, json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:{s:o, s:o, s:o, s:o, s:o, s:o}}",
				"waiting", json_u64(shown.number[DEFER_NOW_WAITING]), "released",
				json_u64(shown.number[DEFER_NOW_RELEASED]), "dead",
				json_u64(shown.number[DEFER_NOW_DEAD]), "failed",
				json_u64(shown.failed), "age_ns", json_u64(shown.age_ns),
				"not_durable", shown.number[DEFER_AOF] == 0, "sum", "deferred",
				json_u64(shown.number[DEFER_SUM_DEFERRED]), "full",
				json_u64(shown.number[DEFER_SUM_FULL]), "cancelled",
				json_u64(shown.number[DEFER_SUM_CANCELLED]), "released",
				json_u64(shown.number[DEFER_SUM_RELEASED]), "done",
				json_u64(shown.number[DEFER_SUM_DONE]), "dead",
				json_u64(shown.number[DEFER_SUM_DEAD])));
	return json;
}

int command_defer_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	const struct ruleset *rules = ctx->running->requests.rules;
	json_t *list = json_array();

	for (u32 i = 0; rules && ctx->running->requests.engine && i < rules->rule_count; i++)
		if (rules->rule[i]->defer.max)
			json_array_append_new(list,
					      queue_to_json(ctx->running->requests.engine->defers,
							    rules->rule[i]));
	*ret = json_pack("{s:o}", "rules", list);
	return 0;
}
