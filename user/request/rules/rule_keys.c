// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_keys.c - a rule's keys other than its limits: grouping of values, effects of a refusal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "request/rules/rule_private.h"

#define SECOND SL_NS_PER_SEC
#define DAY (24 * 3600 * SECOND)
#define WAIT_MAX (3600 * SECOND)
#define QUEUE_MAX 1000000
#define QUEUE_DEFAULT 100

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

int read_bool(struct reader *r, const struct yaml_node *node, bool *ret)
{
	static const char *const words[2][5] = {
		{ "false", "no", "off", "n" }, { "true", "yes", "on", "y" },
	};

	for (int value = 0; value < 2 && node->kind == YAML_TEXT; value++)
		for (int i = 0; words[value][i]; i++)
			if (!strcasecmp(node->text, words[value][i])) {
				*ret = value;
				return 0;
			}
	return read_refuse(r, node, "true or false");
}


int read_rule_shadow_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_bool(r, node, &((struct draft *)into)->rule.shadow);
}

int read_rule_quota_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_bool(r, node, &((struct draft *)into)->rule.quota_mode);
}

int read_rule_detailed_metric(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_bool(r, node, &((struct draft *)into)->rule.detailed_metric);
}

int read_rule_value_to_metric(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_bool(r, node, &((struct draft *)into)->value_to_metric);
}

int read_rule_share_threshold(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int rc = read_bool(r, node, &draft->share);

	if (!rc && draft->share && !match_is_glob(draft->value))
		rc = read_fail(r, node, EINVAL, "share_threshold needs a pattern; "
			       "accepted with it: a value with a '*', as foo*");
	return rc;
}

/* ---- prefix, prefix_scale: as in the packet tier ---- */

void draft_take_prefix_hierarchy(struct draft *draft)
{
	memcpy(draft->rule.prefix, draft->prefix_hierarchy.prefix, sizeof(draft->rule.prefix));
	memcpy(draft->rule.prefix_scale, draft->prefix_hierarchy.prefix_scale,
	       sizeof(draft->rule.prefix_scale));
	memcpy(draft->rule.prefix_count, draft->prefix_hierarchy.prefix_count,
	       sizeof(draft->rule.prefix_count));
}

int read_rule_prefix(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int rc;

	if (node->kind == YAML_TEXT && !strcmp(node->text, "none")) {
		memset(draft->prefix_hierarchy.prefix_count, 0,
		       sizeof(draft->prefix_hierarchy.prefix_count));
		draft_take_prefix_hierarchy(draft);
		return 0;
	}
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, "none, or {ipv4: 32, ipv6: 64}");
	rc = keys_read(r, node, &limit_prefix_keys, &draft->prefix_hierarchy);
	if (!rc)
		draft_take_prefix_hierarchy(draft);
	return rc;
}

int read_rule_prefix_scale(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int rc = keys_read(r, node, &limit_scale_keys, &draft->prefix_hierarchy);

	if (!rc)
		draft_take_prefix_hierarchy(draft);
	return rc;
}

/* ---- throttle, priority, reserve ---- */

int read_rule_throttle(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_throttle(r, node, &((struct draft *)into)->defaults.throttle);
}

int read_rule_priority(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int value, rc = read_name(r, node, priority_names, &value);

	if (rc)
		return rc;
	draft->rule.priority = value;
	draft->rule.has_priority = true;
	return 0;
}

static int read_share(struct reader *r, const struct yaml_node *node, void *into,
		      enum priority priority)
{
	return read_percent(r, node, 0, 999, "0% to 99.9%",
			    &((struct draft *)into)->rule.reserve_permille[priority]);
}

static int key_reserve_critical(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_share(r, node, into, PRIORITY_CRITICAL);
}

static int key_reserve_normal(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_share(r, node, into, PRIORITY_NORMAL);
}

static const struct key reserve_keys[] = {
	{ "critical", .read = key_reserve_critical },
	{ "normal", .read = key_reserve_normal },
};

int read_rule_reserve(struct reader *r, const struct yaml_node *node, void *into)
{
	u32 *reserve = ((struct draft *)into)->rule.reserve_permille;
	int rc = read_map(r, node, reserve_keys, ARRAY_SIZE(reserve_keys), into);

	if (!rc && reserve[PRIORITY_CRITICAL] + reserve[PRIORITY_NORMAL] >= 1000)
		rc = read_fail(r, node, EINVAL, "found all of the limit kept for others: low would "
			       "never pass; accepted: below 100%% together");
	return rc;
}

/* ---- on_limit ---- */

static int key_wait(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, 1000000, WAIT_MAX, "a duration of 1ms to 1h",
			     &((struct draft *)into)->rule.wait_ns);
}

static int key_queue(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int rc = read_count(r, node, &draft->rule.queue);

	if (!rc && (!draft->rule.queue || draft->rule.queue > QUEUE_MAX))
		rc = read_refuse(r, node, "1 to 1M");
	return rc;
}

static const struct key on_limit_keys[] = {
	{ "wait", .read = key_wait },
	{ "queue", .read = key_queue },
};

int read_rule_on_limit(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int rc;

	if (node->kind == YAML_TEXT && !strcmp(node->text, "refuse"))
		return 0;
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, "refuse, or {wait: 2s, queue: 100}");
	draft->rule.queue = QUEUE_DEFAULT;
	rc = read_map(r, node, on_limit_keys, ARRAY_SIZE(on_limit_keys), draft);
	return rc ? rc : read_require(r, node, "wait");
}

/* ---- push_down ---- */

static int key_after(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "NUMBER rejections/PERIOD, as in 20 rejections/10s", *text, *reason;
	struct push_def *push = &((struct draft *)into)->rule.push;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (rejections_parse(text, &push->after, &push->within_ns, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	if (push->after > 1000000 || push->within_ns > DAY)
		return read_refuse(r, node, "up to 1M rejections within a day");
	return 0;
}

/* "limit 50 packets/s", "tag", "no-new", "drop"; each milder than the next. */
static int item_step(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "limit RATE, tag, no-new or drop", *text, *reason;
	struct push_def *push = &((struct draft *)into)->rule.push;
	struct push_step step = { 0 };
	const struct name *kind;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (push->step_count == PUSH_STEPS_MAX)
		return read_fail(r, node, EINVAL, "found one step more than %d; accepted: up to %d",
				 PUSH_STEPS_MAX, PUSH_STEPS_MAX);
	if (!strncmp(text, "limit ", 6)) {
		if (rate_parse(text + 6, &step.rate, &reason))
			return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node),
					 reason);
		if (step.rate.unit != RATE_PACKETS)
			return read_refuse(r, node, "a rate in packets, as limit 50 packets/s");
	} else {
		kind = name_find(push_kind_names, text);
		if (!kind || kind->value == SL_PUSH_LIMIT)
			return read_refuse(r, node, accepted);
		step.kind = kind->value;
	}
	push->step[push->step_count++] = step;
	return 0;
}

static int key_steps(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node) || (node->kind == YAML_LIST && !node->count))
		return read_refuse(r, node, "one or more of limit RATE, tag, no-new, drop");
	return read_each(r, node, item_step, into);
}

static int key_step(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, DAY, "a duration of 1s to 1d",
			     &((struct draft *)into)->rule.push.step_ns);
}

static int key_down(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, DAY, "a duration of 1s to 1d",
			     &((struct draft *)into)->rule.push.down_ns);
}

static int key_max(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, 7 * DAY, "a duration of 1s to 7d",
			     &((struct draft *)into)->rule.push.max_ns);
}

static const struct key push_keys[] = {
	{ "after", .read = key_after },
	{ "steps", .read = key_steps },
	{ "step", .read = key_step },
	{ "down", .read = key_down },
	{ "max", .read = key_max },
};

int read_rule_push_down(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	struct push_def *push = &draft->rule.push;
	int rc;

	push->step = arena_alloc(build_arena(draft->b), PUSH_STEPS_MAX * sizeof(*push->step));
	if (!push->step)
		return read_no_memory(r);
	push->step_ns = 60 * SECOND;
	push->down_ns = 60 * SECOND;
	push->max_ns = 3600 * SECOND;
	rc = read_map(r, node, push_keys, ARRAY_SIZE(push_keys), draft);
	if (!rc)
		rc = read_require(r, node, "after");
	if (!rc)
		rc = read_require(r, node, "steps");
	return rc;
}

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
		rc = node->kind == YAML_LIST ?
			     json_array_append_new(json, yaml_node_json(item)) :
			     json_object_set_new(json, item->text, yaml_node_json(item->value));
	if (!rc)
		return json;
	json_decref(json);
	return NULL;
}

int read_rule_metadata(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;

	if (yaml_node_is_null(node))
		return 0;
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, "a mapping");
	draft->rule.metadata = yaml_node_json(node);
	return draft->rule.metadata ? 0 : read_no_memory(r);
}
