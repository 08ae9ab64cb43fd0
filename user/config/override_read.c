// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_read.c - `overrides` and `overrides_file` of a limit.
 *
 * The file is lines `SRC,RATE` or `SRC,RATE,BURST`, a header line "src,rate,burst" and comments
 * (#) allowed; semicolons separate several rates, and their bursts. It is not the CSV of
 * spreadsheets: quotes are refused, as no field needs them.
 *
 * A hundred thousand are read, sorted and inserted at once; a hash finds equal rates, so that a
 * list of customers on a few plans has a few rates.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/limit_types.h"
#include "config/override.h"
#include "conf/config_text.h"

#define LINE_MAX_BYTES 512
#define FIELDS 3

/* An override as read, with its position for later errors. */
struct item {
	struct override_def def;
	int column;
};

/* A list being read. */
struct collect {
	struct reader *r;
	struct limit_def *limit;
	const char *file;		/* the name of this list in errors */
	bool began;			/* of a file: a line that is no comment was read */
	struct item *item;
	size_t count;
	struct numbers known;		/* its rates */
};

/*
 * The index of these rates in the limit; new ones are checked and added. 0; -EINVAL with the
 * reason; -ENOMEM.
 */
static int rates_number(struct collect *c, const struct rates *rates, u32 *ret,
			char reason[OVERRIDE_REASON])
{
	size_t before = c->limit->override_rates_count;
	int rc = override_rates_number(&c->known, c->limit, rates, ret);

	if (rc || c->limit->override_rates_count == before)
		return rc;
	return override_rates_check(c->limit, rates, reason);
}

/* ------------------------------------------------------------------ the list as a whole */

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	int order = override_compare(&a->def.src, &b->def.src);

	/* Of two overrides for one source the later one is the error. */
	return order ? order : (int)a->def.line - (int)b->def.line;
}

static int refuse_again(const struct collect *c, const struct item *first, const struct item *again)
{
	char text[SL_PREFIX_TEXT];

	return sl_err_at(c->r->err, EINVAL, c->file, again->def.line, again->column,
			 "%s%s%s: found %s again, first in line %u; accepted: each source once",
			 c->r->subject, c->r->subject[0] ? ": " : "", c->r->path,
			 sl_prefix_format(&first->def.src, text, sizeof(text)), first->def.line);
}

/* Merges the sorted new overrides into the limit's; on a tie the existing one comes first. */
static int enter(struct collect *c)
{
	struct limit_def merged = { .name = "" };
	struct limit_def *limit = c->limit;
	size_t i = 0, k = 0;
	int rc = 0;

	if (c->count)
		qsort(c->item, c->count, sizeof(*c->item), compare_items);
	for (i = 1; i < c->count; i++)
		if (sl_prefix_equal(&c->item[i - 1].def.src, &c->item[i].def.src))
			return refuse_again(c, &c->item[i - 1], &c->item[i]);
	for (i = 0; !rc && (i < c->count || k < limit->override_count);) {
		int order = i == c->count		? 1 :
			    k == limit->override_count ? -1 :
							  override_compare(&c->item[i].def.src,
									   &limit->override[k].src);
		if (!order)
			limit->override[k].hides = true;
		if (order < 0)
			rc = append(merged.override, merged.override_count, c->item[i].def);
		else
			rc = append(merged.override, merged.override_count, limit->override[k]);
		i += order <= 0;
		k += order >= 0;
	}
	if (rc) {
		free(merged.override);
		return read_no_memory(c->r);
	}
	free(limit->override);
	limit->override = merged.override;
	limit->override_count = merged.override_count;
	return 0;
}

static void collect_free(struct collect *c)
{
	free(c->item);
	numbers_free(&c->known);
}

static int check_per(struct reader *r, const struct yaml_node *node, const struct limit_def *limit)
{
	if (limit->per & SL_PER_SOURCE)
		return 0;
	return read_fail(r, node, EINVAL, "overrides are per source, but per does not contain source; "
			 "accepted with them: source in per");
}

/* ------------------------------------------------------------------ overrides */

struct reading {
	struct collect *c;
	struct item item;
	struct rates rates;
	bool removed;
};

static int key_src(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *text = NULL, *reason;
	struct reading *reading = into;
	int rc = read_text(r, node, "an address or a prefix, as 192.0.2.7", &text);

	if (rc)
		return rc;
	if (sl_prefix_parse(text, &reading->item.def.src, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	reading->item.def.line = node->line;
	reading->item.column = node->column;
	return 0;
}

static const struct key override_keys[] = {
	{ "src", .read = key_src },
	{ "rate", KEY(struct reading, rates.rate), &type_rates },
	{ "burst", KEY(struct reading, rates.burst), &type_bursts },
	{ "removed", KEY(struct reading, removed), &type_bool },
};

static int item_override(struct reader *r, const struct yaml_node *node, void *into)
{
	struct reading reading = { .c = into };
	struct collect *c = into;
	char reason[OVERRIDE_REASON];
	u32 number = 0;
	int rc;

	memset(&reading.rates, 0, sizeof(reading.rates));
	rc = read_map(r, node, override_keys, ARRAY_SIZE(override_keys), &reading);
	if (!rc)
		rc = read_require(r, node, "src");
	reading.item.def.removed = reading.removed;
	if (!rc && reading.removed && reading.rates.count)
		return read_fail(r, yaml_node_find(node, "removed")->value, EINVAL, "found removed "
				 "with rate; accepted: one of them");
	if (!rc && !reading.removed) {
		rc = read_require(r, node, "rate");
		if (!rc)
			rc = rates_number(c, &reading.rates, &number, reason);
		if (rc == -EINVAL && reading.rates.count)
			return read_fail(r, yaml_node_find(node, "rate")->value, EINVAL,
					 "rate: %s", reason);
	}
	if (rc)
		return rc == -ENOMEM ? read_no_memory(r) : rc;
	reading.item.def.rates = number;
	return append(c->item, c->count, reading.item) ? read_no_memory(r) : 0;
}

int read_overrides(struct reader *r, const struct yaml_node *node, void *into)
{
	struct collect c = { .r = r, .limit = into, .file = r->file };
	int rc;

	if (yaml_node_is_null(node))
		return 0;
	rc = check_per(r, node, into);
	if (!rc)
		rc = read_each(r, node, item_override, &c);
	if (!rc)
		rc = enter(&c);
	collect_free(&c);
	return rc;
}

/* ------------------------------------------------------------------ overrides_file */

static int line_fail(const struct collect *c, int line, const char *start, const char *at,
		     const char *format, const char *found, const char *reason)
{
	char words[448];

	snprintf(words, sizeof(words), format, found, reason);
	return sl_err_at(c->r->err, EINVAL, c->file, line, at - start + 1, "%s%s%s: %s",
			 c->r->subject, c->r->subject[0] ? ": " : "", c->r->path, words);
}

/* Splits a line into fields and trims them; returns how many, at most FIELDS + 1. */
static size_t split_line(char *line, char *field[FIELDS + 1])
{
	size_t count = 0;
	char *end;

	for (;;) {
		char *comma = strchrnul(line, ',');
		bool last = !*comma;

		while (*line == ' ' || *line == '\t')
			line++;
		for (end = comma; end > line && strchr(" \t\r", end[-1]); end--)
			;
		field[count++] = line;
		*end = 0;
		if (last || count > FIELDS)
			return count;
		line = comma + 1;
	}
}

static bool is_header(char *const *field, size_t count)
{
	return count >= 2 && !strcasecmp(field[0], "src") && !strcasecmp(field[1], "rate") &&
	       (count == 2 || (count == FIELDS && !strcasecmp(field[2], "burst")));
}

static int add_line(void *arg, char *line, int number)
{
	struct collect *c = arg;
	struct item item = { .def = { .line = number, .csv = true }, .column = 1 };
	char *field[FIELDS + 1], *quote, *comment = strchr(line, '#');
	char reason_buf[OVERRIDE_REASON];
	const char *reason = reason_buf;
	bool about_burst = false;
	struct rates rates;
	size_t count;
	u32 rates_index;
	int rc;

	if (comment)
		*comment = 0;
	if (line[strspn(line, " \t\r")] == 0)
		return 0;
	quote = strpbrk(line, "\"'");
	if (quote)
		return line_fail(c, number, line, quote, "found a quote; accepted: %s%s",
				 "SRC,RATE or SRC,RATE,BURST, without quotes", "");
	count = split_line(line, field);
	if (!c->began && is_header(field, count)) {
		c->began = true;
		return 0;
	}
	c->began = true;
	if (count < 2 || count > FIELDS)
		return line_fail(c, number, line, line, "found %s; accepted: %s",
				 count < 2 ? "one value" : "more than three values",
				 "SRC,RATE or SRC,RATE,BURST");
	item.column = field[0] - line + 1;
	if (sl_prefix_parse(field[0], &item.def.src, &reason))
		return line_fail(c, number, line, field[0], "found \"%.64s\": %s", field[0], reason);
	if (override_rates_parse(field[1], count > 2 && field[2][0] ? field[2] : NULL, ';', &rates,
				 &about_burst, &reason))
		return line_fail(c, number, line, field[about_burst ? 2 : 1],
				 "found \"%.64s\": %s", field[about_burst ? 2 : 1], reason);
	rc = rates_number(c, &rates, &rates_index, reason_buf);
	if (rc == -EINVAL)
		return line_fail(c, number, line, field[1], "found \"%.64s\": %s", field[1],
				 reason_buf);
	item.def.rates = rates_index;
	if (rc || append(c->item, c->count, item))
		return read_no_memory(c->r);
	return 0;
}

int read_overrides_file(struct reader *r, const struct yaml_node *node, void *into)
{
	const struct policy *policy = r->model;
	struct limit_def *limit = into;
	struct collect c = { .r = r, .limit = limit };
	const char *text;
	char *path;
	int rc;

	rc = read_text(r, node, "the path of a file with lines SRC,RATE or SRC,RATE,BURST", &text);
	if (!rc)
		rc = check_per(r, node, limit);
	if (rc)
		return rc;
	/* As for a set's file: relative to the configuration, also in live changes. */
	path = config_text_beside(policy && policy->path ? policy->path : r->file, text);
	limit->overrides_file = strdup(text);
	c.file = path;
	rc = path && limit->overrides_file ? config_text_lines(path, add_line, &c, r->err)
					   : read_no_memory(r);
	if (!rc)
		rc = enter(&c);
	free(path);
	collect_free(&c);
	return rc;
}
