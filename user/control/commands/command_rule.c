// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_rule.c - rule list, show, set; user set, unset, block, exempt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/commands/commands.h"
#include "config/model.h"
#include "request/rules/override_value.h"
#include "request/rules/rule.h"
#include "conf/config_text.h"
#include "lib/near.h"
#include "request/engine/request_rules.h"
#include "limiter/algorithm.h"

/* A longer list is cut. */
#define RULES_LISTED 10000

static int need_tier(const struct commands *ctx, struct sl_err *err)
{
	if (ctx->running->requests.def && ctx->running->requests.rules)
		return 0;
	return sl_err_set(err, ENOENT,
			  "the HTTP tier is not configured: sluice.yaml has no section 'http'");
}

static json_t *limits_to_json(const struct rule_limit *limit, u32 count)
{
	json_t *list = json_array();
	char text[96];

	for (u32 i = 0; i < count; i++) {
		enum sl_algo algo =
			algorithm_anchored(limit[i].terms.algorithm, limit[i].terms.first_request);
		json_t *json = json_pack("{s:s, s:s, s:s}", "name", limit[i].name, "rate",
					 limit[i].none ? "0 requests"
						       : rate_format(&limit[i].terms.rates.rate[0],
								     text, sizeof(text)),
					 "algorithm", algorithm_name(algo));

		if (limit[i].terms.rates.burst[0])
			json_object_set_new(json, "burst", json_u64(limit[i].terms.rates.burst[0]));
		rule_limit_add_to(json, &limit[i]);
		if (limit[i].terms.cluster)
			json_object_set_new(json, "scope", json_string("cluster"));
		json_array_append_new(list, json);
	}
	return list;
}

static json_t *rule_to_json(const struct rule *rule)
{
	json_t *json = json_pack(
		"{s:s+++, s:o, s:b, s:b, s:b, s:s, s:i, s:o}", "rule", rule->domain, "/",
		rule->path, "", "limits", limits_to_json(rule->limit, rule->limit_count),
		"unlimited", rule->unlimited, "shadow", rule->shadow, "live", rule->live, "file",
		rule->file, "line", rule->line, "overrides", json_u64(override_values(rule)));

	return json ? json : json_object();
}

int command_rule_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	json_t *list;
	u32 count, i;
	int r = need_tier(ctx, err);

	if (r < 0)
		return r;
	list = json_array();
	count = ctx->running->requests.rules->rule_count;
	for (i = 0; i < count && i < RULES_LISTED; i++)
		json_array_append_new(list, rule_to_json(ctx->running->requests.rules->rule[i]));
	*ret = json_pack("{s:o, s:i, s:i}", "rules", list, "count", count, "more", count - i);
	return 0;
}

/* "there is no rule 'x'; rules: api/user, ..." */
static int no_such_rule(const struct commands *ctx, const char *name, struct sl_err *err)
{
	char list[320] = "", near[128] = "", whole[128];
	size_t used = 0;
	u32 i;

	for (i = 0; i < ctx->running->requests.rules->rule_count && !near[0]; i++) {
		const struct rule *rule = ctx->running->requests.rules->rule[i];

		/* Longer names are not compared. */
		if (strlen(rule->domain) + strlen(rule->path) < WORD_MAX &&
		    snprintf(whole, sizeof(whole), "%s/%s", rule->domain, rule->path) > 0 &&
		    word_is_near(name, whole))
			snprintf(near, sizeof(near), " (did you mean '%.64s'?)", whole);
	}

	for (i = 0; i < ctx->running->requests.rules->rule_count && used < 240; i++) {
		const struct rule *rule = ctx->running->requests.rules->rule[i];

		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.*s/%.*s",
					 i ? ", " : "", (int)config_text_cut(rule->domain, 30),
					 rule->domain, (int)config_text_cut(rule->path, 40),
					 rule->path);
	}
	return sl_err_set(err, ENOENT, "there is no rule '%.*s'%s%s%s%s",
			  (int)config_text_cut(name, 100), name, near, used ? "; rules: " : "",
			  list, i < ctx->running->requests.rules->rule_count ? ", ..." : "");
}

static int arg_rule(struct commands *ctx, const struct command_request *request,
		    const struct rule **ret, const char **ret_name, struct sl_err *err)
{
	int r = need_tier(ctx, err);

	if (r < 0)
		return r;
	*ret_name = arg_text(request, "name");
	*ret = ruleset_find(ctx->running->requests.rules, *ret_name);
	if (!*ret &&
	    request_rule_find(ctx->running->requests.engine->ledger.request_rules, *ret_name))
		return sl_err_set(
			err, EINVAL,
			"%.200s is the rule of limits that requests bring: it is in no rule file, "
			"and changes in the proxy's query",
			*ret_name);
	return *ret ? 0 : no_such_rule(ctx, *ret_name, err);
}

static json_t *rule_to_yaml(const struct rule *rule)
{
	char *text = NULL;
	json_t *json = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		rule_write(rule, out, 0);
		if (!fclose(out))
			json = json_stringn(text, size);
	}
	free(text);
	return json ? json : json_string("");
}

int command_rule_show(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	const struct rule *rule;
	const char *name;
	int r = arg_rule(ctx, request, &rule, &name, err);

	if (r < 0)
		return r;
	*ret = rule_to_json(rule);
	json_object_set_new(*ret, "yaml", rule_to_yaml(rule));
	return 0;
}

int command_rule_set(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	const struct rule *rule;
	const char *name;
	int r = arg_rule(ctx, request, &rule, &name, err);

	if (!r)
		r = op_run(ctx, request,
			   op_new(request, "rule set", "{s:s, s:O}", "name", name, "pairs",
				  json_object_get(request->args, "pairs")),
			   err);
	if (!r)
		*ret = change_result_named(ctx, name);
	return r;
}

/* ------------------------------------------------------------------ user */

/* RULE and VALUE, to be freed, which `save` must be able to write into a rule file. */
static int arg_user(struct commands *ctx, const struct command_request *request,
		    const struct rule **ret, const char **ret_name, char **ret_value,
		    struct sl_err *err)
{
	int r = arg_rule(ctx, request, ret, ret_name, err);

	*ret_value = NULL;
	if (!r && (*ret)->place != RULE_OF_DESCRIPTOR)
		r = sl_err_set(
			err, EINVAL,
			"rule %.200s has no limits of single values; accepted: a rule with a key",
			*ret_name);
	if (!r)
		r = arg_value(ctx, request, *ret, ret_value, err);
	if (!r && (!**ret_value || !config_text_printable(*ret_value, strlen(*ret_value))))
		r = sl_err_set(err, EINVAL,
			       "'value': 1 to %d bytes without control characters are "
			       "accepted",
			       REQUEST_VALUE_MAX);
	return r;
}

static json_t *user_result(const struct commands *ctx, const char *name, const char *value,
			   u64 until)
{
	json_t *result = change_result(ctx);

	json_object_set_new(result, "rule", json_string(name));
	json_object_set_new(result, "value", json_string(value));
	json_object_set_new(result, "until", json_utc(until));
	return result;
}

/* `pairs` is NULL, or a borrowed reference. */
static int change_user(struct commands *ctx, const struct command_request *request,
		       const char *what, json_t *pairs, json_t **ret, struct sl_err *err)
{
	const struct rule *rule;
	const char *name;
	char *value;
	u64 until = 0;
	json_t *op;
	int r = arg_user(ctx, request, &rule, &name, &value, err);

	if (!r)
		r = arg_until(request, &until, err);
	if (!r) {
		op = op_new(request, what, "{s:s, s:s}", "name", name, "value", value);
		if (pairs)
			json_object_set(op, "pairs", pairs);
		if (until)
			json_object_set_new(op, "until_utc_ns", json_u64(until));
		r = op_run(ctx, request, op, err);
	}
	if (!r)
		*ret = user_result(ctx, name, value, until);
	free(value);
	return r;
}

int command_user_set(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	return change_user(ctx, request, "user set", json_object_get(request->args, "pairs"), ret,
			   err);
}

int command_user_block(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	return change_user(ctx, request, "user block", NULL, ret, err);
}

int command_user_exempt(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	return change_user(ctx, request, "user exempt", NULL, ret, err);
}

/* Removes a live entry of the value. An entry from a rule file is removed by a live change. */
int command_user_unset(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	const struct rule *rule;
	const char *name;
	bool in_file, live, other_text;
	char *value;
	int r = arg_user(ctx, request, &rule, &name, &value, err);

	if (!r) {
		override_value_where(rule, (struct bytes){ value, strlen(value) }, &in_file, &live,
				     &other_text);
		if (!in_file && !live)
			r = sl_err_set(err, ENOENT, "'%.*s' has no limits of its own in %.*s",
				       (int)config_text_cut(value, 100), value,
				       (int)config_text_cut(name, 200), name);
	}
	if (!r)
		r = op_run(ctx, request,
			   op_new(request, "user unset", "{s:s, s:s, s:b}", "name", name, "value",
				  value, "forget", !in_file && !other_text),
			   err);
	if (!r)
		*ret = user_result(ctx, name, value, 0);
	free(value);
	return r;
}
