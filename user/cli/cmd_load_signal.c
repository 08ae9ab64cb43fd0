// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_load_signal.c - sluicectl load-signal set, load-signal list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

/* "0.63" or "63%"; false where it is neither. */
static bool parse_value(const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = end != text && !strcmp(end, "%");

	if (end == text || (*end && !percent) || !(value >= 0) || value > 1e9)
		return false;
	*ret = percent ? value / 100 : value;
	return true;
}

static const char *left_text(const json_t *signal, char *buf, size_t size)
{
	u64 left = (u64)number_of(signal, "left_ns");

	/* Rounded up to a second, so that a value just set for 10s shows 10s. */
	return duration_format((left + SL_NS_PER_SEC - 1) / SL_NS_PER_SEC * SL_NS_PER_SEC, buf, size);
}

static void print_one(const json_t *signal)
{
	char text[64];

	printf("%s is %g for %s\n", text_of(signal, "name"), real_of(signal, "value"),
	       left_text(signal, text, sizeof(text)));
}

int cmd_load_signal(const struct cli *cli)
{
	double value;
	json_t *args;

	if (!parse_value(cli->arg[1], &value))
		return cli_refuse(cli, EXIT_USAGE, "'%s' is not a load value; accepted: a number from 0, such "
				  "as 0.63 or 63%%", cli->arg[1]);
	args = json_pack("{s:s, s:f}", "name", cli->arg[0], "value", value);
	if (!args)
		return cli_refuse(cli, EXIT_USAGE, "the name is not UTF-8");
	if (cli->for_text)
		json_object_set_new(args, "for", json_string(cli->for_text));
	return client_show(cli, "load-signal set", args, print_one);
}

static void print_list(const json_t *result)
{
	struct table *table = table_new("LOAD SIGNAL|>VALUE|LEFT|LIMITS");
	const json_t *signal, *limit;
	char text[64];
	size_t i, k;

	json_array_foreach(json_object_get(result, "load_signals"), i, signal) {
		bool set = !json_is_null(json_object_get(signal, "value"));
		char limits[256] = "";
		size_t used = 0;

		json_array_foreach(json_object_get(signal, "limits"), k, limit)
			if (used < sizeof(limits))
				used += (size_t)snprintf(limits + used, sizeof(limits) - used, "%s%s",
							 k ? "," : "", json_string_value(limit));
		table_cell(table, "%s", text_of(signal, "name"));
		if (set)
			table_cell(table, "%g", real_of(signal, "value"));
		else
			table_cell(table, "not set");
		table_cell(table, "%s", set ? left_text(signal, text, sizeof(text)) : "-");
		table_cell(table, "%s", limits);
	}
	table_print(table, "no limit uses a load signal");
}

int cmd_load_signal_list(const struct cli *cli)
{
	return client_show(cli, "load-signal list", NULL, print_list);
}
