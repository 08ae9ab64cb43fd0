// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_save.c - writes live changes into the text of a rule file: the file's own nodes are edited,
 * and the text where it differs from them (text_edit.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/override_private.h"
#include "request/rules/rule_edit.h"
#include "conf/pair.h"
#include "conf/config_text.h"
#include "conf/text_edit.h"

struct saving {
	struct build b;			/* tree, domain, path, edits: for rule_edit.c */
	const struct ruleset *set;	/* the current one: decides which values are equal */
	struct sl_err *err;
	bool changed;
};

/* ---- a value's limits ---- */

/* The list under `overrides`, created if there is none; NULL: out of memory. */
static struct yaml_node *overrides_of(struct saving *s, struct yaml_node *map)
{
	struct yaml_node *key = yaml_node_find(map, "overrides"), *item;

	if (!key) {
		key = tree_node(s->b.tree, YAML_TEXT, "overrides", 9);
		if (!key)
			return NULL;
		yaml_node_append(map, key);
	}
	if (key->value && key->value->kind == YAML_LIST)
		return key->value;
	item = key->value;
	key->value = tree_node(s->b.tree, YAML_LIST, NULL, 0);
	if (key->value && item && !yaml_node_is_null(item))
		yaml_node_append(key->value, item);	/* a single one was not a list */
	return key->value;
}

static u64 value_hash(const struct rule *rule, const char *value)
{
	struct bytes key;

	if (override_value_reason(rule, (struct bytes){ value, strlen(value) }, &key))
		return 0;
	return override_hash(rule, key);
}

/* The item stays where it is, and its value as it is spelled. */
static void take_keys(struct yaml_node *item, const struct yaml_node *made)
{
	struct yaml_node *value = yaml_node_find(item, "value")->value;

	item->first = made->first;
	item->last = made->last;
	item->count = made->count;
	yaml_node_find(item, "value")->value = value;
}

static int save_value(struct saving *s, struct yaml_node *map, const struct rule *rule,
		      const struct rule_edit *edit)
{
	u64 hash = value_hash(rule, edit->value);
	struct yaml_node *list = overrides_of(s, map), *made = NULL, *item, *next;
	struct override_table *file = rule->overrides ? rule->overrides->file : NULL;
	u32 known;

	if (!list)
		return sl_err_set(s->err, ENOMEM, "out of memory");
	if (edit->what != EDIT_UNSET || override_table_find(file, hash, &known)) {
		made = value_node_of(&s->b, edit, s->err);
		if (!made)
			return -EINVAL;
	}
	for (item = list->first; item; item = next) {
		const struct yaml_node *value = yaml_node_find(item, "value");

		next = item->next;
		if (!value || value_hash(rule, value->value->text) != hash)
			continue;
		if (made)
			take_keys(item, made);
		else
			yaml_node_remove(list, item);
		made = NULL;
	}
	if (made)
		yaml_node_append(list, made);
	if (!list->count)
		yaml_node_remove(map, yaml_node_find(map, "overrides"));
	return 0;
}

/* ---- the file ---- */

static int save_children(struct saving *s, struct yaml_node *list);

static int save_rule(struct saving *s, struct yaml_node *map)
{
	char name[sizeof(s->b.path) + REQUEST_DOMAIN_MAX + 2];
	const struct rule *rule;
	struct rule_edit *edit;
	size_t at = 0;
	int rc = 0;

	snprintf(name, sizeof(name), "%s/%s", s->b.domain, s->b.path);
	while (!rc && (edit = next_edit(&s->b, &at))) {
		s->changed = true;
		rule = ruleset_find(s->set, name);
		if (!rule)
			return sl_err_set(s->err, ENOENT, "there is no rule \"%.200s\"", name);
		if (edit->value)
			rc = save_value(s, map, rule, edit);
		else
			rc = rule_edit_map(&s->b, map, edit, s->err);
	}
	return rc;
}

static int save_descriptor(struct saving *s, struct yaml_node *map)
{
	const struct yaml_node *key = yaml_node_find(map, "key"),
			       *value = yaml_node_find(map, "value");
	struct yaml_node *below = yaml_node_find(map, "descriptors");
	size_t used = strlen(s->b.path);
	bool has_value = value && !yaml_node_is_null(value->value) && value->value->text[0];
	int rc;

	if (!key)
		return sl_err_set(s->err, EINVAL, "the file has changed since it was loaded; "
				  "reload first, then save again");
	rc = path_add(&s->b, key->value->text, has_value ? value->value->text : NULL);
	if (rc)
		return sl_err_set(s->err, -rc, "%s", strerror(-rc));
	rc = save_rule(s, map);
	if (!rc && below)
		rc = save_children(s, below->value);
	s->b.path[used] = 0;
	return rc;
}

static int save_children(struct saving *s, struct yaml_node *list)
{
	int rc = 0;

	for (struct yaml_node *item = list->first; item && !rc; item = item->next)
		rc = save_descriptor(s, item);
	return rc;
}

/* The rule of every request, or the default one. */
static int save_placed(struct saving *s, const struct yaml_node *key, enum rule_place place)
{
	int rc;

	if (!key || key->value->kind != YAML_MAP)
		return 0;
	rc = path_add(&s->b, rule_place_names[place], NULL);
	if (rc)
		return sl_err_set(s->err, -rc, "%s", strerror(-rc));
	rc = save_rule(s, key->value);
	s->b.path[0] = 0;
	return rc;
}

int rule_file_edited(const char *path, const struct ruleset *set, struct rule_edit *edit,
		     size_t count, char **ret, size_t *ret_size, struct sl_err *err)
{
	struct saving s = { .set = set, .err = err };
	struct tree tree = { 0 };
	const struct yaml_node *key;
	struct yaml_node *list;
	size_t size;
	char *text;
	int rc = config_text_read(path, true, &text, &size, err);

	*ret = NULL;
	if (rc)
		return rc;
	s.b.tree = &tree;
	s.b.r.err = err;
	s.b.r.subject = "";
	rc = tree_parse_deep(path, text, size, &tree, err);
	if (!rc && index_edits(&s.b, edit, count))
		rc = sl_err_set(err, ENOMEM, "out of memory");
	key = rc ? NULL : yaml_node_find(tree.root, "domain");
	list = rc ? NULL : yaml_node_find(tree.root, "descriptors");
	s.b.domain = key ? rule_file_domain(key->value)->text : "";
	if (!rc)
		rc = save_placed(&s, key, RULE_OF_DOMAIN);
	if (!rc)
		rc = save_placed(&s, yaml_node_find(tree.root, "default"), RULE_DEFAULT);
	if (!rc && list)
		rc = save_children(&s, list->value);
	if (!rc && s.changed)
		rc = text_edit(path, text, size, tree.root, ret, ret_size, err);
	free(text);
	index_free(&s.b.edits);
	index_free(&s.b.seen);
	arena_free(&s.b.scratch);
	tree_free(&tree);
	return rc;
}
