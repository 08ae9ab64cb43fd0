// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_ban.c - sluicectl ban list, ban del. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static void print_bans(const json_t *bans, const char *none)
{
	struct table *table = table_new("SOURCE|LIMIT|SINCE|UNTIL|LEFT|>LEVEL|>DROPS");
	const json_t *ban;
	char text[64];
	size_t i;

	json_array_foreach(bans, i, ban) {
		u64 left = (u64)number_of(ban, "left_ns") / SL_NS_PER_SEC * SL_NS_PER_SEC;
		bool active = json_is_true(json_object_get(ban, "active"));
		const char *limit = text_of(ban, "limit");

		table_cell(table, "%s", text_of(ban, "source"));
		table_cell(table, "%s%s%s", limit[0] ? limit : "(gone)",
			   text_of(ban, "node")[0] ? ", node " : "", text_of(ban, "node"));
		table_cell(table, "%s", text_of(ban, "since"));
		table_cell(table, "%s", text_of(ban, "until"));
		table_cell(table, "%s", active ? duration_format(left, text, sizeof(text)) : "ended");
		table_cell(table, "%lld", number_of(ban, "level"));
		table_cell(table, "%s", thousands((unsigned long long)number_of(ban, "drops"), text,
						  sizeof(text)));
	}
	table_print(table, none);
}

static void print_list(const json_t *result)
{
	print_bans(json_object_get(result, "bans"), "no bans");
}

int cmd_ban_list(const struct cli *cli)
{
	return client_show(cli, "ban list", NULL, print_list);
}

static void print_lifted(const json_t *result)
{
	const json_t *ban;
	size_t i;

	json_array_foreach(json_object_get(result, "lifted"), i, ban)
		printf("lifted: %s\n", text_of(ban, "source"));
}

int cmd_ban_del(const struct cli *cli)
{
	json_t *args = json_pack("{s:s}", "source", cli->arg[0]);

	if (!args)
		return cli_refuse(cli, EXIT_USAGE, "the source is not UTF-8");
	return client_show(cli, "ban del", args, print_lifted);
}
