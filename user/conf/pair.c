// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pair.c - see pair.h. */
#include "conf/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"

/* A text for an error message: truncated, without control characters. */
static const char *shown(const char *text, char *buf, size_t size)
{
	size_t len = strnlen(text, size - 1);

	while (len && text[len] && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--; /* not within a character */
	memcpy(buf, text, len);
	buf[len] = 0;
	return config_text_printable(buf, len) ? buf : "...";
}

/* A VALUE that begins with a bracket is YAML as in the file, as throttle='{soft: 10%}'. */
static struct yaml_node *to_yaml_node(struct tree *tree, const char *key, const char *value,
				      struct sl_err *err)
{
	struct tree own = { 0 };
	struct sl_err why;
	char text[61];

	if (tree_parse("", value, strlen(value), &own, &why)) {
		sl_err_set(err, EINVAL, "%s: found \"%s\", column %d: %s", key,
			   shown(value, text, sizeof(text)), why.column, why.message);
		return NULL;
	}
	return tree_take(tree, &own);
}

/* VALUE as a node; NULL with err. */
static struct yaml_node *value_node(struct tree *tree, const char *key, const char *value,
				    struct sl_err *err)
{
	struct yaml_node *node;

	if (value[0] == '{' || value[0] == '[')
		return to_yaml_node(tree, key, value, err);
	node = tree_node(tree, YAML_TEXT, value, strlen(value));
	if (node)
		node->beside = true;
	else
		sl_err_no_memory(err);
	return node;
}

/* The key of a mapping, created if missing; NULL: out of memory. */
static struct yaml_node *key_node(struct tree *tree, struct yaml_node *map, const char *name,
				  size_t len)
{
	struct yaml_node *key;

	for (key = map->first; key; key = key->next)
		if (strlen(key->text) == len && !memcmp(key->text, name, len))
			return key;
	key = tree_node(tree, YAML_TEXT, name, len);
	if (key)
		yaml_node_append(map, key);
	return key;
}

static int refuse_pair(const char *subject, const struct keys *keys, const char *pair,
		       struct sl_err *err)
{
	char text[61];

	return sl_err_set(err, EINVAL, "%s: found \"%s\"; accepted: KEY=VALUE, as %s", subject,
			  shown(pair, text, sizeof(text)), keys->example);
}

#define KEY_PARTS_MAX 3 /* throttle.while.cpu */
#define NAME_MOST 64

/* KEY.KEY...: the mappings on the path, `*ret_depth` of them, created if missing. */
static int find_maps(struct tree *tree, struct yaml_node *root, char *key, struct yaml_node **map,
		     struct yaml_node **outer, size_t *ret_depth, char **ret_last)
{
	size_t depth = 0;
	char *dot;

	map[0] = root;
	for (; (dot = strchr(key, '.')) && depth + 1 < KEY_PARTS_MAX; key = dot + 1) {
		outer[depth] = key_node(tree, map[depth], key, dot - key);
		if (!outer[depth])
			return -ENOMEM;
		if (!outer[depth]->value || outer[depth]->value->kind != YAML_MAP)
			outer[depth]->value = tree_node(tree, YAML_MAP, NULL, 0);
		if (!outer[depth]->value)
			return -ENOMEM;
		map[depth + 1] = outer[depth]->value;
		depth++;
	}
	*ret_depth = depth;
	*ret_last = key;
	return 0;
}

static int check_pair(const char *subject, const struct keys *keys, const char *pair,
		      struct sl_err *err)
{
	const char *equals = strchr(pair, '='), *dots = strstr(pair, "..");
	size_t len = equals ? (size_t)(equals - pair) : 0;

	if (!len || len >= NAME_MOST || !config_text_printable(pair, strlen(pair)) ||
	    pair[0] == '.' || pair[len - 1] == '.' || (dots && dots < equals))
		return refuse_pair(subject, keys, pair, err);
	return 0;
}

/* Applies KEY=VALUE, or KEY.KEY=VALUE, to a mapping. -EINVAL with a message "SUBJECT: ...",
 * -ENOMEM. */
static int pair_set(struct tree *tree, struct yaml_node *root, const char *pair, struct sl_err *err)
{
	struct yaml_node *map[KEY_PARTS_MAX], *outer[KEY_PARTS_MAX], *key;
	const char *equals = strchr(pair, '=');
	char full[NAME_MOST] = "", parts[NAME_MOST], *last;
	size_t depth;

	memcpy(full, pair, equals - pair);
	strcpy(parts, full);
	if (find_maps(tree, root, parts, map, outer, &depth, &last))
		return sl_err_no_memory(err);
	key = key_node(tree, map[depth], last, strlen(last));
	if (!key)
		return sl_err_no_memory(err);
	if (equals[1]) {
		key->value = value_node(tree, full, equals + 1, err);
		return key->value ? 0 : -EINVAL;
	}
	yaml_node_remove(map[depth], key);
	for (; depth && !map[depth]->count; depth--)
		yaml_node_remove(map[depth - 1], outer[depth - 1]);
	return 0;
}

/* ---- pairs into a struct ---- */

static bool is_of(const struct key *key, const char *pair)
{
	size_t len = strcspn(pair, ".=");

	return strlen(key->name) == len && !memcmp(pair, key->name, len);
}

bool pairs_are(const struct keys *keys, enum key_flag flag, char *const *pairs, size_t count)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < keys->count; k++)
			known += keys->key[k].flags & flag && is_of(&keys->key[k], pairs[i]);
	return known == count;
}

/* Reports a pair that belongs to no row. */
static int refuse_unknown(struct reader *r, const struct keys *keys, const char *pair)
{
	struct tree tree = { .root = NULL };
	struct yaml_node *map = tree_node(&tree, YAML_MAP, NULL, 0), *key = NULL;
	int rc;

	if (map)
		key = tree_node(&tree, YAML_TEXT, pair, strcspn(pair, ".="));
	rc = key ? pair_set(&tree, map, pair, r->err) : read_no_memory(r);
	if (!rc) {
		map = tree_node(&tree, YAML_MAP, NULL, 0);
		if (map)
			yaml_node_append(map, key);
		rc = map ? keys_refuse_elsewhere(r, map, keys) : read_no_memory(r);
		if (!rc)
			rc = read_map(r, map, keys->key, keys->count, NULL);
	}
	tree_free(&tree);
	return rc;
}

/* The present value, to change a part of it: a mapping of the key alone, or an empty one. */
static int present(const struct keys *keys, const struct key *key, const void *section,
		   struct tree *ret, struct sl_err *err)
{
	char *text = NULL;
	size_t size = 0;
	struct writer w = { .out = open_memstream(&text, &size) };
	int rc = 0;

	if (!w.out)
		return sl_err_no_memory(err);
	keys_write_given(&w, keys, section,
			 keys_unlike(&w, keys, section, NULL) & 1ULL << (key - keys->key));
	if (fclose(w.out) || w.failed)
		rc = sl_err_no_memory(err);
	else if (size)
		rc = tree_parse("", text, size, ret, err);
	free(text);
	return rc;
}

/* A row that pairs change, and its new value, a text or a node; neither: the key is removed. */
struct change {
	const struct key *key;
	struct tree tree;
	const struct yaml_node *node;
	const char *text;
};

/* The key's value as a text, or as a node of a file. */
static int value_of_pairs(struct reader *r, const struct keys *keys, const void *section,
			  char *const *pairs, size_t count, struct change *ret)
{
	const struct key *key = ret->key;
	struct tree *tree = &ret->tree;
	const struct yaml_node *found;
	bool is_part = false;
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_of(key, pairs[i]))
			continue;
		ret->text = pairs[i] + strlen(key->name);
		is_part |= ret->text[0] != '=';
	}
	if (!is_part && key_is_text(key) && ret->text[1] != '[' && ret->text[1] != '{') {
		ret->text = ret->text[1] ? ret->text + 1 : NULL;
		return 0;
	}
	ret->text = NULL;
	if (is_part)
		rc = present(keys, key, section, tree, r->err);
	if (!rc && !tree->root) {
		tree->root = tree_node(tree, YAML_MAP, NULL, 0);
		rc = tree->root ? 0 : read_no_memory(r);
	}
	for (size_t i = 0; i < count && !rc; i++)
		if (is_of(key, pairs[i]))
			rc = pair_set(tree, tree->root, pairs[i], r->err);
	found = rc ? NULL : yaml_node_find(tree->root, key->name);
	ret->node = found ? found->value : NULL;
	return rc;
}

static int find_changes(struct reader *r, const struct keys *keys, const void *section,
			char *const *pairs, size_t count, struct change *change, size_t *ret_count)
{
	size_t known = 0;
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = check_pair(r->subject, keys, pairs[i], r->err);
	for (size_t k = 0; k < keys->count && !rc; k++) {
		struct change *of = &change[*ret_count];
		size_t before = known;

		for (size_t i = 0; i < count; i++)
			known += is_of(&keys->key[k], pairs[i]);
		if (known == before)
			continue;
		of->key = &keys->key[k];
		++*ret_count;
		rc = value_of_pairs(r, keys, section, pairs, count, of);
	}
	for (size_t i = 0; i < count && !rc && known < count; i++) {
		size_t k = 0;

		while (k < keys->count && !is_of(&keys->key[k], pairs[i]))
			k++;
		if (k == keys->count)
			rc = refuse_unknown(r, keys, pairs[i]);
	}
	return rc;
}

/* All are at their defaults before the first is read: a row may depend on another. */
static int read_changes(struct reader *r, const struct keys *keys, const struct change *change,
			size_t count, void *section)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		key_note(keys, change[i].key - keys->key, change[i].node || change[i].text,
			 section);
		if (key_reset(change[i].key, section))
			rc = read_no_memory(r);
	}
	for (size_t i = 0; i < count && !rc; i++) {
		const struct key *key = change[i].key;

		if (change[i].node || change[i].text) {
			snprintf(r->path, sizeof(r->path), "%s", key->name);
			rc = change[i].text ? key_read_text(r, change[i].text, key, section)
					    : key_read(r, change[i].node, key, section);
		} else if (key->flags & KEY_NEEDED) {
			rc = read_fail(r, NULL, EINVAL, "key \"%s\" is missing", key->name);
		}
		if (!rc)
			r->path[0] = 0;
	}
	return rc;
}

int pairs_read(struct reader *r, const struct keys *keys, void *section, char *const *pairs,
	       size_t count)
{
	static const struct yaml_node nothing = { .kind = YAML_MAP };
	struct change *change = calloc(keys->count + 1, sizeof(*change));
	size_t changes = 0;
	int rc = change ? 0 : read_no_memory(r);

	if (!rc)
		rc = find_changes(r, keys, section, pairs, count, change, &changes);
	if (!rc)
		rc = read_changes(r, keys, change, changes, section);
	if (!rc && keys->check)
		rc = keys->check(r, &nothing, section);
	for (size_t i = 0; i < changes; i++)
		if (change[i].tree.made_last)
			tree_free(&change[i].tree);
	free(change);
	return rc;
}
