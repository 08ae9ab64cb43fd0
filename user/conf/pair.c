// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pair.c - see pair.h. */
#include "conf/pair.h"

#include <errno.h>
#include <string.h>

#include "conf/config_text.h"

static int no_memory(struct sl_err *err)
{
	return sl_err_set(err, ENOMEM, "out of memory");
}

/* As much of a text as an error has room for, and nothing of what could harm a terminal. */
static const char *shown(const char *text, char *buf, size_t size)
{
	size_t len = strnlen(text, size - 1);

	while (len && text[len] && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;		/* not within a character */
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

/* VALUE as the node that the file would have; NULL with err. */
static struct yaml_node *value_node(struct tree *tree, const struct pair_words *words,
				    const char *key, const char *value, struct sl_err *err)
{
	struct yaml_node *items, *item;

	if (value[0] == '{' || value[0] == '[')
		return to_yaml_node(tree, key, value, err);
	no_memory(err);
	if (!words->takes_list(key) || !strchr(value, ','))
		return tree_node(tree, YAML_TEXT, value, strlen(value));
	items = tree_node(tree, YAML_LIST, NULL, 0);
	while (items) {
		size_t len = strcspn(value, ",");

		item = tree_node(tree, YAML_TEXT, value, len);
		if (!item)
			return NULL;
		yaml_node_append(items, item);
		if (!value[len])
			break;
		value += len + 1;
	}
	return items;
}

/* The key of a mapping, made where it is missing; NULL: out of memory. */
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

static int refuse_pair(const char *subject, const struct pair_words *words, const char *pair,
		       struct sl_err *err)
{
	char text[61];

	return sl_err_set(err, EINVAL, "%s: found \"%s\"; accepted: KEY=VALUE, as %s", subject,
			  shown(pair, text, sizeof(text)), words->example);
}

#define KEY_PARTS_MAX 3	/* throttle.while.cpu */

/* KEY.KEY...: the mappings on the way, `*ret_depth` of them, made where they are missing. */
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

int pair_set(struct tree *tree, struct yaml_node *root, const char *subject,
	     const struct pair_words *words, const char *pair, struct sl_err *err)
{
	struct yaml_node *map[KEY_PARTS_MAX], *outer[KEY_PARTS_MAX], *key;
	const char *equals = strchr(pair, '=');
	size_t name_len = equals ? (size_t)(equals - pair) : 0, depth;
	char full[64], parts[64], *last;

	if (!name_len || name_len >= sizeof(full) || !config_text_printable(pair, strlen(pair)))
		return refuse_pair(subject, words, pair, err);
	memcpy(full, pair, name_len);
	full[name_len] = 0;
	if (full[0] == '.' || full[name_len - 1] == '.' || strstr(full, ".."))
		return refuse_pair(subject, words, pair, err);
	strcpy(parts, full);
	if (find_maps(tree, root, parts, map, outer, &depth, &last))
		return no_memory(err);
	key = key_node(tree, map[depth], last, strlen(last));
	if (!key)
		return no_memory(err);
	if (equals[1]) {
		key->value = value_node(tree, words, full, equals + 1, err);
		return key->value ? 0 : -EINVAL;
	}
	yaml_node_remove(map[depth], key);
	for (; depth && !map[depth]->count; depth--)
		yaml_node_remove(map[depth - 1], outer[depth - 1]);
	return 0;
}
