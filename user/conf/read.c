// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* read.c - see read.h: mappings by table, plain values, and the text of errors. */
#include "conf/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/key.h"
#include "lib/endpoint.h"
#include "lib/near.h"

#define KEYS_MAX 64 /* of a table: which of them were given is a u64 */

int read_fail(struct reader *r, const struct yaml_node *at, int code, const char *format, ...)
{
	bool placed = at && r->file[0] && at->line;
	char words[480], alias[48] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	if (placed && at->alias_line)
		snprintf(alias, sizeof(alias), " (here by the alias in line %d)", at->alias_line);
	return sl_err_at(r->err, code, r->file, placed ? at->line : 0, placed ? at->column : 0,
			 "%s%s%s%s%s%s", r->subject, r->subject[0] ? ": " : "", r->path,
			 r->path[0] ? ": " : "", words, alias);
}

int read_refuse(struct reader *r, const struct yaml_node *at, const char *accepted)
{
	return read_fail(r, at, EINVAL, "found %s; accepted: %s", read_found(r, at), accepted);
}

int read_no_memory(struct reader *r)
{
	return sl_err_set(r->err, ENOMEM, "out of memory");
}

const char *read_found(struct reader *r, const struct yaml_node *node)
{
	const char *text = node ? node->text : r->text, *more = "";
	size_t len = strlen(text);

	if (node && node->kind == YAML_LIST)
		return node->count ? "a list" : "an empty list";
	if (node && node->kind == YAML_MAP)
		return "a mapping";
	if (node && yaml_node_is_null(node))
		return "nothing";
	if (len > sizeof(r->found) - 8) {
		len = sizeof(r->found) - 8;
		while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--; /* not within a character */
		more = "...";
	}
	snprintf(r->found, sizeof(r->found), "\"%.*s%s\"", (int)len, text, more);
	return r->found;
}

int text_fail(struct reader *r, const char *format, ...)
{
	char words[480];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	return read_fail(r, r->at, EINVAL, "found %s%s", read_found(r, r->at), words);
}

int text_refuse(struct reader *r, const char *accepted)
{
	return read_refuse(r, r->at, accepted);
}

/* ---- mappings ---- */

static const char *list_keys(const struct key *keys, size_t count, char *buf, size_t size)
{
	size_t i, used = 0;

	buf[0] = 0;
	for (i = 0; i < count && used < size; i++)
		used += snprintf(buf + used, size - used, "%s%s", used ? ", " : "", keys[i].name);
	return buf;
}

/* `(did you mean "limits"?)`, or "". */
static const char *suggest_key(const struct key *keys, size_t count, const char *name, char *buf,
			       size_t size)
{
	unsigned int least = WORD_MAX;

	buf[0] = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned int distance = word_distance(name, keys[i].name);

		if (distance >= least || !word_is_near(name, keys[i].name))
			continue;
		least = distance;
		snprintf(buf, size, " (did you mean \"%s\"?)", keys[i].name);
	}
	return buf;
}

static size_t find_key(const struct key *keys, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(keys[i].name, name))
			break;
	return i;
}

/* Checks each key, and puts the keys into the table's order. */
static int sort_keys(struct reader *r, const struct yaml_node *map, const struct key *keys,
		     size_t count, const struct yaml_node **sorted)
{
	const struct yaml_node *k;
	char accepted[400], near[64];

	for (k = map->first; k; k = k->next) {
		size_t i = find_key(keys, count, k->text);

		if (i == count)
			return read_fail(r, k, EINVAL, "unknown key %s%s; accepted: %s",
					 read_found(r, k),
					 suggest_key(keys, count, k->text, near, sizeof(near)),
					 list_keys(keys, count, accepted, sizeof(accepted)));
		if (sorted[i])
			return read_fail(r, k, EINVAL,
					 "key \"%s\" again, first in line %d; "
					 "accepted: each key once",
					 k->text, sorted[i]->line);
		sorted[i] = k;
	}
	return 0;
}

int read_map(struct reader *r, const struct yaml_node *map, const struct key *keys, size_t count,
	     void *into)
{
	const struct yaml_node *sorted[KEYS_MAX] = { NULL };
	size_t path_len = strlen(r->path);
	char accepted[400];
	size_t i;
	int rc;

	if (count > KEYS_MAX)
		return sl_err_set(r->err, E2BIG, "a table of more than %d keys", KEYS_MAX);
	if (map->kind != YAML_MAP)
		return read_fail(r, map, EINVAL, "found %s; accepted: a mapping of %s",
				 read_found(r, map),
				 list_keys(keys, count, accepted, sizeof(accepted)));
	rc = sort_keys(r, map, keys, count, sorted);
	for (i = 0; !rc && i < 2 * count; i++) {
		const struct key *key = &keys[i % count];

		if (!sorted[i % count] || (i < count) != !!(key->flags & KEY_FIRST))
			continue;
		snprintf(r->path + path_len, sizeof(r->path) - path_len, "%s%s",
			 path_len ? "." : "", key->name);
		rc = key_read(r, sorted[i % count]->value, key, into);
		if (!rc)
			r->path[path_len] = 0;
	}
	return rc;
}

int read_require(struct reader *r, const struct yaml_node *map, const char *key)
{
	if (yaml_node_find(map, key))
		return 0;
	return read_fail(r, map, EINVAL, "key \"%s\" is missing", key);
}

int read_each(struct reader *r, const struct yaml_node *node, const struct key *item, void *into)
{
	int rc = 0;

	if (node->kind != YAML_LIST)
		return key_read(r, node, item, into);
	for (node = node->first; node && !rc; node = node->next)
		rc = key_read(r, node, item, into);
	return rc;
}

/* ---- values ---- */

/* Digits of one of the two, no sign, no blank, no octal. */
static int digits_parse(const char *text, size_t len, u64 *ret)
{
	int base = 10;
	u64 value = 0;

	if (len > 2 && text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
		len -= 2;
	}
	if (!len || len > 16)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		char c = text[i] | 0x20;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : 16;

		if (digit >= base || (text[i] < '0'))
			return -EINVAL;
		value = value * base + digit;
	}
	*ret = value;
	return 0;
}

int number_parse(const char *text, u64 *ret, const char **ret_reason)
{
	return digits_parse(text, strlen(text), ret);
}

int read_number(struct reader *r, const char *text, u64 most, const char *accepted, u64 *ret)
{
	u64 value;

	if (number_parse(text, &value, NULL) || value > most)
		return text_refuse(r, accepted);
	*ret = value;
	return 0;
}

int read_range(struct reader *r, const char *text, u64 most, const char *accepted, u32 *ret_first,
	       u32 *ret_last)
{
	const char *dash = strchrnul(text, '-');
	u64 first, last;

	if (digits_parse(text, dash - text, &first) || first > most)
		return text_refuse(r, accepted);
	last = first;
	if (*dash && (number_parse(dash + 1, &last, NULL) || last > most))
		return text_refuse(r, accepted);
	if (first > last)
		return text_refuse(r, "the smaller number first");
	*ret_first = first;
	*ret_last = last;
	return 0;
}

int read_count(struct reader *r, const char *text, u64 *ret)
{
	const char *reason;

	return count_parse(text, ret, &reason) ? text_fail(r, ": %s", reason) : 0;
}

int read_rate(struct reader *r, const char *text, struct rate *ret)
{
	const char *reason;

	return rate_parse(text, ret, &reason) ? text_fail(r, ": %s", reason) : 0;
}

int read_requests(struct reader *r, const char *text, struct rate *ret)
{
	const char *reason;

	return requests_parse(text, ret, &reason) ? text_fail(r, ": %s", reason) : 0;
}

int read_prefix(struct reader *r, const char *text, struct sl_prefix *ret)
{
	const char *reason;

	return sl_prefix_parse(text, ret, &reason) ? text_fail(r, ": %s", reason) : 0;
}

int read_identifier(struct reader *r, const char *text, char ret[SL_NAME_MAX])
{
	size_t len = strlen(text);

	if (!len || len >= SL_NAME_MAX || strspn(text, IDENTIFIER_CHARACTERS) != len)
		return text_refuse(r, "1 to 63 characters of a-z, 0-9 and -");
	memcpy(ret, text, len + 1);
	return 0;
}

int read_interface_name(struct reader *r, const char *text, char ret[16])
{
	size_t len = strlen(text);

	/* As accepted by the kernel's dev_valid_name(), but for what is meant as a pattern. */
	if (len > 15 || strpbrk(text, "/: \t*?[") || !strcmp(text, ".") || !strcmp(text, ".."))
		return text_refuse(r, INTERFACE_NAMES);
	memset(ret, 0, 16);
	memcpy(ret, text, len);
	return 0;
}

int read_copy(struct reader *r, const char *text, char **field)
{
	char *copy = strdup(text);

	if (!copy)
		return read_no_memory(r);
	free(*field);
	*field = copy;
	return 0;
}

bool is_listen_address(const char *text)
{
	struct endpoint endpoint;

	return !endpoint_parse(text, &endpoint) && endpoint.any.sa_family != AF_UNIX &&
	       endpoint.v4.sin_port;
}
