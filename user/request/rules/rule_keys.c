// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_keys.c - a rule's keys other than its limits: grouping of values, effects of a refusal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/limit_types.h"
#include "request/rules/rule_private.h"

#define SECOND SL_NS_PER_SEC
#define DAY (24 * 3600 * SECOND)
#define WAIT_MAX (3600 * SECOND)

const struct name priority_names[] = {
	{ "critical", PRIORITY_CRITICAL },
	{ "normal", PRIORITY_NORMAL },
	{ "low", PRIORITY_LOW },
	{ NULL, 0 },
};

const struct name push_kind_names[] = {
	{ "limit", SL_PUSH_LIMIT },
	{ "tag", SL_PUSH_TAG },
	{ "no-new", SL_PUSH_NO_NEW },
	{ "drop", SL_PUSH_DROP },
	{ NULL, 0 },
};

/* ---- flags ---- */

static int yaml_bool_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	static const char *const words[2][5] = {
		{ "false", "no", "off", "n" },
		{ "true", "yes", "on", "y" },
	};

	for (int value = 0; value < 2; value++)
		for (int i = 0; words[value][i]; i++)
			if (!strcasecmp(text, words[value][i])) {
				*(bool *)key_field(key, section) = value;
				return 0;
			}
	return key_refuse_text(r, key);
}

static void yaml_bool_write(struct writer *w, const struct key *key, const void *section)
{
	fputs(*(const bool *)key_field_of(key, section) ? "true" : "false", w->out);
}

const struct key_type type_yaml_bool = {
	.name = "true or false",
	.text = yaml_bool_read,
	.write = yaml_bool_write,
	.accepts = "true or false",
};

void write_true(struct writer *w, const void *from)
{
	fputs("true", w->out);
}

int read_rule_share_threshold(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct draft *draft = into;
	int rc = yaml_bool_read(r, text, key, draft);

	if (!rc && draft->share && draft->b->place == RULE_OF_DESCRIPTOR &&
	    !match_is_pattern(draft->value))
		rc = read_fail(r, r->at, EINVAL,
			       "share_threshold needs a pattern; "
			       "accepted with it: a value with a '*', as foo*, or a network");
	return rc;
}

/* ---- prefix: as in the packet tier, or none ---- */

/*
 * The default of IPv6 is a hierarchy: a client that is given a /48 has 65536 of /64, and would have
 * as many budgets. With the default lengths each wider one has twice the limit of the one before.
 */
static const struct key prefix_rows[] = {
	{ "ipv4", KEY(struct prefix_hierarchy, len[SL_V4]), &type_lengths_v4, .usual = "32" },
	{ "ipv6", KEY(struct prefix_hierarchy, len[SL_V6]), &type_lengths_v6,
	  .usual = "[64, 56, 48]" },
};
static const struct keys prefix_keys = KEYS(struct prefix_hierarchy, prefix_rows);

static const struct key scale_rows[] = {
	{ "ipv4", KEY(struct prefix_hierarchy, scale[SL_V4]), &type_scales_v4 },
	{ "ipv6", KEY(struct prefix_hierarchy, scale[SL_V6]), &type_scales_v6 },
};
/* The multipliers are always written: their default depends on the lengths. */
const struct keys rule_scale_keys = KEYS(struct prefix_hierarchy, scale_rows);

void rule_usual_scales(struct prefix_hierarchy *prefix)
{
	static const u8 usual[] = { 64, 56, 48 };
	bool is_usual = prefix->count[SL_V6] == ARRAY_SIZE(usual) &&
			!memcmp(prefix->len[SL_V6], usual, sizeof(usual));

	for (int family = 0; family < SL_FAMILY_COUNT; family++)
		for (u32 i = 0; !prefix->scale_count[family] && i < PREFIX_HIERARCHY_MAX; i++)
			prefix->scale[family][i] = family == SL_V6 && is_usual ? 1U << i : 1;
}

static int prefix_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		       void *section)
{
	struct prefix_hierarchy *prefix = key_field(key, section);

	if (node->kind == YAML_TEXT && !strcmp(node->text, "none")) {
		memset(prefix->count, 0, sizeof(prefix->count));
		return 0;
	}
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, "none, or {ipv4: 32, ipv6: 64}");
	return keys_read(r, node, &prefix_keys, prefix);
}

static void prefix_write(struct writer *w, const struct key *key, const void *section)
{
	const struct prefix_hierarchy *prefix = key_field_of(key, section);
	static const struct prefix_hierarchy none;

	if (prefix->count[SL_V4] || prefix->count[SL_V6])
		keys_write_flow(w, &prefix_keys, prefix,
				keys_unlike(w, &prefix_keys, prefix, &none));
	else
		fputs("none", w->out);
}

static bool prefix_equal(const struct key *key, const void *a, const void *b)
{
	return keys_equal(&prefix_keys, key_field_of(key, a), key_field_of(key, b));
}

/* The multipliers, of the same struct, have a row of their own. */
static void prefix_clear(const struct key *key, void *section)
{
	struct prefix_hierarchy *prefix = key_field(key, section);

	memset(prefix->count, 0, sizeof(prefix->count));
}

const struct key_type type_rule_prefix = {
	.name = "mapping",
	.read = prefix_read,
	.write = prefix_write,
	.equal = prefix_equal,
	.clear = prefix_clear,
};

/* ---- reserve ---- */

static const struct key reserve_rows[] = {
	{ "critical", DRAFT(rule.reserve_permille[PRIORITY_CRITICAL]), &type_percent, .most = 999 },
	{ "normal", DRAFT(rule.reserve_permille[PRIORITY_NORMAL]), &type_percent, .most = 999 },
};

static int check_reserve(struct reader *r, const struct yaml_node *node, void *section)
{
	const u32 *reserve = ((struct draft *)section)->rule.reserve_permille;

	if (reserve[PRIORITY_CRITICAL] + reserve[PRIORITY_NORMAL] < 1000)
		return 0;
	return read_fail(r, node, EINVAL,
			 "found all of the limit kept for others: low would never "
			 "pass; accepted: below 100%% together");
}

const struct keys reserve_keys = KEYS(struct draft, reserve_rows, .check = check_reserve);

/* ---- on_limit ---- */

static const struct key defer_rows[] = {
	{ "max", DRAFT(rule.defer.max), &type_count, .usual = "10000", .least = 1,
	  .most = 1000000 },
	{ "ttl", DRAFT(rule.defer.ttl_ns), &type_duration, .usual = "1h", .least = SECOND,
	  .most = 7 * DAY },
	{ "deliveries", DRAFT(rule.defer.deliveries), &type_count, .usual = "5", .least = 1,
	  .most = 100 },
	{ "retry", DRAFT(rule.defer.retry_ns), &type_duration, .usual = "1m", .least = SECOND,
	  .most = DAY },
};
static const struct keys defer_keys = KEYS(struct draft, defer_rows);

static int check_on_limit(struct reader *r, const struct yaml_node *node, void *section)
{
	struct rule *rule = &((struct draft *)section)->rule;

	if (!rule->wait_ns == !rule->defer.max)
		return read_refuse(
			r, node,
			"refuse, {wait: 2s, queue: 100}, or {defer: {max: 10000, ttl: 1h}}");
	if (rule->defer.max)
		rule->queue = 0;
	return 0;
}

static const struct key on_limit_rows[] = {
	{ "wait", DRAFT(rule.wait_ns), &type_duration, .least = 1000000, .most = WAIT_MAX },
	{ "queue", DRAFT(rule.queue), &type_count, .usual = "100", .least = 1, .most = 1000000 },
	{ "defer", .type = &type_optional_map, .keys = &defer_keys },
};
const struct keys rule_on_limit_keys = KEYS(struct draft, on_limit_rows, .check = check_on_limit);

/* ---- push_down ---- */

static int after_read(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct push_def *push = &((struct draft *)into)->rule.push;
	const char *reason;

	if (rejections_parse(text, &push->after, &push->within_ns, &reason))
		return text_fail(r, ": %s", reason);
	if (push->after > 1000000 || push->within_ns > DAY)
		return text_refuse(r, "up to 1M rejections within a day");
	return 0;
}

static int steps_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	struct draft *draft = section;
	struct push_def *push = &draft->rule.push;

	if (!count)
		return text_refuse(r, "one or more of limit RATE, tag, no-new, drop");
	push->step = arena_alloc(build_arena(draft->b), PUSH_STEPS_MAX * sizeof(*push->step));
	return push->step ? 0 : read_no_memory(r);
}

/* "limit 50 packets/s", "tag", "no-new", "drop"; each milder than the next. */
static int step_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct push_def *push = &((struct draft *)section)->rule.push;
	struct push_step step = { 0 };
	const struct name *kind;
	const char *reason;

	if (push->step_count == PUSH_STEPS_MAX)
		return read_fail(r, r->at, EINVAL,
				 "found one step more than %d; accepted: up to %d", PUSH_STEPS_MAX,
				 PUSH_STEPS_MAX);
	if (!strncmp(text, "limit ", 6)) {
		if (rate_parse(text + 6, &step.rate, &reason))
			return text_fail(r, ": %s", reason);
		if (step.rate.unit != RATE_PACKETS)
			return text_refuse(r, "a rate in packets, as limit 50 packets/s");
	} else {
		kind = name_find(push_kind_names, text);
		if (!kind || kind->value == SL_PUSH_LIMIT)
			return key_refuse_text(r, key);
		step.kind = kind->value;
	}
	push->step[push->step_count++] = step;
	return 0;
}

static void write_after(struct writer *w, const void *from)
{
	const struct push_def *push = &((const struct draft *)from)->rule.push;
	char text[64];

	fprintf(w->out, "%llu rejections/%s", push->after,
		duration_format(push->within_ns, text, sizeof(text)));
}

static void steps_write(struct writer *w, const struct key *key, const void *section)
{
	const struct push_def *push = &((const struct draft *)section)->rule.push;
	char text[64];

	for (u32 i = 0; i < push->step_count; i++) {
		fprintf(w->out, "%s%s", i ? ", " : "[",
			name_of(push_kind_names, push->step[i].kind));
		if (push->step[i].kind == SL_PUSH_LIMIT)
			fprintf(w->out, " %s",
				rate_format(&push->step[i].rate, text, sizeof(text)));
	}
	fputc(']', w->out);
}

static const struct key_type type_steps = {
	.name = "list",
	.items = steps_begin,
	.text = step_read,
	.accepts = "limit RATE, tag, no-new or drop",
	.write = steps_write,
};

static const struct key push_rows[] = {
	{ "after", DRAFT(rule.push.after), .text = after_read, .write = write_after,
	  .flags = KEY_NEEDED, .accepted = "NUMBER rejections/PERIOD, as in 20 rejections/10s" },
	{ "steps", DRAFT(rule.push.step_count), &type_steps, .flags = KEY_NEEDED },
	{ "step", DRAFT(rule.push.step_ns), &type_duration, .usual = "60s", .least = SECOND,
	  .most = DAY },
	{ "down", DRAFT(rule.push.down_ns), &type_duration, .usual = "60s", .least = SECOND,
	  .most = DAY },
	{ "max", DRAFT(rule.push.max_ns), &type_duration, .usual = "1h", .least = SECOND,
	  .most = 7 * DAY },
};
const struct keys rule_push_down_keys = KEYS(struct draft, push_rows);

/* ---- metadata: any value, passed on unchanged ---- */

/* Plain text that YAML reads as a number, true, false or null is converted. */
static json_t *scalar_json(const struct yaml_node *node)
{
	json_t *number;

	if (yaml_node_is_null(node))
		return json_null();
	if (!node->plain)
		return json_string(node->text);
	if (!strcmp(node->text, "true") || !strcmp(node->text, "false"))
		return json_boolean(node->text[0] == 't');
	number = json_loads(node->text, JSON_DECODE_ANY, NULL);
	if (json_is_number(number))
		return number;
	json_decref(number);
	return json_string(node->text);
}

/* Recursion is as deep as the file, which is bounded. */
static json_t *yaml_node_json(const struct yaml_node *node)
{
	json_t *json;
	int rc = 0;

	if (node->kind == YAML_TEXT)
		return scalar_json(node);
	json = node->kind == YAML_LIST ? json_array() : json_object();
	for (const struct yaml_node *item = node->first; item && !rc; item = item->next)
		rc = node->kind == YAML_LIST
			     ? json_array_append_new(json, yaml_node_json(item))
			     : json_object_set_new(json, item->text, yaml_node_json(item->value));
	if (!rc)
		return json;
	json_decref(json);
	return NULL;
}

static int metadata_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			 void *section)
{
	struct draft *draft = section;

	if (yaml_node_is_null(node))
		return 0;
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, "a mapping");
	draft->rule.metadata = yaml_node_json(node);
	return draft->rule.metadata ? 0 : read_no_memory(r);
}

static void metadata_write(struct writer *w, const struct key *key, const void *section)
{
	char *text = json_dumps(((const struct draft *)section)->rule.metadata, 0);

	fputs(text ? text : "{}", w->out); /* JSON is YAML */
	free(text);
}

static void metadata_clear(const struct key *key, void *section)
{
	struct draft *draft = section;

	json_decref(draft->rule.metadata);
	draft->rule.metadata = NULL;
}

const struct key_type type_rule_metadata = {
	.name = "mapping",
	.read = metadata_read,
	.write = metadata_write,
	.clear = metadata_clear,
};
