// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_write.c - a rule as YAML, by the rows of its keys: its current settings, as a descriptor of
 * its domain's file, without those below it and without the values of overrides_file.
 */
#include <string.h>

#include "request/rules/override_private.h"
#include "request/rules/rule_keys.h"

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ text, text ? strlen(text) : 0 };
}

/* The draft that the rule could have been read from. */
static void make_draft(const struct rule *rule, const struct rule_limit *defaults,
		       struct draft *ret)
{
	bool common = has_common_limit(rule->limit, rule->limit_count);

	*ret = (struct draft){
		.rule = *rule,
		.key = bytes_of(rule->key),
		.value = bytes_of(rule->value),
		.share = rule->share,
		.ignore = rule->depth ? rule->entry[rule->depth - 1].ignore : 0,
		.defaults = *defaults,
		.value_to_metric = rule->depth && rule->value_to_metric >> (rule->depth - 1) & 1,
		.overrides_file_text = rule->overrides ? rule->overrides->file_text : NULL,
	};
	for (u32 i = 0; i < rule->limit_count; i++) {
		struct rule_limit unlike = {
			.terms.algorithm = SL_ALGO_COUNT,
			.terms.cluster = common && !rule->limit[i].terms.cluster,
		};

		ret->limit[i] = rule->limit[i];
		if (rule->limit[i].terms.algorithm == SL_ALGO_CONCURRENCY) {
			unlike = (struct rule_limit){ .terms = rule->limit[i].terms };
			unlike.terms.cluster = false;
		}
		ret->limit_given[i] = keys_unlike(NULL, &rule_limit_keys, &rule->limit[i], &unlike);
	}
	draft_take_concurrency(ret);
	ret->rule.envoy |= !rule->limit_count; /* a limit of 0 has no other form */
	if (ret->rule.envoy && rule->limit_count)
		ret->defaults = rule->limit[0];
}

/* What is left out. Of a rule with limits the prefix is written also where it is the default. */
static void make_unlike(const struct rule *rule, const struct rule_limit *defaults,
			struct draft *ret)
{
	*ret = (struct draft){ .defaults = *defaults, .rule.prefix = rule->prefix };
	if (rule->limit_count) {
		memset(ret->rule.prefix.scale_count, 0, sizeof(ret->rule.prefix.scale_count));
		rule_usual_scales(&ret->rule.prefix);
		memset(ret->rule.prefix.count, PREFIX_HIERARCHY_MAX + 1,
		       sizeof(ret->rule.prefix.count));
	}
	ret->rule.consistency_ns = rule->consistency_ns;
	ret->rule.on_store_failure = rule->on_store_failure;
	if (!has_common_limit(rule->limit, rule->limit_count))
		return;
	ret->rule.consistency_ns = ~0ULL;
	ret->rule.on_store_failure = rule->on_store_failure ? STORE_FAILS_LOCAL : STORE_FAILS_OPEN;
}

int rule_write(const struct rule *rule, FILE *out, int indent)
{
	static const struct rule_limit defaults = { .terms.algorithm = SL_ALGO_FIXED_WINDOW };
	struct writer w = { .out = out, .indent = indent };
	struct draft draft, unlike;

	make_draft(rule, &defaults, &draft);
	make_unlike(rule, &defaults, &unlike);
	keys_write_given(&w, &descriptor_keys, &draft,
			 keys_unlike(&w, &descriptor_keys, &draft, &unlike));
	return w.failed || ferror(out) ? -1 : 0;
}

void rule_limit_add_to(json_t *json, const struct rule_limit *limit)
{
	const struct limit_terms *terms = &limit->terms;

	if (terms->buckets)
		json_object_set_new(json, "buckets", json_integer(terms->buckets));
	if (terms->round_up)
		json_object_set_new(json, "rounding", json_string("up"));
	if (terms->calendar)
		json_object_set_new(json, "calendar", json_string(terms->calendar->zone));
	if (terms->count)
		json_object_set_new(json, "count",
				    json_string(name_of(http_count_names, terms->count)));
	if (limit->mode == SL_MODE_SHADOW)
		json_object_set_new(json, "mode", json_string("shadow"));
}
