// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* read_list.c - addresses: sets (inline or in a file), block and exempt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/read.h"
#include "conf/config_text.h"

#define ADDRESSES "an address, a prefix as 192.0.2.0/24, or a set as '@name'"

static int read_prefix(struct reader *r, const struct yaml_node *node, struct sl_prefix *ret)
{
	const char *text = NULL, *reason;
	int rc = read_text(r, node, ADDRESSES, &text);

	if (rc)
		return rc;
	if (sl_prefix_parse(text, ret, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	return 0;
}

int read_prefix_or_set(struct reader *r, const struct yaml_node *node, struct sl_prefix *ret_prefix,
		       const struct set_def **ret_set)
{
	*ret_set = NULL;
	if (node->kind != YAML_TEXT || node->text[0] != '@')
		return read_prefix(r, node, ret_prefix);
	*ret_set = policy_find_set(r->model, node->text + 1);
	if (!*ret_set)
		return read_fail(r, node, EINVAL, "found %s, but there is no such set; accepted: "
				 "a name under sets", read_found(r, node));
	return 0;
}

/* ---- sets ---- */

static int set_add(struct reader *r, const struct yaml_node *node, void *into)
{
	struct set_def *set = into;
	struct sl_prefix prefix;
	int rc;

	if (node->kind == YAML_TEXT && node->text[0] == '@')
		return read_refuse(r, node, "addresses and prefixes; a set is no part of a set");
	rc = read_prefix(r, node, &prefix);
	if (!rc && append(set->prefix, set->count, prefix))
		rc = read_no_memory(r);
	return rc;
}

/* One line of a set's file, 0-terminated; modifies `line`. */
static int set_add_line(struct reader *r, const char *file, char *line, int number,
			struct set_def *set)
{
	char *comment = strchr(line, '#'), *start = line, *end;
	struct sl_prefix prefix;
	const char *reason;

	if (comment)
		*comment = 0;
	while (*start == ' ' || *start == '\t')
		start++;
	end = start + strlen(start);
	while (end > start && strchr(" \t\r", end[-1]))
		*--end = 0;
	if (start == end)
		return 0;
	if (sl_prefix_parse(start, &prefix, &reason))
		return sl_err_at(r->err, EINVAL, file, number, (int)(start - line) + 1,
				 "set \"%s\": found \"%.48s\": %s", set->name, start, reason);
	return append(set->prefix, set->count, prefix) ? read_no_memory(r) : 0;
}

static int set_load(struct reader *r, const char *file, struct set_def *set)
{
	char *text, *line, *end;
	int number = 1;
	size_t size;
	int rc;

	rc = config_text_read(file, true, &text, &size, r->err);
	if (rc)
		return rc;
	rc = config_text_check(file, text, size, r->err);
	for (line = text; !rc && line < text + size; line = end + 1, number++) {
		end = strchrnul(line, '\n');
		*end = 0;
		rc = set_add_line(r, file, line, number, set);
	}
	free(text);
	return rc;
}

/* A relative path is relative to the file that names it, not to the working directory. */
static int read_set_file(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *path, *slash = strrchr(r->file, '/');
	struct set_def *set = into;
	char *joined = NULL;
	int rc;

	rc = read_text(r, node, "the path of a file with one prefix a line", &path);
	if (rc)
		return rc;
	set->file = strdup(path);
	if (!set->file)
		return read_no_memory(r);
	if (path[0] == '/' || !slash)
		return set_load(r, path, set);
	if (asprintf(&joined, "%.*s/%s", (int)(slash - r->file), r->file, path) < 0)
		return read_no_memory(r);
	rc = set_load(r, joined, set);
	free(joined);
	return rc;
}

static const struct key set_file_keys[] = { { "file", read_set_file } };

static int read_set(struct reader *r, const struct yaml_node *key, struct set_def *set)
{
	const struct yaml_node *value = key->value;
	int rc;

	set->pos = (struct config_pos){ key->line, key->column };
	rc = read_identifier(r, key, set->name);
	if (rc)
		return rc;
	snprintf(r->path, sizeof(r->path), "sets.%s", set->name);
	if (value->kind != YAML_MAP)
		return yaml_node_is_null(value) ? 0 : read_each(r, value, set_add, set);
	rc = read_require(r, value, "file");
	return rc ? rc : read_map(r, value, set_file_keys, ARRAY_SIZE(set_file_keys), set);
}

static int compare_sets(const void *a, const void *b)
{
	return strcmp(((const struct set_def *)a)->name, ((const struct set_def *)b)->name);
}

/* The names are sorted, for policy_find_set() and to detect duplicates. */
static int sort_sets(struct reader *r, struct policy *policy)
{
	size_t i;

	if (policy->set_count)
		qsort(policy->set, policy->set_count, sizeof(*policy->set), compare_sets);
	for (i = 1; i < policy->set_count; i++) {
		const struct set_def *a = &policy->set[i - 1], *b = &policy->set[i];
		const struct set_def *later = a->pos.line > b->pos.line ||
			(a->pos.line == b->pos.line && a->pos.column > b->pos.column) ? a : b;

		if (!strcmp(a->name, b->name))
			return sl_err_at(r->err, EINVAL, r->file, later->pos.line,
					 later->pos.column, "sets: key \"%s\" again, first in "
					 "line %d; accepted: each key once", a->name,
					 (later == a ? b : a)->pos.line);
	}
	return 0;
}

int read_sets(struct reader *r, const struct yaml_node *node, void *into)
{
	struct policy *policy = into;
	const struct yaml_node *key;
	int rc = 0;

	if (yaml_node_is_null(node))
		return 0;
	if (node->kind != YAML_MAP)
		return read_refuse(r, node, "a mapping from names to addresses");
	for (key = node->first; key && !rc; key = key->next) {
		/* in the policy at once, so that it is freed with it on failure */
		if (append(policy->set, policy->set_count, (struct set_def){ 0 }))
			return read_no_memory(r);
		rc = read_set(r, key, &policy->set[policy->set_count - 1]);
		if (!rc)
			snprintf(r->path, sizeof(r->path), "sets");
	}
	return rc ? rc : sort_sets(r, policy);
}

/* ---- block and exempt ---- */

/* The list being read and, for an entry as a mapping, its other keys. */
struct list_reader {
	struct list_def *list;
	struct list_entry entry;
};

static int read_entry_until(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_reader *lr = into;
	const char *text = NULL, *reason;
	int rc = read_text(r, node, "a time, as 2030-01-31T12:00:00Z", &text);

	if (rc)
		return rc;
	if (utc_parse(text, &lr->entry.until_utc_ns, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	return 0;
}

static int read_entry_reason(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_reader *lr = into;

	if (node->kind != YAML_TEXT || strlen(node->text) >= sizeof(lr->entry.reason))
		return read_refuse(r, node, "up to 63 bytes of text");
	strcpy(lr->entry.reason, node->text);
	return 0;
}

static int read_entry_prefix(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_reader *lr = into;
	struct list_entry *entry = &lr->entry;
	const struct set_def *set;
	struct list_set ref;
	int rc = read_prefix_or_set(r, node, &entry->prefix, &set);

	if (rc)
		return rc;
	entry->pos = (struct config_pos){ node->line, node->column };
	if (!set)
		return append(lr->list->entry, lr->list->count, *entry) ? read_no_memory(r) : 0;
	ref = (struct list_set){ .until_utc_ns = entry->until_utc_ns, .pos = entry->pos };
	memcpy(ref.name, set->name, sizeof(ref.name));
	memcpy(ref.reason, entry->reason, sizeof(ref.reason));
	return append(lr->list->set, lr->list->set_count, ref) ? read_no_memory(r) : 0;
}

/* `prefix` last: it adds the entries with the values of the other keys. */
static const struct key entry_keys[] = {
	{ "until", read_entry_until },
	{ "reason", read_entry_reason },
	{ "prefix", read_entry_prefix },
};

static int read_entry(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_reader lr = { .list = into };
	int rc;

	if (node->kind != YAML_MAP)
		return read_entry_prefix(r, node, &lr);
	rc = read_require(r, node, "prefix");
	return rc ? rc : read_map(r, node, entry_keys, ARRAY_SIZE(entry_keys), &lr);
}

static int read_entries(struct reader *r, const struct yaml_node *node, struct list_def *list)
{
	int rc = yaml_node_is_null(node) ? 0 : read_each(r, node, read_entry, list);

	if (!rc && list_expand(r->model, list))
		rc = read_no_memory(r);
	return rc;
}

int read_block(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_entries(r, node, &((struct policy *)into)->list[LIST_BLOCK]);
}

int read_exempt(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_entries(r, node, &((struct policy *)into)->list[LIST_EXEMPT]);
}

int read_never_ban(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_def *list = &((struct policy *)into)->list[LIST_NEVER_BAN];
	int rc = read_entries(r, node, list);
	bool ends = false;

	for (size_t i = 0; i < list->count; i++)
		ends |= list->entry[i].until_utc_ns != 0;
	for (size_t i = 0; i < list->set_count; i++)
		ends |= list->set[i].until_utc_ns != 0;
	if (!rc && ends)
		rc = read_refuse(r, node, "addresses, prefixes and sets, without until");
	return rc;
}
