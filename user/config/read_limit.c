// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_limit.c - one limit: its keys, and what must fit together within it. Keys of some size
 * are read by read_match.c, read_rates.c and read_throttle.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/override.h"
#include "config/write.h"

static int key_name(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_identifier(r, node, ((struct limit_def *)into)->name);
}

static int item_per(struct reader *r, const struct yaml_node *node, void *into)
{
	struct limit_def *limit = into;
	int value, rc;

	rc = read_name(r, node, per_names, &value);
	if (rc)
		return rc;
	if (limit->per & value)
		return read_fail(r, node, EINVAL, "found %s again; accepted: each once",
				 read_found(r, node));
	limit->per |= value;
	return 0;
}

static int key_per(struct reader *r, const struct yaml_node *node, void *into)
{
	((struct limit_def *)into)->per = 0;
	return read_each(r, node, item_per, into);
}

static int key_algorithm(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, algorithm_names, &value);

	if (!rc)
		((struct limit_def *)into)->algorithm = value;
	return rc;
}

static int key_accounting(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, accounting_names, &value);

	if (!rc)
		((struct limit_def *)into)->accounting = value;
	return rc;
}

static int key_action(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, limit_action_names, &value);

	if (!rc)
		((struct limit_def *)into)->action = value;
	return rc;
}

static int key_tag_dscp(struct reader *r, const struct yaml_node *node, void *into)
{
	const struct name *name = name_find(dscp_names, node->text);
	struct limit_def *limit = into;
	u64 number;
	int rc = 0;

	if (name)
		number = name->value;
	else
		rc = read_number(r, node, 63, "cs0 to cs7, af11 to af43, ef, le, or 0 to 63",
				 &number);
	if (rc)
		return rc;
	limit->dscp = number;
	limit->tag |= SL_TAG_DSCP;
	return 0;
}

static int key_tag_mark(struct reader *r, const struct yaml_node *node, void *into)
{
	struct limit_def *limit = into;
	u64 mark;
	int rc = read_number(r, node, 0xffffffff, "0 to 0xffffffff", &mark);

	if (rc)
		return rc;
	limit->mark = mark;
	limit->tag |= SL_TAG_MARK;
	return 0;
}

static const struct key tag_keys[] = { { "dscp", .read = key_tag_dscp }, { "mark", .read = key_tag_mark } };

static int key_tag(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, tag_keys, ARRAY_SIZE(tag_keys), into);
}

static int key_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, limit_mode_names, &value);

	if (!rc)
		((struct limit_def *)into)->mode = value;
	return rc;
}

static int key_on_full(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, on_full_names, &value);

	if (!rc)
		((struct limit_def *)into)->on_full = value;
	return rc;
}

static int key_scope(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, scope_names, &value);

	if (!rc)
		((struct limit_def *)into)->cluster = value;
	return rc;
}

static const struct key limit_rows[] = {
	{ "name", .read = key_name,
	  .help = "1 to 63 characters of `a-z`, `0-9` and `-`; each once" },
	{ "match", .read = read_match, .unset = "all packets",
	  .help = "conditions, see below" },
	{ "per", .read = key_per, .usual = "[source]",
	  .help = "what has its own bucket: any combination of `source`, `dst`, `proto`, "
		  "`dport`, `vlan`, `interface`. `[]` is one bucket for all. Interfaces share "
		  "buckets unless `interface` is listed" },
	{ "prefix", .read = read_limit_prefix, .usual = "{ipv4: 32, ipv6: 64}",
	  .help = "addresses of one such prefix are one source; with a list, each length is "
		  "counted: see [prefix hierarchy](#prefix-hierarchy). Only with `source` in "
		  "`per`" },
	{ "prefix_scale", .read = read_limit_prefix_scale, .unset = "1",
	  .help = "the multiplier of rate and burst at each listed prefix, 1 to 65536" },
	{ "rate", .read = read_limit_rate,
	  .help = "what passes in the long run; a list of up to four rates that hold together, "
		  "see [rates](#rates-and-algorithms)" },
	{ "burst", .read = read_limit_burst, .unset = "one second's worth, at least one packet or one large frame (9018 bytes)",
	  .help = "token bucket only: what passes at once, in the rate's unit; one per rate" },
	{ "algorithm", .read = key_algorithm, .usual = "token-bucket",
	  .help = "`token-bucket`, `leaky-bucket`, `fixed-window` or `sliding-window`, see "
		  "[rates](#rates-and-algorithms)" },
	{ "accounting", .read = key_accounting, .usual = "percpu",
	  .help = "`percpu`: each CPU leases a small batch from the bucket, which is fast; "
		  "`exact`: every packet is charged to the bucket itself" },
	{ "action", .read = key_action, .usual = "drop",
	  .help = "`drop`, or `tag`: pass the packet with a mark" },
	{ "tag", .read = key_tag,
	  .help = "with `action: tag`: `dscp` (`cs0`..`cs7`, `af11`..`af43`, `ef`, `le`, 0 to "
		  "63), `mark` (32 bits, for tc and nft), or both. With `action: drop` it is "
		  "kept for a later change of the action" },
	{ "mode", .read = key_mode, .usual = "enforce",
	  .help = "`enforce`, `shadow` (counts what it would refuse), `off`" },
	{ "throttle", .read = read_limit_throttle, .usual = "hard",
	  .help = "`hard`, `{soft: ...}` or `{elastic: ...}`, see [throttle](#throttle)" },
	{ "on_full", .read = key_on_full, .usual = "open",
	  .help = "if the table has no room for a new bucket: `open` (the packet passes), "
		  "`closed` (it is dropped), or `prefix`: it is counted with its /24 (IPv6: "
		  "/48), at the same rate, and [places are "
		  "kept](algorithms.md#the-price-of-a-full-table) for that; if those are full "
		  "too, or `prefix` is already as wide, it passes" },
	{ "ban", .read = read_limit_ban, .unset = "none",
	  .help = "a source with too many drops is shut out for a while, see [ban](#ban)" },
	{ "scope", .read = key_scope, .usual = "node",
	  .help = "`node`, or `cluster`: one limit over all nodes, see "
		  "[cluster](cluster.md#the-packet-tier)" },
	/* After the keys that they are checked against: rate, algorithm, per, prefix_scale. */
	{ "overrides", .read = read_overrides,
	  .help = "sources with rates of their own, see [overrides](#overrides)" },
	{ "overrides_file", .read = read_overrides_file },
};

const struct keys limit_keys = KEYS(struct limit_def, limit_rows);

static int check_tag(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	const struct yaml_node *tag = yaml_node_find(map, "tag"),
			       *action = yaml_node_find(map, "action");

	if (limit->action == SL_ACT_TAG && !limit->tag)
		return read_fail(r, tag ? tag : action, EINVAL, "action is tag, but tag has neither "
				 "dscp nor mark; accepted with it: tag: {dscp: cs1} or {mark: 0x51}");
	return 0;
}

static int check_on_full(struct reader *r, const struct yaml_node *map,
			 const struct limit_def *limit)
{
	if (limit->on_full != SL_FULL_PREFIX || (limit->per & SL_PER_SOURCE))
		return 0;
	return read_fail(r, yaml_node_find(map, "on_full"), EINVAL, "on_full: prefix groups sources, but "
			 "per does not contain source; accepted with it: open, closed");
}

static int check_scope(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	if (limit->cluster && (limit->per & SL_PER_IFACE))
		return read_fail(r, yaml_node_find(map, "per"), EINVAL, "per has interface, but scope is "
				 "cluster: each node has its own interfaces; accepted with it: scope: "
				 "node");
	if (!limit->cluster || limit->throttle.kind == THROTTLE_HARD)
		return 0;
	return read_fail(r, yaml_node_find(map, "throttle"), EINVAL, "throttle is %s, but scope is "
			 "cluster: free resources, and packets above the rate, are known for this "
			 "node only; accepted with it: throttle: hard, or scope: node",
			 limit->throttle.kind == THROTTLE_SOFT ? "soft" : "elastic");
}

static int check_limit(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	int rc = check_prefix_hierarchy(r, map, limit);

	if (!rc)
		rc = check_tag(r, map, limit);
	if (!rc)
		rc = check_on_full(r, map, limit);
	if (!rc)
		rc = check_ban(r, map, limit);
	if (!rc)
		rc = check_scope(r, map, limit);
	return rc ? rc : check_rates(r, map, limit);
}

int read_limit(struct reader *r, const struct yaml_node *node, struct limit_def *ret)
{
	struct limit_def limit;
	int rc;

	limit_init(&limit);
	limit.pos = (struct config_pos){ node->line, node->column };
	rc = read_map(r, node, limit_rows, ARRAY_SIZE(limit_rows), &limit);
	if (!rc)
		rc = read_require(r, node, "name");
	if (!rc)
		rc = read_require(r, node, "rate");
	if (!rc)
		rc = check_limit(r, node, &limit);
	if (rc)
		limit_clear(&limit);
	else
		*ret = limit;
	return rc;
}

static int item_limit(struct reader *r, const struct yaml_node *node, void *into)
{
	const struct yaml_node *name = yaml_node_find(node, "name");
	struct policy *policy = into;
	char subject[160];
	struct limit_def limit;
	int rc;

	if (policy->limit_count == SL_LIMITS_MAX)
		return read_fail(r, node, EINVAL, "found one limit more than %d; accepted: up to %d",
				 SL_LIMITS_MAX, SL_LIMITS_MAX);
	if (name && name->value->kind == YAML_TEXT)
		snprintf(subject, sizeof(subject), "limits[%zu] %s", policy->limit_count,
			 read_found(r, name->value));
	else
		snprintf(subject, sizeof(subject), "limits[%zu]", policy->limit_count);
	r->subject = subject;
	r->path[0] = 0;
	rc = read_limit(r, node, &limit);
	r->subject = "";
	if (rc)
		return rc;
	if (append(policy->limit, policy->limit_count, limit)) {
		limit_clear(&limit);
		return read_no_memory(r);
	}
	return 0;
}

int read_limits(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node))
		return 0;
	if (node->kind == YAML_TEXT)
		return read_refuse(r, node, "a list of limits, each a mapping with name and rate");
	return read_each(r, node, item_limit, into);
}

static int limits_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		       void *section)
{
	return read_limits(r, node, section);
}

static void limits_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct policy *policy = section;

	if (!policy->limit_count)
		return;
	write_begin(w);
	fputs("limits:\n", w->out);
	w->indent = 4;
	for (size_t i = 0; i < policy->limit_count; i++) {
		w->item = true;
		write_limit(w, &policy->limit[i]);
	}
	w->indent = 0;
}

static void limits_copy(const struct key *key, void *section, int *rc)
{
	struct policy *policy = section;
	const struct limit_def *from = policy->limit;
	size_t count = policy->limit_count;

	policy->limit = array_copy(from, count, sizeof(*from), rc);
	policy->limit_count = 0;
	for (size_t i = 0; i < count && !*rc; i++) {
		*rc = limit_copy(&from[i], &policy->limit[i]);
		policy->limit_count += !*rc;
	}
}

static void limits_clear(const struct key *key, void *section)
{
	struct policy *policy = section;

	for (size_t i = 0; i < policy->limit_count; i++)
		limit_clear(&policy->limit[i]);
	free(policy->limit);
	policy->limit = NULL;
	policy->limit_count = 0;
}

const struct key_type type_limits = {
	.name = "list", .read = limits_read, .lines = limits_lines, .copy = limits_copy,
	.clear = limits_clear,
};
