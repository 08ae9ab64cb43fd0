// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* read_list.c - addresses: sets (inline or in a file), block, exempt and never_ban. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "config/keys.h"

int read_prefix_or_set(struct reader *r, const char *text, struct sl_prefix *ret_prefix,
		       const struct set_def **ret_set)
{
	*ret_set = NULL;
	if (text[0] != '@')
		return read_prefix(r, text, ret_prefix);
	*ret_set = policy_find_set(r->model, text + 1);
	return *ret_set ? 0
			: text_fail(r, ", but there is no such set; accepted: a name under sets");
}

/* ---- sets ---- */

static int set_add(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct set_def *set = into;
	struct sl_prefix prefix;
	int rc;

	if (text[0] == '@')
		return text_refuse(r, "addresses and prefixes; a set is no part of a set");
	rc = read_prefix(r, text, &prefix);
	if (!rc && append(set->prefix, set->count, prefix))
		rc = read_no_memory(r);
	return rc;
}

static const struct key set_item = { .text = set_add, .accepted = ADDRESSES };

/* One line of a set's file, without comment: a prefix, or it is skipped and *why is set. */
static int set_add_line(struct reader *r, struct set_def *set, char *line, const char **why)
{
	struct sl_prefix prefix;
	char *end;

	*strchrnul(line, '#') = 0;
	line += strspn(line, " \t\r");
	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]); end--)
		end[-1] = 0;
	if (!*line)
		return 0;
	set->lines++;
	if (sl_prefix_parse(line, &prefix, why) == 0)
		return append(set->prefix, set->count, prefix) ? read_no_memory(r) : 0;
	set->skipped++;
	return 0;
}

/*
 * One bad line does not take the others out of force; a file of which more than half is bad is no
 * list. Its lines are not shown: a client that names a file may lack the right to read it.
 */
static int set_add_lines(struct reader *r, const char *path, char *text, size_t size,
			 struct set_def *set)
{
	const char *why = NULL, *first = NULL;
	char *line, *end;
	int rc = 0, number = 1;

	for (line = text; !rc && line < text + size; line = end + 1, number++) {
		end = line + strcspn(line, "\n");
		*end = 0;
		rc = set_add_line(r, set, line, &why);
		if (why && !first) {
			first = why;
			set->skipped_first = number;
		}
	}
	if (!rc && set->skipped > set->lines / 2)
		rc = sl_err_at(r->err, EINVAL, path, set->skipped_first, 1,
			       "%s%s%s: %zu of %zu lines are "
			       "no prefixes, the first: %s",
			       r->subject, r->subject[0] ? ": " : "", r->path, set->skipped,
			       set->lines, first);
	return rc;
}

static int read_set_file(struct reader *r, const char *name, const struct key *key, void *into)
{
	struct set_def *set = into;
	char *path = config_text_beside(r->file, name), *text = NULL;
	size_t size;
	int rc;

	set->file = strdup(name);
	rc = set->file && path ? config_text_read(path, true, &text, &size, r->err)
			       : read_no_memory(r);
	if (!rc) {
		set->digest = config_text_digest(text, size);
		rc = set_add_lines(r, path, text, size, set);
	}
	free(text);
	free(path);
	return rc;
}

static const struct key set_file_keys[] = {
	{ "file", .text = read_set_file, .accepted = "the path of a file with one prefix a line" },
};

static int read_set(struct reader *r, const struct yaml_node *key, struct set_def *set)
{
	const struct yaml_node *value = key->value;
	int rc;

	set->pos = (struct config_pos){ key->line, key->column };
	r->at = key;
	rc = read_identifier(r, key->text, set->name);
	if (rc)
		return rc;
	snprintf(r->path, sizeof(r->path), "sets.%s", set->name);
	if (value->kind != YAML_MAP)
		return yaml_node_is_null(value) ? 0 : read_each(r, value, &set_item, set);
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
		const struct set_def *later =
			a->pos.line > b->pos.line || (a->pos.line == b->pos.line &&
						      a->pos.column > b->pos.column)
				? a
				: b;

		if (!strcmp(a->name, b->name))
			return sl_err_at(r->err, EINVAL, r->file, later->pos.line,
					 later->pos.column,
					 "sets: key \"%s\" again, first in "
					 "line %d; accepted: each key once",
					 a->name, (later == a ? b : a)->pos.line);
	}
	return 0;
}

static int read_sets(struct reader *r, const struct yaml_node *node, void *into)
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

static void sets_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct policy *policy = section;

	if (!policy->set_count)
		return;
	write_begin(w);
	fputs("sets:\n", w->out);
	w->indent = 2;
	for (size_t i = 0; i < policy->set_count; i++) {
		const struct set_def *set = &policy->set[i];
		char name[SL_NAME_MAX + 2];

		/* quoted: a set may be called null */
		snprintf(name, sizeof(name), "'%s'", set->name);
		if (set->file) {
			fprintf(w->out, "  %s: {file: ", name);
			write_text(w->out, set->file);
			fputs("}\n", w->out);
		} else if (set->count) {
			write_list(w, name, set->prefix, set->count, format_prefix);
		} else {
			fprintf(w->out, "  %s: []\n", name);
		}
	}
	w->indent = 0;
}

static int sets_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	return read_sets(r, node, section);
}

/* For copies: it is read and written by the functions above. */
static const struct key prefix_item = { .type = &type_prefix };
static const struct key set_rows[] = {
	{ "prefix", KEY_LIST(struct set_def, prefix, count), .item = &prefix_item },
	{ "file", KEY(struct set_def, file), &type_text },
};
static const struct keys set_keys = KEYS(struct set_def, set_rows);
const struct key set_element = { .type = &type_map, .keys = &set_keys };

const struct key_type type_sets = TYPE_LIST("mapping", .read = sets_read, .lines = sets_lines);

/* ---- block, exempt, never_ban ---- */

/* The list being read and, for an entry as a mapping, its other keys. */
struct list_reader {
	struct list_def *list;
	struct list_entry entry;
};

static int read_entry_until(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct list_reader *lr = into;
	const char *reason;

	return utc_parse(text, &lr->entry.until_utc_ns, &reason) ? text_fail(r, ": %s", reason) : 0;
}

/* Any text, also an empty one, or the word null. */
static int read_entry_reason(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_reader *lr = into;

	if (node->kind != YAML_TEXT || strlen(node->text) >= sizeof(lr->entry.reason))
		return read_refuse(r, node, "up to 63 bytes of text");
	strcpy(lr->entry.reason, node->text);
	return 0;
}

static int read_entry_prefix(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct list_reader *lr = into;
	struct list_entry *entry = &lr->entry;
	const struct set_def *set;
	struct list_set ref;
	int rc = read_prefix_or_set(r, text, &entry->prefix, &set);

	if (rc)
		return rc;
	entry->pos = (struct config_pos){ r->at->line, r->at->column };
	if (!set)
		return append(lr->list->entry, lr->list->count, *entry) ? read_no_memory(r) : 0;
	ref.entry = *entry;
	memcpy(ref.name, set->name, sizeof(ref.name));
	return append(lr->list->set, lr->list->set_count, ref) ? read_no_memory(r) : 0;
}

/* `prefix` last: it adds the entries with the values of the other keys. */
static const struct key entry_keys[] = {
	{ "until", .text = read_entry_until, .accepted = "a time, as 2030-01-31T12:00:00Z" },
	{ "reason", .read = read_entry_reason },
	{ "prefix", .text = read_entry_prefix, .accepted = ADDRESSES },
};

static int read_entry(struct reader *r, const struct yaml_node *node, void *into)
{
	struct list_reader lr = { .list = into };
	int rc;

	if (node->kind != YAML_MAP)
		return key_read(r, node, &entry_keys[ARRAY_SIZE(entry_keys) - 1], &lr);
	rc = read_require(r, node, "prefix");
	return rc ? rc : read_map(r, node, entry_keys, ARRAY_SIZE(entry_keys), &lr);
}

static const struct key entry_item = { .read = read_entry };

static int read_entries(struct reader *r, const struct yaml_node *node, struct list_def *list)
{
	int rc = yaml_node_is_null(node) ? 0 : read_each(r, node, &entry_item, list);

	if (!rc && list_expand(r->model, list))
		rc = read_no_memory(r);
	return rc;
}

static void write_entry(struct writer *w, const char *name, const struct list_entry *entry)
{
	char text[64];

	fputs("  - ", w->out);
	if (!entry->until_utc_ns && !entry->reason[0]) {
		write_text(w->out, name);
		fputc('\n', w->out);
		return;
	}
	fputs("{prefix: ", w->out);
	write_text(w->out, name);
	if (entry->until_utc_ns)
		fprintf(w->out, ", until: '%s'",
			utc_format(entry->until_utc_ns, text, sizeof(text)));
	if (entry->reason[0]) {
		fputs(", reason: ", w->out);
		write_text(w->out, entry->reason);
	}
	fputs("}\n", w->out);
}

static void entries_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct list_def *list = key_field_of(key, section);
	char text[SL_NAME_MAX + 2];
	size_t i, written = list->set_count;

	for (i = 0; i < list->count; i++)
		written += !list->entry[i].derived;
	if (!written)
		return;
	write_begin(w);
	fprintf(w->out, "%s:\n", key->name);
	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entry[i];

		if (!entry->from && !entry->derived)
			write_entry(w, sl_prefix_format(&entry->prefix, text, sizeof(text)), entry);
	}
	for (i = 0; i < list->set_count; i++) {
		snprintf(text, sizeof(text), "@%s", list->set[i].name);
		write_entry(w, text, &list->set[i].entry);
	}
}

static int entries_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			void *section)
{
	struct list_def *list = key_field(key, section);
	int rc = read_entries(r, node, list);
	bool ends = false;

	for (size_t i = 0; i < list->count; i++)
		ends |= list->entry[i].until_utc_ns != 0;
	for (size_t i = 0; i < list->set_count; i++)
		ends |= list->set[i].entry.until_utc_ns != 0;
	if (!rc && ends && key->type == &type_entries_for_good)
		rc = read_refuse(r, node, "addresses, prefixes and sets, without until");
	return rc;
}

static void entries_copy(const struct key *key, void *section, int *rc)
{
	struct list_def *list = key_field(key, section);

	list->entry = array_copy(list->entry, list->count, sizeof(*list->entry), rc);
	list->set = array_copy(list->set, list->set_count, sizeof(*list->set), rc);
	list->head = array_copy(list->head, list->head_count, sizeof(*list->head), rc);
}

static void entries_clear(const struct key *key, void *section)
{
	struct list_def *list = key_field(key, section);

	free(list->entry);
	free(list->set);
	free(list->head);
	memset(list, 0, sizeof(*list));
}

/* clang-format off */
#define TYPE_ENTRIES                                                                      \
	{ .name = "list", .read = entries_read, .lines = entries_lines, .copy = entries_copy, \
	  .clear = entries_clear }
/* clang-format on */

const struct key_type type_entries = TYPE_ENTRIES;
const struct key_type type_entries_for_good = TYPE_ENTRIES;
