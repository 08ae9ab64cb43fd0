// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_push.c - sluicectl pushdowns list, pushdowns clear. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static void print_refused(const json_t *refused)
{
	const char *reason;
	const json_t *count;
	bool any = false;

	json_object_foreach((json_t *)refused, reason, count) {
		if (!json_integer_value(count))
			continue;
		printf("%s%s %lld", any ? ", " : "\nnot pushed down, by reason: ", reason,
		       (long long)json_integer_value(count));
		any = true;
	}
	if (any)
		printf("\n");
}

static void print_pushdowns(const json_t *result)
{
	struct table *table = table_new("SOURCE|STEP|RULE|VALUE|SINCE|LEFT|>PACKETS|>REFUSED");
	const json_t *push;
	char text[64];
	size_t i;

	json_array_foreach(json_object_get(result, "pushdowns"), i, push) {
		u64 left = (u64)number_of(push, "left_ns") / SL_NS_PER_SEC * SL_NS_PER_SEC;
		const char *rate = text_of(push, "rate");

		table_cell(table, "%s", text_of(push, "source"));
		table_cell(table, "%s%s%s%s", text_of(push, "step"), rate[0] ? " " : "", rate,
			   json_is_true(json_object_get(push, "shadow")) ? " (shadow)" : "");
		table_cell(table, "%s%s%s", text_of(push, "rule"),
			   text_of(push, "node")[0] ? ", node " : "", text_of(push, "node"));
		table_cell(table, "%s", text_of(push, "value"));
		table_cell(table, "%s", text_of(push, "since"));
		table_cell(table, "%s", duration_format(left, text, sizeof(text)));
		table_cell(table, "%s", thousands((unsigned long long)number_of(push, "packets"),
						  text, sizeof(text)));
		table_cell(table, "%s", thousands((unsigned long long)number_of(push, "refused"),
						  text, sizeof(text)));
	}
	table_print(table, "no push-downs");
	print_refused(json_object_get(result, "refused"));
}

int cmd_pushdowns_list(const struct cli *cli)
{
	return client_show(cli, "pushdowns list", NULL, print_pushdowns);
}

static void print_cleared(const json_t *result)
{
	printf("removed: %lld\n", number_of(result, "cleared"));
}

int cmd_pushdowns_clear(const struct cli *cli)
{
	json_t *args = cli->arg_count ? json_pack("{s:s}", "source", cli->arg[0]) : json_object();

	if (!args)
		return cli_refuse(cli, EXIT_USAGE, "the source is not UTF-8");
	return client_show(cli, "pushdowns clear", args, print_cleared);
}
