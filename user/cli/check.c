// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check.c - sluicectl check FILE, and rule test: the rule that matches a descriptor, its limits and
 * its counter keys. The only part of the CLI that includes the configuration model.
 *
 * It works without a daemon and without root: in an editor, in CI, before the first start. So it
 * links the code of the daemon, and a file that passes here is accepted there (see
 * docs/decisions/0003-check-links-policy.md). Compiling finds errors that parsing cannot: rates
 * that cannot be represented, too many distinct conditions. Notes report valid settings with a
 * surprising effect: rates that rounding changes, accounting without effect, prefix lengths that
 * never bind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "config/cluster_def.h"
#include "config/http_def.h"
#include "config/policy.h"
#include "packet/compile/compile.h"
#include "lib/cpus.h"
#include "lib/links.h"
#include "request/rules/override_value.h"
#include "config/model.h"
#include "request/rules/request_text.h"
#include "request/rules/rule.h"

/* The seed and the clock do not change the result for a file; on how many CPUs it runs does: which
 * limits have leases. */
static int compile(const struct policy *policy, struct sl_image **ret, struct sl_err *err)
{
	struct sl_limit_id_info *slots = calloc(SL_LIMIT_IDS, sizeof(*slots));
	struct compile_env env = { .cpus = cpus_online(), .generation = 1, .slots = slots };
	char(*names)[16] = calloc(SL_IFACES_MAX, sizeof(*names));
	int r;

	if (!slots || !names) {
		r = sl_err_set(err, 12, "out of memory");
	} else {
		for (size_t i = 0; i < policy->interface_count && i < SL_IFACES_MAX; i++)
			memcpy(names[i], policy->interface[i].name, sizeof(names[i]));
		env.iface = (const char(*)[16])names;
		r = image_compile(policy, &env, ret, err);
	}
	free(names);
	free(slots);
	return r;
}

int cli_print_bad(const struct cli *cli, const struct sl_err *err)
{
	json_t *error, *answer;
	char text[sizeof(*err)];

	fprintf(stderr, "%s\n", sl_err_format(err, text, sizeof(text)));
	if (!cli->json)
		return EXIT_REFUSED;
	error = json_pack("{s:s, s:s, s:i, s:i}", "message", err->message, "file", err->file,
			  "line", err->line, "column", err->column);
	if (!error)
		error = json_pack("{s:s}", "message", "the error message is not UTF-8");
	answer = json_pack("{s:b, s:o}", "ok", 0, "error", error);
	cli_print_json(cli, answer);
	json_decref(answer);
	return EXIT_REFUSED;
}

static void add_note(void *notes, const struct limit_def *limit, const char *words)
{
	char text[320];

	if (limit)
		snprintf(text, sizeof(text), "line %d: limit \"%s\": %s", limit->pos.line,
			 limit->name, words);
	else
		snprintf(text, sizeof(text), "%s", words);
	json_array_append_new(notes, json_string(text));
}

static void add_link_note(void *notes, const char *ifname, const char *words)
{
	json_array_append_new(notes, json_sprintf("interface %s %s", ifname, words));
}

/* Of the interfaces of this host, which need not be those that the file is for. */
static void link_notes(const struct policy *policy, policy_link_note *add, json_t *notes)
{
	struct links links;

	if (links_get(&links) < 0)
		return;
	policy_link_notes(policy, &links, add, notes);
	links_free(&links);
}

static void note_log(const struct rule *rule, const struct rule_limit *limit, u64 log_bytes,
		     json_t *notes)
{
	enum sl_algo algorithm = limit->terms.algorithm;
	u64 bytes = algorithm_log_bytes(algorithm, limit->terms.rates.rate[0].count,
					limit->terms.buckets);
	char what[64] = "stores every request";

	if (!algorithm_is_log(algorithm))
		return;
	if (algorithm == SL_ALGO_WINDOW_COUNTERS)
		snprintf(what, sizeof(what), "stores %u counts", limit->terms.buckets);
	if (algorithm == SL_ALGO_CONCURRENCY)
		snprintf(what, sizeof(what), "stores %u counts", CONCURRENCY_BUCKETS + 1);
	json_array_append_new(
		notes, json_sprintf("%s:%d: rule \"%s/%s\": %s %s: up to %llu bytes per key; "
				    "http.state.log_memory has room for %llu such keys",
				    rule->file, rule->line, rule->domain, rule->path,
				    algorithm_name(algorithm), what, bytes, log_bytes / bytes));
}

/* Says what a bucket's burst means: "burst 1: at most 1 at once, then one each 0.6 s". Other
 * algorithms get "". */
static const char *burst_words(const struct rule_limit *limit, u64 *ret_burst, char *buf,
			       size_t size)
{
	const struct rate *rate = &limit->terms.rates.rate[0];
	const struct algorithm *row = algorithms[limit->terms.algorithm];

	*ret_burst = limit->terms.rates.burst[0];
	if (!*ret_burst && row->default_burst && !limit->none)
		*ret_burst = row->default_burst(rate, 0);
	buf[0] = '\0';
	if (!algorithm_is_bucket(limit->terms.algorithm) || limit->none) {
		if (*ret_burst)
			snprintf(buf, size, "burst %llu", *ret_burst);
		return buf;
	}
	if (!*ret_burst)
		*ret_burst = 1;
	snprintf(buf, size, "burst %llu: at most %llu at once, then one each %.3g s", *ret_burst,
		 *ret_burst, (double)rate->period_ns / rate->count / SL_NS_PER_SEC);
	return buf;
}

/* The default burst is what the rate gives in a second: for "100 requests/m" less than most authors
 * expect. */
static void note_burst(const struct rule *rule, const struct rule_limit *limit, json_t *notes)
{
	const struct rate *rate = &limit->terms.rates.rate[0];
	char words[96], text[64];
	u64 burst;

	if (limit->terms.algorithm != SL_ALGO_TOKEN_BUCKET || limit->terms.rates.burst[0] ||
	    !burst_words(limit, &burst, words, sizeof(words))[0] || burst >= rate->count)
		return;
	json_array_append_new(
		notes,
		json_sprintf(
			"%s:%d: rule \"%s/%s\": token-bucket of %s without a burst has one second's worth, %s; for all at "
			"once write burst: %llu",
			rule->file, rule->line, rule->domain, rule->path,
			rate_format(rate, text, sizeof(text)), words, rate->count));
}

/* Notes that "/foo*" also meets "/foobar": its author may mean "/foo" and what is below it. */
static void note_below(const struct rule *rule, json_t *notes)
{
	int len = rule->value ? (int)strlen(rule->value) - 1 : 0;

	if (len < 2 || rule->value[0] != '/' || rule->value[len] != '*' ||
	    strchr("/*", rule->value[len - 1]))
		return;
	json_array_append_new(
		notes,
		json_sprintf(
			"%s:%d: rule \"%s/%s\": the value meets all that begins with %.*s, as %.*sx; for %.*s and what is "
			"below it write %.*s/**",
			rule->file, rule->line, rule->domain, rule->path, len, rule->value, len,
			rule->value, len, rule->value, len, rule->value));
}

static void note_scope(const struct rule *rule, json_t *notes)
{
	for (u32 i = 0; i < rule->limit_count; i++) {
		if (!rule->limit[i].terms.cluster)
			continue;
		json_array_append_new(
			notes,
			json_sprintf(
				"%s:%d: rule \"%s/%s\": scope is cluster, but no cluster is configured: "
				"the rule counts on this node alone",
				rule->file, rule->line, rule->domain, rule->path));
		return;
	}
}

/* A rule that defers where it cannot refuses instead. */
static void note_defer(const struct policy *policy, const struct rule *rule, json_t *notes)
{
	enum redis_mode mode = policy->cluster ? policy->cluster->redis.mode : REDIS_MODE_RING;

	if (!rule->defer.max || mode == REDIS_MODE_SINGLE || mode == REDIS_MODE_SENTINEL)
		return;
	json_array_append_new(
		notes,
		json_sprintf(
			"%s:%d: rule \"%s/%s\": on_limit defers requests, but that needs cluster.redis with mode: single or "
			"sentinel: they are refused",
			rule->file, rule->line, rule->domain, rule->path));
}

/*
 * Loads what http.rules names, appending to `notes` what is worth knowing. 0 also where there is
 * no HTTP tier.
 */
static int check_rules(const struct policy *policy, u32 *ret_rules, json_t *notes,
		       struct sl_err *err)
{
	const struct http_def *http = policy->http;
	struct ruleset *set;
	int r;

	*ret_rules = 0;
	if (!http)
		return 0;
	r = ruleset_load(http->rules_dir, NULL, &set, err);
	if (r < 0)
		return r;
	for (u32 i = 0; i < set->rule_count; i++) {
		note_below(set->rule[i], notes);
		note_defer(policy, set->rule[i], notes);
		for (u32 k = 0; k < set->rule[i]->limit_count; k++) {
			note_log(set->rule[i], &set->rule[i]->limit[k], http->log_bytes, notes);
			note_burst(set->rule[i], &set->rule[i]->limit[k], notes);
		}
	}
	for (u32 i = 0; i < set->rule_count && !policy->cluster; i++)
		note_scope(set->rule[i], notes);
	for (size_t i = 0; !r && i < http->budget.user_count; i++)
		if (!ruleset_find(set, http->budget.user[i]))
			r = sl_err_at(err, EINVAL, policy->path, 0, 0,
				      "http.source_budget.user: there "
				      "is no rule \"%s\" in %s",
				      http->budget.user[i], http->rules_dir);
	*ret_rules = set->rule_count;
	ruleset_free(set);
	return r;
}

/* Takes ownership of `notes`. */
static void print_good(const struct cli *cli, const struct policy *policy,
		       const struct sl_image *image, u32 rules, json_t *notes)
{
	json_t *json;

	policy_notes(policy, image->rules, add_note, notes);
	link_notes(policy, add_link_note, notes);
	json = json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:o}", "ok", 1, "file",
			 text_of(cli->args, "file"), "interfaces",
			 (json_int_t)policy->interface_count, "limits",
			 (json_int_t)policy->limit_count, "block",
			 (json_int_t)policy->list[LIST_BLOCK].count, "exempt",
			 (json_int_t)policy->list[LIST_EXEMPT].count, "notes", notes);
	if (policy->http)
		json_object_set_new(json, "rules", json_integer(rules));
	client_print(cli, json);
	json_decref(json);
}

int cmd_check(const struct cli *cli)
{
	struct sl_err err = { .message = "" };
	struct policy *policy = NULL;
	struct sl_image *image = NULL;
	json_t *notes = json_array();
	int code = EXIT_DONE;
	u32 rules;

	if (policy_load(text_of(cli->args, "file"), &policy, &err) < 0 ||
	    compile(policy, &image, &err) < 0 || check_rules(policy, &rules, notes, &err) < 0) {
		code = cli_print_bad(cli, &err);
		json_decref(notes);
	} else {
		print_good(cli, policy, image, rules, notes);
	}
	image_free(image);
	policy_free(policy);
	return code;
}

/* ------------------------------------------------------------------ doctor */

static void add_link_fact(void *notes, const char *ifname, const char *words)
{
	json_array_append_new(notes, json_pack("{s:s, s:s}", "name", ifname, "note", words));
}

static json_t *facts_of(const struct policy *policy, u32 rules, json_t *notes)
{
	json_t *interfaces = json_array(), *of_links = json_array();

	for (size_t i = 0; i < policy->interface_count; i++)
		json_array_append_new(interfaces,
				      json_pack("{s:s}", "name", policy->interface[i].name));
	link_notes(policy, add_link_fact, of_links);
	return json_pack("{s:o, s:I, s:I, s:O, s:o}", "interfaces", interfaces, "limits",
			 (json_int_t)policy->limit_count, "rules", (json_int_t)rules, "notes",
			 notes, "link_notes", of_links);
}

int check_facts(const char *path, json_t **ret, char *error, size_t size)
{
	struct sl_err err = { .message = "" };
	struct policy *policy = NULL;
	struct sl_image *image = NULL;
	json_t *notes = json_array();
	u32 rules;
	int r = policy_load(path, &policy, &err);

	if (!r)
		r = compile(policy, &image, &err);
	if (!r)
		r = check_rules(policy, &rules, notes, &err);
	if (!r) {
		policy_notes(policy, image->rules, add_note, notes);
		*ret = facts_of(policy, rules, notes);
	} else {
		sl_err_format(&err, error, size);
	}
	json_decref(notes);
	image_free(image);
	policy_free(policy);
	return r;
}

/* ------------------------------------------------------------------ rule test */

/* "user=bob,path=/x"; a backslash escapes a comma in a value. Modifies `text`. */
static int parse_entries(char *text, struct request_descriptor *ret)
{
	char *to, *equals;

	while (*text) {
		struct request_entry *entry = &ret->entry[ret->count];
		char *start = text;

		if (ret->count == REQUEST_ENTRIES_MAX)
			return -E2BIG;
		for (to = text; *text && *text != ','; text++) {
			text += *text == '\\' && text[1];
			*to++ = *text;
		}
		text += *text == ',';
		equals = memchr(start, '=', to - start);
		if (!equals || equals == start)
			return -EINVAL;
		entry->key = (struct bytes){ start, equals - start };
		entry->value = (struct bytes){ equals + 1, to - equals - 1 };
		ret->count++;
	}
	return ret->count ? 0 : -EINVAL;
}

static json_t *limits_json(const struct rule *rule, const struct rule_limit *limit, u32 count)
{
	json_t *list = json_array(), *json;
	char text[96], words[96];
	u64 burst;

	for (u32 i = 0; i < count; i++) {
		burst_words(&limit[i], &burst, words, sizeof(words));
		json = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s}", "name", limit[i].name,
				 "rate",
				 limit[i].none ? "0 requests"
					       : rate_format(&limit[i].terms.rates.rate[0], text,
							     sizeof(text)),
				 "algorithm", algorithm_name(limit[i].terms.algorithm), "window",
				 !algorithms[limit[i].terms.algorithm]->has_window ? ""
				 : limit[i].terms.first_request			   ? "first-request"
										   : "aligned",
				 "burst", (json_int_t)burst, "at_once", words, "scope",
				 limit[i].terms.cluster ? "cluster" : "node");
		rule_limit_add_to(json, &limit[i]);
		if (limit[i].terms.cluster)
			json_object_set_new(
				json, "consistency",
				json_string(consistency_format(rule, text, sizeof(text))));
		json_array_append_new(list, json);
	}
	return list;
}

/* The groups of a value: the value itself, or the prefixes that contain it. */
static json_t *groups_json(const struct rule *rule, const struct rule_match *match, u32 i)
{
	json_t *list = json_array();
	struct sl_prefix prefix;
	char text[SL_PREFIX_TEXT];

	struct bytes value = rule_value(rule, i, match->value[i]);

	if (!value_address(match->value[i], &prefix.addr, &prefix.family) ||
	    !rule->prefix.count[prefix.family]) {
		json_array_append_new(
			list, json_pack("{s:s%, s:i}", "value", value.at, value.len, "scale", 1));
		return list;
	}
	for (u8 k = 0; k < rule->prefix.count[prefix.family]; k++) {
		prefix.len = rule->prefix.len[prefix.family][k];
		prefix.addr = sl_addr_mask(prefix.addr, prefix.len);
		json_array_append_new(list, json_pack("{s:s, s:i}", "value",
						      sl_prefix_format(&prefix, text, sizeof(text)),
						      "scale",
						      (int)rule->prefix.scale[prefix.family][k]));
	}
	return list;
}

static json_t *result_json(const struct rule_match *match,
			   const struct request_descriptor *descriptor)
{
	const struct override_limits *own = NULL;
	const struct rule *rule = match->rule;
	json_t *json, *keys;

	if (!rule)
		return json_pack("{s:n}", "rule");
	if (match->count)
		own = override_value_find(rule, match->value);
	json = json_pack("{s:o, s:s, s:i, s:b, s:b, s:b, s:o}", "rule",
			 json_sprintf("%s/%s", rule->domain, rule->path), "file", rule->file,
			 "line", rule->line, "shadow", rule->shadow, "override", own != NULL,
			 "unlimited", own ? own->unlimited : rule->unlimited, "limits",
			 own ? limits_json(rule, own->limit, own->limit_count)
			     : limits_json(rule, rule->limit, rule->limit_count));
	keys = json_array();
	for (u32 i = 0; i < match->count; i++)
		json_array_append_new(keys,
				      json_pack("{s:s%, s:o}", "key", descriptor->entry[i].key.at,
						descriptor->entry[i].key.len, "groups",
						groups_json(rule, match, i)));
	json_object_set_new(json, "counted_by", keys);
	return json;
}

int cmd_rule_test(const struct cli *cli)
{
	struct request_descriptor descriptor = { .hits = 1 };
	struct sl_err err = { .message = "" };
	struct rule_match match;
	const char *domain = text_of(cli->args, "domain");
	const struct rule *of_domain;
	struct ruleset *set;
	char *entries;
	json_t *json;
	int code = EXIT_DONE;

	entries = strdup(text_of(cli->args, "entries"));
	if (!entries || parse_entries(entries, &descriptor) < 0) {
		free(entries);
		return cli_refuse(cli, EXIT_USAGE,
				  "--entries '%s': KEY=VALUE[,KEY=VALUE...] is "
				  "accepted, up to %d",
				  text_of(cli->args, "entries"), REQUEST_ENTRIES_MAX);
	}
	if (ruleset_load_path(text_of(cli->args, "config"), &set, NULL, &err) < 0) {
		free(entries);
		return cli_print_bad(cli, &err);
	}
	ruleset_match(set, (struct bytes){ domain, strlen(domain) }, &descriptor, &match);
	json = result_json(&match, &descriptor);
	of_domain = ruleset_of_domain(set, (struct bytes){ domain, strlen(domain) });
	if (json && of_domain)
		json_object_set_new(
			json, "domain",
			json_pack(
				"{s:o, s:o}", "rule",
				json_sprintf("%s/%s", of_domain->domain, of_domain->path), "limits",
				limits_json(of_domain, of_domain->limit, of_domain->limit_count)));
	if (!json)
		code = cli_refuse(cli, EXIT_USAGE, "an argument is not UTF-8");
	else
		client_print(cli, json);
	json_decref(json);
	ruleset_free(set);
	free(entries);
	return code;
}
