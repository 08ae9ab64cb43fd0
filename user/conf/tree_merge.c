// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tree_merge.c - see tree_merge.h. */
#include "conf/tree_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/text_edit.h"
#include "lib/addr.h"

#define CANNOT 1 /* this mapping or list cannot be merged: it is replaced */

static bool same_node(const struct yaml_node *a, const struct yaml_node *b)
{
	const struct yaml_node *x = a->first, *y = b->first;

	if (a->kind != b->kind || a->count != b->count || a->plain != b->plain ||
	    strcmp(a->text, b->text))
		return false;
	for (; x; x = x->next, y = y->next)
		if (!same_node(x, y) || (x->value && !same_node(x->value, y->value)))
			return false;
	return true;
}

/* ---- items and keys, in the order of their names ---- */

struct item {
	char *name; /* of an address in its canonical text */
	size_t at;
	struct yaml_node *node;		    /* the key, or the item */
	struct item *before, *after, *into; /* the same in the other trees, or NULL */
	bool gone;
};

struct items {
	struct item *item; /* in the order of the text */
	struct item **sorted;
	size_t count;
};

/* The name of an item in a list; NULL: it has none. */
static const struct yaml_node *name_node(const struct yaml_node *node)
{
	static const char *const keys[] = { "name", "prefix", "src", "value" };

	if (node->kind != YAML_MAP)
		return node->kind == YAML_TEXT ? node : NULL;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct yaml_node *key = yaml_node_find(node, keys[i]);

		if (key && key->value->kind == YAML_TEXT)
			return key->value;
	}
	return NULL;
}

static int name_item(struct item *item, bool of_list)
{
	const struct yaml_node *node = of_list ? name_node(item->node) : item->node;
	char text[SL_PREFIX_TEXT];
	struct sl_prefix prefix;
	const char *reason;
	bool is_prefix;

	if (!node)
		return CANNOT;
	is_prefix = strpbrk(node->text, ".:") && !sl_prefix_parse(node->text, &prefix, &reason);
	if (of_list && node == item->node && !is_prefix && node->text[0] != '@')
		return CANNOT;
	item->name = strdup(is_prefix ? sl_prefix_format(&prefix, text, sizeof(text)) : node->text);
	return item->name ? 0 : -ENOMEM;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

static void items_free(struct items *items)
{
	for (size_t i = 0; items->item && i < items->count; i++)
		free(items->item[i].name);
	free(items->item);
	free(items->sorted);
}

/* `of` may be NULL: no items. 0, CANNOT or -ENOMEM; items_free() in any case. */
static int items_of(const struct yaml_node *of, struct items *ret)
{
	size_t count = of ? of->count : 0;
	struct yaml_node *node = of ? of->first : NULL;
	int rc = 0;

	*ret = (struct items){ calloc(count + 1, sizeof(*ret->item)),
			       calloc(count + 1, sizeof(*ret->sorted)), count };
	if (!ret->item || !ret->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count && !rc; i++, node = node->next) {
		ret->item[i] = (struct item){ .at = i, .node = node };
		ret->sorted[i] = &ret->item[i];
		rc = name_item(&ret->item[i], of->kind == YAML_LIST);
	}
	if (!rc)
		qsort(ret->sorted, count, sizeof(*ret->sorted), compare_items);
	return rc;
}

/* Of several items with one name, the first belongs to the first, and so on. */
static void match_items(const struct items *a, const struct items *b,
			void (*match)(struct item *a, struct item *b))
{
	for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
		int order = strcmp(a->sorted[i]->name, b->sorted[k]->name);

		if (!order)
			match(a->sorted[i], b->sorted[k]);
		i += order <= 0;
		k += order >= 0;
	}
}

static void match_before(struct item *item, struct item *before)
{
	item->before = before;
	before->into = item;
}

static void match_after(struct item *item, struct item *after)
{
	item->after = after;
	after->into = item;
}

static void match_both(struct item *before, struct item *after)
{
	before->after = after;
	after->before = before;
}

/* ---- merging ---- */

static int merge(struct yaml_node *into, const struct yaml_node *before, struct yaml_node *after,
		 struct yaml_node **ret);

static struct yaml_node *value_of(const struct item *item)
{
	return !item ? NULL : item->node->value ? item->node->value : item->node;
}

/* A new item of a list replaces another at its position, with its comments and its quotes. */
static struct yaml_node *in_place(struct yaml_node *item, const struct yaml_node *of)
{
	item->line = of->line;
	item->column = of->column;
	item->alias_line = of->alias_line;
	if (of->kind == YAML_TEXT)
		item->plain = item->plain && of->plain;
	return item;
}

static void append(struct yaml_node *parent, struct yaml_node *child)
{
	child->next = NULL;
	yaml_node_append(parent, child);
}

/* An item that moved after a later one was removed and added again. */
static void part_moved(const struct items *after)
{
	size_t last = 0;

	for (size_t i = 0; i < after->count; i++) {
		struct item *item = &after->item[i];

		if (!item->before || item->before->at >= last) {
			last = item->before ? item->before->at : last;
			continue;
		}
		if (item->into)
			item->into->after = NULL;
		item->into = NULL;
	}
}

static int merge_item(struct item *item)
{
	struct yaml_node *value = value_of(item);
	int rc;

	if (!item->after) {
		item->gone = item->before; /* else a default that the file has */
		return 0;
	}
	rc = merge(value, value_of(item->before), value_of(item->after), &value);
	if (item->node->value)
		item->node->value = value;
	else
		item->node = in_place(value, item->node);
	return rc;
}

/* True if the file already has the change in another spelling. */
static bool is_hidden(const struct items *before)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct item *item = &before->item[i];

		if (!item->into &&
		    (!item->after || !same_node(value_of(item), value_of(item->after))))
			return true;
	}
	return false;
}

static int merge_matched(struct yaml_node *into, struct items *now, struct items *before,
			 struct items *after)
{
	int rc = 0;

	match_items(now, before, match_before);
	match_items(now, after, match_after);
	match_items(before, after, match_both);
	if (is_hidden(before))
		return CANNOT;
	if (into->kind == YAML_LIST)
		part_moved(after);
	for (size_t i = 0; i < now->count && rc >= 0; i++)
		rc = merge_item(&now->item[i]);
	if (rc < 0)
		return rc;
	into->first = into->last = NULL;
	into->count = 0;
	for (size_t i = 0; i < now->count; i++)
		if (!now->item[i].gone)
			append(into, now->item[i].node);
	for (size_t i = 0; i < after->count; i++) {
		struct item *item = &after->item[i];
		bool is_there = item->before && same_node(value_of(item), value_of(item->before)) &&
				!item->before->into;

		if (item->into || is_there)
			continue;
		item->node->line = item->node->column = item->node->alias_line = 0;
		yaml_node_renew(value_of(item));
		append(into, item->node);
	}
	return 0;
}

/* All three have the same number of items: each is merged at its position. */
static int merge_places(struct yaml_node *into, const struct yaml_node *before,
			struct yaml_node *after)
{
	struct yaml_node *item = into->first, *new = after->first, *next, *next_new, *merged;
	const struct yaml_node *old = before->first;
	int rc = 0;

	into->first = into->last = NULL;
	into->count = 0;
	for (; item; item = next, old = old->next, new = next_new) {
		next = item->next;
		next_new = new->next;
		merged = item;
		if (rc >= 0)
			rc = merge(item, old, new, &merged);
		append(into, in_place(merged, item));
	}
	return rc < 0 ? rc : 0;
}

static int merge_within(struct yaml_node *into, const struct yaml_node *before,
			struct yaml_node *after)
{
	struct items now = { 0 }, was = { 0 }, then = { 0 };
	int rc;

	if (into->kind != after->kind || (before && before->kind != after->kind) ||
	    into->kind == YAML_TEXT)
		return CANNOT;
	rc = items_of(into, &now);
	if (!rc)
		rc = items_of(before, &was);
	if (!rc)
		rc = items_of(after, &then);
	if (!rc)
		rc = merge_matched(into, &now, &was, &then);
	else if (rc == CANNOT && before && into->count == before->count &&
		 into->count == after->count)
		rc = merge_places(into, before, after);
	items_free(&now);
	items_free(&was);
	items_free(&then);
	return rc;
}

/* The only item of a list that the file has without the list. */
static bool is_alone(const struct yaml_node *into, const struct yaml_node *list)
{
	return list && list->kind == YAML_LIST && list->count == 1 &&
	       into->kind == list->first->kind;
}

/* *ret: `into` changed, or `after` in its place. `before` may be NULL. */
static int merge(struct yaml_node *into, const struct yaml_node *before, struct yaml_node *after,
		 struct yaml_node **ret)
{
	int rc;

	*ret = into;
	if (before && same_node(before, after))
		return 0;
	if (is_alone(into, before) && is_alone(into, after))
		return merge(into, before->first, after->first, ret);
	rc = merge_within(into, before, after);
	if (rc != CANNOT)
		return rc;
	yaml_node_renew(after);
	*ret = after;
	return 0;
}

static int parse(const struct written *written, struct tree *ret, struct sl_err *err)
{
	if (written->size)
		return tree_parse_deep("", written->text, written->size, ret, err);
	ret->root = tree_node(ret, YAML_MAP, NULL, 0);
	return ret->root ? 0 : sl_err_set(err, ENOMEM, "out of memory");
}

int tree_merge(struct tree *tree, struct yaml_node **node, const struct written *before,
	       const struct written *after, struct sl_err *err)
{
	struct tree was = { 0 }, wanted = { 0 };
	int rc = parse(before, &was, err);

	if (!rc)
		rc = parse(after, &wanted, err);
	if (!rc && merge(*node, was.root, tree_take(tree, &wanted), node))
		rc = sl_err_set(err, ENOMEM, "out of memory");
	tree_free(&was);
	tree_free(&wanted);
	return rc;
}
