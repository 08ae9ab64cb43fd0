// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_rows.c - the keys of a rule, one row each, and which of them a rule may have: of a
 * descriptor, of a whole domain, the default.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/limit_types.h"
#include "limiter/algorithm.h"
#include "request/rules/request_text.h"
#include "request/rules/rule_keys.h"
#include "request/rules/rule_private.h"

/* ---- plain keys ---- */

static int read_bytes(struct reader *r, const struct yaml_node *node, size_t most,
		      struct bytes *ret)
{
	size_t len = strlen(node->text);

	if (node->kind != YAML_TEXT)
		return read_refuse(r, node, "text");
	if (len > most)
		return read_fail(r, node, EINVAL, "found text of %zu bytes; accepted: up to %zu",
				 len, most);
	*ret = (struct bytes){ node->text, len };
	return 0;
}

int read_rule_key(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node) || (node->kind == YAML_TEXT && !node->text[0]))
		return read_refuse(r, node, "the name of an entry, as user");
	return read_bytes(r, node, REQUEST_KEY_MAX, &((struct draft *)into)->key);
}

/* An empty value means none, as there. */
int read_rule_value(struct reader *r, const struct yaml_node *node, void *into)
{
	struct bytes *value = &((struct draft *)into)->value;
	struct sl_prefix net;
	const char *reason;
	int rc;

	if (yaml_node_is_null(node) || (node->kind == YAML_TEXT && !node->text[0]))
		return 0;
	rc = read_bytes(r, node, REQUEST_VALUE_MAX, value);
	if (!rc && value_network(*value, &net, &reason) == -EINVAL)
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	return rc;
}

static void write_key(struct writer *w, const void *from)
{
	write_text(w->out, ((const struct draft *)from)->key.at);
}

static void write_entry_value(struct writer *w, const void *from)
{
	write_text(w->out, ((const struct draft *)from)->value.at);
}

/* Read after all others, by read_descriptor(). */
int read_rule_descriptors(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node) || node->kind == YAML_LIST)
		return 0;
	return read_refuse(r, node, "a list of descriptors");
}

/* Keys about limits, which have no effect without one. */
#define OF_LIMIT KEY_OWN

static const struct name values_names[] = { { "hashed", false }, { "plain", true }, { NULL, 0 } };
static const struct name ignore_names[] = {
	{ "case", IGNORE_CASE },
	{ "trailing-slash", IGNORE_TRAILING_SLASH },
	{ "params", IGNORE_PARAMS },
	{ NULL, 0 },
};

static const struct key descriptor_rows[] = {
	{ "key", DRAFT(key), .read = read_rule_key, .write = write_key,
	  .help = "the name of an entry; `*` stands for any bytes" },
	{ "value", DRAFT(value), .read = read_rule_value, .write = write_entry_value,
	  .help = "its value; `*` stands for any bytes. Without it every value, each counted by "
		  "itself" },
	{ "ignore", DRAFT(ignore), &type_flags, .names = ignore_names,
	  .help = "what does not distinguish its values, as `[case, trailing-slash, params]`: case of "
		  "ASCII letters, a slash at the end, `;...` in a path" },
	{ "algorithm", DRAFT(defaults.terms.algorithm), &type_enum, .names = http_algo_names,
	  .usual = "fixed-window", .flags = OF_LIMIT,
	  .help = "of its limits: " ALGORITHMS_OF_REQUESTS(
		  ALGORITHM_HELP) "see [algorithms](algorithms.md)" },
	{ "window", DRAFT(defaults.terms.first_request), &type_enum, .names = window_names,
	  .flags = OF_LIMIT, .help = "`aligned` to UTC, or from the `first-request` on" },
	{ "buckets", DRAFT(defaults.terms.buckets), &type_number, .usual = "60", .least = 2,
	  .most = 240, .flags = OF_LIMIT, .accepted = "2 to 240",
	  .help = "of window-counters: the buckets of a window" },
	{ "rounding", DRAFT(defaults.terms.round_up), &type_enum, .names = rounding_names,
	  .flags = OF_LIMIT, .help = "of a sliding window's estimate: `down` (default) or `up`" },
	{ "calendar", DRAFT(defaults.terms.calendar), &type_calendar, .flags = OF_LIMIT,
	  .help = "a time zone, as `Europe/Berlin`, for the edges of windows" },
	{ "burst", DRAFT(defaults.terms.rates.burst[0]), &type_count, .least = 1, .most = ~0ULL,
	  .flags = OF_LIMIT, .accepted = "1 or more", .help = "of a token bucket" },
	{ "throttle", DRAFT(defaults.terms.throttle), &type_throttle, .flags = OF_LIMIT,
	  .help = "`hard`, `{soft: 10%, for: 30s}` or `{elastic: 200%, while: {cpu: 70%}}`" },
	{ "count", DRAFT(defaults.terms.count), &type_enum, .names = http_count_names,
	  .flags = OF_LIMIT,
	  .help = "`admitted` (default), `all`: refused requests count, too, or `debt`: also above the "
		  "limit" },
	{ "scope", DRAFT(defaults.terms.cluster), &type_enum, .names = scope_names,
	  .flags = OF_LIMIT,
	  .help = "`node`, or `cluster`: counted for all nodes together, in the Redis of `cluster` in "
		  "sluice.yaml. Without that section it counts on this node alone" },
	{ "consistency", DRAFT(rule.consistency_ns), &type_rule_consistency, .flags = OF_LIMIT,
	  .help = "how exactly: `strict` (default), `{lease: 100ms}` or `{write_back: 1s}`; a "
		  "sliding-log is strict only. Implies `scope: cluster`" },
	{ "on_store_failure", DRAFT(rule.on_store_failure), &type_enum,
	  .names = counters_failure_names, .flags = OF_LIMIT,
	  .help = "while Redis is unavailable: `local` (default: this node's part of the limit), "
		  "`open`, `closed` or `error`. Implies `scope: cluster`" },
	{ "rate_limit", DRAFT(rule.envoy), &type_rule_rate_limit,
	  .help = "a limit as envoyproxy/ratelimit has it, see below" },
	{ "limits", DRAFT(rule.limit_count), &type_rule_limits,
	  .help = "instead of rate_limit, up to four: `NUMBER requests/PERIOD`, or mappings, see "
		  "below. All must allow a request, or none is charged" },
	{ "concurrency", DRAFT(concurrency), &type_rule_concurrency,
	  .help = "requests in flight at once, besides the limits: `20`, or `20 for 30s` (default 60s) after "
		  "which one counts no longer whose end is not reported" },
	{ "shadow_mode", DRAFT(rule.shadow), &type_yaml_bool,
	  .help = "`true`: counted and shown, never refuses" },
	{ "quota_mode", DRAFT(rule.quota_mode), &type_yaml_bool,
	  .help = "`true`: the request is refused only if all its quota descriptors are over" },
	{ "detailed_metric", DRAFT(rule.detailed_metric), &type_yaml_bool,
	  .help = "`true`: the values of all entries, or of this one, are a label of the metrics" },
	{ "value_to_metric", DRAFT(value_to_metric), &type_yaml_bool },
	{ "values", DRAFT(rule.values_plain), &type_enum, .names = values_names,
	  .help = "`plain`: values are not secret. Without it the status page, history, journal and logs "
		  "have hashes of them" },
	{ "share_threshold", DRAFT(share), .text = read_rule_share_threshold, .write = write_true,
	  .accepted = "true or false",
	  .help = "`true`: all values that match a value with `*` share one count" },
	{ "metadata", DRAFT(rule.metadata), &type_rule_metadata,
	  .help = "anything; returned with the decision" },
	{ "prefix", DRAFT(rule.prefix), &type_rule_prefix,
	  .usual = "{ipv4: 32, ipv6: [64, 56, 48]}", .flags = OF_LIMIT,
	  .help = "how addresses among the values are grouped: a length of each family, lists, or "
		  "`none`; and the multiplier of the limits at each, of IPv6's default 1, 2 and 4, else 1" },
	{ "prefix_scale", DRAFT(rule.prefix), &type_map, .keys = &rule_scale_keys,
	  .flags = KEY_FLOW | OF_LIMIT },
	{ "overrides", DRAFT(rule.overrides), &type_rule_overrides, .flags = OF_LIMIT,
	  .help = "values with limits of their own: `value`, and `limits` (or `rate` and `burst`), "
		  "`block`, `unlimited` or `removed`" },
	{ "overrides_file", DRAFT(overrides_file_text), .read = read_rule_overrides_file,
	  .write = write_rule_overrides_file, .flags = OF_LIMIT,
	  .help = "the same as lines `VALUE,LIMIT[,LIMIT...]`; of LIMIT also `block` and `unlimited`" },
	{ "priority", DRAFT(rule.priority), &type_enum, .names = priority_names, .usual = "normal",
	  .given = offsetof(struct draft, rule.has_priority),
	  .help = "`critical`, `normal` or `low`" },
	{ "reserve", .type = &type_map, .keys = &reserve_keys, .flags = KEY_FLOW | OF_LIMIT,
	  .unset = "",
	  .help = "the part of a limit that is kept for higher priorities, as `{critical: 20%, "
		  "normal: 30%}`" },
	{ "on_limit", .type = &type_optional_map, .keys = &rule_on_limit_keys, .word = "refuse",
	  .accepted = "refuse, {wait: 2s, queue: 100}, or {defer: {max: 10000, ttl: 1h}}",
	  .flags = OF_LIMIT,
	  .help = "`refuse` (default), `{wait: 2s, queue: 100}`: the response is delayed, or `{defer: "
		  "{max: 10000, ttl: 1h, deliveries: 5, retry: 1m}}`: the request is released later" },
	{ "ban", DRAFT(rule.ban), &type_ban_of_requests, .flags = OF_LIMIT,
	  .help = "a value with too many refusals is refused for a while, longer each time: `{after: 20 "
		  "rejections/10m, for: 10m, factor: 2, max: 24h}`" },
	{ "push_down", .type = &type_optional_map, .keys = &rule_push_down_keys, .flags = OF_LIMIT,
	  .help = "the packet tier's action on a refused source: `{after: 20 rejections/10s, steps: "
		  "[limit 50 packets/s, tag, no-new, drop], step: 60s, down: 60s, max: 1h}`" },
	{ "descriptors", .read = read_rule_descriptors, .help = "the level below" },
};

/* Keys of packet limits. */
const struct key_elsewhere keys_of_packets[] = {
	{ "match", "a rule applies to the entries of a request; accepted: key and value" },
	{ "per", "a rule counts per value; accepted: a descriptor of the key without a value" },
	{ "dst_prefix", "addresses are grouped by the entry that has them; accepted: prefix" },
	{ "accounting", "each request is charged to the bucket itself; accepted: no such key" },
	{ "action",
	  "a request is allowed or refused; accepted: shadow_mode, or throttle: {soft: 10%}" },
	{ "tag",
	  "a request is allowed or refused; accepted: shadow_mode, or throttle: {soft: 10%}" },
	{ "on_full", "one table is for all rules; accepted: http.state.on_full in sluice.yaml" },
	{ NULL, NULL },
};

SL_STATIC_ASSERT(ARRAY_SIZE(descriptor_rows) < 64, "bits of keys.given, with the name of a domain");
const struct keys descriptor_keys = KEYS(
	struct draft, descriptor_rows, .given = offsetof(struct draft, given),
	.elsewhere = keys_of_packets,
	.example = "limits='10 requests/m,500 requests/h', algorithm=token-bucket or burst= for "
		   "its default");

/*
 * Rules without a descriptor have no key and value, so nothing that depends on these. The limit of
 * a domain has one count: no prefixes, and nobody who could be banned or pushed down for it.
 */
static const char *const keys_of_descriptors[] = {
	"key",
	"value",
	"descriptors",
	"overrides",
	"overrides_file",
	"quota_mode",
	"detailed_metric",
	"value_to_metric",
	"values",
	"ignore",
	/* also not of a domain: */
	"share_threshold",
	"prefix",
	"prefix_scale",
	"ban",
	"push_down",
};
#define KEYS_NOT_OF_DEFAULT 10

/* The name of a domain has been read when its limits are. */
static int key_name(struct reader *r, const struct yaml_node *node, void *into)
{
	return 0;
}

static bool is_listed(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

int rule_keys_of(enum rule_place place, struct arena *arena, struct keys *ret)
{
	struct key *row = arena_alloc(arena, (ARRAY_SIZE(descriptor_rows) + 1) * sizeof(*row));
	size_t without = place == RULE_OF_DESCRIPTOR ? 0
			 : place == RULE_DEFAULT     ? KEYS_NOT_OF_DEFAULT
						     : ARRAY_SIZE(keys_of_descriptors);
	size_t count = 0;

	if (!row)
		return -ENOMEM;
	if (place == RULE_OF_DOMAIN)
		row[count++] = (struct key){ "name", .read = key_name, .flags = KEY_NEEDED };
	for (size_t i = 0; i < ARRAY_SIZE(descriptor_rows); i++)
		if (!is_listed(descriptor_rows[i].name, keys_of_descriptors, without))
			row[count++] = descriptor_rows[i];
	*ret = descriptor_keys;
	ret->key = row;
	ret->count = count;
	return 0;
}

int check_rule_alone(struct reader *r, const struct draft *draft)
{
	const struct keys *keys = draft_keys(draft);

	for (size_t i = 0; i < keys->count; i++) {
		const struct key *key = &keys->key[i];

		if (key->flags & OF_LIMIT && draft->given >> i & 1)
			return read_fail(r, yaml_node_find(draft->map, key->name), EINVAL,
					 "%s is "
					 "given, but %s; accepted with it: limits, or a rate_limit "
					 "that is not unlimited",
					 key->name,
					 draft->rule.unlimited ? "this is unlimited"
							       : "there is no limit");
	}
	return 0;
}
