// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_read.c - the descriptors of a rule file and those below them; its rules without a
 * descriptor.
 *
 * Errors of envoyproxy/ratelimit are errors here: unknown keys, a descriptor without a key, the
 * same key and value twice at one level (joined as there, KEY_VALUE), a domain twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "request/rules/rule_private.h"
#include "conf/config_text.h"

/* ---- duplicates ---- */

int refuse_again(struct build *b, const struct yaml_node *at, const char *what,
		 const struct seen *first)
{
	char where[300] = "";

	if (first->file != b->file)
		snprintf(where, sizeof(where), " of %.250s", first->file);
	return read_fail(&b->r, at, EINVAL,
			 "found %s %s again, first in line %d%s; accepted: each "
			 "once",
			 what, read_found(&b->r, at), first->line, where);
}

/* ---- from a draft to a rule ---- */

/* The series has the value of this entry, and of those above with the flag. */
static u32 metric_values(const struct draft *draft)
{
	const struct build *b = draft->b;

	if (!b->depth)
		return 0;
	return b->value_to_metric | (u32)draft->value_to_metric << (b->depth - 1);
}

/* Stable over restarts and files: hashes the domain, keys and values, each with its length. */
static u64 rule_id(const struct build *b)
{
	static const struct sl_seed fixed = { 0x736c756963652d72ULL, 0x756c652d6964733aULL };
	u64 id = hash_bytes(fixed, b->place, b->domain, strlen(b->domain));

	for (u32 i = 0; i < b->depth; i++) {
		id = hash_bytes(fixed, id, b->entry[i].key.at, b->entry[i].key.len);
		id = hash_bytes(fixed, id + !!b->entry[i].value.at, b->entry[i].value.at,
				b->entry[i].value.len);
	}
	return id ? id : 1;
}

static struct rule_source *make_source(const struct draft *draft, struct rule **at)
{
	struct arena *arena = build_arena(draft->b);
	size_t limits = draft->rule.limit_count * sizeof(u64);
	struct rule_source *source = arena_alloc(arena, sizeof(*source) + limits);

	if (!source)
		return NULL;
	source->at = at;
	source->given = draft->given;
	memcpy(source->limit_given, draft->limit_given, limits);
	if (!memcmp(&draft->defaults, &draft->b->usual->defaults, sizeof(draft->defaults)))
		return source;
	source->defaults = arena_alloc(arena, sizeof(*source->defaults));
	if (!source->defaults)
		return NULL;
	*source->defaults = draft->defaults;
	return source;
}

struct rule *draft_make_rule(struct draft *draft, struct rule **at)
{
	struct arena *arena = build_arena(draft->b);
	size_t limits = draft->rule.limit_count * sizeof(*draft->limit);
	struct rule *rule = arena_alloc(arena, sizeof(*rule));

	if (!rule)
		return NULL;
	*rule = draft->rule;
	rule->limit = arena_alloc(arena, limits);
	rule->source = make_source(draft, at);
	if (!rule->limit || !rule->source)
		return NULL;
	if (limits)
		memcpy(rule->limit, draft->limit, limits);
	draft->rule.metadata = NULL;
	draft->rule.overrides = NULL;
	return rule;
}

/* Adds the draft's rule to the set. 0 or -ENOMEM. */
static int add_rule(struct draft *draft, struct rule **at)
{
	struct build *b = draft->b;
	struct ruleset *set = b->set;
	struct rule *rule, **grown;

	grown = array_grow(set->rule, set->rule_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	set->rule = grown;
	rule = draft_make_rule(draft, at);
	if (!rule)
		return -ENOMEM;
	rule->path = arena_text(build_arena(b), b->path, strlen(b->path));
	rule->domain = b->domain;
	rule->file = b->file;
	rule->line = draft->map->line;
	rule->key = draft->key.at ? b->entry[b->depth - 1].key.at : NULL;
	rule->value = draft->value.at ? b->entry[b->depth - 1].value.at : NULL;
	rule->share = draft->share;
	rule->id = rule_id(b);
	rule->value_to_metric = metric_values(draft);
	rule->index = set->rule_count;
	set->rule[set->rule_count++] = *at = rule;
	return rule->path ? 0 : -ENOMEM;
}

/* ---- descriptors ---- */

static void draft_init(struct draft *draft, struct build *b, const struct yaml_node *map)
{
	*draft = *b->usual;
	draft->b = b;
	draft->map = map;
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
	return refuse_again(
		b, draft->value.at ? value->value : yaml_node_find(draft->map, "key")->value,
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
	int rc;

	if (b->place != RULE_OF_DESCRIPTOR)
		return 0;
	rc = read_require(&b->r, draft->map, "key");
	if (!rc)
		rc = read_rule_key(&b->r, key->value, draft);
	if (!rc && value)
		rc = read_rule_value(&b->r, value->value, draft);
	return rc;
}

static int note_entry(struct build *b, const struct draft *draft)
{
	struct request_entry *entry = &b->entry[b->depth - 1];

	*entry = (struct request_entry){ draft->key, draft->value };
	entry->key.at = arena_text(build_arena(b), draft->key.at, draft->key.len);
	if (draft->value.at)
		entry->value.at = arena_text(build_arena(b), draft->value.at, draft->value.len);
	return entry->key.at && !entry->value.at == !draft->value.at ? 0 : -ENOMEM;
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
	if (note_entry(b, draft))
		return read_no_memory(&b->r);
	rc = path_add(b, draft->key.at, draft->value.at);
	if (rc == -E2BIG)
		return read_fail(&b->r, draft->map, EINVAL,
				 "found keys and values of more than %zu "
				 "bytes together; accepted: fewer",
				 sizeof(b->path));
	if (rc)
		return read_no_memory(&b->r);
	say_rule(b, b->path, words, size);
	return 0;
}

static int add_descriptor(struct draft *draft, struct match_node **ret)
{
	struct build *b = draft->b;
	struct bytes key = b->entry[b->depth - 1].key, value = b->entry[b->depth - 1].value;
	int rc = match_add(b->set, b->above, key, value, draft->ignore, ret);

	if (rc == -EEXIST)
		return read_fail(&b->r, draft->map, EINVAL,
				 "found another spelling of a value that is here "
				 "already: %s; accepted: each once",
				 value.at);
	if (rc)
		return read_no_memory(&b->r);
	(*ret)->share = draft->share;
	return 0;
}

/* Where the rule goes, if there is one; a descriptor has a node of its own also without. */
static int place_draft(struct draft *draft, struct match_node **ret_node, struct rule ***ret)
{
	struct build *b = draft->b;
	int rc = 0;

	*ret_node = b->above;
	if (b->place == RULE_OF_DESCRIPTOR)
		rc = add_descriptor(draft, ret_node);
	*ret = b->place == RULE_OF_DOMAIN ? &b->above->of_domain
	       : b->place == RULE_DEFAULT ? &b->above->by_default
					  : &(*ret_node)->rule;
	return rc;
}

int check_draft(struct build *b, struct draft *draft)
{
	bool limited = draft->rule.limit_count;
	int rc;

	rule_usual_scales(&draft->rule.prefix);
	rc = limited ? check_rule_limits(&b->r, draft) : check_rule_alone(&b->r, draft);
	if (!rc && limited)
		rc = load_rule_overrides(&b->r, draft);
	/* A priority alone makes a rule, too: it sets the priority of the request. */
	if (!limited && draft->rule.has_priority)
		draft->rule.unlimited = true;
	return rc;
}

/* What the rule is for. 0 or -ENOMEM. */
static int set_entries(struct build *b, struct draft *draft)
{
	struct rule_entry *entry = arena_alloc(build_arena(b), b->depth * sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	draft->rule.place = b->place;
	draft->rule.depth = b->depth;
	draft->rule.entry = entry;
	if (b->depth)
		b->shared = (b->shared & ((1U << (b->depth - 1)) - 1)) | (u32)draft->share
										 << (b->depth - 1);
	if (b->depth)
		b->ignore[b->depth - 1] = draft->ignore;
	for (u32 i = 0; i < b->depth; i++) {
		struct bytes value = b->entry[i].value;
		bool open = !value.at || (match_is_pattern(value) && !(b->shared >> i & 1));

		if (!open && b->ignore[i]) {
			value = match_folded(build_arena(b), value, b->ignore[i]);
			if (!value.at)
				return -ENOMEM;
		}
		entry[i] = (struct rule_entry){ b->entry[i].key.at, open ? NULL : value.at,
						b->ignore[i] };
	}
	return 0;
}

/* Checks a draft whose keys were read, and makes its rule. */
static int finish_draft(struct build *b, struct draft *draft, struct match_node **ret_node)
{
	bool unlimited = draft->rule.unlimited, limited;
	struct rule **at = NULL;
	int rc = draft_add_concurrency(&b->r, draft);

	limited = draft->rule.limit_count;
	if (!rc)
		rc = set_entries(b, draft) ? read_no_memory(&b->r) : check_draft(b, draft);
	if (!rc && !limited)
		refuse_edits(b, true,
			     unlimited ? "the rule is unlimited" : "the rule has no limit");
	if (!rc)
		rc = place_draft(draft, ret_node, &at);
	if (!rc && saving_end(b, draft))
		rc = read_no_memory(&b->r);
	if (!rc && (limited || draft->rule.unlimited) && add_rule(draft, at))
		rc = read_no_memory(&b->r);
	return rc;
}

void draft_clear(struct draft *draft)
{
	json_decref(draft->rule.metadata);
	override_index_free(draft->rule.overrides);
}

/*
 * With its live changes, if there are any and they are valid; else as in the file, and the live
 * change gets the reason.
 */
static int read_keys(struct build *b, struct draft *draft, struct match_node **ret_node)
{
	struct sl_err *err = b->r.err, why = { .message = "" };
	int rc = keys_read(&b->r, draft->map, draft_keys(draft), draft);
	struct draft as_in_file = *draft;

	if (!rc && saving_begin(b, draft))
		rc = read_no_memory(&b->r);
	if (rc || !has_edits(b))
		return rc ? rc : finish_draft(b, draft, ret_node);
	json_incref(as_in_file.rule.metadata);
	b->r.err = &why;
	rc = read_edits(b, draft);
	if (!rc)
		rc = finish_draft(b, draft, ret_node);
	b->r.err = err;
	b->r.path[0] = 0;
	if (!rc) {
		json_decref(as_in_file.rule.metadata);
		return 0;
	}
	draft_clear(draft);
	*draft = as_in_file;
	refuse_edits(b, false, why.message);
	return finish_draft(b, draft, ret_node);
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
		return read_fail(&b->r, map, EINVAL,
				 "found descriptors nested deeper than %d; "
				 "accepted: fewer levels",
				 REQUEST_ENTRIES_MAX);
	b->depth++;
	draft_init(&draft, b, map);
	rc = name_draft(&draft, words, sizeof(words));
	if (!rc)
		rc = read_keys(b, &draft, &node);
	draft_clear(&draft);
	below = yaml_node_find(map, "descriptors");
	if (!rc && below) {
		b->above = node;
		b->value_to_metric = metric_values(&draft);
		rc = read_rule_children(b, below->value);
	}
	b->above = above;
	b->value_to_metric = value_to_metric;
	b->path[path_len] = 0;
	b->r.subject = subject;
	b->depth--;
	return rc;
}

int read_rule_children(struct build *b, const struct yaml_node *list)
{
	int rc = 0;

	for (const struct yaml_node *item = list->first; item && !rc; item = item->next)
		rc = read_descriptor(b, item);
	return rc;
}

int read_rule_placed(struct build *b, const struct yaml_node *map, enum rule_place place)
{
	const char *subject = b->r.subject;
	struct match_node *node;
	char words[160];
	struct draft draft;
	int rc;

	b->place = place;
	draft_init(&draft, b, map);
	rc = path_add(b, rule_place_names[place], NULL);
	say_rule(b, b->path, words, sizeof(words));
	rc = rc ? read_no_memory(&b->r) : read_keys(b, &draft, &node);
	if (!rc && !draft.rule.limit_count && !draft.rule.unlimited && !draft.rule.live)
		rc = read_fail(&b->r, map, EINVAL,
			       "found no limit; accepted: limits, rate_limit, or a "
			       "priority");
	draft_clear(&draft);
	b->path[0] = 0;
	b->r.subject = subject;
	b->place = RULE_OF_DESCRIPTOR;
	return rc;
}
