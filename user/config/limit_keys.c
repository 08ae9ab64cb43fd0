// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * limit_keys.c - the rows of a limit, and what must fit together within it. Types that only limits
 * have are in limit_types.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/limit_types.h"
#include "config/override.h"
#include "limiter/algorithm.h"

#define LIMIT(field) KEY(struct limit_def, field)
/* A value without pointers that says how the limit counts or acts, not on what: limit_revalue(). */
/* clang-format off */
#define VALUE .flags = KEY_OWN
/* clang-format on */

static const struct key tag_rows[] = {
	{ "dscp", LIMIT(dscp), &type_number, .given = offsetof(struct limit_def, has_dscp),
	  .names = dscp_names, .most = 63,
	  .accepted = "cs0 to cs7, af11 to af43, ef, le, or 0 to 63" },
	{ "mark", LIMIT(mark), &type_hex, .given = offsetof(struct limit_def, has_mark),
	  .most = 0xffffffff, .accepted = "0 to 0xffffffff" },
};
static const struct keys tag_keys = KEYS(struct limit_def, tag_rows);

#define HIERARCHY(field) KEY(struct prefix_hierarchy, field)

static const struct key prefix_rows[] = {
	{ "ipv4", HIERARCHY(len[SL_V4]), &type_lengths_v4, .usual = "32" },
	{ "ipv6", HIERARCHY(len[SL_V6]), &type_lengths_v6, .usual = "64" },
};
const struct keys limit_prefix_keys = KEYS(struct prefix_hierarchy, prefix_rows);

static const struct key scale_rows[] = {
	{ "ipv4", HIERARCHY(scale[SL_V4]), &type_scales_v4 },
	{ "ipv6", HIERARCHY(scale[SL_V6]), &type_scales_v6 },
};

static int init_scales(void *section)
{
	keys_clear(&limit_scale_keys, section);
	return 0;
}

const struct keys limit_scale_keys = KEYS(struct prefix_hierarchy, scale_rows, .init = init_scales);

static const struct key dst_prefix_rows[] = {
	{ "ipv4", LIMIT(dst_prefix[SL_V4]), &type_number, .usual = "32", .least = 1, .most = 32 },
	{ "ipv6", LIMIT(dst_prefix[SL_V6]), &type_number, .usual = "128", .least = 1, .most = 128 },
};
static const struct keys dst_prefix_keys = KEYS(struct limit_def, dst_prefix_rows);

static const struct key limit_rows[] = {
	{ "name", LIMIT(name), &type_identifier, .flags = KEY_NEEDED,
	  .help = "1 to 63 characters of `a-z`, `0-9` and `-`; each once" },
	{ "match", LIMIT(match), &type_match, .keys = &limit_match_keys, .unset = "all packets",
	  .help = "conditions, see below" },
	{ "per", LIMIT(per), &type_flags, .names = per_names, .usual = "[source]",
	  .help = "what has its own bucket: any combination of `source`, `dst`, `proto`, "
		  "`dport`, `vlan`, `interface`. `[]` is one bucket for all. Interfaces share "
		  "buckets unless `interface` is listed" },
	{ "prefix", LIMIT(prefix), &type_map, .keys = &limit_prefix_keys, .flags = KEY_FLOW,
	  .help = "addresses of one such prefix are one source ([link-local ones](#link-local-sources) each by "
		  "itself); with a [list](#prefix-hierarchy), each length is counted. Only with `source` in `per`" },
	{ "prefix_scale", LIMIT(prefix), &type_map, .keys = &limit_scale_keys, .flags = KEY_FLOW,
	  .unset = "1",
	  .help = "the multiplier of rate and burst at each listed prefix, 1 to 65536" },
	{ "dst_prefix", .type = &type_map, .keys = &dst_prefix_keys, .flags = KEY_FLOW,
	  .help = "addresses of one such prefix are one destination: with 64 a sweep over a /64 "
		  "is charged to one bucket. Only with `dst` in `per`" },
	{ "rate", LIMIT(terms.rates.rate), &type_rates, .unset = "none", VALUE,
	  .help = "what passes in the long run; a list of up to [four](#rates-and-algorithms) that "
		  "hold together. [Without it](#without-a-rate) `action` applies to all that "
		  "matches" },
	{ "burst", LIMIT(terms.rates.burst), &type_bursts, VALUE,
	  .unset = "one second's worth, at least one packet or one large frame (9018 bytes)",
	  .help = "token and interval bucket only: what passes at once, in the rate's unit; one per rate" },
	{ "algorithm", LIMIT(terms.algorithm), &type_enum, .names = algorithm_names,
	  .usual = "token-bucket",
	  .accepted = ALGORITHMS_OF_PACKETS(
		  ALGORITHM_LIST) "and in rules sliding-log, "
				  "whose times do not fit into the 64 bits of a packet limit's bucket",
	  .help = ALGORITHMS_OF_PACKETS(
		  ALGORITHM_HELP) "see [which](algorithms.md#which-algorithm)" },
	{ "window", LIMIT(terms.first_request), &type_enum, .names = window_names,
	  .usual = "aligned",
	  .help = "fixed-window only: `aligned` to UTC, or from the `first-request` of a bucket on" },
	{ "buckets", LIMIT(terms.buckets), &type_number, .usual = "4", .least = SL_COUNTERS_MIN,
	  .most = SL_COUNTERS_MAX, .accepted = "2 to 6",
	  .help = "window-counters only: the buckets of a window, 2 to 6" },
	{ "count", LIMIT(terms.count), &type_enum, .names = count_names, .usual = "admitted", VALUE,
	  .help = "`admitted`, or `all`: packets that it refuses count, too, so a source that does "
		  "not slow down stays out. Each is charged to the bucket itself, which costs more" },
	{ "accounting", LIMIT(accounting), &type_enum, .names = accounting_names, .usual = "percpu",
	  VALUE,
	  .help = "`percpu`: each CPU leases a small batch from the bucket, which is fast; "
		  "`exact`: every packet is charged to the bucket itself" },
	{ "action", LIMIT(action), &type_enum, .names = limit_action_names, .usual = "drop", VALUE,
	  .given = offsetof(struct limit_def, action_given),
	  .help = "`drop`, or `tag`: pass the packet with a mark; without a rate also `pass`" },
	{ "tag", .type = &type_map, .keys = &tag_keys, .unset = "", VALUE,
	  .help = "with `action: tag`: `dscp` (`cs0`..`cs7`, `af11`..`af43`, `ef`, `le`, 0 to "
		  "63), `mark` (32 bits, for tc and nft), or both. With `action: drop` it is "
		  "kept for a later change of the action" },
	{ "mode", LIMIT(mode), &type_enum, .names = limit_mode_names, .usual = "enforce", VALUE,
	  .help = "`enforce`, `shadow` (counts what it would refuse), `off`" },
	{ "throttle", LIMIT(terms.throttle), &type_throttle, .usual = "hard",
	  .help = "`hard`, `{soft: ...}` or `{elastic: ...}`, see [throttle](#throttle)" },
	{ "on_full", LIMIT(on_full), &type_enum, .names = on_full_names, .usual = "open", VALUE,
	  .help = "if the table has no room for a new bucket the packet passes (`open`), is "
		  "dropped (`closed`), or is counted with its /24 (IPv6: /48) in [places kept for "
		  "that](algorithms.md#the-price-of-a-full-table) (`prefix`), failing which it "
		  "passes" },
	{ "ban", LIMIT(ban), &type_ban, .unset = "none",
	  .help = "a source with too many drops is shut out for a while, see [ban](#ban)" },
	{ "scope", LIMIT(terms.cluster), &type_enum, .names = scope_names, .usual = "node",
	  .help = "`node`, or `cluster`: one limit over all nodes, see "
		  "[cluster](cluster.md#the-packet-tier)" },
	/* After the keys that they are checked against: rate, algorithm, per, prefix_scale. */
	{ "overrides", LIMIT(override), &type_overrides,
	  .help = "sources with rates of their own, see [overrides](#overrides)" },
	{ "overrides_file", LIMIT(overrides_file), &type_overrides_file },
};

/* Keys of rules. */
static const struct key_elsewhere of_rules[] = {
	{ "limits",
	  "a limit of packets has one list of rates; accepted: rate: [10 packets/s, 500 packets/h]" },
	{ "priority",
	  "a packet has no priority; accepted: for the lower class a limit with a match, beside "
	  "the common one" },
	{ "reserve",
	  "a packet has no priority; accepted: for the lower class a limit with a match, beside "
	  "the common one" },
	{ "on_limit", "a packet is not delayed; accepted: action: drop or tag" },
	{ "consistency",
	  "nodes exchange what they admitted each sync interval; accepted: scope: cluster" },
	{ "on_store_failure",
	  "a packet does not wait for Redis: a node goes on by itself; accepted: scope: "
	  "cluster" },
	{ "rounding", "the estimate of a packet limit is rounded down; accepted: no such key" },
	{ "calendar", "windows of packets are aligned to UTC; accepted: no such key" },
	{ "push_down",
	  "refused requests are pushed down to this tier; accepted for dropped packets: ban" },
	{ "shadow_mode", "accepted: mode: shadow" },
	{ NULL, NULL },
};

static int check_tag(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	const struct yaml_node *tag = yaml_node_find(map, "tag"),
			       *action = yaml_node_find(map, "action");

	if (limit->action == SL_ACT_TAG && !limit->has_dscp && !limit->has_mark)
		return read_fail(
			r, tag ? tag : action, EINVAL,
			"action is tag, but tag has neither "
			"dscp nor mark; accepted with it: tag: {dscp: cs1} or {mark: 0x51}");
	return 0;
}

static int check_on_full(struct reader *r, const struct yaml_node *map,
			 const struct limit_def *limit)
{
	if (limit->on_full != SL_FULL_PREFIX || (limit->per & SL_PER_SOURCE))
		return 0;
	return read_fail(r, yaml_node_find(map, "on_full"), EINVAL,
			 "on_full: prefix groups sources, but "
			 "per does not contain source; accepted with it: open, closed");
}

static int check_dst_prefix(struct reader *r, const struct yaml_node *map,
			    const struct limit_def *limit)
{
	const struct yaml_node *prefix = yaml_node_find(map, "dst_prefix");
	bool whole = limit->dst_prefix[SL_V4] == 32 && limit->dst_prefix[SL_V6] == 128;

	if ((!prefix && whole) || (limit->per & SL_PER_DST))
		return 0;
	return read_fail(r, prefix, EINVAL,
			 "dst_prefix groups destinations, but per does not contain "
			 "dst; accepted with it: per: [dst]");
}

/* With ACK required a packet can be of a running connection; the data path looks its socket up. */
static bool proves_connection(const struct match_def *match)
{
	size_t i;

	for (i = 0; i < match->tcp_flags_count; i++)
		if (!(match->tcp_flags[i].set & TCP_ACK))
			return false;
	return match->tcp_flags_count;
}

static int check_ban(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	const struct yaml_node *ban = yaml_node_find(map, "ban");
	bool drops = limit->action == SL_ACT_DROP;

	if (!limit->ban.after)
		return 0;
	if (!(limit->per & SL_PER_SOURCE))
		return read_fail(r, ban, EINVAL,
				 "ban is for sources, but per does not contain source; "
				 "accepted with it: per: [source]");
	if (!drops)
		return read_fail(r, ban, EINVAL,
				 "ban counts drops, but action is tag; accepted with "
				 "it: action: drop");
	if (!limit->ban.spoofable && !proves_connection(&limit->match))
		return read_fail(r, ban, EINVAL,
				 "a forged packet can match, and ban the "
				 "owner of its source address; accepted: spoofable: true to accept "
				 "that, or match: {tcp_flags: ack} (then only segments of this "
				 "host's connections count)");
	return 0;
}

static int check_scope(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	if (limit->terms.cluster && (limit->per & SL_PER_IFACE))
		return read_fail(
			r, yaml_node_find(map, "per"), EINVAL,
			"per has interface, but scope is "
			"cluster: each node has its own interfaces; accepted with it: scope: "
			"node");
	for (u8 i = 0; i < limit->terms.rates.count; i++)
		if (limit->terms.cluster && sl_algo_is_window(limit->terms.algorithm) &&
		    limit->terms.rates.rate[i].period_ns < SL_NS_PER_SEC)
			return read_fail(
				r, yaml_node_find(map, "rate"), EINVAL,
				"rate has a window shorter "
				"than a second, but scope is cluster: it is over before other nodes "
				"know its count; accepted with it: 1s or more, or scope: node");
	return 0;
}

/* What both tiers check, and then the packet tier's own. */
static int check_terms(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	const struct limit_terms *terms = &limit->terms;
	const char *conflict = limit_terms_conflict(terms);
	int rc = limit_terms_check(r, map, limit_terms_given(map), terms, &terms->algorithm, 1,
				   algorithm_names);

	if (!rc && conflict)
		rc = read_fail(r, yaml_node_find(map, "count"), EINVAL, "%s", conflict);
	return rc;
}

static int check_window(struct reader *r, const struct yaml_node *map,
			const struct limit_def *limit)
{
	const struct yaml_node *window = yaml_node_find(map, "window");

	if (!limit->terms.first_request)
		return 0;
	if (limit->terms.cluster)
		return read_fail(r, window, EINVAL,
				 "window is first-request, but scope is cluster: a "
				 "window begins at another time on each node; accepted with it: "
				 "window: aligned, or scope: node");
	if (limit->override_count || limit->overrides_file)
		return read_fail(r, window, EINVAL,
				 "window is first-request, but the limit has "
				 "overrides, whose counts may need more bits of a bucket state; "
				 "accepted with it: window: aligned, or no overrides");
	return 0;
}

static bool is_empty_match(const struct match_def *match)
{
	for (size_t i = 0; i < MATCH_KEY_COUNT; i++)
		if (match_count(match, &match_keys[i]))
			return false;
	return true;
}

/* Without a rate there is nothing to count: the keys about counting are refused. */
static int check_by_match(struct reader *r, const struct yaml_node *map,
			  const struct limit_def *limit)
{
	static const char *const accepted[] = { "name", "match", "rate", "action", "tag", "mode" };
	struct limit_def usual = { 0 };
	int rc = keys_init(&limit_def_keys, &usual) ? read_no_memory(r) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(limit_rows) && !rc; i++) {
		const struct key *key = &limit_rows[i];
		bool counts = true;

		for (size_t k = 0; k < ARRAY_SIZE(accepted); k++)
			counts &= strcmp(key->name, accepted[k]) != 0;
		if (counts && (yaml_node_find(map, key->name) || !key_equal(key, limit, &usual)))
			rc = read_fail(
				r, yaml_node_find(map, key->name), EINVAL,
				"%s is about a rate, "
				"but none is given; accepted without a rate: match, action, tag, "
				"mode",
				key->name);
	}
	keys_clear(&limit_def_keys, &usual);
	if (!rc && limit->action != SL_ACT_TAG && is_empty_match(&limit->match))
		rc = read_fail(
			r, yaml_node_find(map, "action"), EINVAL,
			"action is %s, but neither rate "
			"nor match is given: it would apply to every packet; accepted: a match",
			name_of(limit_action_names, limit->action));
	return rc ? rc : check_tag(r, map, limit);
}

static int check_limit(struct reader *r, const struct yaml_node *map, void *section)
{
	static int (*const checks[])(struct reader * r, const struct yaml_node *map,
				     const struct limit_def *limit) = {
		check_prefix_hierarchy,
		check_dst_prefix,
		check_tag,
		check_on_full,
		check_ban,
		check_scope,
		check_terms,
		check_window,
		check_rates,
	};
	struct limit_def *limit = section;
	int rc = 0;

	if (!limit->terms.rates.count && limit->action_given)
		return check_by_match(r, map, limit);
	if (!limit->terms.rates.count)
		return read_fail(r, map->line ? map : NULL, EINVAL,
				 "key \"rate\" is missing; accepted "
				 "without it: action: drop, pass or tag, for all that matches");
	if (limit->action == SL_ACT_PASS)
		return read_fail(r, yaml_node_find(map, "action"), EINVAL,
				 "action is pass, but a rate "
				 "is given; accepted with it: drop, tag");
	limit->action_given = limit->action != SL_ACT_DROP;
	for (size_t i = 0; i < ARRAY_SIZE(checks) && !rc; i++)
		rc = checks[i](r, map, limit);
	return rc;
}

const struct keys limit_def_keys =
	KEYS(struct limit_def, limit_rows, .check = check_limit, .elsewhere = of_rules,
	     .example = "rate='1000 packets/s', match.dport=80,443 or burst= for its default");

int limit_write(const struct limit_def *limit, FILE *out, int indent)
{
	struct writer w = { .out = out, .indent = indent };

	keys_write(&w, &limit_def_keys, limit);
	return w.failed ? -ENOMEM : ferror(out) ? -EIO : 0;
}

static struct limit_def without_overrides(const struct limit_def *limit)
{
	struct limit_def bare = *limit;

	bare.override = NULL;
	bare.overrides_file = NULL;
	return bare;
}

bool limit_equal(const struct limit_def *a, const struct limit_def *b)
{
	struct limit_def x = without_overrides(a), y = without_overrides(b);

	return keys_equal(&limit_def_keys, &x, &y);
}

void limit_clear(struct limit_def *limit)
{
	keys_clear(&limit_def_keys, limit);
	memset(limit, 0, sizeof(*limit));
}

/* An element of policy->limit, which is the last one. Errors begin with "limits[0] \"web\"". */
static int limit_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		      void *section)
{
	const struct yaml_node *name = yaml_node_find(node, "name");
	size_t i = ((const struct policy *)r->model)->limit_count - 1;
	struct limit_def *limit = section;
	char subject[160];
	int rc;

	if (i == SL_LIMITS_MAX)
		return read_fail(r, node, EINVAL,
				 "found one limit more than %d; accepted: up to %d", SL_LIMITS_MAX,
				 SL_LIMITS_MAX);
	if (name && name->value->kind == YAML_TEXT)
		snprintf(subject, sizeof(subject), "limits[%zu] %s", i, read_found(r, name->value));
	else
		snprintf(subject, sizeof(subject), "limits[%zu]", i);
	r->subject = subject;
	r->path[0] = 0;
	limit->pos = (struct config_pos){ node->line, node->column };
	rc = keys_init(key->keys, limit) ? read_no_memory(r) : keys_read(r, node, key->keys, limit);
	r->subject = "";
	return rc;
}

static void limit_lines(struct writer *w, const struct key *key, const void *section)
{
	keys_write(w, key->keys, section);
}

static const struct key_type type_limit = TYPE_MAP("mapping", .size = sizeof(struct limit_def),
						   .read = limit_read, .lines = limit_lines);
const struct key limit_item = { .type = &type_limit, .keys = &limit_def_keys };

static int limits_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		       void *section)
{
	if (node->kind == YAML_TEXT && !yaml_node_is_null(node))
		return read_refuse(r, node, "a list of limits, each a mapping with name and rate");
	return type_list_append(r, node, key, section);
}

int read_limits(struct reader *r, const struct yaml_node *node, struct policy *policy)
{
	static const struct key limits = {
		KEY_LIST(struct policy, limit, limit_count),
		.item = &limit_item,
	};

	return limits_read(r, node, &limits, policy);
}

const struct key_type type_limits =
	TYPE_LIST("list", .read = limits_read, .lines = type_list_lines);
