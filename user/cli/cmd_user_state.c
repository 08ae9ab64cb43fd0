// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_user_state.c - sluicectl user top, show, reset: consumption of users of the HTTP tier. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static void print_top(const json_t *result)
{
	struct table *table = table_new("RULE|VALUE|>REFUSED|LAST");
	const json_t *user;
	char text[64];
	size_t i;

	json_array_foreach(json_object_get(result, "users"), i, user) {
		table_cell(table, "%s", text_of(user, "rule"));
		table_cell(table, "%s", text_of(user, "value"));
		table_cell(table, "%s", thousands((unsigned long long)number_of(user, "refused"),
						  text, sizeof(text)));
		table_cell(table, "%s", text_of(user, "last"));
	}
	table_print(table, "no recent refusals");
}

int cmd_user_top(const struct cli *cli)
{
	return client_show(cli, "user top", NULL, print_top);
}

static void print_user(const json_t *result)
{
	struct table *table = table_new("LIMIT|STATE|>REMAINING|>OF|>WINDOW|RESET IN|NEXT PASSES");
	const json_t *limit;
	char text[64];
	size_t i;

	printf("%s %s%s\n", text_of(result, "rule"), text_of(result, "value"),
	       json_is_true(json_object_get(result, "unlimited")) ? ": unlimited" : "");
	json_array_foreach(json_object_get(result, "limits"), i, limit) {
		bool over = json_is_true(json_object_get(limit, "over"));
		const json_t *wait = json_object_get(limit, "retry_after_ms");

		table_cell(table, "%s", text_of(limit, "limit"));
		table_cell(table, "%s", over ? "over" : "within");
		table_cell(table, "%lld", number_of(limit, "remaining"));
		table_cell(table, "%lld", number_of(limit, "quota"));
		table_cell(table, "%llds", number_of(limit, "window_s"));
		table_cell(table, "%s", duration_format((u64)number_of(limit, "reset_ms") * 1000000,
							text, sizeof(text)));
		if (!over)
			table_cell(table, "now");
		else if (json_is_null(wait))
			table_cell(table, "never");
		else
			table_cell(table, "in %s", duration_format((u64)json_integer_value(wait) *
								   1000000, text, sizeof(text)));
	}
	table_print(table, "no limits");
}

static int request_user(const struct cli *cli, const char *command, void (*print)(const json_t *))
{
	json_t *args = json_pack("{s:s, s:s}", "rule", cli->arg[0], "value", cli->arg[1]);

	if (!args)
		return cli_refuse(cli, EXIT_USAGE, "the rule or the value is not UTF-8");
	return client_show(cli, command, args, print);
}

int cmd_user_show(const struct cli *cli)
{
	return request_user(cli, "user show", print_user);
}

static void print_reset(const json_t *result)
{
	printf("counters reset\n");
}

int cmd_user_reset(const struct cli *cli)
{
	return request_user(cli, "user reset", print_reset);
}
