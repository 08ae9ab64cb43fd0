// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * text_edit.c - see text_edit.h.
 *
 * The places of the text and the new tree are compared side by side, in the order of the text.
 * Each difference becomes a splice: bytes to be removed, and text in their place. An anchor comes
 * before its aliases, so its new value is determined first: an alias that would then have another
 * value than in the new tree is written out.
 */
#include "conf/text_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/emit.h"
#include "conf/entries.h"
#include "conf/place.h"
#include "conf/splice.h"

/* ---- comparing ---- */

static bool is_merge(const struct yaml_node *key)
{
	return key->kind == YAML_TEXT && key->plain && !strcmp(key->text, "<<");
}

/*
 * Text from a command has no quotes, and plain text may get quotes within brackets, so quotes are
 * not compared. Exceptions: null in quotes is not null, and a number in quotes is not a number.
 */
static bool same_text(const struct yaml_node *a, const struct yaml_node *b)
{
	if (strcmp(a->text, b->text))
		return yaml_node_is_null(a) && yaml_node_is_null(b);
	if (a->plain == b->plain || strpbrk(a->text, ",[]{}:?"))
		return true;
	return !(a->line && b->line) && !yaml_node_is_null(a) && !yaml_node_is_null(b);
}

/* The key of that name; `hint` is where it is in a mapping of the same order. */
static const struct yaml_node *find_key(const struct yaml_node *map, const char *name,
					const struct yaml_node **hint)
{
	const struct yaml_node *key = *hint;

	if (!key || strcmp(key->text, name))
		key = yaml_node_find(map, name);
	if (key)
		*hint = key->next;
	return key;
}

static bool same_node(const struct yaml_node *a, const struct yaml_node *b)
{
	const struct yaml_node *hint, *other;

	if (!a || !b || a->kind != b->kind || a->count != b->count)
		return false;
	if (a == b)
		return true;
	if (a->kind == YAML_TEXT)
		return same_text(a, b);
	hint = b->first;
	for (const struct yaml_node *item = a->first; item; item = item->next) {
		other = hint;
		if (a->kind == YAML_LIST)
			hint = hint->next;
		else
			other = find_key(b, item->text, &hint);
		if (!other || !same_node(a->kind == YAML_MAP ? item->value : item,
					 a->kind == YAML_MAP ? other->value : other))
			return false;
	}
	return true;
}

static bool is_text(const struct yaml_node *place, const struct yaml_node *node)
{
	if (place->kind != YAML_TEXT || node->kind != YAML_TEXT)
		return false;
	if (yaml_node_is_null(place) || yaml_node_is_null(node))
		return yaml_node_is_null(place) && yaml_node_is_null(node);
	return !strcmp(place->text, node->text) && (place->plain == node->plain || !node->line);
}

/* ---- a value in place of another ---- */

static void fit(struct editing *e, struct yaml_node *place, const struct yaml_node *node,
		size_t lead, bool flow);

static enum emit_quotes quotes_of(const struct editing *e, const struct yaml_node *place)
{
	if (place->kind != YAML_TEXT || place->plain)
		return EMIT_AS_NEEDED;
	return e->text[place->at->begin] == '"'	   ? EMIT_DOUBLE
	       : e->text[place->at->begin] == '\'' ? EMIT_SINGLE
						   : EMIT_AS_NEEDED;
}

/* After its key or dash, without a blank if the text has one there. */
static void replace_inline(struct editing *e, const struct yaml_node *place,
			   const struct yaml_node *node, bool flow)
{
	struct writing w;
	FILE *out = splice_begin(e, &w);

	if (!out)
		return;
	if (place->at->begin == place->at->end) {
		bool follows = place->at->begin && strchr(":-", e->text[place->at->begin - 1]);

		fputs(follows || place->at->lead ? " " : ": ", out);
	}
	if (node->kind == YAML_TEXT)
		emit_text(out, node, flow, quotes_of(e, place));
	else
		emit_flow(out, node);
	splice_end(e, &w, place->at->begin, place->at->end);
}

/* New lines below the key or dash, whose line may end with a comment. */
static void replace_below(struct editing *e, const struct yaml_node *place,
			  const struct yaml_node *node, size_t indent)
{
	size_t at = line_end(e, place->at->end), begin = place->at->begin;
	struct writing w;
	FILE *out = splice_begin(e, &w);

	if (!out)
		return;
	fprintf(out, "\n%*s", (int)indent, "");
	emit_block(out, node, indent);
	splice_end(e, &w, at, at);
	while (begin && e->text[begin - 1] == ' ')
		begin--;
	splice_cut(e, begin, place->at->end);
}

/* A list or mapping of several lines; `lead`: position after its key or dash. */
static void replace_block(struct editing *e, const struct yaml_node *place,
			  const struct yaml_node *node, size_t lead)
{
	size_t column = place->at->begin - line_begin(e, place->at->begin);
	bool own_lines = is_first_in_line(e, place->at->begin) && lead;
	bool fits = emit_fits(node, lead - line_begin(e, lead));
	struct writing w;
	FILE *out = splice_begin(e, &w);

	if (!out)
		return;
	if (own_lines && fits) {
		fputc(' ', out);
		emit_flow(out, node);
		splice_end(e, &w, lead, lead);
		splice_cut(e, line_before(e, place->at->begin), line_end(e, place->at->end));
		return;
	}
	/* a list may have the same indent as its key, a mapping may not */
	if (own_lines && node->kind == YAML_MAP && place->kind == YAML_LIST)
		column += fprintf(out, "  ");
	if (fits && lead)
		emit_flow(out, node);
	else
		emit_block(out, node, column);
	splice_end(e, &w, place->at->begin, place->at->end);
}

static void replace(struct editing *e, const struct yaml_node *place, const struct yaml_node *node,
		    size_t lead, bool flow)
{
	bool block = (place->kind == YAML_LIST || place->kind == YAML_MAP) && !place->at->flow;
	size_t line = line_begin(e, place->at->start), indent = line;

	if (block) {
		replace_block(e, place, node, lead);
		return;
	}
	while (indent < e->size && strchr(" -", e->text[indent]))
		indent++;
	if (flow || !lead || emit_fits(node, place->at->begin - line_begin(e, place->at->begin)))
		replace_inline(e, place, node, flow);
	else
		replace_below(e, place, node, indent - line + 2);
}

static void fit_entry(struct editing *e, const struct entries *s, struct entry *entry)
{
	size_t lead = entry_lead(e, s, entry);

	if (s->is_map) {
		entry->place->at->node = entry->node;
		fit(e, entry->place->value, entry->node->value, lead, s->flow);
	} else {
		fit(e, entry->place, entry->node, lead, s->flow);
	}
}

/* ---- mappings ---- */

/*
 * The node that a merge key of the mapping will add under that name, the first of several; or NULL.
 */
static const struct yaml_node *merged(const struct yaml_node *merge, const char *name)
{
	const struct yaml_node *from =
		merge->value->kind == YAML_LIST ? merge->value->first : merge->value;
	const struct yaml_node *key = NULL;

	for (; from && !key; from = merge->value->kind == YAML_LIST ? from->next : NULL)
		if (from->kind == YAML_ALIAS && from->at->target->at->node)
			key = yaml_node_find(from->at->target->at->node, name);
	return key;
}

static bool has_own(const struct yaml_node *map, const char *name, const struct yaml_node **hint)
{
	const struct yaml_node *key = find_key(map, name, hint);

	return key && !is_merge(key);
}

/*
 * A merge key adds all its keys: whether it adds a key that the new tree lacks, or has otherwise.
 */
static bool merge_fits(const struct yaml_node *merge, const struct yaml_node *node)
{
	const struct yaml_node *from =
		merge->value->kind == YAML_LIST ? merge->value->first : merge->value;

	for (; from; from = merge->value->kind == YAML_LIST ? from->next : NULL) {
		const struct yaml_node *target =
			from->kind == YAML_ALIAS ? from->at->target->at->node : NULL;
		const struct yaml_node *hint = node->first;

		if (from->kind != YAML_ALIAS)
			continue; /* a mapping at this place: it cannot have changed */
		if (!target || target->kind != YAML_MAP)
			return false;
		for (const struct yaml_node *key = target->first; key; key = key->next)
			if (!find_key(node, key->text, &hint))
				return false;
	}
	return true;
}

static bool is_wanted(const struct yaml_node *merge, const struct yaml_node *key)
{
	const struct yaml_node *brought = merge ? merged(merge, key->text) : NULL;

	if (brought)
		return same_node(brought->value, key->value);
	/* of a mapping at the merge key itself */
	return merge && key->line && key->value->line && merge->value->kind != YAML_ALIAS &&
	       key->line >= merge->line;
}

static void fit_map(struct editing *e, struct yaml_node *map, const struct yaml_node *node,
		    size_t lead, bool flow)
{
	const struct yaml_node *hint = node->first;
	const struct yaml_node *merge = NULL, *own = map->first;
	struct entry *last = NULL;
	struct entries s;

	if (!map->count || !node->count) {
		if (map->count || node->count)
			replace(e, map, node, lead, flow);
		return;
	}
	e->rc = entries_of(e, map, &s);
	if (e->rc)
		return;
	for (size_t i = 0; i < s.count; i++) {
		struct entry *entry = &s.entry[i];

		if (is_merge(entry->place))
			continue;
		entry->node = find_key(node, entry->place->text, &hint);
		if (entry->node)
			fit_entry(e, &s, entry);
	}
	/* then: the mapping that a merge key names may be in this mapping */
	for (size_t i = 0; i < s.count; i++) {
		struct entry *entry = &s.entry[i];

		if (is_merge(entry->place) && merge_fits(entry->place, node)) {
			merge = entry->place;
			entry->node = node;
		}
		if (entry->node)
			last = entry;
	}
	if (!last) {
		replace(e, map, node, lead, flow);
		goto out;
	}
	for (const struct yaml_node *key = node->first; key; key = key->next)
		if (!has_own(map, key->text, &own) && !is_wanted(merge, key))
			entry_insert_after(e, &s, last, key);
	entries_cut(e, &s);
out:
	free(s.entry);
}

/* ---- lists ---- */

/* An item that was read from the text is compared by its position. */
static bool is_at(const struct yaml_node *item, const struct yaml_node *node)
{
	if (item->kind == YAML_ALIAS)
		return node->alias_line == item->line && node->line == item->at->target->line &&
		       node->column == item->at->target->column;
	return node->line == item->line && node->column == item->column && !node->alias_line;
}

/* Of a new list: an equal text, or a mapping whose first key has the same value. */
static bool is_alike(const struct yaml_node *item, const struct yaml_node *node)
{
	const struct yaml_node *key;

	if (item->kind == YAML_ALIAS)
		return same_node(item->at->target->at->node, node);
	if (item->kind != YAML_MAP || node->kind != YAML_MAP || !item->count)
		return is_text(item, node);
	key = yaml_node_find(node, item->first->text);
	return key && is_text(item->first->value, key->value);
}

#define LOOK_AHEAD 1000 /* a list with more changes at one place is changed in more places */

/* The entry that becomes this item, from `i` on; s->count: none. */
static size_t entry_for(const struct entries *s, size_t i, const struct yaml_node *node)
{
	size_t end = node->line || i + LOOK_AHEAD > s->count ? s->count : i + LOOK_AHEAD;

	for (; i < end; i++)
		if (node->line ? is_at(s->entry[i].place, node) : is_alike(s->entry[i].place, node))
			return i;
	return s->count;
}

/* The new items from `from` up to `to` behind entry `at` - 1; those of a new list may replace. */
static void insert_items(struct editing *e, struct entries *s, size_t at, size_t next,
			 const struct yaml_node *from, const struct yaml_node *to, bool replaces)
{
	size_t first = entries_kept(s, 0);

	for (; from != to && replaces && at < next; from = from->next, at++) {
		s->entry[at].node = from;
		fit_entry(e, s, &s->entry[at]);
	}
	if (at) {
		/* the last one before that is kept */
		while (at && !s->entry[at - 1].node)
			at--;
	}
	for (; from != to; from = from->next) {
		if (at)
			entry_insert_after(e, s, &s->entry[at - 1], from);
		else
			entry_insert_before(e, s, &s->entry[first], from);
	}
}

static void fit_items(struct editing *e, struct entries *s, const struct yaml_node *list)
{
	bool replaces = !list->line;
	const struct yaml_node *waiting = list->first;
	size_t at = 0;

	for (const struct yaml_node *item = list->first; item; item = item->next) {
		size_t found = entries_kept(s, at);

		if (found == s->count)
			break;
		if (s->entry[found].node != item)
			continue;
		insert_items(e, s, at, found, waiting, item, replaces);
		fit_entry(e, s, &s->entry[found]);
		waiting = item->next;
		at = found + 1;
	}
	insert_items(e, s, at, s->count, waiting, NULL, replaces);
	entries_cut(e, s);
}

static void fit_list(struct editing *e, struct yaml_node *list, const struct yaml_node *node,
		     size_t lead, bool flow)
{
	struct entries s;
	size_t i = 0;

	if (!list->count || !node->count) {
		if (list->count || node->count)
			replace(e, list, node, lead, flow);
		return;
	}
	e->rc = entries_of(e, list, &s);
	if (e->rc)
		return;
	for (const struct yaml_node *item = node->first; item && i < s.count; item = item->next) {
		size_t found = item->line || !node->line ? entry_for(&s, i, item) : s.count;

		if (found == s.count)
			continue;
		s.entry[found].node = item;
		s.kept++;
		i = found + 1;
	}
	if (s.kept || !node->line)
		fit_items(e, &s, node);
	else
		replace(e, list, node, lead, flow);
	free(s.entry);
}

/* ---- any node ---- */

/* `lead`: position after its key or dash; 0 within brackets and at the root. */
static void fit(struct editing *e, struct yaml_node *place, const struct yaml_node *node,
		size_t lead, bool flow)
{
	if (e->rc)
		return;
	place->at->node = node;
	if (place->kind == YAML_MAP && node->kind == YAML_MAP)
		fit_map(e, place, node, lead, flow);
	else if (place->kind == YAML_LIST && node->kind == YAML_LIST)
		fit_list(e, place, node, lead, flow);
	else if (place->kind == YAML_ALIAS ? !same_node(place->at->target->at->node, node)
					   : !is_text(place, node))
		replace(e, place, node, lead, flow);
}

void yaml_node_renew(struct yaml_node *node)
{
	node->line = node->column = node->alias_line = 0;
	for (struct yaml_node *item = node->first; item; item = item->next) {
		item->line = item->column = item->alias_line = 0;
		yaml_node_renew(node->kind == YAML_MAP ? item->value : item);
	}
}

/* Reads the text again. */
static int check(const char *text, size_t size, const struct yaml_node *wanted)
{
	struct tree tree = { 0 };
	struct sl_err ignored;
	int rc = tree_parse_deep("", text, size, &tree, &ignored);

	if (!rc && !same_node(tree.root, wanted))
		rc = -EINVAL;
	tree_free(&tree);
	return rc;
}

int text_edit(const char *file, const char *text, size_t size, const struct yaml_node *wanted,
	      char **ret, size_t *ret_size, struct sl_err *err)
{
	struct editing e = { .text = text, .size = size };
	struct tree places = { 0 };
	char *edited = NULL;
	size_t edited_size = 0;
	int rc = tree_parse_written(text, size, &places, err);

	if (!rc) {
		fit(&e, places.root, wanted, 0, false);
		rc = e.rc ? e.rc : splice_all(&e, &edited, &edited_size);
	}
	splices_free(&e);
	tree_free(&places);
	if (!rc)
		rc = check(edited, edited_size, wanted);
	if (!rc) {
		*ret = edited;
		*ret_size = edited_size;
		return 0;
	}
	free(edited);
	if (rc == -ENOMEM)
		return sl_err_set(err, ENOMEM, "out of memory");
	return sl_err_at(err, EINVAL, file, 0, 0,
			 "the changes cannot be written into the text of the "
			 "file; accepted: the same changes by hand, and reload");
}
