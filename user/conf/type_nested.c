// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* type_nested.c - keys whose value is a list or a mapping; see key.h. */
#include "conf/key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MAX 8 /* longer lists go one value to a line */

/* ---- mappings ---- */

static int map_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		    void *section)
{
	return keys_read(r, node, key->keys, key_field(key, section));
}

static void map_write(struct writer *w, const struct key *key, const void *section)
{
	const void *map = key_field_of(key, section);

	keys_write_flow(w, key->keys, map, keys_unlike(w, key->keys, map, NULL));
}

static void write_section(struct writer *w, const struct key *key, const void *section)
{
	write_begin(w);
	fprintf(w->out, "%s:\n", key->name);
	w->indent += 2;
	keys_write(w, key->keys, section);
	w->indent -= 2;
}

void type_map_lines(struct writer *w, const struct key *key, const void *section)
{
	write_section(w, key, key_field_of(key, section));
}

void type_map_copy(const struct key *key, void *section, int *rc)
{
	keys_copy(key->keys, key_field(key, section), rc);
}

void type_map_clear(const struct key *key, void *section)
{
	keys_clear(key->keys, key_field(key, section));
}

bool type_map_equal(const struct key *key, const void *a, const void *b)
{
	return keys_equal(key->keys, key_field_of(key, a), key_field_of(key, b));
}

const struct key_type type_map =
	TYPE_MAP("mapping", .read = map_read, .write = map_write, .lines = type_map_lines);

static void optional_clear(const struct key *key, void *section)
{
	for (size_t i = 0; i < key->keys->count; i++) {
		const struct key *field = &key->keys->key[i];

		key_clear(field, key_field(key, section));
		memset(key_field(field, key_field(key, section)), 0, field->size);
	}
}

static int optional_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			 void *section)
{
	optional_clear(key, section);
	if (key->word && node->kind == YAML_TEXT && !strcmp(node->text, key->word))
		return 0;
	if (key->word && node->kind != YAML_MAP)
		return key_refuse(r, node, key);
	if (keys_init(key->keys, key_field(key, section)))
		return read_no_memory(r);
	return map_read(r, node, key, section);
}

/* All that is not zero, as its defaults are those of a mapping that is given. */
static void optional_write(struct writer *w, const struct key *key, const void *section)
{
	const void *map = key_field_of(key, section);
	void *zeros = calloc(1, key->keys->size);

	w->failed |= !zeros;
	if (zeros)
		keys_write_flow(w, key->keys, map, keys_unlike(w, key->keys, map, zeros));
	free(zeros);
}

const struct key_type type_optional_map = {
	.name = "mapping",
	.read = optional_read,
	.write = optional_write,
	.copy = type_map_copy,
	.clear = optional_clear,
	.equal = type_map_equal,
};

/* ---- sections: mappings behind a pointer ---- */

static void section_clear(const struct key *key, void *section)
{
	void **field = key_field(key, section);

	keys_free(key->keys, *field);
	*field = NULL;
}

static int section_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			void *section)
{
	void **field = key_field(key, section);

	section_clear(key, section);
	*field = calloc(1, key->keys->size);
	if (!*field || keys_init(key->keys, *field))
		return read_no_memory(r);
	return keys_read(r, node, key->keys, *field);
}

static void section_lines(struct writer *w, const struct key *key, const void *section)
{
	write_section(w, key, *(const void *const *)key_field_of(key, section));
}

static void section_copy(const struct key *key, void *section, int *rc)
{
	void **field = key_field(key, section);

	if (!*field)
		return;
	*field = *rc ? NULL : keys_clone(key->keys, *field);
	if (!*field)
		*rc = -ENOMEM;
}

static bool section_equal(const struct key *key, const void *a, const void *b)
{
	const void *x = *(const void *const *)key_field_of(key, a);
	const void *y = *(const void *const *)key_field_of(key, b);

	return x && y ? keys_equal(key->keys, x, y) : x == y;
}

const struct key_type type_section = {
	.name = "mapping",
	.read = section_read,
	.lines = section_lines,
	.copy = section_copy,
	.clear = section_clear,
	.equal = section_equal,
};

/* ---- lists ---- */

static size_t *count_of(const struct key *key, void *section)
{
	return (size_t *)((char *)section + key->count);
}

static size_t count_in(const struct key *key, const void *section)
{
	return *(const size_t *)((const char *)section + key->count);
}

static size_t item_size(const struct key *item)
{
	return item->type == &type_map ? item->keys->size : item->type->size;
}

/* The i-th element; its item's row has offset 0. */
static char *element(const struct key *key, const void *section, size_t i)
{
	return *(char *const *)key_field_of(key, section) + i * item_size(key->item);
}

/* The earlier node of the list with the same value, or NULL. */
static const struct yaml_node *find_same(const struct key *unique, const struct key *key,
					 const void *section, const struct yaml_node *list)
{
	size_t last = count_in(key, section) - 1;
	const struct yaml_node *node = list->first;

	for (size_t i = 0; i < last; i++, node = node->next)
		if (key_equal(unique, element(key, section, i), element(key, section, last)))
			return node;
	return NULL;
}

/* Whether the last mapping repeats a value of another one. */
static int check_unique(struct reader *r, const struct key *key, const void *section,
			const struct yaml_node *list, const struct yaml_node *node)
{
	const struct keys *keys = key->item->keys;

	for (size_t i = 0; i < keys->count; i++) {
		const struct key *unique = &keys->key[i];
		const struct yaml_node *same, *found = yaml_node_find(node, unique->name);

		if (!(unique->flags & KEY_UNIQUE) || !found || list == node)
			continue;
		same = find_same(unique, key, section, list);
		if (same)
			return read_fail(r, found->value, EINVAL,
					 "found %s again, first in line %d; "
					 "accepted: each %s once",
					 read_found(r, found->value), same->line, unique->name);
	}
	return 0;
}

static int append_item(struct reader *r, const struct yaml_node *list, const struct yaml_node *node,
		       const struct key *key, void *section)
{
	const struct key *item = key->item;
	size_t *count = count_of(key, section), size = item_size(item);
	char **array = key_field(key, section);
	char *grown;
	int rc;

	if (key->most && *count == key->most)
		return read_fail(r, node, EINVAL, "found one more; accepted: up to %llu",
				 key->most);
	grown = array_grow(*array, *count, size);
	if (!grown)
		return read_no_memory(r);
	*array = grown;
	memset(grown + *count * size, 0, size);
	++*count;
	grown += (*count - 1) * size;
	if (item->type == &type_map && keys_init(item->keys, grown))
		return read_no_memory(r);
	rc = key_read(r, node, item, grown);
	return rc || item->type != &type_map ? rc : check_unique(r, key, section, list, node);
}

void type_list_clear(const struct key *key, void *section)
{
	char **array = key_field(key, section);

	for (size_t i = 0; i < count_in(key, section); i++)
		key_clear(key->item, element(key, section, i));
	free(*array);
	*array = NULL;
	*count_of(key, section) = 0;
}

int type_list_append(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	const struct yaml_node *item;
	int rc = 0;

	if (yaml_node_is_null(node) || (node->kind == YAML_LIST && !node->count))
		return key->least ? key_refuse(r, node, key) : 0;
	if (node->kind != YAML_LIST)
		return append_item(r, node, node, key, section);
	for (item = node->first; item && !rc; item = item->next)
		rc = append_item(r, node, item, key, section);
	return rc;
}

static int list_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	type_list_clear(key, section);
	return type_list_append(r, node, key, section);
}

static void list_write(struct writer *w, const struct key *key, const void *section)
{
	fputc('[', w->out);
	for (size_t i = 0; i < count_in(key, section); i++) {
		if (i)
			fputs(", ", w->out);
		key->item->type->write(w, key->item, element(key, section, i));
	}
	fputc(']', w->out);
}

void type_list_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct key *item = key->item;
	bool lines = item->type->lines && item->type != &type_map;
	bool flow = !lines && item->type != &type_map && count_in(key, section) <= FLOW_MAX;

	write_begin(w);
	fprintf(w->out, flow ? "%s: " : "%s:\n", key->name);
	if (flow) {
		list_write(w, key, section);
		fputc('\n', w->out);
	}
	w->indent += 4;
	for (size_t i = 0; i < count_in(key, section) && !flow; i++) {
		w->item = true;
		if (lines) {
			item->type->lines(w, item, element(key, section, i));
			continue;
		}
		write_begin(w);
		item->type->write(w, item, element(key, section, i));
		fputc('\n', w->out);
	}
	w->indent -= 4;
}

void type_list_copy(const struct key *key, void *section, int *rc)
{
	void **array = key_field(key, section);

	*array = array_copy(*array, count_in(key, section), item_size(key->item), rc);
	if (!*array)
		*count_of(key, section) = 0;
	for (size_t i = 0; i < count_in(key, section); i++)
		key_copy(key->item, element(key, section, i), rc);
}

bool type_list_equal(const struct key *key, const void *a, const void *b)
{
	size_t count = count_in(key, a);

	if (count != count_in(key, b))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!key_equal(key->item, element(key, a, i), element(key, b, i)))
			return false;
	return true;
}

static const char *list_accepted(const struct key *key, char *buf, size_t size)
{
	char item[300];

	snprintf(buf, size, "one or more: %s", key_accepted(key->item, item, sizeof(item)));
	return buf;
}

const struct key_type type_list = TYPE_LIST("list", .read = list_read, .write = list_write,
					    .lines = type_list_lines, .accepted = list_accepted);
