// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_user.c - user list, top, show, reset, unban: users of the HTTP tier. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "lib/clock.h"
#include "control/commands/commands.h"
#include "control/replication/resets.h"
#include "control/mitigation/sources.h"
#include "request/engine/decide.h"
#include "counters/counters.h"
#include "request/engine/request_rules.h"
#include "request/rules/rule_values.h"
#include "request/engine/engine.h"
#include "lib/log.h"
#include "lib/value_hash.h"

#define LISTED_USERS 20
#define LOOKS_MAX 64
#define LOOK_NS (SL_NS_PER_SEC / 10) /* the main thread waits so long for the cluster store */

static int rule_unknown(const char *rule, struct sl_err *err)
{
	return sl_err_set(err, ENOENT,
			  "there is no rule '%.200s'; sluicectl rule list shows all rules", rule);
}

/* Finds a rule of a file, or one made by a limit in a request. NULL if there is none. */
static const struct rule *find_rule(const struct engine *engine, const struct ruleset *rules,
				    const char *name)
{
	const struct rule *rule = ruleset_find(rules, name);

	return rule || !engine ? rule : request_rule_find(engine->ledger.request_rules, name);
}

/* ------------------------------------------------------------------ who requests */

enum user_order {
	BY_REQUESTS,
	BY_REFUSED,
	BY_PASSED,
	BY_COUNT,
};

static const char *const user_order_name[BY_COUNT] = { "requests", "refused", "passed" };

static u64 user_rank(const struct active_user *user, enum user_order by)
{
	struct active_count sum = active_sum(user);

	return by == BY_REFUSED	 ? sum.refused
	       : by == BY_PASSED ? sum.passed
				 : sum.refused + sum.passed;
}

static int by_user_rank(const void *pa, const void *pb, void *arg)
{
	const struct active_user *a = *(const struct active_user *const *)pa;
	const struct active_user *b = *(const struct active_user *const *)pb;
	enum user_order by = *(const enum user_order *)arg;
	u64 x = user_rank(a, by), y = user_rank(b, by);

	if (x == y) {
		x = user_rank(a, BY_REQUESTS);
		y = user_rank(b, BY_REQUESTS);
	}
	return (x < y) - (x > y);
}

static int arg_user_order(const struct command_request *request, enum user_order *ret,
			  struct sl_err *err)
{
	const char *text = arg_text(request, "by");

	for (*ret = BY_REQUESTS; text && *ret < BY_COUNT; (*ret)++)
		if (!strcmp(text, user_order_name[*ret]))
			return 0;
	if (text)
		return sl_err_set(err, EINVAL,
				  "'by' must be requests, refused or passed, not '%.80s'", text);
	return 0;
}

/*
 * The users of one table that are to be listed, in this order; `rule` NULL: of all rules. Returns
 * how many there are, or -errno; *ret_count: at most so many are wanted.
 */
static int listed_users(struct commands *ctx, const struct command_request *request,
			struct active *active, const char *rule, enum user_order by,
			const struct active_user *ret[ACTIVE_ROOM], u32 *ret_count,
			u64 *ret_span_ns, struct sl_err *err)
{
	const json_t *given = json_object_get(request->args, "count");
	json_int_t count = given ? json_integer_value(given) : LISTED_USERS;
	u32 found, listed = 0;

	if (count < 1 || count > ACTIVE_ROOM)
		return sl_err_set(err, EINVAL, "'count' must be a number from 1 to %d",
				  ACTIVE_ROOM);
	sources_drain(ctx->sources);
	found = active_read(active, ret, ret_span_ns, clock_mono_ns());
	for (u32 i = 0; i < found; i++)
		if ((!rule || !strcmp(rule, ret[i]->rule)) && user_rank(ret[i], by))
			ret[listed++] = ret[i];
	qsort_r(ret, listed, sizeof(ret[0]), by_user_rank, &by);
	*ret_count = listed < count ? listed : (u32)count;
	return (int)listed;
}

static int needs_users(const struct commands *ctx, struct sl_err *err)
{
	return ctx->sources && ctx->sources->def
		       ? 0
		       : sl_err_set(
				 err, ENOENT,
				 "the HTTP tier is not configured: sluice.yaml has no section 'http'");
}

static json_t *value_of(const struct active_user *user)
{
	return sources_text(user->value, user->value_len, user->cut);
}

static json_t *active_to_json(const struct active_user *user, double seconds, u64 offset_ns)
{
	struct active_count sum = active_sum(user);

	return json_pack("{s:s, s:o, s:{s:o, s:f}, s:{s:o, s:f}, s:o, s:o}", "rule", user->rule,
			 "value", value_of(user), "passed", "requests", json_u64(sum.passed),
			 "per_second", (double)sum.passed / seconds, "refused", "requests",
			 json_u64(sum.refused), "per_second", (double)sum.refused / seconds,
			 "missed", json_u64(sum.missed), "last",
			 json_utc(user->last_ns + offset_ns));
}

int command_user_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	const struct active_user *user[ACTIVE_ROOM];
	const char *rule = arg_text(request, "rule");
	enum user_order by;
	json_t *list;
	u64 span_ns;
	u32 count;
	int r = arg_user_order(request, &by, err);

	if (!r)
		r = needs_users(ctx, err);
	if (!r && rule && !find_rule(ctx->running->requests.engine, ctx->sources->rules, rule))
		r = rule_unknown(rule, err);
	if (!r)
		r = listed_users(ctx, request, &ctx->sources->active, rule, by, user, &count,
				 &span_ns, err);
	if (r < 0)
		return r;
	list = json_array();
	for (u32 i = 0; i < count; i++)
		json_array_append_new(list, active_to_json(user[i], (double)span_ns / 1e9,
							   clock_utc_offset_ns()));
	*ret = json_pack("{s:o, s:o}", "users", list, "span_ns", json_u64(span_ns));
	if ((u32)r > count)
		json_object_set_new(*ret, "more", json_u64((u32)r - count));
	return 0;
}

int command_user_top(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	const struct active_user *user[ACTIVE_ROOM];
	json_t *list;
	u64 span_ns;
	u32 count;
	int r = needs_users(ctx, err);

	if (!r)
		r = listed_users(ctx, request, &ctx->sources->refused, NULL, BY_REFUSED, user,
				 &count, &span_ns, err);
	if (r < 0)
		return r;
	list = json_array();
	for (u32 i = 0; i < count; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:o}", "rule", user[i]->rule, "value",
					value_of(user[i]), "refused",
					json_u64(active_sum(user[i]).refused), "last",
					json_utc(user[i]->last_ns + clock_utc_offset_ns())));
	*ret = json_pack("{s:o}", "users", list);
	return 0;
}

/* ------------------------------------------------------------------ one user */

json_t *listed_value(const char *value)
{
	size_t len = strlen(value);

	return sources_text(value, len, len > AGGREGATE_VALUE_MAX);
}

/* Calls each() with the value of every user that lists have; returns the first text that it
 * returns. */
static char *each_listed(const struct commands *ctx, const struct rule *rule, const char *text,
			 char *(*each)(const char *value, u32 len, bool cut, const char *text))
{
	const struct active_user *user[ACTIVE_ROOM];
	char *found = NULL;
	char name[ACTIVE_RULE_TEXT];
	u64 span_ns;

	if (!ctx->sources || !ctx->sources->def)
		return NULL;
	snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
	sources_drain(ctx->sources);
	for (int table = 0; table < 2 && !found; table++) {
		u32 count = active_read(table ? &ctx->sources->active : &ctx->sources->refused,
					user, &span_ns, clock_mono_ns());

		for (u32 i = 0; i < count && !found; i++)
			if (!strcmp(user[i]->rule, name))
				found = each(user[i]->value, user[i]->value_len, user[i]->cut,
					     text);
	}
	return found;
}

static char *if_hash(const char *value, u32 len, bool cut, const char *text)
{
	char hash[VALUE_HASH_TEXT];

	return cut || strcmp(value_hash(value, len, hash), text) ? NULL : strndup(value, len);
}

static char *if_cut(const char *value, u32 len, bool cut, const char *text)
{
	json_t *listed = cut ? sources_text(value, len, true) : NULL;
	char *found = listed && !strcmp(json_string_value(listed), text) ? strdup(text) : NULL;

	json_decref(listed);
	return found;
}

/* A text that a list has cut does not name a value. */
static int refuse_cut(const struct commands *ctx, const struct rule *rule, const char *text,
		      struct sl_err *err)
{
	size_t len = strlen(text);
	char *cut = len > 3 && !strcmp(text + len - 3, "...") ? each_listed(ctx, rule, text, if_cut)
							      : NULL;

	free(cut);
	return cut ? sl_err_set(
			     err, EINVAL,
			     "rule %s/%.100s: found '%.100s', which is cut; accepted: the whole value",
			     rule->domain, rule->path, text)
		   : 0;
}

/* As rule_values_write(), terminated; NULL: out of memory. */
static char *written_value(const struct rule *rule, const struct request_descriptor *descriptor)
{
	size_t len = rule_values_write(rule, descriptor, NULL, 0);
	char *text = calloc(1, len + 1);

	if (text)
		rule_values_write(rule, descriptor, text, len);
	return text;
}

static int whole_value(struct commands *ctx, const struct rule *rule, const char *text, char **ret,
		       struct sl_err *err)
{
	struct rule_values values;
	struct rule_match match;
	struct sl_err why = { .message = "" };
	int r = rule_values_match(ctx->running->requests.rules, rule,
				  (struct bytes){ text, text ? strlen(text) : 0 }, &values, &match,
				  &why);

	if (r)
		sl_err_set(err, -r, "rule %s/%.100s: %s", rule->domain, rule->path, why.message);
	else if (!rule_has_one_count(rule) && !(*ret = written_value(rule, &values.descriptor)))
		r = sl_err_no_memory(err);
	rule_values_free(&values);
	return r;
}

int arg_value(struct commands *ctx, const struct command_request *request, const struct rule *rule,
	      char **ret, struct sl_err *err)
{
	const char *text = arg_text(request, "value");
	char *of_hash = NULL;
	int r = 0;

	*ret = NULL;
	if (text && value_hash_is(text)) {
		of_hash = each_listed(ctx, rule, text, if_hash);
		if (!of_hash)
			return sl_err_set(
				err, ENOENT,
				"%.40s is not the hash of a value of %s/%.200s that was refused "
				"or active lately; accepted: the value itself",
				text, rule->domain, rule->path);
		text = of_hash;
	} else if (text) {
		r = refuse_cut(ctx, rule, text, err);
	}
	if (!r)
		r = whole_value(ctx, rule, text, ret, err);
	free(of_hash);
	return r;
}

struct user_query {
	const struct rule *rule;
	char *text;	    /* NULL: the rule has one count */
	struct bytes value; /* the same */
};

/* Parses RULE ("domain/path") and VALUE. Free query->text. */
static int arg_user(struct commands *ctx, const struct command_request *request,
		    struct user_query *ret, struct sl_err *err)
{
	const char *rule = arg_text(request, "rule");
	int r;

	*ret = (struct user_query){ .rule = NULL };
	if (!ctx->running->requests.def)
		return sl_err_set(
			err, ENOENT,
			"the HTTP tier is not configured: sluice.yaml has no section 'http'");
	ret->rule = find_rule(ctx->running->requests.engine, ctx->running->requests.rules, rule);
	if (!ret->rule)
		return rule_unknown(rule, err);
	r = arg_value(ctx, request, ret->rule, &ret->text, err);
	if (!r && ret->text)
		ret->value = (struct bytes){ ret->text, strlen(ret->text) };
	return r;
}

/* The result of a command about it: {"rule", "value"}. */
static json_t *user_to_json(const struct command_request *request, const struct user_query *query)
{
	return json_pack("{s:O, s:o*}", "rule", json_object_get(request->args, "rule"), "value",
			 query->text ? listed_value(query->text) : NULL);
}

static int user_failed(const struct user_query *query, int r, struct sl_err *err)
{
	return sl_err_set(err, -r, "cannot look up the value in rule %s/%.200s: %s",
			  query->rule->domain, query->rule->path, strerror(-r));
}

/* As source_lately(): its requests that this rule passed and refused. NULL: a value that lists
 * cut. */
static json_t *user_lately(const struct commands *ctx, const struct user_query *query)
{
	const struct active_user *user[ACTIVE_ROOM];
	struct active_count sum = { 0 };
	json_t *json, *by = json_array();
	char name[ACTIVE_RULE_TEXT];
	bool exact, known;
	u64 span_ns;
	u32 found;

	if (!query->text || query->value.len > AGGREGATE_VALUE_MAX || !ctx->sources ||
	    !ctx->sources->def) {
		json_decref(by);
		return NULL;
	}
	snprintf(name, sizeof(name), "%s/%s", query->rule->domain, query->rule->path);
	sources_drain(ctx->sources);
	found = active_read(&ctx->sources->active, user, &span_ns, clock_mono_ns());
	exact = active_is_exact(user, found, span_ns);
	for (u32 i = 0; i < found; i++)
		if (!strcmp(user[i]->rule, name) && user[i]->value_len == query->value.len &&
		    !user[i]->cut && !memcmp(user[i]->value, query->value.at, query->value.len))
			sum = active_sum(user[i]);
	known = found < ACTIVE_ROOM || sum.passed + sum.refused;
	json = json_pack("{s:o, s:b, s:o, s:o}", "span_ns", json_u64(span_ns), "estimate", !exact,
			 "refused", known ? json_u64(sum.refused) : json_null(), "passed",
			 known ? json_u64(sum.passed) : json_null());
	for (u32 i = 0; i < query->rule->limit_count; i++)
		if (sum.limits >> i & 1)
			json_array_append_new(
				by, json_pack("{s:s}", "limit", query->rule->limit[i].name));
	if (sum.refused)
		json_object_set_new(
			json, "lost",
			json_real((double)sum.refused / (double)(sum.refused + sum.passed)));
	if (sum.refused)
		json_object_set(json, "by", by);
	json_decref(by);
	return json;
}

static json_t *user_policy_to_json(const struct response_policy *policy)
{
	json_t *json =
		json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "limit", policy->limit->name, "quota",
			  json_u64(policy->q), "window_s", json_u64(policy->w_s), "remaining",
			  json_u64(policy->r), "reset_ms",
			  policy->t_ns == ~0ULL ? json_null() : json_u64(policy->t_ns / 1000000),
			  "over", policy->refused);

	if (policy->shadow)
		json_object_set_new(json, "shadow", json_true());
	if (policy->refused)
		json_object_set_new(json, "retry_after_ms",
				    policy->wait_ns == ~0ULL
					    ? json_null()
					    : json_u64((policy->wait_ns + 999999) / 1000000));
	return json;
}

int command_user_show(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	const struct ledger *ledger = &ctx->running->requests.engine->ledger;
	const struct ruleset *rules = ctx->running->requests.rules;
	struct response *answer = calloc(1, sizeof(*answer));
	struct quota_lookup look[LOOKS_MAX];
	char hash[VALUE_HASH_TEXT];
	struct user_query query;
	json_t *list, *lately;
	u32 looks = 0;
	int r = arg_user(ctx, request, &query, err);

	if (!r && !answer)
		r = sl_err_no_memory(err);
	if (!r && ctx->nodes->cluster &&
	    !decide_looks(ledger, rules, query.rule, query.value, look, LOOKS_MAX, &looks))
		cluster_look(ctx->nodes->cluster, look, looks, LOOK_NS);
	if (!r) {
		r = decide_show(ledger, rules, query.rule, query.value, look, looks,
				counters_now(ledger->counters), answer);
		if (r < 0)
			user_failed(&query, r, err);
	}
	if (!r) {
		list = json_array();
		for (u32 i = 0; i < answer->policy_count; i++)
			json_array_append_new(list, user_policy_to_json(&answer->policy[i]));
		*ret = user_to_json(request, &query);
		json_object_set_new(*ret, "over", json_boolean(answer->code != RESPONSE_OK));
		json_object_set_new(*ret, "unlimited", json_boolean(answer->status[0].unlimited));
		json_object_set_new(*ret, "limits", list);
		lately = user_lately(ctx, &query);
		if (lately)
			json_object_set_new(*ret, "lately", lately);
		if (query.value.len)
			json_object_set_new(
				*ret, "hash",
				json_string(value_hash(query.value.at, query.value.len, hash)));
		if (answer->status[0].ban_left_ns)
			json_object_set_new(*ret, "ban",
					    json_pack("{s:i, s:o}", "level",
						      answer->status[0].ban_level, "left_ns",
						      json_u64(answer->status[0].ban_left_ns)));
	}
	free(query.text);
	free(answer);
	return r;
}

/* Ends a reset or unban: other nodes, the log and the answer have it. */
static void user_was_reset(struct commands *ctx, const struct command_request *request,
			   const char *verb, const struct user_query *query,
			   const struct decide_reset *reset, json_t **ret)
{
	resets_publish(ctx->nodes, reset);
	log_info("user %s %s/%s (uid %u, pid %d)", verb, query->rule->domain, query->rule->path,
		 request->peer->uid, request->peer->pid);
	*ret = user_to_json(request, query);
}

int command_user_reset(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	struct decide_reset reset;
	struct user_query query;
	int r = arg_user(ctx, request, &query, err);

	if (!r) {
		r = decide_reset(&ctx->running->requests.engine->ledger,
				 ctx->running->requests.rules, query.rule, query.value, &reset);
		if (r < 0)
			user_failed(&query, r, err);
	}
	if (!r)
		user_was_reset(ctx, request, "reset", &query, &reset, ret);
	free(query.text);
	return r;
}

int command_user_unban(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	struct decide_reset reset;
	struct user_query query;
	bool banned;
	int r = arg_user(ctx, request, &query, err);

	if (!r && !query.rule->ban.after)
		r = sl_err_set(err, EINVAL, "rule %s/%.200s has no key 'ban'", query.rule->domain,
			       query.rule->path);
	if (!r) {
		r = decide_unban(&ctx->running->requests.engine->ledger,
				 ctx->running->requests.rules, query.rule, query.value, &reset,
				 &banned);
		if (r < 0)
			user_failed(&query, r, err);
	}
	if (!r) {
		user_was_reset(ctx, request, "unban", &query, &reset, ret);
		if (banned)
			json_object_set_new(*ret, "banned", json_true());
	}
	free(query.text);
	return r;
}
