// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_read.c - a rule file: its domain, its descriptors and those below them.
 *
 * Errors of envoyproxy/ratelimit are errors here: unknown keys, a descriptor without a key, the
 * same key and value twice at one level (joined as there, KEY_VALUE), a domain twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/limit_types.h"
#include "limiter/algorithm.h"
#include "request/rules/rule_keys.h"
#include "request/rules/rule_private.h"
#include "conf/config_text.h"

/* ---- duplicates ---- */

static int refuse_again(struct build *b, const struct yaml_node *at, const char *what,
			const struct seen *first)
{
	char where[300] = "";

	if (first->file != b->file)
		snprintf(where, sizeof(where), " of %.250s", first->file);
	return read_fail(&b->r, at, EINVAL, "found %s %s again, first in line %d%s; accepted: each "
			 "once", what, read_found(&b->r, at), first->line, where);
}

/* ---- plain keys ---- */

static int read_bytes(struct reader *r, const struct yaml_node *node, size_t most,
		      struct bytes *ret)
{
	size_t len = strlen(node->text);

	if (node->kind != YAML_TEXT)
		return read_refuse(r, node, "text");
	if (len > most)
		return read_fail(r, node, EINVAL, "found text of %zu bytes; accepted: up to %zu", len,
				 most);
	*ret = (struct bytes){ node->text, len };
	return 0;
}

static int key_key(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node) || (node->kind == YAML_TEXT && !node->text[0]))
		return read_refuse(r, node, "the name of an entry, as user");
	return read_bytes(r, node, REQUEST_KEY_MAX, &((struct draft *)into)->key);
}

/* An empty value means none, as there. */
static int key_value(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node) || (node->kind == YAML_TEXT && !node->text[0]))
		return 0;
	return read_bytes(r, node, REQUEST_VALUE_MAX, &((struct draft *)into)->value);
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
static int key_descriptors(struct reader *r, const struct yaml_node *node, void *into)
{
	if (yaml_node_is_null(node) || node->kind == YAML_LIST)
		return 0;
	return read_refuse(r, node, "a list of descriptors");
}

/* In order of dependency: the limits' defaults, then the limits, then the rest. */
static const struct key descriptor_rows[] = {
	{ "key", DRAFT(key), .read = key_key, .write = write_key, .help = "the name of an entry; `*` stands for any bytes" },
	{ "value", DRAFT(value), .read = key_value, .write = write_entry_value,
	  .help = "its value; `*` stands for any bytes. Without it every value, each counted by "
		  "itself" },
	{ "algorithm", DRAFT(defaults.algorithm), &type_enum, .names = http_algo_names,
	  .help = "of its limits: " ALGORITHMS_OF_REQUESTS(ALGORITHM_HELP)
		  "default `fixed-window`" },
	{ "window", DRAFT(defaults.first_request), &type_enum, .names = window_names,
	  .help = "`aligned` to UTC, or from the `first-request` on" },
	{ "buckets", DRAFT(defaults.buckets), &type_number, .usual = "60", .least = 2, .most = 240,
	  .accepted = "2 to 240", .help = "of window-counters: the buckets of a window, default 60" },
	{ "burst", DRAFT(defaults.burst), &type_count, .least = 1, .most = ~0ULL,
	  .accepted = "1 or more", .help = "of a token bucket" },
	{ "throttle", DRAFT(defaults.throttle), &type_throttle,
	  .help = "`hard`, `{soft: 10%, for: 30s}` or `{elastic: 200%, while: {cpu: 70%}}`" },
	{ "count", DRAFT(defaults.count_all), &type_enum, .names = count_names,
	  .help = "`admitted` (default), or `all`: refused requests count, too" },
	{ "scope", DRAFT(defaults.cluster), &type_enum, .names = scope_names,
	  .help = "`node`, or `cluster`: counted for all nodes together, in the Redis of `cluster` in "
		  "sluice.yaml. Without that section it counts on this node alone" },
	{ "consistency", DRAFT(rule.consistency_ns), .read = read_rule_consistency,
	  .write = write_rule_consistency,
	  .help = "how exactly: `strict` (default), `{lease: 100ms}` or `{write_back: 1s}`; a "
		  "sliding-log is strict only. Implies `scope: cluster`" },
	{ "on_store_failure", DRAFT(rule.on_store_failure), .read = read_rule_on_store_failure,
	  .write = write_rule_on_store_failure,
	  .help = "while Redis is unavailable: `local` (default: this node's part of the limit), "
		  "`open`, `closed` or `error`. Implies `scope: cluster`" },
	{ "rate_limit", DRAFT(rule.envoy), .read = read_rule_rate_limit,
	  .write = write_rule_rate_limit,
	  .help = "a limit as envoyproxy/ratelimit has it, see below" },
	{ "limits", DRAFT(rule.limit_count), &type_rule_limits,
	  .help = "instead of rate_limit, up to four: `NUMBER requests/PERIOD`, or mappings, see "
		  "below. All must allow a request, or none is charged" },
	{ "shadow_mode", DRAFT(rule.shadow), &type_yaml_bool,
	  .help = "`true`: counted and shown, never refuses" },
	{ "quota_mode", DRAFT(rule.quota_mode), &type_yaml_bool,
	  .help = "`true`: the request is refused only if all its quota descriptors are over" },
	{ "detailed_metric", DRAFT(rule.detailed_metric), &type_yaml_bool,
	  .help = "`true`: the values of all entries, or of this one, are a label of the metrics" },
	{ "value_to_metric", DRAFT(value_to_metric), &type_yaml_bool },
	{ "share_threshold", DRAFT(share), .read = read_rule_share_threshold, .write = write_true,
	  .help = "`true`: all values that match a value with `*` share one count" },
	{ "metadata", DRAFT(rule.metadata), .read = read_rule_metadata,
	  .write = write_rule_metadata, .help = "anything; returned with the decision" },
	{ "prefix", DRAFT(rule.prefix), .read = read_rule_prefix, .write = write_rule_prefix,
	  .help = "how addresses among the values are grouped: `{ipv4: 32, ipv6: 64}` by default, "
		  "lists, or `none`; and the multiplier of the limits at each" },
	{ "prefix_scale", DRAFT(rule.prefix), &type_map, .keys = &limit_scale_keys,
	  .flags = KEY_FLOW },
	{ "overrides", DRAFT(rule.overrides), &type_rule_overrides,
	  .help = "values with limits of their own: `value`, and `limits` (or `rate` and `burst`), "
		  "`block`, `unlimited` or `removed`" },
	{ "overrides_file", DRAFT(overrides_file_text), .read = read_rule_overrides_file,
	  .write = write_rule_overrides_file,
	  .help = "the same as lines `VALUE,LIMIT[,LIMIT...]`; of LIMIT also `block` and `unlimited`" },
	{ "priority", DRAFT(rule.priority), &type_enum, .names = priority_names,
	  .given = offsetof(struct draft, rule.has_priority),
	  .help = "`critical`, `normal` (default) or `low`" },
	{ "reserve", .type = &type_map, .keys = &reserve_keys, .flags = KEY_FLOW,
	  .unset = "",
	  .help = "the part of a limit that is kept for higher priorities, as `{critical: 20%, "
		  "normal: 30%}`" },
	{ "on_limit", DRAFT(rule.wait_ns), .read = read_rule_on_limit,
	  .write = write_rule_on_limit,
	  .help = "`refuse` (default), or `{wait: 2s, queue: 100}`: the response is delayed" },
	{ "push_down", DRAFT(rule.push), .read = read_rule_push_down,
	  .write = write_rule_push_down,
	  .help = "the packet tier's action on a refused source: `{after: 20 rejections/10s, steps: "
		  "[limit 50 packets/s, tag, no-new, drop], step: 60s, down: 60s, max: 1h}`" },
	{ "descriptors", .read = key_descriptors, .help = "the level below" },
};

const struct keys descriptor_keys = KEYS(struct draft, descriptor_rows);

/* Our keys about limits; without a limit they would have no effect. */
static const char *const keys_of_limits[] = {
	"algorithm", "window", "buckets", "count", "burst", "throttle", "prefix", "prefix_scale", "overrides",
	"overrides_file", "reserve", "on_limit", "push_down", "scope", "consistency",
	"on_store_failure",
};

static int check_alone(struct reader *r, const struct draft *draft)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys_of_limits); i++) {
		const struct yaml_node *key = yaml_node_find(draft->map, keys_of_limits[i]);

		if (key)
			return read_fail(r, key, EINVAL, "%s is given, but %s; accepted with it: "
					 "limits, or a rate_limit that is not unlimited", key->text,
					 draft->rule.unlimited ? "this is unlimited" :
								 "there is no limit");
	}
	return 0;
}

/* ---- from a draft to a rule ---- */

/* The series has the value of this entry, and of those above with the flag. */
static u32 metric_values(const struct draft *draft)
{
	const struct build *b = draft->b;

	return b->value_to_metric | (u32)draft->value_to_metric << (b->depth - 1);
}

/* Stable over restarts and files: hashes the domain, keys and values, each with its length. */
static u64 rule_id(const struct build *b)
{
	static const struct sl_seed fixed = { 0x736c756963652d72ULL, 0x756c652d6964733aULL };
	u64 id = hash_bytes(fixed, 0, b->domain, strlen(b->domain));

	for (u32 i = 0; i < b->depth; i++) {
		id = hash_bytes(fixed, id, b->entry[i].key.at, b->entry[i].key.len);
		id = hash_bytes(fixed, id + !!b->entry[i].value.at, b->entry[i].value.at,
				b->entry[i].value.len);
	}
	return id ? id : 1;
}

/* Adds the draft's rule to the set. 0 or -ENOMEM. */
static int add_rule(struct draft *draft, struct match_node *node)
{
	struct build *b = draft->b;
	struct ruleset *set = b->set;
	size_t limits = draft->rule.limit_count * sizeof(*draft->limit);
	struct rule *rule = arena_alloc(build_arena(b), sizeof(*rule)), **grown;

	if (!rule)
		return -ENOMEM;
	if (!(set->rule_count & (set->rule_count - 1))) {
		grown = reallocarray(set->rule, set->rule_count ? 2 * set->rule_count : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		set->rule = grown;
	}
	*rule = draft->rule;
	rule->limit = arena_alloc(build_arena(b), limits);
	rule->path = arena_text(build_arena(b), b->path, strlen(b->path));
	if (!rule->limit || !rule->path)
		return -ENOMEM;
	if (limits)
		memcpy(rule->limit, draft->limit, limits);
	rule->domain = b->domain;
	rule->file = b->file;
	rule->line = draft->map->line;
	rule->depth = b->depth;
	rule->key = b->entry[b->depth - 1].key.at;
	rule->value = b->entry[b->depth - 1].value.at;
	rule->share = draft->share;
	rule->id = rule_id(b);
	rule->value_to_metric = metric_values(draft);
	rule->index = set->rule_count;
	set->rule[set->rule_count++] = rule;
	draft->rule.metadata = NULL;
	draft->rule.overrides = NULL;
	node->rule = rule;
	return 0;
}

/* ---- descriptors ---- */

static int read_children(struct build *b, const struct yaml_node *list);

static void draft_init(struct draft *draft, struct build *b, const struct yaml_node *map)
{
	memset(draft, 0, sizeof(*draft));
	draft->b = b;
	draft->map = map;
	draft->defaults.algorithm = SL_ALGO_FIXED_WINDOW;
	draft->defaults.buckets = 60;
	draft->rule.priority = PRIORITY_NORMAL;
	draft->rule.prefix = b->usual;
}

/* The key as envoyproxy/ratelimit joins it, which is where it looks for duplicates. */
static int check_duplicate(struct build *b, const struct draft *draft)
{
	const struct yaml_node *value = yaml_node_find(draft->map, "value");
	const struct seen *first;
	char *composite;
	int rc;

	if (asprintf(&composite, "%s%s%s", draft->key.at, draft->value.at ? "_" : "",
		     draft->value.at ? draft->value.at : "") < 0)
		return read_no_memory(&b->r);
	rc = note_seen(b, b->above->id, composite, draft->map->line, &first);
	free(composite);
	if (rc)
		return read_no_memory(&b->r);
	if (!first)
		return 0;
	return refuse_again(b, draft->value.at ? value->value :
			    yaml_node_find(draft->map, "key")->value,
			    draft->value.at ? "the value" : "the key", first);
}

/* 'rule "DOMAIN/PATH"', the beginning of errors in a descriptor. */
static void say_rule(struct build *b, const char *path, char *words, size_t size)
{
	snprintf(words, size, "rule \"%.*s/%.*s\"", (int)config_text_cut(b->domain, 60), b->domain,
		 (int)config_text_cut(path, 80), path);
	b->r.subject = words;
}

/* Key and value come before all others. */
static int read_entry(struct draft *draft)
{
	const struct yaml_node *key = yaml_node_find(draft->map, "key");
	const struct yaml_node *value = yaml_node_find(draft->map, "value");
	struct build *b = draft->b;
	int rc = read_require(&b->r, draft->map, "key");

	if (!rc)
		rc = key_key(&b->r, key->value, draft);
	if (!rc && value)
		rc = key_value(&b->r, value->value, draft);
	return rc;
}

static int name_draft(struct draft *draft, char *words, size_t size)
{
	struct build *b = draft->b;
	char *path;
	int rc = read_entry(draft);

	if (rc)
		return rc;
	if (asprintf(&path, "%s%s%s%s%s", b->path, b->path[0] ? "/" : "", draft->key.at,
		     draft->value.at ? "=" : "", draft->value.at ? draft->value.at : "") < 0)
		return read_no_memory(&b->r);
	say_rule(b, path, words, size);
	free(path);
	rc = check_duplicate(b, draft);
	if (rc)
		return rc;
	rc = path_add(b, draft->key.at, draft->value.at);
	if (rc == -E2BIG)
		return read_fail(&b->r, draft->map, EINVAL, "found keys and values of more than %zu "
				 "bytes together; accepted: fewer", sizeof(b->path));
	if (rc)
		return read_no_memory(&b->r);
	say_rule(b, b->path, words, size);
	return 0;
}

static int add_descriptor(struct draft *draft, struct match_node **ret)
{
	struct build *b = draft->b;
	struct bytes key = draft->key, value = draft->value;

	key.at = arena_text(build_arena(b), key.at, key.len);
	if (value.at)
		value.at = arena_text(build_arena(b), value.at, value.len);
	if (!key.at || (draft->value.at && !value.at) ||
	    match_add(b->set, b->above, key, value, ret))
		return read_no_memory(&b->r);
	(*ret)->share = draft->share;
	b->entry[b->depth - 1] = (struct request_entry){ key, value };
	return 0;
}

static int read_one(struct build *b, struct draft *draft, struct match_node **ret_node)
{
	struct reader *r = &b->r;
	bool limited;
	int rc = read_map(r, draft->map, descriptor_rows, ARRAY_SIZE(descriptor_rows), draft);

	limited = draft->rule.limit_count;
	if (!rc)
		rc = limited ? check_rule_limits(r, draft) : check_alone(r, draft);
	if (!rc && limited)
		rc = load_rule_overrides(r, draft);
	if (!rc && !limited)
		refuse_edits(b, true, draft->rule.unlimited ? "the rule is unlimited" :
							       "the rule has no limit");
	if (!rc)
		rc = add_descriptor(draft, ret_node);
	/* A priority alone makes a rule, too: it sets the priority of the request. */
	if (!limited && draft->rule.has_priority)
		draft->rule.unlimited = true;
	if (!rc && (limited || draft->rule.unlimited) && add_rule(draft, *ret_node))
		rc = read_no_memory(r);
	return rc;
}

static void draft_clear(struct draft *draft)
{
	json_decref(draft->rule.metadata);
	override_index_free(draft->rule.overrides);
}

/*
 * With its live changes, if there are any and they are valid; else as in the file, and the live
 * change gets the reason.
 */
static int read_live(struct build *b, const struct yaml_node *map, struct draft *draft,
		     struct match_node **ret_node)
{
	struct sl_err *err = b->r.err, why = { .message = "" };
	struct yaml_node *edited = edited_map(b, map, &why);
	int rc = edited ? 0 : -EINVAL;

	if (edited) {
		draft_init(draft, b, edited);
		draft->rule.live = true;
		b->r.err = &why;
		rc = read_entry(draft);
		if (!rc)
			rc = read_one(b, draft, ret_node);
		b->r.err = err;
		b->r.path[0] = 0;
	}
	if (!rc)
		return 0;
	if (edited)
		draft_clear(draft);
	if (why.message[0])
		refuse_edits(b, false, why.message);
	draft_init(draft, b, map);
	rc = read_entry(draft);
	return rc ? rc : read_one(b, draft, ret_node);
}

/* One descriptor and all below it. */
static int read_descriptor(struct build *b, const struct yaml_node *map)
{
	struct match_node *above = b->above, *node = NULL;
	const char *subject = b->r.subject;
	size_t path_len = strlen(b->path);
	u32 value_to_metric = b->value_to_metric;
	const struct yaml_node *below;
	char words[160];
	struct draft draft;
	int rc;

	if (map->kind != YAML_MAP)
		return read_refuse(&b->r, map, "a mapping with a key");
	if (b->depth == REQUEST_ENTRIES_MAX)
		return read_fail(&b->r, map, EINVAL, "found descriptors nested deeper than %d; "
				 "accepted: fewer levels", REQUEST_ENTRIES_MAX);
	b->depth++;
	draft_init(&draft, b, map);
	rc = name_draft(&draft, words, sizeof(words));
	if (!rc)
		rc = read_live(b, map, &draft, &node);
	draft_clear(&draft);
	below = yaml_node_find(map, "descriptors");
	if (!rc && below) {
		b->above = node;
		b->value_to_metric = metric_values(&draft);
		rc = read_children(b, below->value);
	}
	b->above = above;
	b->value_to_metric = value_to_metric;
	b->path[path_len] = 0;
	b->r.subject = subject;
	b->depth--;
	return rc;
}

static int read_children(struct build *b, const struct yaml_node *list)
{
	int rc = 0;

	for (const struct yaml_node *item = list->first; item && !rc; item = item->next)
		rc = read_descriptor(b, item);
	return rc;
}

/* ---- the file ---- */

static int key_domain(struct reader *r, const struct yaml_node *node, void *into)
{
	struct build *b = into;
	const struct seen *first;
	const char *text;
	char **grown;
	int rc = read_text(r, node, "the name of a domain, as api", &text);

	if (rc)
		return rc;
	if (strlen(text) > REQUEST_DOMAIN_MAX)
		return read_refuse(r, node, "up to 255 bytes");
	if (note_seen(b, 0, text, node->line, &first))
		return read_no_memory(r);
	if (first)
		return refuse_again(b, node, "the domain", first);
	b->domain = arena_text(build_arena(b), text, strlen(text));
	grown = reallocarray(b->set->domain, b->set->domain_count + 1, sizeof(*grown));
	if (!b->domain || !grown)
		return read_no_memory(r);
	b->set->domain = grown;
	b->set->domain[b->set->domain_count++] = (char *)b->domain;
	return match_add_domain(b->set, b->domain, &b->above) ? read_no_memory(r) : 0;
}

static const struct key file_keys[] = {
	{ "domain", .read = key_domain },
	{ "descriptors", .read = key_descriptors },
};

int rule_read_file(struct build *b, const struct yaml_node *root)
{
	const struct yaml_node *list;
	int rc = read_map(&b->r, root, file_keys, ARRAY_SIZE(file_keys), b);

	if (!rc)
		rc = read_require(&b->r, root, "domain");
	list = yaml_node_find(root, "descriptors");
	if (!rc && list)
		rc = read_children(b, list->value);
	return rc;
}
