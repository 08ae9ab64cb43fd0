// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_limit.c - sluicectl limit list, show, set, add, del. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"

/* The daemon's bound of a request, less some room. */
#define YAML_MAX ((1 << 20) - 4096)

/* " /32,/24" where a source has several prefix lengths; `steps` is a number or a list. */
static size_t steps_text(const json_t *steps, char *buf, size_t size)
{
	const json_t *step;
	size_t used = 0, i;

	buf[0] = 0;
	json_array_foreach(steps, i, step)
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s/%lld", i ? "," : " ",
						 (long long)json_integer_value(step));
	return used < size ? used : size - 1;
}

/* "source,dport", or the meaning of []; with the lengths of a prefix hierarchy. */
static const char *per_text(const json_t *limit, char *buf, size_t size)
{
	const json_t *prefix = json_object_get(limit, "prefix"), *item;
	size_t used = 0, i;

	snprintf(buf, size, "all sources");
	json_array_foreach(json_object_get(limit, "per"), i, item)
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? "," : "",
						 json_string_value(item));
	if (used && used < size)
		used += steps_text(json_object_get(prefix, "ipv4"), buf + used, size - used);
	if (used && used < size)
		steps_text(json_object_get(prefix, "ipv6"), buf + used, size - used);
	return buf;
}

/* The bursts of all rates. */
static const char *bursts_text(const json_t *limit, char *buf, size_t size)
{
	const json_t *rate;
	char number[32];
	size_t used = 0, i;

	buf[0] = 0;
	json_array_foreach(json_object_get(limit, "rates"), i, rate)
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
						 thousands((unsigned long long)
								   number_of(rate, "burst"),
							   number, sizeof(number)));
	return buf;
}

/* The action above the rate: "drop, soft 10%, ban". `limit show` has all of it. */
static void add_action(struct table *table, const json_t *limit)
{
	char kind[16], percent[16], throttle[40] = "";

	if (sscanf(text_of(limit, "throttle"), "{%15[a-z]: %15[0-9.%]", kind, percent) == 2)
		snprintf(throttle, sizeof(throttle), ", %s %s", kind, percent);
	table_cell(table, "%s%s%s", text_of(limit, "action"), throttle,
		   json_object_get(limit, "ban") ? ", ban" : "");
}

/* What differs from the file: the elastic scale, live changes. */
static void add_notes(struct table *table, const json_t *limit)
{
	const json_t *elastic = json_object_get(limit, "elastic");
	bool live = json_is_true(json_object_get(limit, "live"));
	char text[32] = "";

	if (elastic)
		snprintf(text, sizeof(text), "x%.2f", real_of(elastic, "scale"));
	table_cell(table, "%s%s%s", text, elastic && live ? ", " : "", live ? "changed live" : "");
}

static void print_list(const json_t *result)
{
	struct table *table = table_new("LIMIT|PER|RATE|>BURST|ALGORITHM|ACTION|MODE|");
	const json_t *limit;
	char text[128];
	size_t i;

	json_array_foreach(json_object_get(result, "limits"), i, limit) {
		table_cell(table, "%s", text_of(limit, "name"));
		table_cell(table, "%s", per_text(limit, text, sizeof(text)));
		table_cell(table, "%s", text_of(limit, "rate"));
		table_cell(table, "%s", bursts_text(limit, text, sizeof(text)));
		table_cell(table, "%s", text_of(limit, "algorithm"));
		add_action(table, limit);
		table_cell(table, "%s", text_of(limit, "mode"));
		add_notes(table, limit);
	}
	table_print(table, "no limits");
}

int cmd_limit_list(const struct cli *cli)
{
	return client_show(cli, "limit list", NULL, print_list);
}

static void print_yaml(const json_t *result)
{
	const json_t *elastic = json_object_get(result, "elastic");

	/* As a comment, so that the output stays YAML. */
	if (elastic)
		printf("# scale now %.2f of %.2f: %s\n", real_of(elastic, "scale"),
		       real_of(elastic, "ceiling"), text_of(elastic, "why"));
	fputs(text_of(result, "yaml"), stdout);
}

int cmd_limit_show(const struct cli *cli)
{
	return client_show(cli, "limit show", json_pack("{s:s}", "name", cli->arg[0]), print_yaml);
}

static void print_set(const json_t *result)
{
	print_change("set", result);
}

int cmd_limit_set(const struct cli *cli)
{
	json_t *pairs = json_array();

	for (int i = 1; i < cli->arg_count; i++) {
		if (!strchr(cli->arg[i], '=')) {
			json_decref(pairs);
			return cli_refuse(cli, EXIT_USAGE, "'%s' is not KEY=VALUE, as in "
					  "rate='10 packets/s'", cli->arg[i]);
		}
		if (json_array_append_new(pairs, json_string(cli->arg[i])) < 0) {
			json_decref(pairs);
			return cli_refuse(cli, EXIT_USAGE, "argument %d is not UTF-8", i + 1);
		}
	}
	return client_show(cli, "limit set",
			   json_pack("{s:s, s:o}", "name", cli->arg[0], "pairs", pairs), print_set);
}

/* A whole stream, at most YAML_MAX bytes; NULL with errno. */
static char *read_all(FILE *in)
{
	char *text = malloc(YAML_MAX + 1);
	size_t size = text ? fread(text, 1, YAML_MAX + 1, in) : 0;

	if (text && (ferror(in) || size > YAML_MAX)) {
		if (!ferror(in))
			errno = EFBIG;
		free(text);
		return NULL;
	}
	if (text)
		text[size] = '\0';
	return text;
}

static void print_added(const json_t *result)
{
	char what[512] = "added";
	const json_t *name;
	size_t used = 5, i;

	json_array_foreach(json_object_get(result, "added"), i, name)
		if (used < sizeof(what))
			used += (size_t)snprintf(what + used, sizeof(what) - used, "%s %s",
						 i ? "," : "", json_string_value(name));
	print_change(what, result);
}

int cmd_limit_add(const struct cli *cli)
{
	bool standard = !strcmp(cli->arg[0], "-");
	FILE *in = standard ? stdin : fopen(cli->arg[0], "re");
	char *text = in ? read_all(in) : NULL;
	int code = errno;
	json_t *args;

	if (in && !standard)
		fclose(in);
	if (!text)
		return cli_refuse(cli, EXIT_REFUSED, "%s: %s", cli->arg[0], strerror(code));
	args = json_pack("{s:s, s:s}", "yaml", text, "file",
			 standard ? "standard input" : cli->arg[0]);
	free(text);
	if (!args)
		return cli_refuse(cli, EXIT_REFUSED, "%s: not UTF-8", cli->arg[0]);
	return client_show(cli, "limit add", args, print_added);
}

static void print_deleted(const json_t *result)
{
	print_change("deleted", result);
}

int cmd_limit_del(const struct cli *cli)
{
	return client_show(cli, "limit del", json_pack("{s:s}", "name", cli->arg[0]),
			   print_deleted);
}
