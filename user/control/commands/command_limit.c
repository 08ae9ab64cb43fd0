// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_limit.c - limit list, show, set, add, del. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/limit_types.h"
#include "control/commands/commands.h"
#include "control/elastic/elastic.h"
#include "control/running/live.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "packet/host/view.h"
#include "lib/log.h"
#include "lib/near.h"
#include "limiter/algorithm.h"

static const char *const per_name[] = { "source", "dst", "proto", "dport", "vlan", "interface" };

static json_t *per_to_json(u8 per)
{
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(per_name) / sizeof(per_name[0]); i++)
		if (per & 1 << i)
			json_array_append_new(list, json_string(per_name[i]));
	return list;
}

/* True if a live change added or changed the limit. */
static bool changed_live(const struct commands *ctx, const struct limit_def *def)
{
	const json_t *op;
	size_t i;

	json_array_foreach(ctx->running->live, i, op) {
		const char *name = json_string_value(json_object_get(op, "name"));

		if (name && !strcmp(name, def->name))
			return true;
	}
	return false;
}

/* The current scale of an elastic limit, and the resources that hold it there. */
static json_t *elastic_to_json(const struct commands *ctx, const struct limit_view *view)
{
	char words[256];

	elastic_words(ctx->scales, view->def, view->slot, words, sizeof(words));
	return json_pack("{s:f, s:f, s:b, s:s}", "scale", elastic_scale(ctx->scales, view->slot),
			 "ceiling", view->def->terms.throttle.ceiling_percent / 100.0, "free",
			 !strcmp(words, "free"), "why", words);
}

/* Each rate with its burst; the burst of a window is the whole count of one window. */
static json_t *rates_to_json(const struct commands *ctx, const struct limit_view *view)
{
	const struct sl_limit *row = view->limit;
	json_t *list = json_array();
	char text[96];

	/* The rates of the first prefix length are the limit's first meters
	 * (packet/compile/meters.c). */
	for (u8 i = 0; i < view->def->terms.rates.count; i++) {
		rate_format(&view->def->terms.rates.rate[i], text, sizeof(text));
		json_array_append_new(list, json_pack("{s:s, s:o}", "rate", text, "burst",
						      json_u64(row->params.capacity)));
		if (row->next < SL_METERS_MAX)
			row = &ctx->running->image->rules->limits[row->next];
	}
	return list;
}

/* A single prefix length is a number, a prefix hierarchy an array. */
static json_t *steps_to_json(const u8 *prefix, const u32 *scale, u8 count)
{
	json_t *list = json_array();

	for (u8 i = 0; i < count; i++)
		json_array_append_new(list, json_integer(prefix ? prefix[i] : scale[i]));
	if (count > 1)
		return list;
	json_decref(list);
	return json_integer(prefix ? prefix[0] : scale[0]);
}

static json_t *limit_to_json(const struct commands *ctx, const struct limit_view *view)
{
	const struct limit_def *def = view->def;
	const struct limit_terms *terms = &def->terms;
	char text[RATES_MAX * 96];
	const u8 *count = def->prefix.count;
	json_t *json;

	rates_format(&terms->rates, text, sizeof(text));
	json = json_pack("{s:s, s:s?, s:o, s:s, s:o, s:s, s:s, s:s, s:b, s:o}", "name", def->name,
			 "rate", text[0] ? text : NULL, "burst",
			 json_u64(view->limit->params.capacity), "algorithm",
			 algorithm_name(algorithm_anchored(terms->algorithm, terms->first_request)),
			 "per", per_to_json(def->per), "action", action_name(def->action), "mode",
			 limit_mode_name(def->mode), "accounting",
			 def->accounting == ACCOUNTING_EXACT ? "exact" : "percpu", "live",
			 changed_live(ctx, def), "rates", rates_to_json(ctx, view));
	json_object_set_new(json, "prefix",
			    json_pack("{s:o, s:o}", "ipv4",
				      steps_to_json(def->prefix.len[SL_V4], NULL, count[SL_V4]),
				      "ipv6",
				      steps_to_json(def->prefix.len[SL_V6], NULL, count[SL_V6])));
	json_object_set_new(json, "prefix_scale",
			    json_pack("{s:o, s:o}", "ipv4",
				      steps_to_json(NULL, def->prefix.scale[SL_V4], count[SL_V4]),
				      "ipv6",
				      steps_to_json(NULL, def->prefix.scale[SL_V6], count[SL_V6])));
	json_object_set_new(
		json, "throttle",
		json_string(type_format(&type_throttle, &terms->throttle, text, sizeof(text))));
	json_object_set_new(json, "on_full", json_string(on_full_name(def->on_full)));
	json_object_set_new(json, "scope", json_string(terms->cluster ? "cluster" : "node"));
	if (def->ban.after)
		json_object_set_new(
			json, "ban",
			json_string(type_format(&type_ban, &def->ban, text, sizeof(text))));
	if (override_count(def))
		json_object_set_new(json, "overrides", json_u64(override_count(def)));
	if (terms->throttle.kind == THROTTLE_ELASTIC)
		json_object_set_new(json, "elastic", elastic_to_json(ctx, view));
	return json;
}

/* A limit as its YAML text, or NULL. */
static char *limit_to_yaml(const struct limit_def *def)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return NULL;
	r = limit_write(def, out, 0);
	if (fclose(out) != 0 || r < 0) {
		free(text);
		return NULL;
	}
	return text;
}

int command_limit_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (view[i].def)
			json_array_append_new(list, limit_to_json(ctx, &view[i]));
	*ret = json_pack("{s:o}", "limits", list);
	return 0;
}

int limit_unknown(const struct commands *ctx, const char *name, struct sl_err *err)
{
	char list[384] = "", near[SL_NAME_MAX + 32] = "";
	size_t used = 0;

	for (size_t i = 0; i < ctx->running->policy->limit_count && !near[0]; i++)
		if (word_is_near(name, ctx->running->policy->limit[i].name))
			snprintf(near, sizeof(near), " (did you mean '%s'?)",
				 ctx->running->policy->limit[i].name);
	for (size_t i = 0; i < ctx->running->policy->limit_count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 ctx->running->policy->limit[i].name);
	if (used >= sizeof(list))
		strcpy(list + sizeof(list) - 4, "...");
	return sl_err_set(err, ENOENT, "there is no limit '%.63s'%s%s%s", name, near,
			  used ? "; limits: " : "", list);
}

static int arg_limit(struct commands *ctx, const struct command_request *request, const char **ret,
		     struct sl_err *err)
{
	*ret = arg_text(request, "name");
	return policy_find_limit(ctx->running->policy, *ret) ? 0 : limit_unknown(ctx, *ret, err);
}

/* A longer list of overrides is left to `override list`. */
#define OVERRIDES_SHOWN 16

static char *limit_to_short_yaml(const struct limit_def *def)
{
	struct limit_def brief = *def;
	char *text, *all = NULL;

	if (def->override_count <= OVERRIDES_SHOWN)
		return limit_to_yaml(def);
	brief.override_count = 0;
	text = limit_to_yaml(&brief);
	if (text && asprintf(&all, "%s# and %zu overrides: sluicectl override list %s\n", text,
			     override_count(def), def->name) < 0)
		all = NULL;
	free(text);
	return all;
}

int command_limit_show(struct commands *ctx, const struct command_request *request, json_t **ret,
		       struct sl_err *err)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	const char *name;
	int r = arg_limit(ctx, request, &name, err);

	for (size_t i = 0; !r && i < count; i++) {
		char *yaml;

		if (!view[i].def || strcmp(view[i].name, name) != 0)
			continue;
		yaml = limit_to_short_yaml(view[i].def);
		*ret = limit_to_json(ctx, &view[i]);
		json_object_set_new(*ret, "yaml", json_string(yaml ? yaml : ""));
		free(yaml);
	}
	return r;
}

int command_limit_set(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	json_t *pairs = json_object_get(request->args, "pairs");
	const char *name;
	int r = arg_limit(ctx, request, &name, err);

	if (r < 0)
		return r;
	r = op_run(ctx, request,
		   op_new(request, "limit set", "{s:s, s:O}", "name", name, "pairs", pairs), err);
	if (!r)
		*ret = change_result_named(ctx, name);
	return r;
}

/* Records one operation for each added limit, with its YAML as we write it. */
static int note_added(struct commands *ctx, const struct command_request *request,
		      struct change *change, size_t from, json_t *names, struct sl_err *err)
{
	for (size_t i = from; i < change->running->limit_count; i++) {
		const struct limit_def *def = &change->running->limit[i];
		char *yaml = limit_to_yaml(def);
		json_t *op = !yaml ? NULL
				   : op_new(request, "limit add", "{s:s, s:s}", "name", def->name,
					    "yaml", yaml);
		int r = op ? live_add(change->live, op, ctx->running->file, change->running)
			   : -ENOMEM;

		change_note(change, op);
		free(yaml);
		json_decref(op);
		if (r < 0)
			return sl_err_set(err, ENOMEM, "out of memory");
		json_array_append_new(names, json_string(def->name));
	}
	return 0;
}

static int add_limits(struct commands *ctx, const struct command_request *request, const char *file,
		      json_t *names, struct sl_err *err)
{
	const char *yaml = arg_text(request, "yaml");
	struct change change;
	int r = change_begin(ctx->running, &change, err);

	if (r < 0)
		return r;
	r = policy_limit_add(change.running, file, yaml, strlen(yaml), err);
	if (!r)
		r = note_added(ctx, request, &change, ctx->running->policy->limit_count, names,
			       err);
	if (!r)
		r = change_commit(ctx->running, &change, err);
	change_end(&change);
	return r;
}

static void add_note(void *notes, const struct limit_def *limit, const char *words)
{
	json_array_append_new(notes, json_sprintf("limit \"%s\": %s", limit->name, words));
}

int command_limit_add(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	const char *file = arg_text(request, "file");
	json_t *names = json_array(), *notes = json_array();
	size_t before = ctx->running->policy->limit_count;
	struct reach_of reach;
	int r;

	if (!file)
		file = "limit add";
	/* It may name an overrides_file. */
	r = reach_of_begin(ctx->running->config_path, ctx->running->state_dir, ctx->running->policy,
			   request->peer->uid, file, &reach, err);
	if (!r)
		r = add_limits(ctx, request, file, names, err);
	if (r < 0)
		reach_hide(err);
	reach_of_end(&reach);
	if (!r) {
		char *text = json_dumps(names, JSON_COMPACT);

		log_info("limit add %s (uid %u, pid %d)", text ? text : "", request->peer->uid,
			 request->peer->pid);
		free(text);
		*ret = change_result(ctx);
		json_object_set(*ret, "added", names);
		policy_order_notes(ctx->running->policy, before, add_note, notes);
		json_object_set(*ret, "notes", notes);
	}
	json_decref(names);
	json_decref(notes);
	return r;
}

int command_limit_del(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	const char *name;
	int r = arg_limit(ctx, request, &name, err);

	if (!r)
		r = op_run(ctx, request, op_new(request, "limit del", "{s:s}", "name", name), err);
	if (!r)
		*ret = change_result_named(ctx, name);
	return r;
}
