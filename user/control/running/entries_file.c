// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * entries_file.c - state_dir/entries: the entries of feeds, a line for each change, in order:
 *
 *     block 192.0.2.0/24 1767225600000000000 crowdsec ssh:bruteforce
 *     exempt 2001:db8::7 0 partners
 *     -block 192.0.2.0/24 crowdsec
 *
 * A list, a prefix, the deadline (UTC, ns; 0: none), the origin, and the reason to the end of the
 * line. A file of JSON would take ten times as long to write, and could not be appended to.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/config_text.h"
#include "control/running/entries_private.h"
#include "lib/file.h"
#include "lib/log.h"

#define FILE_NAME "entries"
#define LOST "the entries of feeds are lost until they are loaded again"
#define TIDY_LINES 1000 /* more history than this, and than entries: it is written again */

static const char *const list_name[] = { [LIST_BLOCK] = "block", [LIST_EXEMPT] = "exempt" };

/* ------------------------------------------------------------------ writing */

static void write_line(FILE *out, const char *origin, const struct entry *entry, bool remove)
{
	char text[SL_PREFIX_TEXT];

	sl_prefix_format(&entry->prefix, text, sizeof(text));
	if (remove)
		fprintf(out, "-%s %s %s\n", list_name[entry->list], text, origin);
	else
		fprintf(out, "%s %s %llu %s%s%s\n", list_name[entry->list], text,
			entry->until_utc_ns, origin, entry->reason[0] ? " " : "", entry->reason);
}

int entries_file_append(struct entries *entries, const struct entry_change *change, size_t count,
			struct sl_err *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	off_t end;
	int r = 0;

	if (!out)
		return sl_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		write_line(out, entries->table.name[change[i].origin], &change[i].entry,
			   change[i].remove);
	if (fclose(out) != 0) {
		free(text);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	end = lseek(entries->fd, 0, SEEK_END);
	r = end < 0 ? -errno : file_write(entries->fd, text, size);
	if (!r && fdatasync(entries->fd) < 0)
		r = -errno;
	if (r < 0 && end >= 0 && ftruncate(entries->fd, end) < 0)
		log_error("cannot shorten state_dir/%s: %s", FILE_NAME, strerror(errno));
	free(text);
	if (r < 0)
		return sl_err_set(err, -r, "cannot write state_dir/%s: %s", FILE_NAME,
				  strerror(-r));
	entries->lines += count;
	return 0;
}

static int open_file(struct entries *entries, const char *path)
{
	if (entries->fd >= 0)
		close(entries->fd);
	entries->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	return entries->fd < 0 ? -errno : 0;
}

void entries_file_tidy(struct entries *entries, const char *state_dir)
{
	const struct entry_table *table = &entries->table;
	char *text = NULL, *path = file_join(state_dir, FILE_NAME);
	size_t size = 0, lines = 0;
	struct sl_err err;
	FILE *out;
	int r;

	if ((!entries->outdated && entries->lines < 2 * (size_t)table->live + TIDY_LINES) || !path)
		goto out;
	out = open_memstream(&text, &size);
	if (!out)
		goto out;
	for (u32 i = 0; i < table->count; i++) {
		struct entry entry;

		if (!table->held[i].used || table->held[i].origin < ORIGIN_FEEDS)
			continue;
		entry = entry_of(&table->held[i]);
		write_line(out, table->name[table->held[i].origin], &entry, false);
		lines++;
	}
	if (fclose(out) != 0)
		goto out;
	r = file_replace(path, NULL, text, size, 0640, &err);
	if (!r)
		r = open_file(entries, path) < 0
			    ? sl_err_set(&err, errno, "cannot open %s: %s", path, strerror(errno))
			    : 0;
	if (r < 0) {
		if (!entries->unsaved)
			log_error("%s", err.message);
	} else {
		entries->lines = lines;
		entries->outdated = entries->unsaved = false;
	}
out:
	free(text);
	free(path);
}

/* ------------------------------------------------------------------ reading */

/* The next word of a line; NULL: there is none. */
static char *next_word(char **at)
{
	char *word = strsep(at, " ");

	return word && *word ? word : NULL;
}

static bool parse_head(char **at, bool *ret_remove, struct entry *ret)
{
	const char *list = next_word(at), *prefix = next_word(at), *reason;

	if (!list || !prefix)
		return false;
	*ret_remove = list[0] == '-';
	list += *ret_remove;
	ret->list = !strcmp(list, list_name[LIST_EXEMPT]) ? LIST_EXEMPT : LIST_BLOCK;
	return !strcmp(list, list_name[ret->list]) &&
	       sl_prefix_parse(prefix, &ret->prefix, &reason) == 0;
}

/* One line, without its end; it is changed. 0, -EINVAL or -ENOMEM. */
static int take_line(struct entry_table *table, char *line)
{
	struct entry entry = { .until_utc_ns = 0 };
	char *at = line, *until, *origin, *end;
	struct held *held;
	bool remove;
	int number;

	if (!parse_head(&at, &remove, &entry))
		return -EINVAL;
	until = remove ? NULL : next_word(&at);
	origin = next_word(&at);
	if (!origin || strlen(origin) >= ENTRY_ORIGIN_MAX || (!remove && !until))
		return -EINVAL;
	number = entry_table_origin(table, origin, true);
	if (number < 0)
		return -EINVAL;
	if (remove) {
		held = entry_table_find(table, (u32)number, entry.list, &entry.prefix);
		if (held)
			entry_table_del(table, held);
		return 0;
	}
	entry.until_utc_ns = strtoull(until, &end, 10);
	if (*end ||
	    (at && (strlen(at) >= sizeof(entry.reason) || !config_text_printable(at, strlen(at)))))
		return -EINVAL;
	if (at)
		strcpy(entry.reason, at);
	return table->live < ENTRIES_MAX ? entry_table_put(table, (u32)number, &entry, 0) : -EINVAL;
}

/*
 * *ret_good: the length up to the end of the last whole line. Bad lines are skipped; -EINVAL if
 * more than half of them are.
 */
static int take_lines(struct entries *entries, char *text, size_t size, size_t *ret_good)
{
	size_t bad = 0, first = 0;
	char *at = text, *end;
	int r = 0;

	while (r != -ENOMEM && (end = memchr(at, '\n', size - (size_t)(at - text)))) {
		*end = '\0';
		r = take_line(&entries->table, at);
		at = end + 1;
		entries->lines++;
		bad += r == -EINVAL;
		if (bad && !first)
			first = entries->lines;
	}
	*ret_good = (size_t)(at - text);
	if (r == -ENOMEM || bad > entries->lines / 2)
		return r == -ENOMEM ? r : -EINVAL;
	if (bad)
		log_error("state_dir/" FILE_NAME
			  ": skipped %zu of %zu lines that are no entries, the first is "
			  "line %zu",
			  bad, entries->lines, first);
	return 0;
}

int entries_file_open(struct entries *entries, const char *state_dir, struct sl_err *err)
{
	char *path = file_join(state_dir, FILE_NAME), *text = NULL;
	size_t size = 0, good = 0;
	struct sl_err ignored;
	int r = path ? config_text_read(path, true, &text, &size, &ignored) : -ENOMEM;

	if (r == -ENOENT)
		r = 0;
	if (!r && text)
		r = take_lines(entries, text, size, &good);
	if (r == -EINVAL) {
		file_put_aside(state_dir, FILE_NAME, "most lines are no entries", LOST);
		entry_table_free(&entries->table);
		entries->lines = good = 0;
		r = 0;
	}
	if (!r)
		r = open_file(entries, path);
	if (!r && ftruncate(entries->fd, (off_t)good) < 0)
		r = -errno;
	free(text);
	if (r < 0)
		r = sl_err_set(err, -r, "cannot open %s: %s", path ? path : FILE_NAME,
			       strerror(-r));
	free(path);
	return r;
}
