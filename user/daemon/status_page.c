// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* status_page.c - see status_page.h. */
#include "daemon/status_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/commands/commands.h"
#include "control/metrics/rate_samples.h"
#include "control/replication/replication.h"
#include "lib/clock.h"
#include "lib/value_hash.h"
#include "packet/host/view.h"
#include "page/page_css.h"
#include "page/page_html.h"
#include "page/page_js.h"
#include "packet/observe/observe.h"
#include "request/rules/override_value.h"

#define ROWS 50		       /* of each list */
#define OVERRIDES_MAX 100      /* a limit or rule with more is not shown as YAML */
#define FRESH_NS SL_NS_PER_SEC /* a document serves all requests for so long */

static struct {
	struct rate_samples *samples;
	char *text; /* the document; NULL: none yet */
	u64 at_ns;
} page;

int status_page_start(void)
{
	page.samples = rate_samples_new();
	return page.samples ? 0 : -ENOMEM;
}

void status_page_stop(void)
{
	rate_samples_free(page.samples);
	free(page.text);
	memset(&page, 0, sizeof(page));
}

void status_page_tick(struct daemon *d)
{
	if (page.samples)
		rate_samples_take(page.samples, &d->running);
}

/* ------------------------------------------------------------------ the parts of the document */

/* The result of a query; null where the daemon has no such part (cluster, http). */
static json_t *query(struct daemon *d, command_fn run, json_t *args)
{
	static const struct peer reader = { .uid = (uid_t)-1, .rights = PEER_READ };
	struct command_request request = { .peer = &reader, .args = args ? args : json_object() };
	struct sl_err err;
	json_t *result = NULL;
	int r = run(&d->commands, &request, &result, &err);

	json_decref(request.args);
	return r < 0 || !result ? json_null() : result;
}

/* Rows with "rule" and "value": the hash in place of a value, unless the rule says that it is
 * plain. */
static void hide_values(struct daemon *d, json_t *rows)
{
	char hash[VALUE_HASH_TEXT];
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *name = json_string_value(json_object_get(row, "rule"));
		const char *value = json_string_value(json_object_get(row, "value"));
		const struct rule *rule = name && d->running.requests.rules
						  ? ruleset_find(d->running.requests.rules, name)
						  : NULL;

		if (value && value[0] && !(rule && rule->values_plain))
			json_object_set_new(row, "value",
					    json_string(value_hash(value, strlen(value), hash)));
	}
}

static double rate_of(const json_t *row, const char *verdict)
{
	return json_real_value(json_object_get(json_object_get(row, "per_second"), verdict));
}

/* Limits that refuse first, then those with most traffic, then in the order of the file. */
static int by_activity(const void *pa, const void *pb)
{
	const json_t *a = *(json_t *const *)pa, *b = *(json_t *const *)pb;
	double x = rate_of(a, "drop") + rate_of(a, "tag") + rate_of(a, "shadow");
	double y = rate_of(b, "drop") + rate_of(b, "tag") + rate_of(b, "shadow");

	if (x == y) {
		x = rate_of(a, "pass");
		y = rate_of(b, "pass");
	}
	if (x != y)
		return x < y ? 1 : -1;
	return (int)(json_integer_value(json_object_get(a, "order")) -
		     json_integer_value(json_object_get(b, "order")));
}

static void add_limit(struct daemon *d, json_t *row, const struct limit_view *view)
{
	json_t *shown =
		view->def && override_count(view->def) <= OVERRIDES_MAX
			? query(d, command_limit_show, json_pack("{s:s}", "name", view->name))
			: NULL;

	json_object_set_new(row, "samples", rate_samples_limit(page.samples, view->slot));
	if (json_is_string(json_object_get(shown, "yaml")))
		json_object_set(row, "yaml", json_object_get(shown, "yaml"));
	json_decref(shown);
}

/* Up to ROWS of the rows of `stats`, with samples and as YAML. */
static json_t *limits_to_json(struct daemon *d, const json_t *all)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(d->running.policy, d->running.image, view), rows = 0, i;
	json_t *list = json_array(), **row = calloc(count + 1, sizeof(json_t *)), *item;

	json_array_foreach(all, i, item) {
		if (!row || i >= count)
			break;
		json_object_set_new(item, "order", json_integer((json_int_t)i));
		row[rows++] = item;
	}
	if (rows)
		qsort(row, rows, sizeof(json_t *), by_activity);
	for (i = 0; i < rows && i < ROWS; i++) {
		add_limit(d, row[i], &view[json_integer_value(json_object_get(row[i], "order"))]);
		json_array_append(list, row[i]);
	}
	free(row);
	return list;
}

/* The rules with most refusals among those that are sampled. */
struct rule_at {
	u32 index;
	const struct rule_totals *totals;
};

static int by_refusals(const void *pa, const void *pb)
{
	const struct rule_at *a = pa, *b = pb;

	if (a->totals->over != b->totals->over)
		return a->totals->over < b->totals->over ? 1 : -1;
	if (a->totals->ok != b->totals->ok)
		return a->totals->ok < b->totals->ok ? 1 : -1;
	return (a->index > b->index) - (a->index < b->index);
}

static json_t *rule_to_json(struct daemon *d, const struct rule_at *at)
{
	const struct rule *rule = d->running.requests.rules->rule[at->index];
	json_t *name = json_pack("{s:s+++}", "name", rule->domain, "/", rule->path, ""), *row,
	       *shown;

	if (!name)
		return NULL;
	row = json_pack("{s:O, s:b, s:o, s:o, s:o, s:o}", "rule", json_object_get(name, "name"),
			"shadow", rule->shadow, "ok", json_u64(at->totals->ok), "over_limit",
			json_u64(at->totals->over), "shadow_refused", json_u64(at->totals->shadow),
			"samples", rate_samples_rule(page.samples, at->index));
	/* Values of overrides are written out in it. */
	if (override_values(rule) > (rule->values_plain ? OVERRIDES_MAX : 0)) {
		json_decref(name);
		return row;
	}
	shown = query(d, command_rule_show, name);
	if (json_is_string(json_object_get(shown, "yaml")))
		json_object_set(row, "yaml", json_object_get(shown, "yaml"));
	json_decref(shown);
	return row;
}

static json_t *rules_to_json(struct daemon *d)
{
	const struct ruleset *rules = d->running.requests.engine ? d->running.requests.rules : NULL;
	u32 count = rules ? rules->rule_count : 0, found = 0;
	struct rule_at *at = calloc((size_t)count + 1, sizeof(*at));
	json_t *list = json_array();

	for (u32 i = 0; at && i < count; i++) {
		at[found] = (struct rule_at){ i, rate_samples_totals(page.samples, i) };
		if (!at[found].totals)
			break;
		found++;
	}
	if (found)
		qsort(at, found, sizeof(*at), by_refusals);
	for (u32 i = 0; i < found && i < ROWS; i++)
		json_array_append_new(list, rule_to_json(d, &at[i]));
	free(at);
	return list;
}

/* Of all bans up to ROWS active ones, the first in the table. */
static json_t *bans_to_rows(struct daemon *d)
{
	const struct bans *bans = bans_look(&d->packets);
	u64 now_ns = clock_mono_ns();
	json_t *list = json_array();

	for (size_t i = 0; i < bans->count && json_array_size(list) < ROWS; i++) {
		struct sl_prefix prefix = bans_prefix(&bans->ban[i]);

		if (bans->ban[i].state.until_ns > now_ns)
			json_array_append_new(
				list, bans_to_json(&d->packets, &bans->ban[i],
						   replication_node(&d->nodes, REPLICATION_BAN,
								    &prefix)));
	}
	return list;
}

static json_t *pushdowns_to_rows(struct daemon *d)
{
	const struct push_entry *entry;
	json_t *list = json_array();

	if (!d->sources || !d->sources->def) {
		json_decref(list);
		return json_null();
	}
	sources_drain(d->sources);
	for (u32 i = 0; (entry = push_at(d->sources->push, i)) && json_array_size(list) < ROWS; i++)
		if (entry->used)
			json_array_append_new(list, sources_push_to_json(d->sources, entry));
	hide_values(d, list);
	return list;
}

static json_t *traffic_to_json(struct daemon *d)
{
	json_t *list = json_array();

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&d->packets.iface[slot]))
			json_array_append_new(
				list,
				json_pack("{s:s, s:o}", "interface", d->packets.iface[slot].name,
					  "samples", rate_samples_interface(page.samples, slot)));
	return list;
}

static json_t *document(struct daemon *d)
{
	/* By its order limits_to_json() finds a limit: none may be left out. */
	json_t *stats = query(d, command_stats, json_pack("{s:b}", "all", 1));
	json_t *json = json_pack("{s:o, s:o, s:o, s:i}", "now", json_utc(clock_utc_ns()), "status",
				 query(d, command_status, NULL), "traffic", traffic_to_json(d),
				 "rows", ROWS);
	json_t *users;

	json_object_set_new(json, "limits", limits_to_json(d, json_object_get(stats, "limits")));
	json_object_set_new(
		json, "limits_count",
		json_integer((json_int_t)json_array_size(json_object_get(stats, "limits"))));
	json_object_set(json, "reasons", json_object_get(stats, "interfaces"));
	json_object_set_new(json, "rules", rules_to_json(d));
	json_object_set_new(json, "sources", query(d, command_source_list, NULL));
	users = query(d, command_user_top, NULL);
	hide_values(d, json_object_get(users, "users"));
	json_object_set_new(json, "users", users);
	json_object_set_new(json, "blocks", blocks_latest(&d->commands, ROWS));
	json_object_set_new(json, "bans", bans_to_rows(d));
	json_object_set_new(json, "pushdowns", pushdowns_to_rows(d));
	json_object_set_new(json, "feeds", query(d, command_set_list, NULL));
	json_object_set_new(json, "cluster", query(d, command_cluster_show, NULL));
	json_object_set_new(json, "events", observe_latest(d->running.observe));
	json_decref(stats);
	return json;
}

/* ------------------------------------------------------------------ responses */

static void reply(struct http1_request *request, const char *type, const char *body, size_t size)
{
	http1_reply_header(request, "x-content-type-options", "nosniff");
	http1_reply_header(request, "cache-control", "no-store");
	http1_reply_header(request, "referrer-policy", "no-referrer");
	http1_reply_header(request, "x-frame-options", "DENY");
	http1_reply_header(request, "cross-origin-resource-policy", "same-origin");
	http1_reply_header(
		request, "content-security-policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	http1_reply(request, 200, type, body, size);
}

void status_page_html(struct http1_request *request)
{
	reply(request, "text/html; charset=utf-8", page_html, sizeof(page_html) - 1);
}

void status_page_script(struct http1_request *request)
{
	reply(request, "text/javascript; charset=utf-8", page_js, sizeof(page_js) - 1);
}

void status_page_style(struct http1_request *request)
{
	reply(request, "text/css; charset=utf-8", page_css, sizeof(page_css) - 1);
}

void status_page_json(struct http1_request *request, struct daemon *d)
{
	u64 now_ns = clock_mono_ns();
	json_t *json;

	if (!page.text || now_ns >= page.at_ns + FRESH_NS) {
		free(page.text);
		json = document(d);
		page.text = json_dumps(json, JSON_COMPACT);
		page.at_ns = now_ns;
		json_decref(json);
	}
	if (page.text)
		reply(request, "application/json", page.text, strlen(page.text));
	else
		http1_reply_problem(request, 503, "out of memory");
}
