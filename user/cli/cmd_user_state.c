// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_user_state.c - sluicectl user top, show, reset: what users of the HTTP tier have used. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"

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
	table_print(table, "nobody was refused lately");
}

int cmd_user_top(const struct cli *cli)
{
	return client_show(cli, "user top", NULL, print_top);
}
