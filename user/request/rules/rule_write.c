// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_write.c - a rule as YAML: its current settings, as a descriptor of its domain's file,
 * without those below it and without the values of overrides_file.
 */
#include <stdlib.h>
#include <string.h>

#include "request/rules/override_private.h"
#include "conf/write.h"
#include "limiter/algorithm.h"

#define OVERRIDES_SHOWN 16

static const char *percent(u32 permille, char buf[16])
{
	snprintf(buf, 16, permille % 10 ? "%u.%u%%" : "%u%%", permille / 10, permille % 10);
	return buf;
}

static bool has_common_limit(const struct rule *rule)
{
	for (u32 i = 0; i < rule->limit_count; i++)
		if (rule->limit[i].cluster)
			return true;
	return false;
}

/* All of it, in braces. `common`: the rule's limits are of scope cluster by default. */
static void write_element(FILE *out, const struct rule_limit *limit, bool named, bool common)
{
	char text[256];

	fputs("{", out);
	if (named)
		fprintf(out, "name: '%s', ", limit->name);
	fprintf(out, "rate: %s, algorithm: %s", rate_format(&limit->rate, text, sizeof(text)),
		algorithm_name(limit->algorithm));
	if (limit->burst)
		fprintf(out, ", burst: %llu", limit->burst);
	if (limit->first_request)
		fputs(", window: first-request", out);
	if (limit->buckets)
		fprintf(out, ", buckets: %u", limit->buckets);
	if (limit->count_all)
		fputs(", count: all", out);
	if (limit->throttle.kind != THROTTLE_HARD)
		fprintf(out, ", throttle: %s",
			throttle_format(&limit->throttle, text, sizeof(text)));
	if (limit->cluster || common)
		fprintf(out, ", scope: %s", name_of(scope_names, limit->cluster));
	fputs("}", out);
}

static void write_elements(struct writer *w, const struct rule *rule)
{
	bool common = has_common_limit(rule);

	write_begin(w);
	fputs("limits:\n", w->out);
	for (u32 i = 0; i < rule->limit_count; i++) {
		fprintf(w->out, "%*s- ", w->indent + 2, "");
		write_element(w->out, &rule->limit[i], true, common);
		fputc('\n', w->out);
	}
}

/* A limit of 0 can only be written in envoyproxy/ratelimit's form. */
static void write_limits(struct writer *w, const struct rule *rule)
{
	static const char *const unit[REQUEST_UNIT_COUNT] = {
		"second", "second", "minute", "hour", "day", "month", "year", "week",
	};

	if (rule->limit_count && !rule->envoy) {
		write_elements(w, rule);
		return;
	}
	write_begin(w);
	fputs("rate_limit: {", w->out);
	if (rule->unlimited)
		fputs("unlimited: true", w->out);
	else
		fprintf(w->out, "unit: %s, requests_per_unit: %llu", unit[rule->unit],
			rule->limit[0].rate.count);
	if (rule->name) {
		fputs(", name: ", w->out);
		write_text(w->out, rule->name);
	}
	for (u32 i = 0; i < rule->replaces_count; i++) {
		fputs(i ? ", {name: " : ", replaces: [{name: ", w->out);
		write_text(w->out, rule->replaces[i]);
		fputs(i + 1 == rule->replaces_count ? "}]" : "}", w->out);
	}
	fputs("}\n", w->out);
	if (!rule->limit_count)
		return;
	if (rule->limit[0].algorithm != SL_ALGO_FIXED_WINDOW)
		write_value(w, "algorithm", algorithm_name(rule->limit[0].algorithm));
	if (rule->limit[0].burst)
		write_number(w, "burst", rule->limit[0].burst);
	if (rule->limit[0].first_request)
		write_value(w, "window", "first-request");
	if (rule->limit[0].buckets)
		write_number(w, "buckets", rule->limit[0].buckets);
	if (rule->limit[0].count_all)
		write_value(w, "count", "all");
	if (rule->limit[0].cluster)
		write_value(w, "scope", "cluster");
}

static void write_prefix_hierarchy(FILE *out, const struct rule *rule, enum sl_family family,
				   bool scale)
{
	u8 count = rule->prefix.count[family];

	fputs("[", out);
	for (u8 i = 0; i < count; i++)
		fprintf(out, "%s%u", i ? ", " : "", scale ? rule->prefix.scale[family][i] :
							     rule->prefix.len[family][i]);
	fputs("]", out);
}

static void write_prefix(struct writer *w, const struct rule *rule)
{
	bool scaled = false;

	if (!rule->limit_count)
		return;
	write_begin(w);
	if (!rule->prefix.count[SL_V4] && !rule->prefix.count[SL_V6]) {
		fputs("prefix: none\n", w->out);
		return;
	}
	for (int pass = 0; pass < 1 + scaled; pass++) {
		if (pass)
			write_begin(w);
		fputs(pass ? "prefix_scale: {ipv4: " : "prefix: {ipv4: ", w->out);
		write_prefix_hierarchy(w->out, rule, SL_V4, pass);
		fputs(", ipv6: ", w->out);
		write_prefix_hierarchy(w->out, rule, SL_V6, pass);
		fputs("}\n", w->out);
		for (int f = 0; f < SL_FAMILY_COUNT; f++)
			for (u8 i = 0; i < rule->prefix.count[f]; i++)
				scaled |= rule->prefix.scale[f][i] != 1;
	}
}

static void write_own(struct writer *w, const struct override_own *own, bool common)
{
	fprintf(w->out, "%*s- {value: ", w->indent + 2, "");
	write_text(w->out, own->value);
	if (!own->limits) {
		fputs(", removed: true}\n", w->out);
	} else if (own->limits->unlimited) {
		fputs(", unlimited: true}\n", w->out);
	} else if (own->limits->limit[0].none) {
		fputs(", block: true}\n", w->out);
	} else {
		fputs(", limits: [", w->out);
		for (u32 i = 0; i < own->limits->limit_count; i++) {
			fputs(i ? ", " : "", w->out);
			write_element(w->out, &own->limits->limit[i], false, common);
		}
		fputs("]}\n", w->out);
	}
}

static void write_overrides(struct writer *w, const struct rule *rule)
{
	const struct override_index *index = rule->overrides;

	if (index && index->own_count) {
		write_begin(w);
		fputs("overrides:\n", w->out);
	}
	for (u32 i = 0; index && i < index->own_count && i < OVERRIDES_SHOWN; i++)
		write_own(w, &index->own_list[i], has_common_limit(rule));
	if (index && index->own_count > OVERRIDES_SHOWN)
		fprintf(w->out, "%*s# and %u more\n", w->indent + 2, "",
			index->own_count - OVERRIDES_SHOWN);
	if (!index || !index->file_text)
		return;
	write_begin(w);
	fputs("overrides_file: ", w->out);
	write_text(w->out, index->file_text);
	fprintf(w->out, "	# %u values\n", index->file->count);
}

static void write_reserve(struct writer *w, const struct rule *rule)
{
	const u32 *reserve = rule->reserve_permille;
	char a[16], b[16];

	if (!reserve[PRIORITY_CRITICAL] && !reserve[PRIORITY_NORMAL])
		return;
	write_begin(w);
	fprintf(w->out, "reserve: {critical: %s, normal: %s}\n",
		percent(reserve[PRIORITY_CRITICAL], a), percent(reserve[PRIORITY_NORMAL], b));
}

static void write_push_down(struct writer *w, const struct push_def *push)
{
	char text[3][64];

	if (!push->after)
		return;
	write_begin(w);
	fprintf(w->out, "push_down: {after: %llu rejections/%s, steps: [", push->after,
		duration_format(push->within_ns, text[0], sizeof(text[0])));
	for (u32 i = 0; i < push->step_count; i++) {
		fprintf(w->out, "%s%s", i ? ", " : "", name_of(push_kind_names, push->step[i].kind));
		if (push->step[i].kind == SL_PUSH_LIMIT)
			fprintf(w->out, " %s",
				rate_format(&push->step[i].rate, text[0], sizeof(text[0])));
	}
	fprintf(w->out, "], step: %s, down: %s, max: %s}\n",
		duration_format(push->step_ns, text[0], sizeof(text[0])),
		duration_format(push->down_ns, text[1], sizeof(text[1])),
		duration_format(push->max_ns, text[2], sizeof(text[2])));
}

/* For limits of scope cluster; without any these keys would be refused. */
static void write_contract(struct writer *w, const struct rule *rule)
{
	char text[64];

	if (!has_common_limit(rule))
		return;
	write_begin(w);
	fprintf(w->out, "consistency: %s\n", consistency_format(rule, text, sizeof(text)));
	write_value(w, "on_store_failure", name_of(counters_failure_names, rule->on_store_failure));
}

static void write_flags(struct writer *w, const struct rule *rule)
{
	char *metadata;

	if (rule->shadow)
		write_value(w, "shadow_mode", "true");
	if (rule->quota_mode)
		write_value(w, "quota_mode", "true");
	if (rule->detailed_metric)
		write_value(w, "detailed_metric", "true");
	if (rule->depth && rule->value_to_metric >> (rule->depth - 1) & 1)
		write_value(w, "value_to_metric", "true");
	if (rule->share)
		write_value(w, "share_threshold", "true");
	metadata = rule->metadata ? json_dumps(rule->metadata, 0) : NULL;
	if (metadata) {
		write_begin(w);
		fprintf(w->out, "metadata: %s\n", metadata);	/* JSON is YAML */
	}
	free(metadata);
}

int rule_write(const struct rule *rule, FILE *out, int indent)
{
	struct writer w = { .out = out, .indent = indent };
	char text[64];

	write_value(&w, "key", rule->key);
	if (rule->value)
		write_value(&w, "value", rule->value);
	write_limits(&w, rule);
	write_flags(&w, rule);
	write_prefix(&w, rule);
	write_overrides(&w, rule);
	if (rule->has_priority)
		write_value(&w, "priority", name_of(priority_names, rule->priority));
	write_reserve(&w, rule);
	if (rule->wait_ns) {
		write_begin(&w);
		fprintf(out, "on_limit: {wait: %s, queue: %llu}\n",
			duration_format(rule->wait_ns, text, sizeof(text)), rule->queue);
	}
	write_contract(&w, rule);
	write_push_down(&w, &rule->push);
	return ferror(out) ? -1 : 0;
}
