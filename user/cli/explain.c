// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain.c - prints the result of sluicectl explain. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static const struct column limit_columns[] = {
	{ .heading = "LIMIT" }, { .heading = "AT" }, { .heading = "RESULT" }, { .heading = "RATE" },
	{ .heading = ">USED" }, { .heading = ">OF" }, { .heading = "UNIT", .hide = 2 },
	{ .heading = "FITS IN" }, { 0 },
};

/* To the millisecond, rounded up: a packet passes after that time. */
static const char *wait_text(const json_t *wait, char *buf, size_t size)
{
	unsigned long long wait_ns = (unsigned long long)json_integer_value(wait);

	if (!json_is_integer(wait))
		snprintf(buf, size, "never");
	else if (!wait_ns)
		snprintf(buf, size, "now");
	else
		duration_format((wait_ns + 999999) / 1000000 * 1000000, buf, size);
	return buf;
}

/* "line 12", "live" */
static const char *place_text(const json_t *at, char *buf, size_t size)
{
	if (json_object_get(at, "line"))
		snprintf(buf, size, "line %lld", number_of(at, "line"));
	else
		snprintf(buf, size, "live");
	return buf;
}

/* A member as an option takes it: "443", "syn,ack". */
static const char *value_text(const json_t *value, char *buf, size_t size)
{
	if (json_is_string(value))
		snprintf(buf, size, "%s", json_string_value(value));
	else
		snprintf(buf, size, "%lld", (long long)json_integer_value(value));
	return buf;
}

/* " dport 443 tcp_flags syn", or as options to type. */
static void print_fields(const json_t *fields, int as_options)
{
	const json_t *value;
	const char *key;
	char text[96];

	json_object_foreach((json_t *)fields, key, value) {
		if (!as_options && (!strcmp(key, "dst") || !strcmp(text_of(fields, key), "none")))
			continue;
		printf(as_options ? " --" : " ");
		for (const char *c = key; *c; c++)
			putchar(*c == '_' ? (as_options ? '-' : ' ') : *c);
		printf(" %s", value_text(value, text, sizeof(text)));
	}
}

static void print_packet(const json_t *result)
{
	const json_t *packet = json_object_get(result, "packet");
	const json_t *assumed = json_object_get(result, "assumed");
	const char *key, *before = "";
	const json_t *value;

	printf("%s to %s,", text_of(result, "source"), text_of(packet, "dst"));
	print_fields(packet, 0);
	printf("\n");
	if (json_object_size(assumed)) {
		printf("assumed: ");
		json_object_foreach((json_t *)assumed, key, value) {
			printf("%s%s", before, key);
			before = ", ";
		}
		printf("\n");
	}
	printf("\n");
}

/* "drop (over, step 7: limits), limit web, line 12" */
static void print_verdict(const json_t *verdict)
{
	char text[64];

	printf("%s (%s", text_of(verdict, "action"), text_of(verdict, "reason"));
	if (number_of(verdict, "step"))
		printf(", step %lld: %s", number_of(verdict, "step"),
		       text_of(verdict, "step_name"));
	printf(")");
	if (json_object_get(verdict, "limit"))
		printf(", by limit %s", text_of(verdict, "limit"));
	if (json_object_get(verdict, "line"))
		printf(", %s", place_text(verdict, text, sizeof(text)));
	if (json_object_get(verdict, "dscp"))
		printf(", dscp %lld", number_of(verdict, "dscp"));
	if (json_object_get(verdict, "mark"))
		printf(", mark %#llx", (unsigned long long)number_of(verdict, "mark"));
}

static void print_verdict_and_wait(const json_t *verdict)
{
	const json_t *wait = json_object_get(verdict, "passes_in_ns");
	char text[64];

	print_verdict(verdict);
	if (!json_is_integer(wait))
		printf("; waiting does not help");
	else if (json_integer_value(wait))
		printf("; passes in %s", wait_text(wait, text, sizeof(text)));
	printf("\n");
}

static void print_verdicts(const json_t *result)
{
	const json_t *cpus = json_object_get(result, "cpus"), *cpu;
	size_t i;

	if (!cpus) {
		print_verdict_and_wait(json_object_get(result, "verdict"));
		return;
	}
	printf("The verdict differs by CPU, as each CPU has its own leases:\n");
	json_array_foreach(cpus, i, cpu) {
		printf("  CPU %lld: ", number_of(cpu, "cpu"));
		print_verdict_and_wait(cpu);
	}
}

static void print_list_entry(const char *what, const json_t *entry)
{
	char text[64];

	if (!json_is_object(entry)) {
		printf("%-7s no\n", what);
		return;
	}
	printf("%-7s %s, %s", what, text_of(entry, "prefix"),
	       place_text(entry, text, sizeof(text)));
	if (text_of(entry, "until")[0])
		printf(", until %s", text_of(entry, "until"));
	if (text_of(entry, "reason")[0])
		printf(" (%s)", text_of(entry, "reason"));
	printf("\n");
}

static void print_ban(const json_t *ban)
{
	if (!json_is_object(ban)) {
		printf("%-7s no\n", "banned");
		return;
	}
	printf("%-7s %s%s by limit %s, %s %s, level %lld\n", "banned",
	       json_is_true(json_object_get(ban, "on")) ? "" : "no; was ", text_of(ban, "prefix"),
	       text_of(ban, "limit"), json_is_true(json_object_get(ban, "on")) ? "until" : "up to",
	       text_of(ban, "until"), number_of(ban, "level"));
}

/* Prints nothing without push-downs: most hosts never have any. */
static void print_pushdowns(const json_t *list)
{
	const json_t *push;
	size_t i;

	json_array_foreach(list, i, push)
		printf("%-7s %s: %s%s%s, until %s, %lld of %lld packets refused\n", "pushed",
		       text_of(push, "prefix"), text_of(push, "kind"),
		       text_of(push, "rate")[0] ? " " : "", text_of(push, "rate"),
		       text_of(push, "until"), number_of(push, "refused"),
		       number_of(push, "packets"));
}

/* The override that a limit's rates come from. */
static void print_overrides(const json_t *limits)
{
	const json_t *limit, *row, *own;
	char text[64];
	size_t i, k;

	json_array_foreach(limits, i, limit) {
		json_array_foreach(json_object_get(limit, "meters"), k, row) {
			own = json_object_get(row, "override");
			if (!json_is_object(own))
				continue;
			printf("Limit %s applies the rates of override %s to this source, %s%s%s.\n",
			       text_of(limit, "limit"), text_of(own, "src"),
			       place_text(own, text, sizeof(text)),
			       text_of(own, "file")[0] ? " of " : "", text_of(own, "file"));
			break;
		}
	}
}

/* The first four cells of a row; those of the limit stand only in its first row. */
static void add_limit(struct table *table, const json_t *limit, size_t row)
{
	const char *says = text_of(limit, "result");
	char text[64];

	if (row) {
		for (int i = 0; i < 3; i++)
			table_cell(table, " ");
		return;
	}
	table_cell(table, "%s", text_of(limit, "limit"));
	table_cell(table, "%s", place_text(limit, text, sizeof(text)));
	table_cell(table, "%s", says[0] ? says : "not counted");
}

static void add_row(struct table *table, const json_t *row)
{
	unsigned long long leased = (unsigned long long)number_of(row, "leased");
	char text[64], prefix[16] = "", scale[32] = "";

	if (json_object_get(row, "prefix"))
		snprintf(prefix, sizeof(prefix), " per /%lld", number_of(row, "prefix"));
	if (json_object_get(row, "scale"))
		snprintf(scale, sizeof(scale), ", x%.2f", real_of(row, "scale"));
	table_cell(table, "%s%s%s", text_of(row, "rate"), prefix, scale);
	table_cell(table, "%s", thousands((unsigned long long)number_of(row, "used"), text,
					  sizeof(text)));
	table_cell(table, "%s", thousands((unsigned long long)number_of(row, "capacity"), text,
					  sizeof(text)));
	if (leased)
		table_cell(table, "%s (%s leased)", text_of(row, "unit"),
			   thousands(leased, text, sizeof(text)));
	else
		table_cell(table, "%s", text_of(row, "unit"));
	if (!strcmp(text_of(row, "role"), "ban"))
		table_cell(table, json_is_true(json_object_get(row, "over")) ?
			   "the next drop bans" : " ");
	else if (json_is_true(json_object_get(row, "over")))
		table_cell(table, "%s", wait_text(json_object_get(row, "fits_in_ns"), text,
						  sizeof(text)));
	else
		table_cell(table, "now");
}

static void print_limits(const json_t *limits, int width)
{
	struct table *table = table_new(limit_columns);
	const json_t *limit, *row;
	size_t i, k;

	json_array_foreach(limits, i, limit) {
		const json_t *rows = json_object_get(limit, "meters");

		json_array_foreach(rows, k, row) {
			add_limit(table, limit, k);
			add_row(table, row);
		}
		if (json_array_size(rows))
			continue;
		add_limit(table, limit, 0);
		for (k = 0; k < 5; k++)
			table_cell(table, "-");
	}
	table_print(table, "no limit matches", width);
}

/* Limits whose bucket depends on a field that was not given. */
static void print_buckets(const json_t *limits)
{
	const json_t *limit, *field;
	size_t i, k;

	json_array_foreach(limits, i, limit) {
		const json_t *fields = json_object_get(limit, "bucket_depends_on");

		if (!json_array_size(fields))
			continue;
		printf("%s counts", text_of(limit, "limit"));
		json_array_foreach(fields, k, field)
			printf("%s per %s", k ? " and" : "", json_string_value(field));
		printf(", which was not given: another value has another bucket.\n");
	}
}

static void print_changes(const json_t *changes)
{
	const json_t *change;
	char text[64];
	size_t i;

	if (json_array_size(changes))
		printf("\nFields that were not given and would change the verdict:\n");
	json_array_foreach(changes, i, change) {
		if (json_object_get(change, "more")) {
			printf("  and %lld more\n", number_of(change, "more"));
			continue;
		}
		printf(" ");
		print_fields(json_object_get(change, "fields"), 1);
		if (text_of(change, "matches")[0])
			printf(" (matches %s%s%s)", text_of(change, "matches"),
			       json_object_get(change, "line") ? ", " : "",
			       json_object_get(change, "line") ?
			       place_text(change, text, sizeof(text)) : "");
		printf(": ");
		print_verdict(json_object_get(change, "verdict"));
		printf("\n");
	}
}

void print_explained(const json_t *result, int width)
{
	const json_t *limits = json_object_get(result, "limits");

	print_packet(result);
	print_verdicts(result);
	printf("\n");
	print_list_entry("exempt", json_object_get(result, "exempt"));
	print_list_entry("blocked", json_object_get(result, "block"));
	print_ban(json_object_get(result, "ban"));
	print_pushdowns(json_object_get(result, "pushdowns"));
	printf("\n");
	print_limits(limits, width);
	print_overrides(limits);
	print_buckets(limits);
	print_changes(json_object_get(result, "would_change"));
}
