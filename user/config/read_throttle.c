// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* read_throttle.c - the actions of a limit above its rate: throttle and ban. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/read.h"

#define SECOND SL_NS_PER_SEC
#define DAY_NS (24 * 3600 * SECOND)
#define LOAD_SIGNAL_PERCENT_DEFAULT 80
#define BAN_AFTER_MAX 1000000000ULL
#define BAN_MAX_DEFAULT DAY_NS

#define THROTTLES "hard, {soft: 10%, for: 30s} or {elastic: 200%, while: {cpu: 70%}}"

/* ---- throttle ---- */

static int key_soft(struct reader *r, const struct yaml_node *node, void *into)
{
	struct throttle_def *throttle = into;

	throttle->kind = THROTTLE_SOFT;
	return read_percent(r, node, 1, 1000, "0.1% to 100%", &throttle->soft_permille);
}

static int key_for(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, 7 * DAY_NS, "a duration of 1s to 7d",
			     &((struct throttle_def *)into)->soft_for_ns);
}

static int key_elastic(struct reader *r, const struct yaml_node *node, void *into)
{
	struct throttle_def *throttle = into;
	const char *accepted = "a ceiling of 101% to 10000% of the rate, in whole percent";
	u32 permille = 0;
	int rc = read_percent(r, node, 1010, 100000, accepted, &permille);

	if (rc)
		return rc;
	if (permille % 10)
		return read_refuse(r, node, accepted);
	throttle->kind = THROTTLE_ELASTIC;
	throttle->ceiling_percent = permille / 10;
	return 0;
}

/* A threshold in whole percent. */
static int read_threshold(struct reader *r, const struct yaml_node *node, u8 *ret)
{
	const char *accepted = "1% to 100%, in whole percent";
	u32 permille = 0;
	int rc = read_percent(r, node, 10, 1000, accepted, &permille);

	if (rc)
		return rc;
	if (permille % 10)
		return read_refuse(r, node, accepted);
	*ret = permille / 10;
	return 0;
}

static int key_cpu(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_threshold(r, node, &((struct throttle_def *)into)->cpu_percent);
}

static int key_link(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_threshold(r, node, &((struct throttle_def *)into)->link_percent);
}

/* NAME, or {NAME: 60%}. */
static int key_load_signal(struct reader *r, const struct yaml_node *node, void *into)
{
	struct throttle_def *throttle = into;

	throttle->load_signal_percent = LOAD_SIGNAL_PERCENT_DEFAULT;
	if (node->kind != YAML_MAP)
		return read_identifier(r, node, throttle->load_signal);
	if (node->count != 1)
		return read_fail(r, node, EINVAL, "found a mapping of %zu keys; accepted: a "
				 "load signal's name, or one with its threshold, as {api-load: 60%%}",
				 node->count);
	if (read_identifier(r, node->first, throttle->load_signal))
		return -EINVAL;
	return read_threshold(r, node->first->value, &throttle->load_signal_percent);
}

static const struct key while_keys[] = {
	{ "cpu", .read = key_cpu },
	{ "link", .read = key_link },
	{ "load_signal", .read = key_load_signal },
};

static int key_while(struct reader *r, const struct yaml_node *node, void *into)
{
	if (node->kind == YAML_MAP && !node->count)
		return read_refuse(r, node, "one or more of cpu, link, load_signal");
	return read_map(r, node, while_keys, ARRAY_SIZE(while_keys), into);
}

static const struct key throttle_keys[] = {
	{ "soft", .read = key_soft },
	{ "for", .read = key_for },
	{ "elastic", .read = key_elastic },
	{ "while", .read = key_while },
};

/* Checks which keys are accepted together. */
static int check_throttle(struct reader *r, const struct yaml_node *map)
{
	const struct yaml_node *soft = yaml_node_find(map, "soft"),
			       *elastic = yaml_node_find(map, "elastic");
	const struct yaml_node *stretch = yaml_node_find(map, "for"),
			       *cond = yaml_node_find(map, "while");

	if (soft && elastic)
		return read_fail(r, elastic, EINVAL, "found soft and elastic; accepted: one of them");
	if (!soft && !elastic)
		return read_refuse(r, map, THROTTLES);
	if (elastic && stretch)
		return read_fail(r, stretch, EINVAL, "\"for\" sets the duration of soft; accepted "
				 "with elastic: while");
	if (soft && cond)
		return read_fail(r, cond, EINVAL, "\"while\" sets the condition of elastic; accepted "
				 "with soft: for");
	if (elastic && !cond)
		return read_fail(r, map, EINVAL, "key \"while\" is missing: the resources that must "
				 "be free, as {cpu: 70%%, link: 80%%, load_signal: api-load}");
	return 0;
}

int read_throttle(struct reader *r, const struct yaml_node *node, struct throttle_def *throttle)
{
	int rc;

	if (node->kind == YAML_TEXT && !strcmp(node->text, "hard"))
		return 0;
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, THROTTLES);
	rc = read_map(r, node, throttle_keys, ARRAY_SIZE(throttle_keys), throttle);
	return rc ? rc : check_throttle(r, node);
}

/* ---- ban ---- */

static int key_after(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "NUMBER drops/PERIOD, as in 1000 drops/10s", *text = NULL, *reason;
	struct ban_def *ban = into;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (drops_parse(text, &ban->after, &ban->within_ns, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	if (ban->after > BAN_AFTER_MAX || ban->within_ns > DAY_NS)
		return read_refuse(r, node, "up to 1G drops within a day");
	return 0;
}

static int key_ban_for(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, 365 * DAY_NS, "a duration of 1s to 365d",
			     &((struct ban_def *)into)->for_ns);
}

static int key_factor(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "1 to 100, as 2 or 1.5", *text = NULL;
	struct ban_def *ban = into;
	int rc = read_text(r, node, accepted, &text);
	u32 percent;

	if (rc)
		return rc;
	if (factor_parse(text, &percent) || percent < 100 || percent > 10000)
		return read_refuse(r, node, accepted);
	ban->factor_percent = percent;
	return 0;
}

static int key_ban_max(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, 365 * DAY_NS, "a duration of 1s to 365d",
			     &((struct ban_def *)into)->max_ns);
}

static int key_spoofable(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, yes_no_names, &value);

	if (!rc)
		((struct ban_def *)into)->spoofable = value;
	return rc;
}

static const struct key ban_keys[] = {
	{ "after", .read = key_after },
	{ "for", .read = key_ban_for },
	{ "factor", .read = key_factor },
	{ "max", .read = key_ban_max },
	{ "spoofable", .read = key_spoofable },
};

int read_limit_ban(struct reader *r, const struct yaml_node *node, void *into)
{
	struct ban_def *ban = &((struct limit_def *)into)->ban;
	int rc;

	ban->factor_percent = 200;
	rc = read_map(r, node, ban_keys, ARRAY_SIZE(ban_keys), ban);
	if (!rc)
		rc = read_require(r, node, "after");
	if (!rc)
		rc = read_require(r, node, "for");
	if (rc)
		return rc;
	if (ban->max_ns && ban->max_ns < ban->for_ns)
		return read_fail(r, yaml_node_find(node, "max"), EINVAL,
				 "max is shorter than for, the "
				 "first ban; accepted: for, or longer");
	if (!ban->max_ns)
		ban->max_ns = ban_default_max(ban->for_ns);
	return 0;
}

u64 ban_default_max(u64 for_ns)
{
	return for_ns > BAN_MAX_DEFAULT ? for_ns : BAN_MAX_DEFAULT;
}

/* With ACK required a packet can be of a running connection; the data path asks the kernel. */
static bool proves_connection(const struct match_def *match)
{
	size_t i;

	for (i = 0; i < match->tcp_flags_count; i++)
		if (!(match->tcp_flags[i].set & TCP_ACK))
			return false;
	return match->tcp_flags_count;
}

int check_ban(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	const struct yaml_node *ban = yaml_node_find(map, "ban");
	bool drops = limit->action == SL_ACT_DROP;

	if (!ban)
		return 0;
	if (!(limit->per & SL_PER_SOURCE))
		return read_fail(r, ban, EINVAL, "ban is for sources, but per does not contain source; "
				 "accepted with it: per: [source]");
	if (!drops)
		return read_fail(r, ban, EINVAL, "ban counts drops, but action is tag; accepted with "
				 "it: action: drop");
	if (!limit->ban.spoofable && !proves_connection(&limit->match))
		return read_fail(r, ban, EINVAL, "a forged packet can match, and ban the "
				 "owner of its source address; accepted: spoofable: yes to accept "
				 "that, or match: {tcp_flags: ack} (then only segments of this "
				 "host's connections count)");
	return 0;
}
