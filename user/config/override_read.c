// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_read.c - `overrides` and `overrides_file` of a limit.
 *
 * The file is lines `SRC,RATE` or `SRC,RATE,BURST`, a header line "src,rate,burst" and comments
 * (#) allowed (override_lines.h); semicolons separate several rates, and their bursts.
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
#include "config/override_lines.h"
#include "conf/config_text.h"

/* An override as read, with its position for later errors. */
struct item {
	struct override_def def;
	int column;
};

/* A list being read. */
struct collect {
	struct reader *r;
	struct limit_def *limit;
	const char *file; /* the name of this list in errors */
	struct item *item;
	size_t count;
	struct numbers known; /* its rates */
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
	int order = sl_prefix_compare(&a->def.src, &b->def.src);

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
		int order =
			i == c->count ? 1
			: k == limit->override_count
				? -1
				: sl_prefix_compare(&c->item[i].def.src, &limit->override[k].src);
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
	return read_fail(r, node, EINVAL,
			 "overrides are per source, but per does not contain source; "
			 "accepted with them: source in per");
}

/* ------------------------------------------------------------------ overrides */

struct reading {
	struct collect *c;
	struct item item;
	struct rates rates;
	bool removed;
};

static int src_read(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct reading *reading = into;

	reading->item.def.line = r->at->line;
	reading->item.column = r->at->column;
	return read_prefix(r, text, &reading->item.def.src);
}

static void src_write(struct writer *w, const struct key *key, const void *from)
{
	char text[SL_PREFIX_TEXT];

	fprintf(w->out, "'%s'",
		sl_prefix_format(&((const struct reading *)from)->item.def.src, text,
				 sizeof(text)));
}

static const struct key_type type_src = {
	.name = "address",
	.text = src_read,
	.write = src_write,
	.accepts = "an address or a prefix, as 192.0.2.7",
};

static const struct key override_rows[] = {
	{ "src", .type = &type_src, .flags = KEY_NEEDED },
	{ "rate", KEY(struct reading, rates.rate), &type_rates },
	{ "burst", KEY(struct reading, rates.burst), &type_bursts },
	{ "removed", KEY(struct reading, removed), &type_bool },
};
static const struct keys override_keys = KEYS(struct reading, override_rows);

static int item_override(struct reader *r, const struct yaml_node *node, void *into)
{
	struct reading reading = { .c = into };
	struct collect *c = into;
	char reason[OVERRIDE_REASON];
	u32 number = 0;
	int rc;

	memset(&reading.rates, 0, sizeof(reading.rates));
	rc = keys_read(r, node, &override_keys, &reading);
	reading.item.def.removed = reading.removed;
	if (!rc && reading.removed && reading.rates.count)
		return read_fail(r, yaml_node_find(node, "removed")->value, EINVAL,
				 "found removed "
				 "with rate; accepted: one of them");
	if (!rc && !reading.removed) {
		rc = read_require(r, node, "rate");
		if (!rc)
			rc = rates_number(c, &reading.rates, &number, reason);
		if (rc == -EINVAL && reading.rates.count)
			return read_fail(r, yaml_node_find(node, "rate")->value, EINVAL, "rate: %s",
					 reason);
	}
	if (rc)
		return rc == -ENOMEM ? read_no_memory(r) : rc;
	reading.item.def.rates = number;
	return append(c->item, c->count, reading.item) ? read_no_memory(r) : 0;
}

static const struct key override_item = { .read = item_override };

int read_overrides(struct reader *r, const struct yaml_node *node, void *into)
{
	struct collect c = { .r = r, .limit = into, .file = r->file };
	int rc;

	if (yaml_node_is_null(node))
		return 0;
	rc = check_per(r, node, into);
	if (!rc)
		rc = read_each(r, node, &override_item, &c);
	if (!rc)
		rc = enter(&c);
	collect_free(&c);
	return rc;
}

void overrides_lines(struct writer *w, const struct key *key, const void *section)
{
	static const struct reading none;
	const struct limit_def *limit = section;
	bool any = false;

	for (size_t i = 0; i < limit->override_count; i++) {
		struct reading of = { .item.def = limit->override[i] };

		if (of.item.def.csv || of.item.def.derived)
			continue;
		of.removed = of.item.def.removed;
		if (!of.removed)
			of.rates = limit->override_rates[of.item.def.rates];
		if (!any)
			fprintf(w->out, "%*soverrides:\n", w->indent, "");
		any = true;
		fprintf(w->out, "%*s- ", w->indent + 2, "");
		keys_write_flow(w, &override_keys, &of, keys_unlike(w, &override_keys, &of, &none));
		fputc('\n', w->out);
	}
}

/* ------------------------------------------------------------------ overrides_file */

/* A line being read. */
struct csv {
	struct override_lines lines;
	struct collect *c;
	struct item item;
};

static int csv_key(void *arg, struct bytes key, int line, size_t column)
{
	struct csv *csv = arg;
	const char *reason;

	csv->item = (struct item){ .def = { .line = line, .csv = true }, .column = column + 1 };
	if (sl_prefix_parse(key.at, &csv->item.def.src, &reason))
		return override_line_fail(&csv->lines, line, column, "found \"%.64s\": %s", key.at,
					  reason);
	return 0;
}

/* Values apart by semicolons. */
static int read_several(struct reader *r, char *text, const struct key *key, struct rates *rates)
{
	size_t count = 1;
	int rc;

	for (const char *c = text; *c; c++)
		count += *c == ';';
	rc = key->type->items(r, count, key, rates);
	while (!rc && count--) {
		r->text = override_field(&text, ';');
		rc = key->type->text(r, r->text, key, rates);
	}
	return rc;
}

static int csv_plan(void *arg, char *text, int line, size_t column, u32 *ret)
{
	struct csv *csv = arg;
	char *start = text, *rate = override_field(&text, ','), *burst = override_field(&text, ',');
	const struct key *rows = override_rates_keys.key;
	char reason[OVERRIDE_REASON], text_of_rates[RATES_MAX * 64];
	struct sl_err why;
	struct reader r = { .file = "", .err = &why, .subject = "" };
	struct rates rates;
	int rc;

	if (*text)
		return override_line_fail(&csv->lines, line, column + (text - start),
					  "found more than three values; accepted: %s",
					  csv->lines.form);
	memset(&rates, 0, sizeof(rates));
	rc = read_several(&r, rate, &rows[0], &rates);
	if (rc)
		return override_line_fail(&csv->lines, line, column + (rate - start), "%s",
					  why.message);
	rc = burst[0] ? read_several(&r, burst, &rows[1], &rates) : 0;
	if (rc)
		return override_line_fail(&csv->lines, line, column + (burst - start), "%s",
					  why.message);
	rc = rates_number(csv->c, &rates, ret, reason);
	if (rc == -EINVAL)
		return override_line_fail(
			&csv->lines, line, column + (rate - start), "found \"%s\": %s",
			override_format_rates(&rates, ";", text_of_rates, sizeof(text_of_rates)),
			reason);
	return rc ? read_no_memory(csv->c->r) : 0;
}

static int csv_add(void *arg, u32 number)
{
	struct csv *csv = arg;
	struct collect *c = csv->c;

	csv->item.def.rates = number;
	return append(c->item, c->count, csv->item) ? read_no_memory(c->r) : 0;
}

int read_overrides_file(struct reader *r, const char *text, const struct key *key, void *into)
{
	const struct policy *policy = r->model;
	struct limit_def *limit = into;
	struct collect c = { .r = r, .limit = limit };
	struct csv csv = {
		.lines = { .r = r,
			   .header = { "src", "rate" },
			   .arg = &csv,
			   .key = csv_key,
			   .plan = csv_plan,
			   .add = csv_add,
			   .form = "SRC,RATE or SRC,RATE,BURST" },
		.c = &c,
	};
	char *path;
	int rc = check_per(r, r->at, limit);

	if (rc)
		return rc;
	/* As for a set's file: relative to the configuration, also in live changes. */
	path = config_text_beside(policy && policy->path ? policy->path : r->file, text);
	limit->overrides_file = strdup(text);
	c.file = csv.lines.file = path;
	rc = path && limit->overrides_file ? override_lines_read(&csv.lines) : read_no_memory(r);
	limit->overrides_digest = csv.lines.digest;
	if (!rc)
		rc = enter(&c);
	free(path);
	collect_free(&c);
	return rc;
}
